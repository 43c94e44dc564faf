"""Orthonormal canaries: the exact lines of ``orthonormal_canaries.md``."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import sympy
from sympy import Expr, Matrix, Rational, Symbol, cos, pi, sin, sqrt

from canaryproof.proofs_check.lines import held, line
from canaryproof.verify.check.results import Check, Outcome

_SOURCE = "proofs_check/orthonormal_canaries.md"
_A = Symbol("a", real=True)
_I, _D, _M = (Symbol(name, integer=True) for name in "idm")
# Every case of a formula in d that the two parities and the middle coordinate make.
_DIMS = (2, 3, 4, 5, 6)


def _zero(expression: Expr) -> bool:
    return bool(sympy.simplify(sympy.expand_trig(expression)) == 0)


def transform(dim: int) -> Matrix:
    """Orthonormal type-2 cosine transform, exactly."""
    return Matrix(
        dim, dim, lambda p, i: sqrt(Rational(1 if p == 0 else 2, dim)) * cos(pi * Rational(p * (2 * i + 1), 2 * dim))
    )


def _same(left: Expr, right: Expr) -> bool:
    """Whether two algebraic numbers are equal, by the minimal polynomial of their difference."""
    difference = sympy.expand(left - right)
    return bool(difference == 0 or sympy.minimal_polynomial(difference, Symbol("t")) == Symbol("t"))


def _orthonormal(step: Expr) -> Outcome:
    """Judge the telescoping sum, and that it is 0 where it must be."""
    telescopes = _zero(2 * sin(_A) * cos((2 * _I + 1) * _A) - (step - step.subs(_I, _I - 1)))
    total = sympy.simplify((step.subs(_I, _D - 1) - step.subs(_I, -1)).subs(_A, pi * _M / (2 * _D)))
    small = {f"d = {d}": all(map(_same, transform(d) * transform(d).T, sympy.eye(d))) for d in _DIMS[:3]}
    facts = {"the sum telescopes": telescopes, "it vanishes": total == 0, **small}
    return held(facts, "Σ cos((2i + 1)a) = sin(2da)/(2 sin a), 0 at a = πm/(2d): rows of T are orthonormal for every d")


def square_sum(i: int, other: int, dim: int) -> Fraction:
    """Σ_p T_pi² T_pl², by the closed form."""
    return (1 - Fraction(1, dim) + Fraction((i == other) + (i + other == dim - 1), 2)) / dim


def fourth_moment(data: tuple[Fraction | int, ...]) -> Fraction:
    """E(√d·⟨c, x⟩)⁴ of one layer over signs and rows: formula (2)."""
    dim = len(data)
    squares = [Fraction(value) ** 2 for value in data]
    fourth, total = sum(value**2 for value in squares), sum(squares)
    mirrored = sum(one * other for one, other in zip(squares, reversed(squares), strict=True))
    middle = squares[dim // 2] ** 2 if dim % 2 else 0
    found = (3 - Fraction(3, dim)) * total**2 + Fraction(3, 2) * mirrored - (Fraction(3, 2) - Fraction(2, dim)) * fourth
    return Fraction(found - middle)


def two_layer_axis(dim: int, axis: int) -> Expr:
    """E(√d·⟨c, e_i⟩)⁴ of two layers, an algebraic number: given the row p of the second, aᵢ = ± T_pq·T_qi."""
    squares = transform(dim).applyfunc(lambda entry: sympy.expand(entry**2))
    terms = [[squares[p, q] * squares[q, axis] for q in range(dim)] for p in range(dim)]
    return dim * sum(3 * sympy.Add(*row) ** 2 - 2 * sympy.Add(*(term**2 for term in row)) for row in terms)


def _enumerated(data: tuple[int, ...]) -> Expr:
    """E(√d·⟨c, x⟩)⁴ of one layer by all signs and rows."""
    dim, rows = len(data), transform(len(data))
    values = [
        sum(s * rows[p, i] * x for i, (s, x) in enumerate(zip(signs, data, strict=True))) ** 4
        for p in range(dim)
        for signs in product((-1, 1), repeat=dim)
    ]
    return dim**2 * sympy.Add(*map(sympy.expand, values)) / len(values)


def _moments(formula: Callable[[tuple[Fraction | int, ...]], Fraction]) -> Outcome:
    sums = all(
        _same(
            sum((transform(d)[p, i] * transform(d)[p, j]) ** 2 for p in range(d)), Rational(*_pair(square_sum(i, j, d)))
        )
        for d in _DIMS[:4]
        for i in range(d)
        for j in range(i, d)
    )
    examples = ((1, 0), (1, 2, 3), (0, 1, 0), (2, 0, 1, -1), (1, 0, 0, 0))
    enumerated = all(_same(_enumerated(data), Rational(*_pair(formula(data)))) for data in examples)
    axis = all(formula((1,) + (0,) * (d - 1)) == Fraction(3, 2) - Fraction(1, d) for d in range(2, 40))
    facts = {"sums of squares": sums, "all signs and rows": enumerated, "on an axis 3/2 − 1/d": axis}
    return held(facts, "one layer's fourth moment is formula (2); on an axis it is 3/2 − 1/d, half of a normal law's")


def _pair(value: Fraction) -> tuple[int, int]:
    return value.numerator, value.denominator


def _two_layers(constant: int) -> Outcome:
    worst = max(d * abs(two_layer_axis(d, i) - 3).evalf(30) for d in _DIMS for i in range((d + 1) // 2))
    bound = 3 + Rational(3, 2) * Rational(9, 2) + Rational(9, 2)
    largest = max(
        fourth_moment(data) / sum(x * x for x in data) ** 2 for data in product((0, 1, 2), repeat=4) if any(data)
    )
    facts = {"the bound": bound < constant, "an axis": worst < constant, "one layer ≤ 9/2": largest <= Fraction(9, 2)}
    return held(
        facts, f"at most {float(worst):.3g}/d on an axis for d ≤ {_DIMS[-1]}, {float(bound):.4g}/d for all data"
    )


def _white(signed: Callable[[Matrix], Matrix]) -> Outcome:
    facts: dict[str, bool] = {}
    for d in (2, 3):
        rows = transform(d)
        for signs in product((-1, 1), repeat=2 * d):
            first, second = (sympy.diag(*part) for part in (signs[:d], signs[d:]))
            matrix = signed(rows * second * rows * first)
            facts[f"d = {d}"] = facts.get(f"d = {d}", True) and all(map(_same, matrix * matrix.T, sympy.eye(d)))
    return held(
        facts, "the covariance of the z_j is C Cᵀ = I for all signs of two layers: they are independent N(0, 1)"
    )


def _line(topic: str, statement: str, judge: Callable[[], Outcome]) -> Check:
    return line(f"orthonormal.proof.{topic}", _SOURCE, statement, judge, ours=True)


LINES = (
    _line("transform", "the rows of T are orthonormal, for every d", lambda: _orthonormal(sin((2 * _I + 2) * _A))),
    _line(
        "noise",
        "beside Gaussian noise the scores of orthonormal canaries are exactly independent normal numbers",
        lambda: _white(lambda matrix: matrix),
    ),
    _line(
        "one-layer",
        "scores of one layer against fixed data have the fourth moment (2); along an axis it is 3/2 − 1/d",
        lambda: _moments(fourth_moment),
    ),
    _line(
        "two-layers",
        "scores of two layers against any fixed data have a kurtosis within 15/d of 3",
        lambda: _two_layers(15),
    ),
)
