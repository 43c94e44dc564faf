"""Valid bounds at thresholds that the scores they are counted from have no part in: one, several, or from a split.

With unobserved scores a threshold is one of them, by its rank: just above the r-th largest of k₀ the false alarm rate
is at most the r-th of k₀ uniform order statistics in law, whose quantile limits it.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels import binomial
from canaryproof.verify.bounds.lower_bound import Method, Scores, if_independent
from canaryproof.verify.bounds.sweep import Rates, alarms, misses, shared, sweep

Array = NDArray[np.float64]

# Thresholds of Bonferroni's bound: where the null's tail is 1/2, 1/4, …
_GRID = 20


@dataclass(frozen=True)
class Places:
    """Thresholds, with what is known of the false alarm rates there."""

    thresholds: Array  # Thresholds, shape (audits, places)
    hits: NDArray[np.int64]  # Number of observed scores at or above them, the same shape
    log_alarm: Array  # Log of the rates' upper limits, shape (places,)


def places(scores: Scores, tails: Array, alpha: float) -> Places:
    """Put thresholds where the null's tail is about as given, with 1 − α limits of the rates that are estimated."""
    observed = scores.observed
    if scores.null is not None:
        row = scores.null.place(np.log(tails))
        thresholds = np.broadcast_to(row, (len(observed), len(row)))
        log_alarm, side = scores.null.log_tail(row), "left"
    else:
        assert scores.unobserved is not None
        ranks = np.clip(np.rint(tails * scores.null_count), 1, scores.null_count).astype(np.int64)
        thresholds = scores.unobserved[:, scores.null_count - ranks]
        # Equal scores are no hits: only above the threshold is the false alarm rate limited.
        log_alarm, side = np.log(binomial.upper(ranks - 1, scores.null_count, 1.0 - alpha)), "right"
    below = [np.searchsorted(row, at, side=side) for row, at in zip(observed, thresholds, strict=True)]  # type: ignore[call-overload]
    return Places(thresholds, scores.count - np.array(below, dtype=np.int64), log_alarm)


def at_places(scores: Scores, tails: Array, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the best bound over thresholds where the null's tail is as given, each at the same share of α."""
    each = shared(alpha / len(tails), scores.null is not None)
    at = places(scores, tails, each)
    miss = misses(scores.count, delta, each)
    values = _equation_1(miss, at.hits, at.log_alarm, _log_rest(at.log_alarm, delta))
    best = np.argmax(values, axis=1)[:, np.newaxis]
    value = np.take_along_axis(values, best, axis=1)[:, 0]
    found = np.take_along_axis(at.thresholds, best, axis=1)[:, 0]
    return np.maximum(value, 0.0), np.where(value > 0.0, found, math.nan)


def fixed(scores: Scores, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the bound at the one threshold where the null's tail is 1/√(k + 1)."""
    return at_places(scores, np.full(1, 1.0 / math.sqrt(scores.count + 1.0)), delta, alpha)


def bonferroni(scores: Scores, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the best bound over thresholds where the null's tail is 1/2, 1/4, …, each at its share of α."""
    tails: Array = 0.5 ** np.arange(1.0, _GRID + 1.0)
    if scores.unobserved is not None:
        tails = tails[tails * scores.null_count >= 1.0] if scores.null_count > 1 else tails[:1]
    return at_places(scores, tails, delta, alpha)


@dataclass(frozen=True)
class SplitCounts:
    """What one half of the scores counts at the threshold that is best for the other half."""

    half: Scores  # The half that counts
    thresholds: Array  # Thresholds, shape (audits,), NaN where there is none
    # hits, alarms: observed and unobserved scores at or above them, the same shape; no alarms beside an exact null.
    hits: NDArray[np.int64]
    alarms: NDArray[np.int64]
    log_tails: Array  # Log of the exact null's tail there; empty beside unobserved scores


def split_counts(scores: Scores, delta: float, alpha: float) -> SplitCounts:
    """Choose thresholds on one half of the scores and count on the other."""
    first, second = _halves(scores)
    if first is None:
        thresholds = np.full(len(scores.observed), math.nan)
    else:
        each = shared(alpha, scores.null is not None)
        alarm = None if scores.null is not None else alarms(first.null_count, delta, each)
        _, thresholds = sweep(first, misses(first.count, delta, each), alarm, delta)
    # Where there is no threshold any will do.
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


def split(scores: Scores, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the bound of one half of the scores at the threshold that is best for the other half."""
    counts = split_counts(scores, delta, alpha)
    each = shared(alpha, scores.null is not None)
    miss = misses(counts.half.count, delta, each)
    if scores.null is not None:
        log_alarm = counts.log_tails
        log_quiet = _log_rest(log_alarm, delta)
    else:
        alarm = alarms(counts.half.null_count, delta, each)
        log_alarm, log_quiet = alarm.log_rate[counts.alarms], alarm.log_rest[counts.alarms]
    values = _equation_1(miss, counts.hits, log_alarm, log_quiet)
    good = (values > 0.0) & ~np.isnan(counts.thresholds)
    return np.where(good, values, 0.0), np.where(good, counts.thresholds, math.nan)


def _equation_1(miss: Rates, hits: NDArray[np.int64], log_alarm: Array, log_quiet: Array) -> Array:
    """Return the larger of both values, −∞ where neither has a positive numerator."""
    # A null that never raises an alarm beside a numerator of 0 gives no value.
    with np.errstate(invalid="ignore"):
        values = np.fmax(miss.log_rest[hits] - log_alarm, log_quiet - miss.log_rate[hits])
    return np.asarray(np.where(np.isnan(values), -math.inf, values))


def _log_rest(log_rate: Array, delta: float) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(1.0 - delta - np.exp(log_rate), 0.0)))


def _halves(scores: Scores) -> tuple[Scores | None, Scores]:
    """Split the scores in the order that does not depend on them; the first half is None if it would be empty."""
    observed, unobserved = scores.shuffled
    middle = scores.count // 2
    null_middle = scores.null_count // 2
    if middle == 0 or (unobserved is not None and null_middle == 0):
        return None, scores

    def part(rows: slice, null_rows: slice) -> Scores:
        seen = np.sort(observed[:, rows], axis=1)
        unseen = None if unobserved is None else np.sort(unobserved[:, null_rows], axis=1)
        return Scores(seen, unseen, (seen, unseen), scores.null, scores.inclusion, scores.independent)

    return part(slice(middle), slice(null_middle)), part(slice(middle, None), slice(null_middle, None))


METHODS = (
    Method(
        "fixed-threshold",
        "Clopper–Pearson at one threshold, where the null's tail is 1/√(k + 1)",
        fixed,
        ("independent scores",),
        if_independent,
    ),
    Method(
        "split",
        "Clopper–Pearson on half of the scores, at the threshold that is best for the other half",
        split,
        ("independent scores",),
        if_independent,
    ),
    Method(
        "bonferroni",
        f"Clopper–Pearson at up to {_GRID} declared thresholds, each at its share of α",
        bonferroni,
        ("independent scores",),
        if_independent,
    ),
)
