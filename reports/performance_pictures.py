"""Pictures of the performance page."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from canaryproof.reports.figures import BLUE, GREEN, GREY, ORANGE, STYLE


def threads_of(row: Mapping[str, Any]) -> str:
    """Name the threads of a row of ours; others take what they take."""
    if row["label"] != "canaryproof":
        return ""
    return ", 1 thread" if row["threads"] == 1 else f", {row['threads']} threads"


def _colour(label: str) -> str:
    if label.startswith(("canaryproof", "block_cosines")):
        return BLUE
    if label.startswith(("stored", "memory")):
        return GREY
    return GREEN if label.startswith("cosines") else ORANGE


def _bars(axis: Axes, values: Mapping[str, float], unit: str) -> None:
    """Draw bars from above, on a logarithmic axis, each with its value."""
    names = list(values)
    axis.barh(range(len(names)), list(values.values()), color=[_colour(name) for name in names], height=0.65)
    for place, value in enumerate(values.values()):
        axis.text(value * 1.06, place, f"{float(f'{value:.2g}'):g}", va="center")
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set_xscale("log")
    # A bar has no natural beginning on such an axis; this one lets the shortest be seen.
    axis.set_xlim(min(values.values()) / 2.5, max(values.values()) * 2.5)
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0,)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel(unit)


def coordinates(document: Mapping[str, Any]) -> Figure:
    """Draw what a coordinate costs in Algorithm 1, and what it costs to read one.

    Parameters
    ----------
    document
        What was measured, as JSON has it.

    Returns
    -------
    The figure.
    """
    rows = [row for row in document["algorithm_1"] if "skipped" not in row]
    values = {f"{row['label']}{threads_of(row)}": row["seconds"] / row["coordinates"] * 1e9 for row in rows}
    stored = document["stored"]
    values["memory, stored canaries"] = stored["seconds"] / stored["coordinates"] * 1e9
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 0.8 + 0.32 * len(values)), layout="constrained")
        _bars(figure.subplots(), values, "ns a coordinate and pass")
        return figure


def rounds(document: Mapping[str, Any]) -> Figure:
    """Draw what a block of rounds costs in Algorithm 3, a panel for each size of a block.

    Parameters
    ----------
    document
        What was measured, as JSON has it.

    Returns
    -------
    The figure.
    """
    blocks = document["rounds"]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 0.9 + 0.32 * len(blocks[0]["timings"])), layout="constrained")
        axes = figure.subplots(1, len(blocks), squeeze=False, sharey=True)[0]
        for axis, block in zip(axes, blocks, strict=True):
            _bars(axis, {row["label"]: row["seconds"] for row in block["timings"]}, "seconds")
            axis.set_title(f"{block['rounds']} rounds at once")
        # Shared axes are turned round together, so that an even number of panels would undo it.
        axes[0].set_ylim(len(blocks[0]["timings"]) - 0.5, -0.5)
        return figure


def scaling(document: Mapping[str, Any]) -> Figure:
    """Draw the time of Algorithm 1 against k·d.

    Parameters
    ----------
    document
        What was measured, as JSON has it.

    Returns
    -------
    The figure.
    """
    found = document["scaling"]
    points = sorted(
        (dim, row["coordinates"], row["seconds"])
        for (dim, _), row in zip(found["cells"], found["timings"], strict=True)
    )
    dims = sorted({dim for dim, _, _ in points})
    low, high = (pick(work for _, work, _ in points) for pick in (min, max))
    # The line of slope 1 through the middle of the points.
    middle = sorted(seconds / work for _, work, seconds in points)[len(points) // 2]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.4, 3.4), layout="constrained")
        axis = figure.subplots()
        axis.plot([low, high], [middle * low, middle * high], color=GREY, linewidth=0.8, label="slope 1")
        for dim, marker, colour in zip(dims, "osD^v<>", [BLUE, ORANGE, GREEN, GREY] * 2, strict=False):
            own = [(work, seconds) for d, work, seconds in points if d == dim]
            axis.plot(*zip(*own, strict=True), marker, color=colour, markersize=4.5, label=f"d = {dim:,}")
        axis.set(xscale="log", yscale="log", xlabel="k·d", ylabel="seconds")
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.legend(frameon=False)
        return figure
