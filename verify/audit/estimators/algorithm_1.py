"""Algorithm 1 of Andrew et al. (arXiv 2302.03098), literally: canaries are drawn, summed, noised and scored."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels import canaries


def release(
    count: int, dim: int, noise_multiplier: float, seed: int, data: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Sum data vectors and canaries and add Gaussian noise: lines 2 to 6.

    Parameters
    ----------
    count
        Number k of canaries.
    dim
        Dimension d.
    noise_multiplier
        Standard deviation σ ≥ 0 of the noise per coordinate.
    seed
        Seed of canaries and noise, 0 ≤ seed < 2⁶⁴.
    data
        Data vectors xᵢ of norm at most 1, shape (n, d); none if None.

    Returns
    -------
    Released vector ρ, shape (d,).

    Raises
    ------
    ValueError
        If an argument lies outside its domain, or a data vector is longer than 1.
    """
    if not (noise_multiplier >= 0.0 and math.isfinite(noise_multiplier)):
        raise ValueError("noise_multiplier must be finite and not negative")
    total = canaries.Canaries(seed, count, dim).sum()
    if data is not None:
        vectors = np.atleast_2d(np.asarray(data))
        if vectors.ndim != 2 or vectors.shape[1] != dim:
            raise ValueError(f"data must have the shape (n, {dim})")
        # A row at a time: float64 copies of all would not fit where the vectors themselves just do.
        for row in vectors:
            if not np.linalg.norm(row.astype(np.float64)) <= 1.0 + 1e-6:
                raise ValueError("data vectors must have norm at most 1")
            total += row
    drawn = canaries.noise(seed, dim)
    # In place, for lack of memory where the vectors just fit.
    drawn *= noise_multiplier
    total += drawn
    return total


def cosines(
    count: int, dim: int, noise_multiplier: float, seed: int, data: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Cosines between the canaries and the release: lines 2 to 8; arguments and errors as for ``release``.

    Returns
    -------
    g_1, …, g_k, shape (k,).
    """
    return canaries.Canaries(seed, count, dim).cosines(release(count, dim, noise_multiplier, seed, data))
