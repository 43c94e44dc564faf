"""What an audit will say of a mechanism, from the residual alone: no canary is drawn where one vector is released.

Canaries see a release through √d times their weight over its norm (``view``). That is the distance which ``pinned``
estimates, and ``adaptive``, the default, takes its lower end from ``pinned`` unless a test of level 0.01 tells it not
to. An alarm is a one-sample t-test's rejection, then, and its probability is that test's power.
"""

import math
from dataclasses import dataclass

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
_SCORES = 50_000


@dataclass(frozen=True)
class Prediction:
    """What the default estimator will say.

    Attributes
    ----------
    alarm
        Probability that its lower end is above the claimed ε, to leading order in k/d.
    epsilon, highest
        Median and 99% quantile, over releases, of ε̂ from ever more canaries in ever more dimensions.
    """

    alarm: float
    epsilon: float
    highest: float


def foretell(
    mechanism: Mechanism,
    value: float,
    claim: Claim,
    count: int,
    rng: np.random.Generator,
    null_count: float | None = None,
) -> Prediction:
    """Predict what the default estimator will say of a mechanism.

    Parameters
    ----------
    mechanism, value, claim
        The mechanism, its parameter and the claim.
    count
        Number k of observed canaries.
    rng
        Source of residuals.
    null_count
        Number of unobserved canaries that the null is fitted to, infinite for the closed form; by default infinite
        where one vector is released, and k elsewhere.

    Returns
    -------
    The prediction.
    """
    weights = mechanism.weights(value)
    if mechanism.scores is None and weights.shape[1] == 1:
        residual = mechanism.residual(value, claim, _RESIDUALS, rng)
        square, shifts = residual.gram[:, 0, 0], weights[:, 0] * math.sqrt(residual.dim)
        beside = square + count * (weights**2).mean()
        law = Moments(shifts.mean() / np.sqrt(beside), np.sqrt(1.0 + shifts.var() / beside), count)
        alone = shifts.mean() / np.sqrt(square), np.sqrt(1.0 + shifts.var() / square)
        epsilon = estimators.both_directions(claim.delta, *alone)
    else:
        law = _sampled(mechanism, value, claim, count, rng)
        epsilon = estimators.adaptive(law, claim.delta).epsilon
        law = Moments(law.distance, law.ratio, count, count)
    if null_count is not None:
        law = Moments(law.distance, law.ratio, count, null_count)
    median, highest = np.quantile(epsilon, (0.5, 0.99)).tolist()
    return Prediction(_alarm(law, claim), median, highest)


def _sampled(mechanism: Mechanism, value: float, claim: Claim, count: int, rng: np.random.Generator) -> Moments:
    """Return the moments of scores that are not normal, the largest of several cosines for instance, of a sample."""
    if mechanism.scores is not None:
        observed, unobserved = mechanism.scores(value, claim, count, max(1, _SCORES // count), rng)
    else:
        residual = mechanism.residual(value, claim, _RESIDUALS, rng)
        observed, unobserved = view.leading(residual, mechanism.weights(value), _CANARIES, _CANARIES, rng)
    return moments.from_unobserved(observed.ravel(), unobserved.ravel())


def _alarm(law: Moments, claim: Claim) -> float:
    """Return the probability that the mean of scores with these moments is significantly beyond what is claimed."""
    count, null_count = law.count, law.null_count
    distance = estimators.pinned_distance(law)
    freedom, error, scale = count - 1.0, np.asarray(1.0 / math.sqrt(count)), law.ratio
    if math.isfinite(null_count):
        freedom = min(freedom, count + null_count - 2.0)
        error = np.sqrt(1.0 / count + 1.0 / null_count + 0.5 * distance**2 / (count + null_count))
        scale = np.ones_like(law.ratio)
    critical = stats.t.isf(ALPHA, freedom) * scale
    return float(np.mean(stats.nct.sf(critical, freedom, (distance - 1.0 / claim.noise_multiplier) / error)))
