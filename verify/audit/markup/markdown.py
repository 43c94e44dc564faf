"""Pieces of Markdown that the pages share: tables, and pages that are made of tables with words."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

_TAG = re.compile(r"(?<!\\)<(?=[A-Za-z/!?])")
_FOREIGN = re.compile(rf"{_TAG.pattern}(?!(?:a id=\"[^\"<>\s]*\"|/a)>)")
# A link that leads neither to a page here, nor to a place on it, nor to an address of the web.
_LINK = re.compile(r"\]\((?!https?://|#|[\w./-]+(?:#[\w.-]*)?\))")
_MARKS = re.compile(r"[\\`*_\[\]<>#&~]")


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


def literal(text: str) -> str:
    """Escape untrusted text: a line in which nothing is a tag, a link or other Markdown."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


def code(text: str) -> str:
    """Render untrusted text as code."""
    inner = " ".join(text.split()).replace("`", "'")
    return f"`{inner}`"


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


def environment_line(environment: Mapping[str, str]) -> str:
    """Return a line that names the machine and the versions behind a page's measurements."""
    return f"Environment: {', '.join(f'{name}: {value}' for name, value in environment.items())}."
