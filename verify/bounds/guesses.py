"""Tests of (ε, δ)-privacy from observed and unobserved scores: how many of so many guesses are right.

Of all scores together so many of the highest are guessed to have taken part, so many of the lowest not to: numbers that
are declared for each ε, where a Gaussian mechanism that is just found out shows most. Among equal scores guesses count
as if they went wrong.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import special

from canaryproof.verify.bounds.guess_law import wrong_at_most
from canaryproof.verify.bounds.scores import Scores

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Epsilons = tuple[float, ...]

# Gaussian mechanisms to choose for, by their means, and thresholds, so far above the middle of both means.
_SHIFTS = np.geomspace(5e-3, 60.0, 200)[:, np.newaxis]
_ABOVE = np.linspace(0.0, 4.5, 90)
_LARGEST_EPSILON, _HALVINGS = 40.0, 40
# Rounding may put a probability this far off, relatively and absolutely.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-11


def tests(scores: Scores, delta: float, alpha: float) -> Callable[[Ints, Epsilons], tuple[Bools, Array]]:
    """Prepare the tests; the function returned says of some audits which of some ε are rejected, and at which score."""
    assert scores.unobserved is not None
    count, null_count = scores.count, scores.null_count
    pooled, wrong = pooled_order(scores.observed, scores.unobserved)

    def reject(audits: Ints, epsilons: Epsilons) -> tuple[Bools, Array]:
        top, bottom, most = _critical_values(count, null_count, delta, alpha, epsilons)
        on_top = wrong[audits][:, top]
        # The lowest hold all that took part but those above.
        at_bottom = bottom - (null_count - wrong[audits][:, count + null_count - bottom])
        return on_top + at_bottom <= most, pooled[audits][:, top - 1]

    return reject


@njit(cache=True, nogil=True)
def pooled_order(observed: Array, unobserved: Array) -> tuple[Array, Ints]:
    """Put all scores of each audit into falling order, unobserved ones first among equals.

    Parameters
    ----------
    observed, unobserved
        Scores of each audit, rising.

    Returns
    -------
    The scores, and the number of unobserved ones among the first n, n = 0, …
    """
    audits, count = observed.shape
    null_count = unobserved.shape[1]
    scores = np.empty((audits, count + null_count))
    wrong = np.zeros((audits, count + null_count + 1), dtype=np.int64)
    for a in range(audits):
        i, j = count - 1, null_count - 1
        for place in range(count + null_count):
            take = i < 0 or (j >= 0 and unobserved[a, j] >= observed[a, i])
            wrong[a, place + 1] = wrong[a, place] + take
            if take:
                scores[a, place] = unobserved[a, j]
                j -= 1
            else:
                scores[a, place] = observed[a, i]
                i -= 1
    return scores, wrong


@lru_cache(maxsize=64)
def _design(count: int, null_count: int, delta: float, alpha: float) -> tuple[Array, Array, Array]:
    """Return values of ε, rising, and the numbers of guesses, high and low, that find them out first."""
    z = 0.5 * _SHIFTS + _ABOVE
    # The low guesses are below μ − z, as far from the other mean.
    hit, alarm = special.ndtr(_SHIFTS - z), special.ndtr(-z)
    top = np.maximum(np.rint(count * hit + null_count * alarm), 1.0)
    bottom = np.minimum(np.rint(count * alarm + null_count * hit), count + null_count - top)
    wrong, made = (count + null_count) * alarm, top + bottom
    most = special.betaincinv(wrong + 1.0, np.maximum(made - wrong, 1e-9), 1.0 - alpha) * made
    odds = math.log(count / null_count)
    low, high = np.zeros(made.shape), np.full(made.shape, _LARGEST_EPSILON)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        expected = np.maximum(top - delta * count, 0.0) * special.expit(-middle - odds)
        expected += np.maximum(bottom - delta * null_count, 0.0) * special.expit(odds - middle)
        low, high = np.where(expected > most, middle, low), np.where(expected > most, high, middle)
    best = np.argmax(low, axis=1)
    rows = np.arange(len(low))
    found = low[rows, best]
    rising = found > np.maximum.accumulate(np.concatenate([[1e-9], found[:-1]]))
    if not rising.any():
        rising[-1] = True
    return found[rising], top[rows, best][rising], bottom[rows, best][rising]


@lru_cache(maxsize=2048)
def _critical_values(
    count: int, null_count: int, delta: float, alpha: float, epsilons: Epsilons
) -> tuple[Ints, Ints, Ints]:
    """Return for each ε the numbers of high and low guesses, and the most wrong ones that reject, −1 if none do."""
    found, tops, bottoms = _design(count, null_count, delta, alpha)
    top = np.rint(np.interp(epsilons, found, tops)).astype(np.int64)
    bottom = np.rint(np.interp(epsilons, found, bottoms)).astype(np.int64)
    bottom = np.minimum(bottom, count + null_count - top)
    allowed = alpha * (1.0 - _RELATIVE) - _ABSOLUTE
    most = [
        int(np.sum(wrong_at_most(count, null_count, int(t), int(b), epsilon, delta, alpha) <= allowed)) - 1
        for t, b, epsilon in zip(top, bottom, epsilons, strict=True)
    ]
    return top, bottom, np.array(most, dtype=np.int64)
