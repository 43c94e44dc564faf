import atexit
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import settings

from canaryproof.verify.check.results import Result, Run
from canaryproof.verify.engine.executors import threads

# Tests train tiny models for a few rounds: compiling takes most of their time. What one test has compiled, others and
# the processes that they start load. A run as users have it does without.
QUICKLY_COMPILED = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    # The older code generator, on one thread, takes two thirds of the time.
    "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
    "JAX_COMPILATION_CACHE_DIR": os.environ.get("JAX_COMPILATION_CACHE_DIR", ""),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
if "PYTEST_XDIST_WORKER" not in os.environ:
    compiled = tempfile.TemporaryDirectory(prefix="canaryproof-jax-")
    atexit.register(compiled.cleanup)
    QUICKLY_COMPILED["JAX_COMPILATION_CACHE_DIR"] = compiled.name
os.environ.update(QUICKLY_COMPILED)

# "ci" draws the same examples every time; "deep" draws new ones, and many, and has tests of its own.
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.register_profile("ci", derandomize=True, max_examples=20, deadline=None)
settings.register_profile("deep", max_examples=1500, deadline=None)
settings.load_profile(PROFILE)

# What is imported stays to the end. Looking through it for garbage, again and again, would take a tenth of the time.
gc.disable()


def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores, as some tests wait for processes that they start."""
    return threads() + 1


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    deep = [item for item in items if PROFILE != "deep" and item.get_closest_marker("deep")]
    config.hook.pytest_deselected(items=deep)
    # Until a quick run is over, there are other tests to do.
    items[:] = sorted((item for item in items if item not in deep), key=_uses_quick_run)


def _uses_quick_run(item: pytest.Item) -> bool:
    return "quick_run" in getattr(item, "fixturenames", ())


@dataclass(frozen=True)
class QuickRun:
    """What ``make verify`` does, from the outside: its exit status, what it prints, and what it leaves."""

    status: int
    printed: str
    folder: Path

    @cached_property
    def run(self) -> Run:
        return Run.from_json(json.loads((self.folder / "results.json").read_text(encoding="utf-8")))

    @cached_property
    def results(self) -> dict[str, Result]:
        return {result.id: result for result in self.run.results}


@pytest.fixture(scope="session", autouse=True)
def _said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Judge everything once for all tests and all of their processes, beside the first tests, as it takes minutes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "quick-run"
    if any(map(_uses_quick_run, request.session.items)):
        # Or another process is at it.
        with suppress(FileExistsError):
            folder.mkdir()
            Thread(target=_judge_everything, args=(folder,)).start()
    return folder / "said.json"


def _judge_everything(folder: Path) -> None:
    command = [Path(sys.executable).with_name("canaryproof"), "verify", "--seed", "1", "--out", folder / "run"]
    environment = {name: value for name, value in os.environ.items() if name not in QUICKLY_COMPILED}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    part = folder / "said.part"
    part.write_text(json.dumps([done.returncode, done.stdout + done.stderr]))
    part.rename(folder / "said.json")


@pytest.fixture(scope="session")
def quick_run(_said: Path) -> QuickRun:
    """What a run of everything left."""
    end = time.monotonic() + 3600.0
    while not _said.exists():
        assert time.monotonic() < end
        time.sleep(0.2)
    return QuickRun(*json.loads(_said.read_text()), _said.parent / "run")
