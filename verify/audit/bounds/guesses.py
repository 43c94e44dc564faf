"""Tests of (ε, δ)-privacy by the number of wrong guesses, from observed and unobserved scores.

Among all scores together, some of the highest are guessed to have taken part, some of the lowest not to. One mechanism
has stochastically the fewest wrong guesses that privacy allows (``proofs_check/lower_bounds.md``).
"""

import math
from functools import lru_cache

import numpy as np
from scipy import fft, special

from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Array, Bools, Complexes, Ints
from canaryproof.verify.audit.bounds.block_tests import DESIGN_ALPHA, BlockTest
from canaryproof.verify.audit.bounds.lower_bound import ScoreSample, cached_table

# The least count, and the probabilities of it and of those that follow.
Law = tuple[int, Array]

# The law of the fewest wrong guesses that (ε, δ)-privacy allows, from scores of which only the order is known.
#
# The scores of k canaries that took part are pooled with those of k₀ that did not. The ``top`` highest are guessed to
# have taken part, the ``bottom`` lowest not to. One mechanism has stochastically the fewest wrong guesses. It shows the
# truth with probability δ. Otherwise it puts a canary on its right side, high or low, with probability e^ε/(1 + e^ε).
# The order within a side says nothing (``proofs_check/lower_bounds.md``).


# Step between the numbers of shown canaries that are computed, in square roots of the number.
_SHOWN_STEP = 1.0
# Numbers of shown canaries that are less likely than this count as if all were shown.
_UNLIKELY = 1e-14
# Counts that are less likely than the likeliest by the first factor are left out. So are frequencies at which the
# logarithm of a characteristic function's modulus is below the second number.
_NEGLIGIBLE, _SMALL_MODULUS = 1e-17, -40.0


def wrong_at_most(count: int, null_count: int, top: int, bottom: int, epsilon: float, delta: float) -> Array:
    """Bound P(W ≤ w), w = 0, …, top + bottom, of the number W of wrong guesses.

    The bounds are at least the exact values but for rounding, which is below 1e-6 relatively and 1e-11 absolutely. They
    are close to the exact values where δ shows few canaries, and rise with δ.
    """
    result = np.zeros(top + bottom + 1)
    for shown, probability in shown_numbers(count, null_count, delta):
        result += probability * _conditional_law(count, null_count, top, bottom, epsilon, shown)
    return result


@cached_table
def shown_numbers(count: int, null_count: int, delta: float) -> list[tuple[tuple[int, ...], float]]:
    """Return pairs of the largest numbers of shown canaries of both kinds, with their probabilities.

    More shown canaries mean fewer wrong guesses, so that numbers between two pairs count as the larger pair. The pairs
    do not depend on δ, so that the bounds rise with δ.
    """
    # It loads for long, and few audits need it.
    from scipy import stats

    most = max(count, null_count)
    pairs, before, number = [], 0.0, 0
    while number < most and before < 1.0 - _UNLIKELY:
        pair = math.ceil(number * count / most), math.ceil(number * null_count / most)
        until = float(stats.binom.cdf(pair[0], count, delta) * stats.binom.cdf(pair[1], null_count, delta))
        if until - before > _UNLIKELY:
            pairs.append((pair, until - before))
            before = until
        number += max(1, int(_SHOWN_STEP * math.sqrt(number)))
    return [*pairs, ((count, null_count), 1.0 - before)]


def _conditional_law(
    count: int, null_count: int, top: int, bottom: int, epsilon: float, shown: tuple[int, ...]
) -> Array:
    result = np.ones(top + bottom + 1)
    seen, unseen = count - shown[0], null_count - shown[1]
    if seen > 0 and unseen > 0:
        # Shown canaries among the guesses of the other kind would be wrong guesses; leaving them out is conservative.
        high, low = (min(max(n - i, 0), seen + unseen) for n, i in zip((top, bottom), shown, strict=True))
        law = wrong_guesses(seen, unseen, high, low, epsilon)
        result[: len(law)] = np.minimum(np.cumsum(law), 1.0)
    return result


