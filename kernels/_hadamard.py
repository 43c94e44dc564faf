"""The Walsh–Hadamard transform behind signs, in place: additions and subtractions in a fixed order.

H of order n = 2^k has the entries (−1)^(number of common bits of row and column)·n^(−1/2). It is made of k levels, each
of which replaces pairs at the distance of a power of two by their sum and difference. Rounding is that of each addition
alone and, for odd k, of one product with n^(−1/2). Results are the same bits on every machine, because numba forms no
fused multiply-add without ``fastmath``.

Levels of short distances are done in blocks that stay in a core's first cache, the next ones in its second. Only the
rest go through memory, two levels at a time.
"""

import math
from typing import Any

import numpy as np

from canaryproof.kernels._canary_stream import _wide_vectors
from canaryproof.kernels._compiled import njit

# Numbers that the first cache of a core holds, and the second. The first is a power of 8.
_BLOCK, _HELD = 4096, 2**16


@njit()
def _three_levels(x: Any, start: int, step: int) -> None:
    """Three levels, of the distances step, 2 step and 4 step, on 8 step numbers."""
    for j in range(start, start + step):
        a0, a1, a2, a3 = x[j], x[j + step], x[j + 2 * step], x[j + 3 * step]
        a4, a5, a6, a7 = x[j + 4 * step], x[j + 5 * step], x[j + 6 * step], x[j + 7 * step]
        b0, b1, b2, b3, b4, b5, b6, b7 = a0 + a1, a0 - a1, a2 + a3, a2 - a3, a4 + a5, a4 - a5, a6 + a7, a6 - a7
        a0, a1, a2, a3, a4, a5, a6, a7 = b0 + b2, b1 + b3, b0 - b2, b1 - b3, b4 + b6, b5 + b7, b4 - b6, b5 - b7
        x[j], x[j + step], x[j + 2 * step], x[j + 3 * step] = a0 + a4, a1 + a5, a2 + a6, a3 + a7
        x[j + 4 * step], x[j + 5 * step], x[j + 6 * step], x[j + 7 * step] = a0 - a4, a1 - a5, a2 - a6, a3 - a7


@njit()
def _block(x: Any) -> None:
    """Levels of up to ``_BLOCK`` numbers, by threes. Their distances are literal, so that LLVM may take vectors."""
    _wide_vectors()
    for i in range(len(x) // 8):
        _three_levels(x, 8 * i, 1)
    for i in range(len(x) // 64):
        _three_levels(x, 64 * i, 8)
    for i in range(len(x) // 512):
        _three_levels(x, 512 * i, 64)
    for i in range(len(x) // 4096):
        _three_levels(x, 4096 * i, 512)


@njit()
def _two_levels(a: Any, b: Any, c: Any, d: Any) -> None:
    """Two levels of four parts, given apart: LLVM sees whether four overlap, and does not look at eight."""
    _wide_vectors()
    for j in range(len(a)):
        b0, b1, b2, b3 = a[j] + b[j], a[j] - b[j], c[j] + d[j], c[j] - d[j]
        a[j], b[j], c[j], d[j] = b0 + b2, b1 + b3, b0 - b2, b1 - b3


@njit()
def _last_level(a: Any, b: Any) -> None:
    _wide_vectors()
    for j in range(len(a)):
        a[j], b[j] = a[j] + b[j], a[j] - b[j]


@njit()
def _levels(x: Any, step: int) -> None:
    """All levels of distances from ``step`` on."""
    while 4 * step <= len(x):
        for start in range(0, len(x), 4 * step):
            part = x[start : start + 4 * step]
            _two_levels(part[:step], part[step : 2 * step], part[2 * step : 3 * step], part[3 * step :])
        step *= 4
    if step < len(x):
        _last_level(x[:step], x[step:])


@njit()
def _flip(x: Any, words: Any, scale: Any) -> None:
    """Multiply by signs and by a scale; sign i is bit i % 32 of word i // 32."""
    _wide_vectors()
    for w in range(len(words)):
        part, word = x[32 * w : 32 * (w + 1)], words[w]
        for i in range(len(part)):
            part[i] *= -scale if (word >> np.uint32(i)) & np.uint32(1) else scale


@njit(cache=True, nogil=True)
def transform(x: Any, words: Any, transposed: bool) -> None:
    """Multiply by H D in place, D the diagonal of the signs, or by its transpose D H.

    The length of x is a power of two, of 32-bit words there is one for each 32 numbers begun.
    """
    scale = x.dtype.type(1.0 / math.sqrt(len(x)))
    block, held = min(len(x), _BLOCK), min(len(x), _HELD)
    done = 1
    while 8 * done <= block:
        done *= 8
    if transposed:
        _levels(x, held)
    for start in range(0, len(x), held):
        part, signs = x[start : start + held], words[start // 32 : start // 32 + -(-held // 32)]
        if not transposed:
            _flip(part, signs, scale)
        for first in range(0, held, block):
            _block(part[first : first + block])
        _levels(part, done)
        if transposed:
            _flip(part, signs, scale)
    if not transposed:
        _levels(x, held)


@njit(cache=True, nogil=True)
def rotate(a: Any, b: Any, cosine: Any, sine: Any) -> None:
    """Rotate pairs (aᵢ, bᵢ) in place, to (cos·aᵢ − sin·bᵢ, sin·aᵢ + cos·bᵢ)."""
    for i in range(len(a)):
        a[i], b[i] = cosine * a[i] - sine * b[i], sine * a[i] + cosine * b[i]
