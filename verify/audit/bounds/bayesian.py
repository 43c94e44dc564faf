"""The Bayesian interval of ε: posterior probabilities, not confidence.

Source: Zanella-Béguelin and others (arXiv 2206.05199, ICML 2023). Both rates of error have independent Jeffreys priors.
ε is the least for which they lie in the region that (ε, δ)-privacy allows (Kairouz, Oh and Viswanath 2015). An end is
right to 1e-10 at a confidence of 99.9% or less.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy import optimize, special

from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.bounds.lower_bound import BoundKind, Method, ScoreSample, never
from canaryproof.verify.audit.bounds.thresholds import split_counts

# Nodes on each piece of the quadrature over one rate; the other's integral is its distribution function.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Quantiles at which the quadrature is cut: between two of them a posterior's distribution function is smooth.
_CUTS = np.array([1e-17, 1e-13, 1e-9, 1e-5, 0.01, 0.15, 0.5])
# No number of scores can show as large an ε; rates of error there are still normal numbers.
_LARGEST = 600.0
# Absolute error of the quantile.
_CLOSE = 1e-12
# The threshold is that of the best bound at this α, so that both ends belong to one threshold.
_CHOICE = 0.05


@dataclass(frozen=True)
class Rate:
    """A rate of error's posterior, Beta(wrong + ½, right + ½)."""

    wrong: int
    right: int

    @property
    def parameters(self) -> tuple[float, float]:
        """The Beta law's parameters."""
        return self.wrong + 0.5, self.right + 0.5

    @cached_property
    def complement(self) -> "Rate":
        """The posterior of 1 less the rate."""
        return Rate(self.right, self.wrong)

    @cached_property
    def cuts(self) -> Array:
        """Quantiles, in increasing order."""
        low, high = special.betaincinv(*self.parameters, _CUTS), special.betainccinv(*self.parameters, _CUTS[-2::-1])
        return np.concatenate([low, high])

    def below(self, rate: Array) -> Array:
        """Return the probability of a smaller rate."""
        return np.asarray(special.betainc(*self.parameters, rate))


def allowed_range(rate: Array, epsilon: float, delta: float) -> tuple[Array, Array]:
    """Return the range that (ε, δ)-privacy allows for one rate of error, given the other."""
    up, down = math.exp(min(epsilon, 700.0)), math.exp(-epsilon)
    low = np.maximum(0.0, np.maximum(1.0 - delta - up * rate, down * (1.0 - delta - rate)))
    high = np.minimum(1.0, np.minimum(delta + up * (1.0 - rate), 1.0 + down * (delta - rate)))
    return low, high


def exceedance(fnr: Rate, fpr: Rate, epsilon: float, delta: float) -> float:
    """Return the posterior probability that ε is above ``epsilon``.

    The rates then lie below the region that privacy allows, or above it; turning both rates maps one case to the other.
    The region's boundary has its kink where both rates are (1 − δ)/(1 + e^ε); each side of the kink is one integral.
    """
    return math.fsum(
        _below_kink(rate, other, epsilon, delta, corner)
        for pair in ((fnr, fpr), (fnr.complement, fpr.complement))
        for rate, other, corner in ((*pair, True), (*pair[::-1], False))
    )


def _below_kink(first: Rate, second: Rate, epsilon: float, delta: float, corner: bool) -> float:
    """Return P(the first rate is left of the kink, the second below the boundary).

    Without ``corner``, the part in which the second rate is below the kink, too, is left out.
    """
    up = math.exp(epsilon)
    kink = (1.0 - delta) / (1.0 + up)
    # The rate has no probability outside its outermost cuts.
    low, high = first.cuts[0], min(kink, first.cuts[-1])
    if high <= low:
        return 0.0
    # The posterior's density has no singularity in the arc sine of the rate's square root.
    edges = np.concatenate([[low, high], first.cuts, (1.0 - delta - second.cuts) / up])
    angles = np.arcsin(np.sqrt(np.unique(edges[(edges >= low) & (edges <= high)])))
    half = 0.5 * np.diff(angles)[:, np.newaxis]
    angle = angles[:-1, np.newaxis] + half * (1.0 + _NODES)
    rate = np.sin(angle) ** 2
    # It loads for long, and its public ``pdf`` checks its arguments for four times as long.
    from scipy import stats

    density = stats.beta._pdf(rate, *first.parameters) * np.sin(2.0 * angle)
    inside = second.below(np.maximum(1.0 - delta - up * rate, 0.0)) - (
        0.0 if corner else second.below(np.asarray(kink))
    )
    return float(np.sum(half * _WEIGHTS * density * inside))


def exceedance_at_tail(fnr: Rate, tail: float, epsilon: float, delta: float) -> float:
    """Return the posterior probability that ε is above ``epsilon``, for a known false alarm rate ``tail``."""
    low, high = allowed_range(np.asarray(tail), epsilon, delta)
    return float(fnr.below(low) + fnr.complement.below(1.0 - high))


def quantile(fnr: Rate, fpr: Rate, delta: float, above: float) -> float:
    """Return the ε that is exceeded with a posterior probability."""
    return _least(lambda epsilon: above - exceedance(fnr, fpr, epsilon, delta))


def _quantile(scores: ScoreSample, delta: float, above: float) -> tuple[Array, Array]:
    """Return the ε that is exceeded with a posterior probability, by counts at a threshold from the other half."""
    counts = split_counts(scores, delta, _CHOICE)
    count, null_count = counts.half.count, counts.half.null_count
    values = np.zeros(len(counts.hits))
    for a, hits in enumerate(counts.hits):
        if math.isnan(counts.thresholds[a]):
            continue
        fnr = Rate(count - int(hits), int(hits))
        if scores.null is None:
            alarms = int(counts.alarms[a])
            values[a] = quantile(fnr, Rate(alarms, null_count - alarms), delta, above)
        else:
            known = partial(exceedance_at_tail, fnr, math.exp(counts.log_tails[a]), delta=delta)
            values[a] = _least(lambda epsilon, known=known: above - known(epsilon))  # type: ignore[misc]
    return values, np.where(values > 0.0, counts.thresholds, math.nan)


def lower_ends(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the lower ends of the equal-tailed intervals."""
    return _quantile(scores, delta, 1.0 - 0.5 * alpha)


def upper_ends(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the upper ends of the equal-tailed intervals."""
    return _quantile(scores, delta, 0.5 * alpha)


def _least(shortage: Callable[[float], float]) -> float:
    """Return the least ε at which a rising function is not negative."""
    if shortage(0.0) >= 0.0:
        return 0.0
    high = 1.0
    while shortage(high) < 0.0:
        high *= 2.0
        if high > _LARGEST:
            return math.inf
    return float(optimize.brentq(shortage, 0.0, high, xtol=_CLOSE))


METHODS = (
    Method(
        "bayesian",
        "Zanella-Béguelin et al., arXiv 2206.05199: equal-tailed posterior interval",
        lower_ends,
        ("Jeffreys' prior on the rates of error", "independent scores", "threshold from the other half of the scores"),
        never,
        ("7",),
        BoundKind.POSTERIOR,
        upper=upper_ends,
    ),
)
