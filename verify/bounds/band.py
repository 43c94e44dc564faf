"""A valid bound at the best of all thresholds: confidence bands that hold for all of them at once."""

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.bounds.crossing import band
from canaryproof.verify.bounds.limits import shared
from canaryproof.verify.bounds.lower_bound import Method, if_independent
from canaryproof.verify.bounds.scores import Scores
from canaryproof.verify.bounds.sweep import Rates, rates, sweep

Array = NDArray[np.float64]


def _upper(count: int, delta: float, alpha: float) -> Rates:
    """Upper limits of the rate of scores on the wrong side, by number of scores on the right side."""
    hits = band(count, alpha)
    return rates(1.0 - hits, hits, delta)


def simultaneous(scores: Scores, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the largest value of Equation (1) on bands of equal local levels (Berk and Jones 1979).

    Parameters
    ----------
    scores
        The scores.
    delta, alpha
        δ and α. With an exact null only FNR is estimated, and its band has all of α.

    Returns
    -------
    Bounds and thresholds.
    """
    each = shared(alpha, scores.null is not None)
    alarm = None
    if scores.unobserved is not None:
        # By number of false alarms: the others are on the right side.
        quiet = _upper(scores.null_count, delta, each)
        alarm = Rates(quiet.log_rate[::-1].copy(), quiet.log_rest[::-1].copy())
    return sweep(scores, _upper(scores.count, delta, each), alarm, delta)


METHODS = (
    Method(
        "band",
        "simultaneous bands of equal local levels, exact at all thresholds at once",
        simultaneous,
        ("independent scores",),
        if_independent,
    ),
)
