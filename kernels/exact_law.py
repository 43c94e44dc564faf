"""Draws of Algorithm 1's cosines with exactly their joint law, at a cost that does not depend on the dimension.

Andrew et al. (arXiv 2302.03098), Algorithm 1: canaries c_j = X_j/‖X_j‖ with X_j standard normal in R^d, the release
ρ = Σᵢxᵢ + Σ_j c_j + σZ and its cosines g_j = ⟨c_j, ρ⟩/‖ρ‖. They are functions of the Gram matrix of Z, X_1, …, X_k
alone, a Wishart matrix, whose triangular factor has independent entries (Bartlett's decomposition): normals below the
diagonal and chi variables with d, d − 1, … degrees of freedom on it. A row of that factor stands for its vector. The
data enter only through ‖Σᵢxᵢ‖: that sum is put on an axis of its own, on which every vector has one more independent
normal coordinate, and the rest of the space has one dimension less. Where the vectors outnumber the dimensions, the
factor is trapezoidal.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from canaryproof.kernels.null_cosine import LARGEST_DIM

# So that no square overflows.
_LARGEST = 1e100


@njit(cache=True, nogil=True)
def _chi(rng: np.random.Generator, degrees: float) -> float:
    # A chi-square variable is twice a gamma variable of half the shape.
    return math.sqrt(2.0 * rng.standard_gamma(0.5 * degrees))


@njit(cache=True, nogil=True)
def _draw_row(rng: np.random.Generator, row: NDArray[np.float64], index: int, axes: int, free: float) -> int:
    """Fill in row ``index`` of the triangular factor, behind ``axes`` coordinates of its own; return its length."""
    below = int(min(float(index), free))
    for i in range(axes + below):
        row[i] = rng.standard_normal()
    if index >= free:
        return axes + below
    row[axes + below] = _chi(rng, free - index)
    return axes + below + 1


@njit(cache=True, nogil=True)
def _add_canaries(rng: np.random.Generator, release: NDArray[np.float64], count: int, axes: int, free: float) -> None:
    row = np.empty_like(release)
    for j in range(1, count + 1):
        length = _draw_row(rng, row, j, axes, free)
        scale = 1.0 / math.sqrt(np.dot(row[:length], row[:length]))
        for i in range(length):
            release[i] += scale * row[i]


@njit(cache=True, nogil=True)
def _take_products(
    rng: np.random.Generator, release: NDArray[np.float64], count: int, axes: int, free: float, unit: float
) -> NDArray[np.float64]:
    """Inner products of the canaries, drawn again, with the release, in multiples of ``unit``."""
    row = np.empty_like(release)
    result = np.empty(count)
    for j in range(1, count + 1):
        length = _draw_row(rng, row, j, axes, free)
        own = row[:length]
        result[j - 1] = np.dot(own, release[:length]) / (math.sqrt(np.dot(own, own)) * unit)
    return result


@njit(cache=True, nogil=True)
def _length(vector: NDArray[np.float64]) -> float:
    return math.sqrt(np.dot(vector, vector))


def _draw(
    count: int, dim: int, noise_multiplier: float, rng: np.random.Generator, data_norm: float, *, in_norms: bool
) -> tuple[NDArray[np.float64], float]:
    """Draw ⟨c_j, ρ⟩, in multiples of ‖ρ‖ or not, and ‖ρ‖."""
    if not (float(count).is_integer() and count >= 1):
        raise ValueError("count must be a whole number of at least 1")
    if not (float(dim).is_integer() and 2 <= float(dim) <= LARGEST_DIM):
        raise ValueError(f"dim must be a whole number from 2 to {LARGEST_DIM:g}")
    if not 0.0 <= float(noise_multiplier) <= _LARGEST:
        raise ValueError(f"noise_multiplier must lie between 0 and {_LARGEST:g}")
    if not 0.0 <= float(data_norm) <= _LARGEST:
        raise ValueError(f"data_norm must lie between 0 and {_LARGEST:g}")
    count = int(count)
    axes = 1 if data_norm > 0.0 else 0
    free = float(dim) - axes
    release = np.zeros(axes + int(min(count + 1.0, free)))
    # The noise is the factor's first row.
    length = _draw_row(rng, release, 0, axes, free)
    release[:length] *= noise_multiplier
    if axes:
        release[0] += data_norm
    state = rng.bit_generator.state
    _add_canaries(rng, release, count, axes, free)
    rng.bit_generator.state = state
    norm = _length(release)
    return _take_products(rng, release, count, axes, free, norm if in_norms else 1.0), norm


def cosines(
    count: int, dim: int, noise_multiplier: float, rng: np.random.Generator, data_norm: float = 0.0
) -> NDArray[np.float64]:
    """Draw the k cosines of one run of Algorithm 1, with exactly their joint law.

    Parameters
    ----------
    count
        Number k ≥ 1 of canaries.
    dim
        Dimension d of the space, 2 ≤ d ≤ 1e12.
    noise_multiplier
        Standard deviation 0 ≤ σ ≤ 1e100 of the noise, per coordinate and unit of canary norm.
    rng
        Source of randomness; its bit generator's state must be readable, as that of numpy's is.
    data_norm
        Norm of the sum of all data vectors, at most 1e100, in units of canary norm.

    Returns
    -------
    Cosines g_1, …, g_k between the canaries and the release, shape (k,).

    Raises
    ------
    ValueError
        If an argument lies outside its domain.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Algorithm 1, lines 2 to 8. Time O(k²), memory O(k): the factor's rows are drawn
    twice from the same state instead of being kept.
    """
    products, _ = _draw(count, dim, noise_multiplier, rng, data_norm, in_norms=True)
    # Rounding may carry the cosine of parallel vectors past 1.
    return np.clip(products, -1.0, 1.0)


def inner_products(
    count: int, dim: int, noise_multiplier: float, rng: np.random.Generator, data_norm: float = 0.0
) -> tuple[NDArray[np.float64], float]:
    """Draw the k inner products of one run of Algorithm 1 and the release's norm, with exactly their joint law.

    Parameters
    ----------
    count, dim, noise_multiplier, rng, data_norm
        As for ``cosines``.

    Returns
    -------
    Inner products ⟨c_1, ρ⟩, …, ⟨c_k, ρ⟩, shape (k,), and ‖ρ‖, in units of canary norm.

    Raises
    ------
    ValueError
        If an argument lies outside its domain.
    """
    return _draw(count, dim, noise_multiplier, rng, data_norm, in_norms=False)
