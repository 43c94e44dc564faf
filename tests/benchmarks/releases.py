"""Cost of audits of large releases in files, and its page: ``python -m tests.benchmarks --page releases``."""

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numba

from canaryproof.kernels.slices import BLOCK
from canaryproof.verify.audit.markup.markdown import Section, environment_line, page
from tests.benchmarks.kernels import environment
from tests.benchmarks.performance import digits
from tests.benchmarks.processes import FailedError, answer
from tests.benchmarks.timing import Skipped
from tests.memory import RESET

DIMS = {"full": (2**20, 2**24, 2**27), "small": (2**14,)}
LARGEST = 2**30
# Numbers of canaries whose scores are timed, and of those that are in the release and audited.
_SCORED = (("independent", 10), ("independent", 100), ("orthonormal", 10**3), ("orthonormal", 10**6))
_AUDITED = 1000
# The aim for the largest release.
_MOST_SECONDS, _MOST_BYTES = 120.0, 10e9
_FAR, _MACHINES = 10**10, 64
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Scores:
    """Seconds that scores of canaries took, and bytes that they held at the peak."""

    canaries: str
    count: int
    seconds: float
    peak: int


@dataclass(frozen=True)
class WholeAudit:
    """Cost of a whole audit, the ε of the noise in the release, and the ε̂ that was found with its interval."""

    count: int
    seconds: float
    peak: int
    decision: str
    claim: float
    epsilon: float
    low: float
    high: float


@dataclass(frozen=True)
class Release:
    """A release of ``dim`` coordinates: seconds of its reading and of numpy's sum of it, its scores and its audit."""

    dim: int
    reading: float
    summing: float
    scores: tuple[Scores, ...]
    audit: WholeAudit


@dataclass(frozen=True)
class Releases:
    """All that one run measured."""

    environment: dict[str, str]
    threads: int
    releases: tuple[Release | Skipped, ...]


def measure(dims: Sequence[int], part: Callable[[str], object]) -> Releases:
    """Measure scores and audits of releases, each in a process of its own, and tell ``part`` what is begun."""
    rows: list[Release | Skipped] = []
    for dim in dims:
        try:
            rows.append(_measured(dim, lambda step, dim=dim: part(f"{dim:,} coordinates, {step}")))  # type: ignore[misc]
        except FailedError as error:
            rows.append(Skipped(f"d = {dim:,}", str(error)))
    return Releases(environment(), numba.get_num_threads(), tuple(rows))


