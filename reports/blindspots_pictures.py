"""Pictures of the blind-spot atlas: one of each mechanism, all of one shape, and the matrix of who sees what."""

import math
from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullFormatter

from canaryproof.reports.blindspots_sight import BESIDE, Evidence, Sight, Verdict, label, rows_at, share
from canaryproof.reports.figures import BLUE, GREEN, GREY, ORANGE, STYLE

_BLACK = "#000000"
# Colour and marker of what is drawn of a mechanism.
_DRAWN = {
    "canife": (GREY, "s"),
    "fixed-sequence": (GREEN, "^"),
    "normal-scores": (ORANGE, "D"),
    "adaptive": (BLUE, "o"),
}
# Of all pictures, so that they can be compared; what is beyond is drawn at the edge.
_LEAST, _MOST = 0.1, 200.0
# Between labels, as a ratio.
_APART = 1.75
_SIGNS = {
    Verdict.SEES: ("●", GREEN),
    Verdict.MISSES: ("○", ORANGE),
    Verdict.CANNOT: ("×", GREY),
    Verdict.NOTHING: ("", ""),
}
_TINT = 0.4


def mechanism(found: Evidence) -> Figure:
    """Draw ε̂ of the main methods and the truth over a mechanism's parameter.

    Parameters
    ----------
    found
        Evidence of a check ``blindspots.atlas.*``.

    Returns
    -------
    The figure.
    """
    rows = rows_at(found)
    places = range(len(rows))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        axis = figure.subplots()
        claimed = found["claimed"]["epsilon"]
        axis.plot([-0.45, len(rows) - 1], [claimed, claimed], color=GREY, linewidth=0.8, linestyle="--", zorder=0)
        ends = [("truth", rows[-1]["truth"][0], _BLACK), (f"claimed: {claimed:g}", claimed, GREY)]
        _truth(axis, [row["truth"][0] for row in rows])
        for method, (colour, marker) in _DRAWN.items():
            shown = [(i, row["methods"][method]["epsilon"]) for i, row in enumerate(rows) if method in row["methods"]]
            if not shown:
                continue
            xs = [i for i, _ in shown]
            low, middle, high = ([_clipped(quartiles[j]) for _, quartiles in shown] for j in range(3))
            axis.plot(xs, middle, color=colour, marker=marker, markersize=4, linewidth=1.1, clip_on=False)
            axis.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0.0)
            ends.append((method, shown[-1][1][1], colour))
        _labels(axis, ends, len(rows) - 1)
        axis.set(yscale="log", ylim=(_LEAST, _MOST), xlim=(-0.45, len(rows) - 0.4), ylabel="ε̂, and ε")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_xticks(list(places), [label(row["value"]) for row in rows])
        axis.set_xlabel(found["parameter"])
        return figure


def _clipped(value: float) -> float:
    return min(max(value, _LEAST), _MOST)


def _truth(axis: Axes, values: Sequence[float]) -> None:
    """Draw the truth, with arrows where it leaves the picture."""
    axis.plot(range(len(values)), [_clipped(v) for v in values], color=_BLACK, linewidth=1.6, clip_on=False)
    for place, value in enumerate(values):
        if value > _MOST:
            top = "∞" if math.isinf(value) else f"{value:,.0f}"
            axis.annotate(
                top, (place, _MOST), (0, 10), textcoords="offset points", ha="center", va="bottom",
                arrowprops={"arrowstyle": "<-", "color": _BLACK, "shrinkA": 0, "shrinkB": 0}, annotation_clip=False,
            )  # fmt: skip
        else:
            axis.plot(place, _clipped(value), "_", color=_BLACK, markersize=9, markeredgewidth=1.6, clip_on=False)


def _labels(axis: Axes, ends: Sequence[tuple[str, float, str]], last: int) -> None:
    """Name the lines at their ends, apart from each other."""
    heights: list[float] = []
    for _, value, _ in (ordered := sorted(ends, key=lambda end: _clipped(end[1]))):
        height = _clipped(value)
        heights.append(max(height, heights[-1] * _APART) if heights else height)
    # What is pushed beyond the top pushes back.
    for i in range(len(heights) - 1, -1, -1):
        heights[i] = min(heights[i], _MOST / _APART ** (len(heights) - 1 - i))
    for (name, value, colour), height in zip(ordered, heights, strict=True):
        axis.annotate(
            name, (last, _clipped(value)), (last + 0.12, height), color=colour, fontsize=8.0, va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5}, annotation_clip=False,
        )  # fmt: skip


def matrix(names: Sequence[str], methods: Sequence[str], cells: Mapping[tuple[str, str], Sight | None]) -> Figure:
    """Draw who sees what: a row for each mechanism, a column for each method, and then what is beside the cosines.

    Parameters
    ----------
    names
        Names of the mechanisms.
    methods
        Names of the methods, those of ``BESIDE`` last.
    cells
        What each method sees of each mechanism; None where it does not apply.

    Returns
    -------
    The figure.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1.9 + 0.5 * len(methods), 1.5 + 0.27 * len(names)), layout="constrained")
        axis = figure.subplots()
        used = set()
        for row, name in enumerate(names):
            for column, method in enumerate(methods):
                one = cells[name, method]
                if one is None:
                    continue
                used.add(one.verdict)
                sign, colour = _SIGNS[one.verdict]
                if colour:
                    box = Rectangle(
                        (column - 0.47, row - 0.44), 0.94, 0.88, facecolor=colour, alpha=_TINT, linewidth=0.0
                    )
                    axis.add_patch(box)
                axis.text(column, row, f"{sign} {share(one.rate)}".strip(), ha="center", va="center", fontsize=7.0)
        beside = sum(method not in BESIDE for method in methods)
        axis.axvline(beside - 0.5, color=GREY, linewidth=0.8)
        axis.set(xlim=(-0.5, len(methods) - 0.5), ylim=(len(names) - 0.5, -0.5))
        axis.set_xticks(
            range(len(methods)), [BESIDE.get(m, m) for m in methods], rotation=40, ha="left", rotation_mode="anchor"
        )
        axis.set_yticks(range(len(names)), names)
        axis.xaxis.tick_top()
        axis.tick_params(length=0, labelsize=8.0)
        axis.spines[:].set_visible(False)
        handles = [
            Rectangle((0, 0), 1, 1, facecolor=_SIGNS[v][1], alpha=_TINT, label=f"{_SIGNS[v][0]} {v}")
            for v in (Verdict.SEES, Verdict.MISSES, Verdict.CANNOT)
            if v in used
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
        return figure
