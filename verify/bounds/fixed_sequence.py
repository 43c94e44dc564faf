"""The default bound: (ε, δ)-privacy is tested for one ε after another until one passes.

Each ε has two tests, each at its share of α. The first looks at declared ranks (``thresholds.simultaneous``), has some
power against every shape, and rejects with an ε all smaller ones. The second is sharper where scores are Gaussian of
one variance: it counts wrong guesses for unobserved scores, and sums weights of the scores for an exact null. What it
looks at is declared for blocks of ε. As the tests come in a fixed order and the first ε that neither rejects ends them,
each ε may have all of α (Maurer, Hothorn and Lehmacher 1995; proof in ``proofs_check/lower_bounds.md``).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special, stats

from canaryproof.kernels._compiled import njit
from canaryproof.verify.bounds.lower_bound import ExactNull, Method, ScoreSample, if_independent
from canaryproof.verify.bounds.precedence import EPSILONS, worst_tail
from canaryproof.verify.bounds.thresholds import simultaneous

Array = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Ints = NDArray[np.int64]
# The least count, and the probabilities of it and of those that follow.
Law = tuple[int, Array]

# The law of wrong guesses that (ε, δ)-privacy allows at best, of scores that are known by their order only.
#
# Of the pooled scores of k canaries that took part and k₀ that did not, the ``top`` highest are guessed to have taken
# part, the ``bottom`` lowest not to. The fewest wrong guesses, in law, are those of a mechanism that shows the truth
# with probability δ, and otherwise puts a canary on its right side, high or low, with probability e^ε/(1 + e^ε), in an
# order that says nothing more (``proofs_check/lower_bounds.md``).


# From a number of canaries that are shown to the next that is looked at, in its square roots.
_SHOWN_STEP = 1.0
# Numbers shown that are less likely than this count as if all were.
_UNLIKELY = 1e-14
# Counts that are less likely than the likeliest by this factor are left out, and frequencies where the logarithm of a
# characteristic function's modulus is below.
_NEGLIGIBLE, _SMALL_MODULUS = 1e-17, -40.0


def wrong_at_most(count: int, null_count: int, top: int, bottom: int, epsilon: float, delta: float) -> Array:
    """Bound P(W ≤ w), w = 0, …, top + bottom, of the number W of wrong guesses.

    The bounds are not less than the exact values beyond rounding, relatively below 1e-6 and absolutely below 1e-11, and
    close to them where δ shows few canaries. They rise with δ.
    """
    result = np.zeros(top + bottom + 1)
    for shown, probability in _shown(count, null_count, delta):
        result += probability * _given_shown(count, null_count, top, bottom, epsilon, shown)
    return result


@lru_cache(maxsize=256)
def _shown(count: int, null_count: int, delta: float) -> list[tuple[tuple[int, ...], float]]:
    """Return numbers of canaries of both kinds that are shown at most, with probabilities.

    The more are shown, the fewer guesses are wrong: numbers up to a pair, but not to the pair before, count as it. The
    pairs do not depend on δ, so that a larger one never makes fewer guesses wrong.
    """
    most = max(count, null_count)
    found, before, number = [], 0.0, 0
    while number < most and before < 1.0 - _UNLIKELY:
        pair = math.ceil(number * count / most), math.ceil(number * null_count / most)
        until = float(stats.binom.cdf(pair[0], count, delta) * stats.binom.cdf(pair[1], null_count, delta))
        if until - before > _UNLIKELY:
            found.append((pair, until - before))
            before = until
        number += max(1, int(_SHOWN_STEP * math.sqrt(number)))
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
    """Return the law of the number of wrong guesses at δ = 0.

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
    """Add what these sizes of the high side contribute."""
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


# Tests of (ε, δ)-privacy from observed and unobserved scores: how many of so many guesses are right.
#
# Of all scores together so many of the highest are guessed to have taken part, so many of the lowest not to: numbers
# that are declared for each block of ε, where a Gaussian mechanism that is just found out shows most. Among equal
# scores guesses count as if they went wrong.


# Gaussian mechanisms to choose for, by their means, and thresholds, so far above the middle of both means.
_GUESS_SHIFTS = np.geomspace(5e-3, 60.0, 200)[:, np.newaxis]
_ABOVE = np.linspace(0.0, 4.5, 90)
_LARGEST_GUESSED_EPSILON, _GUESS_HALVINGS = 40.0, 40
# Rounding may put a probability this far off, relatively and absolutely.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-11


