"""Confidence limits of the two rates of error for every count."""

from functools import lru_cache

import numpy as np

from canaryproof.kernels import binomial
from canaryproof.kernels.binomial import Method
from canaryproof.verify.bounds.sweep import Rates, rates


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
