"""Pieces of Markdown that the pages share."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    # A bar inside a cell would end it.
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def interval(ends: Sequence[float]) -> str:
    """Render an enclosure with all digits that its ends have."""
    low, high = ends
    return f"[{low!r}, {high!r}]"
