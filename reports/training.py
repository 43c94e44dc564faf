"""The page of a training experiment with its pictures, made from its record."""

import math
import shlex
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from canaryproof.verify.audit.markup.digits import plus_minus, round_down
from canaryproof.verify.audit.markup.figures import BLUE, GREEN, GREY, ORANGE, STYLE, svg
from canaryproof.verify.audit.markup.markdown import Section, code, literal, page, without_tags
from canaryproof.verify.papers.records.training_record import (
    DATA_KNOWN,
    DATA_UNKNOWN,
    BoundRecord,
    CanifeAttackRecord,
    CanifeAuditRecord,
    CanifeRecord,
    CanifeTheory,
    CellRecord,
    ExperimentRecord,
    FitRecord,
    KnownRoundsRecord,
    RepetitionRecord,
    TrainingSeconds,
)

# The paper's own estimate, line 13 of Algorithm 2 and line 19 of Algorithm 3, and this package's default bound.
ESTIMATE, BOUND = "fitted", "fixed-sequence"


class ThreatModel(NamedTuple):
    """The view of an attacker, in a word and in a sentence."""

    name: str
    score: str


ATTACKS = {
    "all": ThreatModel("all rounds", "Algorithm 3: the largest cosine with any round's delta"),
    "final": ThreatModel("final model", "Algorithm 2 as printed: the cosine with θ_T"),
    "change": ThreatModel("change of the model", "Algorithm 2 with θ_T − θ₀, as the initial model is public"),
}


def spoken(field: str) -> str:
    """Name a field in words."""
    return field.partition(".")[2].replace("_", " ")


def value(swept: Any) -> str:
    """Render a swept value."""
    if isinstance(swept, float) or swept == "inf":
        return "∞" if math.isinf(float(swept)) else f"{swept:g}"
    return str(swept)


def label(swept: Mapping[str, Any]) -> str:
    """Name a cell, or a part of its swept values."""
    return ", ".join(f"{spoken(field)} {value(setting)}" for field, setting in swept.items())


def header_of(document: ExperimentRecord, *names: str) -> tuple[str, ...]:
    """Return the header of a table with a row for each cell: its swept fields, and the names of what is found."""
    return *(spoken(field) for axis in document.axes for field in axis), *names


def row_of(cell: CellRecord, *values: str) -> tuple[str, ...]:
    """Return a cell's row of such a table."""
    return *map(value, cell.swept.values()), *values


def has_canaries(document: ExperimentRecord) -> bool:
    """Whether there are random canaries in the trainings."""
    return document.cells[0].results[0].audits is not None


def has_canife(document: ExperimentRecord) -> bool:
    """Whether CANIFE audits the trainings."""
    return document.cells[0].canife is not None


# Pictures: densities of scores, as in Figures 1 and 3, and ε̂ with bounds, as in 2 and 4.


_COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
_MOST_PANELS = 6
_FEWEST_PLACES = 4


def densities(document: ExperimentRecord) -> Figure:
    """Draw densities of the observed canaries' scores, a row for each attack and a panel for each noise, say.

    All axes of the sweep but the last make panels, the last one the curves in them; where there are too many panels the
    first ones are drawn.
    """

    def draw(axis: Axes, attack: str, cells: Sequence[CellRecord], last: Sequence[str]) -> None:
        low, high = -4.0, 4.0
        for colour, cell, name in zip(_COLOURS, cells, last, strict=False):
            density = (cell.results[0].densities or {})[attack]
            x = np.linspace(density.low, density.high, len(density.y))
            axis.plot(x, density.y, color=colour, linewidth=1.1, label=name)
            low, high = min(low, density.low), max(high, density.high)
        if attack != "all":
            x = np.linspace(-4.0, 4.0, 161)
            axis.plot(x, np.exp(-0.5 * x**2) / math.sqrt(2.0 * math.pi), color="#000000", linewidth=0.9, label="null")
        axis.set(xlim=(low, high), yticks=[])

    return _panels(document, draw, "score in the null's standard deviations, from its mean on", "density")


