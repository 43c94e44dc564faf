"""How formulas are spelled in statements, findings and evidence: √, superscripts, Γ, π, and · for products."""

from typing import Any

import sympy
from sympy import Expr, Rational
from sympy.printing.pretty.pretty_symbology import pretty_symbol
from sympy.printing.str import StrPrinter

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONGEST = 160


class _Speller(StrPrinter):  # type: ignore[misc]  # sympy publishes no types
    """Printer in the papers' symbols; sympy calls a method by the name of an expression's class."""

    def _print_Symbol(self, expr: Any) -> str:  # noqa: N802
        return str(pretty_symbol(expr.name))

    def _print_Pi(self, _: Any) -> str:  # noqa: N802
        return "π"

    def _print_Infinity(self, _: Any) -> str:  # noqa: N802
        return "∞"

    def _print_NegativeInfinity(self, _: Any) -> str:  # noqa: N802
        return "−∞"

    def _print_Integer(self, expr: Any) -> str:  # noqa: N802
        return str(expr).replace("-", "−")

    def _print_Rational(self, expr: Any) -> str:  # noqa: N802
        return str(expr).replace("-", "−")

    def _print_gamma(self, expr: Any) -> str:
        return f"Γ({self._fraction(expr.args[0])})"

    def _print_Add(self, expr: Any, order: str | None = None) -> str:  # noqa: N802
        terms = [str(self._print(term)) for term in self._as_ordered_terms(expr, order=order)]
        # A sum should not begin with a minus if it need not.
        first = next((i for i, term in enumerate(terms) if not term.startswith("−")), 0)
        terms.insert(0, terms.pop(first))
        return " + ".join(terms).replace("+ −", "− ")

    def _print_Mul(self, expr: Any) -> str:  # noqa: N802
        if expr.as_coeff_Mul()[0].is_negative:
            return f"−{self._bracketed(-expr, sympy.Add)}"
        above, below = sympy.fraction(expr, exact=True)
        if below != 1:
            return f"{self._bracketed(above, sympy.Add)}/{self._bracketed(below, sympy.Add, sympy.Mul)}"
        return "·".join(self._bracketed(factor, sympy.Add) for factor in expr.as_ordered_factors())

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:  # noqa: ARG002, N802
        base, exponent = expr.as_base_exp()
        if exponent.is_Rational and exponent.is_negative:
            return f"1/{self._bracketed(1 / expr, sympy.Add, sympy.Mul)}"
        if exponent == Rational(1, 2):
            return f"√{self._print(base)}" if base.is_Atom else f"√({self._print(base)})"
        below = self._bracketed(base, sympy.Add, sympy.Mul, sympy.Pow, Rational)
        if exponent.is_Integer:
            return below + str(exponent).translate(_SUPERSCRIPTS)
        return f"{below}^{exponent}" if exponent.is_Symbol else f"{below}^({self._fraction(exponent)})"

    def _bracketed(self, expression: Any, *kinds: type) -> str:
        spelled = str(self._print(expression))
        return spelled if expression.is_Integer or not isinstance(expression, kinds) else f"({spelled})"

    def _fraction(self, expression: Any) -> str:
        return str(self._print(sympy.together(expression)))


def text(expression: Any) -> str:
    """Spell an expression, a number or None in the papers' symbols, in one line.

    A rational function is a sum of monomials if it is one, and factored if not; all else stands as it is.
    """
    if expression is None:
        return "none shown"
    shown = sympy.sympify(expression)
    if shown.is_rational_function():
        expanded = sympy.expand(shown)
        # A sum of monomials reads best; a denominator such as d + 2 has none.
        monomials = all(_is_monomial(term) for term in sympy.Add.make_args(expanded))
        shown = expanded if monomials else sympy.factor(shown)
    return str(_Speller().doprint(shown))


def shortened(expression: Expr) -> str:
    """Spell an expression, unless it is so long that only the evidence has it."""
    spelled = text(expression)
    return spelled if len(spelled) <= _LONGEST else "the exact expression (in the evidence)"


def _is_monomial(term: Expr) -> bool:
    return all(factor.as_base_exp()[0].is_Atom for factor in sympy.Mul.make_args(term))
