"""Words and coordinates of the canary stream, as the kernel makes them: the one place that names its inner parts."""

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from canaryproof.kernels import _canary_stream as stream

TILE, RUN = stream.TILE, stream.RUN
# Tiles of the largest dimension.
TILES = 2**28

_U32, _U64 = np.uint32, np.uint64
_LOW, _SHIFT = _U64(2**32 - 1), _U64(32)


# Neither is cached on disk: the cache would not notice a change in the kernel.
@njit(parallel=True)
def _fill(chosen: Any, words: Any, coordinates: Any) -> None:
    per_row = words.shape[1] // TILE
    for k in prange(words.shape[0] * per_row):
        row, place = k // per_row, k % per_row * TILE
        seed, index, purpose = chosen[row, 0], chosen[row, 1], chosen[row, 2]
        tile = chosen[row, 3] + _U64(k % per_row)
        # Counters of a tile share their high half.
        first, part = tile * _U64(RUN), words[row, place : place + TILE]
        for r in range(RUN):
            w0, w1, w2, w3 = stream._philox(
                (first & _LOW) + _U64(r), first >> _SHIFT, index, purpose, seed & _LOW, seed >> _SHIFT
            )
            part[r], part[RUN + r], part[2 * RUN + r], part[3 * RUN + r] = _U32(w0), _U32(w1), _U32(w2), _U32(w3)
        bits = coordinates[row, place : place + TILE].view(np.uint32)
        stream.make_tile(seed, index, purpose, np.int64(tile), stream.MAX_DIM, bits)


@njit(parallel=True)
def _quantiles(words: Any, out: Any) -> None:
    for k in prange((len(words) + TILE - 1) // TILE):
        for i in range(k * TILE, min((k + 1) * TILE, len(words))):
            out[i] = stream._normal(words[i], stream._depth(words[i]))


def streams(chosen: NDArray[np.uint64], length: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Make some streams, each from the first coordinate of a tile on.

    Parameters
    ----------
    chosen
        Seed, canary, purpose and first tile of each stream, shape (n, 4).
    length
        How many coordinates of each: a multiple of ``TILE``.

    Returns
    -------
    Words as the kernel's documentation numbers them, by its Philox, and the coordinates that it makes, shape
    (n, length) each.
    """
    words, coordinates = np.empty((len(chosen), length), np.uint32), np.empty((len(chosen), length), np.float32)
    _fill(chosen, words, coordinates)
    return words, coordinates


def quantiles(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Coordinates that the kernel makes of words, shape (n,)."""
    out = np.empty(len(words), np.float32)
    _quantiles(words, out)
    return out