def estimates(document: ExperimentRecord) -> Figure:
    """Draw estimates as bars and lower bounds as ticks, arranged like ``densities``.

    Over repetitions, means are drawn, and the bars' standard deviations.
    """

    def draw(axis: Axes, attack: str, cells: Sequence[CellRecord], last: Sequence[str]) -> None:
        for position, cell in enumerate(cells):
            audits = [result.audit(attack) for result in cell.results]
            values = [audit.estimates[ESTIMATE].epsilon for audit in audits]
            bound = statistics.fmean(audit.bounds[BOUND].value for audit in audits)
            error = statistics.stdev(values) if len(values) > 1 else None
            axis.bar(position, statistics.fmean(values), 0.6, color=BLUE, yerr=error, capsize=2)
            axis.plot([position - 0.38, position + 0.38], [bound, bound], color=ORANGE, linewidth=2.0)
        axis.set_xticks(range(len(cells)), last)
        # A single bar is no wall.
        room = max(0.6, 0.5 * (_FEWEST_PLACES - len(cells)) + 0.1)
        axis.set_xlim(-room, len(cells) - 1 + room)
        axis.set_ylim(bottom=0.0)

    return _panels(document, draw, "", "ε̂ (bars, with standard deviations), lower bound (ticks)")


def _panels(
    document: ExperimentRecord,
    draw: Callable[[Axes, str, Sequence[CellRecord], Sequence[str]], None],
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
                handles |= {entry: handle for handle, entry in zip(*axis.get_legend_handles_labels(), strict=True)}
        names = ", ".join(spoken(name) for name in (document.axes or [[]])[-1])
        figure.supxlabel(f"{below}{'; ' * bool(below and names)}{names}", fontsize=9.0)
        figure.supylabel(beside, fontsize=9.0)
        if handles:
            figure.legend(handles.values(), handles, loc="outside upper center", ncols=6, frameon=False)
        return figure


def _groups(document: ExperimentRecord) -> dict[str, tuple[list[CellRecord], list[str]]]:
    """Cells by panel, with what tells the cells of a panel apart."""
    last = document.axes[-1] if document.axes else []
    groups: dict[str, tuple[list[CellRecord], list[str]]] = {}
    for cell in document.cells:
        title = label({name: setting for name, setting in cell.swept.items() if name not in last})
        cells, names = groups.setdefault(title, ([], []))
        cells.append(cell)
        names.append(", ".join(value(cell.swept[name]) for name in last))
    return dict(list(groups.items())[:_MOST_PANELS])


# CANIFE's part of the page.


_PURPLE = "#CC79A7"
_WIDTH, _HEIGHT = 2.9, 2.2
_PICTURE = "canife.svg"


_SHARES: dict[str, Callable[[CanifeAuditRecord], list[float]]] = {
    "attack's accuracy": lambda audit: [attack.accuracy for attack in audit.attacks],
    "canary's health": lambda audit: [attack.canary.health for attack in audit.attacks],
    "model's accuracy": lambda audit: [audit.model_accuracy],
}


def canife_sections(document: ExperimentRecord) -> list[Section]:
    """Put what the audits found into tables."""
    return [_epsilons(document), _attacks(document)]


def picture(document: ExperimentRecord) -> Figure:
    """Draw the audits, a column for each cell.

    Where a training has several audits, the first training's: ε̂ of rounds, of all rounds until then, and accuracies
    and health, as in Figures 1, 4, 5c and 6; and of all trainings ε̂ of a round against the attack's accuracy, as in
    Figure 7. Where it has one, accuracy, deviation and health of all attacks against what is swept, as in Figures 3, 5,
    8 and 9.
    """
    with mpl.rc_context(STYLE):
        if any(len(record.audits) > 1 for cell in document.cells for record in _audited(cell)):
            return _along(document.cells[:_MOST_PANELS])
        return _at_end(document)


def _audited(cell: CellRecord) -> list[CanifeRecord]:
    """Return CANIFE's part of each training of a cell."""
    return [run.canife for run in cell.runs() if run.canife is not None]


def _attacks_of(cell: CellRecord) -> Iterator[CanifeAttackRecord]:
    for record in _audited(cell):
        for audit in record.audits:
            yield from audit.attacks


def _spread(values: Sequence[float], digits: int = 3) -> str:
    """Render the mean of numbers, and with several of them their standard deviation."""
    beyond = [number for number in values if not math.isfinite(number)]
    if beyond:
        return f"{'∞' if set(beyond) == {math.inf} else 'not finite'} in {len(beyond)} of {len(values)}"
    if not values:
        return "none"
    mean = f"{statistics.fmean(values):.{digits}g}"
    return f"{mean} ± {statistics.stdev(values):.2g}" if len(values) > 1 else mean


def _theory(cell: CellRecord) -> CanifeTheory:
    assert cell.canife is not None
    return cell.canife


def _epsilon(epsilon: float | None) -> str:
    if epsilon is None:
        return "none known"
    return "∞" if math.isinf(epsilon) else f"{epsilon:.4g}"


def _epsilons(document: ExperimentRecord) -> Section:
    rows = []
    for cell in document.cells:
        theory, audited = _theory(cell), _audited(cell)
        rounds = [
            _spread([getattr(attack.epsilon, rule).epsilon for attack in _attacks_of(cell)])
            for rule in ("separated", "capped")
        ]
        trainings = []
        for rule in ("separated", "capped"):
            composed = [record.composed[rule] for record in audited]
            values = [epsilon for each in composed for epsilon in each or ()]
            trainings.append("none known" if None in composed else _spread(values))
        numbers = [
            f"{cell.noise_multiplier:.4g}",
            _epsilon(theory.round),
            *rounds,
            _epsilon(theory.training),
            *trainings,
        ]
        rows.append(row_of(cell, *numbers))
    plan = document.cells[0].settings
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
        "CANIFE: ε̂ of rounds and trainings", header_of(document, *names), tuple(rows), note, _PICTURE, alternative
    )


