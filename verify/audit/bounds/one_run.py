"""Bounds from a single run in which every canary's inclusion is a fair coin of its own.

Numbers of guesses are declared in advance. High guesses say that the canaries with the highest scores took part, low
guesses that those with the lowest did not. Where equal scores leave a choice, guesses count as wrong.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from canaryproof.kernels import binomial
from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Array, Ints
from canaryproof.verify.audit.bounds.block_tests import designs
from canaryproof.verify.audit.bounds.gaussian import epsilon_of_mu
from canaryproof.verify.audit.bounds.guesses import count_wrong, pooled_order
from canaryproof.verify.audit.bounds.lower_bound import GAUSSIAN_CURVE, Method, ScoreSample, if_coins
from canaryproof.verify.audit.bounds.weights import Block, Sizes, declared_sizes, weighted_bound

# The first block of ε, and that of μ, ends at this number over √m, about the least that m canaries reject, and others
# have this ratio. Ends are this many, more than any number of canaries reaches.
_FIRST, _FIRST_MU, _BLOCK, _BLOCKS = 4.0, math.sqrt(2.0), 1.1, 200
# The level for which the numbers are declared, bisections, and the ratio between the numbers that are compared, for ε
# and for a curve. With a ratio of 1.2 the mean bound from 200 canaries of a Gaussian mechanism is 2% to 4% smaller.
_DESIGN_ALPHA, _HALVINGS, _RATIO, _CURVE_RATIO = 0.05, 20, 1.2, 1.05
# Numbers of guesses that are compared for a curve, about, and at most.
_MOST_NUMBERS = 60
# The share of α for as many high guesses alone, and for as many low ones. Scores of other shapes differ at one end.
_ONE_END = 0.01
# That for the first guesses of one end, all of which must be right: so much of ε, but no more than the second number.
# It is 0 where a quarter of all canaries are too few for it, as it would lower the bound of scores that lie far apart.
_RUN, _MOST_RUN, _LONGEST_RUN = 1.0 / 30.0, 0.1, 0.25
# Absolute error of a bound.
_CLOSE = 1e-9
_ROUNDING = 1e-9
# An excess that need not be known any better.
_ENOUGH = 0.01
# Log of the smallest p-value of a curve, and the absolute error of its log.
_LEAST_LOG, _CLOSE_LOG = -600.0, 1e-6

# A trade-off function f as r ↦ f(1 − r), which is convex and rises: the least share of wrong guesses for r of right
# ones.
Curve = Callable[[float], float]


def p_value(total: int, number: int, right: int, epsilon: float, delta: float) -> float:
    """Bound the probability of v correct ones of r guesses on m canaries under (ε, δ)-privacy.

    It is β + (1 − β)·min(1, mδβ/(v·P(B = v))), with β = P(B ≥ v) for B binomial with r trials of probability e^ε/(1 +
    e^ε). At δ = 0 that is Steinke, Nasr and Jagielski's (arXiv 2305.08846, Theorem 5.2). The term in δ is proven in
    ``proofs_check/lower_bounds.md``, and some mechanism reaches it. The theorem's own term is mostly larger, but too
    small near a probability of 1.
    """
    if right == 0:
        return 1.0
    beta = float(special.betainc(right, number - right + 1, special.expit(epsilon)))
    if delta == 0.0:
        return beta
    # β/P(B = v), term by term, as both may underflow.
    # Nine deviations above the mean and above v, the terms left out are below 1e-17 of the largest one.
    last = max(right, number * special.expit(epsilon)) + 4.5 * math.sqrt(number) + 50.0
    counts = np.arange(right, min(number, int(last)) + 1)
    logs = -special.gammaln(counts + 1.0) - special.gammaln(number - counts + 1.0) + epsilon * (counts - right)
    # Plain numpy takes a tenth of the time of scipy's logsumexp.
    most = logs.max()
    cost = math.log(delta * total / right) + float(most - logs[0] + np.log(np.exp(logs - most).sum()))
    return beta + (1.0 - beta) * math.exp(min(cost, 0.0))


# An audit's cap always asks for the same bounds, a quarter of its time. In a quick run they take 5 seconds.
@lru_cache(maxsize=10_000)
def steinke_bound(total: int, number: int, right: int, delta: float, alpha: float) -> float:
    """Return the largest ε that this number of correct guesses rejects, rounded down."""
    # At δ = 0 the p-value is Clopper and Pearson's, and with δ it is larger.
    rate = float(binomial.lower(right, number, 1.0 - alpha))
    if rate <= 0.5:
        return 0.0
    allowed = alpha * (1.0 - _ROUNDING)
    return _largest(
        lambda epsilon: p_value(total, number, right, epsilon, delta) - allowed, math.log(rate) - math.log1p(-rate)
    )


def curve_of(tradeoff: Callable[[float], ArrayLike]) -> Curve:
    """Return a trade-off function f as r ↦ f(1 − r)."""
    return lambda right: float(np.asarray(tradeoff(max(1.0 - right, 0.0))))


def gaussian_curve(mu: float) -> Curve:
    """Return the curve of μ-GDP."""
    return lambda right: float(special.ndtr(special.ndtri(min(right, 1.0)) - mu))


def excess_of_curve(total: int, number: int, right: int, curve: Curve, alpha: float) -> float:
    """Return the excess over 1 of the least total probability, if c of c′ guesses were correct with probability α.

    Beyond 1% it is some part of that. Where it is positive, every mechanism with this curve has c correct guesses with
    a probability below α. It rises with α.

    Source: Mahloujifar, Melis and Chaudhuri (arXiv 2410.22235), Algorithm 3 for two alternatives and m canaries. Let pᵢ
    = P(i are correct), r = Σ_{j≥i} j·pⱼ/m and h = Σ_{j≥i}(c′ − j)pⱼ/m. With a trade-off function f, h at i is at least
    f(1 − r at i + 1). With α as the probability of c and more, satisfying that down to i = 0 may take more than 1 in
    all.
    """
    r, h = alpha * right / total, alpha * (number - right) / total
    for i in range(right - 1, -1, -1):
        least = curve(r)
        if least <= h:
            break
        r, h = r + i / (number - i) * (least - h), least
        if (r + h) * total > number * (1.0 + _ENOUGH):
            # Further steps only add to it.
            break
    return (r + h) * total / number - 1.0


def excess_gaussian(total: int, number: int, right: int, mu: float, alpha: float) -> float:
    """Return ``excess_of_curve`` of μ-GDP; it falls in μ."""
    return excess_of_curve(total, number, right, gaussian_curve(mu), alpha)


@lru_cache(maxsize=10_000)
def gaussian_bound(total: int, number: int, right: int, alpha: float) -> float:
    """Return the largest μ that this number of correct guesses rejects, rounded down."""
    high = 1.0
    while excess_gaussian(total, number, right, high, alpha) > _ROUNDING:
        high *= 2.0
    return _largest(lambda mu: _ROUNDING - excess_gaussian(total, number, right, mu, alpha), high)


@lru_cache(maxsize=10_000)
def is_rejected(total: int, number: int, right: int, mu: float, alpha: float) -> bool:
    """Tell whether this number of correct guesses rejects μ."""
    return excess_gaussian(total, number, right, mu, alpha) > _ROUNDING


def _largest(excess: Callable[[float], float], high: float) -> float:
    """Return the largest argument up to ``high`` at which a rising function is not positive, rounded down."""
    if excess(0.0) > 0.0:
        return 0.0
    if excess(high) <= 0.0:
        return high
    root = float(optimize.brentq(excess, 0.0, high, xtol=_CLOSE))
    while root > 0.0 and excess(root) > 0.0:
        root -= _CLOSE
    return max(root, 0.0)


def ends(total: int, first: float = _FIRST) -> Array:
    """Return the upper ends of the blocks of ε, or those of μ; each block has its own number of guesses."""
    return np.asarray(first / math.sqrt(total) * _BLOCK ** np.arange(_BLOCKS))


def blocks(total: int) -> list[Block]:
    """Return the blocks of ε; each has its own tests."""
    upper = ends(total).tolist()
    return list(zip([0.0, *upper[:-1]], upper, strict=True))


def _numbers(total: int, ratio: float) -> Ints:
    """Return the numbers of guesses on m canaries that are compared: even, and at least 2."""
    most = total // 2
    halves = np.rint(np.append(ratio ** np.arange(math.log(most) / math.log(ratio)), most))
    return np.asarray(2 * np.unique(halves).astype(np.int64))


@lru_cache(maxsize=10_000)
def declared_number(total: int, delta: float, epsilon: float) -> tuple[int, float]:
    """Return the number of guesses on m canaries that needs the least trace to reject ε in half of the audits, and it.

    Traces are those of a Gaussian mechanism. The choice looks at no score, so that it bears on power alone.
    """
    numbers = _numbers(total, _RATIO).astype(np.float64)
    # At a whole number of right guesses the critical value would jump, and the choice with it.
    low, high = numbers * special.expit(epsilon), numbers + 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        rejects = (middle > numbers) | (_design_p_value(total, numbers, middle, epsilon, delta) <= _DESIGN_ALPHA)
        low, high = np.where(rejects, low, middle), np.where(rejects, middle, high)
    # The critical value is rounded up, by half on average, and a count's mean is about two thirds above its median.
    wrong = np.maximum(numbers - high - 1.0 / 2.0 + 2.0 / 3.0, 1e-9)
    trace = special.ndtri((numbers - wrong) / total) - special.ndtri(wrong / total)
    # If no number rejects, all canaries are guessed, and no trace is known.
    needed = np.where(high > numbers, math.inf, trace)[::-1]
    best = int(np.argmin(needed))
    return int(numbers[::-1][best]), float(needed[best])


# Numbers of high and of low guesses; of several, each guess weighs as much as there are numbers that it is within.
Guesses = tuple[tuple[int, int], ...]


def declared_tests(total: int, delta: float, block: Block) -> tuple[tuple[Guesses, float], ...]:
    """Return guesses, each with its share of α; one test that rejects is enough."""
    number, trace = declared_number(total, delta, block[1])
    both = 1.0 - 2.0 * (_ONE_END + run_share(total, block[1]))
    sizes: Sizes = (number // 2,)
    if math.isfinite(trace):
        sizes = declared_sizes(total, number, trace, delta, block, both * _DESIGN_ALPHA)
    return (tuple((size, size) for size in sizes), both), (((number, 0),), _ONE_END), (((0, number),), _ONE_END)


def bound_of_guesses(total: int, guesses: Guesses, wrong: int, block: Block, delta: float, alpha: float) -> float:
    """Return the largest ε that this weight of wrong guesses rejects; of several weights, ε of the block alone."""
    if len(guesses) > 1:
        return weighted_bound(total, tuple(top for top, _ in guesses), wrong, block, delta, alpha)
    number = sum(guesses[0])
    return steinke_bound(total, number, number - wrong, delta, alpha)


def run_share(total: int, epsilon: float) -> float:
    """Return the share of α for the test that the first guesses of an end are all right; so much for each end.

    Their number is the least whose p-value is at most this share of α. So the test rejects where the p-value of all
    guesses before the first wrong one is at most that.
    """
    share = min(_RUN * epsilon, _MOST_RUN)
    is_possible = _LONGEST_RUN * total * math.log(special.expit(epsilon)) <= math.log(share * _DESIGN_ALPHA)
    return share if is_possible else 0.0


def _design_p_value(total: int, number: Array, right: Array, epsilon: float, delta: float) -> Array:
    """Return ``p_value`` for many numbers at once, which need not be whole, where it is not tiny."""
    right = np.minimum(right, number)
    beta = special.betainc(right, number - right + 1.0, special.expit(epsilon))
    log_ways = special.gammaln(number + 1.0) - special.gammaln(right + 1.0) - special.gammaln(number - right + 1.0)
    with np.errstate(divide="ignore"):
        log_ratio = np.log(beta) - log_ways - epsilon * right + number * np.logaddexp(0.0, epsilon)
    cost = delta * total / right * np.exp(np.minimum(log_ratio, 700.0))
    return np.asarray(beta + (1.0 - beta) * np.minimum(1.0, cost))


def steinke(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the largest ε such that each ε up to it is rejected by its own declared numbers of guesses.

    A larger δ also has the tests of smaller ones, so that its bound is never larger. Thresholds are NaN, as guesses
    have two.
    """
    before = _unobserved_before(scores)
    values = np.full(len(before), math.inf)
    for design, at in designs(before.shape[1] - 1, delta):
        values = np.minimum(values, _largest_rejected_epsilon(before, scores.null_count, design, at, alpha, values))
    return values, np.full(len(values), math.nan)


