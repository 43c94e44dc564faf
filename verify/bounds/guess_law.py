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
from scipy import fft, stats

Array = NDArray[np.float64]
Complexes = NDArray[np.complex128]
# The least count, and the probabilities of it and of those that follow.
Law = tuple[int, Array]

# Levels of the numbers of canaries that are shown; beyond the last, which has this share of α, all guesses are right.
_LEVELS, _LAST = (0.16, 0.38, 0.58, 0.76, 0.88, 0.96, 0.995), 1e-4
# Counts that are less likely than the likeliest by this factor are left out, and frequencies where the logarithm of a
# characteristic function's modulus is below.
_NEGLIGIBLE, _SMALL_MODULUS = 1e-17, -40.0


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
    share, odds, factor = count / total, count / null_count, math.exp(epsilon)
    high = (share * factor + 1.0 - share) / (1.0 + factor)
    # A canary took no part, on the high side; took part, on the low side.
    wrong = 1.0 / (1.0 + odds * factor), 1.0 / (1.0 + factor / odds)
    least, weights = _binomial(total, high)
    condition = _binomial(total, share)
    weights /= condition[1][count - condition[0]]
    result = np.zeros(top + bottom + 1)
    # From start until stop, the side's size leaves both kinds of guesses room on their sides.
    start, stop = (min(max(size - least, 0), len(weights)) for size in (top, total - bottom + 1))
    if start < stop:
        rest = _mixture(weights[start:stop], least + start - top, total - top - bottom, 1.0 - wrong[0], wrong[1])
        _add(count - top, _binomial(top, wrong[0]), _binomial(bottom, wrong[1]), rest, result)
    _add_others(count, total, top, bottom, wrong, (least, weights[:start]), result)
    _add_others(count, total, top, bottom, wrong, (least + stop, weights[stop:]), result)
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def _add(more: int, first: Law, second: Law, rest: Law, result: Array) -> None:
    """Add P(F = f) P(S = s) P(R = ``more`` + f − s) to the result at f + s, for all f and s."""
    for i in range(len(first[1])):
        f = first[0] + i
        # Where s is j more than its least, R is that much less.
        place = more + f - second[0] - rest[0]
        for j in range(max(place + 1 - len(rest[1]), 0), min(place + 1, len(second[1]))):
            result[f + second[0] + j] += first[1][i] * second[1][j] * rest[1][place - j]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_others(
    count: int,
    total: int,
    top: int,
    bottom: int,
    wrong: tuple[float, float],
    sizes: Law,
    result: Array,
) -> None:
    """Add what these sizes of the high side contribute; arguments as in ``wrong_guesses``."""
    for i in range(len(sizes[1])):
        size = sizes[0] + i
        # Guesses beyond the side's size fall on the other side.
        beyond, below = max(top - size, 0), max(bottom - (total - size), 0)
        on_high = max(size - top - below, 0)
        first = _sum(_binomial(top - beyond, wrong[0]), _binomial(beyond, 1.0 - wrong[1]))
        second = _sum(_binomial(bottom - below, wrong[1]), _binomial(below, 1.0 - wrong[0]))
        rest = _sum(_binomial(on_high, 1.0 - wrong[0]), _binomial(total - top - bottom - on_high, wrong[1]))
        _add(count - top, first, second, (rest[0], sizes[1][i] * rest[1]), result)


def _mixture(weights: Array, least: int, total: int, one: float, other: float) -> Law:
    """Mix the laws of the sum of ``least`` + i trials of one rate and the rest of ``total`` of the other."""
    last = len(weights) - 1
    # From the rate of the smaller variance on, whose characteristic function's modulus is the larger everywhere: the
    # powers below are those of a quotient whose modulus is 1 at most.
    if one * (1.0 - one) > other * (1.0 - other):
        weights, least, one, other = weights[::-1].copy(), total - least - last, other, one
    numbers = np.array([least, least + last])
    means = numbers * one + (total - numbers) * other
    variances = numbers * one * (1.0 - one) + (total - numbers) * other * (1.0 - other)
    # By Bernstein's inequality less than 1e-15 lies beyond, and a transform as long as the rest has few frequencies.
    reach = 8.5 * math.sqrt(variances.max()) + 30.0
    first = max(int(means.min() - reach), 0)
    length = fft.next_fast_len(min(int(means.max() + reach) + 1, total) + 1 - first, real=True)
    z = np.exp(-2j * np.pi * np.arange(length // 2 + 1) / length)
    large, small = 1.0 - one + one * z, 1.0 - other + other * z
    # The modulus falls.
    kept = int(np.sum(total * np.log(np.maximum(abs(large), 1e-300)) > _SMALL_MODULUS))
    z, large, small = z[:kept], large[:kept], small[:kept]
    spectrum = large ** (least + last) * small ** (total - least - last) * z.conj() ** first
    spectrum *= _polynomial(weights, small / large)
    return first, np.maximum(fft.irfft(spectrum, length), 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _polynomial(coefficients: Array, points: Complexes) -> Complexes:
    """Evaluate the polynomial whose coefficients are given, the highest power's first."""
    result = np.zeros_like(points)
    for coefficient in coefficients:
        for j in range(len(points)):
            result[j] = result[j] * points[j] + coefficient
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def _binomial(trials: int, rate: float) -> Law:
    """Return the counts that are not negligible, and their probabilities."""
    # By ratios, from the likeliest on, and divided by the sum: large logarithms of factorials would lose digits.
    likeliest = min(int((trials + 1) * rate), trials)
    law = np.empty(trials + 1)
    law[likeliest] = 1.0
    first = last = likeliest
    while first > 0 and law[first] > _NEGLIGIBLE:
        law[first - 1] = law[first] * (first * (1.0 - rate) / ((trials - first + 1) * rate))
        first -= 1
    while last < trials and law[last] > _NEGLIGIBLE:
        law[last + 1] = law[last] * ((trials - last) * rate / ((last + 1) * (1.0 - rate)))
        last += 1
    return first, law[first : last + 1] / law[first : last + 1].sum()


@njit(cache=True, nogil=True, error_model="numpy")
def _sum(one: Law, other: Law) -> Law:
    # np.convolve would take two seconds more to compile, and longer to run.
    law = np.zeros(len(one[1]) + len(other[1]) - 1)
    for i in range(len(one[1])):
        for j in range(len(other[1])):
            law[i + j] += one[1][i] * other[1][j]
    return one[0] + other[0], law