def _attacks(document: ExperimentRecord) -> Section:
    rows = []
    for cell in document.cells:
        attacks = list(_attacks_of(cell))
        models = [audit.model_accuracy for record in _audited(cell) for audit in record.audits]
        rows.append(
            row_of(
                cell,
                _spread([float(record.rounds) for record in _audited(cell)], 4),
                str(len(attacks)),
                _spread(models),
                _spread([attack.accuracy for attack in attacks]),
                _spread([attack.deviation for attack in attacks]),
                _spread([attack.canary.health for attack in attacks]),
                _spread([attack.canary.loss for attack in attacks]),
                str(sum(not attack.canary.healthy for attack in attacks)),
            )
        )
    plan = document.cells[0].settings["canife"]
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


def _along(cells: Sequence[CellRecord]) -> Figure:
    """Draw the first training of each cell."""
    figure = Figure(figsize=(1.2 + _WIDTH * max(2, len(cells)), 4 * _HEIGHT + 1.2), layout="constrained")
    axes = figure.subplots(4, len(cells), squeeze=False)
    handles: dict[str, Any] = {}
    for column, cell in zip(axes.T, cells, strict=True):
        for axis in column[1:3]:
            axis.sharex(column[0])
        audits, theory = _audited(cell)[0].audits, _theory(cell)
        rounds = [audit.round for audit in audits]
        column[0].set_title(label(cell.swept))
        _round_epsilons(column[0], audits, theory.round)
        if theory.training is not None:
            _level(column[1], theory.training, "theory")
            composed = [statistics.fmean(audit.composed["capped"] or ()) for audit in audits]
            column[1].plot(rounds, composed, ".-", color=BLUE, markersize=3, linewidth=1.0, label="measured")
            column[1].set_ylim(bottom=0.0)
        for (name, pick), colour in zip(_SHARES.items(), (_PURPLE, ORANGE, GREEN), strict=True):
            means = [statistics.fmean(pick(audit)) for audit in audits]
            column[2].plot(rounds, means, ".-", color=colour, markersize=3, linewidth=1.0, label=name)
        # A health below 0, of a design that got worse, is beyond the axis.
        column[2].set_ylim(0.0, 1.03)
        column[2].set_xlabel("round")
        pairs = [(attack.accuracy, attack.epsilon.separated.epsilon) for attack in _attacks_of(cell)]
        finite = [pair for pair in pairs if math.isfinite(pair[1])]
        if finite:
            column[3].plot(*zip(*finite, strict=True), ".", color=BLUE, markersize=4, label="ε̂ of an attack")
        column[3].set_xlim(0.45, 1.03)
        column[3].set_ylim(bottom=0.0)
        column[3].set_xlabel("attack's accuracy, all trainings")
        for axis in column:
            handles |= {name: handle for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    names = "ε̂ of a round", "ε̂ until then, capped", "share", "ε̂ of a round"
    for axis, name in zip(axes[:, 0], names, strict=True):
        axis.set_ylabel(name)
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=5, frameon=False)
    return figure


