"""The picture of the bounds: how often each lies above the truth, against what it promises."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from canaryproof.reports.figures import BLUE, GREEN, GREY, ORANGE, STYLE

_COLOURS = (BLUE, ORANGE, GREEN)
_MARKERS = {"exact": "o", "unobserved": "^"}
# Rates below are drawn here.
_LEAST = 2e-4


def coverage(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw measured against nominal rates of bounds above the truth, a panel for each method.

    Parameters
    ----------
    rows
        Rates of the check ``bounds.nominal``.

    Returns
    -------
    The figure.
    """
    methods = list(dict.fromkeys(row["method"] for row in rows))
    epsilons = sorted({row["epsilon"] for row in rows})
    nominal = sorted({row["nominal"] for row in rows})
    lines = math.ceil(len(methods) / 4)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 0.6 + 2.1 * lines), layout="constrained")
        axes = figure.subplots(lines, 4, squeeze=False, sharex=True, sharey=True).ravel()
        for axis in axes[len(methods) :]:
            axis.set_visible(False)
        handles: dict[str, Any] = {}
        for axis, method in zip(axes, methods, strict=False):
            axis.plot(nominal, nominal, color=GREY, linewidth=0.8, zorder=0)
            for colour, epsilon in zip(_COLOURS, epsilons, strict=False):
                for null, marker in _MARKERS.items():
                    shown = [r for r in rows if (r["method"], r["epsilon"], r["null"]) == (method, epsilon, null)]
                    if shown:
                        (handles[f"ε = {epsilon:g}, {null} null"],) = axis.plot(
                            [row["nominal"] for row in shown],
                            [max(row["rate"], _LEAST) for row in shown],
                            marker=marker,
                            color=colour,
                            markersize=3,
                            linewidth=0.9,
                        )
            axis.set(xscale="log", yscale="log", ylim=(0.8 * _LEAST, 1.2), title=method)
            axis.xaxis.set_major_locator(FixedLocator(nominal))
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_locator(NullLocator())
        figure.supxlabel("nominal: 1 − confidence", fontsize=9.0)
        figure.supylabel("share of bounds above the true ε", fontsize=9.0)
        figure.legend(handles.values(), handles, loc="outside upper center", ncols=3, frameon=False)
        return figure
