"""The largest value of Equation (1) over thresholds, for limits of both rates of error that depend on counts alone.

Andrew et al. (arXiv 2302.03098), Equation (1): ε ≥ log((1 − δ − FNR)/FPR) and ε ≥ log((1 − δ − FPR)/FNR). Both rise
when a rate falls, so that upper limits of the rates give lower bounds of ε.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels import binomial
from canaryproof.kernels.binomial import Method
from canaryproof.verify.bounds.lower_bound import Scores

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rates:
    """Limits of a rate and of its complement, as logarithms by count of scores at or above the threshold."""

    log_rate: Array  # Log of the upper limit of the rate of error
    log_rest: Array  # Log of 1 − δ − that limit, −∞ where it is not positive


def rates(upper: ArrayLike, complement: ArrayLike, delta: float) -> Rates:
    """Tabulate upper limits of a rate, and of 1 − δ − them by the complement's lower limits, with all digits."""
    with np.errstate(divide="ignore"):
        return Rates(np.log(upper), np.log(np.maximum(np.asarray(complement) - delta, 0.0)))


@njit(cache=True, nogil=True)
def _exact(
    observed: Array, log_tails: Array, log_miss: Array, log_hit: Array, delta: float, by_value: bool
) -> tuple[Array, Array]:
    audits, count = observed.shape
    values, thresholds = np.zeros(audits), np.full(audits, math.nan)
    for a in range(audits):
        hits = count
        for i in range(count):
            # Of equal scores all are at or above the threshold.
            if not by_value or i == 0 or observed[a, i] > observed[a, i - 1]:
                hits = count - i
            log_tail = log_tails[a, i]
            rest = 1.0 - delta - math.exp(log_tail)
            value = log_hit[hits] - log_tail
            if rest > 0.0:
                value = max(value, math.log(rest) - log_miss[hits])
            if value > values[a]:
                values[a], thresholds[a] = value, observed[a, i]
    return values, thresholds


@njit(cache=True, nogil=True)
def _sampled(
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
            place = observed[a, i]
            if not by_value or place > last:
                value = max(
                    log_hit[count - i] - log_alarm[null_count - j], log_quiet[null_count - j] - log_miss[count - i]
                )
                if value > values[a]:
                    values[a], thresholds[a] = value, place
            last = place
            i += 1
    return values, thresholds


def sweep(
    scores: Scores, miss: Rates, alarm: Rates | None, delta: float, *, by_value: bool = True
) -> tuple[Array, Array]:
    """Find the largest value over all thresholds that are observed scores, and where; 0 and NaN where none is positive.

    Limits of FNR and FPR go by the number of observed and unobserved scores at or above the threshold; ``alarm`` is
    None for an exact null. Without ``by_value`` the threshold lies between equal scores, as if they could be told
    apart, at the attacker's advantage: so the authors' code counts.
    """
    if scores.null is not None:
        log_tails = scores.null.log_tail(scores.observed)
        return _exact(scores.observed, log_tails, miss.log_rate, miss.log_rest, delta, by_value)
    assert scores.unobserved is not None
    assert alarm is not None
    return _sampled(
        scores.observed,
        scores.unobserved,
        miss.log_rate,
        miss.log_rest,
        alarm.log_rate,
        alarm.log_rest,
        by_value,
    )


# Confidence limits of the two rates of error for every count.


@lru_cache(maxsize=128)
def misses(count: int, delta: float, alpha: float, method: Method = "clopper-pearson") -> Rates:
    """Upper limits of FNR at confidence 1 − α, by number of the ``count`` observed scores that are hits."""
    hits = np.arange(count + 1)
    return rates(
        binomial.upper(count - hits, count, 1.0 - alpha, method),
        binomial.lower(hits, count, 1.0 - alpha, method),
        delta,
    )


@lru_cache(maxsize=128)
def alarms(count: int, delta: float, alpha: float, method: Method = "clopper-pearson") -> Rates:
    """Upper limits of FPR at confidence 1 − α, by number of the ``count`` unobserved scores that are false alarms."""
    false = np.arange(count + 1)
    return rates(
        binomial.upper(false, count, 1.0 - alpha, method),
        binomial.lower(count - false, count, 1.0 - alpha, method),
        delta,
    )


def shared(alpha: float, exact: bool) -> float:
    """Return the share of α for each rate: all of it where only FNR is estimated, half of it otherwise."""
    return alpha if exact else 0.5 * alpha
