"""The picture of ``canaryproof benchmark canife``: every method's ε̂ with its reach and its cap."""

import math
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from canaryproof.verify.audit.markup.digits import number
from canaryproof.verify.audit.markup.figures import BLUE, GREY, ORANGE, STYLE, mark_edge
from canaryproof.verify.papers.records.canife_outcomes import AS_USED, ComparedOutcome

# Where 0 is drawn on a logarithmic axis.
_LEAST = 0.01


@mpl.rc_context(STYLE)
def outcome_figure(outcomes: Sequence[ComparedOutcome], epsilon: float, reach: str) -> Figure:
    """Draw the methods of all budgets, one below the other."""
    figure = Figure(figsize=(8.4, 1.3 + 0.32 * len(outcomes)), layout="constrained")
    axis = figure.subplots()
    names = []
    for i, outcome in enumerate(outcomes):
        colour = ORANGE if outcome.name.startswith("CANIFE") else BLUE
        ends = [max(each, _LEAST) for each in (outcome.low, outcome.high) if math.isfinite(each)]
        if len(ends) == 2:
            axis.plot(ends, [i, i], color=colour, linewidth=2.0)
        if math.isfinite(outcome.epsilon):
            axis.plot(max(outcome.epsilon, _LEAST), i, "o", color=colour, markersize=5)
        if math.isfinite(outcome.cap):
            axis.plot([outcome.cap] * 2, [i - 0.3, i + 0.3], color="black", linewidth=1.5)
        budget = "" if outcome.budget == AS_USED else f"\n{outcome.budget}"
        names.append(f"{outcome.name}, {outcome.canaries:,}{budget}")
    axis.axvline(epsilon, color=GREY, linewidth=0.8, zorder=0)
    words = f"analytical ε {number(epsilon)}"
    axis.annotate(words, (epsilon, 1.0), (0, 2), ("data", "axes fraction"), "offset points", ha="center")
    axis.set_yticks(range(len(outcomes)), names)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlim(left=_LEAST / 1.5)
    mark_edge(axis.xaxis, _LEAST, f"≤ {_LEAST:g}")
    axis.set_xlabel(f"ε̂ of a training: median, and {reach}; upright bars are caps")
    return figure
