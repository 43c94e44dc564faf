"""Diagnostics other than cosines, each a test of the claimed noise at its own level.

An auditor knows the canaries, and so the residual: the release less their sum, which is noise and data. Each test holds
its level exactly if the noise is normal with the claimed deviation, independently in all coordinates and rounds. That
is so for all data, or for all data of a given norm (blind_spots.md, 5). No test looks at the clients: a fault in one of
them, in the generator's states or in the noise's last bits is no easier to see than by cosines.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from canaryproof.kernels.arrays import Array


def norm_p_value(residual_square: ArrayLike, noise_multiplier: float, dim: ArrayLike) -> Array:
    """Return one-sided p-values of squared norms ‖ρ − Σcⱼ‖² in ℝᵈ: the probability that noise alone is as short.

    Norms and noise are in units of the clip norm; squares and dimensions are sums over the rounds. ‖s + σZ‖² is
    stochastically at least σ²χ²_d for every vector s of data.
    """
    square = np.asarray(residual_square, dtype=np.float64)
    return np.asarray(special.chdtr(np.asarray(dim, dtype=np.float64), square / noise_multiplier**2))


def part_norms_p_value(part_squares: ArrayLike, noise_multiplier: float, dims: tuple[int, ...]) -> Array:
    """Test whether a residual is too short on one of its parts, by the smallest p-value (Bonferroni).

    Squared norms of the parts have the shape (..., parts), and p-values (...).
    """
    squares = np.asarray(part_squares, dtype=np.float64)
    each = special.chdtr(np.asarray(dims), squares / noise_multiplier**2)
    return np.asarray(np.minimum(1.0, len(dims) * each.min(axis=-1)))


def rounds_p_value(gram: ArrayLike, noise_multiplier: float, dim: int, data_norm: float = 0.0) -> Array:
    """Test whether residuals of T rounds are nearer to each other's span than independent noise would be.

    Inner products have the shape (..., T, T), 2 ≤ T < d, and p-values (...). ``data_norm`` bounds the norm of any
    round's sum of data. With too small a bound the test is wrong, as similar data in several rounds look like dependent
    noise.

    For each round, the ratio of the squared residual within the span of the t rounds before to that outside has a
    stochastic bound. It is a noncentral F variable with t and d − t degrees of freedom and noncentrality
    (data_norm/σ)², whatever the rounds before were. Fisher's sum of logarithms combines the rounds' p-values.
    """
    # Inner products of what is left of each round outside of the span of those before: Gauss's elimination.
    left = np.array(gram, dtype=np.float64)
    squares = np.diagonal(left, axis1=-2, axis2=-1).copy()
    noncentrality = (data_norm / noise_multiplier) ** 2
    rounds = left.shape[-1]
    logs = np.zeros(left.shape[:-2])
    for before in range(rounds):
        square, outside = squares[..., before], left[..., before, before]
        # A round without noise is outside any span, and within it too.
        least = np.maximum(1e-12 * square, np.finfo(float).tiny)
        if before:
            ratio = ((square - outside) / before) / (np.maximum(outside, least) / (dim - before))
            tail = 1.0 - special.ncfdtr(before, dim - before, noncentrality, ratio)
            with np.errstate(divide="ignore"):
                logs += np.log(np.clip(tail, 0.0, 1.0))
        pivot = np.where(outside > least, outside, np.inf)
        left -= left[..., :, before, np.newaxis] * (left[..., before, :] / pivot[..., np.newaxis])[..., np.newaxis, :]
    return np.asarray(special.chdtrc(2.0 * (rounds - 1), -2.0 * logs))
