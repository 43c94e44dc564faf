"""CANIFE's part of the page of a training experiment: what its audits found, in tables and a picture."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from canaryproof.reports.figures import BLUE, GREEN, GREY, ORANGE, STYLE
from canaryproof.reports.section import Section
from canaryproof.reports.training_document import header_of, label, row_of, spoken, value

_PURPLE = "#CC79A7"
_MOST_PANELS = 6
_WIDTH, _HEIGHT = 2.9, 2.2
_PLACE = "canife.svg"

Document = Mapping[str, Any]
Cell = Mapping[str, Any]
Audit = Mapping[str, Any]

_SHARES: dict[str, Callable[[Audit], list[float]]] = {
    "attack's accuracy": lambda audit: [float(attack["accuracy"]) for attack in audit["attacks"]],
    "canary's health": lambda audit: [float(attack["health"]) for attack in audit["attacks"]],
    "model's accuracy": lambda audit: [float(audit["model_accuracy"])],
}


def sections(document: Document) -> list[Section]:
    """Put what the audits found into tables.

    Parameters
    ----------
    document
        What was found, as JSON has it.
    """
    return [_epsilons(document), _attacks(document)]


def picture(document: Document) -> Figure:
    """Draw the audits, a column for each cell.

    Parameters
    ----------
    document
        What was found, as JSON has it.

    Returns
    -------
    Where a training has several audits, the first training's: ε̂ of rounds, of all rounds until then, and accuracies
    and health, as in Figures 1, 4 and 6. Where it has one, accuracy and deviation of all attacks against what is swept,
    as in Figures 3, 5, 8 and 9.
    """
    with mpl.rc_context(STYLE):
        if any(len(audits) > 1 for cell in document["cells"] for audits in _trainings(cell)):
            return _along(document["cells"][:_MOST_PANELS])
        return _at_end(document)


def _trainings(cell: Cell) -> list[Sequence[Audit]]:
    """Return the audits of each training of a cell."""
    return [run["canife"]["audits"] for result in cell["results"] for run in result["runs"]]


def _attacks_of(cell: Cell) -> Iterator[Mapping[str, Any]]:
    for audits in _trainings(cell):
        for audit in audits:
            yield from audit["attacks"]


def _deviation(attack: Mapping[str, Any]) -> float:
    """Return the mean deviation of scores with the canary and without, the paper's measure of a design."""
    return statistics.fmean(map(float, attack["deviations"]))


def _spread(values: Sequence[float], digits: int = 3) -> str:
    """Render the mean of numbers, and with several of them their standard deviation."""
    beyond = [value for value in values if not math.isfinite(value)]
    if beyond:
        return f"{'∞' if set(beyond) == {math.inf} else 'not finite'} in {len(beyond)} of {len(values)}"
    if not values:
        return "none"
    mean = f"{statistics.fmean(values):.{digits}g}"
    return f"{mean} ± {statistics.stdev(values):.2g}" if len(values) > 1 else mean


def _epsilon(found: float | str | None) -> str:
    if found is None:
        return "none known"
    return "∞" if math.isinf(float(found)) else f"{float(found):.4g}"


def _epsilons(document: Document) -> Section:
    rows = []
    for cell in document["cells"]:
        theory, found = cell["canife"], [run["canife"] for result in cell["results"] for run in result["runs"]]
        rounds = [
            _spread([float(attack[rule]["epsilon"]) for attack in _attacks_of(cell)])
            for rule in ("separated", "capped")
        ]
        trainings = []
        for rule in ("separated", "capped"):
            composed = [one["composed"][rule] for one in found]
            known = None not in composed
            trainings.append(_spread([float(e) for values in composed for e in values]) if known else "none known")
        numbers = [
            f"{cell['noise_multiplier']:.4g}",
            _epsilon(theory["round"]),
            *rounds,
            _epsilon(theory["training"]),
            *trainings,
        ]
        rows.append(row_of(cell, *numbers))
    plan = document["cells"][0]["settings"]
    note = (
        f"ε_r and ε are the paper's Rényi accounting at δ = {plan['audit']['delta']:g}, of a round with the client in "
        "it and of the training by Poisson sampling; ε̂_r and ε̂ are CANIFE's, with δ = 1/n for the scores and the "
        "training's for the rest. Without an error of either kind ε̂_r is ∞ (separated), or the largest finite value "
        "(capped). Mean ± standard deviation over all attacks, and over trainings and attacks of an audit. An ε̂ is "
        "neither an upper nor a lower bound on ε."
    )
    names = ("noise multiplier", "ε_r", "ε̂_r, separated", "ε̂_r, capped", "ε", "ε̂, separated", "ε̂, capped")
    alternative = "For each cell, ε̂ of rounds (triangles: ∞) and of the training, or accuracy and deviation of attacks"
    return Section(
        "CANIFE: ε̂ of rounds and trainings", header_of(document, *names), tuple(rows), note, _PLACE, alternative
    )


