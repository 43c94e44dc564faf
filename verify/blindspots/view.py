"""The scores of canaries beside a residual, with exactly their joint law.

A canary is a uniformly random direction, drawn apart from all else. Turning the space turns canaries into canaries, so
the joint law of all their cosines depends on the residuals through their inner products alone: on one number, the
residual's norm, where one vector is released (proofs_check, blind_spots.md). All is drawn in a basis that begins with
the T residuals; on the rest of the space the canaries' Gram matrix has Bartlett's triangular factor.
"""

import math

import numpy as np

from canaryproof.verify.blindspots.mechanism import Array, Residual


def _factor(gram: Array) -> Array:
    """Return a square root of positive semi-definite matrices, rows as vectors, shape (..., T, T)."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., np.newaxis, :])


def _directions(count: int, dim: int, axes: int, rng: np.random.Generator) -> Array:
    """Draw uniform directions: coordinates on some axes, and a triangular factor of the rest."""
    free = min(count, dim - axes)
    rows = rng.standard_normal((count, axes + free))
    rest = rows[:, axes:]
    rest[:] = np.tril(rest, -1)
    diagonal = np.arange(free)
    rest[diagonal, diagonal] = np.sqrt(rng.chisquare(dim - axes - diagonal))
    rows /= np.linalg.norm(rows, axis=1)[:, np.newaxis]
    return rows


def exact(
    residual: Residual, weights: Array, count: int, null_count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw scores: each canary's largest cosine with a released vector.

    Parameters
    ----------
    residual
        Residuals of some runs.
    weights
        Weight of a canary of each round in each released vector, shape (rounds, T); rounds take turns.
    count, null_count
        Numbers of observed and unobserved canaries.
    rng
        Source of randomness.

    Returns
    -------
    Observed and unobserved scores, shapes (runs, count) and (runs, null_count).
    """
    rounds = np.arange(count) % len(weights)
    observed, unobserved = [], []
    for basis in _factor(residual.gram):
        axes = len(basis)
        canaries = _directions(count, residual.dim, axes, rng)
        releases = weights[rounds].T @ canaries
        releases[:, :axes] += basis
        lengths = np.linalg.norm(releases, axis=1)
        observed.append((canaries @ (releases.T / lengths)).max(axis=1))
        # Nothing of the releases depends on these, so that only the plane of the releases matters.
        own = rng.standard_normal((null_count, axes))
        norms = np.sqrt((own**2).sum(axis=1) + rng.chisquare(residual.dim - axes, null_count))
        cosines = own @ (_factor(releases @ releases.T) / lengths[:, np.newaxis]).T
        unobserved.append((cosines / norms[:, np.newaxis]).max(axis=1))
    return np.array(observed), np.array(unobserved)


def leading(
    residual: Residual, weights: Array, count: int, null_count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw the same to leading order, independently for each canary; arguments and result as for ``exact``.

    Notes
    -----
    √d times a cosine is normal with variance 1, about √d times the canary's weight over the release's norm, whose
    square is the residual's with what all canaries add.
    """
    runs, dim = len(residual.gram), residual.dim
    rounds = np.arange(count) % len(weights)
    gram = residual.gram + count * (weights.T @ weights) / len(weights)
    lengths = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
    shifts = math.sqrt(dim) * weights[rounds] / lengths[:, np.newaxis]
    mixing = (_factor(gram) / lengths[..., np.newaxis]).swapaxes(1, 2)
    axes = gram.shape[-1]
    observed = rng.standard_normal((runs, count, axes)) @ mixing + shifts
    unobserved = rng.standard_normal((runs, null_count, axes)) @ mixing
    root = math.sqrt(dim)
    return observed.max(axis=-1) / root, unobserved.max(axis=-1) / root