def _round_epsilons(axis: Axes, audits: Sequence[CanifeAuditRecord], theory: float) -> None:
    """Draw ε̂ of audited rounds with their intervals; those without an upper end have none, as in Figure 4."""
    _level(axis, theory, "theory")
    for audit in audits:
        for attack in audit.attacks:
            estimate = attack.epsilon.separated
            epsilon, lower, upper = (getattr(estimate, name) for name in ("epsilon", "lower", "upper"))
            if math.isinf(epsilon):
                top = axis.get_xaxis_transform()
                axis.plot(audit.round, 0.97, "^", color=BLUE, markersize=4, transform=top, label="ε̂ = ∞")
                continue
            if math.isfinite(upper):
                axis.plot(
                    [audit.round] * 2, [max(0.0, lower), upper], color=BLUE, alpha=0.35, linewidth=1.2, label="interval"
                )
            axis.plot(audit.round, epsilon, ".", color=BLUE, markersize=4, label="ε̂ of an attack")
    axis.set_ylim(bottom=0.0)


def _level(axis: Axes, epsilon: float, name: str) -> None:
    if math.isfinite(epsilon):
        axis.axhline(epsilon, color=GREY, linewidth=1.0, linestyle="--", label=name)


def _at_end(document: ExperimentRecord) -> Figure:
    """Draw all attacks of each cell against the last axis of the sweep."""
    last = document.axes[-1] if document.axes else []
    groups: dict[str, list[CellRecord]] = {}
    for cell in document.cells:
        title = label({name: setting for name, setting in cell.swept.items() if name not in last})
        groups.setdefault(title, []).append(cell)
    shown = dict(list(groups.items())[:_MOST_PANELS])
    figure = Figure(figsize=(1.2 + _WIDTH * max(2, len(shown)), 3 * _HEIGHT + 0.6), layout="constrained")
    axes = figure.subplots(3, len(shown), squeeze=False, sharex="col", sharey="row")
    kinds: tuple[tuple[str, Callable[[CanifeAttackRecord], float]], ...] = (
        ("accuracy of the attack", lambda attack: attack.accuracy),
        ("deviation of scores", lambda attack: attack.deviation),
        ("health of the canary", lambda attack: attack.canary.health),
    )
    for axis, title in zip(axes[0], shown, strict=True):
        axis.set_title(title)
    handles: dict[str, Any] = {}
    for row, (name, pick) in zip(axes, kinds, strict=True):
        row[0].set_ylabel(name)
        for axis, cells in zip(row, shown.values(), strict=True):
            for position, cell in enumerate(cells):
                values = [pick(attack) for attack in _attacks_of(cell)]
                # A training may have ended before its first audit.
                if not values:
                    continue
                axis.plot([position] * len(values), values, ".", color=GREY, markersize=4, label="an attack")
                error = statistics.stdev(values) if len(values) > 1 else None
                axis.errorbar(
                    position + 0.12, statistics.fmean(values), error, fmt="o", color=BLUE, markersize=4, capsize=2,
                    label="mean ± standard deviation",
                )  # fmt: skip
                handles |= {name: handle for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
            axis.set_xticks(range(len(cells)), [", ".join(value(cell.swept[name]) for name in last) for cell in cells])
            axis.set_xlim(-0.6, max(len(cells), 2) - 0.4)
    axes[1, 0].set_ylim(bottom=0.0)
    # As along a training: a design that got worse is beyond the axis.
    axes[2, 0].set_ylim(0.0, 1.03)
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=2, frameon=False)
    figure.supxlabel(", ".join(spoken(name) for name in last), fontsize=9.0)
    return figure


# The page.


_ESTIMATORS = ("adaptive", "pinned", "fitted", "threshold")
_COVERAGES = ("proven", "asymptotic", "heuristic")
_ORDERS = (0.1, 0.3, 0.5, 0.7, 0.9)
# Fewer repetitions have no such quantiles.
_FEWEST_FOR_QUANTILES = 5


