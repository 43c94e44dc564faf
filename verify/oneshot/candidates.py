"""Estimators that were measured against the default and not adopted.

``canaryproof verify gaussian`` measures their bias, deviation and coverage beside the others': see
``reports/published``.
"""

import numpy as np
from scipy import stats

from canaryproof.verify.oneshot.estimators import (
    TEST_LEVEL,
    Estimate,
    both_directions,
    fitted,
    log_ratio_error,
    propagate,
)
from canaryproof.verify.oneshot.moments import Moments


def shrunk(moments: Moments, delta: float, confidence: float = 0.95) -> Estimate:
    """``fitted`` with the deviation shrunk toward the null's by the non-negative garrote; arguments as for ``fitted``.

    With z the log ratio in standard errors, it is multiplied by max(0, 1 − z*²/z²), z* the critical value of the test
    in ``adaptive``: the continuous form of that test. The interval is that of ``fitted``.
    """
    log_ratio = np.log(moments.ratio)
    critical = stats.norm.isf(0.5 * TEST_LEVEL) * log_ratio_error(moments)
    with np.errstate(divide="ignore"):
        weight = np.maximum(0.0, 1.0 - (critical / log_ratio) ** 2)
    kept = Moments(moments.distance, np.exp(weight * log_ratio), moments.count, moments.null_count)
    whole = fitted(moments, delta, confidence)
    _, spread = propagate(both_directions, kept, delta)
    return Estimate(both_directions(delta, kept.distance, kept.ratio), spread, whole.low, whole.high)


def corrected(moments: Moments, delta: float, confidence: float = 0.95) -> Estimate:
    """``fitted`` less its bias under the fitted model, not below 0; arguments as for ``fitted``."""
    whole = fitted(moments, delta, confidence)
    mean, _ = propagate(both_directions, moments, delta)
    return Estimate(np.maximum(0.0, 2.0 * whole.epsilon - mean), whole.standard_error, whole.low, whole.high)
