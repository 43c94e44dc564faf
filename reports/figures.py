"""Figures as files: SVG and PNG, the same bytes every time."""

import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from canaryproof.reports.series import Series


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


# Pictures of a run, which depend on nothing but its numbers.


# Okabe and Ito's palette: safe for colour-blind readers.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
_BLACK = "#000000"
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "canaryproof",
    "svg.fonttype": "path",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
}


# Label, colour, marker, displacement, whose cells, and what is drawn of a cell.
_SERIES: tuple[tuple[str, str, str, float, str, Callable[[Any], Any]], ...] = (
    ("printed, Table 2", _BLACK, "s", 0.56, "Table 2", lambda cell: cell["printed"]),
    ("printed, reviews", GREY, "^", 0.76, "Reviews", lambda cell: cell["printed"]),
    ("pinned, ours", BLUE, "o", 1.0, "Reviews", lambda cell: cell["readings"]["pinned"]),
    ("fitted, ours", ORANGE, "D", 1.36, "Reviews", lambda cell: cell["readings"]["fitted, both directions"]),
)


# Of the axis of errors in ulps.
_LEAST_ULPS, _MOST_ULPS = 0.1, 1e16


def dimension_sweep(cells: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw printed and simulated estimates against the dimension, a panel for each ε.

    Parameters
    ----------
    cells
        Evidence of the checks of printed cells, each with the ``source`` of its check.

    Returns
    -------
    The figure.
    """
    levels = sorted({cell["epsilon"] for cell in cells})
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        axes = figure.subplots(1, len(levels), squeeze=False)[0]
        for axis, epsilon in zip(axes, levels, strict=True):
            chosen = sorted((cell for cell in cells if cell["epsilon"] == epsilon), key=lambda cell: cell["dim"])
            axis.axhline(epsilon, color=GREY, linewidth=0.8, zorder=0)
            for label, colour, marker, shift, place, pick in _SERIES:
                shown = [cell for cell in chosen if place in cell["source"]]
                axis.errorbar(
                    [cell["dim"] * shift for cell in shown],
                    [pick(cell)["mean"] for cell in shown],
                    [pick(cell)["deviation"] for cell in shown],
                    fmt=marker,
                    color=colour,
                    markersize=4,
                    linewidth=1.1,
                    capsize=2,
                    label=label,
                )
            axis.set_xscale("log")
            axis.set_title(f"analytical ε = {epsilon:g}")
            axis.set_xlabel("dimension d, k = √d")
        axes[0].set_ylabel("ε̂, mean ± standard deviation of a run")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
        return figure


def estimator_errors(evidence: Mapping[str, Any]) -> Figure:
    """Draw the error of three estimators against the ratio of the cosines' deviation to the null's.

    Parameters
    ----------
    evidence
        Evidence of the check ``gaussian.default-estimator``.

    Returns
    -------
    The figure.
    """
    distances = sorted({cell["distance"] for cell in evidence["cells"]})
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        axes = figure.subplots(1, len(distances), squeeze=False)[0]
        for axis, distance in zip(axes, distances, strict=True):
            cells = sorted((c for c in evidence["cells"] if c["distance"] == distance), key=lambda c: c["ratio"])
            equal = next(cell["epsilon"] for cell in cells if cell["ratio"] == 1.0)
            for name, colour, marker in (("pinned", BLUE, "o"), ("fitted", ORANGE, "D"), ("adaptive", GREEN, "s")):
                axis.plot(
                    [cell["ratio"] for cell in cells],
                    [cell[name] for cell in cells],
                    color=colour,
                    marker=marker,
                    markersize=4,
                    linewidth=1.1,
                    label=name,
                )
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_locator(NullLocator())
            axis.set_title(f"ε = {equal:g} at equal deviations, k = {evidence['count']:,}")
            axis.set_xlabel("true ratio of deviations, observed to null")
        axes[0].set_ylabel("root mean square error of ε̂")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
        return figure


# A method's colour and marker. What is ours comes last, on top of the others.
_METHODS = {
    "N(0, 1/d)": (GREY, "x"),
    "scipy": (GREEN, "^"),
    "dp-accounting": (_BLACK, "s"),
    "plain formula": (ORANGE, "D"),
    "canaryproof": (BLUE, "o"),
}


def comparison_errors(sweeps: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw the errors of several methods along sweeps of one argument, a panel for each function.

    Parameters
    ----------
    sweeps
        Evidence of the checks ``numerics.comparison.*`` by function.

    Returns
    -------
    The figure.
    """
    rows = math.ceil(len(sweeps) / 2)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 0.6 + 2.4 * rows), layout="constrained")
        axes = figure.subplots(rows, 2, squeeze=False).ravel()
        for axis in axes[len(sweeps) :]:
            axis.set_visible(False)
        used = set()
        for axis, (function, sweep) in zip(axes, sweeps.items(), strict=False):
            for name, (colour, marker) in _METHODS.items():
                if name not in sweep["ulps"]:
                    continue
                used.add(name)
                # Exact results have no place on a logarithmic axis; no result at all is drawn at the top.
                ulps = [min(max(float(value), _LEAST_ULPS), _MOST_ULPS) for value in sweep["ulps"][name]]
                axis.plot(sweep["places"], ulps, marker, color=colour, markersize=2.6, clip_on=False)
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_ylim(_LEAST_ULPS, _MOST_ULPS)
            axis.set_title(f"{function}\n{sweep['title']}")
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.set_xlabel(sweep["axis"])
            axis.set_ylabel("error, ulps")
            axis.axhline(8.0, color=GREY, linewidth=0.8, zorder=0)
        handles = [
            Line2D([], [], linestyle="", color=colour, marker=marker, markersize=4, label=name)
            for name, (colour, marker) in _METHODS.items()
            if name in used
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
        return figure


_BOUND, _SIMULATED, _BARE = _LABELS = "proven bound", "simulated ± 2 standard errors", "simulated"


def convergence(series: Sequence[Series]) -> Figure:
    """Draw series against d or k on logarithmic axes, a panel for each and two a row.

    Parameters
    ----------
    series
        At least one. Values that are not finite and positive are left out.

    Returns
    -------
    The figure.
    """
    columns, rows = min(len(series), 2), math.ceil(len(series) / 2)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.8 + 4.2 * columns, 0.5 + 2.8 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axis in axes[len(series) :]:
            axis.set_visible(False)
        handles: dict[str, Any] = {}
        for axis, row in zip(axes, series, strict=False):
            _draw_series(axis, row)
            handles |= {label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        if handles:
            lines = dict.fromkeys(row.exact_label for row in series)
            order = [label for label in (*lines, *_LABELS) if label in handles]
            shown = [handles[label] for label in order]
            figure.legend(shown, order, loc="outside upper center", ncols=4, frameon=False)
        return figure


def _draw_series(axis: Axes, row: Series) -> None:
    heights = []
    for values, style in (
        (row.exact, {"color": BLUE, "marker": ".", "markersize": 4, "label": row.exact_label}),
        (row.bound, {"color": GREY, "linestyle": "--", "label": _BOUND}),
    ):
        shown = [(x, y) for x, y in zip(row.x, values or (), strict=False) if 0.0 < y < math.inf]
        if shown:
            axis.plot(*zip(*shown, strict=True), linewidth=1.1, **style)
            heights += [y for _, y in shown]
    simulated = zip(row.x, row.simulated or (), row.standard_error or [0.0] * len(row.x), strict=False)
    points = [(x, y, 2.0 * e) for x, y, e in simulated if 0.0 < y < math.inf]
    heights += [end for _, y, e in points for end in (y, y + e, y - e) if 0.0 < end < math.inf]
    title = textwrap.wrap(row.title, 52)
    if row.bound is not None and row.bound_label:
        title += textwrap.wrap(f"bound: {row.bound_label}", 52)
    axis.set_title("\n".join(title))
    axis.set_xlabel({"d": "dimension d", "k": "number k of canaries"}[row.axis])
    axis.set_ylabel(textwrap.fill(row.quantity, 28))
    if not heights:
        axis.text(0.5, 0.5, "no positive values", transform=axis.transAxes, ha="center")
        axis.set(xticks=[], yticks=[])
        return
    if points:
        axis.errorbar(
            [x for x, _, _ in points],
            [y for _, y, _ in points],
            # A bar that reaches zero ends below the picture.
            [[y - max(y - e, 1e-3 * min(heights)) for _, y, e in points], [e for _, _, e in points]],
            fmt="o",
            color=ORANGE,
            markersize=3.5,
            linewidth=1.1,
            capsize=2,
            label=_SIMULATED if row.standard_error else _BARE,
        )
    axis.set(xscale="log", xlim=_limits(row.x), yscale="log", ylim=_limits(heights))
    for side in (axis.xaxis, axis.yaxis):
        _space_ticks(side)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Leave a margin, and room for two numbered ticks."""
    low, high = min(values), max(values)
    margin = max((high / low) ** 0.06, math.sqrt(5.0 * low / high))
    return low / margin, high * margin


def _space_ticks(axis: Axis) -> None:
    """Put numbers to a few ticks of a logarithmic axis."""
    low, high = axis.get_view_interval()
    if math.log10(high / low) < 2.0:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
    else:
        axis.set_major_locator(LogLocator(numticks=7))
    axis.set_minor_formatter(NullFormatter())
