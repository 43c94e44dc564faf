"""The vector instructions that make a coordinate, counted in the code that was compiled for this processor."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from canaryproof.kernels import _canary_stream as stream
from tests.benchmarks.timing import Skipped

_LANES = {"x": 4, "y": 8, "z": 16}
_DIVISIONS = 2  # of a coordinate


@dataclass(frozen=True)
class Arithmetic:
    """Vector instructions a coordinate, less those that only move, and how many coordinates a vector holds."""

    instructions: float
    lanes: int


def arithmetic() -> Arithmetic | Skipped:
    """Count the instructions of the loops that make a tile of a canary."""
    words = np.empty(stream.TILE, np.uint32)
    stream.make_tile(np.uint64(0), np.uint64(0), stream.CANARY, 0, stream.MAX_DIM, words)
    return count("\n".join(stream.make_tile.inspect_asm().values()))


def count(assembly: str) -> Arithmetic | Skipped:
    """Count in x86 assembly, where loops lie between labels, as often as the compiler has copied them.

    Parameters
    ----------
    assembly
        Of ``make_tile``.

    Returns
    -------
    Instructions of loops with products of Philox, by the words that these store, and of loops with packed divisions, by
    their divisions.
    """
    loops = [
        re.split(r"^\s*j\w+\s", block, maxsplit=1, flags=re.MULTILINE)[0]
        for block in re.split(r"^\S+:\s*$", assembly, flags=re.MULTILINE)
    ]
    philox, quantiles = ([loop for loop in loops if f"\t{name}\t" in loop] for name in ("vpmuludq", "vdivps"))
    stored = [_LANES[width] for width in _matches(r"^\s*vmov\w+\s+%([xyz])mm\d+, .*\)$", philox)]
    divided = [_LANES[width] for width in _matches(r"^\s*vdivps\s.*%([xyz])mm\d+$", quantiles)]
    if not (stored and divided):
        return Skipped("arithmetic", "no vector instructions of x86 found")
    instructions = _calculating(philox) / sum(stored) + _calculating(quantiles) * _DIVISIONS / sum(divided)
    return Arithmetic(instructions, max(divided))


def _matches(pattern: str, loops: Iterable[str]) -> list[str]:
    return re.findall(pattern, "\n".join(loops), re.MULTILINE)


def _calculating(loops: Iterable[str]) -> int:
    return len(_matches(r"^\s*v(?!mov|p?broadcast|zero)\w+\s", loops))
