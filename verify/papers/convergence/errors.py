"""Errors of the estimators of ε: measured over many runs, and in the limit of Theorem 3.3."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from canaryproof.kernels.arrays import Array
from canaryproof.kernels.threshold_attack import threshold_epsilon
from canaryproof.proofs_check import consistency
from canaryproof.verify.audit.estimators.epsilon_estimators import (
    TEST_LEVEL,
    Estimate,
    adaptive_estimate,
    both_directions,
    fitted_estimate,
    pinned_distance,
    pinned_epsilon,
    pinned_estimate,
    threshold_estimate,
    variance_p_value,
)
from canaryproof.verify.audit.estimators.moments import Moments
from canaryproof.verify.papers.records.evidence import EstimatorMeasures

ESTIMATORS: dict[str, Callable[..., Estimate]] = {
    "adaptive": adaptive_estimate,
    "fitted": fitted_estimate,
    "pinned": pinned_estimate,
    "threshold": threshold_estimate,
}


def fitted_epsilon(moments: Moments, delta: float) -> Array:
    """Return fitted's ε̂ of many runs."""
    return both_directions(delta, moments.distance, moments.ratio)


def adaptive_epsilon(moments: Moments, delta: float) -> Array:
    """Return adaptive's ε̂ of many runs."""
    equal = variance_p_value(moments) >= TEST_LEVEL
    epsilon = np.empty(equal.shape)
    epsilon[equal] = pinned_epsilon(delta, pinned_distance(moments.of(equal)))
    epsilon[~equal] = fitted_epsilon(moments.of(~equal), delta)
    return epsilon


# ε̂ alone, without the interval.
POINT_ESTIMATES: dict[str, Callable[[Moments, float], Array]] = {
    "adaptive": adaptive_epsilon,
    "pinned": lambda moments, delta: pinned_epsilon(delta, pinned_distance(moments)),
    "fitted": fitted_epsilon,
    "threshold": lambda moments, delta: threshold_epsilon(delta, moments.distance, moments.ratio),
}


def measure(blocks: Sequence[Estimate], truth: float) -> EstimatorMeasures:
    """Measure bias, deviation, root mean square error and coverage of an estimator over many runs."""
    epsilon, low, high = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("epsilon", "low", "high")
    )
    error = epsilon - truth
    return EstimatorMeasures(
        runs=len(error),
        bias=float(error.mean()),
        deviation=float(epsilon.std(ddof=1)),
        root_mean_square_error=float(np.sqrt((error**2).mean())),
        coverage=float(((low <= truth) & (truth <= high)).mean()),
        below=float((truth < low).mean()),
        width=float((high - low).mean()),
    )


def limit_constant(name: str, delta: float, noise_multiplier: float) -> float:
    """Return what √k times the root mean square error tends to, for k → ∞ and k³ = o(d²).

    By ``proofs_check.consistency`` √k(ε̂ − ε) tends to aU + max(b₁V, b₂V), where an estimator uses the variance at all.
    ``adaptive`` does where its test rejects, that is, where |V|√2 exceeds the test's critical value.
    """
    slopes = consistency.slopes(delta, 1.0 / noise_multiplier)
    if name == "pinned":
        return slopes.mean
    critical = float(stats.norm.isf(0.5 * TEST_LEVEL)) if name == "adaptive" else 0.0
    # E[V²; V > c/√2] for V ~ N(0, 1/2).
    square = 0.5 * (critical * float(stats.norm.pdf(critical)) + float(stats.norm.sf(critical)))
    return math.sqrt(slopes.mean**2 + square * (slopes.forward**2 + slopes.reverse**2))
