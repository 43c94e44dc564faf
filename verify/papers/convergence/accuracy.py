"""How far off ε̂ is in 95 of 100 runs, by the limit law of a run's moments: which k, and which d, an accuracy takes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from scipy import stats

from canaryproof.proofs_check import finite_bounds
from canaryproof.verify.audit.estimators.moments import Moments
from canaryproof.verify.papers.convergence.errors import POINT_ESTIMATES

# Share of runs that an accuracy is of.
SHARE = 0.95
MOST_CANARIES, MOST_DIMENSIONS = 10**9, 10**12
_POINTS = 2048
# Points that fill a square evenly: the golden ratio's multiples are as far from each other as they can be.
_FIRST = (np.arange(_POINTS) + 0.5) / _POINTS
_SECOND = (0.5 + np.arange(_POINTS) * (0.5 * (math.sqrt(5.0) - 1.0))) % 1.0
_NORMAL = stats.norm.ppf(_FIRST)


@dataclass(frozen=True)
class RunModel:
    """A run with a normal mean of its scores and a chi-square variance, both with their exact means and spreads.

    Its moments are B/√A and W/A in the notation of ``release_moments``. A is taken for constant: it varies by 1/√d.
    """

    name: str
    delta: float
    epsilon: float
    noise_multiplier: float

    def relative_error(self, dim: int, count: int) -> float:
        """Return the error, as a share of ε, that ε̂ does not exceed in 95 of 100 runs of k canaries."""
        sigma = Fraction(self.noise_multiplier)
        (length, _), (_, spread), (variance, _) = (
            tuple(map(float, finite_bounds.moments_at(part, dim, count, sigma))) for part in "ABW"
        )
        distance = (1.0 + math.sqrt(spread) * _NORMAL) / math.sqrt(length)
        ratio = np.sqrt(variance / length * stats.chi2.ppf(_SECOND, count - 1) / (count - 1))
        epsilon = POINT_ESTIMATES[self.name](Moments(distance, ratio, count), self.delta)
        return float(np.quantile(np.abs(epsilon / self.epsilon - 1.0), SHARE))

    def cached_error(self) -> Callable[[int, int], float]:
        """Return ``relative_error`` as a function that computes each value once."""
        return cache(self.relative_error)


def fewest_canaries(accuracy: float, error: Callable[[int], float]) -> int | None:
    """Return the least k, to a fiftieth, at which the error is as small as asked; None if no k up to 1e9 does."""
    low = high = best = 2
    while error(high) > accuracy:
        if high >= MOST_CANARIES:
            # The error falls, and then grows as canaries crowd: it is least between the neighbours of the best power.
            low, high = max(2, best // 2), _optimum(error, max(2, best // 2), min(2 * best, MOST_CANARIES))
            return _between(accuracy, error, low, high) if error(high) <= accuracy else None
        low, high = high, min(2 * high, MOST_CANARIES)
        best = min(best, high, key=error)
    return _between(accuracy, error, low, high)


def _optimum(error: Callable[[int], float], low: int, high: int) -> int:
    """Return the whole number at which an error that falls and then grows is least, by thirds."""
    while high - low > 2:
        third = (high - low) // 3
        low, high = (low, high - third) if error(low + third) <= error(high - third) else (low + third, high)
    return min(range(low, high + 1), key=error)


def least_dimension(accuracy: float, error: Callable[[int], float]) -> int | None:
    """Return the d, to a fiftieth, from which on the error is as small as asked; None if no d up to 1e12 does."""
    if error(MOST_DIMENSIONS) > accuracy:
        return None
    high = MOST_DIMENSIONS
    while high > 2 and error(low := max(2, high // 4)) <= accuracy:
        high = low
    return _between(accuracy, error, max(2, high // 4), high)


def _between(accuracy: float, error: Callable[[int], float], low: int, high: int) -> int:
    """Return a whole number near the first at which the error is small enough, between one where it is not and one."""
    while high - low > max(1, low // 50):
        middle = round(math.sqrt(low * high))
        low, high = (low, middle) if error(middle) <= accuracy else (middle, high)
    return high
