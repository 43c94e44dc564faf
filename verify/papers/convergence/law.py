"""The laws of a run of Algorithm 1 at finite d and k: how far from normal, how dependent, how displaced."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from canaryproof.kernels import exact_law, gaussian_mechanism
from canaryproof.kernels.arrays import Array
from canaryproof.proofs_check import consistency, normal_distance
from canaryproof.verify.papers.records.convergence_record import NormalDistances

_DRAWN_AT_ONCE = 100_000


def distances(dim: int) -> NormalDistances:
    """Enclose the distances of a null cosine from normal, with their proven bounds."""
    kolmogorov, variation = normal_distance.kolmogorov(dim), normal_distance.total_variation(dim)
    return NormalDistances(
        dim=dim,
        total_variation=(variation.lo, variation.hi),
        total_variation_bound=float(normal_distance.total_variation_bound(dim)),
        kolmogorov=(kolmogorov.lo, kolmogorov.hi),
        kolmogorov_bound=float(normal_distance.kolmogorov_bound(dim)),
    )


def threshold(noise_multiplier: float, epsilon: float) -> float:
    """Return the score, in null deviations, beyond which δ(ε) is decided: the privacy loss is ε there."""
    return float(normal_distance.optimal_threshold(Fraction(noise_multiplier), Fraction(epsilon)))


def tail_error(score: float, dim: int) -> tuple[float, float] | None:
    """Enclose the relative error of the normal tail beyond a score; None so far out that no float has such a tail."""
    if score > normal_distance.LARGEST_THRESHOLD:
        return None
    error = normal_distance.tail_relative_error(score, dim)
    return error.lo, error.hi


def correlation(dim: int, count: int, noise_multiplier: float) -> float:
    """Return that of two canaries' inner products with the release: 1/(dσ² + k − 1).

    Each is 1 + Σ⟨cᵢ, cⱼ⟩ + σzᵢ, of variance σ² + (k − 1)/d, and they share ⟨cᵢ, cⱼ⟩, of variance 1/d.
    """
    return 1.0 / (dim * noise_multiplier**2 + count - 1.0)


def displaced_epsilon(dim: float, count: int, noise_multiplier: float, delta: float) -> float:
    """Return the ε that many runs would show: that of the noise √(σ² + k/d), as canaries lengthen the release."""
    return float(gaussian_mechanism.epsilon(delta, math.sqrt(noise_multiplier**2 + count / dim)))


def orthonormal_deviation(dim: int, observed: int, distance: float) -> float:
    """Return the leading deviation of the distance where canaries are orthonormal and all others unobserved.

    Section 2 of ``proofs_check/orthonormal_canaries.md``.
    """
    return math.sqrt(1.0 / observed + 1.0 / (dim - observed) + 0.5 * distance**2 / dim)


def fewest_orthonormal(error: float, dim: int, noise_multiplier: float, delta: float) -> int | None:
    """Return the least number of orthonormal canaries of which 95 of 100 runs err by at most so much in ε.

    It is to leading order, for ``pinned`` and all other directions unobserved; None if not even half of them do.
    """
    slope = consistency.slopes(delta, 1.0 / noise_multiplier).mean
    allowed = error / (slope * float(special.ndtri(0.975)))
    most = dim // 2
    if not most or orthonormal_deviation(dim, most, 1.0 / noise_multiplier) > allowed:
        return None
    # 1/k + 1/(d − k) + m²/(2d) is at most allowed²: the smaller root of k² − dk + d/rest.
    rest = allowed**2 - 0.5 / (noise_multiplier**2 * dim)
    return math.ceil(0.5 * dim * (1.0 - math.sqrt(1.0 - 4.0 / (dim * rest))))


def releases(
    runs: int, count: int, dim: int, noise_multiplier: ArrayLike, key: np.random.SeedSequence
) -> dict[str, Array]:
    """Draw A, B and W of runs from the exact law, in the notation of ``release_moments``: shape (runs, ...)."""
    rng, most = np.random.default_rng(key), max(1, _DRAWN_AT_ONCE // count)
    parts = []
    for first in range(0, runs, most):
        products, norms = exact_law.inner_products(count, dim, noise_multiplier, rng, runs=min(most, runs - first))
        parts.append((norms**2 / dim, products.mean(axis=-1), products.var(axis=-1)))
    return {name: np.concatenate(values) for name, values in zip("ABW", zip(*parts, strict=True), strict=True)}
