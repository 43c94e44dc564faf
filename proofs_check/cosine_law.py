"""The law of the cosine τ between a uniform direction in R^d and any fixed one: density, Beta laws, moments, kernels.

The density is that of Theorem 3.1, here derived from ``sphere_measure``; all lines are ours.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import sympy
from flint import arb, fmpq
from sympy import Expr, Rational, Symbol, beta, gamma, sqrt

from canaryproof.kernels.certified import Enclosure, at_precision, null_cosine
from canaryproof.proofs_check.lines import held
from canaryproof.proofs_check.sphere_measure import Formula, _line, same, sine_integral, sine_integrals
from canaryproof.proofs_check.sphere_moments import D, expectation
from canaryproof.verify.check.results import Check, Outcome

TAU = Symbol("tau", real=True)
_POINTS = tuple(fmpq(*ratio) for ratio in ((0, 1), (1, 1000), (-1, 7), (1, 3), (-3, 5), (9, 10), (999, 1000)))
_DIMS = (*range(2, 31), 100, 101, 1000, 1001)


def exact_density(dim: Any) -> Any:
    """Density of the cosine in R^d, d ≥ 2, normalised by W(d − 2): an expression in ``TAU``."""
    return (1 - TAU**2) ** ((dim - 3) / 2) / sine_integral(dim - 2)


def even_moment(pairs: int) -> Expr:
    """Even moment of the cosine, for symbolic d.

    Parameters
    ----------
    pairs
        Half the power, p ≥ 0.

    Returns
    -------
    E[τ²ᵖ] = 1·3⋯(2p − 1) / (d(d + 2)⋯(d + 2p − 2)); proven by the line ``ours.theorem-3.1.even-moments``.
    """
    moment: Expr = sympy.prod([(2 * step + 1) / (D + 2 * step) for step in range(pairs)])
    return moment


def moment_by_pairings(power: int) -> Expr:
    """E[⟨c, v⟩^power] for uniform c and any unit vector v, as a sum over pairings."""
    return expectation(*([("c", "v")] * power))


@cache
def moments_by_parts() -> bool:
    """Whether (2p + 1) E τ²ᵖ = (d + 2p) E τ²ᵖ⁺² follows from the density for all p and d > 1."""
    p = Symbol("p", positive=True)
    # τ^(2p+1) (1 − τ²)^((d−1)/2) is 0 at ±1; its derivative over τ^(2p) (1 − τ²)^((d−3)/2):
    log_product = (2 * p + 1) * sympy.log(TAU) + (D - 1) / 2 * sympy.log(1 - TAU**2)
    quotient = sympy.simplify(TAU * (1 - TAU**2) * sympy.diff(log_product, TAU))
    weight = (1 - TAU**2) ** ((D - 3) / 2)
    return bool(
        sympy.expand(quotient - (2 * p + 1) + (D + 2 * p) * TAU**2) == 0
        and sympy.simplify(sympy.diff(exact_density(D) / weight, TAU)) == 0
    )


def judge_even_moments(moment: Callable[[int], Any] = even_moment) -> Outcome:
    """Judge a formula for E τ²ᵖ, given p."""
    steps = ((2 * p + 1) * moment(p) - (D + 2 * p) * moment(p + 1) for p in range(12))
    facts = {
        "(2p + 1) E τ²ᵖ = (d + 2p) E τ²ᵖ⁺², by parts": moments_by_parts(),
        "the product obeys it, from 1": moment(0) == 1 and all(sympy.cancel(step) == 0 for step in steps),
        "the sums over pairings agree for p ≤ 4": all(
            sympy.cancel(moment(p) - moment_by_pairings(2 * p)) == 0 for p in range(5)
        ),
    }
    return held(facts, "Exact for all d ≥ 2 and p, by integration by parts.")


def judge_odd_moments(density: Formula = exact_density) -> Outcome:
    """Judge that a density, given d, has no odd moments."""
    facts = {
        "the density is even": sympy.simplify(density(D) - density(D).subs(TAU, -TAU)) == 0,
        "the sums over pairings are 0": all(moment_by_pairings(power) == 0 for power in (1, 3, 5)),
    }
    return held(facts, "Exact: the density is even, and τ bounded.")


def _judge_normalisation(density: Formula = exact_density) -> Outcome:
    facts = {
        "f_d = (1 − τ²)^((d−3)/2)/W(d − 2)": same(density(D), exact_density(D), TAU),
        "∫ (1 − τ²)^((d−3)/2) dτ for d = 2, 3, 5, 7, 9": all(
            sympy.simplify(sympy.integrate(density(sympy.Integer(d)), (TAU, -1, 1))) == 1 for d in (2, 3, 5, 7, 9)
        ),
        **sine_integrals(),
    }
    return held(facts, "Exact for d ≥ 2, by the recurrence n W(n) = (n − 1) W(n − 2) from W(0) = π and W(1) = 2.")


def _is_beta(first: Any, density: Callable[[Symbol], Any]) -> bool:
    """Whether a density on (0, 1) is that of Beta(first, (d − 1)/2)."""
    x, second = Symbol("x", positive=True), (D - 1) / 2
    law = x ** (first - 1) * (1 - x) ** (second - 1) / beta(first, second).rewrite(gamma)
    return same(density(x), law, x, Rational(1, 2))


def _judge_beta(density: Formula = exact_density) -> Outcome:
    holds = _is_beta((D - 1) / 2, lambda x: 2 * density(D).subs(TAU, 2 * x - 1))
    return held(holds, "Exact for symbolic d > 1: 2 f_d(2x − 1) is the Beta density.")


def _judge_beta_square(density: Formula = exact_density) -> Outcome:
    holds = _is_beta(Rational(1, 2), lambda y: density(D).subs(TAU, sqrt(y)) / sqrt(y))
    return held(holds, "Exact for symbolic d > 1: both of ±√y add f_d(√y)/(2√y), together the Beta density.")


def _closed_form(x: fmpq, dim: int) -> tuple[fmpq | arb, fmpq | arb]:
    """Density and distribution function by reduction in d: rational numbers for odd d, and balls for even d."""
    square = 1 - x * x
    odd = dim % 2
    weight = fmpq(1) if odd else 1 / arb(square).sqrt()
    integral = x if odd else arb(x).asin()
    total = fmpq(2) if odd else arb.pi()
    for n in range(2 + odd, dim - 1, 2):
        weight *= square
        integral = (x * weight + (n - 1) * integral) / n
        total = total * (n - 1) / n
    return weight / total, fmpq(1, 2) + integral / total


def _judge_kernel(place: int, kernel: Callable[[Fraction, int], Enclosure]) -> Outcome:
    def compare() -> tuple[list[str], int]:
        outside, widest = [], 0
        for dim in _DIMS:
            for x in _POINTS:
                value = _closed_form(x, dim)[place]
                enclosure = kernel(Fraction(int(x.p), int(x.q)), dim)
                lo, hi = (fmpq(*end.as_integer_ratio()) for end in (enclosure.lo, enclosure.hi))
                # For a ball: certainly so.
                if not (lo <= value and value <= hi):
                    outside.append(f"x = {x}, d = {dim}")
                widest = max(widest, enclosure.width_in_ulps)
        return outside, widest

    outside, widest = at_precision(8192, compare)
    facts = {"the closed form lies inside all enclosures": not outside, "they are at most 2 ulps wide": widest <= 2}
    count = len(_DIMS) * len(_POINTS)
    text = f"At {count} pairs (x, d), d from {_DIMS[0]} to {_DIMS[-1]}, the closed form lies in the enclosure."
    return held(facts, text, outside=outside[:5], pairs=count, widest_in_ulps=widest)


LINES: tuple[Check, ...] = (
    _line("ours.normalisation", "f_d has the integral 1.", _judge_normalisation),
    _line("ours.beta", "(1 + τ)/2 ~ Beta((d − 1)/2, (d − 1)/2).", _judge_beta),
    _line("ours.beta-of-square", "τ² ~ Beta(1/2, (d − 1)/2).", _judge_beta_square),
    _line("ours.even-moments", "E τ²ᵖ = 1·3⋯(2p − 1)/(d(d + 2)⋯(d + 2p − 2)).", judge_even_moments),
    _line("ours.odd-moments", "All odd moments of τ are 0.", judge_odd_moments),
    _line("ours.kernel-pdf", "Our certified density encloses f_d.", partial(_judge_kernel, 0, null_cosine.pdf)),
    _line(
        "ours.kernel-cdf", "Our certified cdf encloses the integral of f_d.", partial(_judge_kernel, 1, null_cosine.cdf)
    ),
)
