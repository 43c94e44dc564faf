"""Updates, canary and covariance of CANIFE's Appendix A, with every entry a symbol.

A positive definite Σ is LLᵀ with L lower triangular. g stands for ∇ℓ(z), Q for (kΣ)⁻¹.
"""

from functools import cache
from typing import Any, NamedTuple

import sympy
from sympy import Expr, Matrix, Symbol

K, N, NOISE = sympy.symbols("k n sigma", positive=True)


class Setting(NamedTuple):
    """What the appendix's formulas are made of, in one dimension n: column vectors and n × n matrices."""

    u: Any
    mu: Any
    g: Any
    root: Any  # L
    precision: Any  # (kΣ)⁻¹


def vector(name: str, dimension: int) -> Any:
    """General column vector."""
    return Matrix(sympy.symbols(f"{name}_1:{dimension + 1}", real=True))


@cache
def setting(dimension: int) -> Setting:
    """Make a general setting: every entry of u, μ, g and L is a symbol."""
    root = sympy.zeros(dimension, dimension)
    for i in range(dimension):
        root[i, i] = Symbol(f"l_{i}{i}", positive=True)
        for j in range(i):
            root[i, j] = Symbol(f"l_{i}{j}", real=True)
    inverse = root.inv()
    u, mu, g = (vector(name, dimension) for name in ("u", "mu", "g"))
    return Setting(u, mu, g, root, inverse.T * inverse / K)


def form(matrix: Any, left: Any, right: Any) -> Expr:
    """leftᵀ·matrix·right."""
    value: Expr = (left.T * matrix * right)[0, 0]
    return value


def vanishes(expression: Expr) -> bool:
    """Whether an expression is shown to be 0 identically."""
    return bool(sympy.cancel(sympy.expand(sympy.expand_log(expression))) == 0)