def _unobserved_before(scores: ScoreSample) -> Ints:
    """Count the unobserved scores among the n highest, n = 0, …, m, which all numbers of wrong guesses follow from."""
    assert scores.unobserved is not None
    return pooled_order(scores.observed, scores.unobserved)[1]


def right_before_the_first_wrong(before: Ints, null_count: int) -> tuple[Ints, Ints]:
    """Count the high guesses that are right before the first wrong one, and the low ones."""
    numbers = np.arange(before.shape[1])
    # The n lowest are all unobserved where n unobserved scores are missing among the others.
    return np.sum(before == 0, axis=1) - 1, np.sum(null_count - before[:, ::-1] == numbers, axis=1) - 1


def _largest_rejected_epsilon(
    before: Ints, null_count: int, design: float, delta: float, alpha: float, enough: Array
) -> Array:
    """Return the largest ε up to which all are rejected; from ``enough`` on, none is tested."""
    total = before.shape[1] - 1
    runs = right_before_the_first_wrong(before, null_count)
    values, left = np.zeros(len(before)), np.arange(len(before))
    for block in blocks(total):
        end = block[1]
        bounds, share = np.zeros(len(left)), run_share(total, end)
        for run in runs if share else ():
            reached = [steinke_bound(total, max(right, 1), right, delta, share * alpha) for right in run[left].tolist()]
            bounds = np.maximum(bounds, reached)
        for guesses, share in declared_tests(total, design, block):
            asked = np.flatnonzero(bounds < end)
            wrongs = np.sum([count_wrong(before[left[asked]], null_count, pair) for pair in guesses], axis=0).tolist()
            reached = [bound_of_guesses(total, guesses, wrong, block, delta, share * alpha) for wrong in wrongs]
            bounds[asked] = np.maximum(bounds[asked], reached)
        values[left] = np.clip(bounds, *block)
        left = left[(bounds >= end) & (enough[left] > end)]
        if not len(left):
            break
    return values


