"""Orthonormal canaries: rows of a random orthonormal matrix, all made and scored by a few fast transforms.

Let n be the largest power of two up to d, and r = d − n. B_w and A_w are the matrices H D_w on the first and on the
last n coordinates. H is the Walsh–Hadamard matrix of order n, with entries ±n^(−1/2), and D_w a diagonal matrix of
independent random signs. Canary j is row π(j) of the orthonormal matrix

    M = B_L ⋯ B_2 B_1                              if d is a power of two,
    M = B_(2L) G B_(2L−1) A_(2L−2) ⋯ B_1 A_0       if not,

π a random permutation. G rotates the first r coordinates against the last r, with the cosine √(r/d) and the sine
√(n/d). After it each canary has, in the mean over signs, the same energy 1/d on every coordinate, at any d.

A vector of 2²⁷ coordinates and more is cut into blocks of d_b ≥ 2²⁶ (``kernels.slices``). Each block has a matrix M_b
and a permutation π_b of its own. Canary j is row π_b(j) of √(d_b/d)·M_b on each block b. These are orthonormal too,
with the same energy. One block is in memory at a time, and blocks may be scored in any processes.

Canaries have norm 1 and no two of them correlate, up to rounding. Signs and permutation are integers made of the
counter-based stream (``kernels._canary_stream``). All else is additions, products and square roots in a fixed order, so
that canaries, sums, scores and cosines are the same bits on every machine.

``proofs_check/orthonormal_canaries.md`` has what follows for scores, the bounds of rounding errors, and what one layer
lacks that two have.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels._canary_passes import add_squares, gather, scatter
from canaryproof.kernels._canary_stream import MAX_DIM, TILE, fill_signs, shuffle, shuffle_few
from canaryproof.kernels._hadamard import rotate, transform
from canaryproof.kernels.arguments import checked_indices, checked_vectors, checked_weights, scales_of
from canaryproof.kernels.arrays import real
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import checked_integer, refusals_of
from canaryproof.kernels.slices import PartialProducts, blocks, checked_part, checked_slice, cut, quotients

__all__ = ["OrthonormalCanaries"]

_MAX_LAYERS = 16
# Numbers of a block's windows; 2L + 1 are in use.
_WINDOWS = 64
# A hash table of so few rows, of up to 32 bytes each, takes less than a seventh of a list of all, of 4 bytes each.
_FEW_ROWS = 1 / 60

# A row of words for each window, in the order of the indices w; each bit is a sign.
Signs = NDArray[np.uint32]


@set_module("canaryproof")
@dataclass(frozen=True)
class OrthonormalCanaries:
    """Orthonormal canaries c_1, …, c_k: rows of a product of Walsh–Hadamard transforms and random signs.

    A sum of some takes one product with this matrix, and so do the scores. Canary j is the same whatever the
    count. Kept are, for a single block, 4·count bytes and a bit for each sign: layers·dim/8 bytes if dim is a power of
    two, and up to (2·layers + 1)·dim/8 if not. Scores take 4 bytes more for each coordinate of a block, 8 for a float64
    vector, and sums 8; so much for the first call's rows too if count > dim/60.

    Parameters
    ----------
    seed
        Key of the generator, 0 ≤ seed < 2⁶⁴.
    count
        Number k of canaries, 1 ≤ count ≤ dim, and at most 2²⁶ from dim = 2²⁷ on.
    dim
        Dimension d, 2 ≤ dim ≤ 2⁴⁰. A product takes O(d log d) steps for every d, primes or not: L transforms of order d
        if d is a power of two, and 2L + 1 of the power of two below d if not.
    layers
        Number L of layers, from 1 to 16. With two, a canary's coordinates are sums of some d terms with random signs.
        Its score against fixed data is then close to normal, whatever the data. With one they may all have one size.

    Raises
    ------
    ValueError
        If a parameter is not an integer in its range.

    Notes
    -----
    Takes the place of the independent canaries of Andrew et al. (arXiv 2302.03098), Algorithm 1. Random signs before
    Walsh–Hadamard transforms are Ailon and Chazelle's (2009), stacked layers Yu et al.'s (2016, "Orthogonal random
    features").

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> canaries = cp.OrthonormalCanaries(seed=7, count=3, dim=1000)
    >>> release = canaries.sum(np.array([0, 1]))
    >>> np.abs(np.round(canaries.cosines(release), 6))
    array([0.707107, 0.707107, 0.      ])
    """

    seed: int
    count: int
    dim: int
    layers: int = 2

    def __post_init__(self) -> None:
        checked_integer("seed", self.seed, 0, 2**64 - 1, "with 0 ≤ seed < 2^64")
        checked_integer("dim", self.dim, 2, MAX_DIM, "with 2 ≤ dim ≤ 2^40")
        most, name = self.largest_count, "dim" if self.largest_count == self.dim else f"{self.largest_count}"
        checked_integer("count", self.count, 1, most, f"with 1 ≤ count ≤ {name}: no more rows are orthogonal")
        checked_integer("layers", self.layers, 1, _MAX_LAYERS, f"with 1 ≤ layers ≤ {_MAX_LAYERS}")

    def vector(self, j: int) -> NDArray[np.float32]:
        """Canary j, made in float64 and then rounded.

        Parameters
        ----------
        j
            Index, 0 ≤ j < count.

        Returns
        -------
        Unit vector, shape (dim,).

        Raises
        ------
        ValueError
            If j is not an integer in its range.
        """
        index = checked_integer("j", j, 0, self.count - 1, f"with 0 ≤ j < {self.count}")
        return self.sum(np.array([index])).astype(np.float32)

    def sum(
        self,
        indices: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        coordinates: slice | None = None,
    ) -> NDArray[np.float64]:
        """Weighted sum Σ w_j c_j, by transforms in float64.

        Parameters
        ----------
        indices
            Canaries to add, shape (n,), repetitions allowed; all if None.
        weights
            Finite weights w_j, shape (n,); 1 each if None.
        coordinates
            Slice of the coordinates to make, for frameworks that shard; all if None. They are those of the whole sum.
            A block of which any is asked for is made whole.

        Returns
        -------
        The sum, shape (dim,), or its coordinates in the slice.

        Raises
        ------
        ValueError
            If an index is out of range, the weights are not n finite numbers, or the slice has no coordinate.
        """
        chosen = checked_indices(indices, self.count)
        factors = checked_weights(weights, len(chosen))
        made = checked_slice(coordinates, self.dim)
        if len(blocks(self.dim)) == 1:
            return self._block_sum(0, chosen, factors)[made]
        total = np.empty(made.stop - made.start)
        for number, part in cut(made, self.dim):
            start = blocks(self.dim)[number].start
            of_block = self._block_sum(number, chosen, factors)[part.start - start : part.stop - start]
            total[part.start - made.start : part.stop - made.start] = of_block
        return total

    def scores(self, vectors: ArrayLike, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """Inner products ⟨c_j, v⟩ of canaries and one vector or a block of them, nothing normalised.

        With Gaussian noise of known scale these are independent, where cosines share the release's norm.

        Parameters
        ----------
        vectors
            Floating-point numbers of any library, any strides, shape (dim,) or (n, dim). The transforms are made in
            float32, or in float64 where the numbers have more digits.
        indices
            Canaries to score, shape (k,); all if None.

        Returns
        -------
        Scores, shape (k,) or (n, k). With u = 2⁻²⁴ or 2⁻⁵³ and m = log₂ n, the root mean square of the rounding errors
        of all dim scores is at most 1.01·K·u·‖v‖/√dim, where K is L·(m + 2), or (2L + 1)(m + 2) + 5 if dim is no power
        of two: proven, underflow apart. Of noise, no single error above 20·L·u·‖v‖/√dim was found (searched up to dim =
        2²⁰); of a canary itself, none above 2·L·u. Of several blocks no score errs by more than the blocks' errors
        added up, each times √(d_b/dim).

        Raises
        ------
        ValueError
            If a vector is zero, not finite or of another shape or type, or an index is out of range.
        """
        return self._quotients(vectors, indices, by_norm=False)

    def cosines(self, vectors: ArrayLike, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """Cosines between canaries and one vector or a block of them.

        Parameters
        ----------
        vectors
            As for ``scores``.
        indices
            Canaries to use, shape (k,); all if None.

        Returns
        -------
        Cosines in [-1, 1], shape (k,) or (n, k).

        Raises
        ------
        ValueError
            As for ``scores``.
        """
        return self._quotients(vectors, indices, by_norm=True)

    def block_cosines(self, vectors: ArrayLike) -> NDArray[np.float64]:
        """Cosines between all canaries and a block of vectors, with transforms in float32: for many rounds.

        Parameters
        ----------
        vectors
            Floating-point numbers of any library, any strides, memory-mapped or not, shape (n, dim).

        Returns
        -------
        Cosines in [-1, 1], shape (n, count).

        Raises
        ------
        ValueError
            As for ``scores``.
        """
        with refusals_of("vectors"):
            vectors = real(vectors)
        if vectors.ndim != 2:
            raise ValueError(f"vectors must have the shape (n, {self.dim}), not {vectors.shape}")
        return self._quotients(vectors, None, by_norm=True, dtype=np.float32)

    def partial_products(
        self, vector: ArrayLike, start: int = 0, indices: ArrayLike | None = None, overwrite: bool = False
    ) -> PartialProducts:
        """Inner products with a vector over a slice of its coordinates, which add up with those of other slices.

        Parameters
        ----------
        vector
            The vector's coordinates from ``start`` on: float16, bfloat16, float32 or float64, shape (n,). Where its
            squares leave the range of float64, so do the results. A block takes its transforms whole, however few of
            its coordinates are given.
        start
            First coordinate, 0 ≤ start < dim.
        indices
            Canaries to score, shape (k,); all if None.
        overwrite
            Whether the vector may be overwritten. Its memory then serves the transforms of whole blocks in float32 or
            float64.

        Returns
        -------
        The inner products, and the vector's squared norm.

        Raises
        ------
        ValueError
            If the vector is of another shape or type, or an index or ``start`` is out of range.
        """
        first = checked_integer("start", start, 0, self.dim - 1, f"with 0 ≤ start < {self.dim}")
        given = checked_part(vector, first, self.dim)
        chosen = checked_indices(indices, self.count)
        sums = PartialProducts(np.zeros(len(chosen)), None, 0.0)
        for number, part in cut(slice(first, first + len(given)), self.dim):
            piece = given[part.start - first : part.stop - first]
            if not piece.any():
                continue
            block, scale = blocks(self.dim)[number], scales_of(piece[np.newaxis])[0]
            if part == block:
                own = overwrite and piece.dtype == scale.dtype and piece.flags.c_contiguous
                row = np.multiply(piece, scale, out=piece if own else None, dtype=scale.dtype)
            else:
                row = np.zeros(block.stop - block.start, scale.dtype)
                within = row[part.start - block.start : part.stop - block.start]
                np.multiply(piece, scale, out=within, dtype=scale.dtype)
            products, square = self._block_products(number, row, chosen)
            sums += PartialProducts(products / float(scale), None, square / float(scale) / float(scale))
        return sums

    @property
    def largest_count(self) -> int:
        """Largest number of canaries of this dimension: the coordinates of its smallest block."""
        first = blocks(self.dim)[0]
        return int(first.stop - first.start)

    def _quotients(
        self,
        vectors: ArrayLike,
        indices: ArrayLike | None,
        *,
        by_norm: bool,
        dtype: type[np.floating] | None = None,
    ) -> NDArray[np.float64]:
        """Inner products, divided by the vectors' norms if asked for."""
        block, scales = checked_vectors(vectors, self.dim)
        chosen = checked_indices(indices, self.count)
        products, squares = np.zeros((len(block), len(chosen))), np.zeros(len(block))
        working = scales.dtype
        for n, (given, scale) in enumerate(zip(block, scales, strict=True)):
            # One row and block at a time: memory stays at that of a block.
            for number, part in enumerate(blocks(self.dim)):
                row = np.multiply(given[part], scale, dtype=working).astype(dtype or working, copy=False)
                more, square = self._block_products(number, row, chosen)
                products[n] += more
                squares[n] += square
        if by_norm:
            products = quotients(products, None, squares)
        else:
            products /= scales.astype(np.float64)[:, np.newaxis]
        return products if np.ndim(vectors) == 2 else products[0]

    def _block_products(
        self, number: int, row: NDArray[np.floating], chosen: NDArray[np.uint64]
    ) -> tuple[NDArray[np.float64], float]:
        """Return a block's inner products, and its squared norm; the row is overwritten."""
        rows, signs = self._rows_and_signs(number)
        square = _square(row)
        products = np.empty(len(chosen))
        gather(_apply(row, signs), rows, chosen, products)
        products *= math.sqrt(len(row) / self.dim)
        return products, square

    def _block_sum(self, number: int, chosen: NDArray[np.uint64], factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum's coordinates of a block."""
        block = blocks(self.dim)[number]
        total, (rows, signs) = np.zeros(block.stop - block.start), self._rows_and_signs(number)
        scatter(factors * math.sqrt(len(total) / self.dim), rows, chosen, total)
        return _apply_transpose(total, signs)

    def _rows_and_signs(self, number: int) -> tuple[NDArray[np.int32], Signs]:
        """Return the rows and signs of a block, which are kept if it is the only one."""
        every = blocks(self.dim)
        if len(every) == 1:
            return self._rows, self._signs
        dim = every[number].stop - every[number].start
        return _draw_rows(self.seed, self.count, dim, number), _draw_signs(self.seed, dim, self.layers, number)

    @cached_property
    def _rows(self) -> NDArray[np.int32]:
        return _draw_rows(self.seed, self.count, self.dim, 0)

    @cached_property
    def _signs(self) -> Signs:
        return _draw_signs(self.seed, self.dim, self.layers, 0)


def _draw_rows(seed: int, count: int, dim: int, block: int) -> NDArray[np.int32]:
    """Draw π(0), …, π(count − 1) of a block."""
    if count <= _FEW_ROWS * dim:
        few = np.empty(count, np.int32)
        shuffle_few(np.uint64(seed), np.uint64(block), dim, few)
        return few
    rows = np.arange(dim, dtype=np.int32)
    shuffle(np.uint64(seed), np.uint64(block), count, rows)
    return rows[:count].copy()


def _draw_signs(seed: int, dim: int, layers: int, block: int) -> Signs:
    """Draw the diagonals of all windows of a block."""
    order, rest = _split(dim)
    drawn = np.empty((2 * layers + 1 if rest else layers, -(-order // 32)), np.uint32)
    for window, signs in enumerate(drawn):
        fill_signs(np.uint64(seed), np.uint64(_WINDOWS * block + window), signs)
    return drawn


def _split(dim: int) -> tuple[int, int]:
    """Return n and r."""
    order = 1 << (dim.bit_length() - 1)
    return order, dim - order


def _apply(vector: NDArray[np.floating], signs: Signs) -> NDArray[np.floating]:
    """Turn v into M v, in place."""
    for window in range(len(signs)):
        if window == len(signs) - 1:
            _apply_rotation(vector, 1.0)
        transform(_part(vector, window, signs), signs[window], False)
    return vector


def _apply_transpose(vector: NDArray[np.float64], signs: Signs) -> NDArray[np.float64]:
    """Turn v into Mᵀ v, in place."""
    for window in reversed(range(len(signs))):
        transform(_part(vector, window, signs), signs[window], True)
        if window == len(signs) - 1:
            _apply_rotation(vector, -1.0)
    return vector


def _part(vector: NDArray[np.floating], window: int, signs: Signs) -> NDArray[np.floating]:
    """Return a window's coordinates: in turns the last n and the first n, and the first n once more in the end."""
    order, rest = _split(len(vector))
    start = rest if window % 2 == 0 and window < len(signs) - 1 else 0
    return vector[start : start + order]


def _apply_rotation(vector: NDArray[np.floating], direction: float) -> None:
    """Multiply by G, or by its inverse."""
    order, rest = _split(len(vector))
    number = vector.dtype.type
    cosine, sine = math.sqrt(rest / len(vector)), math.sqrt(order / len(vector))
    rotate(vector[:rest], vector[order:], number(cosine), number(direction * sine))


def _square(vector: NDArray[np.floating]) -> float:
    """Squared norm, with squares added in float64 in a fixed order."""
    whole = len(vector) // TILE * TILE
    square, last = np.zeros(1), np.zeros((1, TILE), vector.dtype)
    last[0, : len(vector) - whole] = vector[whole:]
    add_squares(vector[np.newaxis, :whole], square)
    add_squares(last, square)
    return float(square[0])
