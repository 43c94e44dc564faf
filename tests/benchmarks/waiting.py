"""How long users wait for commands, and its page: ``python -m tests.benchmarks --page waiting``.

Each command is timed in processes of its own: idle, and beside processes that keep two cores busy. With ``--earlier``
the command of an environment with an earlier version takes turns with this one.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.verify.audit.markup.markdown import Section, environment_line, page
from tests.benchmarks.kernels import environment
from tests.benchmarks.performance import digits
from tests.benchmarks.timing import Skipped

TURNS = {"full": 7, "small": 1}
_LOAD = 2
_DIM = 20_000
_GATE = ("audit", "release.npy", "--canaries", "1000", "--canary-seed", "7", "--delta", "1e-6", "--noise-multiplier")
_SCORES = ("audit", "cosines.npy", "--dim", str(_DIM), "--delta", "1e-6")
# The README's gate, scores of as many canaries, a report and its check, and what reads no data.
_COMMANDS: dict[str, tuple[str, ...]] = {
    "audit of a release": (*_GATE, "1.54"),
    "audit of scores": _SCORES,
    "audit of scores, --json": (*_SCORES, "--json"),
    "audit of scores, --report": (*_SCORES, "--report", "report", "--overwrite"),
    "check-report": ("check-report", "report"),
    "plan": ("plan", "--dim", str(_DIM), "--noise-multiplier", "1.54"),
    "claims": ("claims",),
}
_COLD = ("audit of a release", "audit of scores")
# Three bounds and an interval of the same scores: no test of the input, no picture, no words.
_JAX_PRIVACY = """
import numpy as np
from jax_privacy import auditing
unobserved = np.random.default_rng(1).normal(size=1000) / 20_000**0.5
auditor = auditing.CanaryScoreAuditor(np.load("cosines.npy"), unobserved)
auditor.epsilon_clopper_pearson(0.05, 1e-6)
auditor.epsilon_one_run(0.05, 1e-6)
auditor.epsilon_from_gdp(0.05, 1e-6)
auditor.epsilon_raw_counts(delta=1e-6, bootstrap_params=auditing.BootstrapParams.confidence_interval())
"""
# Steps of a network of 79,510 parameters, alone or with the sum and the scores of 400 canaries in each.
_LOOP = """
import sys, time
import torch
import canaryproof as cp
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(784, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))
x, y = torch.randn(256, 784), torch.randint(10, (256,))
dim = sum(p.numel() for p in net.parameters())
participation = cp.shuffled_epochs(400, cohort=50, epochs=10, seed=0, canaries=cp.Insertion(400))
clients = cp.CanaryClients(cp.Canaries(seed=7, count=400, dim=dim), participation)
def step(t):
    net.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    if sys.argv[1] == "canaries":
        own = torch.cat([p.grad.ravel() for p in net.parameters()]).double().numpy()
        clients.add(own + clients.total(t, 1.0), round=t)
step(0)
wall, cpu = time.perf_counter(), time.process_time()
for t in range(1, 61):
    step(t)
print((time.process_time() - cpu) / 60, (time.perf_counter() - wall) / 60)
"""


@dataclass(frozen=True)
class Wait:
    """Medians of seconds: of a processor, by the clock, and by the clock beside a load; and an earlier version's."""

    label: str
    cpu: float
    wall: float
    loaded: float
    earlier_cpu: float | None
    earlier_wall: float | None


@dataclass(frozen=True)
class Waits:
    """All that one run measured."""

    environment: dict[str, str]
    turns: int
    waits: tuple[Wait | Skipped, ...]


@dataclass
class _Work:
    """A process that is timed, and its CPU and clock seconds: idle, beside a load, and of an earlier version."""

    label: str
    command: tuple[str, ...]
    # Begins without compiled code. Prints its seconds itself. Takes turns with an earlier version.
    is_cold: bool = False
    is_loop: bool = False
    earlier: tuple[str, ...] | None = None
    seconds: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


class _FailedError(Exception):
    """What a process said last."""


