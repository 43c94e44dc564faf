"""What was aimed at, beside what was measured: facts of one run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.benchmarks.processes import Memory
from tests.benchmarks.timing import Skipped, Timing


@dataclass(frozen=True)
class Target:
    """A bound that was aimed at, and what was measured.

    Attributes
    ----------
    statement
        What is measured, in words.
    sense
        ``≥`` or ``≤``.
    bound
        What was aimed at.
    measured, error
        What was found, and how far the second best repetitions were from it; None if it could not be measured.
    met
        Whether the bound holds of what was found.
    """

    statement: str
    sense: str
    bound: float
    measured: float | None
    error: float | None
    met: bool | None


def targets(
    algorithm_1: Sequence[Timing | Skipped],
    rounds: Mapping[int, Sequence[Timing]],
    memory: Sequence[object],
    orthonormal: Sequence[Timing],
    threads: int,
) -> tuple[Target, ...]:
    """Compare one run with what was aimed at, on two threads or one if there is no more.

    Parameters
    ----------
    algorithm_1
        Times of Algorithm 1.
    rounds
        Times of Algorithm 3 by the number of rounds in a block.
    memory
        Peak memory.
    orthonormal
        Times of Algorithm 1 with orthonormal canaries, with independent ones and of the transforms alone, in threes by
        number of canaries.
    threads
        Threads of this run.
    """
    times = [row for row in algorithm_1 if isinstance(row, Timing)]
    ours = {row.threads: row for row in times if row.label == "canaryproof"}
    pair = ours[min(2, threads)]
    blocks = {number: next(row for row in rows if row.label == "block_cosines") for number, rows in rounds.items()}
    stored = {number: _fastest(rows, "stored") for number, rows in rounds.items()}
    extra = [row.extra for row in memory if isinstance(row, Memory)]
    found = [
        ("Algorithm 1: times faster than streaming numpy", "≥", 12.0, _ratio(_fastest(times, "numpy"), pair)),
        (
            "Algorithm 3, 32 rounds: times faster than numpy that makes canaries in each round",
            "≥",
            100.0,
            _ratio(_fastest(rounds[32], "numpy"), blocks[32]),
        ),
        ("Algorithm 3, 32 rounds: times a BLAS with stored canaries takes", "≤", 1.9, _ratio(blocks[32], stored[32])),
        ("Algorithm 3, 64 rounds: times a BLAS with stored canaries takes", "≤", 1.5, _ratio(blocks[64], stored[64])),
        ("peak memory beside the vectors, MB", "≤", 64.0, (max(extra) / 1e6, 0.0) if extra else None),
        (
            "Algorithm 1: times faster on two threads than on one",
            "≥",
            1.8,
            _ratio(ours[1], ours[2]) if 2 in ours else None,
        ),
        *(
            (f"Algorithm 1, {few.label}: times faster than independent ones", "≥", bound, _ratio(independent, few))
            for bound, (few, independent) in ((80.0, orthonormal[:2]), (5000.0, orthonormal[-3:-1]))
        ),
        (
            "Algorithm 1, orthonormal: times the transforms alone",
            "≤",
            2.0,
            max(map(_ratio, orthonormal[::3], orthonormal[2::3])),
        ),
    ]
    return tuple(_target(*row) for row in found)


def _target(statement: str, sense: str, bound: float, found: tuple[float, float] | None) -> Target:
    if found is None:
        return Target(statement, sense, bound, None, None, None)
    measured, error = found
    return Target(statement, sense, bound, measured, error, measured >= bound if sense == "≥" else measured <= bound)


def _fastest(rows: Iterable[Timing], beginning: str) -> Timing:
    """Return the fastest of several kinds whose labels begin alike."""
    return min((row for row in rows if row.label.startswith(beginning)), key=lambda row: row.seconds)


def _ratio(above: Timing, below: Timing) -> tuple[float, float]:
    """Ratio of two times, and its error if both repeat no better than they did."""
    ratio = above.seconds / below.seconds
    return ratio, ratio * (above.error / above.seconds + below.error / below.seconds)
