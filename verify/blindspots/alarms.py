"""How often each method raises an alarm on a mechanism: drawn, and predicted from the residual alone.

The last part says what an audit would have noticed of the atlas's mechanisms, and what not, by these predictions.

A canary is a uniformly random direction, drawn apart from all else. Random canaries are rotation-invariant, so the
joint law of all their cosines depends on the residuals through their inner products alone: on one number, the
residual's norm, where one vector is released (proofs_check, blind_spots.md): it is to them what the data's norm is to
``exact_law``. Of several all is drawn in a basis that begins with the T residuals; on the rest of the space the
canaries' Gram matrix has Bartlett's triangular factor.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from canaryproof.kernels import binomial, exact_law, gaussian_mechanism
from canaryproof.kernels.arrays import Array
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim, Mechanism, ReleaseResidual, gaussian_truth
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.lower_bound import (
    BoundKind,
    ExactNull,
    Inclusion,
    Method,
    ScoreSample,
    cosine_null,
    prepare,
)
from canaryproof.verify.bounds.one_run import METHODS as ONE_RUN
from canaryproof.verify.check.levels import EPSILON, POWER
from canaryproof.verify.estimators import estimators
from canaryproof.verify.estimators.estimators import Estimate
from canaryproof.verify.estimators.moments import Moments, Shape, from_dimension, from_unobserved, shape_of


def _factor(gram: Array) -> Array:
    """Return a square root of positive semi-definite matrices, rows as vectors, shape (..., T, T)."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., np.newaxis, :])


def _directions(count: int, dim: int, axes: int, rng: np.random.Generator) -> Array:
    """Draw uniform directions: coordinates on some axes, and a triangular factor of the rest."""
    free = min(count, dim - axes)
    rows = rng.standard_normal((count, axes + free))
    rest = rows[:, axes:]
    rest[:] = np.tril(rest, -1)
    diagonal = np.arange(free)
    rest[diagonal, diagonal] = np.sqrt(rng.chisquare(dim - axes - diagonal))
    rows /= np.linalg.norm(rows, axis=1)[:, np.newaxis]
    return rows


def exact(
    residual: ReleaseResidual, weights: Array, count: int, null_count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw scores, each canary's largest cosine with a released vector, shapes (runs, count) and (runs, null_count).

    ``weights`` has the weight of a canary of each round in each released vector, shape (rounds, T); rounds take turns.
    """
    if weights.size == 1 and weights[0, 0] > 0.0:
        norms = np.sqrt(residual.gram[:, 0, 0]) / weights[0, 0]
        cosines = np.array([exact_law.cosines(count, residual.dim, 0.0, rng, norm) for norm in norms])
        own = rng.standard_normal((len(norms), null_count))
        return cosines, own / np.sqrt(own**2 + rng.chisquare(residual.dim - 1, own.shape))
    rounds = np.arange(count) % len(weights)
    observed, unobserved = [], []
    for basis in _factor(residual.gram):
        axes = len(basis)
        canaries = _directions(count, residual.dim, axes, rng)
        releases = weights[rounds].T @ canaries
        releases[:, :axes] += basis
        lengths = np.linalg.norm(releases, axis=1)
        observed.append((canaries @ (releases.T / lengths)).max(axis=1))
        # Nothing of the releases depends on these, so that only the plane of the releases matters.
        own = rng.standard_normal((null_count, axes))
        norms = np.sqrt((own**2).sum(axis=1) + rng.chisquare(residual.dim - axes, null_count))
        cosines = own @ (_factor(releases @ releases.T) / lengths[:, np.newaxis]).T
        unobserved.append((cosines / norms[:, np.newaxis]).max(axis=1))
    return np.array(observed), np.array(unobserved)


def leading(
    residual: ReleaseResidual, weights: Array, count: int, null_count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw the same to leading order, independently for each canary.

    √d times a cosine is normal with variance 1, about √d times the canary's weight over the release's norm, whose
    square is the residual's with what all canaries add.
    """
    runs, dim = len(residual.gram), residual.dim
    rounds = np.arange(count) % len(weights)
    gram = residual.gram + count * (weights.T @ weights) / len(weights)
    lengths = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))[..., np.newaxis]
    root = math.sqrt(dim)
    # Seven digits are enough, and take half the time.
    factor, shifts = (part.astype(np.float32) for part in (_factor(gram) / lengths, root * weights[rounds].T / lengths))
    observed, unobserved = (
        factor @ rng.standard_normal((runs, gram.shape[-1], number), dtype=np.float32) for number in (count, null_count)
    )
    observed += shifts
    return observed.max(axis=1).astype(np.float64) / root, unobserved.max(axis=1).astype(np.float64) / root


