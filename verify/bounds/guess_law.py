"""The law of wrong guesses that (ε, δ)-privacy allows at best, of scores that are known by their order only.

Of the pooled scores of k canaries that took part and k₀ that did not, the ``top`` highest are guessed to have taken
part, the ``bottom`` lowest not to. The fewest wrong guesses, in law, are those of a mechanism that shows the truth with
probability δ, and otherwise puts a canary on its right side, high or low, with probability e^ε/(1 + e^ε), in an order
that says nothing more (``proofs_check/lower_bounds.md``).
"""

import math
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import fft, special, stats

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Complexes = NDArray[np.complex128]
# Counts, each one more than the one before, and their probabilities.
Law = tuple[Ints, Array]

# Levels of the numbers of canaries that are shown; beyond the last, which has this share of α, all guesses are right.
_LEVELS, _LAST = (0.16, 0.38, 0.58, 0.76, 0.88, 0.96, 0.995), 1e-4
# Probabilities below are left out, with what is this far below 1 in the modulus of a characteristic function.
_NEGLIGIBLE, _SMALL_MODULUS = 1e-16, -40.0


def wrong_at_most(
    count: int, null_count: int, top: int, bottom: int, epsilon: float, delta: float, alpha: float
) -> Array:
    """Bound the probabilities that so many guesses at most are wrong.

    Parameters
    ----------
    count, null_count
        Canaries that took part and that did not.
    top, bottom
        Guesses, no more than canaries in all.
    epsilon, delta
        ε ≥ 0 and δ.
    alpha
        Probabilities are close where they are about as large.

    Returns
    -------
    P(W ≤ w), w = 0, …, top + bottom, not less than the exact one beyond rounding, relatively below 1e-6 and absolutely
    below 1e-11.
    """
    result = np.zeros(top + bottom + 1)
    for shown, probability in _shown(count, null_count, delta, alpha):
        result += probability * _given_shown(count, null_count, top, bottom, epsilon, shown)
    return result


@lru_cache(maxsize=256)
def _shown(count: int, null_count: int, delta: float, alpha: float) -> list[tuple[tuple[int, ...], float]]:
    """Return numbers of canaries of both kinds that are shown at most, with probabilities.

    The more are shown, the fewer guesses are wrong: numbers up to a pair, but not to the pair before, count as it.
    """
    levels = (*_LEVELS, 1.0 - _LAST * alpha)
    pairs = [tuple(int(stats.binom.ppf(level, n, delta)) for n in (count, null_count)) for level in levels]
    found, before = [], 0.0
    for pair in dict.fromkeys(pairs):
        until = float(stats.binom.cdf(pair[0], count, delta) * stats.binom.cdf(pair[1], null_count, delta))
        found.append((pair, until - before))
        before = until
    return [*found, ((count, null_count), 1.0 - before)]


def _given_shown(count: int, null_count: int, top: int, bottom: int, epsilon: float, shown: tuple[int, ...]) -> Array:
    result = np.ones(top + bottom + 1)
    seen, unseen = count - shown[0], null_count - shown[1]
    if seen > 0 and unseen > 0:
        # Shown ones that end among the guesses of the other kind are wrong ones, and left out.
        high, low = (min(max(n - i, 0), seen + unseen) for n, i in zip((top, bottom), shown, strict=True))
        law = wrong_guesses(seen, unseen, high, low, epsilon)
        result[: len(law)] = np.minimum(np.cumsum(law), 1.0)
    return result


