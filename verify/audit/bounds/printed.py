"""Bounds as in print and in their authors' public code, for reproduction; they do not keep their confidence.

All take the limits of both rates at full α, and the threshold that is best for the same scores.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from canaryproof.kernels import binomial
from canaryproof.kernels.arrays import Array, Ints
from canaryproof.kernels.binomial import Method
from canaryproof.verify.audit.bounds.guesses import pooled_order
from canaryproof.verify.audit.bounds.lower_bound import Method as Bound
from canaryproof.verify.audit.bounds.lower_bound import ScoreSample, never
from canaryproof.verify.audit.bounds.thresholds import Rates, alarms, misses, rates, sweep


def best_threshold(scores: ScoreSample, delta: float, alpha: float, method: Method) -> tuple[Array, Array]:
    """Return the largest value of Equation (1) for one-sided limits of both rates, each at 1 − α.

    Andrew et al. (arXiv 2302.03098), Section 5.1, and the public code of the paper (google-research/federated,
    ``one_shot_epe``), which also counts equal scores as if they were distinct.
    """
    alarm = None if scores.unobserved is None else alarms(scores.null_count, delta, alpha, method)
    return sweep(scores, misses(scores.count, delta, alpha, method), alarm, delta, by_value=False)


def jagielski(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the bound at the best threshold, with Clopper and Pearson's limits."""
    return best_threshold(scores, delta, alpha, "clopper-pearson")


def andrew(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the bound at the best threshold, with Jeffreys' limits."""
    return best_threshold(scores, delta, alpha, "jeffreys")


def canife(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the lower limit of CANIFE's per-round ε̂ at the threshold of the largest ε̂ that is finite or without error.

    Maddock et al. (arXiv 2210.02912), Section 2.2 and Appendix C.1: Clopper and Pearson's two-sided limits at 1 − α.
    CANIFE does not cut the bound at 0; this function does.
    """
    assert scores.unobserved is not None
    _, thresholds = sweep(scores, _rate_table(scores.count, delta), _rate_table(scores.null_count, delta, False), delta)
    # Without any error ε̂ is infinite, the largest value.
    lowest = scores.observed[:, 0]
    thresholds = np.where(lowest > scores.unobserved[:, -1], lowest, thresholds)
    missed, quiet = (
        np.array([np.searchsorted(row, t) for row, t in zip(rows, thresholds, strict=True)])
        for rows in (scores.observed, scores.unobserved)
    )
    return _limits(scores, delta, alpha, scores.null_count - quiet, missed, thresholds)


def canife_code(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the same limit at the threshold of the largest accuracy, as in CANIFE's public code.

    Scores above the threshold, which is one of the scores, are guessed to have taken part. Among equal accuracies the
    highest threshold counts (``canary_analyser.py`` of ``facebookresearch/canife``, and
    ``facebookresearch/privacy_lint``). Among equal scores unobserved ones come first, as in all bounds here.
    """
    assert scores.unobserved is not None
    pooled, wrong = pooled_order(scores.observed, scores.unobserved)
    # The threshold is one of the scores, so that at least one score is no guess.
    guesses = np.arange(pooled.shape[1])
    best = np.argmax(guesses - 2 * wrong[:, :-1], axis=1)
    rows = np.arange(len(pooled))
    thresholds = np.where(best > 0, pooled[rows, np.maximum(best - 1, 0)], math.nan)
    false = wrong[rows, best]
    return _limits(scores, delta, alpha, false, scores.count - best + false, thresholds)


def _limits(
    scores: ScoreSample, delta: float, alpha: float, false: Ints, missed: Ints, thresholds: Array
) -> tuple[Array, Array]:
    limits = at_counts(false, missed, scores.null_count, scores.count, delta, alpha)
    values = np.where(np.isnan(thresholds), 0.0, np.maximum(limits, 0.0))
    return values, np.where(values > 0.0, thresholds, math.nan)


def _rate_table(count: int, delta: float, right: bool = True) -> Rates:
    """Tabulate counted rates of error by the number of scores on the right or on the wrong side of the threshold."""
    wrong = np.arange(count + 1) / count
    counted = rates(wrong[::-1] if right else wrong, 1.0 - (wrong[::-1] if right else wrong), delta)
    # With a count of zero in the denominator ε̂ is infinite, and left out.
    return Rates(np.where(np.isneginf(counted.log_rate), math.inf, counted.log_rate), counted.log_rest)


def at_counts(
    false_alarms: ArrayLike, missed: ArrayLike, null_count: int, count: int, delta: float, alpha: float = 0.05
) -> Array:
    """Return CANIFE's lower limits of ε̂ for counted errors; −∞ if neither value of Equation (1) is defined."""
    fpr = binomial.upper(false_alarms, null_count, 1.0 - 0.5 * alpha)
    fnr = binomial.upper(missed, count, 1.0 - 0.5 * alpha)
    ratios = np.maximum((1.0 - delta - fpr) / fnr, (1.0 - delta - fnr) / fpr)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(ratios, 0.0)))


_FIXED = "a threshold that is fixed in advance"
_BOTH = "half of α for each rate"

METHODS = (
    Bound(
        "jagielski",
        "Jagielski, Ullman, Oprea 2020, with Clopper–Pearson limits of both rates at full α",
        jagielski,
        (_FIXED, _BOTH),
        never,
        ("7",),
        printed=True,
    ),
    Bound(
        "andrew",
        "Andrew et al., arXiv 2302.03098, Section 5.1: Jeffreys limits",
        andrew,
        (_FIXED, _BOTH, "rates drawn from Jeffreys' prior"),
        never,
        ("7",),
        printed=True,
    ),
    Bound(
        "canife",
        "Maddock et al., arXiv 2210.02912, Appendix C.1: two-sided Clopper–Pearson limits at the best ε̂",
        canife,
        (_FIXED,),
        never,
        ("7",),
        printed=True,
        needs="unobserved",
    ),
    Bound(
        "canife-code",
        "the public code of Maddock et al.: two-sided Clopper–Pearson limits at the best accuracy",
        canife_code,
        (_FIXED,),
        never,
        ("7",),
        printed=True,
        needs="unobserved",
    ),
)
