"""Tests of (ε, δ)-privacy beside an exact null.

If the mechanism is (ε, δ)-private, the observed scores' tail is nowhere above that of the law P*, the smaller of
e^ε·u + δ and 1 − e^−ε·(1 − u − δ) where the null's tail is u. A statistic that rises with every score is then at most
what it is for independent draws from P*, in law: its test is exact whatever the mechanism.

The statistic is a sum over scores of whole weights, each the number of thresholds that a score reaches. The thresholds
are declared for each ε: the weights are the log likelihood ratio of a Gaussian mechanism, just found out from as many
scores, and the private law that is hardest to tell from it (Huber and Strassen 1973), in equal steps.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import fft, special, stats

from canaryproof.verify.bounds.scores import ExactNull, Scores

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Epsilons = tuple[float, ...]

# Steps of the weights: fewer where the sums, whose law takes a Fourier transform, would have more values than these,
# and a single one beyond so many scores.
_STEPS, _MOST_SUMS, _FEWEST_STEPS = 32, 120_000, 4
_MOST_SCORES = 100_000
# Means of the Gaussian mechanisms to choose from.
_SHIFTS = np.geomspace(5e-3, 150.0, 80)[:, np.newaxis]
# Weights go on to where one of the scores lies with this probability.
_REACH = 0.1
_HALVINGS = 45
# Rounding may put a probability this far off, relatively and absolutely.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-11


def worst_tail(epsilon: Array, log_tail: Array, delta: float) -> Array:
    """Return the largest tail of the observed scores that (ε, δ)-privacy allows, rounded up.

    Parameters
    ----------
    epsilon
        ε ≥ 0.
    log_tail
        Log of the null's tail, of a shape that broadcasts with it.
    delta
        δ in [0, 1).
    """
    high = np.exp(np.minimum(epsilon + log_tail, 0.0)) + delta
    low = 1.0 - np.exp(-epsilon) * np.maximum(-np.expm1(log_tail) - delta, 0.0)
    return np.clip(np.minimum(high, low) * (1.0 + 1e-14), 0.0, 1.0)


def tests(scores: Scores, delta: float, alpha: float) -> Callable[[NDArray[np.int64], Epsilons], tuple[Bools, Array]]:
    """Prepare the tests; the function returned says of some audits which of some ε are rejected, and NaN for places."""
    null, count = scores.null, scores.count
    assert null is not None

    def reject(audits: NDArray[np.int64], epsilons: Epsilons) -> tuple[Bools, Array]:
        places, critical = _critical_values(count, null, delta, alpha, epsilons)
        found = _rejected(scores.observed[audits], places, critical)
        return found, np.full(found.shape, math.nan)

    return reject


def excludes_all(scores: Scores, delta: float, alpha: float) -> Bools:
    """Say of each audit whether every finite ε is rejected, by scores that the null has no probability of reaching.

    If ε is finite, an observed score is one of these with probability δ at most.
    """
    assert scores.null is not None
    impossible = np.isneginf(scores.null.log_tail(scores.observed)).sum(axis=1)
    return np.asarray(impossible > stats.binom.isf(alpha * (1.0 - _RELATIVE), scores.count, delta))


def _root(falling: Callable[[Array], Array], low: Array, high: Array) -> Array:
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        positive = falling(middle) > 0.0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    return 0.5 * (low + high)


def _hardest(mu: Array, epsilon: Array, delta: float) -> tuple[Array, Array, Array, Array]:
    """Return the places between which the log likelihood ratio of N(μ, 1) and the hardest private law rises.

    In falling order: above the first it is flat, as δ hides what is there; it rises down to the second, is flat down to
    the third, rises below and is flat again below the fourth.
    """
    mu, epsilon = np.broadcast_arrays(mu, epsilon)
    half = 0.5 * mu * mu

    def top(x: Array) -> Array:
        # What N(μ, 1) has above x beyond e^ε·N(0, 1), were the likelihood ratio e^ε at x.
        ratio = special.log_ndtr(mu - x) - mu * x + half
        return np.asarray(np.exp(ratio) - special.ndtr(-x) - delta * np.exp(-epsilon))

    def bottom(x: Array) -> Array:
        ratio = np.minimum(special.log_ndtr(x - mu) - mu * x + half, 0.0)
        return np.asarray(delta - special.ndtr(x) + np.exp(ratio))

    def mass(x: Array) -> Array:
        other = x - 2.0 * epsilon / mu
        flat = np.clip(
            epsilon - mu * x + half + np.log(np.maximum(_between(other - mu, x - mu), 1e-300)), -700.0, 700.0
        )
        high = np.exp(np.minimum(epsilon + special.log_ndtr(-x), 700.0)) + delta
        return np.asarray(np.exp(flat) + high + np.exp(-epsilon) * np.maximum(special.ndtr(other) - delta, 0.0) - 1.0)

    low, high = np.full(mu.shape, -40.0), 40.0 + mu
    second = _root(mass, low, high)
    third = second - 2.0 * epsilon / mu
    return np.maximum(_root(top, low, high), second), second, third, np.minimum(_root(bottom, low, high), third)


def _between(low: Array, high: Array) -> Array:
    """Return the probability of N(0, 1) between two places, each from its near tail."""
    upper = low > 0.0
    return np.where(upper, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low))


@lru_cache(maxsize=512)
def _design(count: int, delta: float, alpha: float, epsilons: Epsilons) -> Array:
    """Return thresholds for each ε, falling, where the null is N(0, 1)."""
    mu, epsilon = np.broadcast_arrays(_SHIFTS, np.array(epsilons))
    first, second, third, fourth = _hardest(mu, epsilon, delta)
    reach = -special.ndtri(_REACH / max(count, 1))
    first = np.maximum(np.minimum(first, mu + reach), second)
    fourth = np.minimum(np.maximum(fourth, -reach), third)
    # The ratio's logarithm, but for μ²/2: μx − ε above the flat part, μx + ε below it.
    low, high, middle = mu * fourth + epsilon, mu * first - epsilon, mu * second - epsilon
    several = min(_STEPS, max(_MOST_SUMS // count, _FEWEST_STEPS)) if count <= _MOST_SCORES else 1
    parts = (np.arange(_STEPS if several == 1 else several) + 0.5) / (_STEPS if several == 1 else several)
    levels = high[..., np.newaxis] - (high - low)[..., np.newaxis] * parts
    sign = np.where(levels > middle[..., np.newaxis], 1.0, -1.0)
    cuts = (levels + sign * epsilon[..., np.newaxis]) / mu[..., np.newaxis]
    private = worst_tail(epsilon[..., np.newaxis], special.log_ndtr(-cuts), delta)
    found = special.ndtr(mu[..., np.newaxis] - cuts)
    if several == 1:
        gain = (found - private) / np.sqrt(private * (1.0 - private) + 1e-300)
        best = np.argmax(gain, axis=-1)[..., np.newaxis]
        cuts, private, found = (np.take_along_axis(a, best, axis=-1) for a in (cuts, private, found))
    mean = private.sum(axis=-1)
    # Of two thresholds the higher one says whether both are reached.
    pairs = 2.0 * np.arange(cuts.shape[-1])[::-1] + 1.0
    variance = np.maximum((private * pairs).sum(axis=-1) - mean**2, 0.0)
    # The weakest mechanism whose mean statistic is at the critical value.
    seen = math.sqrt(count) * (found.sum(axis=-1) - mean) > -special.ndtri(alpha) * np.sqrt(variance)
    weakest = np.where(seen.any(axis=0), np.argmax(seen, axis=0), len(_SHIFTS) - 1)
    return np.asarray(cuts[weakest, np.arange(len(epsilons))])


@lru_cache(maxsize=2048)
def _critical_values(
    count: int, null: ExactNull, delta: float, alpha: float, epsilons: Epsilons
) -> tuple[Array, NDArray[np.int64]]:
    """Return thresholds, rising, shape (tests, thresholds), and the least sums of weights that reject."""
    places = np.sort(null.place(special.log_ndtr(-_design(count, delta, alpha, epsilons))), axis=1)
    tails = worst_tail(np.array(epsilons)[:, np.newaxis], null.log_tail(places), delta)
    different, which = np.unique(tails, axis=0, return_inverse=True)
    critical = np.array([least_rejecting(row, count, alpha * (1.0 - _RELATIVE)) for row in different], dtype=np.int64)
    return places, critical[which.reshape(-1)]


def least_rejecting(tails: Array, count: int, alpha: float) -> int:
    """Return the least s with P(Σ ≥ s) ≤ α, Σ being the number of thresholds that independent scores reach in all.

    Parameters
    ----------
    tails
        Probability of reaching each threshold, falling.
    count
        Number of scores.
    alpha
        α.
    """
    if len(tails) == 1:
        return int(stats.binom.isf(alpha, count, tails[0])) + 1
    law = -np.diff(np.concatenate([[1.0], tails, [0.0]]))
    size = count * len(tails) + 1
    length = fft.next_fast_len(size, real=True)
    sums = fft.irfft(_power(fft.rfft(law, length), count), length)[:size]
    rejecting = np.cumsum(sums[::-1])[::-1] <= alpha - _ABSOLUTE
    return int(np.argmax(rejecting)) if rejecting[-1] else size


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Raise to a whole power by squaring, some ten times as fast as numpy's."""
    result = np.ones_like(base)
    while exponent:
        if exponent % 2:
            result *= base
        base, exponent = base * base, exponent // 2
    return result


@njit(cache=True, nogil=True)
def _rejected(observed: Array, places: Array, critical: NDArray[np.int64]) -> Bools:
    """Say which tests reject, up to the first that does not: weights are the thresholds that scores reach."""
    audits, count = observed.shape
    result = np.zeros((audits, len(places)), dtype=np.bool_)
    for a in range(audits):
        for t in range(len(places)):
            total, below = 0, 0
            for x in places[t]:
                # The thresholds rise: what is below one is below the next.
                low, high = below, count
                while low < high:
                    middle = (low + high) // 2
                    if observed[a, middle] < x:
                        low = middle + 1
                    else:
                        high = middle
                below = low
                total += count - below
            if total < critical[t]:
                break
            result[a, t] = True
    return result