def measure(turns: int, earlier: Path | None, part: Callable[[str], object]) -> Waits:
    """Time commands, and steps of a loop, in processes of their own and in turns.

    Parameters
    ----------
    turns
        How often each is timed. Each is run once more before, which fills what is kept.
    earlier
        The command ``canaryproof`` of an environment with an earlier version.
    part
        Is told what is begun.
    """
    works, failed = list(_works(earlier)), dict[str, str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_inputs(folder)
        for turn in range(turns + 1):
            for work in works:
                if work.label not in failed:
                    part(f"turn {turn} of {turns}, {work.label}")
                    try:
                        _take_turn(work, folder, is_noted=turn > 0)
                    except _FailedError as error:
                        failed[work.label] = str(error)
    rows = [Skipped(each.label, failed[each.label]) if each.label in failed else _wait(each) for each in works]
    return Waits(environment(), turns, tuple(rows))


def _works(earlier: Path | None) -> Iterator[_Work]:
    own = str(Path(sys.executable).with_name("canaryproof"))
    for is_cold in (True, False):
        for label in _COLD if is_cold else _COMMANDS:
            words = _COMMANDS[label]
            before = (str(earlier), *words) if earlier else None
            yield _Work(f"{label}, first in a fresh cache" if is_cold else label, (own, *words), is_cold, False, before)
    yield _Work("jax_privacy: three bounds and an interval", (sys.executable, "-c", _JAX_PRIVACY))
    for kind in ("alone", "canaries"):
        label = "a step with torch, " + ("alone" if kind == "alone" else "with 400 canaries")
        yield _Work(label, (sys.executable, "-c", _LOOP, kind), is_loop=True)


def _write_inputs(folder: Path) -> None:
    """Write a release, and cosines of canaries that took part in one."""
    np.save(folder / "release.npy", Canaries(7, 1000, _DIM).sum() + 1.54 * noise(1, _DIM))
    cosines = np.random.default_rng(0).normal(0.3, 1.0, 1000) / _DIM**0.5
    np.save(folder / "cosines.npy", cosines)


def _take_turn(work: _Work, folder: Path, *, is_noted: bool) -> None:
    """Run a work idle, beside a load, and the earlier version's."""
    found = {"idle": _seconds(work, work.command, folder, "own")}
    if work.earlier:
        found["earlier"] = _seconds(work, work.earlier, folder, "earlier")
    with _load():
        found["loaded"] = _seconds(work, work.command, folder, "own")
    if is_noted:
        for name, each in found.items():
            work.seconds.setdefault(name, []).append(each)


@contextmanager
def _load() -> Iterator[None]:
    """Keep two cores busy."""
    others = [subprocess.Popen((sys.executable, "-c", "while True: pass")) for _ in range(_LOAD)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def _seconds(work: _Work, command: Sequence[str], folder: Path, cache: str) -> tuple[float, float]:
    """Return the CPU and the clock seconds of a process, or those that it prints."""
    with tempfile.TemporaryDirectory() as fresh, (folder / "said").open("w+") as said:
        kept = fresh if work.is_cold else str(folder / cache)
        begun = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "NUMBA_CACHE_DIR": kept},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = said.read().strip().splitlines()
    if process.returncode:
        raise _FailedError(lines[-1] if lines else f"exit status {process.returncode}")
    if work.is_loop:
        cpu, wall = map(float, lines[-1].split())
        return cpu, wall
    return used.ru_utime + used.ru_stime, wall


def _wait(work: _Work) -> Wait:
    medians = {
        name: tuple(statistics.median(column) for column in zip(*rows, strict=True))
        for name, rows in work.seconds.items()
    }
    idle, earlier = medians["idle"], medians.get("earlier", (None, None))
    return Wait(work.label, idle[0], idle[1], medians["loaded"][1], earlier[0], earlier[1])


def render(document: Mapping[str, Any]) -> dict[str, str]:
    """Make the page, as Markdown, by its file name."""
    last = environment_line(document["environment"])
    return {"waiting.md": page("What users wait for", _finding(document), [about(document)], sections(document), last)}


def about(document: Mapping[str, Any]) -> str:
    """Say how was measured."""
    return (
        f"`python -m tests.benchmarks --page waiting`: medians of {document['turns']} turns, each command in a process "
        f"of its own, and once more beside {_LOAD} processes that keep a core busy each. Add `--earlier` and the "
        "command of another environment to time an earlier version in the same turns."
    )


def _finding(document: Mapping[str, Any]) -> str:
    rows = {row["label"]: row for row in document["waits"] if "skipped" not in row}
    first, again = (rows.get(f"{_COLD[0]}{end}") for end in (", first in a fresh cache", ""))
    if first is None or again is None:
        return "Audits could not be measured."
    return (
        f"An audit of a release takes {_short(first['wall'])} s where nothing is compiled yet, and "
        f"{_short(again['wall'])} s later."
    )


def _short(value: float | None) -> str:
    """Render two digits, as medians of a few turns earn no more."""
    return "" if value is None else digits(value, value)


def sections(document: Mapping[str, Any]) -> list[Section]:
    """Put all that was measured into a table."""
    names = ("cpu", "wall", "loaded", "earlier_cpu", "earlier_wall")
    rows = [
        (row["label"], f"skipped: {row['skipped']}", *4 * ("",))
        if "skipped" in row
        else (row["label"], *(_short(row[name]) for name in names))
        for row in document["waits"]
    ]
    header = ("", "CPU, s", "seconds", f"seconds beside {_LOAD}", "CPU, earlier", "seconds, earlier")
    note = (
        f"The release is that of the README's gate in {_DIM:,} dimensions, with 1,000 canaries, and the scores are as "
        "many cosines. jax_privacy computes three bounds of as many scores and a bootstrap interval, in a process of "
        "its own, too. A step with torch is one of a network of 79,510 parameters on 256 examples."
    )
    used = 6 if any(row[4] for row in rows) else 4
    return [Section("Commands and steps", header[:used], tuple(row[:used] for row in rows), note)]
