"""Counter-based random canaries and noise: every coordinate is a pure function, nothing is stored.

Coordinate i of canary j under seed s, before normalising, is the same whatever the count and the dimension. With
tile = i // 4096, r = i % 4096, run = r // 1024 and c = 1024 tile + r % 1024, it is made of output word ``run`` of
Philox 4×32-10 (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3") with

- key (s mod 2³², s div 2³²),
- counter (c mod 2³², c div 2³², j, purpose); purpose 0 is a canary, purpose 1 is noise with j = 0.

A word u < 2³¹ becomes the normal quantile of p = v 2⁻³², v being u with its lowest bit set; a word above becomes minus
what its complement becomes. Hence 2³¹ equally likely values, symmetric, the largest 6.23; each within 4.6e-7 of the
exact quantile, relative (measured over all words against ``scipy.special.ndtri``). The path has only +, −, × and ÷ of
float32 and integer operations, so it gives the same bits on every machine: no libm, and no fused multiply-add, which
numba doesn't form without ``fastmath``.

Sums run over tiles in float64: within a tile pairwise in a fixed pattern, then tile after tile, so that neither the
number of threads nor the way the work is cut changes a bit.
"""

import math
import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit, prange
from numba.extending import intrinsic
from numpy.typing import ArrayLike, NDArray

__all__ = ["Canaries", "noise"]

_TILE = 4096
_RUN = 1024  # the four words of one counter go to four runs, so that every store is contiguous
_MAX_COUNT = 2**32
_MAX_DIM = 2**40
_TILES_AT_ONCE = 64  # 2 MB of float64 input held at a time; cuts the work, not the sums
_CANARY = np.uint64(0)
_NOISE = np.uint64(1)

_F32, _I32, _U32, _U64 = np.float32, np.int32, np.uint32, np.uint64
_MULTIPLIERS = _U64(0xD2511F53), _U64(0xCD9E8D57)
_WEYL = _U64(0x9E3779B9), _U64(0xBB67AE85)
_LOW, _SHIFT = _U64(0xFFFFFFFF), _U64(32)

# log2(m) - 1/2 = s (L0 + L1 s² + L2 s⁴), s = (m - √2)/(m + √2), 1 ≤ m ≤ 2: the polynomial in s² that interpolates at
# the 3 Chebyshev points of [0, (3 - 2√2)²], error 6.0e-8. With w = -log2(4p(1 - p)) and t = 2³¹ (1 - 2p), |quantile|/t
# is smooth in w: the ratio of a sextic and a monic quintic interpolates it at w = 4 expm1(z), z the 12 Chebyshev points
# of [0, log(1 + 30/4)], relative error 2.3e-8. A test derives both again in mpmath, rounded to float32, and measures
# the error of the quantile itself.
_LOG = _F32(2.8853905), _F32(0.9615889), _F32(0.59575963)
_NUMERATOR = tuple(
    np.array([1.0246016e-3, 2.5396835e-4, 3.5768782e-5, 3.404905e-6, 2.1362143e-7, 7.50162e-9, 1.6215662e-11], _F32)
)
_DENOMINATOR = tuple(np.array([1.7555975e6, 116580.086, 29140.533, 1356.2157, 98.66093], _F32))
_SQRT2, _HALF, _TWO32 = _F32(math.sqrt(2.0)), _F32(0.5), _F32(2.0**32)


def _bitcast(_typing: Any, value: Any, target: Any) -> Any:
    """Reinterpret the 32 bits of a value as another type (numba has no scalar ``view``)."""
    result = target.instance_type

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(result))

    return result(value, target), generate


_reinterpret: Any = intrinsic(_bitcast)


