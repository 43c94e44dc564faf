"""The default bound: (ε, δ)-privacy is tested for one ε after another until one is not rejected.

Each ε has two tests, each at its share of α. The first uses declared ranks (``thresholds.simultaneous``). It has some
power against every shape, and rejects all ε below a rejected one. The second is sharper where scores are Gaussian with
equal variances. It counts wrong guesses for unobserved scores, and sums weights of the scores for an exact null. With
unobserved scores, unless they are very many, ranks and guesses have one critical value (``ladders``). The order of the
tests is fixed, so that each ε may use all of α (``block_tests``).
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import fft, special

from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Array, Bools, Complexes, Ints
from canaryproof.verify.audit.bounds.block_tests import DESIGN_ALPHA, NESTED, SHARP, BlockTest, designs, last_before
from canaryproof.verify.audit.bounds.guesses import ABSOLUTE, RELATIVE, guess_test
from canaryproof.verify.audit.bounds.ladders import ladder_bound, largest_deltas
from canaryproof.verify.audit.bounds.lower_bound import Method, ScoreSample, cached_table, if_independent
from canaryproof.verify.audit.bounds.precedence import worst_tail
from canaryproof.verify.audit.bounds.thresholds import simultaneous

# Tests of (ε, δ)-privacy for an exact null.
#
# If the mechanism is (ε, δ)-private, the observed scores' tail is nowhere above that of a law P*. Where the null's tail
# is u, that is the smaller of e^ε·u + δ and 1 − e^−ε·(1 − u − δ). A statistic that rises with every score is then
# stochastically at most that of independent draws from P*, so that its test is exact for every mechanism.
#
# The statistic is a sum over scores of integer weights, each the number of thresholds that a score reaches. Thresholds
# are declared for each block of ε. The weights approximate, in equal steps, a log likelihood ratio. It is that of a
# Gaussian mechanism, which this number of scores barely detects, to the private law that is hardest to tell from it
# (Huber and Strassen 1973).


# Steps of the weights.
_WEIGHT_STEPS = 32
# Sums of smaller total probability are dropped, and that probability is added to the p-value, which is conservative.
# The second number bounds the rounding error for each score.
_LEFT_OUT, _ROUNDING = 1e-13, 5e-15
# Means of the candidate Gaussian mechanisms.
_SUM_SHIFTS = np.geomspace(5e-3, 150.0, 80)[:, np.newaxis]
# Thresholds extend to where one of the scores lies with this probability.
_REACH = 0.1
_SUM_HALVINGS = 30
# The largest tail of an observed score under (ε, δ)-privacy, from ε, the null's log tail and δ.
LargestTail = Callable[[float, Array, float], Array]


def sum_test(
    scores: ScoreSample, design_delta: float, delta: float, alpha: float, largest_tail: LargestTail = worst_tail
) -> BlockTest:
    """Prepare the test of summed weights, which are the best ones at ``design_delta``."""
    null, count = scores.null, scores.count
    assert null is not None

    def thresholds(epsilon: float) -> Array:
        return np.sort(null.quantile(sum_design(count, design_delta, epsilon)))

    def evidence(audits: Ints, epsilon: float) -> Ints:
        return _sums(scores.observed[audits], thresholds(epsilon))

    def are_rejected(epsilon: float, tested: float, values: Ints) -> Bools:
        tails = largest_tail(tested, null.log_tail(thresholds(epsilon)), delta)
        return values >= least_rejecting(tails, count, alpha * (1.0 - RELATIVE))

    return BlockTest(evidence, are_rejected)


def _root(falling: Callable[[Array], Array], low: Array, high: Array) -> Array:
    for _ in range(_SUM_HALVINGS):
        middle = 0.5 * (low + high)
        positive = falling(middle) > 0.0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    return 0.5 * (low + high)


def hardest_law(mu: Array, epsilon: Array, delta: float) -> tuple[Array, Array, Array, Array]:
    """Return the ends of the intervals in which the log likelihood ratio of N(μ, 1) and the hardest private law rises.

    They come in falling order. The ratio is constant above the first, as δ covers the tail there. It rises between the
    second and the first, is constant between the third and the second, rises between the fourth and the third, and is
    constant below the fourth.
    """
    mu, epsilon = np.broadcast_arrays(mu, epsilon)
    half = 0.5 * mu * mu

    def top(x: Array) -> Array:
        # This is the probability of N(μ, 1) above x less e^ε times that of N(0, 1), if the ratio at x were e^ε.
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
    """Return the probability of N(0, 1) between two numbers, from the nearer tail."""
    upper = low > 0.0
    return np.where(upper, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low))


# Audits of equal size share designs, which saves a quick run 30 seconds.
@cached_table
def sum_design(count: int, delta: float, epsilon: float) -> Array:
    """Return log tails of the null at the thresholds, which are those of a Gaussian mechanism with the null N(0, 1)."""
    first, second, third, fourth = hardest_law(_SUM_SHIFTS, np.array(epsilon), delta)
    mu = _SUM_SHIFTS
    reach = -special.ndtri(_REACH / max(count, 1))
    first = np.maximum(np.minimum(first, mu + reach), second)
    fourth = np.minimum(np.maximum(fourth, -reach), third)
    # Without the constant μ²/2, the log ratio is μx − ε above the constant part, and μx + ε below it.
    low, high, middle = mu * fourth + epsilon, mu * first - epsilon, mu * second - epsilon
    levels = high - (high - low) * (np.arange(_WEIGHT_STEPS) + 0.5) / _WEIGHT_STEPS
    cuts = (levels + np.where(levels > middle, epsilon, -epsilon)) / mu
    private = worst_tail(epsilon, special.log_ndtr(-cuts), delta)
    mean = private.sum(axis=1)
    # Both of two thresholds are reached exactly where the higher one is.
    pairs = 2.0 * np.arange(_WEIGHT_STEPS)[::-1] + 1.0
    variance = np.maximum((private * pairs).sum(axis=1) - mean**2, 0.0)
    # The weakest mechanism is chosen whose mean statistic reaches the critical value.
    mechanism_mean = special.ndtr(mu - cuts).sum(axis=1)
    seen = math.sqrt(count) * (mechanism_mean - mean) > -special.ndtri(DESIGN_ALPHA) * np.sqrt(variance)
    return np.asarray(special.log_ndtr(-cuts[int(np.argmax(seen)) if seen.any() else -1]))


def least_rejecting(tails: Array, count: int, alpha: float) -> int:
    """Return the least s with P(Σ ≥ s) ≤ α, Σ being the number of thresholds that independent scores reach in all.

    ``tails`` has the probability of reaching each threshold, falling.
    """
    law = -np.diff(np.concatenate([[1.0], tails, [0.0]]))
    weights, size = np.arange(len(law)), count * len(tails) + 1
    mean = float((law * weights).sum())
    # By Bernstein's inequality, the probability farther from the mean is below ``_LEFT_OUT``.
    log_odds = -math.log(0.5 * _LEFT_OUT)
    variance = count * float((law * (weights - mean) ** 2).sum())
    reach = log_odds * len(tails) / 3.0 + math.sqrt((log_odds * len(tails) / 3.0) ** 2 + 2.0 * log_odds * variance)
    length = fft.next_fast_len(min(size, 2 * math.ceil(reach) + 2), real=True)
    first = 0 if length >= size else min(max(math.floor(count * mean - 0.5 * length), 0), size - length)
    # A transform of this length wraps the sums around the window; the roll undoes the shift.
    sums = np.roll(fft.irfft(_power(fft.rfft(law, max(length, len(law))), count), max(length, len(law))), -first)
    allowed = alpha - ABSOLUTE - _LEFT_OUT - _ROUNDING * count
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


@njit(cache=True, nogil=True, loop=True)
def _sums(observed: Array, thresholds: Array) -> Ints:
    """Count for each audit how many thresholds its scores reach in all."""
    result = np.zeros(len(observed), dtype=np.int64)
    for a in range(len(observed)):
        below, count = 0, observed.shape[1]
        for x in thresholds:
            # The thresholds rise, so that a score below one is below the next.
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


def sequence(scores: ScoreSample, delta: float, alpha: float, nested: float, sharp: float) -> Array:
    """Return the largest ε such that one of the tests rejects each ε up to it, at these shares of α."""
    values = simultaneous(scores, delta, nested * alpha)[0] if nested > 0.0 else np.zeros(len(scores.observed))
    make, size = (
        (sum_test, scores.count) if scores.null is not None else (guess_test, max(scores.count, scores.null_count))
    )
    tests = [make(scores, design, at, sharp * alpha) for design, at in designs(size, delta)]
    return last_before(tests, values)


def fixed_sequence(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the largest ε such that each ε up to it is rejected; thresholds are NaN, as the tests use many.

    A larger δ also uses the ladders of the smaller ones, and beyond all ladders both tests. So its bound is never
    larger.
    """
    values, served = np.full(len(scores.observed), math.inf), largest_deltas(scores)
    if delta > max(served, default=-1.0):
        values = sequence(scores, delta, alpha, NESTED, SHARP)
    for limit in served[: 1 + sum(delta > limit for limit in served)][::-1]:
        values = np.minimum(values, ladder_bound(scores, limit, min(delta, limit), alpha, values))
    return values, np.full(len(values), math.nan)


METHODS = (
    Method(
        "fixed-sequence",
        "exact tests of one ε after another, at declared ranks and by a sum of declared weights (canaryproof)",
        fixed_sequence,
        ("independent scores",),
        if_independent,
        ("1", "2", "2a", "3", "3a", "3b", "4"),
        version=2,
    ),
)
