"""Counter-based random canaries and noise: every coordinate is a pure function, nothing is stored.

``kernels._canary_stream`` says which function, ``kernels._canary_passes`` in which order sums are added. Coordinates
are the same bits on every machine. Neither threads nor the way the work is cut change the bits of sums and cosines.
Only ``Canaries.block_cosines`` adds products in the order of a BLAS, which threads do not change either.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import ThreadpoolController

from canaryproof.kernels import _canary_passes as passes
from canaryproof.kernels._canary_stream import CANARY, MAX_DIM, NOISE, TILE, fill
from canaryproof.kernels._threads import in_threads
from canaryproof.kernels.arguments import checked_indices, checked_reals, checked_vectors, checked_weights
from canaryproof.kernels.arrays import real
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import checked_integer, refusals_of
from canaryproof.kernels.slices import PartialProducts, blocks, checked_part, checked_slice, cut, quotients

__all__ = ["Canaries", "noise"]

_MAX_COUNT = 2**32
# 1 MB of float64 input stays in cache. This cuts the work, not the sums.
_TILES_AT_ONCE = 32
# A canary of up to so many coordinates is held whole, 32 MB. Several are held together in 16 MB, so that the sum is
# read and written once for all. More took longer, as memory that is new to a process costs time.
_HELD, _HELD_TOGETHER = 2**23, 2**22
# A thread's rows of canaries, 1 MB, stay in its cache; float32 products are added up in float64 so many at a time. With
# 32 rounds these make a matrix product of less than 10⁶ terms, which OpenBLAS does without copying its factors first.
_ROWS, _PRODUCTS = 60, 512

# Products and squared norms of canaries and of vectors, over the coordinates of a block.
_Sums = Callable[..., tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]


def _pieces(
    block: NDArray[np.floating], scales: NDArray[np.floating], lead: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Cut scaled vectors into pieces of whole tiles, and say in which tile each begins.

    The vectors begin at the coordinate ``lead`` of a tile. Zeros fill the first tile and the last one.
    """
    step, length = TILE * max(1, _TILES_AT_ONCE // max(1, len(block))), lead + block.shape[1]
    for start in range(0, length, step):
        end = min(start + step, length)
        padded = np.zeros((len(block), -(-(end - start) // TILE) * TILE))
        given = block[:, max(start - lead, 0) : end - lead]
        first = max(lead - start, 0)
        np.multiply(given, scales[:, np.newaxis], out=padded[:, first : first + given.shape[1]], dtype=np.float64)
        yield start // TILE, padded


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@set_module("canaryproof")
@dataclass(frozen=True)
class Canaries:
    """The canaries c_j = X_j/‖X_j‖, independent uniform directions, made anew at each use.

    X_j is the float32 vector of standard normal coordinates that the module describes; norms, sums and cosines are
    float64. The rounding error of a cosine is at most (dim/2048 + 40) 2⁻⁵³. That of a coordinate of the sum of n
    canaries is at most (dim/8192 + n + 16) 2⁻⁵³ times the sum of its absolute terms, underflow apart. Memory is that of
    the result and O(count) beyond the input, which may be memory-mapped.

    Parameters
    ----------
    seed
        Key of the generator, 0 ≤ seed < 2⁶⁴.
    count
        Number k of canaries, 1 ≤ count ≤ 2³².
    dim
        Dimension d, 2 ≤ dim ≤ 2⁴⁰.

    Raises
    ------
    ValueError
        If a parameter is not an integer in its range.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Algorithm 1: the canaries, their sum and their cosines with a released vector.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> canaries = cp.Canaries(seed=7, count=3, dim=1000)
    >>> canaries.vector(0).shape
    (1000,)
    >>> release = canaries.sum(np.array([0, 1]))
    >>> np.round(canaries.cosines(release), 2)
    array([ 0.71,  0.71, -0.01])
    """

    seed: int
    count: int
    dim: int
    _known_norms: dict[int, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked_integer("seed", self.seed, 0, 2**64 - 1, "with 0 ≤ seed < 2^64")
        checked_integer("count", self.count, 1, _MAX_COUNT, "with 1 ≤ count ≤ 2^32")
        checked_integer("dim", self.dim, 2, MAX_DIM, "with 2 ≤ dim ≤ 2^40")

    def vector(self, j: int) -> NDArray[np.float32]:
        """Canary j, normalised in float64 and then rounded.

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
        index = np.uint64(checked_integer("j", j, 0, self.count - 1, f"with 0 ≤ j < {self.count}"))
        canary = np.empty(self.dim, np.float32)
        fill(np.uint64(self.seed), index, CANARY, 0, canary)
        return np.divide(canary, self._norms(np.array([index])), out=canary, dtype=np.float64, casting="same_kind")

    def sum(
        self,
        indices: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        coordinates: slice | None = None,
        squared_norms: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Weighted sum Σ w_j c_j, added in the order of the indices.

        Parameters
        ----------
        indices
            Canaries to add, shape (n,), repetitions allowed; all if None.
        weights
            Finite weights w_j, shape (n,); 1 each if None.
        coordinates
            Slice of the coordinates to make, for frameworks that shard; all if None. They are those of the whole sum.
        squared_norms
            Squared norms of all canaries, shape (count,), where they are known: those of all slices
            (``squared_norms``), added up. By default they are made here, over all coordinates.

        Returns
        -------
        The sum, shape (dim,), or its coordinates in the slice.

        Raises
        ------
        ValueError
            If an index is out of range, the weights are not n finite numbers, the slice has no coordinate, or squared
            norms are not count positive numbers.
        """
        chosen = checked_indices(indices, self.count)
        factors = checked_weights(weights, len(chosen))
        made = checked_slice(coordinates, self.dim)
        if squared_norms is not None:
            self._learn(np.arange(self.count, dtype=np.uint64), self._checked_squares(squared_norms))
        tiles = -(-self.dim // TILE)
        if made != slice(0, self.dim) or self._has_norms(chosen) or tiles * TILE > _HELD:
            first_tile, lead = divmod(made.start, TILE)
            total = np.zeros(lead + made.stop - made.start)
            self._add_multiples(chosen, factors / self._norms(chosen), first_tile, total)
            return total[lead:]
        total = np.zeros(self.dim)
        # Norms are known only when a canary is whole: hold some, so that none is made twice.
        step = max(1, min(_HELD_TOGETHER // (tiles * TILE), len(chosen)))
        rows = np.empty((tiles, step, TILE), np.float32)
        for start in range(0, len(chosen), step):
            some = chosen[start : start + step]
            squares = np.zeros((len(some), tiles))
            numbers = tiles * TILE * len(some)
            in_threads(passes.hold, tiles * len(some), numbers, np.uint64(self.seed), some, self.dim, rows, squares)
            # In the order of the tiles, as everywhere.
            self._learn(some, np.cumsum(squares, axis=1)[:, -1])
            scales = factors[start : start + step] / self._norms(some)
            # To add a coordinate takes about an eighth of the time that it takes to make it.
            in_threads(passes.add_rows, tiles, numbers // 8, rows, scales, total)
        return total

    def gaussian_sum(self, coordinates: slice | None = None) -> NDArray[np.float64]:
        """Sum Σ X_j of all canaries before normalising, which needs no norm and so no other coordinates.

        Parameters
        ----------
        coordinates
            Slice of the coordinates to make; all if None.

        Returns
        -------
        The sum's coordinates in the slice.

        Raises
        ------
        ValueError
            If the slice has no coordinate.
        """
        made = checked_slice(coordinates, self.dim)
        first_tile, lead = divmod(made.start, TILE)
        total = np.zeros(lead + made.stop - made.start)
        chosen = checked_indices(None, self.count)
        self._add_multiples(chosen, np.ones(self.count), first_tile, total)
        return total[lead:]

    def _add_multiples(
        self, chosen: NDArray[np.uint64], scales: NDArray[np.float64], first_tile: int, total: NDArray[np.float64]
    ) -> None:
        """Add scaled canaries, before normalising, from a tile on."""
        tiles, coordinates = -(-len(total) // TILE), len(total) * len(chosen)
        in_threads(passes.weighted_sum, tiles, coordinates, np.uint64(self.seed), chosen, scales, first_tile, total)

    def cosines(self, vectors: ArrayLike, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """Cosines between canaries and one vector or a block of them.

        Parameters
        ----------
        vectors
            Floating-point numbers of any library, any strides, shape (dim,) or (n, dim). A block costs little more
            than one vector, because each canary is made once for all.
        indices
            Canaries to use, shape (k,); all if None.

        Returns
        -------
        Cosines in [-1, 1], shape (k,) or (n, k).

        Raises
        ------
        ValueError
            If a vector is zero, not finite or of another shape or type, or an index is out of range.
        """
        cosines = self._quotients(self._sums, vectors, checked_indices(indices, self.count))
        return cosines if np.ndim(vectors) == 2 else cosines[0]

    def partial_products(self, vector: ArrayLike, start: int = 0, indices: ArrayLike | None = None) -> PartialProducts:
        """Inner products with a vector over a slice of its coordinates, which add up with those of other slices.

        Parameters
        ----------
        vector
            The vector's coordinates from ``start`` on: float16, bfloat16, float32 or float64, shape (n,). Where its
            squares leave the range of float64, so do the results.
        start
            First coordinate, 0 ≤ start < dim.
        indices
            Canaries to use, shape (k,); all if None.

        Returns
        -------
        The inner products, and the squared norms of canaries and vector.

        Raises
        ------
        ValueError
            If the vector is of another shape or type, or an index or ``start`` is out of range.
        """
        first = checked_integer("start", start, 0, self.dim - 1, f"with 0 ≤ start < {self.dim}")
        part = checked_part(vector, first, self.dim)
        chosen = checked_indices(indices, self.count)
        products, squares, own_squares = np.zeros((1, len(chosen))), np.zeros(len(chosen)), np.zeros(1)
        for _, piece in cut(slice(first, first + len(part)), self.dim):
            given = part[np.newaxis, piece.start - first : piece.stop - first]
            sums = self._sums(chosen, given, np.ones(1), piece.start, with_squares=True)
            for total, more in zip((products, squares, own_squares), sums, strict=True):
                total += more
        return PartialProducts(products[0], squares, float(own_squares[0]))

    def squared_norms(self, coordinates: slice | None = None) -> NDArray[np.float64]:
        """Squared norms of all canaries before normalising, over a slice of coordinates; those of slices add up.

        Parameters
        ----------
        coordinates
            The slice; all coordinates if None.

        Returns
        -------
        Squared norms, shape (count,).

        Raises
        ------
        ValueError
            If the slice has no coordinate.
        """
        return self._squares(checked_indices(None, self.count), checked_slice(coordinates, self.dim))

    def block_cosines(self, vectors: ArrayLike) -> NDArray[np.float64]:
        """Cosines between all canaries and a block of vectors, with products in float32: for many rounds at once.

        Each canary is made once for the block, in cache, and multiplied by a BLAS. Products of 512 coordinates are
        added in float32, and these in float64. In units of 1/√dim, a cosine's own scale, rounding errors have the
        standard deviation 2⁻²⁴·√(512/6) = 5.5e-7 if they are independent and a BLAS adds one by one. It is less if the
        BLAS adds in several lanes, as all do that use vectors. 2e-6 was never exceeded in tests of noise; a canary's
        cosine with itself has 8e-6 in four million coordinates. Errors of a cosine cannot exceed 3.1e-5, whatever the
        vectors.

        Parameters
        ----------
        vectors
            Floating-point numbers of any library, any strides, memory-mapped or not, shape (n, dim).

        Returns
        -------
        Cosines in [-1, 1], shape (n, count). Equal calls give equal bits on one machine, whatever the number of
        threads; the bits of a row may depend on how many rows there are.

        Raises
        ------
        ValueError
            If a vector is zero, not finite or of another shape or type.
        """
        with refusals_of("vectors"):
            vectors = real(vectors)
        if vectors.ndim != 2:
            raise ValueError(f"vectors must have the shape (n, {self.dim}), not {vectors.shape}")
        return self._quotients(self._block_sums, vectors, checked_indices(None, self.count))

    def _quotients(self, sums: _Sums, vectors: ArrayLike, chosen: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return cosines, shape (n, k), by a function that sums over the coordinates of a block."""
        block, scales = checked_vectors(vectors, self.dim)
        own_squares, squares = np.zeros(len(block)), np.zeros(len(chosen))
        products = np.zeros((len(block), len(chosen)))
        with_squares = not self._has_norms(chosen)
        for part in blocks(self.dim):
            added = sums(chosen, block[:, part], scales, part.start, with_squares)
            for total, more in zip((products, squares, own_squares), added, strict=True):
                total += more
        if with_squares:
            self._learn(chosen, squares)
        return quotients(products, self._norms(chosen), own_squares)

    def _sums(
        self,
        chosen: NDArray[np.uint64],
        block: NDArray[np.floating],
        scales: NDArray[np.floating],
        first: int,
        with_squares: bool,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return products and squared norms of canaries and of vectors, over coordinates of one block."""
        own_squares, squares = np.zeros(len(block)), np.zeros(len(chosen))
        products = np.zeros((len(block), len(chosen)))
        first_tile, lead = divmod(first, TILE)
        ends = first, first + block.shape[1]
        for tile, piece in _pieces(block, scales, lead):
            passes.add_squares(piece, own_squares)
            self._add_products(chosen, first_tile + tile, *ends, piece, squares, products, with_squares)
        return products, squares, own_squares

    def _block_sums(
        self,
        chosen: NDArray[np.uint64],
        block: NDArray[np.floating],
        scales: NDArray[np.floating],
        first: int,
        with_squares: bool,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the same with products in float32, over one block."""
        own_squares, squares = np.zeros(len(block)), np.zeros(len(chosen))
        products = np.zeros((self.count, len(block)))
        # Cut between whole products of a BLAS, whose bits depend on their shapes.
        whole = -(-self.count // _ROWS)
        workers = min(numba.get_num_threads(), whole)
        shares = [slice(*ends) for ends in pairwise((np.linspace(0, whole, workers + 1).astype(int) * _ROWS).tolist())]

        def multiply(share: slice) -> None:
            own = own_squares if share.start == 0 else None
            own_norms = squares[share] if with_squares else None
            self._multiply(chosen[share], block, scales, first, own, own_norms, products[share])

        # Threads of a BLAS would wait for each other, busily, while others make canaries.
        with _blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
            list(pool.map(multiply, shares))
        return products.T, squares, own_squares

    def _multiply(
        self,
        chosen: NDArray[np.uint64],
        block: NDArray[np.floating],
        scales: NDArray[np.floating],
        first: int,
        own_squares: NDArray[np.float64] | None,
        squares: NDArray[np.float64] | None,
        products: NDArray[np.float64],
    ) -> None:
        """Add some canaries' products with a block, and squared norms where asked for, in this thread."""
        rows = np.empty((min(_ROWS, len(chosen)), TILE), np.float32)
        parts = np.empty((TILE // _PRODUCTS, len(rows), len(block)), np.float32)
        # The BLAS is faster with the vectors as columns. Rows a power of two apart would share few lines of
        # the cache, and turning them would take three times as long.
        piece = np.zeros((len(block), TILE + 16), np.float32)[:, :TILE]
        columns = np.empty((TILE, len(block)), np.float32)
        right = columns.reshape(-1, _PRODUCTS, len(block))
        for tile in range(-(-block.shape[1] // TILE)):
            given = block[:, tile * TILE : (tile + 1) * TILE]
            np.multiply(given, scales[:, np.newaxis], out=piece[:, : given.shape[1]], casting="same_kind")
            piece[:, given.shape[1] :] = 0.0
            if own_squares is not None:
                passes.add_squares(np.ascontiguousarray(piece), own_squares)
            columns[:] = piece.T
            for start in range(0, len(chosen), len(rows)):
                end = min(start + len(rows), len(chosen))
                made, products_here = rows[: end - start], parts[:, : end - start]
                passes.make_rows(np.uint64(self.seed), chosen[start:end], first // TILE + tile, self.dim, made)
                if squares is not None:
                    passes.add_squares(made, squares[start:end])
                left = made.reshape(len(made), -1, _PRODUCTS).transpose(1, 0, 2)
                np.matmul(left, right, out=products_here)
                passes.add_parts(products_here, products[start:end])

    def norms(self) -> NDArray[np.float64]:
        """Norms ‖X_j‖ of all canaries before normalising, shape (count,); computed once and kept."""
        return self._norms(checked_indices(None, self.count))

    def _norms(self, chosen: NDArray[np.uint64]) -> NDArray[np.float64]:
        # None is zero: no coordinate ever is.
        new = np.array(sorted(set(chosen.tolist()) - self._known_norms.keys()), dtype=np.uint64)
        if len(new):
            self._learn(new, self._squares(new, slice(0, self.dim)))
        return np.array([self._known_norms[j] for j in chosen.tolist()])

    def _squares(self, chosen: NDArray[np.uint64], coordinates: slice) -> NDArray[np.float64]:
        total = np.zeros(len(chosen))
        for _, part in cut(coordinates, self.dim):
            squares, first_tile = np.zeros(len(chosen)), part.start // TILE
            nothing = np.empty((0, (-(-part.stop // TILE) - first_tile) * TILE)), squares, np.empty((0, len(chosen)))
            self._add_products(chosen, first_tile, part.start, part.stop, *nothing, True)
            total += squares
        return total

    def _add_products(
        self, chosen: NDArray[np.uint64], first_tile: int, first: int, end: int, block: NDArray[np.float64], *sums: Any
    ) -> None:
        """Add the part over a block's tiles to products and squared norms, as ``passes.add_products`` does."""
        coordinates = len(chosen) * block.shape[1]
        in_threads(
            passes.add_products,
            len(chosen),
            coordinates,
            np.uint64(self.seed),
            chosen,
            first_tile,
            first,
            end,
            block,
            *sums,
        )

    def _checked_squares(self, squared_norms: ArrayLike) -> NDArray[np.float64]:
        squares = checked_reals("squared_norms", squared_norms)
        if squares.shape != (self.count,) or not ((squares > 0.0) & (squares < np.inf)).all():
            raise ValueError(f"squared_norms must be {self.count} positive numbers, one a canary")
        return squares

    def _has_norms(self, chosen: NDArray[np.uint64]) -> bool:
        return self._known_norms.keys() >= set(chosen.tolist())

    def _learn(self, chosen: NDArray[np.uint64], squares: NDArray[np.float64]) -> None:
        self._known_norms.update(zip(chosen.tolist(), np.sqrt(squares).tolist(), strict=True))


def noise(seed: int, dim: int) -> NDArray[np.float32]:
    """Make a standard normal vector, independent of the canaries of the same seed.

    Parameters
    ----------
    seed
        Key of the generator, 0 ≤ seed < 2⁶⁴.
    dim
        Dimension d, 2 ≤ dim ≤ 2⁴⁰.

    Returns
    -------
    Independent standard normal coordinates, shape (dim,).

    Raises
    ------
    ValueError
        If a parameter is not an integer in its range.

    Notes
    -----
    The module's stream with purpose 1 and j = 0: the first coordinates are the same for any dim.
    """
    key = np.uint64(checked_integer("seed", seed, 0, 2**64 - 1, "with 0 ≤ seed < 2^64"))
    out = np.empty(checked_integer("dim", dim, 2, MAX_DIM, "with 2 ≤ dim ≤ 2^40"), np.float32)
    fill(key, np.uint64(0), NOISE, 0, out)
    return out
