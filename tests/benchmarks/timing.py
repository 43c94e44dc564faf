"""Times of several pieces of work that take turns, so that whatever else the machine does hits all alike."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numba
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Contestant:
    """A piece of work to be timed.

    Attributes
    ----------
    label
        What it is.
    work
        Does it, or a share of it.
    coordinates
        How many coordinates of canaries the whole work makes or reads.
    threads
        How many threads numba and the BLAS may use.
    share
        The share of the whole that is done; the time of the whole is taken to be proportional.
    """

    label: str
    work: Callable[[], object]
    coordinates: int
    threads: int
    share: float = 1.0


@dataclass(frozen=True)
class Timing:
    """Time of a piece of work: the best of some repetitions, and by how much the second best missed it.

    Attributes
    ----------
    label, coordinates, threads, share
        Of the contestant.
    seconds
        Best time of the whole work.
    error
        Second best time less the best; the best itself if there was one repetition.
    repetitions
        How often the work was timed.
    """

    label: str
    coordinates: int
    threads: int
    share: float
    seconds: float
    error: float
    repetitions: int


@dataclass(frozen=True)
class Skipped:
    """What could not be measured, and why."""

    label: str
    skipped: str


@contextlib.contextmanager
def limited(threads: int) -> Iterator[None]:
    """Let numba and the BLAS use so many threads."""
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        with threadpool_limits(threads, user_api="blas"):
            yield
    finally:
        numba.set_num_threads(before)


def race(contestants: Sequence[Contestant], repetitions: int) -> tuple[Timing, ...]:
    """Time contestants in turns: each once, then each again.

    Parameters
    ----------
    contestants
        Pieces of work. Each is done once more before any is timed, which compiles it and fills caches.
    repetitions
        How often each is timed.

    Returns
    -------
    Times in the order of the contestants.
    """
    times: list[list[float]] = [[] for _ in contestants]
    for turn in range(repetitions + 1):
        for contestant, taken in zip(contestants, times, strict=True):
            with limited(contestant.threads):
                begun = time.perf_counter()
                contestant.work()
                elapsed = time.perf_counter() - begun
            if turn:
                taken.append(elapsed)
    return tuple(_timing(contestant, sorted(taken)) for contestant, taken in zip(contestants, times, strict=True))


def _timing(contestant: Contestant, taken: Sequence[float]) -> Timing:
    best, share = taken[0], contestant.share
    error = taken[1] - best if len(taken) > 1 else best
    return Timing(
        contestant.label, contestant.coordinates, contestant.threads, share, best / share, error / share, len(taken)
    )