@njit(cache=True, nogil=True)
def pooled_order(observed: Array, unobserved: Array) -> tuple[Array, Ints]:
    """Put all scores of each audit into falling order, unobserved ones first among equals; both kinds come rising.

    Return the scores, and the number of unobserved ones among the first n, n = 0, …
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
def _guess_design(count: int, null_count: int, delta: float) -> tuple[Array, Array, Array]:
    """Return values of ε, rising, and the numbers of guesses, high and low, that find them out first."""
    z = 0.5 * _GUESS_SHIFTS + _ABOVE
    # The low guesses are below μ − z, as far from the other mean.
    hit, alarm = special.ndtr(_GUESS_SHIFTS - z), special.ndtr(-z)
    top = np.maximum(np.rint(count * hit + null_count * alarm), 1.0)
    bottom = np.minimum(np.rint(count * alarm + null_count * hit), count + null_count - top)
    wrong, made = (count + null_count) * alarm, top + bottom
    most = special.betaincinv(wrong + 1.0, np.maximum(made - wrong, 1e-9), 1.0 - _DESIGN_ALPHA) * made
    odds = math.log(count / null_count)
    low, high = np.zeros(made.shape), np.full(made.shape, _LARGEST_GUESSED_EPSILON)
    for _ in range(_GUESS_HALVINGS):
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


def _declared_guesses(count: int, null_count: int, delta: float, epsilon: float) -> tuple[int, int]:
    """Return the numbers of high and low guesses at ε."""
    found, tops, bottoms = _guess_design(count, null_count, delta)
    top, bottom = (round(float(np.interp(epsilon, found, numbers))) for numbers in (tops, bottoms))
    return top, min(bottom, count + null_count - top)


@lru_cache(maxsize=8192)
def _most_wrong(
    count: int, null_count: int, guesses: tuple[int, int], epsilon: float, delta: float, alpha: float
) -> int:
    """Return the most wrong guesses that reject ε, −1 if none do."""
    least, probabilities = _few_wrong(count, null_count, guesses, epsilon, delta)
    allowed = alpha * (1.0 - _RELATIVE) - _ABSOLUTE
    return least + int(np.searchsorted(probabilities, allowed, side="right")) - 1 if allowed > 0.0 else -1


@lru_cache(maxsize=2048)
def _few_wrong(count: int, null_count: int, guesses: tuple[int, int], epsilon: float, delta: float) -> Law:
    """Return the bounds of P(W ≤ w) that any level may ask for, and the least w of them; other levels share it."""
    bounds = wrong_at_most(count, null_count, *guesses, epsilon, delta)
    # Smaller ones are nothing but rounding, and count as 0.
    first, last = np.searchsorted(bounds, [_UNLIKELY, 1.0 - _RELATIVE])
    return int(first), bounds[first:last].copy()


def guess_test(scores: ScoreSample, design_delta: float, delta: float, alpha: float) -> "BlockTest":
    """Prepare the test of wrong guesses, which are as many as ``design_delta`` makes best."""
    assert scores.unobserved is not None
    count, null_count = scores.count, scores.null_count
    wrong = pooled_order(scores.observed, scores.unobserved)[1]

    def evidence(audits: Ints, epsilon: float) -> Ints:
        top, bottom = _declared_guesses(count, null_count, design_delta, epsilon)
        # The lowest hold all that took part but those above.
        at_bottom = bottom - (null_count - wrong[audits, count + null_count - bottom])
        return np.asarray(-(wrong[audits, top] + at_bottom))

    def critical(epsilon: float, tested: float) -> int:
        guesses = _declared_guesses(count, null_count, design_delta, epsilon)
        return -_most_wrong(count, null_count, guesses, tested, delta, alpha)

    return BlockTest(evidence, critical)


# Tests of (ε, δ)-privacy for an exact null.
#
# If the mechanism is (ε, δ)-private, the observed scores' tail is nowhere above that of the law P*, the smaller of
# e^ε·u + δ and 1 − e^−ε·(1 − u − δ) where the null's tail is u. A statistic that rises with every score is then at
# most what it is for independent draws from P*, in law: its test is exact whatever the mechanism.
#
# The statistic is a sum over scores of whole weights, each the number of thresholds that a score reaches. These are
# declared for each block of ε: the weights are the log likelihood ratio of a Gaussian mechanism, just found out from as
# many scores, and the private law that is hardest to tell from it (Huber and Strassen 1973), in equal steps.


# Steps of the weights.
_WEIGHT_STEPS = 32
# Of sums, what is less likely than this is left out, and counts as likely; rounding is less for each score.
_LEFT_OUT, _ROUNDING = 1e-13, 5e-15
# Means of the Gaussian mechanisms to choose from.
_SUM_SHIFTS = np.geomspace(5e-3, 150.0, 80)[:, np.newaxis]
# Weights go on to where one of the scores lies with this probability.
_REACH = 0.1
_SUM_HALVINGS = 45


def sum_test(scores: ScoreSample, design_delta: float, delta: float, alpha: float) -> "BlockTest":
    """Prepare the test of summed weights, which are those that ``design_delta`` makes best."""
    null, count = scores.null, scores.count
    assert null is not None

    def evidence(audits: Ints, epsilon: float) -> Ints:
        return _sums(scores.observed[audits], _places(count, null, design_delta, epsilon))

    def critical(epsilon: float, tested: float) -> int:
        return _least_sum(count, null, design_delta, epsilon, tested, delta, alpha)

    return BlockTest(evidence, critical)


def _root(falling: Callable[[Array], Array], low: Array, high: Array) -> Array:
    for _ in range(_SUM_HALVINGS):
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
        return np.asarray(np.exp(np.minimum(ratio, 700.0)) - special.ndtr(-x) - delta * np.exp(-epsilon))

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


@lru_cache(maxsize=1024)
def _sum_design(count: int, delta: float, epsilon: float) -> Array:
    """Return thresholds, falling, where the null is N(0, 1)."""
    first, second, third, fourth = _hardest(_SUM_SHIFTS, np.array(epsilon), delta)
    mu = _SUM_SHIFTS
    reach = -special.ndtri(_REACH / max(count, 1))
    first = np.maximum(np.minimum(first, mu + reach), second)
    fourth = np.minimum(np.maximum(fourth, -reach), third)
    # The ratio's logarithm, but for μ²/2: μx − ε above the flat part, μx + ε below it.
    low, high, middle = mu * fourth + epsilon, mu * first - epsilon, mu * second - epsilon
    levels = high - (high - low) * (np.arange(_WEIGHT_STEPS) + 0.5) / _WEIGHT_STEPS
    cuts = (levels + np.where(levels > middle, epsilon, -epsilon)) / mu
    private = worst_tail(epsilon, special.log_ndtr(-cuts), delta)
    mean = private.sum(axis=1)
    # Of two thresholds the higher one says whether both are reached.
    pairs = 2.0 * np.arange(_WEIGHT_STEPS)[::-1] + 1.0
    variance = np.maximum((private * pairs).sum(axis=1) - mean**2, 0.0)
    # The weakest mechanism whose mean statistic is at the critical value.
    found = special.ndtr(mu - cuts).sum(axis=1)
    seen = math.sqrt(count) * (found - mean) > -special.ndtri(_DESIGN_ALPHA) * np.sqrt(variance)
    return np.asarray(cuts[int(np.argmax(seen)) if seen.any() else -1])


@lru_cache(maxsize=1024)
def _places(count: int, null: ExactNull, delta: float, epsilon: float) -> Array:
    """Return thresholds, rising."""
    return np.sort(null.place(special.log_ndtr(-_sum_design(count, delta, epsilon))))


@lru_cache(maxsize=8192)
def _least_sum(
    count: int, null: ExactNull, design_delta: float, epsilon: float, tested: float, delta: float, alpha: float
) -> int:
    """Return the least sum of weights that rejects ``tested``, by the thresholds that are declared for ``epsilon``."""
    log_tails = null.log_tail(_places(count, null, design_delta, epsilon))
    return least_rejecting(worst_tail(tested, log_tails, delta), count, alpha * (1.0 - _RELATIVE))


def least_rejecting(tails: Array, count: int, alpha: float) -> int:
    """Return the least s with P(Σ ≥ s) ≤ α, Σ being the number of thresholds that independent scores reach in all.

    ``tails`` has the probability of reaching each threshold, falling.
    """
    law = -np.diff(np.concatenate([[1.0], tails, [0.0]]))
    weights, size = np.arange(len(law)), count * len(tails) + 1
    mean = float(law @ weights)
    # By Bernstein's inequality less than is left out lies farther from the mean.
    log_odds = -math.log(0.5 * _LEFT_OUT)
    variance = count * float(law @ (weights - mean) ** 2)
    reach = log_odds * len(tails) / 3.0 + math.sqrt((log_odds * len(tails) / 3.0) ** 2 + 2.0 * log_odds * variance)
    length = fft.next_fast_len(min(size, 2 * math.ceil(reach) + 2), real=True)
    first = 0 if length >= size else min(max(math.floor(count * mean - 0.5 * length), 0), size - length)
    # A transform of this length folds the sums onto the window, each to its place.
    sums = np.roll(fft.irfft(_power(fft.rfft(law, max(length, len(law))), count), max(length, len(law))), -first)
    allowed = alpha - _ABSOLUTE - _LEFT_OUT - _ROUNDING * count
    rejecting = np.cumsum(sums[: size - first][::-1])[::-1] <= allowed
    return first + int(np.argmax(rejecting)) if rejecting[-1] else size


def _power(base: Complexes, exponent: int) -> Complexes:
    """Raise to a whole power by squaring, some ten times as fast as numpy's."""
    result = np.ones_like(base)
    while exponent:
        if exponent % 2:
            result *= base
        base, exponent = base * base, exponent // 2
    return result


