"""Measurements in fresh processes: peak memory, equality of bits, and instructions."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.timing import Skipped
from tests.memory import RESET

_ONE_THREAD = {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_TWO_THREADS = {"NUMBA_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}


@dataclass(frozen=True)
class Memory:
    """Bytes of the vectors that an operation makes and gives, and what it held beyond them at its peak."""

    label: str
    dim: int
    count: int
    vectors: int
    extra: int


@dataclass(frozen=True)
class Bits:
    """Whether results are the same bits in three fresh processes."""

    label: str
    threads_agree: bool
    runs_agree: bool


@dataclass(frozen=True)
class Instructions:
    """Instructions per coordinate and pass of Algorithm 1 in one thread."""

    label: str
    tool: str
    instructions: float


class FailedError(Exception):
    """What a process said last."""


def _run(command: Sequence[object], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise FailedError(last)
    return done


def _fresh(*job: object) -> tuple[object, ...]:
    return (sys.executable, "-m", "tests.benchmarks.fresh", *job)


def answer(*job: object, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what a job of ``fresh`` prints in a process of its own."""
    document: dict[str, Any] = json.loads(_run(_fresh(*job), environment).stdout)
    return document


def memory(operations: Sequence[tuple[str, int, int]], block: int) -> tuple[Memory | Skipped, ...]:
    """Measure peak memory beside the vectors, of each operation in a process of its own.

    Parameters
    ----------
    operations
        Names in ``fresh.OPERATIONS``, dimensions and numbers of canaries.
    block
        Rounds at once in ``RoundScores``.
    """
    rows: list[Memory | Skipped] = []
    for name, dim, count in operations:
        if not RESET.exists():
            rows.append(Skipped(name, f"this platform has no {RESET}"))
            continue
        try:
            found = answer("memory", name, dim, count, block, environment={})
            rows.append(Memory(name, dim, count, found["vectors"], found["extra"]))
        except FailedError as error:
            rows.append(Skipped(name, str(error)))
    return tuple(rows)


def bits(dim: int, count: int) -> tuple[Bits, ...]:
    """Compare results of one thread, of two threads, and of two threads once more."""
    one, two, again = (answer("bits", dim, count, environment=e) for e in (_ONE_THREAD, _TWO_THREADS, _TWO_THREADS))
    return tuple(Bits(name, one[name] == two[name], two[name] == again[name]) for name in one)


def instructions(dim: int, count: int) -> tuple[Instructions | Skipped, ...]:
    """Count instructions by ``perf``, or by callgrind where there is none or the processor's counters are hidden."""
    label = "instructions"
    if count == 0:
        return (Skipped(label, "only at the full size"),)
    reasons = []
    for tool, count_all in (("perf", _with_perf), ("valgrind", _with_callgrind)):
        if shutil.which(tool) is None:
            continue
        try:
            name, (nothing, *counts) = count_all(["nothing", "canaryproof", "numpy"], dim, count)
        except FailedError as error:
            reasons.append(f"{tool}: {error}")
            continue
        per = [(counted - nothing) / (2.0 * dim * count) for counted in counts]
        labels = ("canaryproof", "numpy, PCG64")
        return tuple(Instructions(row, name, value) for row, value in zip(labels, per, strict=True))
    return (Skipped(label, "; ".join(reasons) or "neither perf nor valgrind is there"),)


def _with_perf(jobs: Sequence[str], dim: int, count: int) -> tuple[str, list[int]]:
    command = ("perf", "stat", "-x,", "-e", "instructions:u")
    environment = {**_ONE_THREAD, "PYTHONHASHSEED": "0", "LC_ALL": "C"}
    return "perf", [perf_count(_run([*command, *_fresh("work", job, dim, count)], environment).stderr) for job in jobs]


def _with_callgrind(jobs: Sequence[str], dim: int, count: int) -> tuple[str, list[int]]:
    # valgrind knows no vectors of 512 bits, and compiling under it would take an hour: code is made before, and cached.
    processor = "x86-64-v3" if platform.machine().lower() in ("x86_64", "amd64") else "generic"
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **_ONE_THREAD,
            "PYTHONHASHSEED": "0",
            "NUMBA_CACHE_DIR": cache,
            "NUMBA_CPU_NAME": processor,
            "NUMBA_CPU_FEATURES": "",
        }
        _run(_fresh("work", "nothing", dim, count), environment)
        command = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={Path(cache) / 'callgrind.out'}")
        return f"callgrind, {processor}", [
            callgrind_count(_run([*command, *_fresh("work", job, dim, count)], environment).stderr) for job in jobs
        ]


def perf_count(text: str) -> int:
    """Read the number of instructions from what ``perf stat -x,`` says."""
    match = re.search(r"^(.*?),[^,]*,instructions(?::u)?,", text, re.MULTILINE)
    if match is None or not match[1].isdecimal():
        raise FailedError(f"instructions are {match[1].strip('<>')}" if match else "no count")
    return int(match[1])


def callgrind_count(text: str) -> int:
    """Read the number of instructions from what callgrind says."""
    match = re.search(r"^==\d+== Collected : (\d+)", text, re.MULTILINE)
    if match is None:
        raise FailedError("no count")
    return int(match[1])
