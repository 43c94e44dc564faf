"""Bounds at thresholds of the scores, by Equation (1) at limits of the two rates of error.

Andrew et al. (arXiv 2302.03098), Equation (1): ε ≥ log((1 − δ − FNR)/FPR) and ε ≥ log((1 − δ − FPR)/FNR). Both rise
when a rate falls, so that upper limits of the rates give lower bounds of ε. Two families of bounds are valid. In one,
limits hold at all declared ranks at once (``band``). In the other, thresholds do not depend on the scores that are
counted (``fixed_threshold``, ``bonferroni``). Thresholds chosen on one half of the scores serve ``bayesian``.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from canaryproof.kernels import binomial
from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.binomial import Method as Limits
from canaryproof.verify.audit.bounds.block_tests import designs
from canaryproof.verify.audit.bounds.lower_bound import Method, ScoreSample, cached_table, if_independent
from canaryproof.verify.audit.bounds.precedence import precedence


@dataclass(frozen=True)
class Rates:
    """Logarithms of limits of a rate and of its complement, by the count of scores at or above the threshold."""

    log_rate: Array  # Log of the upper limit of the rate of error
    log_rest: Array  # Log of 1 − δ − that limit, −∞ where it is not positive


def rates(upper: ArrayLike, complement: ArrayLike, delta: float) -> Rates:
    """Tabulate upper limits of a rate, and 1 − δ less them, by the complement's lower limits for full precision."""
    with np.errstate(divide="ignore"):
        return Rates(np.log(upper), np.log(np.maximum(np.asarray(complement) - delta, 0.0)))


@njit(cache=True, nogil=True, loop=True)
def _exact(
    observed: Array,
    at: NDArray[np.int64],
    log_tails: Array,
    log_miss: Array,
    log_hit: Array,
    delta: float,
    by_value: bool,
) -> tuple[Array, Array]:
    audits, count = observed.shape
    values, thresholds = np.zeros(audits), np.full(audits, math.nan)
    for a in range(audits):
        hits, n = count, 0
        for i in range(count):
            # All equal scores are at or above the threshold.
            if not by_value or i == 0 or observed[a, i] > observed[a, i - 1]:
                hits = count - i
            if n == len(at) or i < at[n]:
                continue
            log_tail = log_tails[a, n]
            n += 1
            rest = 1.0 - delta - math.exp(log_tail)
            value = log_hit[hits] - log_tail
            if rest > 0.0:
                value = max(value, math.log(rest) - log_miss[hits])
            if value > values[a]:
                values[a], thresholds[a] = value, observed[a, i]
    return values, thresholds


@njit(cache=True, nogil=True, loop=True)
def _sweep_sample(
    observed: Array,
    unobserved: Array,
    log_miss: Array,
    log_hit: Array,
    log_alarm: Array,
    log_quiet: Array,
    by_value: bool,
) -> tuple[Array, Array]:
    audits, count = observed.shape
    null_count = unobserved.shape[1]
    values, thresholds = np.zeros(audits), np.full(audits, math.nan)
    for a in range(audits):
        i = j = 0
        last = -math.inf
        # Unobserved scores come first among equals, as in the authors' code.
        while i < count:
            if j < null_count and unobserved[a, j] <= observed[a, i]:
                last = unobserved[a, j]
                j += 1
                continue
            score = observed[a, i]
            if not by_value or score > last:
                value = max(
                    log_hit[count - i] - log_alarm[null_count - j], log_quiet[null_count - j] - log_miss[count - i]
                )
                if value > values[a]:
                    values[a], thresholds[a] = value, score
            last = score
            i += 1
    return values, thresholds


def sweep(
    scores: ScoreSample,
    miss: Rates,
    alarm: Rates | None,
    delta: float,
    *,
    by_value: bool = True,
    ranks: NDArray[np.int64] | None = None,
) -> tuple[Array, Array]:
    """Find the largest value over all observed scores as thresholds, and its threshold.

    They are 0 and NaN where no value is positive. ``miss`` and ``alarm`` tabulate limits of FNR and FPR by the numbers
    of observed and unobserved scores at or above the threshold; ``alarm`` is None for an exact null. Without
    ``by_value``, equal scores count as distinct, to the attacker's advantage, as in the authors' code. With an exact
    null, thresholds may be limited to ``ranks`` from the highest score, in increasing order.
    """
    if scores.null is not None:
        if ranks is None:
            at, log_tails = np.arange(scores.count), scores.log_tails
        else:
            at = scores.count - ranks[::-1]
            log_tails = scores.null.log_tail(scores.observed[:, at])
        return _exact(scores.observed, at, log_tails, miss.log_rate, miss.log_rest, delta, by_value)
    assert scores.unobserved is not None
    assert alarm is not None
    return _sweep_sample(
        scores.observed,
        scores.unobserved,
        miss.log_rate,
        miss.log_rest,
        alarm.log_rate,
        alarm.log_rest,
        by_value,
    )


