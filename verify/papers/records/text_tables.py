"""Tables of text: columns that are aligned in a terminal."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

# A table: its title, its header, and rows of as many cells.
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], text: Collection[str]) -> Iterator[str]:
    """Lay out a table: the columns named in ``text`` on the left, numbers on the right."""
    table = [header, *rows]
    widths = [max(map(display_width, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = [
            cell + " " * (width - display_width(cell)) if name in text else " " * (width - display_width(cell)) + cell
            for cell, width, name in zip(line, widths, header, strict=True)
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def display_width(text: str) -> int:
    """Return how many columns a text takes: an accent takes none."""
    return sum(character != "\N{COMBINING CIRCUMFLEX ACCENT}" for character in text)


def table_rows(value: Any) -> Sequence[Mapping[str, Any]] | None:
    """Return the rows of what is a table: a list of objects, or an object of objects, whose names come first."""
    if isinstance(value, list | tuple) and value and all(isinstance(row, Mapping) for row in value):
        return value
    if isinstance(value, Mapping) and value and all(isinstance(row, Mapping) for row in value.values()):
        return [{"": name, **row} for name, row in value.items()]
    return None