def render(document: ExperimentRecord) -> dict[str, str]:
    """Make the page and its pictures: equal records give equal bytes."""
    return {
        "results.md": without_tags(text(document)),
        **{name: svg(figure) for name, figure in figures(document).items()},
    }


def text(document: ExperimentRecord, timings: Sequence[TrainingSeconds] = ()) -> str:
    """Make the page, as Markdown, with what the trainings took if that is given."""
    parts = [about(document), *(f"**Warning:** {literal(warning)}" for warning in warnings(document))]
    return page(literal(document.title or document.name), _headline(document), parts, sections(document, timings))


def figures(document: ExperimentRecord) -> dict[str, Figure]:
    """Draw the pictures, by file name."""
    drawn = {}
    if has_canaries(document):
        drawn = {"densities.svg": densities(document), "estimates.svg": estimates(document)}
    if has_canife(document):
        drawn["canife.svg"] = picture(document)
    return drawn


def _headline(document: ExperimentRecord) -> str:
    """Say in a sentence what an attacker who sees all rounds estimates, and what accounting proves."""
    known = [cell.analytical.epsilon for cell in document.cells if cell.analytical.epsilon is not None]
    proven = f"the analytical ε is {_between(known)}" if known else "no analytical ε is known"
    if not has_canaries(document):
        means = [
            statistics.fmean(values)
            for cell in document.cells
            if (values := [attack.epsilon.capped.epsilon for attack in _attacks_of(cell)])
        ]
        return f"CANIFE's mean ε̂ of a round is {_between(means)}, and {proven} of the training."
    audits = [[result.audit("all") for result in cell.results] for cell in document.cells]
    means = [statistics.fmean(audit.estimates[ESTIMATE].epsilon for audit in cell) for cell in audits]
    bounds = [statistics.fmean(audit.bounds[BOUND].value for audit in cell) for cell in audits]
    low, high = _down([min(bounds)]), _down([max(bounds)])
    confidence = document.cells[0].settings["audit"]["confidence"]
    known = [each.epsilon.epsilon for cell in document.cells for each in _measured(cell, DATA_UNKNOWN)]
    also = f" For one who also knows a canary's rounds ε̂ is {_between(known)}." if known else ""
    return (
        f"For an attacker who sees all rounds ε̂ is {_between(means)}, the {confidence:.0%} lower bound is "
        f"{low if low == high else f'{low} to {high}'}, and {proven}.{also}"
    )


def _between(values: Sequence[float]) -> str:
    low, high = (value(float(f"{end(values):.3g}")) for end in (min, max)) if values else ("none", "none")
    return low if low == high else f"{low} to {high}"


def about(document: ExperimentRecord) -> str:
    """Say what was done."""
    cells = document.cells
    like = f" Analogue of {literal(document.source)}." if document.source else ""
    clients, dim, rounds = (_range([getattr(cell, name) for cell in cells]) for name in ("clients", "dim", "rounds"))
    folder = "" if all(cell.federation == "digits" for cell in cells) else " --data FOLDER"
    command = f"canaryproof train {shlex.quote(document.name)} --size {document.size}{folder} --out RESULTS"
    return (
        f"{code(command)}, seed {document.seed}, "
        f"repetitions: {document.repetitions}.{like} Data: {literal(cells[0].federation)}, {clients} clients; "
        f"{literal(cells[0].settings['model']['name'])} with d = {dim} parameters; {rounds} rounds."
    )


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def sections(document: ExperimentRecord, timings: Sequence[TrainingSeconds] = ()) -> list[Section]:
    """Put all that was found into tables, and what the trainings took if that is given."""
    parts = []
    if has_canaries(document):
        parts += first_sections(document)
    if has_canife(document):
        parts += canife_sections(document)
    parts.append(_accounting(document))
    if has_canaries(document):
        parts += [_attack(document, attack) for attack in ATTACKS]
        parts += [_bounds(document, attack) for attack in ATTACKS]
        if document.repetitions >= _FEWEST_FOR_QUANTILES:
            parts.append(_quantiles(document))
    if any(cell.settings["audit"]["without_canaries"] for cell in document.cells):
        parts.append(_utility(document))
    return [*parts, _times(document, timings)] if timings else parts


