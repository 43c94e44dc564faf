"""A valid bound at the best of all thresholds: confidence bands that hold for all of them at once.

The bands have equal local levels. For U₍₁₎ < … < U₍ₖ₎ of k independent uniform variables and levels L₁ ≤ … ≤ Lₖ,
P(U₍ⱼ₎ ≥ Lⱼ for all j) is the probability that no more than j − 1 points lie below Lⱼ, for all j. The number of points
below t is that of a Poisson process of rate k, given that it has k points in all (Noé 1972; Moscovich and Nadler 2017):
one step from each level to the next, and the sums have positive terms only.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, signal, special

from canaryproof.kernels import binomial
from canaryproof.verify.bounds.lower_bound import Method, Scores, if_independent
from canaryproof.verify.bounds.sweep import Rates, rates, shared, sweep

Array = NDArray[np.float64]

# Of states and of steps, what is less likely than this is left out; the probability found is then too small.
_NEGLIGIBLE = 1e-25
# Beyond as many ranks a boundary is checked at some of them only, ever farther apart toward the middle.
_ALL_RANKS, _RATIO = 64, 1.02
# Beyond as many variables the exact probability takes minutes, and Bonferroni's level has to do.
_MOST_VARIABLES = 100_000
# How close the logarithm of the local level is found.
_CLOSE = 1e-4
# What rounding may do to a probability near 1, with much to spare.
_ROUNDING = 1e-9


def staying_above(levels: Array, ranks: NDArray[np.int64], count: int) -> float:
    """Return P(U₍ⱼ₎ ≥ Lⱼ for all ranks j) of k uniform variables; its rounding error is below 1e-9 for k up to 1e5.

    Levels in [0, 1) do not fall, ranks from 1 to ``count`` rise.
    """
    states, lowest, place = np.ones(1), 0, 0.0
    for level, rank in zip(levels, ranks, strict=True):
        states, lowest = _moved(states, lowest, count * (level - place))
        place = level
        # No more than rank − 1 points may lie below.
        states = states[: max(rank - lowest, 0)]
        if not len(states):
            return 0.0
    missing = count - lowest - np.arange(len(states))
    ends = _poisson(missing, count * (1.0 - place))
    return float(states @ ends / _poisson(np.array([count]), count)[0])


def _moved(states: Array, lowest: int, mean: float) -> tuple[Array, int]:
    """Add a Poisson variable to the number of points; return the likely states and the lowest of them."""
    if mean > 0.0:
        # By Chernoff's bounds, what lies beyond is negligible.
        first, last = max(0, int(mean - 11.0 * math.sqrt(mean))), int(mean + 11.0 * math.sqrt(mean) + 60.0)
        steps = _poisson(np.arange(first, last + 1), mean)
        states, lowest = np.maximum(signal.convolve(states, steps), 0.0), lowest + first
    likely = np.flatnonzero(states > _NEGLIGIBLE)
    if not len(likely):
        return states[:0], lowest
    return states[likely[0] : likely[-1] + 1], lowest + int(likely[0])


def _poisson(counts: NDArray[np.int64], mean: float) -> Array:
    """Probabilities of counts, 0 for negative ones."""
    return np.asarray(np.exp(special.xlogy(counts, mean) - mean - special.gammaln(counts + 1.0)) * (counts >= 0))


def chosen_ranks(count: int) -> NDArray[np.int64]:
    """Choose the ranks at which a boundary is checked: all near both ends, fewer between."""
    steps = np.arange(1.0, math.log(max(count, 2)) / math.log(_RATIO) + 2.0)
    low = np.unique(np.concatenate([np.arange(1, _ALL_RANKS + 1), np.floor(_RATIO**steps)]))
    both = np.concatenate([low, count + 1 - low])
    return np.unique(both[(both >= 1) & (both <= count)]).astype(np.int64)


def _levels(local: float, ranks: NDArray[np.int64], count: int) -> Array:
    # The quantile of the Beta distribution of U₍ⱼ₎, which is Clopper and Pearson's limit for j successes.
    return np.maximum.accumulate(binomial.lower(ranks, count, 1.0 - local))


@lru_cache(maxsize=256)
def local_level(count: int, alpha: float) -> float:
    """Find the level, rounded down, at which each rank may fail so that any fails with probability α at most."""
    ranks = chosen_ranks(count)
    # Bonferroni's holds without any computation.
    low, high = math.log(alpha / len(ranks)), math.log(alpha)
    if count > _MOST_VARIABLES or len(ranks) == 1:
        return math.exp(low)

    def excess(local: float) -> float:
        return 1.0 - staying_above(_levels(math.exp(local), ranks, count), ranks, count) + _ROUNDING - alpha

    if excess(low) >= 0.0:
        return math.exp(low)
    found = optimize.brentq(excess, low, high, xtol=_CLOSE)
    while excess(found) > 0.0:
        found -= _CLOSE
    return math.exp(max(found, low))


@lru_cache(maxsize=64)
def band(count: int, alpha: float) -> Array:
    """Return levels Lⱼ, j = 0, …, k, that all U₍ⱼ₎ are above with probability at least 1 − α.

    Between the ranks that are checked, a level is that of the rank before.
    """
    ranks = chosen_ranks(count)
    levels = _levels(local_level(count, alpha), ranks, count)
    places = np.searchsorted(ranks, np.arange(count + 1), side="right")
    return np.concatenate([[0.0], levels])[places]


# The bound.


def _upper(count: int, delta: float, alpha: float) -> Rates:
    """Upper limits of the rate of scores on the wrong side, by number of scores on the right side."""
    hits = band(count, alpha)
    return rates(1.0 - hits, hits, delta)


def simultaneous(scores: Scores, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the largest value of Equation (1) on bands of equal local levels (Berk and Jones 1979).

    With an exact null only FNR is estimated, and its band has all of α.
    """
    each = shared(alpha, scores.null is not None)
    alarm = None
    if scores.unobserved is not None:
        # By number of false alarms: the others are on the right side.
        quiet = _upper(scores.null_count, delta, each)
        alarm = Rates(quiet.log_rate[::-1].copy(), quiet.log_rest[::-1].copy())
    return sweep(scores, _upper(scores.count, delta, each), alarm, delta)


METHODS = (
    Method(
        "band",
        "simultaneous bands of equal local levels, exact at all thresholds at once",
        simultaneous,
        ("independent scores",),
        if_independent,
    ),
)
