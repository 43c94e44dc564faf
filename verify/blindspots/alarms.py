"""Rates of alarms of each method on a mechanism: drawn, and predicted from the residual alone.

By these predictions, the last part lists the faults of the atlas that an audit would have noticed, and the others.

A canary is a uniformly random direction, drawn independently. Random canaries are rotation-invariant, so the joint law
of all their cosines depends on the residuals through their inner products alone. Where one vector is released, that is
one number, the residual's norm (proofs_check, blind_spots.md), as the data's norm is for ``exact_law``. With T
releases, scores are drawn in a basis that begins with the T residuals. On the rest of the space, the canaries' Gram
matrix has Bartlett's triangular factor.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from scipy import stats

from canaryproof.kernels import binomial, exact_law
from canaryproof.kernels.arrays import Array
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, AtlasClaim, Mechanism, ReleaseResidual, gaussian_truth
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.lower_bound import (
    BoundKind,
    Inclusion,
    Method,
    ScoreSample,
    cosine_null,
    prepare,
)
from canaryproof.verify.bounds.one_run import METHODS as ONE_RUN
from canaryproof.verify.check.evidence import AtlasCell, MethodAlarms, Rate
from canaryproof.verify.check.levels import POWER
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
        # The releases do not depend on unobserved canaries, so that only their span matters.
        own = rng.standard_normal((null_count, axes))
        norms = np.sqrt((own**2).sum(axis=1) + rng.chisquare(residual.dim - axes, null_count))
        cosines = own @ (_factor(releases @ releases.T) / lengths[:, np.newaxis]).T
        unobserved.append((cosines / norms[:, np.newaxis]).max(axis=1))
    return np.array(observed), np.array(unobserved)


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


# Results of each method for scores. A method raises an alarm where its lower end is above the claimed ε.


ALPHA = 0.05
# A method's name, its estimate or bound for each run, and its lower end at confidence 1 − α.
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


def estimates(moments: Moments, delta: float) -> Iterator[Report]:
    """Estimate ε of runs from their moments."""
    for name, estimator in ESTIMATORS.items():
        estimate = estimator(moments, delta, 1.0 - 2.0 * ALPHA)
        yield name, estimate.epsilon, estimate.low


def bounds(observed: Array, unobserved: Array | None, dim: int, delta: float) -> Iterator[Report]:
    """Bound ε of runs of fixed inclusion from below, with cosines' exact null unless there are unobserved scores."""
    null = cosine_null(dim) if unobserved is None else None
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
    # The module takes a second to load, and an audit does not need it.
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


@dataclass(frozen=True)
class Prediction:
    """A prediction of the default estimator."""

    # alarm: probability that its lower end is above the claimed ε, to leading order in k/d.
    alarm: float

    # epsilon, highest: median and 99% quantile, over releases, of ε̂ from ever more canaries in ever more dimensions.
    epsilon: float
    highest: float