def wrong_guesses(count: int, null_count: int, top: int, bottom: int, epsilon: float) -> Array:
    """Return the law of the number of wrong guesses at δ = 0.

    Each of all n canaries takes part with probability k/n, on the condition that k do. Given the number on the high
    side, labels are then independent, and the high guesses are on the high side as far as it reaches. The condition
    ties both kinds of wrong guesses by one number alone: how many canaries took part among those not guessed.
    """
    total = count + null_count
    high, wrong = rates_of_labels(count, null_count, epsilon)
    least, weights = binomial_law(total, high)
    condition = binomial_law(total, count / total)
    weights /= condition[1][count - condition[0]]
    result = np.zeros(top + bottom + 1)
    # From start to stop, the side's size has room for both kinds of guesses on their sides.
    start, stop = (min(max(size - least, 0), len(weights)) for size in (top, total - bottom + 1))
    if start < stop:
        rest = _mixture(weights[start:stop], least + start - top, total - top - bottom, 1.0 - wrong[0], wrong[1])
        _add(count - top, binomial_law(top, wrong[0]), binomial_law(bottom, wrong[1]), rest, result)
    _add_others(count, total, top, bottom, wrong, (least, weights[:start]), result)
    _add_others(count, total, top, bottom, wrong, (least + stop, weights[stop:]), result)
    return result


def rates_of_labels(count: int, null_count: int, epsilon: float) -> tuple[float, tuple[float, float]]:
    """Return the probability of the high side, and those of wrong labels on the high and on the low side.

    A wrong label is an unobserved canary on the high side, or an observed one on the low side.
    """
    share, odds, factor = count / (count + null_count), count / null_count, math.exp(epsilon)
    high = (share * factor + 1.0 - share) / (1.0 + factor)
    return high, (1.0 / (1.0 + odds * factor), 1.0 / (1.0 + factor / odds))


@njit(cache=True, nogil=True, error_model="numpy")
def _add(more: int, first: Law, second: Law, rest: Law, result: Array) -> None:
    """Add P(F = f) P(S = s) P(R = ``more`` + f − s) to the result at f + s, for all f and s."""
    for i in range(len(first[1])):
        f = first[0] + i
        # R falls by as much as S is above its least value.
        index = more + f - second[0] - rest[0]
        for j in range(max(index + 1 - len(rest[1]), 0), min(index + 1, len(second[1]))):
            result[f + second[0] + j] += first[1][i] * second[1][j] * rest[1][index - j]


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
    """Add the contribution of these sizes of the high side."""
    for i in range(len(sizes[1])):
        size = sizes[0] + i
        # Guesses beyond the side's size fall on the other side.
        beyond, below = max(top - size, 0), max(bottom - (total - size), 0)
        on_high = max(size - top - below, 0)
        first = convolve(binomial_law(top - beyond, wrong[0]), binomial_law(beyond, 1.0 - wrong[1]))
        second = convolve(binomial_law(bottom - below, wrong[1]), binomial_law(below, 1.0 - wrong[0]))
        rest = convolve(binomial_law(on_high, 1.0 - wrong[0]), binomial_law(total - top - bottom - on_high, wrong[1]))
        _add(count - top, first, second, (rest[0], sizes[1][i] * rest[1]), result)


