"""Bounds on μ, and on ε under the assumption that the mechanism's trade-off curve is Gaussian.

A mechanism is μ-GDP if no attack does better than telling N(0, 1) from N(μ, 1) (Dong, Roth and Su, JRSS B 2022). The
bounds on μ hold for any mechanism; those on ε at δ only if the curve is Gaussian.
"""

import math
from functools import lru_cache

import numpy as np
from scipy import optimize, special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.bounds.lower_bound import GAUSSIAN_CURVE, Method, ScoreSample, if_independent
from canaryproof.verify.audit.bounds.normal_ranks import largest_rejected_mu, least_level
from canaryproof.verify.audit.bounds.precedence import order_statistic
from canaryproof.verify.audit.bounds.thresholds import misses, null_ranks, threshold_counts

# Thresholds are declared by the null's tail; the best is where about half of the observed scores are hits.
_TAILS = np.array([0.5, 0.2, 0.05, 0.005])
# For a smaller μ, ε is 0 at every δ that is a float.
_SMALLEST_MU = 1e-40
# The largest μ that any number of scores in memory can reject; the absolute error of μ; the relative rounding error.
_LARGEST_MU, _CLOSE, _RELATIVE = 80.0, 1e-9, 1e-6
# Up to this many scores each has its own normal score; beyond, a few neighbours share one.
_MOST = 1_000_000


def epsilon_of_mu(mu: Array, delta: float) -> Array:
    """Return ε at δ of a μ-GDP mechanism with a Gaussian trade-off curve, rounded down; infinite at δ = 0.

    A μ that is not positive counts as 0.
    """
    positive = mu > _SMALLEST_MU
    result = np.zeros(np.shape(mu))
    if delta == 0.0:
        return np.where(positive, math.inf, result)
    finite = positive & np.isfinite(mu)
    result[finite] = gaussian_mechanism.epsilon(delta, 1.0 / mu[finite]) * (1.0 - 1e-12)
    return np.where(positive & ~finite, math.inf, result)


def gaussian_dp(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return ε of the largest μ that is rejected at declared thresholds, or by ranks among unobserved scores.

    With an exact null it is μ ≥ Φ⁻¹(1 − FPR) − Φ⁻¹(FNR) at an upper limit of FNR (Nasr et al., arXiv 2302.07956,
    Section 4). Their threshold is the best one for the same scores. For unobserved scores it is the rank test of normal
    scores, with some of α for precedence tests, which serve every level.
    """
    if scores.null is None:
        # At the least level of the rank test it rejects nothing yet, and these tests serve every level.
        of_precedence = min(alpha, least_level(scores.count, scores.null_count))
        mu = np.maximum(_mu_of_precedence(scores, of_precedence), largest_rejected_mu(scores, alpha - of_precedence))
        return epsilon_of_mu(mu, delta), np.full(len(mu), math.nan)
    each = alpha / len(_TAILS)
    at = threshold_counts(scores, _TAILS, each)
    log_miss = misses(scores.count, delta, each).log_rate[at.hits]
    mu = -special.ndtri_exp(at.log_alarm) - special.ndtri_exp(log_miss)
    best = np.argmax(mu, axis=1)
    rows = np.arange(len(mu))
    values = epsilon_of_mu(mu[rows, best], delta)
    return values, np.where(values > 0.0, at.thresholds[rows, best], math.nan)


def _mu_of_precedence(scores: ScoreSample, alpha: float) -> Array:
    """Return for each audit the largest μ that one of the declared unobserved scores rejects, −∞ if none does."""
    each, ranks = alpha / len(_TAILS), null_ranks(_TAILS, scores.null_count)
    hits = threshold_counts(scores, _TAILS, each).hits
    sizes = scores.null_count, scores.count
    mu = [
        [_rejected_mu(int(r), sizes[0], int(n), sizes[1], each) for r, n in zip(ranks, row, strict=True)]
        for row in hits
    ]
    return np.asarray(np.max(mu, axis=1))


# Audits share counts of hits, which saves a quick run 50 seconds.
@lru_cache(maxsize=100_000)
def _rejected_mu(rank: int, null_count: int, hits: int, count: int, level: float) -> float:
    """Return the largest μ that ``hits`` observed scores above an unobserved score of this rank reject, −∞ if none."""
    nodes, weights, rest = order_statistic(rank, null_count)
    z = special.ndtri(nodes)

    def excess(mu: float) -> float:
        beyond = special.betainc(hits, count - hits + 1, special.ndtr(z + mu))
        return float((weights * beyond).sum()) + rest - level * (1.0 - _RELATIVE)

    if hits == 0 or excess(-_LARGEST_MU) > 0.0:
        return -math.inf
    root = float(optimize.brentq(excess, -_LARGEST_MU, _LARGEST_MU, xtol=_CLOSE))
    return root - _CLOSE


def normal_scores(scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return ε of the lower limit of μ from the mean of the observed scores' normal scores under the exact null.

    If the mechanism is μ-GDP, each normal score is stochastically at most N(μ, 1) (``proofs_check/lower_bounds.md``).
    Among more than a million scores, a few neighbours each count as the least of them, which lowers the bound slightly.
    """
    assert scores.null is not None
    firsts = np.arange(0, scores.count, -(-scores.count // _MOST))
    many = len(firsts) < scores.count
    log_tails = scores.null.log_tail(scores.observed[:, firsts]) if many else scores.log_tails
    z = -special.ndtri_exp(np.minimum(log_tails, 0.0))
    # Neighbours count as the least of them, so that the bound only falls: by a few units of μ over _MOST.
    shares = np.diff(firsts, append=scores.count)
    # With a score above the null's support and another below it, there is no mean, and no bound.
    with np.errstate(invalid="ignore"):
        mean = (shares * z).sum(axis=1) / scores.count
    mu = mean - special.ndtri_exp(math.log1p(-alpha)) / math.sqrt(scores.count)
    return epsilon_of_mu(mu, delta), np.full(len(mu), math.nan)


METHODS = (
    Method(
        "normal-scores",
        "mean of the normal scores under the exact null (canaryproof)",
        normal_scores,
        ("independent scores", GAUSSIAN_CURVE),
        if_independent,
        ("5",),
        needs="null",
        version=2,
    ),
    Method(
        "gaussian-dp",
        f"Nasr et al., arXiv 2302.07956, at {len(_TAILS)} declared thresholds; by ranks among unobserved scores",
        gaussian_dp,
        ("independent scores", GAUSSIAN_CURVE),
        if_independent,
        ("1", "2a", "3a", "5", "5b"),
        version=2,
    ),
)
