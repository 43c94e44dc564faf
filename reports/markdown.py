"""Pieces of Markdown that the pages share: numbers, tables, and pages that are made of tables with words."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest

_TAG = re.compile(r"(?<!\\)<(?=[A-Za-z/!?])")
_FOREIGN = re.compile(rf"{_TAG.pattern}(?!(?:a id=\"[^\"<>\s]*\"|/a)>)")
# A link that leads neither to a page here, nor to a place on it, nor to an address of the web.
_LINK = re.compile(r"\]\((?!https?://|#|[\w./-]+(?:#[\w.-]*)?\))")
_MARKS = re.compile(r"[\\`*_\[\]<]")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], anchors: Iterable[str] = ()) -> str:
    """Render a table; ``anchors`` name its rows in addresses."""
    lines = [_row(header), "|" + "---|" * len(header)]
    for row, anchor in zip_longest(rows, anchors):
        target = f'<a id="{anchor_of(anchor)}"></a>' if anchor else ""
        lines.append(_row(row).replace("| ", f"| {target}", 1))
    return "\n".join(lines)


def anchor_of(name: str) -> str:
    """Return a name that an address may have."""
    return re.sub(r"[^\w.-]+", "-", name)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    # A bar or the end of a line would end the cell, and what looks like a tag might be taken for one.
    return _TAG.sub(r"\\<", " ".join(text.split()).replace("|", "\\|"))


def without_tags(markdown: str) -> str:
    """Escape what looks like a tag in a page, but for anchors, and links that lead neither to pages nor to the web."""
    return _LINK.sub(r"]\\(", _FOREIGN.sub(r"\\<", markdown))


def words(text: str) -> str:
    """Escape untrusted text: a line in which nothing is a tag, a link or other Markdown."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


def code(text: str) -> str:
    """Render untrusted text as code."""
    inner = " ".join(text.split()).replace("`", "'")
    return f"`{inner}`"


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
        # A negative number that rounds to −0.
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


def page(title: str, finding: str, about: Iterable[str], sections: Sequence[Section], last: str = "") -> str:
    """Render a page as Markdown: the finding and the first picture come first, and the appendix last."""
    pictures = [[f"![{part.alternative}]({part.picture})"] if part.picture else [] for part in sections]
    parts = [f"# {title}", finding, *pictures[0], *about]
    for section, picture in zip(sections, [[], *pictures[1:]], strict=True):
        parts += [f"## {section.title}", *picture, table(section.header, section.rows), section.note]
    return "\n\n".join([*parts, last] if last else parts) + "\n"


def made_by(environment: Mapping[str, str]) -> str:
    """Say on what a page was measured."""
    return f"Environment: {', '.join(f'{name}: {value}' for name, value in environment.items())}."
