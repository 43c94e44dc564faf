"""Mechanisms whose scores and whose ε at every δ are known: what bounds are measured on."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.bounds.lower_bound import ExactNull, discrete_null, normal_null

Array = NDArray[np.float64]
Shape = tuple[int, ...]

# δ at which the Gaussian ones are calibrated to their nominal ε.
DELTA = 1e-5
# The rounded mechanism releases multiples of this.
_UNIT = 0.5
_REACH = 13.0


@dataclass(frozen=True)
class ScoredMechanism:
    """A mechanism audited canary by canary, independently."""

    name: str  # Family
    nominal: float  # ε that it is made for
    # draw, draw_null: draw scores of canaries that took part, and that did not.
    draw: Callable[[np.random.Generator, Shape], Array]
    draw_null: Callable[[np.random.Generator, Shape], Array]
    null: ExactNull  # The law of the latter
    epsilon: Callable[[float], float]  # ε at δ, exactly but for rounding


def _shift(nominal: float, delta: float = DELTA) -> float:
    return 1.0 / float(gaussian_mechanism.noise_multiplier(nominal, delta)) if nominal > 0.0 else 0.0


@cache
def _normal() -> ExactNull:
    return normal_null()


def gaussian(nominal: float, at: float = DELTA) -> ScoredMechanism:
    """Return N(μ, 1) against N(0, 1), with ε nominal at the given δ."""
    mu = _shift(nominal, at)
    return ScoredMechanism(
        "Gaussian",
        nominal,
        lambda rng, shape: mu + rng.standard_normal(shape),
        lambda rng, shape: rng.standard_normal(shape),
        _normal(),
        lambda delta: float(gaussian_mechanism.epsilon(delta, 1.0 / mu)) if mu > 0.0 else 0.0,
    )


@cache
def _laplace_null() -> ExactNull:
    def log_tail(x: Array) -> Array:
        low = np.log1p(-0.5 * np.exp(np.minimum(x, 0.0)))
        return np.asarray(np.where(x > 0.0, -x - math.log(2.0), low))

    def place(log_tail: Array) -> Array:
        with np.errstate(divide="ignore"):
            low = np.log(2.0 * -np.expm1(log_tail))
        return np.asarray(np.where(log_tail < -math.log(2.0), -log_tail - math.log(2.0), low))

    return ExactNull("Laplace", log_tail, place)


def laplace(nominal: float) -> ScoredMechanism:
    """Return Laplace noise of scale 1 around ε and around 0, which is (ε, 0)-private."""
    return ScoredMechanism(
        "Laplace",
        nominal,
        lambda rng, shape: nominal + rng.laplace(size=shape),
        lambda rng, shape: rng.laplace(size=shape),
        _laplace_null(),
        # δ(e) = 1 − exp((e − ε)/2) for 0 ≤ e ≤ ε.
        lambda delta: max(0.0, nominal + 2.0 * math.log1p(-delta)),
    )


def randomised_response(nominal: float) -> ScoredMechanism:
    """Return the truth, 1 or 0, with probability e^ε/(1 + e^ε) and the other otherwise."""
    right, wrong = (float(special.expit(sign * nominal)) for sign in (1.0, -1.0))
    return ScoredMechanism(
        "randomised response",
        nominal,
        lambda rng, shape: (rng.random(shape) < right).astype(np.float64),
        lambda rng, shape: (rng.random(shape) < wrong).astype(np.float64),
        discrete_null([0.0, 1.0], [right, wrong]),
        lambda delta: max(0.0, math.log((right - delta) / wrong)) if right > delta else 0.0,
    )


def _atoms(mu: float) -> Array:
    """Probabilities of N(μ, 1) rounded to multiples of the unit, from −reach to reach."""
    ends = np.arange(-_REACH - 0.5 * _UNIT, _REACH + _UNIT, _UNIT) - mu
    # On either side from the tail that is small.
    below, above = np.diff(special.ndtr(ends)), -np.diff(special.ndtr(-ends))
    return np.asarray(np.where(ends[1:] <= 0.0, below, above))


@cache
def _rounded_null() -> ExactNull:
    return discrete_null(np.arange(-_REACH, _REACH + 0.5 * _UNIT, _UNIT), _atoms(0.0))


def rounded_gaussian(nominal: float) -> ScoredMechanism:
    """Return the Gaussian mechanism's score rounded to halves: full of ties, and a little more private."""
    mu = _shift(nominal)
    one, other = _atoms(mu), _atoms(0.0)

    def excess(epsilon: float, delta: float) -> float:
        both = ((one, other), (other, one))
        return max(float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) for p, q in both) - delta

    def epsilon(delta: float) -> float:
        if excess(0.0, delta) <= 0.0:
            return 0.0
        return float(optimize.brentq(excess, 0.0, nominal + 3.0, args=(delta,), xtol=1e-13))

    return ScoredMechanism(
        "rounded Gaussian",
        nominal,
        lambda rng, shape: _UNIT * np.rint((mu + rng.standard_normal(shape)) / _UNIT),
        lambda rng, shape: _UNIT * np.rint(rng.standard_normal(shape) / _UNIT),
        _rounded_null(),
        epsilon,
    )


FAMILIES = (gaussian, laplace, randomised_response, rounded_gaussian)
