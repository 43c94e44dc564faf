"""Pieces of Markdown that the pages share: numbers, tables, and pages that are made of tables with words."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Section:
    """A part of the page: a table with words above and below it, and perhaps a picture."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    picture: str = ""
    alternative: str = ""


def page(title: str, about: Iterable[str], sections: Iterable[Section], last: str = "") -> str:
    """Render a page as Markdown text; what nobody reads first comes last."""
    parts = [f"# {title}", *about]
    for section in sections:
        parts.append(f"## {section.title}")
        if section.picture:
            parts.append(f"![{section.alternative}]({section.picture})")
        parts += [table(section.header, section.rows), section.note]
    return "\n\n".join([*parts, last] if last else parts) + "\n"


def made_by(environment: Mapping[str, str]) -> str:
    """Say on what a page was measured."""
    return f"Environment: {', '.join(f'{name}: {value}' for name, value in environment.items())}."
