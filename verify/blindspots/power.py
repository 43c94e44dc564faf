"""How often each method raises an alarm, and what it says on the way."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from canaryproof.kernels import binomial
from canaryproof.verify.blindspots import methods, view
from canaryproof.verify.blindspots.mechanism import Array, Claim, Mechanism
from canaryproof.verify.blindspots.methods import Said
from canaryproof.verify.oneshot import moments
from canaryproof.verify.oneshot.moments import Moments

# Of the rates, two-sided.
CONFIDENCE = 0.999


def measure(
    mechanism: Mechanism, value: float, claim: Claim, count: int, runs: int, key: np.random.SeedSequence, *, exact: bool
) -> dict[str, Any]:
    """Audit runs of a mechanism by all methods.

    Parameters
    ----------
    mechanism, value, claim
        The mechanism, its parameter and the claim.
    count
        Number k of observed canaries; as many unobserved ones where several vectors are released, and CANIFE has k
        trials.
    runs
        Number of audits.
    key
        Root of the randomness.
    exact
        Whether scores are drawn with exactly their joint law, at a cost of k² a run, or to leading order.

    Returns
    -------
    The parameter, k, the truth, and for each method quartiles of ε̂ and the rate of alarms with its limits.
    """
    rng = np.random.default_rng(key)
    truth = mechanism.truth(value, claim)
    said = [*_said(mechanism, value, claim, count, runs, rng, exact=exact)]
    return {
        "value": value,
        "count": count,
        "runs": runs,
        "exact": exact,
        "truth": [truth.low, truth.high],
        "methods": {name: _summary(epsilon, low, claim.epsilon) for name, epsilon, low in said},
    }


def _said(
    mechanism: Mechanism,
    value: float,
    claim: Claim,
    count: int,
    runs: int,
    rng: np.random.Generator,
    *,
    exact: bool,
) -> Iterator[Said]:
    observed, unobserved, dim = _scores(mechanism, value, claim, count, runs, rng, exact=exact)
    found = moments.from_dimension(observed, dim)
    if unobserved is not None:
        found = moments.from_unobserved(observed, unobserved)
    yield from methods.estimates(found, claim.delta)
    yield from methods.bounds(observed, unobserved, dim, claim.delta)
    if mechanism.canife is not None:
        yield methods.canife(mechanism.canife(value, claim), count, runs, rng)


def _scores(
    mechanism: Mechanism, value: float, claim: Claim, count: int, runs: int, rng: np.random.Generator, *, exact: bool
) -> tuple[Array, Array | None, int]:
    """Draw scores of observed canaries, and of unobserved ones where the law of these is not known; and d."""
    if mechanism.scores is not None:
        return *mechanism.scores(value, claim, count, runs, rng), claim.dim
    draw = view.exact if exact else view.leading
    weights = mechanism.weights(value)
    several = weights.shape[1] > 1
    residual = mechanism.residual(value, claim, runs, rng)
    observed, unobserved = draw(residual, weights, count, count if several else 2, rng)
    return observed, unobserved if several else None, residual.dim


def predicted(
    mechanism: Mechanism, value: float, claim: Claim, count: int, runs: int, rng: np.random.Generator
) -> Moments:
    """Draw moments of runs that release one vector, to leading order and at no cost in k.

    √d times a cosine is normal about √d/‖ρ‖ times the canary's weight, with variance 1: their mean is normal, and k
    times their variance a chi-square variable with k − 1 degrees of freedom, about that of the weights' part.
    """
    weights = mechanism.weights(value)[:, 0]
    residual = mechanism.residual(value, claim, runs, rng)
    length = np.sqrt(residual.gram[:, 0, 0] + count * (weights**2).mean())
    shift = math.sqrt(residual.dim) * weights / length[:, np.newaxis]
    mean = shift.mean(axis=1) + rng.standard_normal(runs) / math.sqrt(count)
    # Canaries of other weights are about other means.
    squares = rng.noncentral_chisquare(count - 1, count * shift.var(axis=1))
    return Moments(mean, np.sqrt(squares / count), count)


def _summary(epsilon: Array, low: Array, claimed: float) -> dict[str, Any]:
    alarms, runs = int((low > claimed).sum()), len(low)
    return {
        "epsilon": np.quantile(epsilon, (0.25, 0.5, 0.75)).tolist(),
        "low": float(np.median(low)),
        "alarms": alarms,
        "rate": [alarms / runs, *binomial.interval(alarms, runs, CONFIDENCE)],
    }
