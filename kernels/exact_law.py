"""Draws of Algorithm 1's cosines with exactly their joint law, at a cost that does not depend on the dimension.

Andrew et al. (arXiv 2302.03098), Algorithm 1: canaries c_j = X_j/‖X_j‖ with X_j standard normal in R^d, the release
ρ = Σᵢxᵢ + Σ_j c_j + σZ and its cosines g_j = ⟨c_j, ρ⟩/‖ρ‖. They are functions of the Gram matrix of X_1, …, X_k, Z
alone, a Wishart matrix, whose triangular factor has independent entries (Bartlett's decomposition): normals below the
diagonal and chi variables with d, d − 1, … degrees of freedom on it. A row of that factor stands for its vector, and
the noise's is the last. The data enter only through ‖Σᵢxᵢ‖: that sum is put on an axis of its own, on which every
vector has one more independent normal coordinate, and the rest of the space has one dimension less. Where the vectors
outnumber the dimensions, the factor is trapezoidal.
"""

import math
import threading

import numpy as np
from numpy.typing import ArrayLike

from canaryproof.kernels._compiled import Array, njit
from canaryproof.kernels.null_cosine import LARGEST_DIM

# So that no square overflows.
_LARGEST = 1e100
# Numbers of the canaries' rows that are kept at a time, 80 MB: beyond, rows are drawn twice from the same state.
_KEPT = 10**7
_MEMORY = threading.local()


@njit(cache=True, nogil=True)
def _chi(rng: np.random.Generator, degrees: float) -> float:
    # A chi-square variable is twice a gamma variable of half the shape.
    return math.sqrt(2.0 * rng.standard_gamma(0.5 * degrees))


@njit(cache=True, nogil=True)
def _fill(rng: np.random.Generator, rows: Array, first: int, last: int, axes: int, free: float, total: Array) -> None:
    """Draw canaries ``first`` to ``last`` − 1, rows of the factor over their norms, and add them to ``total``."""
    start = 0
    for j in range(first, last):
        end = start + axes + int(min(float(j), free))
        for i in range(start, end):
            rows[i] = rng.standard_normal()
        if j < free:
            rows[end] = _chi(rng, free - j)
            end += 1
        row = rows[start:end]
        scale = 1.0 / math.sqrt(np.dot(row, row))
        for i in range(len(row)):
            row[i] *= scale
            total[i] += row[i]
        start = end


@njit(cache=True, nogil=True)
def _multiply(rows: Array, first: int, last: int, axes: int, free: float, releases: Array, result: Array) -> None:
    """Fill in the inner products of canaries with releases, ``result`` of shape (runs, k)."""
    start = 0
    for j in range(first, last):
        length = axes + int(min(j + 1.0, free))
        row = rows[start : start + length]
        for run in range(len(releases)):
            result[run, j] = np.dot(row, releases[run, :length])
        start += length


def _scratch(size: int) -> Array:
    """Return this thread's memory for rows: that of a new array would cost as much as what it is filled with."""
    if getattr(_MEMORY, "rows", np.empty(0)).size < size:
        _MEMORY.rows = np.empty(size)
    rows: Array = _MEMORY.rows
    return rows


