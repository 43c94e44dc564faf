"""Limits of rational functions of d and k where 1 ≪ k ≪ d, and the comparison of a printed line with the exact one.

With x = k/d and y = 1/k, that is, k = 1/y and d = 1/(xy), the regime k → ∞, k = o(d) is exactly (x, y) → (0, 0). A
rational function whose reduced denominator does not vanish at (0, 0) is continuous there: its value is the limit, for
every way in which k and d may grow.
"""

from collections.abc import Callable
from typing import Any

import sympy
from sympy import Expr, Rational, Symbol

from canaryproof.proofs_check.displayed_lines import Kind, judged
from canaryproof.proofs_check.formula_text import shortened, text
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, S
from canaryproof.verify.papers.check.results import Outcome

# Where a printed line and the exact one are compared in numbers: the paper's simulations, at σ = 1 and without data.
AT = {D: 10**6, K: 10**3, SIGMA: 1, S: 0}

KAPPA = Symbol("kappa", positive=True)
_X, _Y = Symbol("x", positive=True), Symbol("y", positive=True)


def limit(expression: Expr) -> Expr | None:
    """Limit of a rational function of d, k, σ and s for k → ∞, k = o(d); None if this argument does not show one."""
    numerator, denominator = sympy.fraction(sympy.cancel(expression.subs({D: 1 / (_X * _Y), K: 1 / _Y})))
    below = denominator.subs({_X: 0, _Y: 0})
    if below == 0:
        return None
    value: Expr = sympy.factor(numerator.subs({_X: 0, _Y: 0}) / below)
    return value


def settled(expression: Expr) -> Expr:
    """Limit as ``limit`` finds it; an ArithmeticError if none is shown."""
    value = limit(expression)
    if value is None:
        raise ArithmeticError(f"no limit is shown for {expression}")
    return value


def in_proportion(expression: Expr) -> Expr | None:
    """Limit as d → ∞ with k = κd, where the regime k = o(d) ends; None if this argument does not show one."""
    u = Symbol("u", positive=True)
    numerator, denominator = sympy.fraction(sympy.cancel(expression.subs(K, KAPPA * D).subs(D, 1 / u)))
    below = denominator.subs(u, 0)
    return None if below == 0 else sympy.factor(numerator.subs(u, 0) / below)


def vanishes(expression: Expr) -> bool:
    """Whether an expression is proven to be o(1)."""
    return limit(expression) == 0


def bounded(expression: Expr) -> bool:
    """Whether an expression is proven to be O(1)."""
    return limit(expression) is not None


def numbers(expression: Expr) -> float:
    """Value at d = 10⁶, k = 10³, σ = 1, s = 0."""
    return float(Rational(expression.subs(AT)))


def equation(printed: Expr, exact: Expr, concludes: Callable[[Expr], bool] | None = None) -> Outcome:
    """Judge a printed rational function of d, k, σ and s against the exact one.

    ``concludes``: whether what the proof draws from the line follows from an expression; by default that the limit is
    the printed one's. ``LEADING_ORDER`` if the quotient of both tends to 1; ``WRONG_TERM`` if it does not, and the
    conclusion follows from the exact expression as well.
    """
    printed, exact = sympy.sympify(printed), sympy.sympify(exact)
    evidence: dict[str, Any] = {"printed": text(printed), "exact": text(exact)}
    if sympy.cancel(printed - exact) == 0:
        return judged(Kind.EXACT, f"both sides are {shortened(exact)}", evidence)
    ratio = sympy.cancel(printed / exact) if exact != 0 else None
    survives = concludes(exact) if concludes else limit(exact) is not None and limit(exact) == limit(printed)
    evidence |= {
        "ratio_at_d1e6_k1e3_sigma1": None if ratio is None else numbers(ratio),
        "limit_of_ratio": None if ratio is None else text(limit(ratio)),
        "conclusion_survives": survives,
    }
    if ratio is not None and limit(ratio) == 1:
        kind = Kind.LEADING_ORDER
    else:
        kind = Kind.WRONG_TERM if survives else Kind.FALSE
    shown = "" if ratio is None else f"; printed/exact = {numbers(ratio):.9g} at d = 1e6, k = 1e3, σ = 1"
    conclusion = "stands" if survives else "falls"
    order = "right to leading order: " if kind is Kind.LEADING_ORDER else ""
    finding = f"{order}printed {shortened(printed)}, exact {shortened(exact)}{shown}; the conclusion {conclusion}"
    return judged(kind, finding, evidence)
