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
RESIDUALS = 200
_CANARIES = 1000
# Of a sample of scores where they are no cosines of uniform directions.
_SCORES = 50_000
# Of squared norms: what has none is told with certainty.
_LEAST = 1e-6


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


def foretell(mechanism: Mechanism, value: float, claim: Claim, count: int, rng: np.random.Generator) -> Prediction:
    """Predict what the default estimator will say of a mechanism.

    Parameters
    ----------
    mechanism, value, claim
        The mechanism, its parameter and the claim.
    count
        Number k of observed canaries, and of unobserved ones where scores are no single cosines.
    rng
        Source of residuals.

    Returns
    -------
    The prediction.
    """
    law, unlimited = _laws(mechanism, value, claim, count, rng, RESIDUALS)
    if math.isfinite(unlimited.null_count):
        epsilon = estimators.adaptive(unlimited, claim.delta).epsilon
    else:
        epsilon = estimators.both_directions(claim.delta, unlimited.distance, unlimited.ratio)
    median, highest = np.quantile(epsilon, (0.5, 0.99)).tolist()
    return Prediction(_power(law, claim), median, highest)


def alarm(
    mechanism: Mechanism,
    value: float,
    claim: Claim,
    count: int,
    rng: np.random.Generator,
    null_count: int | None = None,
    residuals: int = RESIDUALS,
) -> float:
    """Predict the probability of an alarm alone; further arguments as for ``foretell``.

    Parameters
    ----------
    null_count
        Number of unobserved canaries that the null is fitted to; by default none where one vector is released.
    residuals
        Number of residuals over which it is averaged.
    """
    law, _ = _laws(mechanism, value, claim, count, rng, residuals)
    if null_count is not None:
        law = Moments(law.distance, law.ratio, count, null_count)
    return _power(law, claim)


def _laws(
    mechanism: Mechanism, value: float, claim: Claim, count: int, rng: np.random.Generator, residuals: int
) -> tuple[Moments, Moments]:
    """Return the moments of the law of scores for each residual, beside k canaries and beside few.

    Where scores are not normal, the largest of several cosines for instance, both are moments of a sample, of all
    residuals together.
    """
    if mechanism.scores is not None:
        observed, unobserved = mechanism.scores(value, claim, count, max(1, _SCORES // count), rng)
    else:
        weights = mechanism.weights(value)
        residual = mechanism.residual(value, claim, residuals, rng)
        if weights.shape[1] == 1:
            square, shifts = residual.gram[:, 0, 0], weights[:, 0] * math.sqrt(residual.dim)
            several = square + count * (weights**2).mean()
            beside, alone = (
                Moments(shifts.mean() / np.sqrt(one), np.sqrt(1.0 + shifts.var() / one), count)
                for one in (several, np.maximum(square, _LEAST))
            )
            return beside, alone
        observed, unobserved = view.leading(residual, weights, _CANARIES, _CANARIES, rng)
    sample = moments.from_unobserved(observed.ravel(), unobserved.ravel())
    return Moments(sample.distance, sample.ratio, count, count), sample


def _power(law: Moments, claim: Claim) -> float:
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
