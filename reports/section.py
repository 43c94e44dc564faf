"""Pages that are made of tables with words: what was found in a benchmark or in a training."""

from collections.abc import Iterable
from dataclasses import dataclass

from canaryproof.reports.markdown import table


@dataclass(frozen=True)
class Section:
    """A part of the page: a table with words above and below it, and perhaps a picture."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    picture: str = ""
    alternative: str = ""


def page(title: str, about: Iterable[str], sections: Iterable[Section]) -> str:
    """Render a page as Markdown text."""
    parts = [f"# {title}", *about]
    for section in sections:
        parts.append(f"## {section.title}")
        if section.picture:
            parts.append(f"![{section.alternative}]({section.picture})")
        parts += [table(section.header, section.rows), section.note]
    return "\n\n".join(parts) + "\n"
