"""The picture of a convergence report: how far off ε̂ is against the number of canaries and against the dimension."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from canaryproof.verify.audit.markup.digits import number, percent_up
from canaryproof.verify.audit.markup.figures import BLUE, GREEN, GREY, ORANGE, STYLE, panels
from canaryproof.verify.papers.records.convergence_record import ConvergenceSetting

_COLOURS = (BLUE, ORANGE, GREEN)


@mpl.rc_context(STYLE)
def accuracy(settings: Sequence[ConvergenceSetting]) -> Figure:
    """Draw up to three settings of one d and k: predicted curves, the measured points and the accuracies."""
    figure, (left, right) = panels(2, 2, (9.2, 0.5, 3.0), sharey=True)
    head = settings[0]
    for setting, colour in zip(settings, _COLOURS, strict=False):
        label = f"ε = {number(setting.epsilon)}"
        _draw(left, setting.by_count, setting.count, setting, colour, label)
        _draw(right, setting.by_dim, setting.dim, setting, colour, label)
    left.set(title=f"in {head.dim:,} dimensions", xlabel="number k of canaries")
    left.set_ylabel("error of ε̂, as a share of ε,\nthat 95 of 100 runs do not exceed")
    right.set(title=f"with {head.count:,} canaries", xlabel="dimension d")
    above: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "bottom", "ha": "right", "color": GREY}
    for axis in (left, right):
        for needed in head.needed:
            axis.axhline(needed.accuracy, color=GREY, linewidth=0.7, linestyle=":")
            axis.annotate(percent_up(needed.accuracy), (1.0, needed.accuracy), fontsize=8.0, **above)
    left.yaxis.set_major_formatter(lambda value, _: percent_up(value))
    left.plot([], [], "o", color=GREY, markersize=5, label="measured")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def _draw(
    axis: Axes,
    predicted: tuple[tuple[float, float], ...],
    size: int,
    setting: ConvergenceSetting,
    colour: str,
    label: str,
) -> None:
    axis.set(xscale="log", yscale="log")
    axis.plot(*zip(*predicted, strict=True), color=colour, linewidth=1.2, label=f"{label}, predicted")
    axis.plot(size, setting.estimators[0].within, "o", color=colour, markersize=5)
