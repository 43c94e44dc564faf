"""Orthonormal canaries: rows of a random orthonormal matrix, all made and scored by a few fast transforms.

Let n be the largest power of two up to d, and r = d − n. B_w and A_w are the matrices H D_w on the first and on the
last n coordinates. H is the Walsh–Hadamard matrix of order n, with entries ±n^(−1/2), and D_w a diagonal matrix of
independent random signs. Canary j is row π(j) of the orthonormal matrix

    M = B_L ⋯ B_2 B_1                              if d is a power of two,
    M = B_(2L) G B_(2L−1) A_(2L−2) ⋯ B_1 A_0       if not,

π a random permutation. G rotates the first r coordinates against the last r, with the cosine √(r/d) and the sine
√(n/d). After it each canary has, in the mean over signs, the same energy 1/d on every coordinate, at any d.

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

from canaryproof.kernels._canary_arguments import checked_indices, checked_int, checked_vectors, checked_weights
from canaryproof.kernels._canary_passes import add_squares
from canaryproof.kernels._canary_stream import TILE, fill_signs, shuffle
from canaryproof.kernels._hadamard import rotate, transform

__all__ = ["OrthonormalCanaries"]

_MAX_DIM = 2**31 - 1
_MAX_LAYERS = 16

# A row of words for each window, in the order of the indices w; each bit is a sign.
Signs = NDArray[np.uint32]


@dataclass(frozen=True)
class OrthonormalCanaries:
    """Orthonormal canaries c_1, …, c_k: rows of a product of Walsh–Hadamard transforms and random signs.

    The sum of any of them takes one product with M, and so do the scores of all. Canary j is the same whatever the
    count. Kept are 4·count bytes and a bit for each sign: layers·dim/8 bytes if dim is a power of two, and up to
    (2·layers + 1)·dim/8 if not. With two layers a sum takes 8·dim bytes more, the first call 12·dim. Scores take 8·dim
    more than a float64 vector and 4·dim more than a float32 one.

    Parameters
    ----------
    seed
        Key of the generator, 0 ≤ seed < 2⁶⁴.
    count
        Number k of canaries, 1 ≤ count ≤ dim.
    dim
        Dimension d, 2 ≤ dim < 2³¹. A product takes O(d log d) steps for every d, primes or not: L transforms of order d
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
        checked_int("seed", self.seed, 0, 2**64, "0 ≤ seed < 2^64")
        checked_int("dim", self.dim, 2, _MAX_DIM + 1, "2 ≤ dim < 2^31")
        checked_int("count", self.count, 1, self.dim + 1, "1 ≤ count ≤ dim: no more rows are orthogonal")
        checked_int("layers", self.layers, 1, _MAX_LAYERS + 1, f"1 ≤ layers ≤ {_MAX_LAYERS}")

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
        index = checked_int("j", j, 0, self.count, f"0 ≤ j < {self.count}")
        return self.sum(np.array([index])).astype(np.float32)

    def sum(self, indices: ArrayLike | None = None, weights: ArrayLike | None = None) -> NDArray[np.float64]:
        """Weighted sum Σ w_j c_j, by transforms in float64.

        Parameters
        ----------
        indices
            Canaries to add, shape (n,), repetitions allowed; all if None.
        weights
            Finite weights w_j, shape (n,); 1 each if None.

        Returns
        -------
        The sum, shape (dim,).

        Raises
        ------
        ValueError
            If an index is out of range, or the weights are not n finite numbers.
        """
        chosen = checked_indices(indices, self.count)
        total = np.zeros(self.dim)
        np.add.at(total, self._rows[chosen], checked_weights(weights, len(chosen)))
        return _transposed(total, self._signs)

    def scores(self, vectors: ArrayLike, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """Inner products ⟨c_j, v⟩ of canaries and one vector or a block of them, nothing normalised.

        With Gaussian noise of known scale these are exactly independent, where cosines share the release's norm.

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
        of two: proven, underflow apart. No single error above 20·L·u·‖v‖/√dim was found (searched up to dim = 2²⁰).

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
        if np.ndim(vectors) != 2:
            raise ValueError(f"vectors must have the shape (n, {self.dim}), not {np.shape(vectors)}")
        return self._quotients(vectors, None, by_norm=True, dtype=np.float32)

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
        rows = self._rows[checked_indices(indices, self.count)]
        results = np.empty((len(block), len(rows)))
        # One row at a time: memory stays at O(dim).
        for given, scale, quotients in zip(block, scales, results, strict=True):
            row = np.multiply(given, scale, dtype=given.dtype).astype(dtype or given.dtype, copy=False)
            divisor = _norm(row) if by_norm else float(scale)
            np.divide(_transformed(row, self._signs)[rows], divisor, out=quotients, dtype=np.float64)
        if by_norm:
            np.clip(results, -1.0, 1.0, out=results)
        return results if np.ndim(vectors) == 2 else results[0]

    @cached_property
    def _rows(self) -> NDArray[np.int32]:
        return _drawn_rows(self.seed, self.count, self.dim)

    @cached_property
    def _signs(self) -> Signs:
        return _drawn_signs(self.seed, self.dim, self.layers)


def _drawn_rows(seed: int, count: int, dim: int) -> NDArray[np.int32]:
    """Draw π(0), …, π(count − 1)."""
    rows = np.arange(dim, dtype=np.int32)
    shuffle(np.uint64(seed), count, rows)
    return rows[:count].copy()


def _drawn_signs(seed: int, dim: int, layers: int) -> Signs:
    """Draw the diagonals of all windows."""
    order, rest = _split(dim)
    drawn = np.empty((2 * layers + 1 if rest else layers, -(-order // 32)), np.uint32)
    for window, signs in enumerate(drawn):
        fill_signs(np.uint64(seed), np.uint64(window), signs)
    return drawn


def _split(dim: int) -> tuple[int, int]:
    """Return n and r."""
    order = 1 << (dim.bit_length() - 1)
    return order, dim - order


def _transformed(vector: NDArray[np.floating], signs: Signs) -> NDArray[np.floating]:
    """Turn v into M v, in place."""
    for window in range(len(signs)):
        if window == len(signs) - 1:
            _rotated(vector, 1.0)
        transform(_part(vector, window, signs), signs[window], False)
    return vector


def _transposed(vector: NDArray[np.float64], signs: Signs) -> NDArray[np.float64]:
    """Turn v into Mᵀ v, in place."""
    for window in reversed(range(len(signs))):
        transform(_part(vector, window, signs), signs[window], True)
        if window == len(signs) - 1:
            _rotated(vector, -1.0)
    return vector


def _part(vector: NDArray[np.floating], window: int, signs: Signs) -> NDArray[np.floating]:
    """Return a window's coordinates: in turns the last n and the first n, and the first n once more in the end."""
    order, rest = _split(len(vector))
    start = rest if window % 2 == 0 and window < len(signs) - 1 else 0
    return vector[start : start + order]


def _rotated(vector: NDArray[np.floating], direction: float) -> None:
    """Multiply by G, or by its inverse."""
    order, rest = _split(len(vector))
    number = vector.dtype.type
    cosine, sine = math.sqrt(rest / len(vector)), math.sqrt(order / len(vector))
    rotate(vector[:rest], vector[order:], number(cosine), number(direction * sine))


def _norm(vector: NDArray[np.floating]) -> float:
    """Norm, with squares added in float64 in a fixed order."""
    whole = len(vector) // TILE * TILE
    square, last = np.zeros(1), np.zeros((1, TILE), vector.dtype)
    last[0, : len(vector) - whole] = vector[whole:]
    add_squares(vector[np.newaxis, :whole], square)
    add_squares(last, square)
    return math.sqrt(square[0])
