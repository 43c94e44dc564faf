"""How often each method raises an alarm, and what it says on the way."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from canaryproof.kernels import binomial
from canaryproof.verify.blindspots import methods, prediction, view
from canaryproof.verify.blindspots.mechanism import Array, Claim, Mechanism, gaussian_truth
from canaryproof.verify.blindspots.methods import Said
from canaryproof.verify.oneshot import moments
from canaryproof.verify.oneshot.moments import Moments

# Of the rates, two-sided.
CONFIDENCE = 0.999


@dataclass(frozen=True)
class Size:
    """How much is drawn where k canaries take part.

    Attributes
    ----------
    count
        Number k of observed canaries; as many unobserved ones where several vectors are released, and CANIFE has k
        trials.
    runs
        Number of audits by the default estimator.
    few
        How many of them are audited by every method; 0 to do without.
    coins
        Number of audits in which each of 2k canaries takes part by a fair coin.
    exact
        Whether scores are drawn with exactly their joint law, at a cost of k² a run, or to leading order.
    """

    count: int
    runs: int
    few: int
    coins: int
    exact: bool


def measure(
    mechanism: Mechanism, value: float, claim: Claim, size: Size, key: np.random.SeedSequence
) -> dict[str, Any]:
    """Audit runs of a mechanism by all methods.

    Parameters
    ----------
    mechanism, value, claim
        The mechanism, its parameter and the claim.
    size
        How much is drawn.
    key
        Root of the randomness.

    Returns
    -------
    The parameter, k, the truth, the bound of what scores can tell, the default estimator's rate of alarms as measured
    and as predicted, ε̂ of canaries without number and of CANIFE's trials without number, and for each method quartiles
    of ε̂ and the rate of alarms with its limits.
    """
    rng, other = (np.random.default_rng(one) for one in key.spawn(2))
    truth = mechanism.truth(value, claim)
    observed, unobserved = _scores(mechanism, value, claim, size, rng)
    alarms = _default_alarms(observed, unobserved, claim)
    few = observed[: size.few], None if unobserved is None else unobserved[: size.few]
    foretold = prediction.foretell(mechanism, value, claim, size.count, other)
    said = [*_said(mechanism, value, claim, few, rng)] if size.few else []
    said += _coins(mechanism, value, claim, size, rng)
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
        "methods": {name: _summary(epsilon, low, claim.epsilon) for name, epsilon, low in said},
    }


def alarms_of(mechanism: Mechanism, value: float, claim: Claim, size: Size, key: np.random.SeedSequence) -> int:
    """Count the audits in which the default estimator raises an alarm; arguments as for ``measure``."""
    return _default_alarms(*_scores(mechanism, value, claim, size, np.random.default_rng(key)), claim)


def _default_alarms(observed: Array, unobserved: Array | None, claim: Claim) -> int:
    return int((methods.default_low(_moments(observed, unobserved, claim), claim.delta) > claim.epsilon).sum())


def _scores(
    mechanism: Mechanism, value: float, claim: Claim, size: Size, rng: np.random.Generator
) -> tuple[Array, Array | None]:
    """Draw scores of observed canaries, and of unobserved ones where the law of these is not known."""
    if mechanism.scores is not None:
        return mechanism.scores(value, claim, size.count, size.runs, rng)
    draw = view.exact if size.exact else view.leading
    weights = mechanism.weights(value)
    residual = mechanism.residual(value, claim, size.runs, rng)
    if weights.shape[1] > 1:
        return draw(residual, weights, size.count, size.count, rng)
    return draw(residual, weights, size.count, 0, rng)[0], None


def _moments(observed: Array, unobserved: Array | None, claim: Claim) -> Moments:
    if unobserved is None:
        return moments.from_dimension(observed, claim.dim)
    return moments.from_unobserved(observed, unobserved)


def _said(
    mechanism: Mechanism, value: float, claim: Claim, scores: tuple[Array, Array | None], rng: np.random.Generator
) -> Iterator[Said]:
    runs, count = scores[0].shape
    yield from methods.estimates(_moments(*scores, claim), claim.delta)
    yield from methods.bounds(*scores, claim.dim, claim.delta)
    if mechanism.canife is not None:
        yield methods.canife(mechanism.canife(value, claim), count, runs, rng)


def _coins(mechanism: Mechanism, value: float, claim: Claim, size: Size, rng: np.random.Generator) -> Iterator[Said]:
    """Bound ε of runs in which each of 2k canaries takes part by a fair coin."""
    found: dict[str, list[Array]] = {}
    for seen in np.clip(rng.binomial(2 * size.count, 0.5, size.coins), 1, 2 * size.count - 1).tolist():
        absent = 2 * size.count - seen
        if mechanism.scores is not None:
            observed, unobserved = mechanism.scores(value, claim, max(seen, absent), 1, rng)
        else:
            residual = mechanism.residual(value, claim, 1, rng)
            observed, unobserved = view.leading(residual, mechanism.weights(value), seen, absent, rng)
        observed, unobserved = observed[:, :seen], unobserved[:, :absent]
        for name, values, _ in methods.coin_bounds(observed[0], unobserved[0], claim.delta):
            found.setdefault(name, []).append(values)
    for name, parts in found.items():
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
