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
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import Moments
from tests.faults.fault import Fault, Function

_ESTIMATORS = "canaryproof.verify.audit.estimators"
# Of the checks that call each function of the estimators, those that it matters to most.
_CALLED = {
    "both_directions": ("enclosures", "standard-errors"),
    "pinned_epsilon": ("closed-form", "enclosures"),
    "pinned_estimate": ("closed-form", "unobserved"),
    "pinned_distance": ("unobserved", "standard-errors"),
    "variance_p_value": ("closed-form", "unobserved", "choices"),
    "adaptive_estimate": ("choices",),
    "_from_pair": ("ranges", "choices"),
    "_distance_error": ("ranges", "standard-errors"),
    "log_ratio_error": ("standard-errors",),
    "norm_estimate": ("norm",),
    "propagate": ("quadrature", "standard-errors"),
    "_ratio_range": ("ranges",),
    "norm_distance": ("norm",),
    "_correlation": ("quadrature",),
    "adaptive_low": ("choices",),
    "_bonett": ("ranges",),
    "_ratio_limits": ("ranges",),
    "pinned_error": ("closed-form",),
}


def _moments(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    topic = {"from_dimension": "closed-form", "from_two_groups": "unobserved"}[function]
    checks = (f"estimators.inference.{topic}", "audit.scores")
    return Fault(f"moments.{name}", description, f"{_ESTIMATORS}.moments:{function}", make, checks)


def _estimator(name: str, description: str, function: str, make: Callable[[Function], Function], *more: str) -> Fault:
    checks = (*(f"estimators.inference.{topic}" for topic in _CALLED[function]), *more)
    return Fault(f"estimators.{name}", description, f"{_ESTIMATORS}.epsilon_estimators:{function}", make, checks)


def _threshold(name: str, description: str, make: Callable[[Function], Function]) -> Fault:
    checks = ("estimators.threshold-is-exact", "estimators.inference.enclosures")
    return Fault(
        f"threshold.{name}", description, "canaryproof.kernels.threshold_attack:threshold_epsilon", make, checks
    )


def _unbiased(moments: Moments) -> Moments:
    """Return moments with the divisor k − 1."""
    k = moments.count
    return dataclasses.replace(moments, ratio=moments.ratio * math.sqrt(k / (k - 1)))


def _student_by_normal(pinned: Function) -> Function:
    def faulty(moments: Moments, delta: float, confidence: float = 0.95) -> epsilon_estimators.Estimate:
        degrees = min(moments.count - 1.0, moments.count + moments.null_count - 2.0)
        reached = stats.norm.ppf(0.5 + 0.5 * confidence)
        found: epsilon_estimators.Estimate = pinned(moments, delta, 2.0 * float(stats.t.cdf(reached, degrees)) - 1.0)
        return found

    return faulty


def _swapped_rates(delta: float, distance: Any, ratio: Any) -> Any:
    """log((FPR − δ)/TPR), the best over a grid of thresholds."""
    hit, false = _rates(distance, ratio)
    with np.errstate(all="ignore"):
        return np.maximum(np.nanmax(np.log(np.maximum(false - delta, 1e-300) / hit), axis=-1), 0.0)


def _no_delta(delta: float, distance: Any, ratio: Any) -> Any:
    """log(TPR/FPR), the best over a grid of thresholds at which TPR > δ."""
    hit, false = _rates(distance, ratio)
    with np.errstate(all="ignore"):
        return np.max(np.log(hit / false), axis=-1, where=hit > delta, initial=0.0)


def _rates(distance: Any, ratio: Any) -> tuple[Any, Any]:
    m, s = np.abs(np.asarray(distance))[..., np.newaxis], np.asarray(ratio)[..., np.newaxis]
    a = np.linspace(-9.0, 9.0, 400)
    return stats.norm.sf((a - m) / s), stats.norm.sf(a)


def _swapped_choice(_: Function) -> Function:
    def faulty(moments: Moments, delta: float, confidence: float = 0.95) -> epsilon_estimators.Estimate:
        equal = epsilon_estimators.variance_p_value(moments) >= epsilon_estimators.TEST_LEVEL
        fitted, pinned = (
            f(moments, delta, confidence)
            for f in (epsilon_estimators.fitted_estimate, epsilon_estimators.pinned_estimate)
        )
        return epsilon_estimators.Estimate(
            np.where(equal, fitted.epsilon, pinned.epsilon),
            np.where(equal, fitted.low, pinned.low),
            fitted.high,
            lambda: np.where(equal, fitted.standard_error, pinned.standard_error),
        )

    return faulty


def _with(name: str, value: Any) -> Callable[[Function], Function]:
    """Give a name of the module another value while the function runs."""

    def make(function: Function) -> Function:
        def faulty(*arguments: Any, **options: Any) -> Any:
            kept = getattr(epsilon_estimators, name)
            setattr(epsilon_estimators, name, value)
            try:
                return function(*arguments, **options)
            finally:
                setattr(epsilon_estimators, name, kept)

        return faulty

    return make


def _few_nodes(propagate: Function) -> Function:
    """Five nodes for those of a piece."""
    nodes, weights = np.polynomial.legendre.leggauss(5)
    return _with("_RATIO_NODES", nodes)(_with("_RATIO_WEIGHTS", weights)(propagate))


def _without_null_skewness(moments: Moments) -> Moments:
    shape = moments.null_shape
    return (
        moments
        if shape is None
        else dataclasses.replace(moments, null_shape=dataclasses.replace(shape, skewness=0.0 * shape.skewness))
    )


FAULTS = (
    _moments("square-of-root", "d for √d", "from_dimension", lambda f: lambda observed, dim: f(observed, dim**2)),
    _moments(
        "ddof", "divisor k − 1 for k", "from_dimension", lambda f: lambda observed, dim: _unbiased(f(observed, dim))
    ),
    _moments(
        "sign",
        "null mean less observed mean",
        "from_two_groups",
        lambda f: lambda seen, unseen: (lambda m: dataclasses.replace(m, distance=-m.distance))(f(seen, unseen)),
    ),
    _moments(
        "own-deviation",
        "the observed cosines' deviation for the null's",
        "from_two_groups",
        lambda f: (
            lambda seen, unseen: (lambda m: dataclasses.replace(m, distance=m.distance / m.ratio))(f(seen, unseen))
        ),
    ),
    _moments(
        "swapped", "observed and unobserved swapped", "from_two_groups", lambda f: lambda seen, unseen: f(unseen, seen)
    ),
    _moments(
        "ddof-observed",
        "divisor k − 1 for k in one of two deviations",
        "from_two_groups",
        lambda f: lambda seen, unseen: _unbiased(f(seen, unseen)),
    ),
    _estimator(
        "forward-only",
        "one direction for the larger of both",
        "both_directions",
        lambda f: lambda delta, distance, ratio: two_gaussians.epsilon(delta, distance, ratio, 0.0, 1.0, "reverse"),
        "estimators.fitted-bias",
        "estimators.default-estimator",
    ),
    _estimator(
        "variance-for-deviation",
        "ratio² for the ratio",
        "both_directions",
        lambda f: lambda delta, distance, ratio: f(delta, distance, np.square(ratio)),
        "estimators.fitted-bias",
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
        "pinned_estimate",
        lambda f: lambda m, delta, c=0.95: f(m, delta, 2.0 * c - 1.0),
        "estimators.coverage.*",
    ),
    _estimator("normal-quantile", "the normal quantile for Student's", "pinned_estimate", _student_by_normal),
    _estimator(
        "joint-level",
        "√confidence for the confidence, as if two intervals had to hold",
        "pinned_estimate",
        lambda f: lambda m, delta, c=0.95: f(m, delta, math.sqrt(c)),
    ),
    _estimator(
        "not-pooled", "the null's deviation for the pooled one", "pinned_distance", lambda _: lambda m: m.distance
    ),
    _estimator("one-tail", "a one-sided p-value for the two-sided", "variance_p_value", lambda f: lambda m: 0.5 * f(m)),
    _estimator(
        "degrees",
        "a variance with the divisor k − 1 where the test takes one with k",
        "variance_p_value",
        lambda f: lambda m: f(_unbiased(m)),
    ),
    _estimator(
        "complement",
        "1 − p for the p-value p",
        "variance_p_value",
        lambda f: lambda m: 1.0 - f(m),
        "estimators.default-estimator",
    ),
    _estimator(
        "swapped-choice",
        "pinned and fitted swapped, but for the upper end",
        "adaptive_estimate",
        _swapped_choice,
        "audit.scores",
    ),
    _estimator(
        "each-not-joint",
        "each limit at the level that both have to keep",
        "_from_pair",
        lambda f: lambda e, m, delta, c: f(e, m, delta, c**2),
    ),
    _estimator(
        "no-rectangle",
        "the upper end by the normal quantile of the mean alone",
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
    _estimator("few-nodes", "5 nodes of quadrature for 12", "propagate", _few_nodes),
    _estimator(
        "no-jump",
        "the standard error of adaptive as if it were fitted",
        "propagate",
        lambda f: lambda pair, m, delta, pretest=False: f(pair, m, delta),
    ),
    _estimator(
        "shape-ignored",
        "limits of the ratio as if all scores were normal",
        "_ratio_range",
        lambda f: lambda m, tail: f(m.as_normal, tail),
    ),
    Fault(
        "estimators.norm-error",
        "√2 times the standard error",
        f"{_ESTIMATORS}.epsilon_estimators:norm_estimate",
        lambda f: (
            lambda *a: (lambda e: dataclasses.replace(e, spread=lambda: math.sqrt(2.0) * e.standard_error))(f(*a))
        ),
        ("estimators.inference.quadrature",),
    ),
    _estimator(
        "norm-tails",
        "lower and upper chi-square quantiles swapped",
        "norm_estimate",
        lambda f: lambda *a: (lambda e: dataclasses.replace(e, low=e.high, high=e.low))(f(*a)),
    ),
    _estimator(
        "norm-one-sided",
        "one-sided quantiles for two-sided",
        "norm_estimate",
        lambda f: lambda release, delta, c=0.95: f(release, delta, 2.0 * c - 1.0),
    ),
    _estimator(
        "norm-no-root",
        "1/‖ρ‖ for √d/‖ρ‖",
        "norm_distance",
        lambda f: lambda release: f(release) / math.sqrt(np.shape(release)[-1]),
    ),
    _estimator(
        "correlation",
        "the errors of distance and log ratio correlated with the opposite sign",
        "_correlation",
        lambda f: lambda m: -f(m),
    ),
    _estimator(
        "pretest-not-pooled",
        "where the test passes, the standard error takes the null's deviation for the pooled one",
        "propagate",
        _with("pinned_distance", lambda m: m.distance),
    ),
    _estimator("short-reach", "quadrature over 3 standard errors for 5", "propagate", _with("_REACH", 3.0)),
    _estimator(
        "low-alone",
        "the lower end alone goes by the normal law's test of the variances",
        "adaptive_low",
        _with("_has_equal_variances", lambda m: np.zeros(np.shape(m.ratio), dtype=np.bool_)),
    ),
    _estimator(
        "null-skewness",
        "skewness of the unobserved scores left out of the distance's error",
        "_distance_error",
        lambda f: lambda m: f(_without_null_skewness(m)),
    ),
    _estimator("bonett-tail", "both tails' level for one of Bonett's", "_bonett", lambda f: lambda m, t: f(m, 2.0 * t)),
    _estimator(
        "biased-limits",
        "limits of the ratio of unbiased deviations for one with divisor k",
        "_ratio_limits",
        lambda f: lambda m, tail: tuple(end * math.sqrt(epsilon_estimators._bias_correction(m)) for end in f(m, tail)),
    ),
    _estimator(
        "error-of-mean",
        "the deviation with divisor k over √k for √(k − 1)",
        "pinned_error",
        lambda f: lambda m: f(m) * math.sqrt(1.0 - 1.0 / m.count),
    ),
    _threshold("rates-swapped", "FPR and TPR swapped", lambda _: _swapped_rates),
    _threshold("delta", "δ not taken from the hits", lambda _: _no_delta),
    _threshold(
        "half-delta",
        "δ/2 for δ, as if two thresholds shared it",
        lambda f: lambda delta, distance, ratio: f(0.5 * delta, distance, ratio),
    ),
    _threshold(
        "variance",
        "ratio² for the ratio",
        lambda f: lambda delta, distance, ratio: f(delta, distance, np.square(ratio)),
    ),
)
