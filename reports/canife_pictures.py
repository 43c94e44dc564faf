"""Picture of the page on CANIFE."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from canaryproof.reports.figures import BLUE, GREEN, GREY, ORANGE, STYLE

_STYLES = (("o", BLUE), ("D", ORANGE), ("s", GREEN), ("^", "#CC79A7"), ("v", "#000000"))
# Where 0 is drawn on a logarithmic axis.
_LEAST = 0.03


def values(scenarios: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw every method's ε̂ of each training, its cap and the analytical ε.

    Parameters
    ----------
    scenarios
        What was found, scenario by scenario.

    Returns
    -------
    The figure.
    """
    methods = scenarios[0]["methods"]
    with mpl.rc_context(STYLE):
        height = 0.25 + 0.07 * len(scenarios)
        figure = Figure(figsize=(8.4, 1.2 + height * len(methods)), layout="constrained")
        axis = figure.subplots()
        for which, scenario in enumerate(scenarios):
            shift = 0.7 * (which + 0.5) / len(scenarios) - 0.35
            found = [
                (float(value["epsilon"]), place + shift)
                for place, method in enumerate(scenario["methods"])
                for value in method["values"]
            ]
            points = [(max(epsilon, _LEAST), level) for epsilon, level in found if math.isfinite(epsilon)]
            marker, colour = _STYLES[which]
            axis.plot(*zip(*points, strict=True), marker, color=colour, markersize=3.5, label=scenario["name"])
            # Infinite ones stand beyond the axis.
            for level in {level for epsilon, level in found if epsilon == math.inf}:
                beside = axis.get_yaxis_transform()
                axis.text(1.01, level, "∞", color=colour, transform=beside, verticalalignment="center")
        for place, method in enumerate(methods):
            if math.isfinite(cap := float(method["cap"])):
                axis.plot([cap, cap], [place - 0.35, place + 0.35], color="black", linewidth=1.2)
        analytical = float(scenarios[0]["analytical"]["epsilon"])
        axis.axvline(analytical, color=GREY, linewidth=0.8, zorder=0)
        words = f"analytical ε {analytical:.3g}"
        axis.annotate(words, (analytical, 1.0), (0, 2), ("data", "axes fraction"), "offset points", ha="center")
        axis.set_yticks(range(len(methods)), [method["name"] for method in methods])
        axis.invert_yaxis()
        axis.set_xscale("log")
        axis.set_xlim(left=_LEAST / 1.5)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("ε̂ of a training; short lines are caps,\nthe long one is the analytical ε of Poisson samples")
        figure.legend(loc="outside upper right", ncols=2, frameon=False)
        return figure