# Confidence limits of the two rates of error for every count.


@cached_table
def misses(count: int, delta: float, alpha: float, method: Limits = "clopper-pearson") -> Rates:
    """Upper limits of FNR at confidence 1 − α, by number of the ``count`` observed scores that are hits."""
    hits = np.arange(count + 1)
    return rates(
        binomial.upper(count - hits, count, 1.0 - alpha, method),
        binomial.lower(hits, count, 1.0 - alpha, method),
        delta,
    )


@cached_table
def alarms(count: int, delta: float, alpha: float, method: Limits = "clopper-pearson") -> Rates:
    """Upper limits of FPR at confidence 1 − α, by number of the ``count`` unobserved scores that are false alarms."""
    false = np.arange(count + 1)
    return rates(
        binomial.upper(false, count, 1.0 - alpha, method),
        binomial.lower(count - false, count, 1.0 - alpha, method),
        delta,
    )


def alpha_share(alpha: float, exact: bool) -> float:
    """Return the share of α for each rate: all of it where only FNR is estimated, half of it otherwise."""
    return alpha if exact else 0.5 * alpha


# Thresholds at declared ranks, all at once.
#
# An exact null has a band of equal local levels. Let U₍₁₎ < … < U₍ₖ₎ be k sorted uniform variables, and L₁ ≤ … ≤ Lₖ
# levels. Then P(U₍ⱼ₎ ≥ Lⱼ for all j) is the probability that at most j − 1 points lie below Lⱼ, for all j. The points
# are those of a Poisson process of rate k on the condition that it has k points (Noé 1972; Moscovich and Nadler 2017).
# The computation takes one step for each level, and all terms are positive.


# States and steps that are less likely than this are dropped, so that the computed probability is too small.
_NEGLIGIBLE = 1e-25
# Products up to which ``scipy.signal`` convolves without a Fourier transform.
_DIRECT = 4_000_000
# Ratio of a declared rank to the one before. With all ranks, each level would be half as large. Ranks whose level is
# little above δ are closer, as the bound depends on the difference.
_RATIO, _CLOSER = 1.6, 1.3
# A rank is left out whose lower limit, at this level, is not above the least δ of its design. With more scores than
# these no rank is, as each design's band takes long then, up to half a second.
_USELESS, _MOST_SKIPPED = 0.003, 10_000
# Local levels form a fixed geometric grid with this step of the logarithm, so that they rise with α despite rounding.
_RUNG = 1e-3
# A generous rounding error of a probability near 1 for up to this many variables; beyond, it grows in proportion.
_ROUNDING, _VARIABLES = 1e-9, 1e5


def staying_above(levels: Array, ranks: NDArray[np.int64], count: int) -> float:
    """Return P(U₍ⱼ₎ ≥ Lⱼ for all ranks j) of k uniform variables; its rounding error is below 1e-9 for k up to 1e5.

    Levels in [0, 1) do not fall, ranks from 1 to ``count`` rise.
    """
    states, lowest, level_before = np.ones(1), 0, 0.0
    for level, rank in zip(levels, ranks, strict=True):
        states, lowest = _add_poisson(states, lowest, count * (level - level_before))
        level_before = level
        # At most rank − 1 points may lie below the level.
        states = states[: max(rank - lowest, 0)]
        if not len(states):
            return 0.0
    missing = count - lowest - np.arange(len(states))
    ends = _poisson(missing, count * (1.0 - level_before))
    return float((states * ends).sum() / _poisson(np.array([count]), count)[0])


def _add_poisson(states: Array, lowest: int, mean: float) -> tuple[Array, int]:
    """Add a Poisson variable to the number of points; return the likely states and the lowest of them."""
    if mean > 0.0:
        # By Chernoff's bounds, the probability beyond is negligible.
        first, last = max(0, int(mean - 11.0 * math.sqrt(mean))), int(mean + 11.0 * math.sqrt(mean) + 60.0)
        steps = _poisson(np.arange(first, last + 1), mean)
        states, lowest = np.maximum(_convolve(states, steps), 0.0), lowest + first
    likely = np.flatnonzero(states > _NEGLIGIBLE)
    if not len(likely):
        return states[:0], lowest
    return states[likely[0] : likely[-1] + 1], lowest + int(likely[0])


