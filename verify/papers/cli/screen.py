"""The lines of one screen: a command of the study prints no more on a terminal than a person reads at once."""

import itertools
import math
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from canaryproof.verify.papers.records.text_tables import display_width, table_rows

# Lines of a screen, and its columns, as the commonest terminal has them.
MOST_LINES, WIDTH = 40, 80
# Most items of a list, and most characters of a word, in a cell.
_MOST_ITEMS, _LONGEST = 6, 34
_GAP = "  "


def is_terminal() -> bool:
    """Tell whether a person reads what is printed: a pipe or a file gets all of it, a line each."""
    return sys.stdout.isatty()


def paragraph(text: str, label: str = "", most: int | None = None) -> list[str]:
    """Wrap a text to the right of a label, without breaking an identifier; ``most`` lines end in an ellipsis."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
        max_lines=most,
        placeholder=" …",
    )


def fit(lines: Sequence[str], rest: str, room: int = MOST_LINES) -> list[str]:
    """Return the lines that fit, and in the last one where the rest of them is."""
    return (
        list(lines) if len(lines) <= room else [*lines[: room - 1], f"… {len(lines) - room + 1:,} lines more: {rest}"]
    )


def columns(rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """Set rows in columns as wide as their cells, which are never cut or broken; numbers stand at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            f"{cell:>{width}}" if numbers and i else f"{cell:{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(_GAP.join(cells).rstrip())
    return lines


def narrow_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Set a table at most as wide as the screen; cells are broken at blanks, and no word is broken or cut."""
    columns_ = [[header[i], *(row[i] for row in rows)] for i in range(len(header))]
    widths = [max(map(display_width, column)) for column in columns_]
    least = [max(display_width(word) for cell in column for word in cell.split()) for column in columns_]
    room = WIDTH - len(_GAP) * (len(header) - 1)
    if sum(least) > room:
        # A list of its own for each row.
        return [title, *(line for row in rows for line in ["", *_pairs(list(zip(header, row, strict=True)))])]
    while sum(widths) > room:
        # The widest gives way first.
        widths[max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))] -= 1
    lines = [title]
    for row in (header, *rows):
        cells = [_wrap_cell(cell, width) for cell, width in zip(row, widths, strict=True)]
        for parts in itertools.zip_longest(*cells, fillvalue=""):
            padded = (part + " " * (width - display_width(part)) for part, width in zip(parts, widths, strict=True))
            lines.append(_GAP.join(padded).rstrip())
        if row is header:
            lines.append("─" * (sum(widths) + len(_GAP) * (len(header) - 1)))
    return lines


def _wrap_cell(cell: str, width: int) -> list[str]:
    lines = [""]
    for word in cell.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if display_width(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def evidence_lines(evidence: Mapping[str, Any]) -> list[str]:
    """Set evidence as tables of at most the screen's width: single values by name, and rows that have equal fields."""
    single: list[tuple[str, str]] = []
    grids: list[list[str]] = []
    for name, value in evidence.items():
        rows = table_rows(value)
        if rows is None:
            single += _flat(name, value)
            continue
        flat = [dict(cell for key, part in row.items() for cell in _flat(key, part)) for row in rows]
        header = list(dict.fromkeys(key for row in flat for key in row))
        table = columns([header, *([row.get(key, "") for key in header] for row in flat)], numbers=True)
        if max(map(len, table)) > WIDTH:
            # Each row is a list of its own where they are no table that a terminal can show.
            table = [line for i, row in enumerate(flat) for line in ([""] if i else []) + _pairs(list(row.items()))]
        grids.append([f"{name}:", *table])
    parts = [_pairs(single)] if single else []
    return [line for i, part in enumerate(parts + grids) for line in ([""] if i else []) + part]


def _pairs(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Set names to the left of their values, or above them where a name is long."""
    lines = columns(rows)
    if max(map(len, lines)) <= WIDTH:
        return lines
    return [line for name, value in rows for line in (name, f"{_GAP}{value}")]


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _flat(f"{name} {key}".strip(), part)
    else:
        yield name.replace("_", " "), _cell(value)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else "∞" if value > 0.0 else "−∞"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        more = ", …" if len(value) > _MOST_ITEMS else ""
        return ", ".join(map(_cell, value[:_MOST_ITEMS])) + more
    return str(value) if len(str(value)) <= _LONGEST else textwrap.shorten(str(value), _LONGEST, placeholder=" …")