def warnings(document: ExperimentRecord) -> list[str]:
    """Say what the trainings warned of, each with its cell, repetition and run."""
    return [
        f"{label(cell.swept) or 'training'}, repetition {i}, run {j}: {warning}"
        for cell in document.cells
        for i, result in enumerate(cell.results)
        for j, run in enumerate(result.runs)
        for warning in run.warnings
    ]


def _over(cell: CellRecord, pick: Callable[[RepetitionRecord], tuple[float, float]]) -> str:
    """Render a number with its standard error; over repetitions, their mean with their standard deviation."""
    picked = [pick(result) for result in cell.results]
    if len(picked) == 1:
        return plus_minus(*map(float, picked[0]))
    values = [item for item, _ in picked]
    return plus_minus(statistics.fmean(values), statistics.stdev(values))


def _with_error(attack: str, name: str) -> Callable[[RepetitionRecord], tuple[float, float]]:
    return lambda result: (getattr(result.audit(attack), name), getattr(result.audit(attack), f"{name}_error"))


def _estimate(cell: CellRecord, attack: str, name: str) -> str:
    def pick(result: RepetitionRecord) -> tuple[float, float]:
        estimate = result.audit(attack).estimates[name]
        return estimate.epsilon, estimate.standard_error

    return _over(cell, pick)


def _down(values: Sequence[float]) -> str:
    """Render the mean of bounds, rounded down."""
    return round_down(statistics.fmean(values))


def _analytical(cell: CellRecord) -> str:
    epsilon = cell.analytical.epsilon
    return "none known" if epsilon is None else value(epsilon)


def _estimates(document: ExperimentRecord) -> Section:
    rows = []
    for cell in document.cells:
        row = [f"{cell.noise_multiplier:.4g}", _analytical(cell)]
        for attack in ATTACKS:
            bounds = [result.audit(attack).bounds[BOUND].value for result in cell.results]
            row.append(f"{_estimate(cell, attack, ESTIMATE)}; ≥ {_down(bounds)}")
        rows.append(row_of(cell, *row))
    plan = document.cells[0].settings["audit"]
    several = " Over repetitions: mean ± standard deviation; mean bound." if document.repetitions > 1 else ""
    note = (
        f"δ = {plan['delta']:g}. First ε̂ by `{ESTIMATE}`, the paper's estimate, ± its standard error, then the lower "
        f"bound `{BOUND}` at {plan['confidence']:.0%}.{several} An ε̂ is neither an upper nor a lower bound on ε."
    )
    alternative = "A row of panels for each attack: ε̂ as bars and lower bounds as ticks, with the table's numbers"
    header = header_of(document, "noise multiplier", "analytical ε", *(attack.name for attack in ATTACKS.values()))
    return Section("Estimates and bounds", header, tuple(rows), note, "estimates.svg", alternative)


# Knowledge of an attacker who sees all rounds.
_KNOWS = {DATA_UNKNOWN: "a canary's rounds", DATA_KNOWN: "rounds and clients' data"}


def _has_known_rounds(document: ExperimentRecord) -> bool:
    return all(run.known_rounds is not None for cell in document.cells for run in cell.runs())


def _measured(cell: CellRecord, knowledge: str) -> list[KnownRoundsRecord]:
    return [(run.known_rounds or {})[knowledge] for run in cell.runs() if knowledge in (run.known_rounds or {})]


def _with_interval(numbers: Sequence[tuple[float, float, float]]) -> str:
    """Render a number with its interval, or the mean of several with their deviation."""
    if not numbers:
        return "not measured"
    first, low, high = (value(float(f"{end:.3g}")) for end in numbers[0])
    return f"{first} ({low} to {high})" if len(numbers) == 1 else _spread([number for number, _, _ in numbers])


def _known_rounds(cell: CellRecord, knowledge: str) -> str:
    """Render the composed ε̂ of an attacker who knows the rounds, and the lower bound from the scores."""
    records = _measured(cell, knowledge)
    shown = _with_interval([(each.epsilon.epsilon, each.epsilon.low, each.epsilon.high) for each in records])
    bounds = [record.bound for record in records if record.bound is not None]
    return f"{shown}; ≥ {_down(bounds)}" if bounds else shown


