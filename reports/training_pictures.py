"""Pictures of a training experiment: densities of scores, as in Figures 1 and 3, and ε̂ with bounds, as in 2 and 4."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from canaryproof.reports.figures import BLUE, GREEN, ORANGE, STYLE
from canaryproof.reports.training_document import ATTACKS, BOUND, ESTIMATE, audit_of, label, spoken, value

_COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
_MOST_PANELS = 6
_FEWEST_PLACES = 4

Cell = Mapping[str, Any]


def densities(document: Mapping[str, Any]) -> Figure:
    """Draw densities of the observed canaries' scores, a row for each attack and a panel for each noise, say.

    Parameters
    ----------
    document
        What was found, as JSON has it.

    Returns
    -------
    The figure. All axes of the sweep but the last make panels, the last one the curves in them; where there are too
    many
    panels the first ones are drawn.
    """

    def draw(axis: Axes, attack: str, cells: Sequence[Cell], last: Sequence[str]) -> None:
        low, high = -4.0, 4.0
        for colour, cell, name in zip(_COLOURS, cells, last, strict=False):
            density = cell["results"][0]["densities"][attack]
            axis.plot(density["x"], density["y"], color=colour, linewidth=1.1, label=name)
            low, high = min(low, density["x"][0]), max(high, density["x"][-1])
        if attack != "all":
            x = np.linspace(-4.0, 4.0, 161)
            axis.plot(x, np.exp(-0.5 * x**2) / math.sqrt(2.0 * math.pi), color="#000000", linewidth=0.9, label="null")
        axis.set(xlim=(low, high), yticks=[])

    return _panels(document, draw, "score in the null's standard deviations, from its mean on", "density")


def estimates(document: Mapping[str, Any]) -> Figure:
    """Draw estimates as bars and lower bounds as ticks, arranged like ``densities``.

    Parameters
    ----------
    document
        What was found, as JSON has it.

    Returns
    -------
    The figure. Over repetitions, means are drawn, and the bars' standard deviations.
    """

    def draw(axis: Axes, attack: str, cells: Sequence[Cell], last: Sequence[str]) -> None:
        for place, cell in enumerate(cells):
            audits = [audit_of(result, attack) for result in cell["results"]]
            values = [float(audit["estimates"][ESTIMATE]["epsilon"]) for audit in audits]
            bound = statistics.fmean(float(audit["bounds"][BOUND]["value"]) for audit in audits)
            error = statistics.stdev(values) if len(values) > 1 else None
            axis.bar(place, statistics.fmean(values), 0.6, color=BLUE, yerr=error, capsize=2)
            axis.plot([place - 0.38, place + 0.38], [bound, bound], color=ORANGE, linewidth=2.0)
        axis.set_xticks(range(len(cells)), last)
        # A single bar is no wall.
        room = max(0.6, 0.5 * (_FEWEST_PLACES - len(cells)) + 0.1)
        axis.set_xlim(-room, len(cells) - 1 + room)
        axis.set_ylim(bottom=0.0)

    return _panels(document, draw, "", "ε̂ (bars), lower bound (ticks)")


def _panels(
    document: Mapping[str, Any],
    draw: Callable[[Axes, str, Sequence[Cell], Sequence[str]], None],
    below: str,
    beside: str,
) -> Figure:
    groups = _groups(document)
    with mpl.rc_context(STYLE):
        columns = len(groups)
        figure = Figure(figsize=(1.4 + 2.6 * max(columns, 2), 6.6), layout="constrained")
        rows = figure.subplots(len(ATTACKS), columns, squeeze=False)
        handles: dict[str, Any] = {}
        for row, (attack, seen) in zip(rows, ATTACKS.items(), strict=True):
            for axis, (title, (cells, last)) in zip(row, groups.items(), strict=True):
                draw(axis, attack, cells, last)
                axis.set_title("\n".join(filter(None, (seen.name, title))))
                handles |= {label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        names = ", ".join(spoken(name) for name in (document["axes"] or [[]])[-1])
        figure.supxlabel(f"{below}{'; ' * bool(below and names)}{names}", fontsize=9.0)
        figure.supylabel(beside, fontsize=9.0)
        if handles:
            figure.legend(handles.values(), handles, loc="outside upper center", ncols=6, frameon=False)
        return figure


def _groups(document: Mapping[str, Any]) -> dict[str, tuple[list[Cell], list[str]]]:
    """Cells by panel, with what tells the cells of a panel apart."""
    last = document["axes"][-1] if document["axes"] else []
    groups: dict[str, tuple[list[Cell], list[str]]] = {}
    for cell in document["cells"]:
        title = label({name: value for name, value in cell["swept"].items() if name not in last})
        cells, names = groups.setdefault(title, ([], []))
        cells.append(cell)
        names.append(", ".join(value(cell["swept"][name]) for name in last))
    return dict(list(groups.items())[:_MOST_PANELS])