def _attacks(document: Document) -> Section:
    rows = []
    for cell in document["cells"]:
        attacks = list(_attacks_of(cell))
        trainings = _trainings(cell)
        models = [float(audit["model_accuracy"]) for audits in trainings for audit in audits]
        rows.append(
            row_of(
                cell,
                _spread([float(run["canife"]["rounds"]) for result in cell["results"] for run in result["runs"]], 4),
                str(len(attacks)),
                _spread(models),
                _spread([float(attack["accuracy"]) for attack in attacks]),
                _spread([_deviation(attack) for attack in attacks]),
                _spread([float(attack["health"]) for attack in attacks]),
                _spread([float(attack["loss"]) for attack in attacks]),
                str(sum(not attack["healthy"] for attack in attacks)),
            )
        )
    plan = document["cells"][0]["settings"]["canife"]
    note = (
        f"Attacks of {plan['scores']} trials in the first cell. Accuracy of a model is on held-out examples when it is "
        "audited, that of an attack at its best threshold. Deviation is the mean of that of scores with the canary and "
        "without. Health is the share of the initial loss that the design took away; a canary is poor if its loss is "
        "above 2% of what a sample without any gradient has. Mean ± standard deviation."
    )
    names = (
        "rounds",
        "attacks",
        "model accuracy",
        "attack accuracy",
        "deviation",
        "health",
        "design loss",
        "poor canaries",
    )
    return Section("CANIFE: attacks", header_of(document, *names), tuple(rows), note)


def _along(cells: Sequence[Cell]) -> Figure:
    """Draw the first training of each cell."""
    figure = Figure(figsize=(1.2 + _WIDTH * max(2, len(cells)), 3 * _HEIGHT + 0.8), layout="constrained")
    axes = figure.subplots(3, len(cells), squeeze=False, sharex="col")
    handles: dict[str, Any] = {}
    for column, cell in zip(axes.T, cells, strict=True):
        audits, theory = _trainings(cell)[0], cell["canife"]
        rounds = [audit["round"] for audit in audits]
        column[0].set_title(label(cell["swept"]))
        _round_epsilons(column[0], audits, float(theory["round"]))
        if theory["training"] is not None:
            _level(column[1], float(theory["training"]), "theory")
            composed = [statistics.fmean(map(float, audit["composed"]["capped"])) for audit in audits]
            column[1].plot(rounds, composed, ".-", color=BLUE, markersize=3, linewidth=1.0, label="measured")
            column[1].set_ylim(bottom=0.0)
        for (name, pick), colour in zip(_SHARES.items(), (_PURPLE, ORANGE, GREEN), strict=True):
            means = [statistics.fmean(pick(audit)) for audit in audits]
            column[2].plot(rounds, means, ".-", color=colour, markersize=3, linewidth=1.0, label=name)
        # A health below 0, of a design that got worse, is beyond the axis.
        column[2].set_ylim(0.0, 1.03)
        column[2].set_xlabel("round")
        for axis in column:
            handles |= {name: handle for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    for axis, words in zip(axes[:, 0], ("ε̂ of a round", "ε̂ of all rounds until then, capped", "share"), strict=True):
        axis.set_ylabel(words)
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=5, frameon=False)
    return figure


def _round_epsilons(axis: Axes, audits: Sequence[Audit], theory: float) -> None:
    """Draw ε̂ of audited rounds with their intervals; those without an upper end have none, as in Figure 4."""
    _level(axis, theory, "theory")
    for audit in audits:
        for attack in audit["attacks"]:
            found = attack["separated"]
            epsilon, lower, upper = (float(found[name]) for name in ("epsilon", "lower", "upper"))
            if math.isinf(epsilon):
                axis.plot(audit["round"], 0.97, "^", color=BLUE, markersize=4, transform=axis.get_xaxis_transform())
                continue
            if math.isfinite(upper):
                axis.plot([audit["round"]] * 2, [max(0.0, lower), upper], color=BLUE, alpha=0.35, linewidth=1.2)
            axis.plot(audit["round"], epsilon, ".", color=BLUE, markersize=4)
    axis.set_ylim(bottom=0.0)


def _level(axis: Axes, epsilon: float, name: str) -> None:
    if math.isfinite(epsilon):
        axis.axhline(epsilon, color=GREY, linewidth=1.0, linestyle="--", label=name)


def _at_end(document: Document) -> Figure:
    """Draw all attacks of each cell against the last axis of the sweep."""
    last = document["axes"][-1] if document["axes"] else []
    groups: dict[str, list[Cell]] = {}
    for cell in document["cells"]:
        title = label({name: one for name, one in cell["swept"].items() if name not in last})
        groups.setdefault(title, []).append(cell)
    shown = dict(list(groups.items())[:_MOST_PANELS])
    figure = Figure(figsize=(1.2 + _WIDTH * max(2, len(shown)), 2 * _HEIGHT + 0.6), layout="constrained")
    axes = figure.subplots(2, len(shown), squeeze=False, sharex="col", sharey="row")
    kinds: tuple[tuple[str, Callable[[Mapping[str, Any]], float]], ...] = (
        ("accuracy of the attack", lambda attack: float(attack["accuracy"])),
        ("deviation of scores", _deviation),
    )
    for axis, title in zip(axes[0], shown, strict=True):
        axis.set_title(title)
    for row, (name, pick) in zip(axes, kinds, strict=True):
        row[0].set_ylabel(name)
        for axis, cells in zip(row, shown.values(), strict=True):
            for place, cell in enumerate(cells):
                values = [pick(attack) for attack in _attacks_of(cell)]
                # A training may have ended before its first audit.
                if not values:
                    continue
                axis.plot([place] * len(values), values, ".", color=GREY, markersize=4)
                error = statistics.stdev(values) if len(values) > 1 else None
                axis.errorbar(
                    place + 0.12, statistics.fmean(values), error, fmt="o", color=BLUE, markersize=4, capsize=2
                )
            axis.set_xticks(range(len(cells)), [", ".join(value(cell["swept"][one]) for one in last) for cell in cells])
            axis.set_xlim(-0.6, max(len(cells), 2) - 0.4)
    axes[1, 0].set_ylim(bottom=0.0)
    figure.supxlabel(", ".join(spoken(name) for name in last), fontsize=9.0)
    return figure
