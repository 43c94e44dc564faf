"""Faults of orthonormal canaries: of their signs, rows and transforms."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from canaryproof.kernels import orthonormal_canaries as kernel
from tests.faults.fault import Fault, Function

_MODULE = "canaryproof.kernels.orthonormal_canaries"


def _fault(
    name: str, description: str, target: str, make: Callable[[Function], Function], checks: tuple[str, ...]
) -> Fault:
    return Fault(f"orthonormal.{name}", description, f"{_MODULE}:{target}", make, checks)


def _repeated(_: Function) -> Function:
    """Draw rows with replacement."""
    return lambda seed, count, dim, _: np.random.default_rng(seed).integers(0, dim, count).astype(np.int32)


def _scaled(f: Function) -> Function:
    """Scale scores wrongly where log₂ n is odd."""
    return lambda vector, signs: f(vector, signs) * (1.0 if len(vector).bit_length() % 2 else math.sqrt(2.0))


def _signs_last(_: Function) -> Function:
    """Multiply by signs after a transform, and not before."""

    def faulty(vector: Any, signs: Any) -> Any:
        for window, words in enumerate(signs):
            if window == len(signs) - 1:
                kernel._apply_rotation(vector, 1.0)
            kernel.transform(kernel._part(vector, window, signs), words, True)
        return vector

    return faulty


_CANARIES = ("orthonormal.canaries",)

FAULTS = (
    _fault(
        "seed",
        "all seeds have the signs of seed 0",
        "_draw_signs",
        lambda f: lambda _, *others: f(0, *others),
        _CANARIES,
    ),
    _fault(
        "one-layer",
        "one layer where two are promised",
        "_draw_signs",
        lambda f: lambda seed, dim, _, block: f(seed, dim, 1, block),
        (*_CANARIES, "orthonormal.scores.data"),
    ),
    _fault(
        "same-signs",
        "all windows have the same signs",
        "_draw_signs",
        lambda f: lambda *given: np.broadcast_to(f(*given)[:1], f(*given).shape).copy(),
        _CANARIES,
    ),
    _fault(
        "no-signs",
        "no signs are drawn",
        "_draw_signs",
        lambda f: lambda *given: np.zeros_like(f(*given)),
        (*_CANARIES, "orthonormal.scores.data"),
    ),
    _fault(
        "rows-in-order",
        "the permutation is not drawn",
        "_draw_rows",
        lambda _: lambda _, count, *__: np.arange(count, dtype=np.int32),
        (*_CANARIES, "orthonormal.scores.exchangeable"),
    ),
    _fault(
        "rows-of-the-count",
        "canaries depend on their number",
        "_draw_rows",
        lambda f: lambda seed, count, *others: f(seed + count, count, *others),
        _CANARIES,
    ),
    _fault(
        "repeated-rows",
        "rows are drawn with replacement",
        "_draw_rows",
        _repeated,
        (*_CANARIES, "orthonormal.scores.noise"),
    ),
    _fault(
        "scale",
        "the transform is not orthonormal where log₂ n is odd",
        "_apply",
        _scaled,
        ("orthonormal.scores.noise", *_CANARIES),
    ),
    _fault(
        "no-rotation",
        "G is left out, where d is no power of two",
        "_apply_rotation",
        lambda _: lambda *_: None,
        _CANARIES,
    ),
    _fault(
        "signs-last",
        "signs after each transform of scores",
        "_apply",
        _signs_last,
        ("orthonormal.scores.noise", *_CANARIES),
    ),
    _fault(
        "rotated-once-more",
        "a sum is rotated as scores are, and not back",
        "_apply_rotation",
        lambda f: lambda vector, _: f(vector, 1.0),
        (*_CANARIES, "orthonormal.scores.noise"),
    ),
    _fault(
        "divided-by-the-norm",
        "scores are cosines",
        "OrthonormalCanaries.scores",
        lambda _: lambda canaries, *others: canaries.cosines(*others),
        ("orthonormal.scores.noise", *_CANARIES),
    ),
)
