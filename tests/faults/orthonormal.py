"""Faults of orthonormal canaries: of their signs, rows and transforms."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import fft

from tests.faults.fault import Fault, Function

_MODULE = "canaryproof.kernels.orthonormal_canaries"


def _fault(
    name: str, description: str, target: str, make: Callable[[Function], Function], checks: tuple[str, ...]
) -> Fault:
    return Fault(f"orthonormal.{name}", description, f"{_MODULE}:{target}", make, checks)


def _repeated(_: Function) -> Function:
    """Draw rows with replacement."""
    return lambda seed, count, dim: np.random.default_rng(seed).integers(0, dim, count).astype(np.int32)


def _transform(kind: int, norm: str) -> Callable[[Function], Function]:
    """Transform by another cosine transform, or one that is not orthonormal."""

    def make(_: Function) -> Function:
        def faulty(vector: Any, layers: Any) -> Any:
            for signs in layers:
                vector = fft.dct(vector * signs, type=kind, norm=norm)
            return vector

        return faulty

    return make


def _signs_last(_: Function) -> Function:
    """Multiply by signs after a transform, and not before."""

    def faulty(vector: Any, layers: Any) -> Any:
        for signs in layers:
            vector = fft.dct(vector, norm="ortho") * signs
        return vector

    return faulty


_CANARIES = ("orthonormal.canaries",)

FAULTS = (
    _fault(
        "seed",
        "all seeds have the signs of seed 0",
        "_drawn_signs",
        lambda f: lambda _, *others: f(0, *others),
        _CANARIES,
    ),
    _fault(
        "one-layer",
        "one layer where two are promised",
        "_drawn_signs",
        lambda f: lambda seed, dim, _: f(seed, dim, 1),
        (*_CANARIES, "orthonormal.scores.data"),
    ),
    _fault(
        "same-signs",
        "all layers have the same signs",
        "_drawn_signs",
        lambda f: lambda seed, dim, layers: f(seed, dim, 1) * layers,
        (*_CANARIES, "orthonormal.scores.data"),
    ),
    _fault(
        "no-signs",
        "no signs are drawn",
        "_drawn_signs",
        lambda _: lambda _, dim, layers: (np.ones(dim, np.float32),) * layers,
        (*_CANARIES, "orthonormal.scores.data"),
    ),
    _fault(
        "rows-in-order",
        "the permutation is not drawn",
        "_drawn_rows",
        lambda _: lambda _, count, __: np.arange(count, dtype=np.int32),
        (*_CANARIES, "orthonormal.scores.exchangeable"),
    ),
    _fault(
        "rows-of-the-count",
        "canaries depend on their number",
        "_drawn_rows",
        lambda f: lambda seed, count, dim: f(seed + count, count, dim),
        _CANARIES,
    ),
    _fault(
        "repeated-rows",
        "rows are drawn with replacement",
        "_drawn_rows",
        _repeated,
        (*_CANARIES, "orthonormal.scores.noise"),
    ),
    _fault(
        "scale",
        "the transform is not orthonormal",
        "_transformed",
        _transform(2, "backward"),
        ("orthonormal.scores.*", *_CANARIES),
    ),
    _fault(
        "third-type",
        "scores by the type-3 transform, which is the inverse",
        "_transformed",
        _transform(3, "ortho"),
        ("orthonormal.scores.noise", *_CANARIES),
    ),
    _fault(
        "signs-last",
        "signs after the transform",
        "_transformed",
        _signs_last,
        ("orthonormal.scores.noise", *_CANARIES),
    ),
    _fault(
        "layer-order",
        "layers of a sum in the order of scores",
        "_transposed",
        lambda f: lambda vector, layers: f(vector, layers[::-1]),
        ("orthonormal.estimates", *_CANARIES),
    ),
    _fault(
        "divided-by-the-norm",
        "scores are cosines",
        "OrthonormalCanaries.scores",
        lambda _: lambda canaries, *others: canaries.cosines(*others),
        ("orthonormal.scores.noise", *_CANARIES),
    ),
)