def _measured(dim: int, part: Callable[[str], object]) -> Release:
    if not RESET.exists():
        raise FailedError(f"this platform has no {RESET}")
    audited = min(_AUDITED, dim // 4)
    with tempfile.TemporaryDirectory() as folder:
        part("writing")
        answer("released", folder, dim, audited, environment={})
        part("reading")
        reading = answer("reading", folder, environment={})
        scores = []
        for kind, count in _SCORED:
            # Other directions are left to compare with.
            if 2 * count <= dim:
                part(f"{count:,} {kind} canaries")
                scores.append(Scores(kind, count, **answer("scored", folder, kind, count, environment={})))
        part("whole audit")
        audit = WholeAudit(audited, **answer("audited", folder, audited, environment={}))
        return Release(dim, **reading, scores=tuple(scores), audit=audit)


def render(document: Mapping[str, Any]) -> dict[str, str]:
    """Make the page, as Markdown, by its file name."""
    last = environment_line(document["environment"])
    return {"releases.md": page("Large releases", _finding(document), [about(document)], sections(document), last)}


def about(document: Mapping[str, Any]) -> str:
    """Say how was measured."""
    return (
        f"`python -m tests.benchmarks --page releases`, {document['threads']} threads. Releases of bfloat16 are in "
        "`.safetensors` files, which the system holds in memory, and are read in pieces. Each measurement is made "
        "once, in a process of its own. Its peak of memory is what that process held beyond its beginning."
    )


def sections(document: Mapping[str, Any]) -> list[Section]:
    """Put all that was measured into tables."""
    return [_scores(document), _audits(document)]


def _finding(document: Mapping[str, Any]) -> str:
    rows = _rows(document)
    if not rows:
        return "Nothing could be measured."
    largest = rows[-1]
    audit = largest["audit"]
    aim = ""
    if largest["dim"] >= LARGEST:
        met = audit["seconds"] <= _MOST_SECONDS and audit["peak"] <= _MOST_BYTES
        aim = f" The aim, {_MOST_SECONDS:.0f} s and {_MOST_BYTES / 1e9:.0f} GB, is {'met' if met else 'not met'}."
    return (
        f"An audit of {_power(largest['dim'])} coordinates through {audit['count']:,} orthonormal canaries takes "
        f"{_short(audit['seconds'])} s and {_short(audit['peak'] / 1e9)} GB of memory.{aim}"
    )


def _short(value: float) -> str:
    """Render two digits, as a single measurement earns no more."""
    return digits(value, value)


def _power(dim: int) -> str:
    """Render a power of two."""
    return f"2{str(dim.bit_length() - 1).translate(_SUPERSCRIPTS)}"


def _rows(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [row for row in document["releases"] if "skipped" not in row]


def _scores(document: Mapping[str, Any]) -> Section:
    rows = [
        (
            _power(release["dim"]),
            f"{row['count']:,} {row['canaries']}",
            _short(row["seconds"]),
            _short(1e9 * row["seconds"] / release["dim"]),
            f"{row['peak'] / 1e6:,.0f}",
            *(_short(release[name]) for name in ("reading", "summing")),
        )
        for release in _rows(document)
        for row in release["scores"]
    ]
    rows += [
        (row["label"], f"skipped: {row['skipped']}", *5 * ("",)) for row in document["releases"] if "skipped" in row
    ]
    header = ("d", "canaries", "seconds", "ns/d", "peak, MB", "reading, s", "numpy's sum, s")
    note = (
        "ns/d: nanoseconds a coordinate. With orthonormal canaries 2²⁰ other directions or more are scored, which an "
        f"audit compares with. Reading converts to float32.{_far(document)}"
    )
    return Section("Scores", header, tuple(rows), note)


def _far(document: Mapping[str, Any]) -> str:
    """Calculate what a release of 10¹⁰ coordinates takes on many machines, from the largest that was measured."""
    rows = _rows(document)
    if not rows:
        return ""
    blocks = math.ceil(_FAR // BLOCK / _MACHINES)
    last = rows[-1]
    costs = " and ".join(
        f"{_short(blocks * BLOCK * row['seconds'] / last['dim'])} s with {row['count']:,} {row['canaries']} canaries"
        for row in (last["scores"][0], last["scores"][-1])
    )
    return (
        f" By calculation, a release of 10¹⁰ coordinates takes {costs} on {_MACHINES} such machines: {blocks} blocks "
        f"of 2²⁶ coordinates each, at the rate of the largest release here."
    )


def _audits(document: Mapping[str, Any]) -> Section:
    rows = [
        (
            _power(release["dim"]),
            f"{audit['count']:,}",
            _short(audit["seconds"]),
            f"{audit['peak'] / 1e6:,.0f}",
            f"{audit['claim']:.2f}",
            f"{audit['epsilon']:.2f} ({audit['low']:.2f} to {audit['high']:.2f})",
            audit["decision"],
        )
        for release in _rows(document)
        for audit in [release["audit"]]
    ]
    header = ("d", "k", "seconds", "peak, MB", "ε of the noise", "ε̂", "decision")
    note = (
        "The whole of `canaryproof audit --directions orthonormal` from the open file on, at δ = 10⁻⁶ and a noise "
        "multiplier of 1. The release is noise and the canaries."
    )
    return Section("Whole audits", header, tuple(rows), note)
