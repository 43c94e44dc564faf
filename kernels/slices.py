"""Slices of coordinates: how long vectors are cut, and the sums over a slice that add up to those over all.

A vector of 2²⁷ coordinates and more is cut into blocks of 2²⁶; the last one has what is left over, less than 2²⁷. All
sums over coordinates are made block by block, each from zero, and added in the order of the blocks. So whoever scores
blocks apart, in any processes, gets the bits of a single process.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arrays import real
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import refusals_of, short_repr

__all__ = ["PartialProducts", "blocks"]

BLOCK = 2**26


def blocks(dim: int) -> tuple[slice, ...]:
    """Return the blocks of a vector's coordinates, in their order.

    Parameters
    ----------
    dim
        Dimension d of the vector, at least 1.

    Returns
    -------
    Slices that cover it: all but the last have 2²⁶ coordinates, and the last one 2²⁶ to 2²⁷ − 1, or d if d is less.
    """
    number = max(1, dim // BLOCK)
    return tuple(slice(i * BLOCK, dim if i == number - 1 else (i + 1) * BLOCK) for i in range(number))


def cut(coordinates: slice, dim: int) -> list[tuple[int, slice]]:
    """Cut a slice at the ends of blocks, and say in which block each part is."""
    parts = []
    for number, block in enumerate(blocks(dim)):
        part = slice(max(block.start, coordinates.start), min(block.stop, coordinates.stop))
        if part.start < part.stop:
            parts.append((number, part))
    return parts


def checked_slice(coordinates: slice | None, dim: int) -> slice:
    """Return a slice of at least one coordinate, with its ends."""
    if coordinates is None:
        return slice(0, dim)
    # Callers from Python may pass anything.
    given: object = coordinates
    start, stop, step = given.indices(dim) if isinstance(given, slice) else (0, 0, 1)
    if step != 1 or start >= stop:
        raise ValueError(
            f"coordinates must be a slice of step 1 with some of {dim} coordinates, not {short_repr(coordinates)}"
        )
    return slice(start, stop)


def checked_part(vector: ArrayLike, start: int, dim: int) -> NDArray[np.floating]:
    """Return a vector's coordinates from ``start`` on, which must be in its range."""
    with refusals_of("vector"):
        part = real(vector)
    if part.ndim != 1 or not 1 <= len(part) <= dim - start:
        raise ValueError(f"vector must be of shape (n,), n from 1 to {dim - start}, not {part.shape}")
    return part


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class PartialProducts:
    """Inner products of canaries with a vector over a slice of its coordinates.

    Those of disjoint slices add up, in the order of the coordinates, to those of all: ``sum(parts, start=first)``. A
    process group may add up the three numbers or arrays each for itself. Of whole blocks (``canaries.blocks``) they add
    up to the same bits as in one process, of other slices up to rounding.

    Attributes
    ----------
    products
        Inner products over the slice, shape (k,), of canaries before they are normalised.
    squares
        Squared norms of these canaries over the slice, shape (k,); None for orthonormal ones, whose norm is 1.
    square
        Squared norm of the vector over the slice.

    Raises
    ------
    ValueError
        If the vector is not finite, or its squared norm is not.
    """

    products: NDArray[np.float64]
    squares: NDArray[np.float64] | None
    square: float

    def __post_init__(self) -> None:
        if not self.square < np.inf:
            raise ValueError("vector must be finite, and so must its squared norm")

    def __add__(self, other: Self) -> "PartialProducts":
        squares = None if self.squares is None or other.squares is None else self.squares + other.squares
        return PartialProducts(self.products + other.products, squares, self.square + other.square)

    def scores(self) -> NDArray[np.float64]:
        """Inner products with canaries of norm 1, shape (k,); of all coordinates together."""
        return self.products if self.squares is None else self.products / np.sqrt(self.squares)

    def cosines(self) -> NDArray[np.float64]:
        """Cosines in [-1, 1], shape (k,); of all coordinates together.

        Raises
        ------
        ValueError
            If the vector is zero, or its squared norm is.
        """
        if self.square == 0.0:
            raise ValueError("vector must not be zero, nor its squared norm")
        return quotients(
            self.products, None if self.squares is None else np.sqrt(self.squares), np.asarray(self.square)
        )


def quotients(
    products: NDArray[np.float64], norms: NDArray[np.float64] | None, own_squares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return cosines, from products of shape (..., k), the canaries' norms and the vectors' squared norms."""
    if norms is not None:
        products = products / norms
    # Rounding may carry the cosine of parallel vectors past 1, where the null law's functions are 0.
    return np.clip(products / np.sqrt(own_squares)[..., np.newaxis], -1.0, 1.0)
