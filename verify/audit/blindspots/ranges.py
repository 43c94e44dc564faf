"""The faults of the atlas that an audit notices, predicted from the residual alone, and those that it would miss.

A canary is a uniformly random direction, drawn independently. Random canaries are rotation-invariant, so the joint law
of all their cosines depends on the residuals through their inner products alone. Where one vector is released, that is
one number, the residual's norm (proofs_check, blind_spots.md), as the data's norm is for ``exact_law``.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from canaryproof.kernels.arrays import Array
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim, Mechanism, ReleaseResidual
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import Moments, from_two_groups
from canaryproof.verify.audit.levels import POWER

# A method raises an alarm where its lower end at confidence 1 − α is above the claimed ε.
ALPHA = 0.05


def square_root(gram: Array) -> Array:
    """Return a square root of positive semi-definite matrices, rows as vectors, shape (..., T, T)."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., np.newaxis, :])


def leading(
    residual: ReleaseResidual, weights: Array, count: int, null_count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw scores to leading order, independently for each canary; arguments and shapes as for ``exact``.

    √d times a cosine is normal with variance 1, about √d times the canary's weight over the release's norm, whose
    square is the residual's with what all canaries add.
    """
    runs, dim = len(residual.gram), residual.dim
    rounds = np.arange(count) % len(weights)
    gram = residual.gram + count * (weights.T @ weights) / len(weights)
    lengths = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))[..., np.newaxis]
    root = math.sqrt(dim)
    # Single precision is enough, and takes half the time.
    factor, shifts = (
        part.astype(np.float32) for part in (square_root(gram) / lengths, root * weights[rounds].T / lengths)
    )
    observed, unobserved = (
        factor @ rng.standard_normal((runs, gram.shape[-1], number), dtype=np.float32) for number in (count, null_count)
    )
    observed += shifts
    return observed.max(axis=1).astype(np.float64) / root, unobserved.max(axis=1).astype(np.float64) / root


# Predictions of an audit from the residual alone; no canary is drawn where one vector is released.
#
# Scores depend on a release by √d times the canaries' weight over its norm (``exact``). ``pinned`` estimates that
# distance. The default ``adaptive`` takes its lower end from ``pinned`` unless a test of level 0.01 rejects. So an
# alarm is the rejection of a one-sample t-test, and its probability is that test's power.


# Number of residuals that a prediction averages over, and of canaries for each where several vectors are released.
RESIDUALS = 200
_CANARIES = 1000
# Size of a sample of scores that are no cosines of uniform directions.
_SCORES = 50_000
# Least squared norm of a residual; without any residual, canaries are recognised with certainty.
_LEAST = 1e-6


def alarm_probability(
    mechanism: Mechanism,
    value: float,
    claim: AtlasClaim,
    count: int,
    rng: np.random.Generator,
    null_count: int | None = None,
    residuals: int = RESIDUALS,
    *,
    orthonormal: bool = False,
) -> float:
    """Predict the probability of an alarm, averaged over some residuals.

    The null is fitted to ``null_count`` unobserved canaries; by default to none where one vector is released. An alarm
    is a lower end above the claim's ε. Orthonormal canaries add nothing to each other's scores; independent ones do.
    """
    law, alone = score_laws(mechanism, value, claim, count, rng, residuals)
    if orthonormal:
        law = alone
    if null_count is not None:
        law = replace(law, null_count=null_count)
    return power(law, 1.0 / claim.noise_multiplier)


def score_laws(
    mechanism: Mechanism, value: float, claim: AtlasClaim, count: int, rng: np.random.Generator, residuals: int
) -> tuple[Moments, Moments]:
    """Return the moments of the law of scores for each residual, with k canaries in the release and with few.

    Where scores are not normal, as the largest of several cosines, both are the moments of one sample for all
    residuals.
    """
    if mechanism.scores is not None:
        observed, unobserved = mechanism.scores(value, claim, count, max(1, _SCORES // count), rng)
    else:
        weights = mechanism.weights(value)
        residual = mechanism.residual(value, claim, residuals, rng)
        if weights.shape[1] == 1:
            square, shifts = residual.gram[:, 0, 0], weights[:, 0] * math.sqrt(residual.dim)
            several = square + count * (weights**2).mean()
            crowded, alone = (
                Moments(shifts.mean() / np.sqrt(norm_square), np.sqrt(1.0 + shifts.var() / norm_square), count)
                for norm_square in (several, np.maximum(square, _LEAST))
            )
            return crowded, alone
        observed, unobserved = leading(residual, weights, _CANARIES, _CANARIES, rng)
    sample = from_two_groups(observed.ravel(), unobserved.ravel())
    return replace(sample, count=count, null_count=float(count)), sample


def power(law: Moments, claimed: float) -> float:
    """Return the probability that the mean of scores with these moments is significantly above the claimed one."""
    # It loads for long, and few audits need it.
    from scipy import stats

    count, null_count = law.count, law.null_count
    distance = epsilon_estimators.pinned_distance(law)
    freedom, error, scale = count - 1.0, np.asarray(1.0 / math.sqrt(count)), law.ratio
    if math.isfinite(null_count):
        freedom = min(freedom, count + null_count - 2.0)
        error = epsilon_estimators.pinned_error(law)
        scale = np.maximum(1.0, epsilon_estimators.pinned_error(law.as_normal) / error)
    critical = stats.t.isf(ALPHA, freedom) * scale
    return float(np.mean(stats.nct.sf(critical, freedom, (distance - claimed) / error)))


# Faults that an audit would have noticed: there the probability of an alarm is at least ``POWER``.


# Predictions are to leading order in k/d.
SMALLEST_DIM = 1000
# Halvings of the interval in which a parameter becomes noticed, and residuals to average over.
_STEPS = 10
_RESIDUALS = 40


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Range:
    """Part of a mechanism's parameter in which an audit would have noticed the fault, or would not have."""

    # mechanism, title, parameter: the mechanism's name, its fault, and the meaning of its parameter.
    mechanism: str
    title: str
    parameter: str
    # low, high: ends of the part, of the values in the atlas.
    low: float
    high: float
    epsilon: float  # Largest true ε in it
    # Probability of an alarm: the smallest in a part that would have been noticed, the largest in one that would not.
    alarm: float


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class BlindSpots:
    """Faults that an audit would have noticed, and faults that it would not have noticed."""

    # noise_multiplier, epsilon: deviation of the noise that is taken to be claimed, in units of the canary norm, and
    # its ε.
    noise_multiplier: float
    epsilon: float
    given: bool  # Whether it was given, and not that of ε = 3
    # noticed, unnoticed: faults of the atlas that would have raised an alarm with probability 90%, and faults that
    # would not.
    noticed: tuple[Range, ...]
    unnoticed: tuple[Range, ...]


# Probability of an alarm where a mechanism has a value of its parameter.
Alarm = Callable[[Mechanism, float], float]


def by_estimate(claim: AtlasClaim, count: int, null_count: int | None = None, *, orthonormal: bool = False) -> Alarm:
    """Return the probability of an alarm by the default estimator; arguments as of ``alarm_probability``.

    Orthonormal canaries are in a single release, and all other directions are unobserved.
    """
    if orthonormal:
        null_count = claim.dim - count

    def alarm(mechanism: Mechanism, value: float) -> float:
        # Equal residuals each time make the probability a function of the parameter alone.
        rng = np.random.default_rng(0)
        return alarm_probability(mechanism, value, claim, count, rng, null_count, _RESIDUALS, orthonormal=orthonormal)

    return alarm


def ranges(
    claim: AtlasClaim, alarm: Alarm, *, several: bool = False, above: float | None = None
) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """List the faults that an audit notices with probability 90%, and the others whose ε is above the claimed one.

    Faults of several releases are listed on demand, and the claimed ε is that of the claim's noise by default.
    """
    noticed, missed = [], []
    claimed = claim.epsilon if above is None else above
    for mechanism in MECHANISMS.values():
        releases = max(mechanism.weights(value).shape[1] for value in mechanism.values)
        if mechanism.scores is not None or (releases > 1 and not several):
            continue
        for part, seen in _parts(mechanism, claim, alarm):
            if seen:
                noticed.append(part)
            elif part.epsilon > claimed * (1.0 + 1e-9):
                missed.append(part)
    return tuple(noticed), tuple(missed)


def _parts(mechanism: Mechanism, claim: AtlasClaim, probability: Alarm) -> Iterator[tuple[Range, bool]]:
    """Split the values of a mechanism where alarms become probable, or cease to be."""
    alarm = partial(probability, mechanism)
    values = sorted(mechanism.values)
    alarms = dict(zip(values, map(alarm, values), strict=True))
    whole = all(value == round(value) for value in values if math.isfinite(value))
    points = [values[0]]
    for before, after in pairwise(values):
        if (alarms[before] >= POWER) != (alarms[after] >= POWER):
            ends = _edge(alarm, before, after, alarms, whole=whole)
            yield _range(mechanism, claim, [*points, ends[0]], alarms)
            points = [ends[1]]
        points.append(after)
    yield _range(mechanism, claim, points, alarms)


def _edge(
    alarm: Callable[[float], float], low: float, high: float, alarms: dict[float, float], *, whole: bool
) -> tuple[float, float]:
    """Narrow the interval in which the probability of an alarm crosses ``POWER``."""
    seen = alarms[low] >= POWER
    for _ in range(_STEPS):
        if math.isinf(high) or (whole and high - low <= 1.0):
            break
        middle = math.sqrt(low * high) if low > 0.0 else 0.5 * (low + high)
        middle = float(round(0.5 * (low + high))) if whole else middle
        alarms[middle] = alarm(middle)
        low, high = (middle, high) if (alarms[middle] >= POWER) == seen else (low, middle)
    return low, high


def _range(
    mechanism: Mechanism, claim: AtlasClaim, points: list[float], alarms: dict[float, float]
) -> tuple[Range, bool]:
    probabilities = [alarms[point] for point in points]
    seen = probabilities[0] >= POWER
    return Range(
        mechanism.name,
        mechanism.title,
        mechanism.parameter,
        points[0],
        points[-1],
        max(mechanism.truth(point, claim).high for point in points),
        min(probabilities) if seen else max(probabilities),
    ), seen