def leading_moments(residual: ReleaseResidual, weight: float, count: int, rng: np.random.Generator) -> Moments:
    """Draw the moments of scores to leading order, where canaries of one weight are in one vector, from their laws.

    Scores are independent and normal. Their shape, which is independent of mean and variance (Basu 1955), is drawn
    where the default estimator asks for it, and elsewhere taken for normal.
    """
    lengths = np.sqrt(residual.gram[:, 0, 0] + count * weight**2)
    means = math.sqrt(residual.dim) * weight / lengths + rng.standard_normal(len(lengths)) / math.sqrt(count)
    moments = Moments(means, np.sqrt(rng.chisquare(count - 1, len(lengths)) / count), count)
    differ = estimators.variance_p_value(moments) < estimators.TEST_LEVEL
    skewness, kurtosis = np.zeros_like(means), np.full_like(means, 3.0)
    if differ.any() and (normal := shape_of(rng.standard_normal((int(differ.sum()), count)))):
        skewness[differ], kurtosis[differ] = normal.skewness, normal.kurtosis
    return replace(moments, shape=Shape(skewness, kurtosis))


# What each method says of scores. It raises an alarm where its lower end is above the claimed ε.


ALPHA = 0.05
# Method's name, what it says of each run, and its lower end at confidence 1 − α.
Report = tuple[str, Array, Array]

ESTIMATORS: dict[str, Callable[..., Estimate]] = {
    name: getattr(estimators, name) for name in ("adaptive", "pinned", "fitted", "threshold")
}
_COINS = {method.name for method in ONE_RUN}
BOUNDS = {
    name: method
    for name, method in METHODS.items()
    if not method.printed and method.kind is BoundKind.LOWER_BOUND and name not in _COINS
}
COIN_BOUNDS = {name: METHODS[name] for name in sorted(_COINS)}
CANIFE = "canife"
# One null object for one law, as what belongs to it is remembered.
_null: Callable[[float], ExactNull] = cache(cosine_null)


def estimates(moments: Moments, delta: float) -> Iterator[Report]:
    """Estimate ε of runs from their moments."""
    for name, estimator in ESTIMATORS.items():
        estimate = estimator(moments, delta, 1.0 - 2.0 * ALPHA)
        yield name, estimate.epsilon, estimate.low


def bounds(observed: Array, unobserved: Array | None, dim: int, delta: float) -> Iterator[Report]:
    """Bound ε of runs of fixed inclusion from below, by cosines' exact null unless there are unobserved scores."""
    null = _null(dim) if unobserved is None else None
    yield from _values(prepare(observed, unobserved, null), delta, BOUNDS)


def coin_bounds(observed: Array, unobserved: Array, delta: float) -> Iterator[Report]:
    """Bound ε of a run whose canaries each took part by a fair coin from below; shapes (k,) and (k₀,)."""
    yield from _values(prepare(observed, unobserved, inclusion=Inclusion.COIN), delta, COIN_BOUNDS)


def _values(scores: ScoreSample, delta: float, methods: Mapping[str, Method]) -> Iterator[Report]:
    for name, method in methods.items():
        if method.serves(scores):
            values, _ = method.values(scores, delta, ALPHA)
            yield name, values, values


def canife(deviation: float, trials: int, runs: int, rng: np.random.Generator) -> Report:
    """Draw CANIFE's trials of a round, half with its canary, and measure them as printed with its upper cap.

    Maddock et al. (arXiv 2210.02912), Section 3.4, with δ = 1/n; the lower end is by its Clopper–Pearson limits.
    """
    # It takes a second to load, which an audit, that has no trials, is spared.
    from canaryproof.verify.canife.measure import round_epsilon

    half = trials // 2
    measured = [
        round_epsilon(
            1.0 + deviation * rng.standard_normal(half),
            deviation * rng.standard_normal(trials - half),
            1.0 / trials,
            alpha=2.0 * ALPHA,
            zero_counts="capped",
        )
        for _ in range(runs)
    ]
    return CANIFE, np.array([each.epsilon for each in measured]), np.array([each.lower for each in measured])


# What an audit will say of a mechanism, from the residual alone: no canary is drawn where one vector is released.
#
# Canaries see a release through √d times their weight over its norm (``exact``). That is the distance which ``pinned``
# estimates, and ``adaptive``, the default, takes its lower end from ``pinned`` unless a test of level 0.01 tells it
# not to. An alarm is a one-sample t-test's rejection, then, and its probability is that test's power.


