"""The Bayesian interval of ε: posterior probabilities, not confidence.

Zanella-Béguelin et al. (arXiv 2206.05199, ICML 2023): both rates of error have Jeffreys' prior, independently, and ε is
the least for which they lie in the region that (ε, δ)-privacy allows (Kairouz, Oh and Viswanath 2015).
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from canaryproof.verify.bounds.lower_bound import BoundKind, Method, ScoreSample, never
from canaryproof.verify.bounds.thresholds import split_counts

Array = NDArray[np.float64]

# Nodes of the quadrature over one rate; the other's integral is its distribution function.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(100)
_LARGEST = 1e3
# The threshold is that of the best bound at this α, so that both ends are of the same one.
_CHOICE = 0.05


def allowed(rate: Array, epsilon: float, delta: float) -> tuple[Array, Array]:
    """Return the range of the other rate of error that (ε, δ)-privacy allows beside one rate."""
    up, down = math.exp(min(epsilon, 700.0)), math.exp(-epsilon)
    low = np.maximum(0.0, np.maximum(1.0 - delta - up * rate, down * (1.0 - delta - rate)))
    high = np.minimum(1.0, np.minimum(delta + up * (1.0 - rate), 1.0 + down * (delta - rate)))
    return low, high


def probability(rate: Array, alarms: int, null_count: int, epsilon: float, delta: float) -> float:
    """Return the posterior probability that ε is at most ``epsilon``, for false alarms among unobserved scores.

    ``rate`` has the quantiles of FNR's posterior at the nodes of the quadrature.
    """
    low, high = allowed(rate, epsilon, delta)
    a, b = alarms + 0.5, null_count - alarms + 0.5
    inside = np.maximum(special.betainc(a, b, high) - special.betainc(a, b, low), 0.0)
    return float(0.5 * _WEIGHTS @ inside)


def probability_known(misses: int, count: int, tail: float, epsilon: float, delta: float) -> float:
    """Return the same where the false alarm rate ``tail`` is known exactly, for misses among observed scores."""
    low, high = allowed(np.asarray(tail), epsilon, delta)
    a, b = misses + 0.5, count - misses + 0.5
    return max(0.0, float(special.betainc(a, b, high) - special.betainc(a, b, low)))


@lru_cache(maxsize=10_000)
def _sampled_quantile(misses: int, count: int, alarms: int, null_count: int, delta: float, level: float) -> float:
    # In units of its own probability, the density of the one rate is 1.
    rate = special.betaincinv(misses + 0.5, count - misses + 0.5, 0.5 * (1.0 + _NODES))
    return _least(lambda epsilon: probability(rate, alarms, null_count, epsilon, delta) - level)


def _quantile(scores: ScoreSample, delta: float, level: float) -> tuple[Array, Array]:
    """ε at a posterior probability, for the counts of one half at the threshold of the other."""
    counts = split_counts(scores, delta, _CHOICE)
    count, null_count = counts.half.count, counts.half.null_count
    values = np.zeros(len(counts.hits))
    for a, hits in enumerate(counts.hits):
        if math.isnan(counts.thresholds[a]):
            continue
        misses = count - int(hits)
        if scores.null is None:
            values[a] = _sampled_quantile(misses, count, int(counts.alarms[a]), null_count, delta, level)
        else:
            known = partial(probability_known, misses, count, math.exp(counts.log_tails[a]), delta=delta)
            values[a] = _least(lambda epsilon, known=known: known(epsilon) - level)  # type: ignore[misc]
    return values, np.where(values > 0.0, counts.thresholds, math.nan)


def _least(shortage: Callable[[float], float]) -> float:
    """Return the least ε at which a rising function is not negative."""
    if shortage(0.0) >= 0.0:
        return 0.0
    high = 1.0
    while shortage(high) < 0.0:
        high *= 2.0
        if high > _LARGEST:
            return math.inf
    return float(optimize.brentq(shortage, 0.0, high, xtol=1e-10))


METHODS = (
    Method(
        "bayesian",
        "Zanella-Béguelin et al., arXiv 2206.05199: equal-tailed posterior interval",
        lambda scores, delta, alpha: _quantile(scores, delta, 0.5 * alpha),
        ("Jeffreys' prior on the rates of error", "independent scores", "threshold from the other half of the scores"),
        never,
        BoundKind.POSTERIOR,
        upper=lambda scores, delta, alpha: _quantile(scores, delta, 1.0 - 0.5 * alpha),
    ),
)