def _knowing(document: ExperimentRecord) -> Section:
    """Put ε̂ by what the attacker knows into a table, from the paper's to the adversary of the definition."""
    rows = []
    for cell in document.cells:
        row = [f"{cell.noise_multiplier:.4g}", _estimate(cell, "all", ESTIMATE)]
        for knowledge in _KNOWS:
            noise = [(each.noise_multiplier, each.low, each.high) for each in _measured(cell, knowledge)]
            row += [_with_interval(noise), _known_rounds(cell, knowledge)]
        rows.append(row_of(cell, *row))
    note = (
        "All see all rounds. The paper's attacker knows no more and takes the largest cosine. Who knows rounds "
        "measures the noise multiplier by the canaries: of one training with its interval, of several the mean ± "
        "deviation. Without the clients' data it is of noise and data together, which is at least the noise. ε̂ is "
        "the analytical accounting at this noise, and the bound is of the scores of known rounds. Orthonormal canaries "
        f"measure with known data alone.{_carried_over(document)}"
    )
    names = [f"{measure}: {knows}" for knows in _KNOWS.values() for measure in ("noise", "ε̂")]
    header = header_of(document, "noise multiplier", "ε̂: largest cosine", *names)
    return Section("What attackers know", header, tuple(rows), note)


def _carried_over(document: ExperimentRecord) -> str:
    """Say whether later rounds depend on canaries, by all trainings whose canaries were scored by their rounds."""
    records = [record for cell in document.cells for record in _measured(cell, DATA_UNKNOWN)]
    values = [record.carry_over for record in records if record.carry_over is not None]
    if not values:
        return ""
    largest = max(values, key=abs)
    return (
        f" After their first rounds canaries' cosines are {abs(largest):.1f} standard errors "
        f"{'above' if largest > 0.0 else 'below'} 0 at most: beyond 6 later rounds would depend on them."
    )


def first_sections(document: ExperimentRecord) -> list[Section]:
    """Make the tables that come first, and that the command prints."""
    if not has_canaries(document):
        return [canife_sections(document)[0]]
    return [_estimates(document), *([_knowing(document)] if _has_known_rounds(document) else [])]


def _accounting(document: ExperimentRecord) -> Section:
    rows = tuple(
        row_of(cell, _analytical(cell), cell.analytical.relation, cell.analytical.rule) for cell in document.cells
    )
    whose = "canary" if has_canaries(document) else "client"
    note = (
        f"Of the least protected {whose} in all trainings, for an attacker who sees all rounds; nothing better is "
        "known for the final model."
    )
    return Section("Analytical ε", header_of(document, "analytical ε", "neighbours", "rule"), rows, note)


def _attack(document: ExperimentRecord, attack: str) -> Section:
    header = [*(f"ε̂, {name}" for name in _ESTIMATORS), "distance", "deviation ratio", "normal: A²", "p"]
    if attack != "all":
        header.append("null law: p")
    rows = []
    for cell in document.cells:
        row = [_estimate(cell, attack, name) for name in _ESTIMATORS]
        row += [_over(cell, _with_error(attack, name)) for name in ("distance", "ratio")]
        first, nulls = cell.results[0].audit(attack), (cell.results[0].audits or {})[attack]
        row += _fit(first.normality)
        if attack != "all":
            row.append(_fit(nulls["unobserved"].null_law)[1])
        rows.append(row_of(cell, *row))
    units = (
        "Distance and ratio of mean and deviation are in units of the unobserved canaries' maxima."
        if attack == "all"
        else "Distance is √d·μ̂ and ratio √d·σ̂; the null law's p is of Kolmogorov and Smirnov's test that cosines of "
        "unobserved canaries follow Theorem 3.1."
    )
    of_first = ", of the first repetition" if document.repetitions > 1 else ""
    note = f"{ATTACKS[attack].score}. {units} A² is Anderson and Darling's statistic, as in Table 6{of_first}."
    if attack != "final":
        return Section(f"Attack: {ATTACKS[attack].name}", header_of(document, *header), tuple(rows), note)
    alternative = "A row of panels for each attack: densities of observed canaries' scores, and the null's in black"
    title = f"Attack: {ATTACKS[attack].name}"
    return Section(title, header_of(document, *header), tuple(rows), note, "densities.svg", alternative)


