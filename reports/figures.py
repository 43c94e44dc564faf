"""Pictures of a run, as SVG text that depends on nothing but the numbers."""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

# Okabe and Ito's palette: safe for colour-blind readers.
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
_BLACK = "#000000"
_STYLE: dict[Any, Any] = {
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
    ("printed, reviews", _GREY, "^", 0.76, "Reviews", lambda cell: cell["printed"]),
    ("pinned, ours", _BLUE, "o", 1.0, "Reviews", lambda cell: cell["readings"]["pinned"]),
    ("fitted, ours", _ORANGE, "D", 1.36, "Reviews", lambda cell: cell["readings"]["fitted, both directions"]),
)


# Of the axis of errors in ulps.
_LEAST_ULPS, _MOST_ULPS = 0.1, 1e16


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "canaryproof"}, facecolor="white")
    # matplotlib ends some lines in blanks, which editors and version control complain of.
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def dimension_sweep(cells: Sequence[Mapping[str, Any]]) -> str:
    """Draw printed and simulated estimates against the dimension, a panel for each ε.

    Parameters
    ----------
    cells
        Evidence of the checks of printed cells, each with the ``source`` of its check.

    Returns
    -------
    SVG text.
    """
    levels = sorted({cell["epsilon"] for cell in cells})
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        axes = figure.subplots(1, len(levels), squeeze=False)[0]
        for axis, epsilon in zip(axes, levels, strict=True):
            chosen = sorted((cell for cell in cells if cell["epsilon"] == epsilon), key=lambda cell: cell["dim"])
            axis.axhline(epsilon, color=_GREY, linewidth=0.8, zorder=0)
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
        return _svg(figure)


def estimator_errors(evidence: Mapping[str, Any]) -> str:
    """Draw the error of three estimators against the ratio of the cosines' deviation to the null's.

    Parameters
    ----------
    evidence
        Evidence of the check ``gaussian.default-estimator``.

    Returns
    -------
    SVG text.
    """
    distances = sorted({cell["distance"] for cell in evidence["cells"]})
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        axes = figure.subplots(1, len(distances), squeeze=False)[0]
        for axis, distance in zip(axes, distances, strict=True):
            cells = sorted((c for c in evidence["cells"] if c["distance"] == distance), key=lambda c: c["ratio"])
            equal = next(cell["epsilon"] for cell in cells if cell["ratio"] == 1.0)
            for name, colour, marker in (("pinned", _BLUE, "o"), ("fitted", _ORANGE, "D"), ("adaptive", _GREEN, "s")):
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
        return _svg(figure)


# A method's colour and marker. What is ours comes last, on top of the others.
_METHODS = {
    "N(0, 1/d)": (_GREY, "x"),
    "scipy": (_GREEN, "^"),
    "dp-accounting": (_BLACK, "s"),
    "plain formula": (_ORANGE, "D"),
    "canaryproof": (_BLUE, "o"),
}


def comparison_errors(sweeps: Mapping[str, Mapping[str, Any]]) -> str:
    """Draw the errors of several methods along sweeps of one argument, a panel for each function.

    Parameters
    ----------
    sweeps
        Evidence of the checks ``numerics.comparison.*`` by function.

    Returns
    -------
    SVG text.
    """
    rows = math.ceil(len(sweeps) / 2)
    with mpl.rc_context(_STYLE):
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
            axis.axhline(8.0, color=_GREY, linewidth=0.8, zorder=0)
        handles = [
            Line2D([], [], linestyle="", color=colour, marker=marker, markersize=4, label=name)
            for name, (colour, marker) in _METHODS.items()
            if name in used
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
        return _svg(figure)
