"""Exact moments of the release and its inner products with the canaries, in the notation of Theorem 3.3's proof.

Let ρ = Σ cⱼ + s·X + σZ, as in ``sphere_moments``, A = ‖ρ‖²/d, B = (1/k) Σ ⟨cᵢ, ρ⟩, T = (1/k) Σ ⟨cᵢ, ρ⟩² and
W = T − B². Then √d·μ̂ = B/√A and d·σ̂² = W/A. Y is W less the sample variance of the σ⟨cᵢ, Z⟩ alone. The theorem has
no data vectors: s = 0.

Moments of A and B are found a second time, with no step of ``sphere_moments``: R = ‖c₁ + … + c_k‖² is a random walk in
k. It grows by 1 + 2√R·τ, τ the cosine between the sum so far and the next canary, independent of R. Its moments thus
obey recurrences in k, which symbolic sums solve. Given the canaries, ‖ρ‖² = R + 2σ√R·G + σ²‖Z‖² and
Σ⟨cᵢ, ρ⟩ = R + σ√R·G, where G, the component of Z along the sum, has E[G^(2a)‖Z‖^(2b)] = E‖Z‖^(2a + 2b)·E τ^(2a).
"""

from collections.abc import Callable
from functools import cache
from math import comb

import sympy
from sympy import Expr, Symbol, factorial2, rf
from sympy.ntheory.multinomial import multinomial_coefficients

from canaryproof.proofs_check.displayed_lines import held, line
from canaryproof.proofs_check.formula_text import text
from canaryproof.proofs_check.limits import limit
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
from canaryproof.verify.papers.check.results import Outcome


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
    """Moment E[·^order] of A, B, T, W or Y, a rational function of d, k, σ and s."""
    build, indices = _STATISTICS[name]
    factors = (build(*(f"{copy}.{index}" for index in range(indices))) for copy in range(order))
    return mean(times(*factors))


@cache
def central_moment(name: str, order: int) -> Expr:
    """Central moment of A, B, T, W or Y, a rational function of d, k, σ and s."""
    centre = raw_moment(name, 1)
    terms = [comb(order, n) * raw_moment(name, n) * (-centre) ** (order - n) for n in range(1, order + 1)]
    return sympy.factor((-centre) ** order + sympy.Add(*terms))


def moments(name: str, *, data: bool = False) -> tuple[Expr, Expr]:
    """Mean and variance of A, B, T, W or Y, with data vectors of sum s or, as in Theorem 3.3, without."""
    both = raw_moment(name, 1), central_moment(name, 2)
    return both if data else (both[0].subs(S, 0), both[1].subs(S, 0))


# Moments of A and B a second time, by the random walk.

DISPLAYS: dict[str, int] = {}
_R = Symbol("R", positive=True)


def _even_cosine(p: int) -> Expr:
    """E τ^(2p)."""
    return factorial2(2 * p - 1) / (2**p * rf(D / 2, p))


def _noise(a: int, b: int) -> Expr:
    """E[G^(2a)‖Z‖^(2b)]."""
    return sympy.expand_func(2 ** (a + b) * rf(D / 2, a + b)) * _even_cosine(a)


@cache
def squared_length(order: int) -> Expr:
    """E R^order after k canaries, a polynomial in k with coefficients rational in d."""
    if order == 0:
        return sympy.Integer(1)
    grown = sum(
        comb(order, 2 * j) * (_R + 1) ** (order - 2 * j) * 4**j * _R**j * _even_cosine(j) for j in range(order // 2 + 1)
    )
    # The leading powers cancel: the growth is a polynomial of lower degree in R.
    growth = sympy.Poly(sympy.expand(grown - _R**order), _R)
    expected = sum(coefficient * squared_length(power) for (power,), coefficient in growth.terms())
    n = Symbol("n", integer=True, nonnegative=True)
    return sympy.factor(sympy.summation(sympy.expand(expected.subs(K, n)), (n, 0, K - 1)))


def _over_canaries(polynomial: Expr) -> Expr:
    """Expectation of a polynomial in R."""
    terms = sympy.Poly(sympy.expand(polynomial), _R).terms()
    return sympy.factor(sum(coefficient * squared_length(power) for (power,), coefficient in terms))


def _square_moment(order: int) -> Expr:
    """E A^order."""
    terms = [
        ways * _R ** (r + g // 2) * (2 * SIGMA) ** g * SIGMA ** (2 * q) * _noise(g // 2, q)
        for (r, g, q), ways in multinomial_coefficients(3, order).items()
        if g % 2 == 0
    ]
    return _over_canaries(sympy.Add(*terms)) / D**order


def _product_moment(order: int) -> Expr:
    """E B^order."""
    terms = [comb(order, g) * _R ** (order - g + g // 2) * SIGMA**g * _noise(g // 2, 0) for g in range(0, order + 1, 2)]
    return _over_canaries(sympy.Add(*terms)) / K**order


def _central(moment: Callable[[int], Expr], order: int) -> Expr:
    terms = [comb(order, n) * moment(n) * (-moment(1)) ** (order - n) for n in range(order + 1)]
    return sympy.Add(*terms)


def _both_roads() -> Outcome:
    compared = {}
    for name, moment in (("A", _square_moment), ("B", _product_moment)):
        compared[f"E {name}"] = sympy.cancel(moment(1) - moments(name)[0]) == 0
        for order in (2, 4):
            other = central_moment(name, order).subs(S, 0)
            compared[f"central moment {order} of {name}"] = sympy.cancel(_central(moment, order) - other) == 0
    return held(compared, f"{len(compared)} moments agree for all d and k")


def _table() -> Outcome:
    """The moments as ``corrected_proof.md`` writes them."""
    s2 = SIGMA**2
    written = {
        "A": (s2 + K / D, 2 * s2**2 / D + 4 * K * s2 / D**2 + 2 * K * (K - 1) / D**3),
        "B": (sympy.Integer(1), s2 / K + 2 * (K - 1) / (K * D)),
        "T": (1 + s2 + (K - 1) / D, None),
        "W": (s2 * (1 - 1 / K) + (K - 1) * (K - 2) / (K * D), None),
    }
    facts = {
        name: all(c is None or sympy.cancel(exact - c) == 0 for exact, c in zip(moments(name), pair, strict=True))
        for name, pair in written.items()
    }
    limits = {name: limit(K * moments(name)[1]) for name in "TW"}
    claimed = {"T": 4 * s2 + 2 * s2**2, "W": 2 * s2**2}
    facts |= {f"k·Var {name}": sympy.expand(limits[name] - claimed[name]) == 0 for name in limits}
    return held(facts, "; ".join(f"k·Var {name} → {text(value)}" for name, value in limits.items()))


_SOURCE = "proofs_check.corrected_proof, 2"
LINES = (
    line(
        "ours.moments.random-walk",
        _SOURCE,
        "means, variances and fourth central moments of A and B: integrals over the sphere and the random walk agree",
        _both_roads,
        own=True,
    ),
    line("ours.moments.table", _SOURCE, "the moments of A, B, T and W as the proof writes them", _table, own=True),
)