@njit(cache=True, nogil=True)
def _sums(observed: Array, places: Array) -> Ints:
    """Count for each audit how many thresholds its scores reach in all."""
    result = np.zeros(len(observed), dtype=np.int64)
    for a in range(len(observed)):
        below, count = 0, observed.shape[1]
        for x in places:
            # The thresholds rise: what is below one is below the next.
            low, high = below, count
            while low < high:
                middle = (low + high) // 2
                if observed[a, middle] < x:
                    low = middle + 1
                else:
                    high = middle
            below = low
            result[a] += count - below
    return result


# One test after another.


# Shares of α: of the declared ranks, and of the sharper test. With half for each, more cells of the suite's grid are
# below 90% of the best bound, and those that are lie lower.
NESTED, SHARP = 0.7, 0.3
# What the sharper test looks at is declared for blocks of so many values of ε, by the largest; and for this level.
_BLOCK, _DESIGN_ALPHA = 8, 0.05 * SHARP


@dataclass(frozen=True)
class BlockTest:
    """A test whose statistic is declared for a block of ε: in it, a rejected ε means that smaller ones are rejected."""

    evidence: Callable[[Ints, float], Ints]  # The statistic of audits, for a block's largest ε
    critical: Callable[[float, float], int]  # The least value of it that rejects, for that and an ε of the block


