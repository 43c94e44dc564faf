"""Orders in which the stream is read: along a canary, and across canaries, seeds and purposes, interleaved.

A reading that takes coordinate i of stream 0, of stream 1, and so on before coordinate i + 1 of any makes neighbours of
what lies far apart, so that the same counts test another independence.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.streams import source
from canaryproof.verify.streams.counts import LENGTH

# Streams that are interleaved: each gives one tile of a stretch.
_STREAMS = LENGTH // source.TILE
_BITS = (64, 32, 1, 28)  # of a seed, a canary, a purpose and a tile


@dataclass(frozen=True)
class Reading:
    """Streams that are interleaved.

    Attributes
    ----------
    count
        How many.
    steps
        Stream n has the first one's seed, canary, purpose and tile, each plus n times its step, modulo 2⁶⁴.
    """

    count: int
    steps: tuple[int, int, int, int]


READINGS = {
    "one canary": Reading(1, (0, 0, 0, 0)),
    "canaries": Reading(_STREAMS, (0, 1, 0, 0)),
    "seeds": Reading(_STREAMS, (1, 0, 0, 0)),
    "high bits of seeds": Reading(_STREAMS, (2**56, 0, 0, 0)),
    "canary and noise": Reading(2, (0, 0, 1, 0)),
}


def place(number: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """Choose seed, canary, purpose and tile at which stretch ``number`` begins.

    They are as plain as those of users, for that is where a weak generator shows. No two stretches have a seed in
    common. Of canaries and tiles every order of magnitude is as likely.
    """
    index, tile = (int(2.0 ** rng.uniform(0.0, bits)) - 1 for bits in (_BITS[1], _BITS[3]))
    return _STREAMS * number, min(index, 2**32 - _STREAMS), 0, min(tile, source.TILES - _STREAMS)


def read(name: str, first: tuple[int, int, int, int]) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Read a stretch.

    Parameters
    ----------
    name
        One of ``READINGS``.
    first
        Seed, canary, purpose and tile of the first stream.

    Returns
    -------
    Words and coordinates, shape (LENGTH,).
    """
    reading = READINGS[name]
    numbers = np.arange(reading.count, dtype=np.uint64)[:, np.newaxis]
    chosen = np.array(first, np.uint64) + numbers * np.array(reading.steps, np.uint64)
    words, coordinates = source.streams(chosen, LENGTH // reading.count)
    return words.T.ravel(), coordinates.T.ravel()


def neighbours() -> NDArray[np.uint64]:
    """One stream, and all those whose seed, canary, purpose or first tile differs from its in one bit, shape (n, 4)."""
    rows = [[0, 0, 0, 0]]
    for argument, bits in enumerate(_BITS):
        rows += [[2**bit if k == argument else 0 for k in range(4)] for bit in range(bits)]
    return np.array(rows, np.uint64)
