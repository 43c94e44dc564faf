import atexit
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from canaryproof.verify.audit.cli import progress
from canaryproof.verify.papers.check.results import Result, Run

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


# Commands say off a terminal how far they are, which on a busy machine they would do in any test.
progress._LINE_EVERY = 3600.0


@pytest.hookimpl(trylast=True)
def pytest_sessionstart() -> None:
    # The first property makes a generator and looks for an object that refers to it. It would find none that is frozen
    # below, which is an error from Python 3.14 on: a dict is tracked there, and so frozen, even while it is empty.
    given(st.none())(lambda _: None)()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    deep = set() if PROFILE == "deep" else set(_deep(items))
    config.hook.pytest_deselected(items=list(deep))
    items[:] = [item for item in items if item not in deep]
    # The run that these share takes longest: others do their own tests meanwhile, and do not wait for it.
    for item in items:
        if "quick_run" in getattr(item, "fixturenames", ()):
            item.add_marker("quick_run")
    items.sort(key=lambda item: item.get_closest_marker("quick_run") is None)


def _deep(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield tests marked ``deep``, and the rows that ``deep(beyond=n)`` and ``deep(every=n)`` do not keep."""
    rows: Counter[str] = Counter()
    for item in items:
        row = rows[name := item.nodeid.partition("[")[0]]
        rows[name] += 1
        if any(not _keeps(row, **marker.kwargs) for marker in item.iter_markers("deep")):
            yield item


def _keeps(row: int, beyond: int = 0, every: int = 0) -> bool:
    return row % every == 0 if every else row < beyond


@dataclass(frozen=True)
class QuickRun:
    """What ``canaryproof verify`` does, from the outside: its exit status, what it prints, and what it leaves."""

    status: int
    printed: str
    folder: Path

    @cached_property
    def run(self) -> Run:
        return Run.from_json(json.loads((self.folder / "results.json").read_text(encoding="utf-8")))

    @cached_property
    def results(self) -> dict[str, Result]:
        return {result.id: result for result in self.run.results}


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> QuickRun:
    """Judge every check once, with few draws, for all tests and all of their processes: it takes minutes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "quick-run"
    said = folder / "said.json"
    try:
        folder.mkdir()
    except FileExistsError:
        # Another process is at it. If it hangs, pytest ends this test, too.
        while not said.exists():
            time.sleep(0.2)
    else:
        options = ["--level", "smoke", "--seed", "1", "--out", folder / "run"]
        command = [Path(sys.executable).with_name("canaryproof"), "verify", *options]
        environment = {name: value for name, value in os.environ.items() if name not in QUICKLY_COMPILED}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        part = said.with_suffix(".part")
        part.write_text(json.dumps([done.returncode, done.stdout + done.stderr]))
        part.rename(said)
    return QuickRun(*json.loads(said.read_text()), folder / "run")