def wrong_guesses(count: int, null_count: int, top: int, bottom: int, epsilon: float) -> Array:
    """Return the law of the number of wrong guesses at δ = 0; arguments as for ``wrong_at_most``.

    Notes
    -----
    As if each of all n canaries took part with probability k/n, on the condition that k do. Then, given the number on
    the high side, labels are independent, the higher guesses are on the high side as far as there are so many, and only
    the number that took part among those not guessed, through the condition, ties the two kinds of wrong guesses.
    """
    total = count + null_count
    right, share = float(special.expit(epsilon)), count / total
    high = share * right + (1.0 - share) * (1.0 - right)
    # A canary took no part, on the high side; took part, on the low side.
    wrong = 1.0 / (1.0 + count / null_count * math.exp(epsilon)), 1.0 / (1.0 + null_count / count * math.exp(epsilon))
    sizes, weights = _binomial(total, high)
    weights = weights / stats.binom.pmf(count, total, share)
    unguessed = total - top - bottom
    result = np.zeros(top + bottom + 1)

    def add(first: Law, second: Law, rest: Law) -> None:
        # That count canaries took part: those right at the top, wrong at the bottom, and the rest.
        needed = count - top + first[0][:, np.newaxis] - second[0] - rest[0][0]
        inside = (needed >= 0) & (needed < len(rest[0]))
        joint = first[1][:, np.newaxis] * second[1] * np.where(inside, rest[1][np.where(inside, needed, 0)], 0.0)
        errors = first[0][:, np.newaxis] + second[0]
        result[:] += np.bincount(errors.ravel(), joint.ravel(), minlength=len(result))

    enough = (sizes >= top) & (sizes <= total - bottom)
    if enough.any():
        rest = _mixture(weights[enough], int(sizes[enough][0]) - top, unguessed, 1.0 - wrong[0], wrong[1])
        add(_binomial(top, wrong[0]), _binomial(bottom, wrong[1]), rest)
    for size, weight in zip(sizes[~enough].tolist(), weights[~enough], strict=True):
        # Guesses beyond the side's size fall on the other side.
        beyond, below = max(top - size, 0), max(bottom - (total - size), 0)
        first = _sum(_binomial(top - beyond, wrong[0]), _binomial(beyond, 1.0 - wrong[1]))
        second = _sum(_binomial(bottom - below, wrong[1]), _binomial(below, 1.0 - wrong[0]))
        on_high = max(size - top - below, 0)
        counts, law = _sum(_binomial(on_high, 1.0 - wrong[0]), _binomial(unguessed - on_high, wrong[1]))
        add(first, second, (counts, weight * law))
    return result


def _mixture(weights: Array, least: int, total: int, one: float, other: float) -> Law:
    """Mix the laws of the sum of ``least`` + i trials of one rate and the rest of ``total`` of the other."""
    length = fft.next_fast_len(total + 1, real=True)
    z = np.exp(-2j * np.pi * np.arange(length // 2 + 1) / length)
    factors = 1.0 - one + one * z, 1.0 - other + other * z
    modulus = np.maximum(np.maximum(*(abs(factor) for factor in factors)), 1e-300)
    kept = total * np.log(modulus) > _SMALL_MODULUS
    spectrum = np.zeros(len(z), dtype=np.complex128)
    spectrum[kept] = _products(factors[0][kept], factors[1][kept], weights, least, total)
    return np.arange(total + 1), np.maximum(fft.irfft(spectrum, length)[: total + 1], 0.0)


@njit(cache=True, nogil=True)
def _products(one: Complexes, other: Complexes, weights: Array, least: int, total: int) -> Complexes:
    """Return Σᵢ wᵢ·one^(least + i)·other^(total − least − i)."""
    result = np.empty_like(one)
    last = len(weights) - 1
    for j in range(len(one)):
        # By powers of a quotient whose modulus is 1 at most.
        rising = abs(one[j]) > abs(other[j])
        large = one[j] if rising else other[j]
        quotient = (other[j] if rising else one[j]) / large
        found = 0.0j
        for i in range(last + 1):
            found = found * quotient + weights[i if rising else last - i]
        result[j] = found * large**last * one[j] ** least * other[j] ** (total - least - last)
    return result


def _binomial(trials: int, rate: float) -> Law:
    """Return the counts that are not negligible, and their probabilities."""
    reach = 8.5 * math.sqrt(trials * rate * (1.0 - rate)) + 30.0
    first, last = max(0, int(trials * rate - reach)), min(trials, int(trials * rate + reach) + 1)
    counts = np.arange(first, last + 1)
    # Many times as fast as scipy's.
    logs = special.gammaln(trials + 1.0) - special.gammaln(counts + 1.0) - special.gammaln(trials - counts + 1.0)
    law = np.exp(logs + special.xlogy(counts, rate) + special.xlog1py(trials - counts, -rate))
    likely = np.flatnonzero(law > _NEGLIGIBLE)
    return counts[likely[0] : likely[-1] + 1], law[likely[0] : likely[-1] + 1]


def _sum(one: Law, other: Law) -> Law:
    return np.arange(one[0][0] + other[0][0], one[0][-1] + other[0][-1] + 1), np.convolve(one[1], other[1])
