"""What is counted of a stretch of the stream: sums of powers, tails, bins, bits, and pairs at fixed lags."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray
from scipy import special

from canaryproof.verify.streams import law

# Coordinates a stretch. It is cut into slabs, so that sums don't depend on the number of threads.
LENGTH = 2**20
_SLAB = 2**16
_PART = 4096
# Lags in the order in which a stretch is read. Those of 1024, 2048 and 3072 meet the four words of one counter.
LAGS = (1, 2, 1024, 2048, 3072, 4096)
ORDERS = 8
BINS = 4096
# Outer probabilities 1/2, 1/4, … 2^-29 of either side, and where they begin.
THRESHOLDS = np.array([-special.ndtri(2.0**-k) for k in range(1, 30)]).astype(np.float32)
_CENTRE = law.moment(2)


# Sums may be reordered for speed within a slab: nothing depends on their last bits.
@njit(fastmath={"reassoc"}, cache=True)
def _add_powers(x: Any, out: Any) -> None:
    s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = 0.0
    for i in range(len(x)):
        a = np.float64(x[i])
        b = a * a
        c, d = a * b, b * b
        s1, s2, s3, s4 = s1 + a, s2 + b, s3 + c, s4 + d
        s5, s6, s7, s8 = s5 + a * d, s6 + b * d, s7 + c * d, s8 + d * d
    out += np.array([s1, s2, s3, s4, s5, s6, s7, s8])


@njit(fastmath={"reassoc"}, cache=True)
def _add_products(x: Any, y: Any, centre: float, out: Any) -> None:
    product = squares = 0.0
    for i in range(len(x)):
        a, b = np.float64(x[i]), np.float64(y[i])
        product += a * b
        squares += (a * a - centre) * (b * b - centre)
    out[0] += product
    out[1] += squares


@njit(cache=True)
def _add_bits(words: Any, out: Any) -> None:
    # Two bits at a time, each in half a word: fewer than 2¹⁶ words do not overflow it.
    for bit in range(16):
        total = np.uint32(0)
        for i in range(len(words)):
            total += (words[i] >> np.uint32(bit)) & np.uint32(0x10001)
        out[bit] += total & np.uint32(0xFFFF)
        out[bit + 16] += total >> np.uint32(16)


@njit(cache=True)
def _add_tails(x: Any, thresholds: Any, out: Any) -> None:
    for k in range(len(thresholds)):
        above = below = np.uint32(0)
        for i in range(len(x)):
            above += np.uint32(x[i] > thresholds[k])
            below += np.uint32(x[i] < -thresholds[k])
        out[0, k] += above
        out[1, k] += below


@njit(cache=True)
def _add_pairs(words: Any, x: Any, lag: int, offset: int, centre: float, products: Any, cells: Any, bits: Any) -> int:
    """Count disjoint pairs at a lag, so that all of them are independent; return how many there were."""
    word, other = np.empty(_PART, np.uint32), np.empty(_PART, np.uint32)
    a, b = np.empty(_PART, np.float32), np.empty(_PART, np.float32)
    pairs = (len(x) - offset) // (2 * lag) * lag
    i, since = offset, 0
    for start in range(0, pairs, _PART):
        n = min(_PART, pairs - start)
        for k in range(n):
            word[k], other[k], a[k], b[k] = words[i], words[i + lag], x[i], x[i + lag]
            i, since = i + 1, since + 1
            if since == lag:
                i, since = i + lag, 0
        _add_products(a[:n], b[:n], centre, products)
        for k in range(n):
            cells[(word[k] >> np.uint32(26)) << np.uint32(6) | (other[k] >> np.uint32(26))] += 1
            word[k] ^= other[k]
        _add_bits(word[:n], bits)
    return pairs


@njit(parallel=True, cache=True)
def _count(
    words: Any, x: Any, thresholds: Any, lags: Any, centre: float, powers: Any, tails: Any, bins: Any, bits: Any,
    pairs: Any, products: Any, cells: Any, differing: Any,
) -> None:  # fmt: skip
    for slab in prange(len(powers)):
        part, of = words[slab * _SLAB : (slab + 1) * _SLAB], x[slab * _SLAB : (slab + 1) * _SLAB]
        _add_powers(of, powers[slab])
        _add_tails(of, thresholds, tails[slab])
        for i in range(len(part)):
            bins[slab, 0, part[i] >> np.uint32(20)] += 1
            bins[slab, 1, part[i] & np.uint32(4095)] += 1
        for start in range(0, _SLAB, _PART):
            _add_bits(part[start : start + _PART], bits[slab])
        for k in range(len(lags)):
            for late in range(2):
                pairs[slab, k, late] += _add_pairs(
                    part, of, lags[k], late * lags[k], centre, products[slab, k, late], cells[slab, k, late],
                    differing[slab, k, late],
                )  # fmt: skip


def _zeros(*shape: int) -> NDArray[np.int64]:
    return np.zeros(shape, np.int64)


@dataclass
class Counts:
    """Everything that is counted, over any number of stretches.

    Attributes
    ----------
    coordinates
        How many there were.
    powers
        Sums of their powers 1 to 8, shape (8,).
    tails
        How many lie above each threshold, and below its negative, shape (2, 29).
    bins
        How many words have each value of their 12 highest and 12 lowest bits, shape (2, 4096).
    bits
        How many words have each bit set, shape (32,).
    pairs
        How many disjoint pairs there were at each lag, from the first place on and from the lag on, shape (6, 2).
    products
        Sums over pairs of xy and of (x² − m)(y² − m), m = E q², shape (6, 2, 2).
    cells
        How many pairs have each value of the six highest bits of both words, shape (6, 2, 4096).
    differing
        How many pairs differ in each bit, shape (6, 2, 32).
    """

    coordinates: int = 0
    powers: NDArray[np.float64] = field(default_factory=lambda: np.zeros(ORDERS))
    tails: NDArray[np.int64] = field(default_factory=lambda: _zeros(2, len(THRESHOLDS)))
    bins: NDArray[np.int64] = field(default_factory=lambda: _zeros(2, BINS))
    bits: NDArray[np.int64] = field(default_factory=lambda: _zeros(32))
    pairs: NDArray[np.int64] = field(default_factory=lambda: _zeros(len(LAGS), 2))
    products: NDArray[np.float64] = field(default_factory=lambda: np.zeros((len(LAGS), 2, 2)))
    cells: NDArray[np.int64] = field(default_factory=lambda: _zeros(len(LAGS), 2, BINS))
    differing: NDArray[np.int64] = field(default_factory=lambda: _zeros(len(LAGS), 2, 32))

    def add(self, words: NDArray[np.uint32], coordinates: NDArray[np.float32]) -> None:
        """Count a stretch: words and their coordinates, shape (LENGTH,), in the order in which they are to be read."""
        slabs = LENGTH // _SLAB
        kept = (self.powers, self.tails, self.bins, self.bits, self.pairs, self.products, self.cells, self.differing)
        found = [np.zeros((slabs, *array.shape), array.dtype) for array in kept]
        _count(words, coordinates, THRESHOLDS, np.array(LAGS), _CENTRE, *found)
        for array, of_slabs in zip(kept, found, strict=True):
            array += of_slabs.sum(axis=0)
        self.coordinates += LENGTH

    def __iadd__(self, other: Self) -> Self:
        self.coordinates += other.coordinates
        for name in ("powers", "tails", "bins", "bits", "pairs", "products", "cells", "differing"):
            array = getattr(self, name)
            array += getattr(other, name)
        return self