def _convolve(first: Array, second: Array) -> Array:
    """Convolve as ``scipy.signal`` does, which up to so many products does it directly, and takes long to load."""
    if len(first) * len(second) < _DIRECT:
        return np.convolve(first, second)
    from scipy import signal

    return np.asarray(signal.convolve(first, second))


def _poisson(counts: NDArray[np.int64], mean: float) -> Array:
    """Return the probabilities of counts, 0 for negative ones."""
    return np.asarray(np.exp(special.xlogy(counts, mean) - mean - special.gammaln(counts + 1.0)) * (counts >= 0))


def band_ranks(count: int, skipped: int = 0, ratio: float = _RATIO) -> NDArray[np.int64]:
    """Return the ranks at which a band is checked: dense near both ends, sparse in the middle.

    The ``skipped`` ranks at the low end are left out, as they say nothing at the δ of a design.
    """
    middle = 0.5 * (count + 1)
    low = skipped + _geometric(middle - skipped, _CLOSER if skipped else ratio)
    return np.unique(np.concatenate([low, count + 1 - _geometric(middle, ratio)]))


def _geometric(most: float, ratio: float) -> NDArray[np.int64]:
    ranks, rank = [], 1.0
    while rank <= most:
        ranks.append(int(rank))
        rank = max(rank + 1.0, ratio * rank)
    return np.array(ranks, dtype=np.int64)


def skipped_ranks(count: int, delta: float) -> list[tuple[int, float]]:
    """Return the numbers of skipped ranks, and the δ at which each of these bands has to reject."""
    result: dict[int, float] = {}
    for design, at in designs(count, delta):
        least = design / math.sqrt(10.0)
        skips = count <= _MOST_SKIPPED and count * least >= 1.0
        # Designs with the same ranks have their smallest bound at the largest δ.
        result[_largest_likely(count, least) if skips else 0] = at
    return list(result.items())


def _largest_likely(count: int, delta: float) -> int:
    """Return the number of shown canaries that only ``_USELESS`` exceeds."""
    # It loads for long, and few audits need it.
    from scipy import stats

    return int(stats.binom.isf(_USELESS, count, delta))


def _levels(local: float, ranks: NDArray[np.int64], count: int) -> Array:
    # The quantile of U₍ⱼ₎'s Beta distribution is Clopper and Pearson's limit for j successes.
    return np.maximum.accumulate(binomial.lower(ranks, count, 1.0 - local))


def local_level(count: int, alpha: float, skipped: int = 0, ratio: float = _RATIO) -> float:
    """Find the largest level of the grid at which some rank fails with probability α at most."""
    ranks = band_ranks(count, skipped, ratio)
    rounding = _ROUNDING * max(1.0, count / _VARIABLES)

    # Bonferroni's level is valid without any computation.
    high, low = math.ceil(-math.log(alpha / len(ranks)) / _RUNG), math.floor(-math.log(alpha) / _RUNG)
    rung, slope, before = high - 1, -_RUNG, (high, math.nan)
    while high - low > 1:
        levels = _levels(math.exp(-_RUNG * rung), ranks, count)
        failing = 1.0 - staying_above(levels, ranks, count) + rounding
        low, high = (low, rung) if failing <= alpha else (rung, high)
        # The function is nearly linear, so that secants take a third of a bisection's steps.
        excess = math.log(_poisson_mean(failing) / _poisson_mean(alpha))
        if (secant := (excess - before[1]) / (rung - before[0])) < 0.0:
            slope = secant
        before = rung, excess
        rung = min(max(math.ceil(rung - excess / slope) - (failing <= alpha), low + 1), high - 1)
    return math.exp(-_RUNG * high)


def _poisson_mean(probability: float) -> float:
    """Return the mean of a Poisson variable that is positive with a probability."""
    return -math.log1p(-min(max(probability, 1e-300), 1.0 - 1e-9))


def band(count: int, alpha: float, skipped: int = 0, ratio: float = _RATIO) -> Array:
    """Return levels Lⱼ, j = 0, …, k, such that all U₍ⱼ₎ exceed theirs with probability at least 1 − α."""
    return np.repeat(*_steps(count, alpha, skipped, ratio))


