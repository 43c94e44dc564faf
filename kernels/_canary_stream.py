"""The stream that canaries and noise are made of: one tile of 4096 coordinates at a time.

Coordinate i of canary j under seed s, before normalising, is the same whatever the count and the dimension. Let
tile = i // 4096, r = i % 4096, run = r // 1024 and c = 1024 tile + r % 1024. The coordinate is made of output word
``run`` of Philox 4×32-10 (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3") with

- key (s mod 2³², s div 2³²),
- counter (c mod 2³², c div 2³², j, purpose); purpose 0 is a canary, purpose 1 is noise with j = 0. Purposes 2 and 3 are
  the signs and the rows of orthonormal canaries, whose functions say how.

A word u < 2³¹ becomes the normal quantile of p = v 2⁻³², v being u with its lowest bit set; a word above becomes minus
what its complement becomes. Hence 2³¹ equally likely values, symmetric, the largest 6.23; each within 4.6e-7 of the
exact quantile, relative: proven for every word (``proofs_check/rounding/canary_quantile.json``). The path has only +,
−, × and ÷ of float32 and integer operations, so it gives the same bits on every machine. It needs no libm. numba forms
no fused multiply-add without ``fastmath``.
"""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from canaryproof.kernels._compiled import njit
from canaryproof.kernels._threads import in_threads

TILE = 4096
RUN = 1024  # the four words of one counter go to four runs, so that every store is contiguous
MAX_DIM = 2**40
CANARY = np.uint64(0)
NOISE = np.uint64(1)
SIGN = np.uint64(2)
ROW = np.uint64(3)

_F32, _I32, _U32, _U64 = np.float32, np.int32, np.uint32, np.uint64
_MULTIPLIERS = _U64(0xD2511F53), _U64(0xCD9E8D57)
_WEYL = _U64(0x9E3779B9), _U64(0xBB67AE85)
_LOW, _SHIFT = _U64(0xFFFFFFFF), _U64(32)

# log2(m) - 1/2 = s (L0 + L1 s² + L2 s⁴), s = (m - √2)/(m + √2), 1 ≤ m ≤ 2. The polynomial in s² interpolates at
# the 3 Chebyshev points of [0, (3 - 2√2)²], error 6.0e-8. With w = -log2(4p(1 - p)) and t = 2³¹ (1 - 2p), |quantile|/t
# is smooth in w. The ratio of a sextic and a monic quintic interpolates it at w = 4 expm1(z), z the 12 Chebyshev points
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


def _widen(_typing: Any) -> Any:
    """Ask LLVM for the widest vectors in the function that this stands in.

    On processors with 512 bits it takes 256 by default, for code that pauses between vectors; these loops don't, and
    gain a fifth. Elsewhere it changes nothing.
    """

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        # llvmlite knows attributes without values only, and prints what it has.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


_wide_vectors: Any = intrinsic(_widen)