@njit(cache=True, nogil=True, error_model="numpy")
def _excess_of_mu(total: int, number: int, right: int, mu: float, alpha: float, start: float) -> float:
    """Return ``excess_gaussian`` to some 1e-12, from a quantile that is at most that of r; it decides no test.

    The quantile of r is followed from step to step. As r rises and log Φ is concave, Newton's steps only rise, too.
    """
    x, r, h = start, alpha * right / total, alpha * (number - right) / total
    for i in range(right - 1, -1, -1):
        least = 1.0
        if r < 1.0:
            step = 1.0
            while step > 1e-13:
                below = 0.5 * math.erfc(-x * math.sqrt(0.5))
                step = math.log(r / below) * below / (math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi))
                x += step
            least = 0.5 * math.erfc((mu - x) * math.sqrt(0.5))
        if least <= h:
            break
        r, h = r + i / (number - i) * (least - h), least
        if (r + h) * total > number * (1.0 + _ENOUGH):
            break
    return (r + h) * total / number - 1.0


def _most_wrong(total: int, number: int, curve: Curve, alpha: float, is_rejecting: Callable[[int], bool]) -> int:
    """Return the most wrong ones of r guesses on m canaries that reject a curve, −1 if none do."""
    # With many canaries, the most is about where the curve leaves as many wrong ones with probability α.
    low, high = 0.0, 0.5 * number
    while high - low > 0.25:
        middle = 0.5 * (low + high)
        leaves_more = curve(alpha * (number - middle) / total) > alpha * middle / total
        low, high = (middle, high) if leaves_more else (low, middle)
    # The most that is known to reject, the least that is not, and from where on in growing steps.
    rejects, spares, step = -1, number // 2, 1
    last, wrong = spares - 1, min(int(low), spares - 1)
    while spares - rejects > 1:
        if is_rejecting(wrong):
            rejects = wrong
        else:
            spares = wrong
        if spares > last:
            wrong = min(rejects + step, last)
        else:
            wrong = max(spares - step, 0) if rejects < 0 else (rejects + spares) // 2
        step *= 2
    return rejects