# Residuals that a prediction is an average over, and canaries of each where several vectors are released.
RESIDUALS = 200
_CANARIES = 1000
# Of a sample of scores where they are no cosines of uniform directions.
_SCORES = 50_000
# Of squared norms: what has none is told with certainty.
_LEAST = 1e-6


@dataclass(frozen=True)
class Prediction:
    """What the default estimator will say."""

    alarm: float  # Probability that its lower end is above the claimed ε, to leading order in k/d
    # epsilon, highest: median and 99% quantile, over releases, of ε̂ from ever more canaries in ever more dimensions.
    epsilon: float
    highest: float


def foretell(mechanism: Mechanism, value: float, claim: Claim, count: int, rng: np.random.Generator) -> Prediction:
    """Predict what the default estimator will say of a mechanism with k observed canaries.

    There are as many unobserved canaries where scores are no single cosines.
    """
    law, unlimited = _laws(mechanism, value, claim, count, rng, RESIDUALS)
    if math.isfinite(unlimited.null_count):
        epsilon = estimators.adaptive(unlimited, claim.delta).epsilon
    else:
        epsilon = estimators.both_directions(claim.delta, unlimited.distance, unlimited.ratio)
    median, highest = np.quantile(epsilon, (0.5, 0.99)).tolist()
    return Prediction(_power(law, 1.0 / claim.noise_multiplier), median, highest)


def alarm_probability(
    mechanism: Mechanism,
    value: float,
    claim: Claim,
    count: int,
    rng: np.random.Generator,
    null_count: int | None = None,
    residuals: int = RESIDUALS,
    alarm_above: float | None = None,
    *,
    orthonormal: bool = False,
) -> float:
    """Predict the probability of an alarm alone, averaged over some residuals.

    The null is fitted to ``null_count`` unobserved canaries; by default to none where one vector is released. An alarm
    is a lower end above the claim's ε, or above that of ``alarm_above``, the distance of two normal laws. Orthonormal
    canaries add nothing to the others' scores, but independent ones do.
    """
    law, alone = _laws(mechanism, value, claim, count, rng, residuals)
    if orthonormal:
        law = alone
    if null_count is not None:
        law = replace(law, null_count=null_count)
    return _power(law, 1.0 / claim.noise_multiplier if alarm_above is None else alarm_above)


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
                Moments(shifts.mean() / np.sqrt(norm_square), np.sqrt(1.0 + shifts.var() / norm_square), count)
                for norm_square in (several, np.maximum(square, _LEAST))
            )
            return beside, alone
        observed, unobserved = leading(residual, weights, _CANARIES, _CANARIES, rng)
    sample = from_unobserved(observed.ravel(), unobserved.ravel())
    return replace(sample, count=count, null_count=float(count)), sample


def _power(law: Moments, claimed: float) -> float:
    """Return the probability that the mean of scores with these moments is significantly beyond what is claimed."""
    count, null_count = law.count, law.null_count
    distance = estimators.pinned_distance(law)
    freedom, error, scale = count - 1.0, np.asarray(1.0 / math.sqrt(count)), law.ratio
    if math.isfinite(null_count):
        freedom = min(freedom, count + null_count - 2.0)
        error = estimators.pinned_error(law)
        scale = np.maximum(1.0, estimators.pinned_error(law.as_normal) / error)
    critical = stats.t.isf(ALPHA, freedom) * scale
    return float(np.mean(stats.nct.sf(critical, freedom, (distance - claimed) / error)))


# How often each method raises an alarm, and what it says on the way.


# Of the rates, two-sided.
CONFIDENCE = 0.999


@dataclass(frozen=True)
class Size:
    """How much is drawn where k canaries take part."""

    # Number k of observed canaries; as many unobserved ones where several vectors are released, and CANIFE has k
    # trials.
    count: int
    runs: int  # Number of audits by the default estimator
    few: int  # How many of them are audited by every method; 0 to do without
    coins: int  # Number of audits in which each of 2k canaries takes part by a fair coin
    exact: bool  # Whether scores are drawn with exactly their joint law, or to leading order