@njit(inline="always")
def _philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Philox 4×32-10; the low 32 bits of each returned uint64 are an output word."""
    # numba inlines it: LLVM would unroll the rounds only after it has tried to vectorise the caller's loop. The high
    # halves hold leftovers that every use masks away, which costs fewer masks than keeping them clean.
    for _ in range(10):
        p0 = _MULTIPLIERS[0] * (c0 & _LOW)
        p1 = _MULTIPLIERS[1] * (c2 & _LOW)
        c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ k0, p1, (p0 >> _SHIFT) ^ c3 ^ k1, p0
        k0 = (k0 + _WEYL[0]) & _LOW
        k1 = (k1 + _WEYL[1]) & _LOW
    return c0, c1, c2, c3


@njit(error_model="numpy")
def _depth(word: Any) -> Any:
    """Turn a 32-bit word into w = -log2(4p(1 - p))."""
    k = _I32(word)
    # The odd integer 2³² p of the nearer tail.
    a = _F32(_I32((k ^ (k >> _I32(31))) | _I32(1)))
    bits = _reinterpret(a * (_TWO32 - a), _I32)  # 2⁶² · 4p(1 - p); 189 = 62 + the exponent's bias
    exponent = _F32(_I32(_I32(189) - (bits >> _I32(23))))
    m = _reinterpret(_I32((bits & _I32(0x7FFFFF)) | _I32(0x3F800000)), _F32)
    s = (m - _SQRT2) / (m + _SQRT2)
    z = s * s
    return exponent - (_HALF + s * (_LOG[0] + z * (_LOG[1] + z * _LOG[2])))


@njit(error_model="numpy")
def _normal(word: Any, w: Any) -> Any:
    """Turn a 32-bit word and its w into the normal quantile."""
    # The odd integer 2³¹ (1 - 2p), with the sign of the quantile.
    t = _F32(_I32((_I32(word) ^ _I32(-(2**31))) | _I32(1)))
    n, d = _NUMERATOR, _DENOMINATOR
    numerator = n[0] + w * (n[1] + w * (n[2] + w * (n[3] + w * (n[4] + w * (n[5] + w * n[6])))))
    denominator = d[0] + w * (d[1] + w * (d[2] + w * (d[3] + w * (d[4] + w))))
    return t * numerator / denominator


@njit()
def make_tile(seed: Any, index: Any, purpose: Any, tile: Any, dim: int, words: Any) -> None:
    """Write the float32 bits of a tile's coordinates, zero from coordinate dim on."""
    _wide_vectors()
    low, high = seed & _LOW, seed >> _SHIFT
    # A tile's counters share their high half, as 1024 divides 2³².
    first = _U64(tile) * _U64(RUN)
    c0, c1 = first & _LOW, first >> _SHIFT
    run0, run1, run2, run3 = words[:RUN], words[RUN : 2 * RUN], words[2 * RUN : 3 * RUN], words[3 * RUN :]
    for r in range(RUN):
        w0, w1, w2, w3 = _philox(c0 + _U64(r), c1, index, purpose, low, high)
        run0[r], run1[r], run2[r], run3[r] = _U32(w0), _U32(w1), _U32(w2), _U32(w3)
    # A coordinate is one long chain of operations, and a processor looks no further ahead than about two of them.
    # Halves of the chain let it work at more coordinates at a time.
    depths = np.empty(RUN, _F32)
    for run in range(TILE // RUN):
        part = words[run * RUN : (run + 1) * RUN]
        for r in range(RUN):
            depths[r] = _depth(part[r])
        for r in range(RUN):
            part[r] = _reinterpret(_normal(part[r], depths[r]), _U32)
    words[max(0, min(TILE, dim - tile * TILE)) :] = _U32(0)


@njit(cache=True, nogil=True)
def _fill(seed: Any, index: Any, purpose: Any, first_tile: int, out: Any, begin: int, stop: int) -> None:
    for k in range(begin, stop):
        words = np.empty(TILE, np.uint32)
        part = out[k * TILE : (k + 1) * TILE]
        make_tile(seed, index, purpose, first_tile + k, MAX_DIM, words)
        part[:] = words.view(np.float32)[: len(part)]


def fill(seed: Any, index: Any, purpose: Any, first_tile: int, out: Any) -> None:
    """Write consecutive coordinates from the first one of a tile on, as many as fit."""
    in_threads(_fill, -(-len(out) // TILE), len(out), seed, index, purpose, first_tile, out)


@njit(cache=True, nogil=True)
def fill_signs(seed: Any, window: Any, out: Any) -> None:
    """Write the signs of a window of orthonormal canaries, as bits of 32-bit words: four words a counter.

    Window w of block b of a long vector has the number 64·b + w.
    """
    low, high = seed & _LOW, seed >> _SHIFT
    for first in range(0, len(out), 4):
        counter = _U64(first // 4)
        words = _philox(counter & _LOW, counter >> _SHIFT, window, SIGN, low, high)
        for k in range(min(4, len(out) - first)):
            out[first + k] = _U32(words[k] & _LOW)


@njit(cache=True, nogil=True)
def shuffle(seed: Any, block: Any, count: int, rows: Any) -> None:
    """Bring a uniformly drawn sequence of ``count`` of a block's rows to the front, by Fisher and Yates."""
    drawn = np.empty(RUN, np.int64)
    for i in range(count):
        if i % RUN == 0:
            _draw(seed, block, i, len(rows), drawn)
        j = drawn[i % RUN]
        rows[i], rows[j] = rows[j], rows[i]


@njit(cache=True, nogil=True)
def shuffle_few(seed: Any, block: Any, dim: int, rows: Any) -> None:
    """Write what ``shuffle`` brings to the front of 0, …, dim − 1, in memory of the number of rows."""
    # An open hash table of the rows that have moved: from where they stand to which they are, −1 if empty.
    size = 4
    while size < 2 * len(rows):
        size *= 2
    keys, moved, drawn = np.full(size, -1, np.int32), np.empty(size, np.int32), np.empty(RUN, np.int64)
    for i in range(len(rows)):
        if i % RUN == 0:
            _draw(seed, block, i, dim, drawn)
        j = drawn[i % RUN]
        at, to = _entry(keys, i), _entry(keys, j)
        last = moved[at] if keys[at] == i else i
        rows[i] = moved[to] if keys[to] == j else j
        keys[to], moved[to] = j, last


@njit()
def _entry(keys: Any, key: int) -> int:
    """Return where a key stands in an open hash table, or would."""
    mask = len(keys) - 1
    # Fibonacci hashing: the upper bits of a product with 2³²/φ.
    at = ((key * 2654435769) >> 7) & mask
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & mask
    return at


@njit()
def _draw(seed: Any, block: Any, first: int, dim: int, drawn: Any) -> None:
    """Draw the rows of the steps from ``first`` on, each among those from its own number up to ``dim``.

    Words of the counters (i, attempt, block) keep as many bits as the number of rows needs; the first that is below it
    is the draw. So each row is exactly as likely as the others.
    """
    low, high = seed & _LOW, seed >> _SHIFT
    # First attempts together, as vectors make them.
    words = np.empty((4, len(drawn)), np.uint64)
    w0, w1, w2, w3 = words[0], words[1], words[2], words[3]
    for k in range(len(drawn)):
        w0[k], w1[k], w2[k], w3[k] = _philox(_U64(first + k), _U64(0), block, ROW, low, high)
    for k in range(min(len(drawn), dim - first)):
        i = first + k
        left = _U64(dim - i)
        mask = left - _U64(1)
        for shift in (1, 2, 4, 8, 16):
            mask |= mask >> _U64(shift)
        step, attempt = words[:, k], _U64(0)
        chosen = left
        while chosen >= left:
            for word in range(4):
                if chosen >= left:
                    chosen = step[word] & mask
            if chosen >= left:
                attempt += _U64(1)
                step[0], step[1], step[2], step[3] = _philox(_U64(i), attempt, block, ROW, low, high)
        drawn[k] = i + np.int64(chosen)
