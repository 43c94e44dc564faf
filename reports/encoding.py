"""Figures as files: SVG and PNG, the same bytes every time."""

import io
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from canaryproof.reports.figures import STYLE


def svg(figure: Figure) -> str:
    """Render a figure as SVG text on white, letters as outlines, so that it looks the same everywhere."""
    metadata = {"Date": None, "Creator": "canaryproof"}
    text = saved(figure, {}, format="svg", metadata=metadata, facecolor="white").decode()
    # matplotlib ends some lines in blanks, which editors and version control complain of.
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def png(figure: Figure) -> bytes:
    """Render a figure as PNG, 200 dots an inch on white."""
    return saved(figure, {}, format="png", metadata={"Software": "canaryproof"}, facecolor="white", dpi=200)


def saved(figure: Figure, style: dict[Any, Any], **options: Any) -> bytes:
    """Save a figure in the pictures' style, in which its ticks are made too: matplotlib makes them when it draws.

    Parameters
    ----------
    figure
        The figure. It is laid out when it is saved first.
    style
        What differs from the pictures' style.
    options
        Of ``Figure.savefig``.

    Returns
    -------
    The file.
    """
    buffer = io.BytesIO()
    with mpl.rc_context({**STYLE, **style}):
        figure.savefig(buffer, **options)
    # Laying out takes most of the time, and a second time would move things a little.
    figure.set_layout_engine("none")
    return buffer.getvalue()