@njit(inline="always")
def _philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Philox 4×32-10; the low 32 bits of each returned uint64 are an output word."""
    # Inlined by numba, because LLVM would unroll the rounds too late for the caller's loop to vectorise. The high
    # halves hold leftovers that every use masks away, which costs fewer masks than keeping them clean.
    for _ in range(10):
        p0 = _MULTIPLIERS[0] * (c0 & _LOW)
        p1 = _MULTIPLIERS[1] * (c2 & _LOW)
        c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ k0, p1, (p0 >> _SHIFT) ^ c3 ^ k1, p0
        k0 = (k0 + _WEYL[0]) & _LOW
        k1 = (k1 + _WEYL[1]) & _LOW
    return c0, c1, c2, c3


@njit(error_model="numpy")
def _normal(word: Any) -> Any:
    """Turn a 32-bit word into its normal quantile."""
    k = _I32(word)
    # The odd integers a = 2³² p of the nearer tail and t = 2³¹ (1 - 2p), the latter with the sign of the quantile.
    a = _F32(_I32((k ^ (k >> _I32(31))) | _I32(1)))
    t = _F32(_I32((k ^ _I32(-(2**31))) | _I32(1)))
    bits = _reinterpret(a * (_TWO32 - a), _I32)  # 2⁶² · 4p(1 - p); 189 = 62 + the exponent's bias
    exponent = _F32(_I32(_I32(189) - (bits >> _I32(23))))
    m = _reinterpret(_I32((bits & _I32(0x7FFFFF)) | _I32(0x3F800000)), _F32)
    s = (m - _SQRT2) / (m + _SQRT2)
    z = s * s
    w = exponent - (_HALF + s * (_LOG[0] + z * (_LOG[1] + z * _LOG[2])))
    n, d = _NUMERATOR, _DENOMINATOR
    numerator = n[0] + w * (n[1] + w * (n[2] + w * (n[3] + w * (n[4] + w * (n[5] + w * n[6])))))
    denominator = d[0] + w * (d[1] + w * (d[2] + w * (d[3] + w * (d[4] + w))))
    return t * numerator / denominator


@njit
def _make_tile(seed: Any, index: Any, purpose: Any, tile: int, dim: int, words: Any) -> None:
    """Write the float32 bits of a tile's coordinates, zero from coordinate dim on."""
    low, high = seed & _LOW, seed >> _SHIFT
    # A tile's counters share their high half, as 1024 divides 2³².
    first = _U64(tile) * _U64(_RUN)
    c0, c1 = first & _LOW, first >> _SHIFT
    run0, run1, run2, run3 = words[:_RUN], words[_RUN : 2 * _RUN], words[2 * _RUN : 3 * _RUN], words[3 * _RUN :]
    for r in range(_RUN):
        w0, w1, w2, w3 = _philox(c0 + _U64(r), c1, index, purpose, low, high)
        run0[r], run1[r], run2[r], run3[r] = _U32(w0), _U32(w1), _U32(w2), _U32(w3)
    for r in range(_TILE):
        words[r] = _reinterpret(_normal(words[r]), _U32)
    words[max(0, min(_TILE, dim - tile * _TILE)) :] = _U32(0)


@njit
def _dot(a: Any, b: Any) -> float:
    """Dot product of two tiles in float64: the four runs first, then halves."""
    # Addition is not associative, so only an order written out as lanes lets the compiler vectorise.
    lanes = np.empty(_RUN)
    a0, a1, a2, a3 = a[:_RUN], a[_RUN : 2 * _RUN], a[2 * _RUN : 3 * _RUN], a[3 * _RUN :]
    b0, b1, b2, b3 = b[:_RUN], b[_RUN : 2 * _RUN], b[2 * _RUN : 3 * _RUN], b[3 * _RUN :]
    for r in range(_RUN):
        lanes[r] = (np.float64(a0[r]) * b0[r] + np.float64(a1[r]) * b1[r]) + (
            np.float64(a2[r]) * b2[r] + np.float64(a3[r]) * b3[r]
        )
    half = _RUN // 2
    while half > 0:
        for r in range(half):
            lanes[r] += lanes[r + half]
        half //= 2
    return float(lanes[0])


@njit
def _add_scaled(total: Any, scale: float, tile: Any) -> None:
    for r in range(_TILE):
        total[r] += scale * np.float64(tile[r])