def _blocks(count: int, width: int) -> list[tuple[int, int]]:
    """Split the canaries such that the rows of each part can be kept."""
    most = max(1, _KEPT // width)
    return [(first, min(first + most, count)) for first in range(0, count, most)]


def _draw(
    count: int, dim: int, noise_multiplier: ArrayLike, rng: np.random.Generator, data_norm: ArrayLike, *, in_norms: bool
) -> tuple[Array, Array]:
    """Draw ⟨c_j, ρ⟩, in multiples of ‖ρ‖ or not, and ‖ρ‖, shapes (..., k) and (...)."""
    if not (float(count).is_integer() and count >= 1):
        raise ValueError("count must be a whole number of at least 1")
    if not (float(dim).is_integer() and 2 <= float(dim) <= LARGEST_DIM):
        raise ValueError(f"dim must be a whole number from 2 to {LARGEST_DIM:g}")
    noise, data = np.broadcast_arrays(
        np.asarray(noise_multiplier, dtype=np.float64), np.asarray(data_norm, dtype=np.float64)
    )
    if not np.all((noise >= 0.0) & (noise <= _LARGEST)):
        raise ValueError(f"noise_multiplier must lie between 0 and {_LARGEST:g}")
    if not np.all((data >= 0.0) & (data <= _LARGEST)):
        raise ValueError(f"data_norm must lie between 0 and {_LARGEST:g}")
    count = int(count)
    axes = 1 if np.any(data > 0.0) else 0
    free = float(dim) - axes
    total = np.zeros(axes + int(min(count, free)))
    blocks = _blocks(count, len(total))
    again, states = len(blocks) > 1, []
    # Rows of all canaries together form a triangle.
    rows = _scratch(_KEPT + len(total) if again else count * (count + 1) // 2 + count * axes)
    for block in blocks:
        states += [rng.bit_generator.state] if again else []
        _fill(rng, rows, *block, axes, free, total)
    sigma = noise.reshape(-1, 1)
    releases = total + sigma * rng.standard_normal((len(sigma), len(total)))
    # Off the canaries' span there is noise alone.
    rest = free - min(count, free)
    outside = sigma[:, 0] * np.sqrt(rng.chisquare(rest, len(sigma))) if rest > 0.0 else 0.0
    if axes:
        releases[:, 0] += data.ravel()
    norms = np.hypot(np.sqrt(np.einsum("ri,ri->r", releases, releases)), outside)
    result = np.empty((len(sigma), count))
    if again:
        states.append(rng.bit_generator.state)
    for place, block in enumerate(blocks):
        if again:
            rng.bit_generator.state = states[place]
            _fill(rng, rows, *block, axes, free, np.zeros_like(total))
        _multiply(rows, *block, axes, free, releases, result)
    if again:
        rng.bit_generator.state = states[-1]
    if in_norms:
        result /= norms[:, np.newaxis]
    return result.reshape(*noise.shape, count), norms.reshape(noise.shape)


def cosines(
    count: int, dim: int, noise_multiplier: ArrayLike, rng: np.random.Generator, data_norm: ArrayLike = 0.0
) -> Array:
    """Draw the k cosines of one run of Algorithm 1, with exactly their joint law; or of several with the same canaries.

    Parameters
    ----------
    count
        Number k ≥ 1 of canaries.
    dim
        Dimension d of the space, 2 ≤ d ≤ 1e12.
    noise_multiplier
        Standard deviation 0 ≤ σ ≤ 1e100 of the noise, per coordinate and unit of canary norm. Of an array each element
        is a run with noise of its own, beside the canaries that all of them share: independent given these.
    rng
        Source of randomness; its bit generator's state must be readable, as that of numpy's is.
    data_norm
        Norm of the sum of all data vectors, at most 1e100, in units of canary norm; broadcast with the noise.

    Returns
    -------
    Cosines g_1, …, g_k between the canaries and the release, shape (..., k).

    Raises
    ------
    ValueError
        If an argument lies outside its domain.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Algorithm 1, lines 2 to 8. Time O(k²), nearly all of it for the canaries.
    """
    products, _ = _draw(count, dim, noise_multiplier, rng, data_norm, in_norms=True)
    # Rounding may carry the cosine of parallel vectors past 1.
    return np.clip(products, -1.0, 1.0)


def inner_products(
    count: int, dim: int, noise_multiplier: ArrayLike, rng: np.random.Generator, data_norm: ArrayLike = 0.0
) -> tuple[Array, Array]:
    """Draw the k inner products of one run of Algorithm 1 and the release's norm, with exactly their joint law.

    Parameters
    ----------
    count, dim, noise_multiplier, rng, data_norm
        As for ``cosines``.

    Returns
    -------
    Inner products ⟨c_1, ρ⟩, …, ⟨c_k, ρ⟩, shape (..., k), and ‖ρ‖, shape (...), in units of canary norm.

    Raises
    ------
    ValueError
        If an argument lies outside its domain.
    """
    return _draw(count, dim, noise_multiplier, rng, data_norm, in_norms=False)