def most_wrong_of_curve(total: int, number: int, curve: Curve, alpha: float) -> int:
    """Return the most wrong ones of r guesses on m canaries that reject a curve, −1 if none do."""

    def is_rejecting(wrong: int) -> bool:
        return excess_of_curve(total, number, number - wrong, curve, alpha) > _ROUNDING

    return _most_wrong(total, number, curve, alpha, is_rejecting)


def _most_wrong_of_mu(total: int, number: int, mu: float) -> int:
    """Return ``most_wrong_of_curve`` of μ-GDP at the design's level; rounding may change it by one."""

    def is_rejecting(wrong: int) -> bool:
        right = number - wrong
        start = float(special.ndtri(_DESIGN_ALPHA * right / total)) - 1e-6
        return bool(_excess_of_mu(total, number, right, mu, _DESIGN_ALPHA, start) > _ROUNDING)

    return _most_wrong(total, number, gaussian_curve(mu), _DESIGN_ALPHA, is_rejecting)


def number_for_curve(total: int, curve: Curve) -> int:
    """Return the number of guesses on m canaries that needs the least trace to reject a curve at the design's level."""
    return _number_with_least_trace(total, lambda number: most_wrong_of_curve(total, number, curve, _DESIGN_ALPHA))


def _number_with_least_trace(total: int, most_wrong: Callable[[int], int]) -> int:
    """Return the number of guesses that needs the least trace, from the most wrong ones that reject."""
    least, chosen = math.inf, 2 * (total // 2)
    for number in _numbers(total, max(_CURVE_RATIO, (total / 2.0) ** (1.0 / _MOST_NUMBERS))).tolist():
        most = most_wrong(number)
        if most >= 0:
            wrong = most + 0.5
            trace = float(special.ndtri((number - wrong) / total) - special.ndtri(wrong / total))
            least, chosen = min((least, chosen), (trace, number))
    return chosen


@lru_cache(maxsize=10_000)
def _number_for_mu(total: int, mu: float) -> int:
    return _number_with_least_trace(total, lambda number: _most_wrong_of_mu(total, number, mu))


def _largest_rejected_mu(before: Ints, null_count: int, alpha: float) -> float:
    """Return the largest μ up to which all are rejected, from the unobserved scores among the first of one audit."""
    total, begin = before.shape[1] - 1, 0.0
    for end in ends(total, _FIRST_MU).tolist():
        number = _number_for_mu(total, end)
        right = number - int(count_wrong(before, null_count, (number // 2, number // 2))[0])
        if not is_rejected(total, number, right, end, alpha):
            # The largest μ may lie in a block before, as that has another number of guesses.
            return max(begin, gaussian_bound(total, number, right, alpha))
        begin = end
    return begin


def mahloujifar(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return ε of the largest μ such that each μ up to it is rejected by its own declared number of guesses."""
    before = _unobserved_before(scores)
    mu = [_largest_rejected_mu(row[np.newaxis], scores.null_count, alpha) for row in before]
    return epsilon_of_mu(np.array(mu), delta), np.full(len(mu), math.nan)


def curve_p_value(scores: ScoreSample, curve: Curve) -> float:
    """Bound the probability of so many correct guesses, or more, if the mechanism has the curve; for one audit.

    Their number is declared for the curve. Coins alone are assumed, and no shape of scores.
    """
    total = scores.count + scores.null_count
    number = number_for_curve(total, curve)
    wrong = count_wrong(_unobserved_before(scores), scores.null_count, (number // 2, number // 2))
    return p_value_of_curve(total, number, number - int(wrong[0]), curve)


def p_value_of_curve(total: int, number: int, right: int, curve: Curve) -> float:
    """Bound the probability of v correct ones of r guesses on m canaries, if the mechanism has the curve."""
    if excess_of_curve(total, number, right, curve, 1.0 - _ROUNDING) <= _ROUNDING:
        return 1.0
    # The log of a probability that is rejected, and of one that may not be.
    low, high = _LEAST_LOG, 0.0
    if excess_of_curve(total, number, right, curve, math.exp(low)) > _ROUNDING:
        return math.exp(low)
    while high - low > _CLOSE_LOG:
        middle = 0.5 * (low + high)
        rejects = excess_of_curve(total, number, right, curve, math.exp(middle)) > _ROUNDING
        low, high = (low, middle) if rejects else (middle, high)
    return math.exp(high)


FAIR_COINS = "a fair coin of its own for each inclusion"
METHODS = (
    Method(
        "one-run",
        "Steinke, Nasr, Jagielski, arXiv 2305.08846, with δ's own cost, of weighted guesses declared for each ε",
        steinke,
        (FAIR_COINS,),
        if_coins,
        ("4", "6"),
        needs="unobserved",
        version=3,
    ),
    Method(
        "one-run-gaussian",
        "Mahloujifar, Melis, Chaudhuri, arXiv 2410.22235, at a declared number of guesses for each μ",
        mahloujifar,
        (FAIR_COINS, GAUSSIAN_CURVE),
        if_coins,
        ("4", "6"),
        needs="unobserved",
        version=2,
    ),
)