@cached_table
def _steps(count: int, alpha: float, skipped: int, ratio: float = _RATIO) -> tuple[Array, NDArray[np.int64]]:
    """Return a band's distinct levels, and how many ranks have each: those from a checked rank up to the next."""
    ranks = band_ranks(count, skipped, ratio)
    levels = np.concatenate([[0.0], _levels(local_level(count, alpha, skipped, ratio), ranks, count)])
    return levels, np.diff(ranks, prepend=0, append=count + 1)


def simultaneous(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the bound of all declared ranks, by a band for an exact null and by precedence tests otherwise.

    The band's threshold is the best one; precedence tests have none. A larger δ also has the bands of smaller ones, so
    that its bound is never larger.
    """
    if scores.null is None:
        values = precedence(scores, delta, alpha)
        return values, np.full(len(values), math.nan)
    bounds = [_of_band(scores, at, alpha, skipped) for skipped, at in skipped_ranks(scores.count, delta)]
    values, thresholds = (np.array(part) for part in zip(*bounds, strict=True))
    least, audits = np.argmin(values, axis=0), np.arange(values.shape[1])
    return values[least, audits], thresholds[least, audits]


def _of_band(scores: ScoreSample, delta: float, alpha: float, skipped: int) -> tuple[Array, Array]:
    levels, lengths = _steps(scores.count, alpha, skipped)
    miss = rates(1.0 - levels, levels, delta)
    miss = Rates(np.repeat(miss.log_rate, lengths), np.repeat(miss.log_rest, lengths))
    # The level is constant from one declared rank to the next, so that the highest threshold there, with the least
    # tail, is the best. Millions of scores then cost no more than a few.
    return sweep(scores, miss, None, delta, ranks=band_ranks(scores.count, skipped))


# Thresholds that do not depend on the scores that are counted: one, several, or from a split.
#
# With unobserved scores, a threshold is one of them, by its rank. Just above the r-th largest of k₀, the false alarm
# rate is stochastically at most the r-th of k₀ uniform order statistics, whose quantile limits it.


# Number of thresholds of Bonferroni's bound, where the null's tail is 1/2, 1/4, …
_GRID = 20


@dataclass(frozen=True)
class ThresholdCounts:
    """Thresholds with the counts of hits and the limits of the false alarm rates."""

    thresholds: Array  # Shape (audits, thresholds)
    hits: NDArray[np.int64]  # Number of observed scores at or above them, the same shape
    log_alarm: Array  # Log of the false alarm rates' upper limits, shape (thresholds,)


def null_ranks(tails: Array, null_count: int) -> NDArray[np.int64]:
    """Return the ranks, from the highest score, of the unobserved scores near these tails of the null."""
    return np.clip(np.rint(tails * null_count), 1, null_count).astype(np.int64)


def threshold_counts(scores: ScoreSample, tails: Array, alpha: float) -> ThresholdCounts:
    """Put thresholds where the null has about these tails, with 1 − α limits of estimated false alarm rates."""
    observed = scores.observed
    if scores.null is not None:
        row = scores.null.quantile(np.log(tails))
        thresholds = np.broadcast_to(row, (len(observed), len(row)))
        log_alarm, side = scores.null.log_tail(row), "left"
    else:
        assert scores.unobserved is not None
        ranks = null_ranks(tails, scores.null_count)
        thresholds = scores.unobserved[:, scores.null_count - ranks]
        # Equal scores are no hits, as the limit of the false alarm rate holds above the threshold only.
        log_alarm, side = np.log(binomial.upper(ranks - 1, scores.null_count, 1.0 - alpha)), "right"
    below = [np.searchsorted(row, at, side=side) for row, at in zip(observed, thresholds, strict=True)]  # type: ignore[call-overload]
    return ThresholdCounts(thresholds, scores.count - np.array(below, dtype=np.int64), log_alarm)


def best_of_thresholds(scores: ScoreSample, tails: Array, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the best bound over thresholds where the null has these tails, each at the same share of α."""
    each = alpha_share(alpha / len(tails), scores.null is not None)
    at = threshold_counts(scores, tails, each)
    miss = misses(scores.count, delta, each)
    values = _equation_1(miss, at.hits, at.log_alarm, _log_rest(at.log_alarm, delta))
    best = np.argmax(values, axis=1)[:, np.newaxis]
    value = np.take_along_axis(values, best, axis=1)[:, 0]
    thresholds = np.take_along_axis(at.thresholds, best, axis=1)[:, 0]
    return np.maximum(value, 0.0), np.where(value > 0.0, thresholds, math.nan)


def fixed_threshold(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the bound at the one threshold where the null's tail is 1/√(k + 1)."""
    return best_of_thresholds(scores, np.full(1, 1.0 / math.sqrt(scores.count + 1.0)), delta, alpha)


def bonferroni(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the best bound over thresholds where the null's tail is 1/2, 1/4, …, each at its share of α."""
    tails: Array = 0.5 ** np.arange(1.0, _GRID + 1.0)
    if scores.unobserved is not None:
        tails = tails[tails * scores.null_count >= 1.0] if scores.null_count > 1 else tails[:1]
    return best_of_thresholds(scores, tails, delta, alpha)


@dataclass(frozen=True)
class SplitCounts:
    """Counts of one half of the scores at the threshold that is best for the other half."""

    half: ScoreSample  # The half that is counted
    thresholds: Array  # Shape (audits,), NaN where there is none
    # hits, alarms: observed and unobserved scores at or above the thresholds; no alarms with an exact null.
    hits: NDArray[np.int64]
    alarms: NDArray[np.int64]
    log_tails: Array  # Log of the exact null's tail at the thresholds; empty with unobserved scores


def split_counts(scores: ScoreSample, delta: float, alpha: float) -> SplitCounts:
    """Choose thresholds on one half of the scores and count on the other."""
    first, second = _halves(scores)
    if first is None:
        thresholds = np.full(len(scores.observed), math.nan)
    else:
        each = alpha_share(alpha, scores.null is not None)
        alarm = None if scores.null is not None else alarms(first.null_count, delta, each)
        _, thresholds = sweep(first, misses(first.count, delta, each), alarm, delta)
    # A missing threshold may be any number, as its counts are not used.
    at = np.nan_to_num(thresholds)
    empty: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    return SplitCounts(
        second,
        thresholds,
        _above(second.observed, at),
        empty if second.unobserved is None else _above(second.unobserved, at),
        np.empty(0) if scores.null is None else scores.null.log_tail(at),
    )


def _above(ordered: Array, thresholds: Array) -> NDArray[np.int64]:
    below = [np.searchsorted(row, at) for row, at in zip(ordered, thresholds, strict=True)]
    above: NDArray[np.int64] = ordered.shape[1] - np.array(below, dtype=np.int64)
    return above


def _equation_1(miss: Rates, hits: NDArray[np.int64], log_alarm: Array, log_quiet: Array) -> Array:
    """Return the larger of both values, −∞ where neither has a positive numerator."""
    # A false alarm rate of 0 with a numerator of 0 gives NaN, which is no value.
    with np.errstate(invalid="ignore"):
        values = np.fmax(miss.log_rest[hits] - log_alarm, log_quiet - miss.log_rate[hits])
    return np.asarray(np.where(np.isnan(values), -math.inf, values))


def _log_rest(log_rate: Array, delta: float) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(1.0 - delta - np.exp(log_rate), 0.0)))


def _halves(scores: ScoreSample) -> tuple[ScoreSample | None, ScoreSample]:
    """Split the scores in the order that does not depend on them; the first half is None if it would be empty."""
    observed, unobserved = scores.shuffled()
    middle = scores.count // 2
    null_middle = scores.null_count // 2
    if middle == 0 or (unobserved is not None and null_middle == 0):
        return None, scores

    def part(rows: slice, null_rows: slice) -> ScoreSample:
        seen = np.sort(observed[:, rows], axis=1)
        unseen = None if unobserved is None else np.sort(unobserved[:, null_rows], axis=1)
        return ScoreSample(seen, unseen, lambda: (seen, unseen), scores.null, scores.inclusion, scores.independent)

    return part(slice(middle), slice(null_middle)), part(slice(middle, None), slice(null_middle, None))


METHODS = (
    Method(
        "band",
        "declared ranks, all at once: a band of equal local levels, or precedence tests for unobserved scores",
        simultaneous,
        ("independent scores",),
        if_independent,
        ("1", "2", "2a"),
    ),
    Method(
        "fixed-threshold",
        "Clopper–Pearson at one threshold, where the null's tail is 1/√(k + 1)",
        fixed_threshold,
        ("independent scores",),
        if_independent,
        ("1",),
    ),
    Method(
        "bonferroni",
        f"Clopper–Pearson at up to {_GRID} declared thresholds, each at its share of α",
        bonferroni,
        ("independent scores",),
        if_independent,
        ("1",),
    ),
)