def _fit(fit: FitRecord | None) -> tuple[str, str]:
    assert fit is not None
    return f"{fit.statistic:.3g}", f"{fit.p_value:.2g}"


def _bounds(document: ExperimentRecord, attack: str) -> Section:
    """Show every bound under the null that serves it, the exact one if both do."""

    def bounds(result: RepetitionRecord) -> dict[str, BoundRecord]:
        nulls = (result.audits or {})[attack]
        return {**nulls["unobserved"].bounds, **(nulls["exact"].bounds if "exact" in nulls else {})}

    plan = document.cells[0].settings["audit"]
    known = bounds(document.cells[0].results[0])
    methods = sorted(known, key=lambda name: _COVERAGES.index(known[name].coverage))
    rows = tuple(
        row_of(cell, *(_down([bounds(result)[name].value for result in cell.results]) for name in methods))
        for cell in document.cells
    )
    kinds = "; ".join(
        f"{coverage}: {', '.join(of_kind)}"
        for coverage in _COVERAGES
        if (of_kind := [f"`{name}`" for name in methods if known[name].coverage == coverage])
    )
    note = (
        f"At {plan['confidence']:.0%}; coverage is {kinds}. A heuristic one may be above ε in any share of audits, and "
        "`bayesian` is the lower end of a posterior interval."
    )
    return Section(f"Lower bounds, {ATTACKS[attack].name}", header_of(document, *methods), rows, note)


def _quantiles(document: ExperimentRecord) -> Section:
    rows = []
    for cell in document.cells:
        for attack in ATTACKS:
            values = [r.audit(attack).estimates[ESTIMATE].epsilon for r in cell.results]
            quantiles = np.quantile(values, _ORDERS)
            rows.append(row_of(cell, ATTACKS[attack].name, *(f"{quantile:.3g}" for quantile in quantiles)))
    note = f"Quantiles of ε̂ (`{ESTIMATE}`) over {document.repetitions} repetitions, as in Table 5."
    return Section("Quantiles", header_of(document, "attack", *map(str, _ORDERS)), tuple(rows), note)


def _utility(document: ExperimentRecord) -> Section:
    rows = []
    for cell in document.cells:
        runs = list(cell.runs())
        pairs = [(run.accuracy, run.accuracy_without) for run in runs if run.accuracy_without is not None]
        if len(pairs) < len(runs):
            continue
        means = [statistics.fmean(accuracies) for accuracies in zip(*pairs, strict=True)]
        differences = [100.0 * (accuracy - without) for accuracy, without in pairs]
        difference = f"{statistics.fmean(differences):+.2f}"
        if len(pairs) > 1:
            difference += f" ± {statistics.stdev(differences) / math.sqrt(len(pairs)):.2g}"
        rows.append(row_of(cell, *(f"{mean:.2%}" for mean in means), difference))
    header = header_of(document, "accuracy with canaries", "without", "difference, points")
    note = (
        f"Share of the {document.cells[0].test_examples:,} held-out examples that are recognised. Both models "
        "have the same seeds; over several pairs, ± the standard error of the mean difference."
    )
    return Section("Utility", header, tuple(rows), note)


def _times(document: ExperimentRecord, timings: Sequence[TrainingSeconds]) -> Section:
    rows = []
    for i, cell in enumerate(document.cells):
        own = [row for row in timings if row.cell == i]
        training, scoring = math.fsum(row.training for row in own), math.fsum(row.scoring for row in own)
        share = scoring / (training + scoring) if training + scoring else 0.0
        times = [str(len(own)), f"{training:.3g}", f"{scoring:.3g}", f"{share:.0%}"]
        if has_canife(document):
            times += [f"{math.fsum(getattr(row, name) or 0.0 for row in own):.3g}" for name in ("design", "attack")]
        rows.append(row_of(cell, *times))
    names = ["models", "seconds training", "seconds scoring", "share of scoring"]
    if has_canife(document):
        names += ["seconds designing", "seconds attacking"]
    return Section("Time", header_of(document, *names), tuple(rows), "Of this run on this machine.")
