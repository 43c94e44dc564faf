"""Running a tool: in which environment it is, and what it answers to a request.

``make auditors`` makes the environments from the pinned lists in this folder, one below ``.venv-auditors`` for each
list. A tool that is installed in this package's own environment is used there.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORKER = Path(__file__).with_name("worker.py")
# Where the environments are: this variable says otherwise.
_VARIABLE, _FOLDER = "CANARYPROOF_AUDITORS", ".venv-auditors"
# CPU seconds that one call may take, and seconds in which it has to end: a call that waits uses no CPU.
LIMIT, WAIT = 10.0, 120.0
# Tools by the list that pins them; the others are functions of this package.
ENVIRONMENTS = {
    "plain": (
        *("autodp", "diffprivlib", "dp-accounting", "jax-privacy", "opendp", "privacy-estimates"),
        *("prv-accountant", "riskcal"),
    ),
    "torch": ("opacus", "opake-auditing", "privacyguard-platform"),
}


@dataclass(frozen=True)
class Answer:
    """A tool's answers: value or None, what was raised, and CPU seconds, of each call in order."""

    version: str
    calls: tuple[tuple[float | None, str, float], ...]


class MissingToolError(Exception):
    """A tool is not installed; the text says what installs it."""


class EndedToolError(Exception):
    """A tool's process ended without an answer."""


def pinned(environment: str) -> dict[str, str]:
    """Return the versions that a list pins, by distribution."""
    lines = WORKER.with_name(f"{environment}.txt").read_text(encoding="utf-8").split()
    return {name: number for name, _, number in (line.partition("==") for line in lines)}


def today() -> str:
    """Return the date, in UTC: what is installed, and how fast it is, are of a day."""
    return datetime.now(UTC).date().isoformat()


def _interpreter(tool: str) -> str:
    for environment, tools in ENVIRONMENTS.items():
        if tool in tools:
            own = Path(os.environ.get(_VARIABLE, _FOLDER)) / environment / "bin" / "python"
            if own.exists():
                return str(own.absolute())
            try:
                version(tool)
            except PackageNotFoundError:
                raise MissingToolError(f"{tool} is not installed: `make auditors` installs it") from None
    return sys.executable


def ask(
    kind: str,
    tool: str,
    method: str,
    cells: Sequence[Mapping[str, Any]],
    scores: Mapping[str, NDArray[Any]] | None = None,
    **given: Any,
) -> Answer:
    """Call a method of a tool for all cells; for auditors, for all audits of each, whose scores are arrays by name.

    ``MissingToolError`` says that the tool is not installed or cannot be imported. ``EndedToolError`` says that
    the worker ended without an answer; ``ValueError``, that it got other scores.
    """
    arrays = scores or {}
    request = {"kind": kind, "tool": tool, "method": method, "cells": list(cells), **given}
    request |= {"limit": LIMIT, "wait": WAIT}
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("request.json", "scores.npz", "answer.json")]
        files[0].write_text(json.dumps(request), encoding="utf-8")
        np.savez(files[1], **arrays)  # type: ignore[arg-type]
        done = subprocess.run(
            [_interpreter(tool), "-P", str(WORKER), *map(str, files)],
            env={**os.environ, **one_thread},
            capture_output=True,
            check=False,
        )
        if done.returncode or not files[2].exists():
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            # Python's own watchdog says so before it ends a call that does not even take signals.
            late = next((line for line in lines if line.startswith("Timeout (")), None)
            reason = late or (lines[-1] if lines else done.returncode)
            raise EndedToolError(f"{tool}, {method}: ended without an answer ({reason})")
        answer = json.loads(files[2].read_text(encoding="utf-8"))
    if "missing" in answer:
        raise MissingToolError(f"{tool} cannot be imported: {answer['missing']}")
    digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()
    if arrays and answer["digest"] != digest:
        raise ValueError(f"{tool}, {method}: was given other scores")
    rows = answer["answers"] if kind == "accountants" else [row for cell in answer["answers"] for row in cell]
    return Answer(answer["version"], tuple((row[0], row[1], row[2]) for row in rows))
