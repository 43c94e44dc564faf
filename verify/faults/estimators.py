"""Faults of the estimators, and their intervals."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from canaryproof.kernels import two_gaussians
from canaryproof.verify.faults.fault import Fault, Function
from canaryproof.verify.oneshot import estimators
from canaryproof.verify.oneshot.moments import Moments

_ONESHOT = "canaryproof.verify.oneshot"
# The checks that each function of the estimators matters to most.
_TOUCHED = {
    "both_directions": ("enclosures", "standard-errors"),
    "pinned_epsilon": ("closed-form", "enclosures"),
    "pinned": ("closed-form", "unobserved"),
    "pinned_distance": ("unobserved", "standard-errors"),
    "variance_p_value": ("closed-form", "unobserved", "choices"),
    "_from_pair": ("ranges", "choices"),
    "_distance_error": ("ranges", "standard-errors"),
    "log_ratio_error": ("standard-errors",),
    "norm": ("norm",),
    "norm_distance": ("norm",),
}


def _moments(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    checks = ("gaussian.inference.closed-form", "gaussian.inference.unobserved", "gaussian.audit.scores")
    return Fault(f"moments.{name}", description, f"{_ONESHOT}.moments:{function}", make, checks)


def _estimator(name: str, description: str, function: str, make: Callable[[Function], Function], *more: str) -> Fault:
    checks = (*(f"gaussian.inference.{topic}" for topic in _TOUCHED[function]), *more)
    return Fault(f"estimators.{name}", description, f"{_ONESHOT}.estimators:{function}", make, checks)


def _threshold(name: str, description: str, make: Callable[[Function], Function]) -> Fault:
    checks = ("gaussian.threshold-is-exact", "gaussian.inference.enclosures")
    return Fault(f"threshold.{name}", description, f"{_ONESHOT}.threshold_attack:threshold_epsilon", make, checks)


def _unbiased(moments: Moments) -> Moments:
    """Return moments with the divisor k − 1."""
    k = moments.count
    return dataclasses.replace(moments, ratio=moments.ratio * math.sqrt(k / (k - 1)))


def _student_by_normal(pinned: Function) -> Function:
    def faulty(moments: Moments, delta: float, confidence: float = 0.95) -> estimators.Estimate:
        degrees = min(moments.count - 1.0, moments.count + moments.null_count - 2.0)
        reached = stats.norm.ppf(0.5 + 0.5 * confidence)
        found: estimators.Estimate = pinned(moments, delta, 2.0 * float(stats.t.cdf(reached, degrees)) - 1.0)
        return found

    return faulty


def _swapped_rates(delta: float, distance: Any, ratio: Any) -> Any:
    """log((FPR − δ)/TPR), the best over a grid of thresholds."""
    m, s = np.abs(np.asarray(distance))[..., np.newaxis], np.asarray(ratio)[..., np.newaxis]
    a = np.linspace(-9.0, 9.0, 400)
    hit, false = stats.norm.sf((a - m) / s), stats.norm.sf(a)
    with np.errstate(all="ignore"):
        return np.maximum(np.nanmax(np.log(np.maximum(false - delta, 1e-300) / hit), axis=-1), 0.0)


FAULTS = (
    _moments("square-of-root", "d for √d", "from_dimension", lambda f: lambda observed, dim: f(observed, dim**2)),
    _moments(
        "ddof", "divisor k − 1 for k", "from_dimension", lambda f: lambda observed, dim: _unbiased(f(observed, dim))
    ),
    _moments(
        "sign",
        "null mean less observed mean",
        "from_unobserved",
        lambda f: lambda seen, unseen: (lambda m: dataclasses.replace(m, distance=-m.distance))(f(seen, unseen)),
    ),
    _moments(
        "own-deviation",
        "the observed cosines' deviation for the null's",
        "from_unobserved",
        lambda f: (
            lambda seen, unseen: (lambda m: dataclasses.replace(m, distance=m.distance / m.ratio))(f(seen, unseen))
        ),
    ),
    _moments(
        "swapped", "observed and unobserved swapped", "from_unobserved", lambda f: lambda seen, unseen: f(unseen, seen)
    ),
    _moments(
        "ddof-observed",
        "divisor k − 1 for k in one of two deviations",
        "from_unobserved",
        lambda f: lambda seen, unseen: _unbiased(f(seen, unseen)),
    ),
    _estimator(
        "forward-only",
        "one direction for the larger of both",
        "both_directions",
        lambda f: lambda delta, distance, ratio: two_gaussians.epsilon(delta, distance, ratio, 0.0, 1.0, "reverse"),
        "gaussian.fitted-bias",
        "gaussian.default-estimator",
    ),
    _estimator(
        "variance-for-deviation",
        "ratio² for the ratio",
        "both_directions",
        lambda f: lambda delta, distance, ratio: f(delta, distance, np.square(ratio)),
        "gaussian.fitted-bias",
    ),
    _estimator(
        "not-clipped",
        "|μ̂| for max(μ̂, 0)",
        "pinned_epsilon",
        lambda f: lambda delta, distance: f(delta, np.abs(distance)),
    ),
    _estimator(
        "one-sided",
        "a one-sided quantile for the two-sided",
        "pinned",
        lambda f: lambda m, delta, c=0.95: f(m, delta, 2.0 * c - 1.0),
        "gaussian.coverage.*",
    ),
    _estimator("normal-quantile", "the normal quantile for Student's", "pinned", _student_by_normal),
    _estimator(
        "too-wide",
        "an interval of twice the deviation",
        "pinned",
        lambda f: lambda m, delta, c=0.95: f(m, delta, math.sqrt(c)),
    ),
    _estimator(
        "not-pooled", "the null's deviation for the pooled one", "pinned_distance", lambda _: lambda m: m.distance
    ),
    _estimator("one-tail", "a one-sided p-value for the two-sided", "variance_p_value", lambda f: lambda m: 0.5 * f(m)),
    _estimator(
        "degrees",
        "divisor k for k − 1 in the test of variances",
        "variance_p_value",
        lambda f: lambda m: f(_unbiased(m)),
    ),
    _estimator(
        "swapped-choice",
        "pinned and fitted swapped in adaptive",
        "variance_p_value",
        lambda f: lambda m: 1.0 - f(m),
        "gaussian.default-estimator",
    ),
    _estimator(
        "each-not-joint",
        "each limit at the level that both have to keep",
        "_from_pair",
        lambda f: lambda e, m, delta, c: f(e, m, delta, c**2),
    ),
    _estimator(
        "no-rectangle",
        "the interval of the mean alone",
        "_from_pair",
        lambda f: (
            lambda e, m, delta, c: dataclasses.replace(
                f(e, m, delta, c),
                high=e(delta, np.abs(m.distance) + stats.norm.isf(0.5 - 0.5 * c) / math.sqrt(m.count), m.ratio),
            )
        ),
    ),
    _estimator(
        "variance-of-mean",
        "the error of the mean without 1/√k",
        "_distance_error",
        lambda f: lambda m: f(m) * math.sqrt(m.count),
    ),
    _estimator(
        "log-variance",
        "1/k for 1/(2k) in the variance of the log deviation",
        "log_ratio_error",
        lambda f: lambda m: math.sqrt(2.0) * f(m),
    ),
    _estimator(
        "norm-tails",
        "lower and upper chi-square quantiles swapped",
        "norm",
        lambda f: lambda *a: (lambda e: dataclasses.replace(e, low=e.high, high=e.low))(f(*a)),
    ),
    _estimator(
        "norm-one-sided",
        "one-sided quantiles for two-sided",
        "norm",
        lambda f: lambda release, delta, c=0.95: f(release, delta, 2.0 * c - 1.0),
    ),
    _estimator(
        "norm-no-root",
        "1/‖ρ‖ for √d/‖ρ‖",
        "norm_distance",
        lambda f: lambda release: f(release) / math.sqrt(np.shape(release)[-1]),
    ),
    _threshold("rates-swapped", "FPR and TPR swapped", lambda _: _swapped_rates),
    _threshold(
        "delta", "δ not taken from the hits", lambda f: lambda delta, distance, ratio: f(delta * 1e-3, distance, ratio)
    ),
    _threshold(
        "log-delta",
        "−log δ in place of δ",
        lambda f: lambda delta, distance, ratio: f(np.minimum(-0.01 * np.log(delta), 0.9), distance, ratio),
    ),
    _threshold(
        "variance",
        "ratio² for the ratio",
        lambda f: lambda delta, distance, ratio: f(delta, distance, np.square(ratio)),
    ),
)
