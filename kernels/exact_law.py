"""Draws of Algorithm 1's cosines with exactly their joint law, in O(k log k), whatever the dimension.

Andrew et al. (arXiv 2302.03098), Algorithm 1: canaries c_j = X_j/‖X_j‖ with X_j standard normal in R^d, the release
ρ = Σᵢxᵢ + Σ_j c_j + σZ and its cosines g_j = ⟨c_j, ρ⟩/‖ρ‖. Nothing is drawn that these do not depend on:

* The data enter only through ‖Σᵢxᵢ‖, on an axis of its own. More axes span Z, or the noises of several runs. Their
  coordinates are a triangle of independent numbers: normal ones, and on the diagonal chi variables with d − 1, d − 2, …
  degrees of freedom (Bartlett's decomposition). On these axes X_j has normal coordinates.
* Off these axes ⟨y_j, Y⟩ is needed for all j, with Y = Σy_j and y_j what is left of canary j. Let the canaries fall
  into two halves, with the sums Y₁ and Y₂. Turning a half as a whole does not change its law. So the direction of Y₂
  is uniform to the first half, whose X_j have normal coordinates on it. Let x_j be those of y_j and X their sum:
  ⟨y_j, Y₂⟩ = ‖Y₂‖x_j, and ⟨Y₁, Y₂⟩ = ‖Y₂‖X.
* Given this, the part of Y₁ orthogonal to Y₂, of norm r = (‖Y₁‖² − X²)^½, has a uniform direction among those. So has
  that of a uniform vector, on which the second half has coordinates x_j with the sum X′. With z_j = ⟨y_j, Y₂⟩/‖Y₂‖²,
  ⟨y_j, Y₁⟩ = ‖Y₂‖X z_j + r(x_j − X′z_j)/(1 − X′²/‖Y₂‖²)^½.
* What is left of a half off that direction has one dimension less, and is halved in its turn. A canary left alone has a
  chi variable for its norm.

For example:

>>> import numpy as np
>>> import canaryproof as cp
>>> cosines = cp.exact_law.cosines(1000, 10**9, 1.54, np.random.default_rng(0))
>>> cosines.shape
(1000,)
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arguments import checked_reals
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.null_cosine import LARGEST_DIM
from canaryproof.kernels.refusals import check_type, checked_integer

# With this limit no square overflows.
_LARGEST = 1e100


@njit(cache=True, nogil=True)
def _join(coordinates: Array, products: Array) -> None:
    """Turn the squared norms of canaries off all directions into the inner products with their sum; an entry a run.

    Each row of ``coordinates`` joins parts of 1, 2, 4, … canaries to the next ones.
    """
    runs, levels, count = coordinates.shape
    for run in range(runs):
        p = products[run]
        for level in range(levels):
            x, size = coordinates[run, level], 1 << level
            for first in range(0, count, 2 * size):
                middle, last = min(first + size, count), min(first + 2 * size, count)
                # Sums of coordinates, and squared norms off them.
                left_sum, right_sum = x[first:middle].sum(), x[middle:last].sum()
                left_rest, right_rest = p[first:middle].sum(), p[middle:last].sum()
                for j in range(first, middle):
                    p[j] += x[j] * left_sum
                if middle == last:
                    continue
                square = right_rest + right_sum**2
                norm = math.sqrt(square)
                turned = math.sqrt(left_rest * square / right_rest)
                for j in range(first, middle):
                    p[j] += x[j] * norm
                for j in range(middle, last):
                    inner = p[j] + x[j] * right_sum
                    p[j] = inner * (1.0 + left_sum / norm) + turned * (x[j] - right_sum * inner / square)


def _draw(
    count: int,
    dim: int,
    noise_multiplier: ArrayLike,
    rng: np.random.Generator,
    data_norm: ArrayLike,
    runs: int | None,
    *,
    in_norms: bool,
) -> tuple[Array, Array]:
    """Draw ⟨c_j, ρ⟩, in multiples of ‖ρ‖ or not, and ‖ρ‖, shapes (..., k) and (...)."""
    for name, number in (("count", count), ("runs", 1 if runs is None else runs)):
        checked_integer(name, number, 1, 2**32)
    checked_integer("dim", dim, 2, int(LARGEST_DIM))
    check_type("rng", rng, np.random.Generator, "a numpy.random.Generator")
    noise, data = np.broadcast_arrays(
        checked_reals("noise_multiplier", noise_multiplier), checked_reals("data_norm", data_norm)
    )
    if not np.all((noise >= 0.0) & (noise <= _LARGEST)):
        raise ValueError(f"noise_multiplier must lie between 0 and {_LARGEST:g}")
    if not np.all((data >= 0.0) & (data <= _LARGEST)):
        raise ValueError(f"data_norm must lie between 0 and {_LARGEST:g}")
    count, dim, size, settings = int(count), int(dim), int(runs or 1), noise.size
    axes, halvings = settings + 1, (count - 1).bit_length()
    if dim <= axes + halvings + 1:
        # In so few dimensions, all coordinates are drawn.
        canaries, noises = rng.standard_normal((size, dim, count)), rng.standard_normal((size, settings, dim))
        canaries /= np.sqrt((canaries**2).sum(axis=1))[:, np.newaxis]
        products = np.zeros((size, count))
    else:
        canaries = rng.standard_normal((size, axes + halvings, count))
        products = rng.chisquare(dim - axes - halvings, (size, count))
        squares = (canaries**2).sum(axis=1) + products
        canaries /= np.sqrt(squares)[:, np.newaxis]
        products /= squares
        _join(canaries[:, axes:], products)
        canaries = canaries[:, :axes]
        noises, axis = np.tril(rng.standard_normal((size, settings, axes))), np.arange(settings)
        noises[:, axis, axis + 1] = np.sqrt(rng.chisquare(dim - 1 - axis, (size, settings)))
    releases = noise.reshape(-1, 1) * noises + canaries.sum(axis=2)[:, np.newaxis]
    releases[:, :, 0] += data.ravel()
    norms = np.sqrt((releases**2).sum(axis=2) + products.sum(axis=1)[:, np.newaxis])
    result = releases @ canaries + products[:, np.newaxis]
    if in_norms:
        result /= norms[..., np.newaxis]
    shape = noise.shape if runs is None else (size, *noise.shape)
    return result.reshape(*shape, count), norms.reshape(shape)


def cosines(
    count: int,
    dim: int,
    noise_multiplier: ArrayLike,
    rng: np.random.Generator,
    data_norm: ArrayLike = 0.0,
    runs: int | None = None,
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
        Source of randomness.
    data_norm
        Norm of the sum of all data vectors, at most 1e100, in units of canary norm; broadcast with the noise.
    runs
        Number of independent runs, each with canaries of its own; one, without an axis for it, if None. All are drawn
        at once: they take the memory of runs·k·log₂ k numbers.

    Returns
    -------
    Cosines g_1, …, g_k between the canaries and the release, shape (..., k) or (runs, ..., k).

    Raises
    ------
    ValueError
        If an argument lies outside its domain.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Algorithm 1, lines 2 to 8. Time O(k log k), and O(k) more for each run.
    """
    products, _ = _draw(count, dim, noise_multiplier, rng, data_norm, runs, in_norms=True)
    # Rounding may carry the cosine of parallel vectors past 1.
    return np.clip(products, -1.0, 1.0)


def inner_products(
    count: int,
    dim: int,
    noise_multiplier: ArrayLike,
    rng: np.random.Generator,
    data_norm: ArrayLike = 0.0,
    runs: int | None = None,
) -> tuple[Array, Array]:
    """Draw the k inner products of one run of Algorithm 1 and the release's norm, with exactly their joint law.

    Parameters
    ----------
    count, dim, noise_multiplier, rng, data_norm, runs
        As for ``cosines``.

    Returns
    -------
    Inner products ⟨c_1, ρ⟩, …, ⟨c_k, ρ⟩, shape (..., k), and ‖ρ‖, shape (...), in units of canary norm; with an axis of
    the runs before if these are given.

    Raises
    ------
    ValueError
        If an argument lies outside its domain.
    """
    return _draw(count, dim, noise_multiplier, rng, data_norm, runs, in_norms=False)