def predict(mechanism: Mechanism, value: float, claim: AtlasClaim, count: int, rng: np.random.Generator) -> Prediction:
    """Predict the default estimator on a mechanism with k observed canaries.

    There are as many unobserved canaries where scores are not single cosines.
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
    law, alone = _laws(mechanism, value, claim, count, rng, residuals)
    if orthonormal:
        law = alone
    if null_count is not None:
        law = replace(law, null_count=null_count)
    return _power(law, 1.0 / claim.noise_multiplier)


def _laws(
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
    sample = from_unobserved(observed.ravel(), unobserved.ravel())
    return replace(sample, count=count, null_count=float(count)), sample


def _power(law: Moments, claimed: float) -> float:
    """Return the probability that the mean of scores with these moments is significantly above the claimed one."""
    count, null_count = law.count, law.null_count
    distance = estimators.pinned_distance(law)
    freedom, error, scale = count - 1.0, np.asarray(1.0 / math.sqrt(count)), law.ratio
    if math.isfinite(null_count):
        freedom = min(freedom, count + null_count - 2.0)
        error = estimators.pinned_error(law)
        scale = np.maximum(1.0, estimators.pinned_error(law.as_normal) / error)
    critical = stats.t.isf(ALPHA, freedom) * scale
    return float(np.mean(stats.nct.sf(critical, freedom, (distance - claimed) / error)))


# Rates of alarms of each method, with its results.


# Two-sided confidence of the rates.
CONFIDENCE = 0.999


@dataclass(frozen=True)
class Size:
    """Numbers of draws for one number of canaries."""

    # count: number k of observed canaries. There are as many unobserved ones where several vectors are released, and
    # CANIFE has k trials.
    count: int
    runs: int  # Number of audits by the default estimator
    few: int  # Number of these audits that every method makes, too; it may be 0
    coins: int  # Number of audits in which each of 2k canaries takes part by a fair coin
    exact: bool  # Whether scores are drawn with exactly their joint law, or to leading order


def measure(
    mechanism: Mechanism, value: float, claim: AtlasClaim, size: Size, key: np.random.SeedSequence
) -> AtlasCell:
    """Audit runs of a mechanism by all methods; return a cell of the atlas, its rates with their limits."""
    rng, other = (np.random.default_rng(child) for child in key.spawn(2))
    truth = mechanism.truth(value, claim)
    if _has_laws(mechanism, value, size):
        alarms = _alarms(_drawn_moments(mechanism, value, claim, size, rng), claim)
        few = _scores(mechanism, value, claim, replace(size, runs=max(1, size.few)), rng)
    else:
        observed, unobserved = _scores(mechanism, value, claim, size, rng)
        alarms = _alarms(_moments(observed, unobserved, claim), claim)
        few = observed[: size.few], None if unobserved is None else unobserved[: size.few]
    prediction = predict(mechanism, value, claim, size.count, other)
    reports = [*_reports(mechanism, value, claim, few, rng)] if size.few else []
    reports += _coins(mechanism, value, claim, size, rng)
    return AtlasCell(
        value=value,
        count=size.count,
        exact=size.exact,
        truth=(truth.low, truth.high),
        distance=mechanism.distance(value, claim),
        runs=size.runs,
        rate=_rate(alarms, size.runs),
        predicted=prediction.alarm,
        unlimited=(prediction.epsilon, prediction.highest),
        canife=None if mechanism.canife is None else _of_deviation(mechanism.canife(value, claim), claim),
        methods={name: _summary(epsilon, low, claim.epsilon) for name, epsilon, low in reports},
    )


def alarms_of(mechanism: Mechanism, value: float, claim: AtlasClaim, size: Size, key: np.random.SeedSequence) -> int:
    """Count the audits in which the default estimator raises an alarm."""
    rng = np.random.default_rng(key)
    if _has_laws(mechanism, value, size):
        return _alarms(_drawn_moments(mechanism, value, claim, size, rng), claim)
    return _alarms(_moments(*_scores(mechanism, value, claim, size, rng), claim), claim)


def _alarms(moments: Moments, claim: AtlasClaim) -> int:
    return int((estimators.adaptive_low(moments, claim.delta, 1.0 - 2.0 * ALPHA) > claim.epsilon).sum())


def _has_laws(mechanism: Mechanism, value: float, size: Size) -> bool:
    """Tell whether moments can be drawn from their laws, without the scores."""
    return not size.exact and mechanism.scores is None and mechanism.weights(value).size == 1


def _drawn_moments(
    mechanism: Mechanism, value: float, claim: AtlasClaim, size: Size, rng: np.random.Generator
) -> Moments:
    residual = mechanism.residual(value, claim, size.runs, rng)
    return leading_moments(residual, float(mechanism.weights(value)[0, 0]), size.count, rng)


def _scores(
    mechanism: Mechanism, value: float, claim: AtlasClaim, size: Size, rng: np.random.Generator
) -> tuple[Array, Array | None]:
    """Draw scores of observed canaries, and of unobserved ones where their law is not known."""
    if mechanism.scores is not None:
        return mechanism.scores(value, claim, size.count, size.runs, rng)
    draw = exact if size.exact else leading
    weights = mechanism.weights(value)
    residual = mechanism.residual(value, claim, size.runs, rng)
    if weights.shape[1] > 1:
        return draw(residual, weights, size.count, size.count, rng)
    return draw(residual, weights, size.count, 0, rng)[0], None


def _moments(observed: Array, unobserved: Array | None, claim: AtlasClaim) -> Moments:
    if unobserved is None:
        return from_dimension(observed, claim.dim)
    return from_unobserved(observed, unobserved)


def _reports(
    mechanism: Mechanism, value: float, claim: AtlasClaim, scores: tuple[Array, Array | None], rng: np.random.Generator
) -> Iterator[Report]:
    runs, count = scores[0].shape
    yield from estimates(_moments(*scores, claim), claim.delta)
    yield from bounds(*scores, claim.dim, claim.delta)
    if mechanism.canife is not None:
        yield canife(mechanism.canife(value, claim), count, runs, rng)


def _coins(
    mechanism: Mechanism, value: float, claim: AtlasClaim, size: Size, rng: np.random.Generator
) -> Iterator[Report]:
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


def _of_deviation(deviation: float, claim: AtlasClaim) -> float:
    """Return ε at δ of normal scores with the means 0 and 1, the limit of CANIFE with unlimited trials."""
    return gaussian_truth(claim, deviation / claim.noise_multiplier).high


def _rate(alarms: int, runs: int) -> Rate:
    low, high = binomial.interval(alarms, runs, CONFIDENCE)
    return alarms / runs, float(low), float(high)


def _summary(epsilon: Array, low: Array, claimed: float) -> MethodAlarms:
    alarms, runs = int((low > claimed).sum()), len(low)
    first, median, third = np.quantile(epsilon, (0.25, 0.5, 0.75)).tolist()
    return MethodAlarms((first, median, third), float(np.median(low)), alarms, runs, _rate(alarms, runs))


# Faults that an audit would have noticed: there the probability of an alarm is at least ``POWER``.


# Predictions are to leading order in k/d.
SMALLEST_DIM = 1000
# Halvings of the interval in which a parameter becomes noticed, and residuals to average over.
_STEPS = 10
_RESIDUALS = 40


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
