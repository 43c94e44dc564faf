"""Noise of finite precision, which the reviews of Andrew et al. name as what no such audit can see.

Noise that takes finitely many values, added exactly to what is released, leaves no ε at any δ < 1: the differences of
two of its values are finitely many, some vector of the unit ball is none of them, and the values with that client and
without it are disjoint sets. So it is with a generator of 2^b states, however good, and with coordinates made of
b-bit uniforms. What it takes to use it is another matter: 2^b trials of a generator, and next to nothing where single
coordinates are coarse (Mironov 2012), even if the sum is rounded to float32: ``accuses``. Rounding of the release of a
mechanism with an ε is harmless: whoever attacks could have done it.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from canaryproof.verify.blindspots.mechanism import (
    Array,
    Claim,
    Mechanism,
    Residual,
    Truth,
    gaussian_truth,
    single,
    without_noise,
)
from canaryproof.verify.blindspots.single_release import honest, unseen

Single = NDArray[np.float32]


def quantiles(bits: int) -> Array:
    """Return the 2^b values of a coordinate of noise of deviation 1: normal quantiles at (i + 1/2)/2^b."""
    size = 2**bits
    return np.asarray(special.ndtri((np.arange(size) + 0.5) / size))


def _sum(vector: ArrayLike, sigma: float, quantile: Array) -> Single:
    """Add noise to a vector, as single precision does it: the noise is rounded, its product with σ, and the sum."""
    noise = np.float32(sigma) * quantile.astype(np.float32)
    return np.asarray(np.asarray(vector, dtype=np.float32) + noise)


def release(vector: ArrayLike, bits: int, sigma: float, rng: np.random.Generator, runs: int) -> Single:
    """Release a vector in single precision, with noise made of b-bit uniforms.

    Parameters
    ----------
    vector
        The clients' sum, shape (d,).
    bits
        Number b of bits, at most 24.
    sigma
        Deviation of the noise.
    rng
        Source of randomness.
    runs
        Number of releases.

    Returns
    -------
    Releases, shape (runs, d).
    """
    size = 2**bits
    index = rng.integers(0, size, (runs, np.size(vector)))
    return _sum(vector, sigma, np.asarray(special.ndtri((index + 0.5) / size)))


def possible(releases: Single, vector: ArrayLike, bits: int, sigma: float) -> NDArray[np.bool_]:
    """Say of each coordinate of releases whether some uniform leads there from a vector: a few are tried."""
    size = 2**bits
    start = np.asarray(vector, dtype=np.float64)
    nearest = np.floor(special.ndtr((releases - start) / sigma) * size)
    # The quantile, the product and the sum err by 2^-24 of themselves at most; the density times that, in uniforms.
    reach = math.ceil(2.0 ** (bits - 24) * (1.0 + float(np.abs(start).max()) / sigma)) + 1
    found = np.zeros(releases.shape, dtype=np.bool_)
    for step in range(-reach, reach + 1):
        index = np.clip(nearest + step, 0, size - 1)
        found |= _sum(start, sigma, np.asarray(special.ndtri((index + 0.5) / size))) == releases
    return found


def accuses(releases: Single, others: ArrayLike, bits: int, sigma: float) -> NDArray[np.bool_]:
    """Attack releases, one a row: is what the other clients' sum leads to ruled out? It is never wrong."""
    return np.asarray(~possible(releases, others, bits, sigma).all(axis=-1))


@cache
def _square_moments(bits: int) -> tuple[float, float]:
    """Return mean and variance of a coordinate's square, for deviation 1."""
    square = quantiles(bits) ** 2
    return float(square.mean()), float(square.var())


def _draw_coarse(value: float, claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
    """Draw squared norms with their mean and variance, by the gamma law that is theirs where nothing is coarse."""
    if math.isinf(value):
        return honest(value, claim, runs, rng)
    mean, variance = _square_moments(int(value))
    squares = rng.gamma(claim.dim * mean**2 / variance, variance / mean, (runs, 1))
    return single((claim.dim,), claim.noise_multiplier**2 * squares)


def _finite(value: float, claim: Claim) -> Truth:
    if math.isinf(value):
        return gaussian_truth(claim, 1.0, "noise with a density, at most rounded afterwards")
    return without_noise("finitely many values, and other ones with the client")


MECHANISMS = (
    Mechanism(
        "few-states",
        "noise of a generator with few states",
        "bits of its state",
        (math.inf, 64.0, 32.0, 16.0, 0.0),
        _finite,
        # The generator's table of noise vectors is itself a draw, and so is any one vector of it.
        honest,
        canife=lambda value, claim: claim.noise_multiplier if value > 0.0 else 0.0,
        distance=unseen,
    ),
    Mechanism(
        "coarse-noise",
        "noise of the granularity of single precision, or coarser",
        "bits of the uniform behind a coordinate of the noise",
        (math.inf, 24.0, 16.0, 8.0, 4.0, 2.0),
        _finite,
        _draw_coarse,
        canife=lambda _value, claim: claim.noise_multiplier,
    ),
)
