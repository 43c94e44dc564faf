"""Cells of the canary stream's quantile, as a module for Rocq's kernel."""

import math
from fractions import Fraction

from canaryproof.proofs_check.rounding import canary_quantile
from canaryproof.proofs_check.rounding.canary_quantile import QuantileCell

# Rocq takes seconds for a cell.
_EVERY = 16


def modules() -> dict[str, str]:
    """Return the module's text by its name: every 16th cell from the first on, and the one that ends at p = 1/2."""
    *below, central = canary_quantile.cells()
    cells = " ::\n".join(map(_term, below[::_EVERY]))
    return {
        "quantile_cells": "From Coq Require Import Reals List.\nOpen Scope R_scope.\n"
        f"Definition cells :=\n{cells} :: nil.\nDefinition central_cell :=\n{_term(central)}.\n"
    }


def _term(cell: QuantileCell) -> str:
    """Write a cell's words, coefficients and error, and the bounds that its proof takes."""
    centre = int(cell.centre)
    reach = round(1.0 / cell.scale) if cell.scale > 0.0 else 0
    start, *others = cell.coefficients.tolist()
    spread = math.fsum(map(abs, others))
    most = (start + spread) * (1.0 + 1e-9)
    # Around p = 1/2 the polynomial is at least this times its argument.
    least = (start - spread if start > 0.0 else 2.0 * abs(others[0]) - spread) * (1.0 - 1e-9)
    floor = math.exp(-(most**2) / 2.0) / math.sqrt(2.0 * math.pi) * (1.0 - 1e-9)
    words = f"({cell.first}, {cell.last}, {centre}, {reach})"
    coefficients = " :: ".join(map(_number, cell.coefficients.tolist()))
    return f"({words}, {coefficients} :: nil, {_number(cell.error)}, ({', '.join(map(_number, (least, most, floor)))}))"


def _number(value: float) -> str:
    """Write a float exactly."""
    exact = Fraction(value)
    return f"({exact.numerator} / {exact.denominator})"
