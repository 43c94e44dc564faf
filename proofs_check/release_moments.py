"""Exact moments of the release and its inner products with the canaries, in the notation of Theorem 3.3's proof.

With ρ = Σ cⱼ + s·X + σZ, as in ``sphere_moments``: A = ‖ρ‖²/d, B = (1/k) Σ ⟨cᵢ, ρ⟩, T = (1/k) Σ ⟨cᵢ, ρ⟩² and
W = T − B², so that √d·μ̂ = B/√A and d·σ̂² = W/A; Y is W less the sample variance of the σ⟨cᵢ, Z⟩ alone. The theorem has
no data vectors: s = 0.
"""

from collections.abc import Callable
from functools import cache
from math import comb

import sympy
from sympy import Expr

from canaryproof.proofs_check.sphere_moments import (
    SIGMA,
    D,
    K,
    S,
    Sum,
    Z,
    dot,
    mean,
    plus,
    release,
    scaled,
    times,
    vector,
)


def _norm_square(a: str, b: str) -> Sum:
    return scaled(1 / D, dot(release(a), release(b)))


def _mean_product(i: str, a: str) -> Sum:
    return scaled(1 / K, dot(vector(i), release(a)))


def _mean_square(i: str, a: str, b: str) -> Sum:
    return scaled(1 / K, times(dot(vector(i), release(a)), dot(vector(i), release(b))))


def _spread(i: str, a: str, b: str, j: str, e: str) -> Sum:
    return plus(_mean_square(i, a, b), scaled(-1, times(_mean_product(i, a), _mean_product(j, e))))


def _beyond_noise(i: str, a: str, b: str, j: str, e: str) -> Sum:
    noise = vector(Z, SIGMA)
    square = scaled(-1 / K, times(dot(vector(i), noise), dot(vector(i), noise)))
    squared_mean = scaled(1 / K**2, times(dot(vector(i), noise), dot(vector(j), noise)))
    return plus(_spread(i, a, b, j, e), square, squared_mean)


_STATISTICS: dict[str, tuple[Callable[..., Sum], int]] = {
    "A": (_norm_square, 2),
    "B": (_mean_product, 2),
    "T": (_mean_square, 3),
    "W": (_spread, 5),
    "Y": (_beyond_noise, 5),
}


@cache
def raw_moment(name: str, order: int) -> Expr:
    """Moment E[·^order] of A, B, T, W or Y.

    Returns
    -------
    Rational function of d, k, σ and s.
    """
    build, indices = _STATISTICS[name]
    factors = (build(*(f"{copy}.{index}" for index in range(indices))) for copy in range(order))
    return mean(times(*factors))


@cache
def central_moment(name: str, order: int) -> Expr:
    """Central moment of A, B, T, W or Y.

    Returns
    -------
    Rational function of d, k, σ and s.
    """
    centre = raw_moment(name, 1)
    terms = [comb(order, n) * raw_moment(name, n) * (-centre) ** (order - n) for n in range(1, order + 1)]
    return sympy.factor((-centre) ** order + sympy.Add(*terms))


def moments(name: str, *, data: bool = False) -> tuple[Expr, Expr]:
    """Mean and variance of A, B, T, W or Y, with data vectors of sum s or, as in Theorem 3.3, without.

    Returns
    -------
    Rational functions of d, k, σ and, with data, s.
    """
    both = raw_moment(name, 1), central_moment(name, 2)
    return both if data else (both[0].subs(S, 0), both[1].subs(S, 0))
