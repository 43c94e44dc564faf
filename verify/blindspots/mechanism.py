"""What a mechanism of the atlas is: what it claims, what is true, and what it leaves for canaries to be found in."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels.certified import gaussian_mechanism

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Claim:
    """What whoever releases a model says of it.

    Attributes
    ----------
    noise_multiplier
        Standard deviation σ of the noise on each coordinate, in units of the clip norm.
    delta
        δ in (0, 1).
    dim
        Dimension d of the release.
    """

    noise_multiplier: float
    delta: float
    dim: int

    @cached_property
    def epsilon(self) -> float:
        """ε of the Gaussian mechanism with that noise, rounded up: what the release says of itself."""
        return gaussian_truth(self, 1.0).high


@dataclass(frozen=True)
class Truth:
    """ε of a mechanism at the claim's δ, for one client added or removed.

    Attributes
    ----------
    low, high
        Floats proven to lie on either side of it, given the reason; both infinite if no ε serves.
    reason
        Why it is what it is.
    """

    low: float
    high: float
    reason: str


@dataclass(frozen=True)
class Residual:
    """What a release holds beside its canaries, up to a rotation of each part: noise and data.

    Attributes
    ----------
    dims
        Dimensions of the parts, layers for instance, shape (parts,).
    grams
        Inner products of the T released vectors' residuals on each part, shape (runs, parts, T, T), in units of
        the clip norm squared.
    """

    dims: tuple[int, ...]
    grams: Array

    @property
    def dim(self) -> int:
        """Dimension d of the release."""
        return sum(self.dims)

    @property
    def gram(self) -> Array:
        """Inner products of the residuals as a whole, shape (runs, T, T)."""
        return np.asarray(self.grams.sum(axis=1))

    def part(self, index: int) -> "Residual":
        """Return what canaries that are confined to one part have beside them."""
        return Residual((self.dims[index],), self.grams[:, [index]])


@dataclass(frozen=True)
class Mechanism:
    """A mechanism with one parameter that leads from harmless to broken.

    Attributes
    ----------
    name
        Name, short and without spaces.
    title
        What is wrong with it.
    parameter
        What the parameter is.
    values
        Its values, in the order in which things change.
    truth
        ε of the mechanism with a parameter, beside a claim.
    draw
        Draw residuals: parameter, claim, number of runs and source of randomness; None where there are ``scores``.
    weights
        Weight of a canary of each round in each released vector, shape (rounds, T), by parameter; a canary takes part
        in one round.
    canife
        Standard deviation of CANIFE's scores, whose means are 0 and 1, by parameter and claim; None where a single
        round is not what is broken.
    scores
        Draw scores of as many observed as unobserved canaries, each of shape (runs, count), where they are no cosines
        of uniform directions: parameter, claim, count, number of runs and source of randomness.
    distance
        Bound, proven, of the total variation between the law of all of an audit's scores and that of the mechanism as
        claimed, by parameter and claim: so much more often an alarm may come, at most, and at 0 nothing that is made
        of scores can see anything, in principle. 1 where nothing is proven.
    """

    name: str
    title: str
    parameter: str
    values: tuple[float, ...]
    truth: Callable[[float, Claim], Truth]
    draw: Callable[[float, Claim, int, np.random.Generator], Residual] | None
    weights: Callable[[float], Array] = lambda _value: np.ones((1, 1))
    canife: Callable[[float, Claim], float] | None = None
    scores: Callable[[float, Claim, int, int, np.random.Generator], tuple[Array, Array]] | None = None
    distance: Callable[[float, Claim], float] = lambda _value, _claim: 1.0

    def residual(self, value: float, claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
        """Draw residuals; a ``ValueError`` where there are none to be drawn."""
        if self.draw is None:
            raise ValueError(f"{self.name}: its canaries are no uniform directions")
        return self.draw(value, claim, runs, rng)


def gaussian_truth(claim: Claim, factor: float, reason: str = "Gaussian noise") -> Truth:
    """Return ε of the Gaussian mechanism with the claimed noise multiplier times a factor, certified."""
    if factor <= 0.0:
        return without_noise(reason)
    found = [gaussian_mechanism.epsilon(claim.delta, z) for z in _around(claim.noise_multiplier * factor)]
    return Truth(min(one.lo for one in found), max(one.hi for one in found), reason)


def without_noise(reason: str) -> Truth:
    """Return the truth of what tells a client's presence with certainty: no ε serves at any δ < 1."""
    return Truth(math.inf, math.inf, reason)


def _around(value: float) -> tuple[float, float]:
    # A factor of a few rounded operations.
    return value * (1.0 - 1e-14), value * (1.0 + 1e-14)


def single(dims: tuple[int, ...], squares: Array) -> Residual:
    """Return the residuals of single releases from their squared norms on each part, shape (runs, parts)."""
    return Residual(dims, squares[:, :, np.newaxis, np.newaxis])
