"""Picture of the page on CANIFE."""

import math
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from canaryproof.reports.figures import BLUE, GREEN, GREY, ORANGE, STYLE

_MARKERS = ("o", "D", "s", "^")
_COLOURS = (BLUE, ORANGE, GREEN, GREY)
# Where 0 is drawn on a logarithmic axis.
_LEAST = 0.03


def values(document: Mapping[str, Any]) -> Figure:
    """Draw every method's ε̂ of each training, its cap and the analytical ε.

    Parameters
    ----------
    document
        What was found, as JSON has it.

    Returns
    -------
    The figure.
    """
    scenarios = document["scenarios"]
    methods = scenarios[0]["methods"]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 1.2 + 0.3 * len(methods)), layout="constrained")
        axis = figure.subplots()
        for which, scenario in enumerate(scenarios):
            shift = 0.5 * (which + 0.5) / len(scenarios) - 0.25
            points = [
                (max(float(value["epsilon"]), _LEAST), place + shift)
                for place, method in enumerate(scenario["methods"])
                for value in method["values"]
                if math.isfinite(float(value["epsilon"]))
            ]
            style = {"color": _COLOURS[which], "markersize": 3.5, "label": scenario["name"]}
            axis.plot(*zip(*points, strict=True), _MARKERS[which], **style)
        for place, method in enumerate(methods):
            if any(math.isinf(float(value["epsilon"])) for value in method["values"]):
                axis.text(1.0, place, "∞", transform=axis.get_yaxis_transform(), ha="right", va="center")
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
        axis.set_xlabel("ε̂ of a training; a short line is the method's cap")
        figure.legend(loc="outside upper right", ncols=2, frameon=False)
        return figure