def measure(
    mechanism: Mechanism, value: float, claim: Claim, size: Size, key: np.random.SeedSequence
) -> dict[str, Any]:
    """Audit runs of a mechanism by all methods; return a cell of the atlas, whose rates stand with their limits."""
    rng, other = (np.random.default_rng(child) for child in key.spawn(2))
    truth = mechanism.truth(value, claim)
    if _has_laws(mechanism, value, size):
        alarms = _alarms(_drawn_moments(mechanism, value, claim, size, rng), claim)
        few = _scores(mechanism, value, claim, replace(size, runs=max(1, size.few)), rng)
    else:
        observed, unobserved = _scores(mechanism, value, claim, size, rng)
        alarms = _alarms(_moments(observed, unobserved, claim), claim)
        few = observed[: size.few], None if unobserved is None else unobserved[: size.few]
    foretold = foretell(mechanism, value, claim, size.count, other)
    reports = [*_reports(mechanism, value, claim, few, rng)] if size.few else []
    reports += _coins(mechanism, value, claim, size, rng)
    return {
        "value": value,
        "count": size.count,
        "exact": size.exact,
        "truth": [truth.low, truth.high],
        "distance": mechanism.distance(value, claim),
        "runs": size.runs,
        "rate": _rate(alarms, size.runs),
        "predicted": foretold.alarm,
        "unlimited": [foretold.epsilon, foretold.highest],
        "canife": None if mechanism.canife is None else _of_deviation(mechanism.canife(value, claim), claim),
        "methods": {name: _summary(epsilon, low, claim.epsilon) for name, epsilon, low in reports},
    }


def alarms_of(mechanism: Mechanism, value: float, claim: Claim, size: Size, key: np.random.SeedSequence) -> int:
    """Count the audits in which the default estimator raises an alarm."""
    rng = np.random.default_rng(key)
    if _has_laws(mechanism, value, size):
        return _alarms(_drawn_moments(mechanism, value, claim, size, rng), claim)
    return _alarms(_moments(*_scores(mechanism, value, claim, size, rng), claim), claim)


def _alarms(moments: Moments, claim: Claim) -> int:
    return int((estimators.adaptive_low(moments, claim.delta, 1.0 - 2.0 * ALPHA) > claim.epsilon).sum())


def _has_laws(mechanism: Mechanism, value: float, size: Size) -> bool:
    """Whether moments can be drawn from their laws, without the scores."""
    return not size.exact and mechanism.scores is None and mechanism.weights(value).size == 1


def _drawn_moments(mechanism: Mechanism, value: float, claim: Claim, size: Size, rng: np.random.Generator) -> Moments:
    residual = mechanism.residual(value, claim, size.runs, rng)
    return leading_moments(residual, float(mechanism.weights(value)[0, 0]), size.count, rng)


def _scores(
    mechanism: Mechanism, value: float, claim: Claim, size: Size, rng: np.random.Generator
) -> tuple[Array, Array | None]:
    """Draw scores of observed canaries, and of unobserved ones where the law of these is not known."""
    if mechanism.scores is not None:
        return mechanism.scores(value, claim, size.count, size.runs, rng)
    draw = exact if size.exact else leading
    weights = mechanism.weights(value)
    residual = mechanism.residual(value, claim, size.runs, rng)
    if weights.shape[1] > 1:
        return draw(residual, weights, size.count, size.count, rng)
    return draw(residual, weights, size.count, 0, rng)[0], None


def _moments(observed: Array, unobserved: Array | None, claim: Claim) -> Moments:
    if unobserved is None:
        return from_dimension(observed, claim.dim)
    return from_unobserved(observed, unobserved)


def _reports(
    mechanism: Mechanism, value: float, claim: Claim, scores: tuple[Array, Array | None], rng: np.random.Generator
) -> Iterator[Report]:
    runs, count = scores[0].shape
    yield from estimates(_moments(*scores, claim), claim.delta)
    yield from bounds(*scores, claim.dim, claim.delta)
    if mechanism.canife is not None:
        yield canife(mechanism.canife(value, claim), count, runs, rng)


def _coins(mechanism: Mechanism, value: float, claim: Claim, size: Size, rng: np.random.Generator) -> Iterator[Report]:
    """Bound ε of runs in which each of 2k canaries takes part by a fair coin."""
    by_method: dict[str, list[Array]] = {}
    for seen in np.clip(rng.binomial(2 * size.count, 0.5, size.coins), 1, 2 * size.count - 1).tolist():
        absent = 2 * size.count - seen
        if mechanism.scores is not None:
            observed, unobserved = mechanism.scores(value, claim, max(seen, absent), 1, rng)
        else:
            residual = mechanism.residual(value, claim, 1, rng)
            observed, unobserved = leading(residual, mechanism.weights(value), seen, absent, rng)
        observed, unobserved = observed[:, :seen], unobserved[:, :absent]
        for name, values, _ in coin_bounds(observed[0], unobserved[0], claim.delta):
            by_method.setdefault(name, []).append(values)
    for name, parts in by_method.items():
        yield name, np.concatenate(parts), np.concatenate(parts)


