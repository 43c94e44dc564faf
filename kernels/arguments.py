"""The intake of arrays: each kind has one check, whose refusal is a line with the argument's name and the rule."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arrays import on_host, real
from canaryproof.kernels.refusals import refusals_of


def checked_reals(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return integers or floating-point numbers of any shape and library as float64."""
    with refusals_of(name):
        array = on_host(values)
        return (array if array.dtype.kind in "iu" or not array.size else real(array)).astype(np.float64)


def checked_integers(name: str, values: ArrayLike) -> NDArray[np.integer]:
    """Return integers with one axis, perhaps none of them."""
    with refusals_of(name):
        given = on_host(values)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a one-dimensional array of integers, not {given.ndim}-d {given.dtype}")
    return given


def checked_indices(indices: ArrayLike | None, count: int) -> NDArray[np.uint64]:
    """Return indices of ``count`` canaries, all of them by default."""
    if indices is None:
        return np.arange(count, dtype=np.uint64)
    given = checked_integers("indices", indices)
    if given.size and (given.min() < 0 or given.max() >= count):
        raise ValueError(f"indices must lie in [0, {count}), not [{given.min()}, {given.max()}]")
    return np.ascontiguousarray(given, dtype=np.uint64)


def checked_weights(weights: ArrayLike | None, length: int) -> NDArray[np.float64]:
    """Return finite weights, 1 by default."""
    given = np.ones(length) if weights is None else checked_reals("weights", weights)
    if given.shape != (length,) or not np.isfinite(given).all():
        raise ValueError(f"weights must be {length} finite numbers, one an index")
    return given


def scales_of(block: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return powers of two that keep the squares of a block of vectors in range, in float32 or float64."""
    largest = np.maximum(block.max(axis=1), -block.min(axis=1)).astype(np.float64)
    if not (np.isfinite(largest) & (largest > 0.0)).all():
        raise ValueError("vectors must be finite and not zero")
    # By size, as numbers in another order of bytes have another type.
    limit, number = (1000, np.float64) if block.dtype.itemsize == 8 else (126, np.float32)
    scales: NDArray[np.floating] = np.ldexp(number(1.0), -np.clip(np.frexp(largest)[1], -limit, limit))
    return scales


def checked_vectors(vectors: ArrayLike, dim: int) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the vectors as a block, and powers of two that keep their squares in range."""
    with refusals_of("vectors"):
        given = real(vectors)
    block: NDArray[np.floating] = np.atleast_2d(given)
    if block.ndim != 2 or block.shape[1] != dim:
        raise ValueError(f"vectors must be of shape ({dim},) or (n, {dim}), not {given.shape}")
    return block, scales_of(block)
