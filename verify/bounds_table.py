"""How ``audit`` prints lower bounds on ε and posterior intervals."""

import math
from collections.abc import Callable, Iterable, Iterator
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

if TYPE_CHECKING:
    from canaryproof.verify.bounds.lower_bound import LowerBound

# What is said of bounds whose coverage is of a kind.
_COVERAGE = {
    "proven": "A bound of proven coverage is above ε in at most the stated share of audits, if what it needs holds.",
    "asymptotic": (
        "A bound of asymptotic coverage is proven for independent scores. Those of one run depend on each other, ever "
        "less as the dimension grows."
    ),
    "heuristic": "No proof covers a heuristic bound: it may be above ε in any share of audits.",
}


def coverage_remarks(bounds: Iterable["LowerBound"]) -> Iterator[str]:
    """Say what the table's words mean, for the kinds of coverage that there are."""
    yield "A cap is a bound's value at perfect separation of as many scores: it cannot be more, whatever leaks."
    for coverage in dict.fromkeys(bound.coverage for bound in bounds):
        yield _COVERAGE[coverage]


def bounds_table(bounds: Iterable["LowerBound"], confidence: float, say: Callable[[str], str]) -> Table:
    """Lay out bounds, each with what it is and what is known of it.

    Parameters
    ----------
    bounds
        The bounds.
    confidence
        Their confidence.
    say
        Spells out symbols that the terminal cannot show.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("bound", overflow="fold")
    table.add_column(say(f"ε, {100.0 * confidence:.10g}%"), justify="right", overflow="fold")
    for heading in ("kind", "coverage", "cap"):
        table.add_column(heading, overflow="fold")
    for bound in bounds:
        # Down, as a bound rounded up would be none.
        value = _rounded_down(bound.value)
        shown = f"≥ {value}" if bound.upper is None else f"{value} – {bound.upper:.3g}"
        table.add_row(bound.method, say(shown), bound.kind, bound.coverage, _rounded_down(bound.cap))
    return table


def _rounded_down(value: float) -> str:
    """Print a number that is not negative with three significant digits."""
    if not value or not math.isfinite(value):
        return f"{value:.3g}"
    unit = Decimal(1).scaleb(Decimal(value).adjusted() - 2)
    return f"{Decimal(value).quantize(unit, rounding=ROUND_FLOOR):f}"
