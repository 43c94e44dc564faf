"""Orthonormal canaries: rows of a random orthonormal matrix, all made and scored by a few fast transforms.

With T the orthonormal type-2 cosine transform of R^d, D_l diagonal matrices of independent random signs and π a random
permutation, canary j is row π(j) of the matrix T D_L ⋯ T D_2 T D_1:

    c_j = D_1 Tᵀ D_2 Tᵀ ⋯ D_L Tᵀ e_π(j).

The matrix is orthonormal whatever the signs: canaries have norm 1 and no two of them correlate, up to rounding. Signs
and permutation are integers made of the counter-based stream (``kernels._canary_stream``), the same on every machine.
The transform is scipy's; equal calls give equal bits with one version of it on one machine. Other machines may round
otherwise, because its code is compiled for each kind of processor. A Hadamard transform would take a third of the time
and round alike everywhere, but there is one for powers of two alone; models have other dimensions.

Nearly all of the time is the transforms': at dim = 2²⁰ and two layers, a sum and the scores take four of them, 95% of
Algorithm 1 with 1,000 canaries. Drawing signs, rows and noise takes 3%.

``proofs_check/orthonormal_canaries.md`` has what follows for scores, and what one layer lacks that two have.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from canaryproof.kernels._canary_arguments import checked_indices, checked_int, checked_vectors, checked_weights
from canaryproof.kernels._canary_stream import fill_signs, shuffle

__all__ = ["OrthonormalCanaries"]

_MAX_DIM = 2**31 - 1
_MAX_LAYERS = 16

Signs = tuple[NDArray[np.float32], ...]


@dataclass(frozen=True)
class OrthonormalCanaries:
    """Orthonormal canaries c_1, …, c_k: rows of a product of cosine transforms and random signs.

    The sum of any of them takes ``layers`` transforms, and so do the scores of all. Canary j is the same whatever the
    count. Kept are 4·(layers·dim + count) bytes. With them, at two layers, a sum takes 41·dim bytes at its peak, and
    scores 49·dim of a float64 vector and 29·dim of a float32 one, the vector included: 3 to 5 GB at dim = 10⁸, where
    a call takes 7 to 10 seconds.

    Parameters
    ----------
    seed
        Key of the generator, 0 ≤ seed < 2⁶⁴.
    count
        Number k of canaries, 1 ≤ count ≤ dim.
    dim
        Dimension d, 2 ≤ dim < 2³¹. A transform takes O(d log d) steps for every d, and the fewest where all prime
        factors of d are small: d = 1,000,003, a prime, takes 11 times as long as d = 10⁶.
    layers
        Number L of layers, from 1 to 16. With two, a canary's coordinates are sums of d terms with random signs, so
        that its score against fixed data is close to normal, whatever the data. With one they are single cosines.

    Raises
    ------
    ValueError
        If a parameter is not an integer in its range.

    Notes
    -----
    Takes the place of the independent canaries of Andrew et al. (arXiv 2302.03098), Algorithm 1. Random signs before
    fast orthonormal transforms are Ailon and Chazelle's (2009), stacked layers Yu et al.'s (2016, "Orthogonal random
    features").
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
        """Weighted sum Σ w_j c_j, by ``layers`` transforms in float64.

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

        Beside Gaussian noise of known scale these are exactly independent, where cosines share the release's norm.

        Parameters
        ----------
        vectors
            float32 or float64, any strides, shape (dim,) or (n, dim). The transforms are made in the same type.
        indices
            Canaries to score, shape (k,); all if None.

        Returns
        -------
        Scores, shape (k,) or (n, k). Rounding errors, in units of 2⁻²⁴ or 2⁻⁵³ times ‖v‖/√dim, were at most
        20·layers where all prime factors of dim are below 12, else 50·layers (searched up to dim = 2²⁰).

        Raises
        ------
        ValueError
            If a vector is zero, not finite or of another shape or type, or an index is out of range.
        """
        products, _, scales = self._products(vectors, indices)
        scores: NDArray[np.float64] = products / scales.astype(np.float64)[:, np.newaxis]
        return scores if np.ndim(vectors) == 2 else scores[0]

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
        products, norms, _ = self._products(vectors, indices)
        cosines = np.clip(products / norms[:, np.newaxis], -1.0, 1.0)
        return cosines if np.ndim(vectors) == 2 else cosines[0]

    def block_cosines(self, vectors: ArrayLike) -> NDArray[np.float64]:
        """Cosines between all canaries and a block of vectors, with transforms in float32: for many rounds.

        Parameters
        ----------
        vectors
            float32 or float64, any strides, memory-mapped or not, shape (n, dim).

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
        products, norms, _ = self._products(vectors, None, np.float32)
        return np.clip(products / norms[:, np.newaxis], -1.0, 1.0)

    def _products(
        self, vectors: ArrayLike, indices: ArrayLike | None, dtype: type[np.floating] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.floating]]:
        """Scores and norms of scaled vectors, with the powers of two by which they were multiplied."""
        block, scales = checked_vectors(vectors, self.dim)
        rows = self._rows[checked_indices(indices, self.count)]
        products, norms = np.empty((len(block), len(rows))), np.empty(len(block))
        # One row at a time: scipy's transform is no faster on several, and memory stays at O(dim).
        for given, scale, product, n in zip(block, scales, products, range(len(block)), strict=True):
            row = np.multiply(given, scale, dtype=given.dtype).astype(dtype or given.dtype, copy=False)
            norms[n] = np.sqrt(np.square(row, dtype=np.float64).sum())
            product[:] = _transformed(row, self._signs)[rows]
        return products, norms, scales

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
    """Draw the diagonals of D_1, …, D_L."""
    drawn = tuple(np.empty(dim, np.float32) for _ in range(layers))
    for layer, signs in enumerate(drawn):
        fill_signs(np.uint64(seed), np.uint64(layer), signs)
    return drawn


def _transformed(vector: NDArray[np.floating], layers: Signs) -> NDArray[np.floating]:
    """Return T D_L ⋯ T D_1 v; the vector is used up."""
    for signs in layers:
        vector *= signs
        vector = fft.dct(vector, norm="ortho", overwrite_x=True)
    return vector


def _transposed(vector: NDArray[np.float64], layers: Signs) -> NDArray[np.float64]:
    """Return D_1 Tᵀ ⋯ D_L Tᵀ v; the vector is used up."""
    for signs in reversed(layers):
        vector = fft.idct(vector, norm="ortho", overwrite_x=True)
        vector *= signs
    return vector
