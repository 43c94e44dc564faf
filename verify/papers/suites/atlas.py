"""The atlas's cells: rates of alarms of each method and each diagnostic on a mechanism, drawn and predicted.

With T releases, scores are drawn in a basis that begins with the T residuals. On the rest of the space, the canaries'
Gram matrix has Bartlett's triangular factor.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from canaryproof.kernels import exact_law
from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.blindspots.diagnostics import norm_p_value, part_norms_p_value, rounds_p_value
from canaryproof.verify.audit.blindspots.mechanisms import AtlasClaim, Mechanism, ReleaseResidual, gaussian_truth
from canaryproof.verify.audit.blindspots.ranges import ALPHA, RESIDUALS, leading, power, score_laws, square_root
from canaryproof.verify.audit.bounds.catalogue import MEASURED as METHODS
from canaryproof.verify.audit.bounds.lower_bound import BoundKind, Inclusion, Method, ScoreSample, cosine_null, prepare
from canaryproof.verify.audit.bounds.one_run import METHODS as ONE_RUN
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.epsilon_estimators import Estimate
from canaryproof.verify.audit.estimators.moments import Moments, Shape, from_dimension, from_two_groups, shape_of
from canaryproof.verify.papers.canife.measure import round_epsilon
from canaryproof.verify.papers.records.evidence import (
    ALARM_CONFIDENCE,
    AtlasCell,
    DiagnosticAlarms,
    MethodAlarms,
    rate_of,
)


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
    for basis in square_root(residual.gram):
        axes = len(basis)
        canaries = _directions(count, residual.dim, axes, rng)
        releases = weights[rounds].T @ canaries
        releases[:, :axes] += basis
        lengths = np.linalg.norm(releases, axis=1)
        observed.append((canaries @ (releases.T / lengths)).max(axis=1))
        # The releases do not depend on unobserved canaries, so that only their span matters.
        own = rng.standard_normal((null_count, axes))
        norms = np.sqrt((own**2).sum(axis=1) + rng.chisquare(residual.dim - axes, null_count))
        cosines = own @ (square_root(releases @ releases.T) / lengths[:, np.newaxis]).T
        unobserved.append((cosines / norms[:, np.newaxis]).max(axis=1))
    return np.array(observed), np.array(unobserved)


def leading_moments(residual: ReleaseResidual, weight: float, count: int, rng: np.random.Generator) -> Moments:
    """Draw the moments of scores to leading order, where canaries of one weight are in one vector, from their laws.

    Scores are independent and normal. Their shape, which is independent of mean and variance (Basu 1955), is drawn
    where the default estimator asks for it, and elsewhere taken for normal.
    """
    lengths = np.sqrt(residual.gram[:, 0, 0] + count * weight**2)
    means = math.sqrt(residual.dim) * weight / lengths + rng.standard_normal(len(lengths)) / math.sqrt(count)
    moments = Moments(means, np.sqrt(rng.chisquare(count - 1, len(lengths)) / count), count)
    differ = epsilon_estimators.variance_p_value(moments) < epsilon_estimators.TEST_LEVEL
    skewness, kurtosis = np.zeros_like(means), np.full_like(means, 3.0)
    if differ.any() and (normal := shape_of(rng.standard_normal((int(differ.sum()), count)))):
        skewness[differ], kurtosis[differ] = normal.skewness, normal.kurtosis
    return replace(moments, shape=Shape(skewness, kurtosis))


# Results of each method for scores. A method raises an alarm where its lower end is above the claimed ε.


# A method's name, its estimate or bound for each run, and its lower end at confidence 1 − α.
Report = tuple[str, Array, Array]

ESTIMATORS: dict[str, Callable[..., Estimate]] = {
    name: getattr(epsilon_estimators, f"{name}_estimate") for name in ("adaptive", "pinned", "fitted", "threshold")
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
        if method.can_use(scores):
            values, _ = method.values(scores, delta, ALPHA)
            yield name, values, values


def canife(deviation: float, trials: int, runs: int, rng: np.random.Generator) -> Report:
    """Draw CANIFE's trials of a round, half with its canary, and measure them as printed with its upper cap.

    Maddock et al. (arXiv 2210.02912), Section 3.4, with δ = 1/n; the lower end is by its Clopper–Pearson limits.
    """
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
    law, unlimited = score_laws(mechanism, value, claim, count, rng, RESIDUALS)
    if math.isfinite(unlimited.null_count):
        epsilon = epsilon_estimators.adaptive_estimate(unlimited, claim.delta).epsilon
    else:
        epsilon = epsilon_estimators.both_directions(claim.delta, unlimited.distance, unlimited.ratio)
    median, highest = np.quantile(epsilon, (0.5, 0.99)).tolist()
    return Prediction(power(law, 1.0 / claim.noise_multiplier), median, highest)


# Rates of alarms of each method, with its results.


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
        rate=rate_of(alarms, size.runs, ALARM_CONFIDENCE),
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
    return int((epsilon_estimators.adaptive_low(moments, claim.delta, 1.0 - 2.0 * ALPHA) > claim.epsilon).sum())


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
    return from_two_groups(observed, unobserved)


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


def _summary(epsilon: Array, low: Array, claimed: float) -> MethodAlarms:
    alarms, runs = int((low > claimed).sum()), len(low)
    first, median, third = np.quantile(epsilon, (0.25, 0.5, 0.75)).tolist()
    return MethodAlarms((first, median, third), float(np.median(low)), alarms, runs)


# Rates of alarms of diagnostics other than cosines.


def confined(mechanism: Mechanism, claim: AtlasClaim, index: int = 0) -> Mechanism:
    """Return the mechanism that canaries see which are uniform directions of one part of the release.

    Its claim is the same, with the dimension of that part.
    """
    return replace(
        mechanism,
        draw=lambda value, _claim, runs, rng: mechanism.residual(value, claim, runs, rng).part(index),
        canife=None,
    )


def _diagonals(residual: ReleaseResidual) -> Array:
    """Return squared norms summed over the rounds, shape (runs, parts)."""
    return np.asarray(np.trace(residual.grams, axis1=2, axis2=3))


def _norm(residual: ReleaseResidual, claim: AtlasClaim) -> Array:
    together = residual.gram.shape[-1] * residual.dim
    return norm_p_value(_diagonals(residual).sum(axis=1), claim.noise_multiplier, together)


def _part_norms(residual: ReleaseResidual, claim: AtlasClaim) -> Array:
    rounds = residual.gram.shape[-1]
    dims = tuple(rounds * dim for dim in residual.dims)
    return part_norms_p_value(_diagonals(residual), claim.noise_multiplier, dims)


def _rounds(residual: ReleaseResidual, claim: AtlasClaim) -> Array | None:
    if residual.gram.shape[-1] == 1:
        return None
    return rounds_p_value(residual.gram, claim.noise_multiplier, residual.dim)


# p-values of each run by diagnostic; None where a diagnostic does not apply.
DIAGNOSTICS: dict[str, Callable[[ReleaseResidual, AtlasClaim], Array | None]] = {
    "norm": _norm,
    "part-norms": _part_norms,
    "rounds": _rounds,
}


def diagnose(
    mechanism: Mechanism, value: float, claim: AtlasClaim, runs: int, key: np.random.SeedSequence
) -> dict[str, DiagnosticAlarms]:
    """Test residuals of a mechanism by all diagnostics that apply, each at level α = 5%: p-value, alarms and rate."""
    residual = mechanism.residual(value, claim, runs, np.random.default_rng(key))
    stated = replace(claim, noise_multiplier=mechanism.stated(value) * claim.noise_multiplier)
    tested = {name: test(residual, stated) for name, test in DIAGNOSTICS.items()}
    cells = {}
    for name, p_values in tested.items():
        if p_values is not None:
            alarms = int((p_values <= ALPHA).sum())
            rate = rate_of(alarms, runs, ALARM_CONFIDENCE)
            cells[name] = DiagnosticAlarms(float(np.median(p_values)), alarms, rate)
    return cells
