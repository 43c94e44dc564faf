"""What an audit will say of a mechanism, from the residual alone: no canary is drawn where one vector is released.

Canaries see a release through √d times their weight over its norm (``view``). That is the distance which ``pinned``
estimates, and ``adaptive``, the default, takes its lower end from ``pinned`` unless a test of level 0.01 tells it not
to. An alarm is a one-sample t-test's rejection, then, and its probability is that test's power.
"""

import math

import numpy as np
from scipy import stats

from canaryproof.verify.blindspots import view
from canaryproof.verify.blindspots.mechanism import Claim, Mechanism
from canaryproof.verify.blindspots.methods import ALPHA
from canaryproof.verify.oneshot import estimators, moments
from canaryproof.verify.oneshot.moments import Moments

# Residuals that a prediction is an average over, and canaries of each where several vectors are released.
_RESIDUALS = 400
_CANARIES = 1000
# Of a sample of scores where they are no cosines of uniform directions.
_SCORES = 100_000


def predicted(
    mechanism: Mechanism,
    value: float,
    claim: Claim,
    count: int,
    rng: np.random.Generator,
    null_count: float | None = None,
) -> float:
    """Predict the probability that the default estimator's lower end is above the claimed ε.

    Parameters
    ----------
    mechanism, value, claim
        The mechanism, its parameter and the claim.
    count
        Number k of observed canaries.
    rng
        Source of residuals.
    null_count
        Number of unobserved canaries that the null is fitted to, infinite for the closed form; by default k where
        several vectors are released, and infinite elsewhere.

    Returns
    -------
    The probability, to leading order in k/d.
    """
    found = _law(mechanism, value, claim, count, rng)
    if null_count is None:
        null_count = math.inf if math.isinf(found.null_count) else count
    pooled = Moments(found.distance, found.ratio, count, null_count)
    distance = estimators.pinned_distance(pooled)
    freedom, error, scale = count - 1.0, np.asarray(1.0 / math.sqrt(count)), found.ratio
    if math.isfinite(null_count):
        freedom = min(freedom, count + null_count - 2.0)
        error = np.sqrt(1.0 / count + 1.0 / null_count + 0.5 * distance**2 / (count + null_count))
        scale = np.asarray(1.0)
    critical = stats.t.isf(ALPHA, freedom) * scale
    excess = (distance - 1.0 / claim.noise_multiplier) / error
    return float(np.mean(stats.nct.sf(critical, freedom, excess)))


def unlimited(mechanism: Mechanism, value: float, claim: Claim, rng: np.random.Generator) -> tuple[float, float]:
    """Return the median and the 99% quantile, over releases, of ε̂ from ever more canaries in ever more dimensions."""
    found = _law(mechanism, value, claim, 0, rng)
    if math.isinf(found.null_count):
        epsilon = estimators.both_directions(claim.delta, found.distance, found.ratio)
    else:
        epsilon = estimators.adaptive(found, claim.delta).epsilon
    median, most = np.quantile(epsilon, (0.5, 0.99))
    return float(median), float(most)


def _law(mechanism: Mechanism, value: float, claim: Claim, count: int, rng: np.random.Generator) -> Moments:
    """Return the moments of a score's law, beside so many canaries, one entry a residual.

    Where scores are not normal, the largest of several cosines for instance, moments are of a large sample, of all
    residuals together.
    """
    if mechanism.scores is not None:
        observed, unobserved = mechanism.scores(value, claim, max(count, 1), max(1, _SCORES // max(count, 1)), rng)
        return moments.from_unobserved(observed.ravel(), unobserved.ravel())
    weights = mechanism.weights(value)
    residual = mechanism.residual(value, claim, _RESIDUALS, rng)
    if weights.shape[1] > 1:
        observed, unobserved = view.leading(residual, weights, _CANARIES, _CANARIES, rng)
        return moments.from_unobserved(observed.ravel(), unobserved.ravel())
    shifts = weights[:, 0] * math.sqrt(residual.dim)
    square = residual.gram[:, 0, 0] + count * (weights**2).mean()
    return Moments(shifts.mean() / np.sqrt(square), np.sqrt(1.0 + shifts.var() / square), max(count, 2))

