"""Faults of the canary stream: of its counters, of Philox and of the quantiles.

Philox with 7 rounds is no fault: it passes these tests at 2·10⁸ coordinates, and those of Salmon et al. (2011).
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from canaryproof.kernels import _canary_stream as stream
from canaryproof.verify.audit.canaries.seeds import Purpose
from canaryproof.verify.papers.suites.stream_quality import quality
from tests.faults.fault import Fault, Function

_Chosen = NDArray[np.uint64]
_Words = NDArray[np.uint32]
_LOW, _SHIFT = np.uint64(2**32 - 1), np.uint64(32)


def _streams(name: str, description: str, make: Callable[[Function], Function]) -> Fault:
    target = "canaryproof.verify.papers.suites.stream_quality.quality:streams"
    return Fault(f"stream.{name}", description, target, make, ("algorithm1.streams.quality",))


def _quantiles(name: str, description: str, make: Callable[[Function], Function]) -> Fault:
    target = "canaryproof.verify.papers.suites.stream_quality.quality:quantiles"
    return Fault(f"stream.{name}", description, target, make, ("algorithm1.streams.quality",))


def _argument(number: int, change: Callable[[_Chosen], _Chosen]) -> Callable[[Function], Function]:
    """Make streams with a seed, canary, purpose or tile changed."""

    def make(streams: Function) -> Function:
        def faulty(chosen: _Chosen, length: int) -> Any:
            changed = chosen.copy()
            changed[:, number] = change(chosen[:, number])
            return streams(changed, length)

        return faulty

    return make


def _with_quantiles(words: _Words) -> Any:
    return words, quality.quantiles(words.ravel()).reshape(words.shape)


def _words(change: Callable[[_Words], _Words]) -> Callable[[Function], Function]:
    """Make streams of changed words, and coordinates that belong to them."""
    return lambda streams: lambda chosen, length: _with_quantiles(change(streams(chosen, length)[0]))


def _rounds(count: int) -> Callable[[Function], Function]:
    """Make streams by Philox with fewer rounds."""

    def faulty(chosen: _Chosen, length: int) -> Any:
        seed, index, purpose, tile = (column[:, np.newaxis] for column in chosen.T)
        counter = tile * np.uint64(quality.RUN) + np.arange(length // 4, dtype=np.uint64)
        c0, c1, c2, c3 = np.broadcast_arrays(counter & _LOW, counter >> _SHIFT, index, purpose)
        k0, k1 = seed & _LOW, seed >> _SHIFT
        for _ in range(count):
            p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
            c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ k0, p1 & _LOW, (p0 >> _SHIFT) ^ c3 ^ k1, p0 & _LOW
            k0, k1 = (k0 + np.uint64(0x9E3779B9)) & _LOW, (k1 + np.uint64(0xBB67AE85)) & _LOW
        runs = [word.astype(np.uint32).reshape(len(chosen), -1, quality.RUN) for word in (c0, c1, c2, c3)]
        return _with_quantiles(np.stack(runs, axis=2).reshape(len(chosen), length))

    return lambda _: faulty


def _coefficient(_: Function) -> Function:
    """Make quantiles with the numerator's constant term off by 1e-5."""
    first, *others = stream._NUMERATOR
    names = stream.__dict__ | {"_NUMERATOR": (first * np.float32(1.0 + 1e-5), *others)}
    normal = njit(error_model="numpy")(FunctionType(stream._normal.py_func.__code__, names))

    @njit
    def compiled(words: Any) -> Any:
        out = np.empty(len(words), np.float32)
        for i in range(len(words)):
            out[i] = normal(words[i], stream._depth(words[i]))
        return out

    return lambda words: compiled(words)


FAULTS = (
    Fault(
        "seeds.shared-purpose",
        "the noise on counts is drawn from the stream of the noise on updates",
        "canaryproof.verify.audit.canaries.seeds:generator",
        lambda f: (
            lambda seed, purpose, place=0: f(seed, Purpose.NOISE if purpose is Purpose.COUNTS else purpose, place)
        ),
        ("algorithm1.streams.purposes",),
    ),
    _streams("shared", "canaries 2j and 2j + 1 share their counters", _argument(1, lambda j: j & ~np.uint64(1))),
    _streams("canary-16-bits", "canaries numbered modulo 2^16", _argument(1, lambda j: j & np.uint64(0xFFFF))),
    _streams("high-key", "the seed's high half left out of the key", _argument(0, lambda s: s & _LOW)),
    _streams("purpose", "noise is made of the canary's counters", _argument(2, np.zeros_like)),
    _streams("high-counter", "the counter's high half left out", _argument(3, lambda t: t & np.uint64(2**22 - 1))),
    _streams(
        "lowest-counter-bit",
        "the counter's lowest bit dropped",
        _words(lambda words: np.repeat(words[:, ::2], 2, axis=1)),
    ),
    _streams("24-bits", "uniforms of 24 bits", _words(lambda words: words & np.uint32(0xFFFFFF00))),
    _streams("rounds", "Philox with 6 rounds", _rounds(6)),
    _quantiles(
        "truncated", "quantiles cut at 5", lambda f: lambda words: np.clip(f(words), np.float32(-5), np.float32(5))
    ),
    _quantiles("coefficient", "a coefficient of the quantile off by 1e-5", _coefficient),
)