def _mixture(weights: Array, least: int, total: int, rate: float, other_rate: float) -> Law:
    """Mix the laws of sums of ``total`` trials, ``least`` + i of them with one rate and the rest with the other."""
    last = len(weights) - 1
    # The rate with the smaller variance comes first. Its characteristic function has the larger modulus everywhere, so
    # that the quotient below has a modulus of at most 1, and its powers do not grow.
    if rate * (1.0 - rate) > other_rate * (1.0 - other_rate):
        weights, least, rate, other_rate = weights[::-1].copy(), total - least - last, other_rate, rate
    numbers = np.array([least, least + last])
    means = numbers * rate + (total - numbers) * other_rate
    variances = numbers * rate * (1.0 - rate) + (total - numbers) * other_rate * (1.0 - other_rate)
    # By Bernstein's inequality, less than 1e-15 lies beyond; so the transform is short.
    reach = 8.5 * math.sqrt(variances.max()) + 30.0
    first = max(int(means.min() - reach), 0)
    length = fft.next_fast_len(min(int(means.max() + reach) + 1, total) + 1 - first, real=True)
    z = np.exp(-2j * np.pi * np.arange(length // 2 + 1) / length)
    large, small = 1.0 - rate + rate * z, 1.0 - other_rate + other_rate * z
    # The modulus falls with the frequency.
    frequencies = int(np.sum(total * np.log(np.maximum(abs(large), 1e-300)) > _SMALL_MODULUS))
    z, large, small = z[:frequencies], large[:frequencies], small[:frequencies]
    spectrum = large ** (least + last) * small ** (total - least - last) * z.conj() ** first
    spectrum *= _polynomial(weights, small / large)
    return first, np.maximum(fft.irfft(spectrum, length), 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _polynomial(coefficients: Array, points: Complexes) -> Complexes:
    """Evaluate a polynomial; coefficients begin with the highest power."""
    result = np.zeros_like(points)
    for coefficient in coefficients:
        for j in range(len(points)):
            result[j] = result[j] * points[j] + coefficient
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def binomial_law(trials: int, rate: float) -> Law:
    """Return the counts that are not negligible, and their probabilities."""
    # Ratios from the likeliest count on, divided by their sum, keep the digits that logarithms of factorials lose.
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
def convolve(first: Law, second: Law) -> Law:
    """Return the law of the sum of two independent counts; it is empty if one of theirs is."""
    # np.convolve takes two seconds longer to compile, and is slower.
    if len(first[1]) == 0 or len(second[1]) == 0:
        return 0, first[1][:0]
    law = np.zeros(len(first[1]) + len(second[1]) - 1)
    for i in range(len(first[1])):
        for j in range(len(second[1])):
            law[i + j] += first[1][i] * second[1][j]
    return first[0] + second[0], law


# Tests of (ε, δ)-privacy from observed and unobserved scores, by the number of wrong guesses.
#
# The numbers of guesses are declared for each block of ε: they are best for a Gaussian mechanism that is barely
# detected. Among equal scores, guesses count as wrong.


# Means of the candidate Gaussian mechanisms, and distances of thresholds from the middle of both means.
_GUESS_SHIFTS = np.geomspace(5e-3, 60.0, 200)[:, np.newaxis]
_ABOVE = np.linspace(0.0, 4.5, 90)
_LARGEST_GUESSED_EPSILON, _GUESS_HALVINGS = 40.0, 40
# Relative and absolute rounding error of a probability.
RELATIVE, ABSOLUTE = 1e-6, 1e-11


@njit(cache=True, nogil=True, loop=True)
def pooled_order(observed: Array, unobserved: Array) -> tuple[Array, Ints]:
    """Merge the rising scores of each audit into falling order, unobserved ones first among equals.

    Return the scores, and the number of unobserved ones among the first n, n = 0, …
    """
    audits, count = observed.shape
    null_count = unobserved.shape[1]
    scores = np.empty((audits, count + null_count))
    wrong = np.zeros((audits, count + null_count + 1), dtype=np.int64)
    for a in range(audits):
        i, j = count - 1, null_count - 1
        for position in range(count + null_count):
            take = i < 0 or (j >= 0 and unobserved[a, j] >= observed[a, i])
            wrong[a, position + 1] = wrong[a, position] + take
            if take:
                scores[a, position] = unobserved[a, j]
                j -= 1
            else:
                scores[a, position] = observed[a, i]
                i -= 1
    return scores, wrong


@cached_table
def _guess_design(count: int, null_count: int, delta: float) -> tuple[Array, Array, Array]:
    """Return rising values of ε, and for each the numbers of high and low guesses that detect it best."""
    z = 0.5 * _GUESS_SHIFTS + _ABOVE
    # Low guesses are below μ − z, at the same distance from the other mean.
    hit, alarm = special.ndtr(_GUESS_SHIFTS - z), special.ndtr(-z)
    top = np.maximum(np.rint(count * hit + null_count * alarm), 1.0)
    bottom = np.minimum(np.rint(count * alarm + null_count * hit), count + null_count - top)
    wrong, made = (count + null_count) * alarm, top + bottom
    most = special.betaincinv(wrong + 1.0, np.maximum(made - wrong, 1e-9), 1.0 - DESIGN_ALPHA) * made
    odds = math.log(count / null_count)
    low, high = np.zeros(made.shape), np.full(made.shape, _LARGEST_GUESSED_EPSILON)
    for _ in range(_GUESS_HALVINGS):
        middle = 0.5 * (low + high)
        expected = np.maximum(top - delta * count, 0.0) * special.expit(-middle - odds)
        expected += np.maximum(bottom - delta * null_count, 0.0) * special.expit(odds - middle)
        low, high = np.where(expected > most, middle, low), np.where(expected > most, high, middle)
    best = np.argmax(low, axis=1)
    rows = np.arange(len(low))
    epsilons = low[rows, best]
    rising = epsilons > np.maximum.accumulate(np.concatenate([[1e-9], epsilons[:-1]]))
    if not rising.any():
        rising[-1] = True
    return epsilons[rising], top[rows, best][rising], bottom[rows, best][rising]


def declared_guesses(count: int, null_count: int, delta: float, epsilon: float) -> tuple[int, int]:
    """Return the numbers of high and low guesses at ε."""
    epsilons, tops, bottoms = _guess_design(count, null_count, delta)
    top, bottom = (round(float(np.interp(epsilon, epsilons, numbers))) for numbers in (tops, bottoms))
    return top, min(bottom, count + null_count - top)


# Audits of equal size share critical numbers, which saves a quick run 20 seconds.
@lru_cache(maxsize=8192)
def most_wrong(
    count: int, null_count: int, guesses: tuple[int, int], epsilon: float, delta: float, alpha: float
) -> int:
    """Return the most wrong guesses that reject ε, −1 if none do."""
    least, probabilities = few_wrong(count, null_count, guesses, epsilon, delta)
    allowed = alpha * (1.0 - RELATIVE) - ABSOLUTE
    return least + int(np.searchsorted(probabilities, allowed, side="right")) - 1 if allowed > 0.0 else -1


def few_wrong(count: int, null_count: int, guesses: tuple[int, int], epsilon: float, delta: float) -> Law:
    """Return the bounds of P(W ≤ w) that serve every level, and the least w of them."""
    bounds = wrong_at_most(count, null_count, *guesses, epsilon, delta)
    # Smaller bounds are rounding errors, and count as 0.
    first, last = np.searchsorted(bounds, [_UNLIKELY, 1.0 - RELATIVE])
    return int(first), bounds[first:last].copy()


def count_wrong(before: Ints, null_count: int, guesses: tuple[int, int], rounded: Ints | None = None) -> Ints:
    """Count the wrong high and low guesses, from the numbers of unobserved scores among the first n.

    The number of wrong high guesses may be rounded up to given numbers.
    """
    top, bottom = guesses
    high = before[:, top] if rounded is None else rounded[np.searchsorted(rounded, before[:, top])]
    # All observed scores that are not above are among the lowest.
    return np.asarray(high + bottom - (null_count - before[:, before.shape[1] - 1 - bottom]))


def guess_test(scores: ScoreSample, design_delta: float, delta: float, alpha: float) -> BlockTest:
    """Prepare the test of wrong guesses, with the numbers of guesses that are best at ``design_delta``."""
    assert scores.unobserved is not None
    count, null_count = scores.count, scores.null_count
    before = pooled_order(scores.observed, scores.unobserved)[1]

    def evidence(audits: Ints, epsilon: float) -> Ints:
        return -count_wrong(before[audits], null_count, declared_guesses(count, null_count, design_delta, epsilon))

    def are_rejected(epsilon: float, tested: float, values: Ints) -> Bools:
        guesses = declared_guesses(count, null_count, design_delta, epsilon)
        return -values <= most_wrong(count, null_count, guesses, tested, delta, alpha)

    return BlockTest(evidence, are_rejected)
