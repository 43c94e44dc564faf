"""What an audit would have noticed of the atlas's mechanisms, and what not, as foretold from their residuals."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.blindspots import alarms as prediction
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim, Mechanism

# What is taken to be claimed where nothing is said.
EPSILON = 3.0
# Probability of an alarm from which on a fault counts as noticed.
POWER = 0.9
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
    # ‖ρ‖²/(σ²d) − 1 of a released vector ρ: what it holds beside the claimed noise; None if either is not known.
    dilution: float | None


def blind_spots(
    dim: int | None, delta: float, count: int, null_count: int | None, noise_multiplier: float | None
) -> BlindSpots | None:
    """Foretell what an audit would have noticed; None where the dimension is not known, or too small.

    The noise is in units of the canary norm; that of ε = 3 if None.
    """
    if dim is None or dim < SMALLEST_DIM:
        return None
    given = noise_multiplier is not None
    sigma = float(gaussian_mechanism.noise_multiplier(EPSILON, delta)) if noise_multiplier is None else noise_multiplier
    claim = Claim(sigma, delta, dim)
    noticed, unnoticed = ranges(claim, count, null_count)
    return BlindSpots(sigma, claim.epsilon, given, noticed, unnoticed, None)


@lru_cache(maxsize=64)
def ranges(claim: Claim, count: int, null_count: int | None = None) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """List what an audit would have noticed, with probability 90%, and what not though its ε is above the claimed one.

    The null is of ``null_count`` unobserved canaries, whose scores may be maxima over rounds; None for a single
    release.
    """
    noticed, missed = [], []
    for mechanism in MECHANISMS.values():
        several = any(mechanism.weights(value).shape[1] > 1 for value in mechanism.values)
        if mechanism.scores is not None or (several and null_count is None):
            continue
        for part, seen in _parts(mechanism, claim, count, null_count):
            if seen:
                noticed.append(part)
            elif part.epsilon > claim.epsilon * (1.0 + 1e-9):
                missed.append(part)
    return tuple(noticed), tuple(missed)


def _parts(mechanism: Mechanism, claim: Claim, count: int, null_count: int | None) -> Iterator[tuple[Range, bool]]:
    """Split the values of a mechanism where alarms become probable, or cease to be."""

    def alarm(value: float) -> float:
        # The same residuals each time, so that it changes with the parameter alone.
        rng = np.random.default_rng(0)
        return prediction.alarm(mechanism, value, claim, count, rng, null_count, _RESIDUALS)

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
    found = [alarms[point] for point in points]
    seen = found[0] >= POWER
    return Range(
        mechanism.name,
        mechanism.title,
        mechanism.parameter,
        points[0],
        points[-1],
        max(mechanism.truth(point, claim).high for point in points),
        min(found) if seen else max(found),
    ), seen
