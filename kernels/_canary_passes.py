"""Passes over the canary stream: products, norms and sums, each coordinate made where it is used.

Sums run over tiles in float64: within a tile pairwise in a fixed pattern, then tile after tile of a block
(``kernels.slices``). So neither the number of threads nor the way the work is cut changes a bit.
"""

from typing import Any

import numpy as np

from canaryproof.kernels._canary_stream import CANARY, MAX_DIM, RUN, TILE, _wide_vectors, make_tile
from canaryproof.kernels._compiled import njit


@njit()
def _dot(a: Any, b: Any) -> float:
    """Dot product of two tiles in float64: the four runs first, then halves."""
    # Addition is not associative, so only an order written out as lanes lets the compiler vectorise.
    lanes = np.empty(RUN)
    a0, a1, a2, a3 = a[:RUN], a[RUN : 2 * RUN], a[2 * RUN : 3 * RUN], a[3 * RUN :]
    b0, b1, b2, b3 = b[:RUN], b[RUN : 2 * RUN], b[2 * RUN : 3 * RUN], b[3 * RUN :]
    for r in range(RUN):
        lanes[r] = (np.float64(a0[r]) * b0[r] + np.float64(a1[r]) * b1[r]) + (
            np.float64(a2[r]) * b2[r] + np.float64(a3[r]) * b3[r]
        )
    half = RUN // 2
    while half > 0:
        for r in range(half):
            lanes[r] += lanes[r + half]
        half //= 2
    return float(lanes[0])


@njit()
def _add_tile(total: Any, scale: float, tile: Any) -> None:
    """Add the beginning of a scaled tile, as much as there is room for."""
    _wide_vectors()
    for r in range(len(total)):
        total[r] += scale * np.float64(tile[r])


@njit(cache=True, nogil=True)
def add_products(
    seed: Any,
    indices: Any,
    first_tile: int,
    first: int,
    end: int,
    block: Any,
    squares: Any,
    products: Any,
    with_squares: bool,
    begin: int,
    stop: int,
) -> None:
    """Add to canaries' products with a block of vectors, and to squared norms, the part over the block's tiles.

    Canaries are zero before the coordinate ``first`` and from ``end`` on.
    """
    for k in range(begin, stop):
        words = np.empty(TILE, np.uint32)
        coordinates = words.view(np.float32)
        for i in range(block.shape[1] // TILE):
            make_tile(seed, indices[k], CANARY, first_tile + i, end, words)
            words[: max(0, min(TILE, first - (first_tile + i) * TILE))] = np.uint32(0)
            if with_squares:
                squares[k] += _dot(coordinates, coordinates)
            for n in range(block.shape[0]):
                products[n, k] += _dot(coordinates, block[n, i * TILE : (i + 1) * TILE])


@njit(cache=True, nogil=True)
def add_squares(block: Any, squares: Any) -> None:
    """Add to the squared norms of a block of vectors the part over its tiles."""
    for n in range(block.shape[0]):
        for i in range(block.shape[1] // TILE):
            tile = block[n, i * TILE : (i + 1) * TILE]
            squares[n] += _dot(tile, tile)


@njit(cache=True, nogil=True)
def make_rows(seed: Any, indices: Any, tile: int, dim: int, rows: Any) -> None:
    """Write a tile of several canaries, in this thread alone."""
    for k in range(len(indices)):
        make_tile(seed, indices[k], CANARY, tile, dim, rows[k].view(np.uint32))


@njit(cache=True, nogil=True)
def add_parts(parts: Any, total: Any) -> None:
    """Add float32 arrays in float64, one after the other."""
    for part in parts:
        for k in range(total.shape[0]):
            for n in range(total.shape[1]):
                total[k, n] += np.float64(part[k, n])


@njit(cache=True, nogil=True)
def hold(seed: Any, indices: Any, dim: int, rows: Any, squares: Any, begin: int, stop: int) -> None:
    """Write whole canaries, tile after tile, and the squared norm of each of their tiles."""
    for part in range(begin, stop):
        i, k = part // len(indices), part % len(indices)
        coordinates = rows[i, k]
        make_tile(seed, indices[k], CANARY, i, dim, coordinates.view(np.uint32))
        squares[k, i] = _dot(coordinates, coordinates)


@njit()
def _add_four(total: Any, scales: Any, tiles: Any) -> None:
    """Add four scaled tiles, one after the other: the sum is read and written once for all."""
    _wide_vectors()
    t0, t1, t2, t3 = tiles[0], tiles[1], tiles[2], tiles[3]
    s0, s1, s2, s3 = scales[0], scales[1], scales[2], scales[3]
    for r in range(len(total)):
        first = (total[r] + s0 * np.float64(t0[r])) + s1 * np.float64(t1[r])
        total[r] = (first + s2 * np.float64(t2[r])) + s3 * np.float64(t3[r])


@njit(cache=True, nogil=True)
def add_rows(rows: Any, scales: Any, out: Any, begin: int, stop: int) -> None:
    """Add scaled canaries that are held, in their order."""
    fours = len(scales) // 4 * 4
    for i in range(begin, stop):
        total = out[i * TILE : (i + 1) * TILE]
        for k in range(0, fours, 4):
            _add_four(total, scales[k : k + 4], rows[i, k : k + 4])
        for k in range(fours, len(scales)):
            _add_tile(total, scales[k], rows[i, k])


@njit(cache=True, nogil=True)
def weighted_sum(seed: Any, indices: Any, scales: Any, first_tile: int, out: Any, begin: int, stop: int) -> None:
    """Add scaled canaries, made here from a tile on, in the order of the indices."""
    for i in range(begin, stop):
        words = np.empty(TILE, np.uint32)
        coordinates = words.view(np.float32)
        for k in range(len(indices)):
            make_tile(seed, indices[k], CANARY, first_tile + i, MAX_DIM, words)
            _add_tile(out[i * TILE : (i + 1) * TILE], scales[k], coordinates)


@njit(cache=True, nogil=True)
def scatter(values: Any, rows: Any, chosen: Any, out: Any) -> None:
    """Add values to the chosen rows, in their order."""
    for k in range(len(chosen)):
        out[rows[chosen[k]]] += values[k]


@njit(cache=True, nogil=True)
def gather(values: Any, rows: Any, chosen: Any, out: Any) -> None:
    """Take the values of the chosen rows."""
    for k in range(len(chosen)):
        out[k] = values[rows[chosen[k]]]
