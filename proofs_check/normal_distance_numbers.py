"""Distances of the cosine's law from N(0, 1/d) in numbers: the bounds for all d, the expansion, and a table."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy
from flint import arb, fmpq
from sympy import Expr, Poly

from canaryproof.kernels.certified import Enclosure, at_precision
from canaryproof.proofs_check import normal_distance_bound as proof
from canaryproof.proofs_check.lines import Judgement, Kind, Line, held
from canaryproof.proofs_check.normal_distance import (
    T,
    difference,
    expansion,
    kolmogorov,
    leading_extremes,
    total_variation,
)
from canaryproof.proofs_check.normal_distance_bound import ball
from canaryproof.proofs_check.spelling import text

TABLE_DIMS = (2, 3, 10, 100, 1000, 10**4, 10**5, 10**6)
_POINTS = (Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3))
_EXPANSION_DIMS = (100, 10**4, 10**6)
_BITS = 256


def distance_table() -> list[dict[str, Any]]:
    """Tabulate distances of the cosine's law from N(0, 1/d), for d = 2, 3, 10, 100, …, 1e6.

    Returns
    -------
    One row for each dimension: ``dim``; ``kolmogorov`` and ``total_variation``, enclosures as [lo, hi];
    ``kolmogorov_bound`` and ``total_variation_bound``, proven for all d; ``kolmogorov_two_terms`` and
    ``total_variation_two_terms``, the expansions up to 1/d².
    """
    rows: list[dict[str, Any]] = []
    for dim in TABLE_DIMS:
        distance, variation, (lower, upper) = kolmogorov(dim), total_variation(dim), leading_extremes(dim)
        rows.append(
            {
                "dim": dim,
                "kolmogorov": [distance.lo, distance.hi],
                "kolmogorov_bound": float(proof.kolmogorov_bound(dim)),
                "kolmogorov_two_terms": lower,
                "total_variation": [variation.lo, variation.hi],
                "total_variation_bound": float(proof.total_variation_bound(dim)),
                "total_variation_two_terms": 2 * (lower + upper),
            }
        )
    return rows


def _at(polynomial: Expr, t: Fraction) -> arb:
    value = Poly(polynomial, T).eval(sympy.Rational(t.numerator, t.denominator))
    return arb(fmpq(int(value.p), int(value.q)))


def _density(t: Fraction) -> arb:
    return (-ball(t * t) / 2).exp() / (2 * arb.pi()).sqrt()


def judge_expansion(first: Expr | None = None) -> Judgement:
    """Judge the first two terms of F_d − Φ: what they leave, times d³, tends to φ·P₃.

    Parameters
    ----------
    first
        P₁, if not the derived one.

    Returns
    -------
    The verdict: the polynomials' derivation, and enclosures at five points and three dimensions.
    """
    p1, p2, p3 = expansion(3)
    stated = p1 if first is None else first
    largest = 0.0
    for t in _POINTS:
        for dim in _EXPANSION_DIMS:
            exact = difference(t, dim).ball

            def left(t: Fraction = t, dim: int = dim, exact: arb = exact) -> arb:
                two_terms = _density(t) * (_at(stated, t) / dim + _at(p2, t) / dim**2)
                return ((exact - two_terms) * dim**3 - _density(t) * _at(p3, t)) * dim

            largest = max(largest, float(abs(at_precision(_BITS, left)).upper()))
    return held(
        largest < 10 and sympy.expand(stated - (T**3 - 3 * T) / 4) == 0,
        f"P₁ = {text(stated)}, P₂ = {text(p2)}; d³·(Δ − φ(P₁/d + P₂/d²)) differs from φP₃ by at most {largest:.3g}/d "
        "at t = 1/2, 1, 3/2, 2, 3 and d = 1e2, 1e4, 1e6",
        largest_remainder_times_d4=largest,
    )


def _judge_bound(
    name: str, constant: Fraction, smaller: Fraction, distance: Callable[[int], Enclosure], defied_at: int
) -> Judgement:
    proven = (
        proof.gamma_bounds,
        proof.crossings,
        proof.log_ratio_bounds,
        proof.analytic_range,
        proof.certified_range,
    )
    steps = {step.__name__: step().kind is Kind.EXACT for step in proven}
    needed = Fraction(distance(defied_at).lo) * (defied_at - 1) > smaller
    return held(
        {**steps, "smaller_constant_fails": needed},
        f"{name}(d) ≤ {float(constant)}/(d − 1) for all whole d ≥ 2; {float(smaller)} fails at d = {defied_at:,}",
    )


def judge_kolmogorov_bound() -> Judgement:
    """Judge K(d) ≤ 0.138/(d − 1) for all whole d ≥ 2, and that 0.137 would not do.

    Returns
    -------
    The verdict on all steps of the proof.
    """
    return _judge_bound("K", proof.KOLMOGOROV, Fraction(137, 1000), kolmogorov, 10**6)


def judge_total_variation_bound() -> Judgement:
    """Judge TV(d) ≤ 0.396/(d − 1) for all whole d ≥ 2, and that 0.395 would not do.

    Returns
    -------
    The verdict on all steps of the proof.
    """
    return _judge_bound("TV", proof.TOTAL_VARIATION, Fraction(395, 1000), total_variation, 3)


def judge_distances() -> Judgement:
    """Judge that the distances at d = 2, 3, 10, …, 1e6 are enclosed to the last bit or two and below the bounds.

    Returns
    -------
    The verdict, with ``distance_table`` as evidence.
    """
    holds = True
    for dim in TABLE_DIMS:
        pairs = (
            (kolmogorov(dim), proof.kolmogorov_bound(dim)),
            (total_variation(dim), proof.total_variation_bound(dim)),
        )
        holds = holds and all(enclosure.tight and Fraction(enclosure.hi) < bound for enclosure, bound in pairs)
    rows = distance_table()
    at = {row["dim"]: row for row in rows}
    return held(
        holds,
        f"K = {at[1000]['kolmogorov'][0]:.6e} and TV = {at[1000]['total_variation'][0]:.6e} at d = 1000, "
        f"K = {at[10**6]['kolmogorov'][0]:.6e} and TV = {at[10**6]['total_variation'][0]:.6e} at d = 1e6",
        rows=rows,
    )


def _ours(topic: str, statement: str, judge: Callable[[], Judgement]) -> Line:
    """Make a line of our own on Theorem 3.2."""
    return Line(f"ours.theorem-3.2.{topic}", "our own, on Theorem 3.2", statement, judge, ours=True)


DISTANCE_LINES: tuple[Line, ...] = (
    _ours("gamma-bounds", "1 − 3/(2d) < (2/d)(Γ(d/2)/Γ((d − 1)/2))² ≤ 1 − 1/d", proof.gamma_bounds),
    _ours("crossings", "the densities of τ√d and N(0, 1) cross at one t₁ < √3 and one t₂ > √3 (d ≤ 3: at t₁ only)",
          proof.crossings),
    _ours("log-ratio-bounds", "−log f̂_d/φ ≤ He₄(t)/(4d) + (c − 3t⁴/4 + q·t⁶/6)/d², q = 1 (t² ≤ 3) or 2 "
          "(3 ≤ t² ≤ d/2), d ≥ 3",
          proof.log_ratio_bounds),
    _ours("analytic-range", "K ≤ 0.138/(d − 1) and TV ≤ 0.396/(d − 1) for all d ≥ 450", proof.analytic_range),
    _ours("certified-range", "K ≤ 0.138/(d − 1) and TV ≤ 0.396/(d − 1) for 2 ≤ d < 450", proof.certified_range),
    _ours("kolmogorov-bound", "sup |P(τ√d ≤ t) − Φ(t)| ≤ 0.138/(d − 1) for all d ≥ 2", judge_kolmogorov_bound),
    _ours("total-variation-bound", "½∫|f̂_d − φ| ≤ 0.396/(d − 1) for all d ≥ 2", judge_total_variation_bound),
    _ours("expansion", "P(τ√d ≤ t) in powers of 1/d begins Φ + φ·(P₁/d + P₂/d² + P₃/d³), P₁ = (t³ − 3t)/4; in numbers, "
          "d³ times what two terms leave is φP₃ within 10/d", judge_expansion),
    _ours("distances", "enclosures of K and TV at d = 2, 3, 10, …, 1e6, all below the bounds", judge_distances),
)  # fmt: skip