def designs(size: int, delta: float) -> list[tuple[float, float]]:
    """Return values of δ that tests are designed for, and those that they are made at.

    A design serves half a decade on either side, the first one all smaller values. All have to reject: so a larger δ
    never gives a larger bound, although it has designs of its own.
    """
    smallest = math.ceil(math.log10(size)) + 1
    ends = [10.0 ** (0.5 - i) for i in range(smallest, 1, -1)]
    used = 1 + sum(delta > end for end in ends)
    return [(10.0 ** -(smallest - i), min([delta, *ends[i : i + 1]])) for i in range(used)]


def sequence(scores: ScoreSample, delta: float, alpha: float, nested: float, sharp: float) -> Array:
    """Return the largest ε up to which every one is rejected by one of the tests, at these shares of α."""
    values = simultaneous(scores, delta, nested * alpha)[0] if nested > 0.0 else np.zeros(len(scores.observed))
    make, size = (
        (sum_test, scores.count) if scores.null is not None else (guess_test, max(scores.count, scores.null_count))
    )
    tests = [make(scores, design, at, sharp * alpha) for design, at in designs(size, delta)]
    # The first value that is not below what the ranks reject.
    start = np.searchsorted(EPSILONS, values, side="left")
    found = values.copy()
    left = np.flatnonzero(start < len(EPSILONS))
    block = int(start[left].min()) // _BLOCK if len(left) else 0
    for first in range(block * _BLOCK, len(EPSILONS), _BLOCK):
        if not len(left):
            break
        last = min(first + _BLOCK, len(EPSILONS))
        reached = np.full(len(left), last - 1)
        begun = start[left] < last
        at = np.flatnonzero(begun)
        declared = float(EPSILONS[last - 1])
        for test in tests:
            statistic = test.evidence(left[at], declared)
            begin = np.maximum(start[left[at]], first)
            reached[at] = _last_rejected(test, declared, statistic, begin, reached[at])
        rejected = begun & (reached >= np.maximum(start[left], first))
        found[left[rejected]] = np.maximum(found[left[rejected]], EPSILONS[reached[rejected]])
        left = left[~begun | (reached == last - 1)]
    return found


def _last_rejected(test: BlockTest, declared: float, statistic: Ints, first: Ints, last: Ints) -> Ints:
    """Return for each audit the last index from ``first`` to ``last`` whose ε is rejected, ``first`` − 1 if none is."""
    low, high, probe = first - 1, last + 1, last
    while (searched := high - low > 1).any():
        # A critical value serves all audits that ask for it at once.
        for index in np.unique(probe[searched]):
            at = searched & (probe == index)
            rejected = statistic >= test.critical(declared, float(EPSILONS[index]))
            low, high = np.where(at & rejected, index, low), np.where(at & ~rejected, index, high)
        probe = (low + high) // 2
    return low


def fixed_sequence(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the largest ε up to which every one is rejected; no threshold is its own, as tests look at many."""
    values = sequence(scores, delta, alpha, NESTED, SHARP)
    return values, np.full(len(values), math.nan)


METHODS = (
    Method(
        "fixed-sequence",
        "exact tests of one ε after another, at declared ranks and by a sum of declared weights (canaryproof)",
        fixed_sequence,
        ("independent scores",),
        if_independent,
    ),
)
