"""Scores of one run that depend on each other, of the suite ``bounds``: mechanisms whose ε as a whole is known.

The null of a canary's score is N(0, 1) in each of them, among all other canaries.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.arrays import Array

# Traces of the scale that a run draws, and the probability of the larger one.
_LARGE, _SMALL, _SHARE = 2.0, 0.5, 0.3
_CORRELATION = 0.5
# ε of the mechanism with two states.
_PURE = 1.0


@dataclass(frozen=True)
class DependentScores:
    """A mechanism's scores of one run, by who takes part."""

    name: str
    draw: Callable[[np.random.Generator, NDArray[np.bool_]], Array]  # From who takes part, shape (runs, canaries)
    epsilon: Callable[[float, int], float]  # ε at δ, by the number of canaries
    is_conditional: bool  # Whether the null is that given all else
    mean_trace: float

    def draw_audit(self, rng: np.random.Generator, included: NDArray[np.bool_]) -> Array:
        """Draw the scores of one run, shape (canaries,)."""
        return np.asarray(self.draw(rng, included[np.newaxis])[0])


def _gaussian(delta: float, mu: float) -> float:
    if mu == 0.0:
        return 0.0
    return float(gaussian_mechanism.epsilon(delta, 1.0 / mu)) if delta > 0.0 else math.inf


def _scale(rng: np.random.Generator, included: NDArray[np.bool_]) -> Array:
    traces = np.where(rng.random((len(included), 1)) < _SHARE, _LARGE, _SMALL)
    return np.asarray(traces * included + rng.standard_normal(included.shape))


def _epsilon_of_scale(delta: float, _: int) -> float:
    """Return ε of the whole: the scale is shown, so that δ at an ε is the mean of both scales'."""
    parts = ((_SHARE, _LARGE), (1.0 - _SHARE, _SMALL))

    def excess(epsilon: float) -> float:
        return sum(share * float(gaussian_mechanism.delta(epsilon, 1.0 / mu)) for share, mu in parts) - delta

    return float(optimize.brentq(excess, 0.0, _gaussian(delta, _LARGE), xtol=1e-12)) if delta > 0.0 else math.inf


def _two_states(rng: np.random.Generator, included: NDArray[np.bool_]) -> Array:
    """Draw scores of a mechanism that is exactly (ε, 0)-private for each canary and each set of others.

    With n canaries left out it is in the first state with probability p·cosh(ε)^−n, and shows for each canary a
    half-space that holds its direction with odds e^2ε. In the second state, and for who is left out, the odds are even.
    """
    first = (1.0 - math.exp(-_PURE)) * math.cosh(_PURE) / (math.cosh(_PURE) - math.exp(-_PURE))
    left_out = (~included).sum(axis=1, keepdims=True)
    is_first = rng.random((len(included), 1)) < first * math.cosh(_PURE) ** -left_out.astype(np.float64)
    holds = rng.random(included.shape) < np.where(is_first & included, 1.0 / (1.0 + math.exp(-2.0 * _PURE)), 0.5)
    return np.asarray(np.where(holds, 1.0, -1.0) * np.abs(rng.standard_normal(included.shape)))


def _shared_noise(mu: float, correlation: float, rng: np.random.Generator, included: NDArray[np.bool_]) -> Array:
    shared, own = rng.standard_normal((len(included), 1)), rng.standard_normal(included.shape)
    return np.asarray(mu * included + math.sqrt(correlation) * shared + math.sqrt(1.0 - correlation) * own)


def _epsilon_at_correlation(mu: float, delta: float, count: int) -> float:
    """Return ε of one canary's mean under correlated noise: all other scores help to tell it."""
    precision = (1.0 + (count - 2) * _CORRELATION) / ((1.0 - _CORRELATION) * (1.0 + (count - 1) * _CORRELATION))
    return _gaussian(delta, mu * math.sqrt(precision))


MECHANISMS = (
    DependentScores(
        "scale drawn once a run",
        _scale,
        _epsilon_of_scale,
        is_conditional=True,
        mean_trace=_SHARE * _LARGE + (1.0 - _SHARE) * _SMALL,
    ),
    DependentScores("two states", _two_states, lambda _, __: _PURE, is_conditional=True, mean_trace=0.0),
    *(
        DependentScores(
            f"equicorrelated, trace {mu:g}",
            partial(_shared_noise, mu, _CORRELATION),
            partial(_epsilon_at_correlation, mu),
            is_conditional=False,
            mean_trace=mu,
        )
        for mu in (0.0, 1.0)
    ),
    DependentScores(
        "comonotone, trace 0", partial(_shared_noise, 0.0, 1.0), lambda _, __: 0.0, is_conditional=False, mean_trace=0.0
    ),
)
