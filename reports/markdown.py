"""Pieces of Markdown that the pages share."""

import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

_TAG = re.compile(r"(?<!\\)<(?=[A-Za-z/!?])")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table."""
    lines = [_row(header), "|" + "---|" * len(header), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    # A bar or the end of a line would end the cell, and what looks like a tag might be taken for one.
    return _TAG.sub(r"\\<", " ".join(text.split()).replace("|", "\\|"))


def interval(ends: Sequence[float]) -> str:
    """Render an enclosure with all digits that its ends have."""
    low, high = ends
    return f"[{low!r}, {high!r}]"


def rounded(value: float, error: float) -> str:
    """Render a number with as many digits as leave two of its standard error, or six if that is 0."""
    if not (error > 1e-16 * abs(value) and math.isfinite(value) and math.isfinite(error)):
        return f"{value:.6g}"
    near = Decimal(value).quantize(Decimal(f"{error:.1e}"))
    if near.is_zero():
        # What rounds to −0.
        near = abs(near)
    if error >= 1e-5 and abs(near) < 1e6:
        return f"{near:f}"
    return f"{float(near):.{len(near.as_tuple().digits) - 1}e}"


def plus_minus(value: float, error: float) -> str:
    """Render a number with its standard error."""
    return f"{rounded(value, error)} ± {rounded(error, error)}"