def _of_deviation(deviation: float, claim: Claim) -> float:
    """Return ε at δ of normal scores of means 0 and 1: what unlimited trials of CANIFE would tell."""
    return gaussian_truth(claim, deviation / claim.noise_multiplier).high


def _rate(alarms: int, runs: int) -> list[float]:
    return [alarms / runs, *(float(end) for end in binomial.interval(alarms, runs, CONFIDENCE))]


def _summary(epsilon: Array, low: Array, claimed: float) -> dict[str, Any]:
    alarms, runs = int((low > claimed).sum()), len(low)
    return {
        "epsilon": np.quantile(epsilon, (0.25, 0.5, 0.75)).tolist(),
        "low": float(np.median(low)),
        "alarms": alarms,
        "runs": runs,
        "rate": _rate(alarms, runs),
    }


# What an audit would have noticed.


# A fault counts as noticed where an alarm's probability is at least ``POWER``.

# Predictions are to leading order in k/d.
SMALLEST_DIM = 1000
# Halvings of the interval in which a parameter becomes noticed, and residuals to average over.
_STEPS = 10
_RESIDUALS = 40


@dataclass(frozen=True)
class Range:
    """The part of a mechanism's parameter that an audit would have noticed, or would not have."""

    # mechanism, title, parameter: the mechanism's name, what is wrong with it, and what its parameter is.
    mechanism: str
    title: str
    parameter: str
    # low, high: ends of the part, of the values in the atlas.
    low: float
    high: float
    epsilon: float  # Largest true ε in it
    # Probability of an alarm: the smallest in a part that would have been noticed, the largest in one that would not.
    alarm: float


@dataclass(frozen=True)
class BlindSpots:
    """What an audit would have noticed, and what not."""

    # noise_multiplier, epsilon: deviation of the noise that is taken to be claimed, in units of the canary norm, and
    # its ε.
    noise_multiplier: float
    epsilon: float
    given: bool  # Whether it was given, and not that of ε = 3
    # noticed, unnoticed: faults of the atlas that would have raised an alarm with probability 90%, and faults that
    # would not.
    noticed: tuple[Range, ...]
    unnoticed: tuple[Range, ...]


def blind_spots(
    dim: int | None,
    delta: float,
    count: int,
    null_count: int | None,
    noise_multiplier: float | None,
    *,
    orthonormal: bool = False,
) -> BlindSpots | None:
    """Foretell what an audit would have noticed; None where the dimension is not known, or too small.

    The noise is in units of the canary norm; that of ε = 3 if None.
    """
    if dim is None or dim < SMALLEST_DIM:
        return None
    given = noise_multiplier is not None
    sigma = float(gaussian_mechanism.noise_multiplier(EPSILON, delta)) if noise_multiplier is None else noise_multiplier
    claim = Claim(sigma, delta, dim)
    noticed, unnoticed = ranges(claim, count, null_count, orthonormal=orthonormal)
    return BlindSpots(sigma, claim.epsilon, given, noticed, unnoticed)


@lru_cache(maxsize=64)
def ranges(
    claim: Claim, count: int, null_count: int | None = None, *, orthonormal: bool = False
) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """List what an audit would have noticed, with probability 90%, and what not though its ε is above the claimed one.

    The null is of ``null_count`` unobserved canaries, whose scores may be maxima over rounds; None for a single
    release. Orthonormal canaries are in a single release, and all other directions are unobserved.
    """
    if orthonormal:
        null_count = claim.dim - count
    noticed, missed = [], []
    for mechanism in MECHANISMS.values():
        several = any(mechanism.weights(value).shape[1] > 1 for value in mechanism.values)
        if mechanism.scores is not None or (several and (orthonormal or null_count is None)):
            continue
        for part, seen in _parts(mechanism, claim, count, null_count, orthonormal=orthonormal):
            if seen:
                noticed.append(part)
            elif part.epsilon > claim.epsilon * (1.0 + 1e-9):
                missed.append(part)
    return tuple(noticed), tuple(missed)


def _parts(
    mechanism: Mechanism, claim: Claim, count: int, null_count: int | None, *, orthonormal: bool
) -> Iterator[tuple[Range, bool]]:
    """Split the values of a mechanism where alarms become probable, or cease to be."""

    def alarm(value: float) -> float:
        # The same residuals each time, so that it changes with the parameter alone.
        rng = np.random.default_rng(0)
        return alarm_probability(mechanism, value, claim, count, rng, null_count, _RESIDUALS, orthonormal=orthonormal)

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


def _range(mechanism: Mechanism, claim: Claim, points: list[float], alarms: dict[float, float]) -> tuple[Range, bool]:
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