@njit(parallel=True, cache=True)
def _fill(seed: Any, index: Any, purpose: Any, first_tile: int, out: Any) -> None:
    """Write consecutive coordinates from the first one of a tile on, as many as fit."""
    for k in prange((len(out) + _TILE - 1) // _TILE):
        words = np.empty(_TILE, np.uint32)
        part = out[k * _TILE : (k + 1) * _TILE]
        _make_tile(seed, index, purpose, first_tile + k, _MAX_DIM, words)
        part[:] = words.view(np.float32)[: len(part)]


@njit(parallel=True, cache=True)
def _add_products(seed: Any, indices: Any, first_tile: int, dim: int, block: Any, squares: Any, products: Any) -> None:
    """Add to every canary's squared norm, and products with a block of vectors, the part over the block's tiles."""
    for k in prange(len(indices)):
        words = np.empty(_TILE, np.uint32)
        coordinates = words.view(np.float32)
        for i in range(block.shape[1] // _TILE):
            _make_tile(seed, indices[k], _CANARY, first_tile + i, dim, words)
            squares[k] += _dot(coordinates, coordinates)
            for n in range(block.shape[0]):
                products[n, k] += _dot(coordinates, block[n, i * _TILE : (i + 1) * _TILE])


@njit(cache=True)
def _add_squares(block: Any, squares: Any) -> None:
    for n in range(block.shape[0]):
        for i in range(block.shape[1] // _TILE):
            tile = block[n, i * _TILE : (i + 1) * _TILE]
            squares[n] += _dot(tile, tile)


@njit(parallel=True, cache=True)
def _weighted_sum(seed: Any, indices: Any, scales: Any, out: Any) -> None:
    """Write the sum of scaled canaries, added in the order of the indices."""
    for i in prange((len(out) + _TILE - 1) // _TILE):
        words = np.empty(_TILE, np.uint32)
        coordinates = words.view(np.float32)
        total = np.zeros(_TILE)
        for k in range(len(indices)):
            _make_tile(seed, indices[k], _CANARY, i, len(out), words)
            _add_scaled(total, scales[k], coordinates)
        part = out[i * _TILE : (i + 1) * _TILE]
        part[:] = total[: len(part)]


def _checked_int(name: str, value: object, low: int, high: int, rule: str) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = low - 1
    if not low <= number < high:
        raise ValueError(f"{name} must be an integer with {rule}, not {value!r}")
    return number


def _checked_indices(indices: ArrayLike | None, count: int) -> NDArray[np.uint64]:
    if indices is None:
        return np.arange(count, dtype=np.uint64)
    given = np.asarray(indices)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(f"indices must be a one-dimensional array of integers, not {given.ndim}-d {given.dtype}")
    if given.size and (given.min() < 0 or given.max() >= count):
        raise ValueError(f"indices must lie in [0, {count}), not [{given.min()}, {given.max()}]")
    return np.ascontiguousarray(given, dtype=np.uint64)


def _checked_weights(weights: ArrayLike | None, length: int) -> NDArray[np.float64]:
    given = np.ones(length) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != (length,) or not np.isfinite(given).all():
        raise ValueError(f"weights must be {length} finite numbers, one an index")
    return given


def _checked_vectors(vectors: ArrayLike, dim: int) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """Return the vectors as a block, and powers of two that keep their squares in range."""
    block = np.atleast_2d(np.asarray(vectors))
    if block.dtype not in (np.float32, np.float64) or block.ndim != 2 or block.shape[1] != dim:
        raise ValueError(
            f"vectors must be float32 or float64 of shape ({dim},) or (n, {dim}), not {block.dtype} of "
            f"shape {np.shape(vectors)}"
        )
    largest = np.maximum(block.max(axis=1), -block.min(axis=1)).astype(np.float64)
    if not (np.isfinite(largest) & (largest > 0.0)).all():
        raise ValueError("vectors must be finite and not zero")
    return block, np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -1000, 1000))


@dataclass(frozen=True)
class Canaries:
    """The canaries c_j = X_j/‖X_j‖, independent uniform directions, made anew at each use.

    X_j is the float32 vector of standard normal coordinates that the module describes; norms, sums and cosines are
    float64. The rounding error is at most (dim/2048 + 40) 2⁻⁵³ for a cosine, and for a coordinate of the sum of n
    canaries (dim/8192 + n + 16) 2⁻⁵³ times the sum of its absolute terms, underflow apart. Memory is O(dim + count)
    beyond the input.

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
    """

    seed: int
    count: int
    dim: int
    _known_norms: dict[int, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _checked_int("seed", self.seed, 0, 2**64, "0 ≤ seed < 2^64")
        _checked_int("count", self.count, 1, _MAX_COUNT + 1, "1 ≤ count ≤ 2^32")
        _checked_int("dim", self.dim, 2, _MAX_DIM + 1, "2 ≤ dim ≤ 2^40")

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
        index = np.uint64(_checked_int("j", j, 0, self.count, f"0 ≤ j < {self.count}"))
        canary = np.empty(self.dim, np.float32)
        _fill(np.uint64(self.seed), index, _CANARY, 0, canary)
        return np.divide(canary, self._norms(np.array([index])), out=canary, dtype=np.float64, casting="same_kind")

    def sum(self, indices: ArrayLike | None = None, weights: ArrayLike | None = None) -> NDArray[np.float64]:
        """Weighted sum Σ w_j c_j, added in the order of the indices.

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
        chosen = _checked_indices(indices, self.count)
        scales = _checked_weights(weights, len(chosen)) / self._norms(chosen)
        total = np.empty(self.dim)
        _weighted_sum(np.uint64(self.seed), chosen, scales, total)
        return total

    def cosines(self, vectors: ArrayLike, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """Cosines between canaries and one vector or a block of them.

        Parameters
        ----------
        vectors
            float32 or float64, any strides, shape (dim,) or (n, dim). A block costs little more than one vector,
            because each canary is made once for all.
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
        block, scales = _checked_vectors(vectors, self.dim)
        chosen = _checked_indices(indices, self.count)
        own_squares = np.zeros(len(block))
        squares = np.zeros(len(chosen))
        products = np.zeros((len(block), len(chosen)))
        step = _TILE * max(1, _TILES_AT_ONCE // max(1, len(block)))
        for start in range(0, self.dim, step):
            piece = block[:, start : start + step]
            padded = np.zeros((len(block), -(-piece.shape[1] // _TILE) * _TILE))
            np.multiply(piece, scales[:, np.newaxis], out=padded[:, : piece.shape[1]])
            _add_squares(padded, own_squares)
            _add_products(np.uint64(self.seed), chosen, start // _TILE, self.dim, padded, squares, products)
        # Rounding may carry the cosine of parallel vectors past 1, where the null law's functions are 0.
        cosines = np.clip(products / np.sqrt(squares) / np.sqrt(own_squares)[:, np.newaxis], -1.0, 1.0)
        return cosines if np.ndim(vectors) == 2 else cosines[0]

    def norms(self) -> NDArray[np.float64]:
        """Norms ‖X_j‖ of all canaries before normalising, shape (count,); computed once and kept."""
        return self._norms(_checked_indices(None, self.count))

    def _norms(self, chosen: NDArray[np.uint64]) -> NDArray[np.float64]:
        # None is zero: no coordinate ever is.
        asked = chosen.tolist()
        new = np.array(sorted(set(asked) - self._known_norms.keys()), dtype=np.uint64)
        if len(new):
            squares = np.zeros(len(new))
            no_vectors = np.empty((0, -(-self.dim // _TILE) * _TILE))
            _add_products(np.uint64(self.seed), new, 0, self.dim, no_vectors, squares, np.empty((0, len(new))))
            self._known_norms.update(zip(new.tolist(), np.sqrt(squares).tolist(), strict=True))
        return np.array([self._known_norms[j] for j in asked])


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
    key = np.uint64(_checked_int("seed", seed, 0, 2**64, "0 ≤ seed < 2^64"))
    out = np.empty(_checked_int("dim", dim, 2, _MAX_DIM + 1, "2 ≤ dim ≤ 2^40"), np.float32)
    _fill(key, np.uint64(0), _NOISE, 0, out)
    return out
