"""Pages that are made of tables with words: what was found in a benchmark or in a training."""

from collections.abc import Iterable, Mapping
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
