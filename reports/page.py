"""A page in Markdown that is a list of tables, each with words below it and perhaps a picture."""

from collections.abc import Iterable
from dataclasses import dataclass

from canaryproof.reports.markdown import table


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    picture: str = ""
    alternative: str = ""


def page(title: str, about: str, sections: Iterable[Section]) -> str:
    """Put a page together.

    Parameters
    ----------
    title
        Its title.
    about
        What stands above the first section.
    sections
        Its sections.
    """
    parts = [f"# {title}", about]
    for section in sections:
        parts.append(f"## {section.title}")
        if section.picture:
            parts.append(f"![{section.alternative}]({section.picture})")
        parts += [table(section.header, section.rows), section.note]
    return "\n\n".join(parts) + "\n"
