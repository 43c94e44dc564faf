"""The chapter on estimators: printed simulations and repeated ones, bias, deviation, coverage."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from canaryproof.reports.page import Page
from canaryproof.verify.audit.markup.digits import interval
from canaryproof.verify.audit.markup.figures import BLACK, BLUE, GREEN, GREY, ORANGE, STYLE
from canaryproof.verify.audit.markup.markdown import table
from canaryproof.verify.papers.check.results import Result, Run
from canaryproof.verify.papers.records.evidence import (
    DefaultEstimator,
    EqualVariances,
    EqualVariancesCell,
    EstimatorSweep,
    FittedBias,
    PrintedEstimate,
    SimulatedCell,
    SimulatedEstimate,
    UnequalVariances,
    UnequalVariancesCell,
    is_of,
    records,
)

_SWEEP, _ERRORS = "dimension-sweep.svg", "estimator-errors.svg"
_CAPTIONS = {
    _SWEEP: "ε̂ against the dimension: printed values and our simulations of two estimators",
    _ERRORS: "Root mean square error of three estimators against the true ratio of deviations",
}


def text(run: Run) -> str:
    """Render the chapter; "" without results on the estimators."""
    measured = {_SWEEP: _simulated(run), _ERRORS: _default_of(run)}
    pictures = [f"![{_CAPTIONS[name]}]({name})" for name, evidence in measured.items() if evidence]
    return "\n\n".join(filter(None, [_headline(run), *pictures, *sections(run)]))


def sections(run: Run) -> list[str]:
    """Render what a run found of the estimators as sections of Markdown, none where it has no such results."""
    parts = _printed_cells(_simulated(run))
    for equal in records(run, EqualVariances).values():
        parts += _equal(equal)
    for unequal in records(run, UnequalVariances).values():
        parts += _unequal(unequal)
    if default := _default_of(run):
        parts += _default(default)
    for bias in records(run, FittedBias).values():
        parts += _bias(bias)
    sweeps = records(run, EstimatorSweep, "estimators.")
    parts += [part for name, title in _SWEEPS.items() if name in sweeps for part in _sweep(title, sweeps[name])]
    return parts


def _simulated(run: Run) -> dict[str, SimulatedCell]:
    return records(run, SimulatedCell)


def _default_of(run: Run) -> DefaultEstimator | None:
    return records(run, DefaultEstimator, "estimators.").get("default-estimator")


def _headline(run: Run) -> str:
    """Say in a sentence how far each estimator is from the best of them; "" if it was not measured."""
    measured = _default_of(run)
    if measured is None:
        return ""
    errors_by_name = {
        name: [getattr(cell, name) / min(cell.pinned, cell.fitted, cell.adaptive) for cell in measured.cells]
        for name in ("pinned", "fitted", "adaptive")
    }
    spread = max(abs(cell.ratio - 1.0) for cell in measured.cells)
    parts = [f"`{name}` {max(ratios):.1f} times" for name, ratios in errors_by_name.items()]
    return (
        f"Where the deviations of observed and unobserved cosines differ by up to {spread:.0%}, an estimator's root "
        f"mean square error can be this many times the smallest one: {', '.join(parts)}."
    )


def _plus_minus(row: SimulatedEstimate) -> str:
    return f"{row.mean:.3f} ± {row.deviation:.3f}"


def _printed_cells(cells: Mapping[str, SimulatedCell]) -> list[str]:
    if not cells:
        return []
    first = next(iter(cells.values()))
    rows = []
    for name, cell in cells.items():
        readings_shown = [
            _plus_minus(of) + ("" if of.p_value >= cell.level else " ✗")
            for of in (cell.readings[reading] for reading in first.readings)
        ]
        rows.append((f"`{name}`", f"{cell.dim:.0e}", f"{cell.count}", f"{cell.epsilon:g}",
                     f"{cell.printed.mean:g} ± {cell.printed.deviation:g}", *readings_shown))  # fmt: skip
    return [
        "## Printed simulations and ours",
        f"Mean ± standard deviation of the estimate, δ = {first.delta:g}, {first.runs} simulations a cell of "
        f"ours, {first.printed.runs} printed. ✗: excluded at level {first.level:g} by the means or the "
        "deviations.",
        table(("cell", "d", "k", "ε", "printed", *first.readings), rows),
        "Proven enclosures of the means, for the parameters fitted in our runs:",
        table(
            ("cell", *first.readings),
            [
                (f"`{name}`", *(interval(cell.readings[reading].mean_certified) for reading in first.readings))
                for name, cell in cells.items()
            ],
        ),
    ]


def _estimator_rows(cell: EqualVariancesCell | UnequalVariancesCell, setting: Sequence[str]) -> list[tuple[str, ...]]:
    return [
        (*setting, name, f"{row.bias:+.3f}", f"{row.deviation:.3f}", f"{row.root_mean_square_error:.3f}",
         f"{row.coverage:.1%}", f"{row.below:.1%}", f"{row.width:.2f}")
        for name, row in cell.estimators.items()
    ]  # fmt: skip


_MEASURES = ("estimator", "bias", "deviation", "RMS error", "coverage", "truth below", "width")


def _equal(measured: EqualVariances) -> list[str]:
    rows = [row for cell in measured.cells for row in _estimator_rows(cell, (f"{cell.count}", f"{cell.epsilon:.4g}"))]
    return [
        "## Estimators where the variances agree",
        f"Algorithm 1 from its exact law, d = {measured.dim:.0e}, δ = {measured.delta:g}, {measured.runs} "
        "runs a cell; nominal coverage 95%.",
        table(("k", "ε", *_MEASURES), rows),
    ]


def _unequal(measured: UnequalVariances) -> list[str]:
    rows = [
        row
        for cell in measured.cells
        for row in _estimator_rows(
            cell, (f"{cell.distance:.4g}", f"{cell.ratio:.4g}", interval(cell.epsilon_certified))
        )
    ]
    return [
        "## Estimators where the variances differ",
        f"Normal cosines with √d times their deviation equal to the ratio, k = {measured.count}, δ = "
        f"{measured.delta:g}, {measured.runs} runs a cell.",
        table(("√d·μ", "ratio", "ε in", *_MEASURES), rows),
    ]


def _default(measured: DefaultEstimator) -> list[str]:
    rows = [
        (f"{cell.distance:.4g}", f"{cell.ratio:g}", interval(cell.epsilon_certified),
         f"{cell.pinned:.3f}", f"{cell.fitted:.3f}", f"{cell.adaptive:.3f}")
        for cell in measured.cells
    ]  # fmt: skip
    return [
        "## The default estimator",
        f"Root mean square error of ε̂, k = {measured.count}, δ = {measured.delta:g}, {measured.runs} runs a cell.",
        table(("√d·μ", "ratio", "ε in", "pinned", "fitted", "adaptive"), rows),
    ]


def _bias(measured: FittedBias) -> list[str]:
    rows = [
        (f"{cell.delta:g}", f"{cell.epsilon:g}", f"{cell.count}",
         f"{cell.bias:.4f} ± {cell.standard_error:.4f}", f"{cell.by_quadrature:.4f}",
         f"{cell.leading_term:.4f}")
        for cell in measured.cells
    ]  # fmt: skip
    return [
        "## The upward bias of `fitted`",
        "ε is V-shaped in the fitted variance: it rises on both sides of equality, so that any error of σ̂ raises it. "
        f"Bias at equal variances, {measured.runs} runs a cell.",
        table(("δ", "ε", "k", "simulated", "by quadrature", "leading term"), rows),
    ]


def _sweep(title: str, measured: EstimatorSweep) -> list[str]:
    rows = [
        (row.case, f"{row.dim:.0e}", f"{row.count}", f"{row.epsilon:g}", f"{row.data_norm:.4g}",
         f"{row.pinned_mean:.3f} ± {row.pinned_deviation:.3f}", interval(row.epsilon_certified),
         f"{row.fitted_mean:.3f}")
        for row in measured.rows
    ]  # fmt: skip
    return [
        f"## {title}",
        f"{measured.runs} runs a cell. Expected: ε of the noise multiplier σ·√(1 + (k + ‖Σxᵢ‖²)/(σ²d)).",
        table(("case", "d", "k", "ε", "‖Σxᵢ‖", "pinned", "expected, in", "fitted, mean"), rows),
    ]


_SWEEPS = {
    "count-sweep": "From 10 canaries on, at fixed dimension",
    "data-sweep": "Data vectors added to the canaries",
}

# Label, colour, marker, displacement, whose cells by their ids, and what is drawn of a cell.
_SERIES: tuple[
    tuple[str, str, str, float, str, Callable[[SimulatedCell], PrintedEstimate | SimulatedEstimate]], ...
] = (
    ("printed, Table 2", BLACK, "s", 0.56, "final.table2.", lambda cell: cell.printed),
    ("printed, reviews", GREY, "^", 0.76, "review.", lambda cell: cell.printed),
    ("pinned, simulated here", BLUE, "o", 1.0, "review.", lambda cell: cell.readings["pinned"]),
    ("fitted, simulated here", ORANGE, "D", 1.36, "review.", lambda cell: cell.readings["fitted, both directions"]),
)


@mpl.rc_context(STYLE)
def dimension_sweep(cells: Mapping[str, SimulatedCell]) -> Figure:
    """Draw printed and simulated estimates against the dimension, a panel for each ε; cells are by their claim's id."""
    levels = sorted({cell.epsilon for cell in cells.values()})
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    axes = figure.subplots(1, len(levels), squeeze=False)[0]
    for axis, epsilon in zip(axes, levels, strict=True):
        chosen = sorted((item for item in cells.items() if item[1].epsilon == epsilon), key=lambda item: item[1].dim)
        axis.axhline(epsilon, color=GREY, linewidth=0.8, zorder=0, label="analytical ε")
        for label, colour, marker, shift, prefix, pick in _SERIES:
            shown = [cell for name, cell in chosen if name.startswith(prefix)]
            positions = [cell.dim * shift for cell in shown]
            means, deviations = ([getattr(pick(cell), of) for cell in shown] for of in ("mean", "deviation"))
            style: dict[str, Any] = {"fmt": marker, "color": colour, "markersize": 4, "linewidth": 1.1, "capsize": 2}
            axis.errorbar(positions, means, deviations, **style, label=label)
        axis.set(xscale="log", title=f"analytical ε = {epsilon:g}", xlabel="dimension d, k = √d")
    axes[0].set_ylabel("ε̂, mean ± standard deviation of a run")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    return figure


@mpl.rc_context(STYLE)
def errors(measured: DefaultEstimator) -> Figure:
    """Draw three estimators' errors against the ratio of deviations."""
    distances = sorted({cell.distance for cell in measured.cells})
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.subplots(1, len(distances), squeeze=False)[0]
    for axis, distance in zip(axes, distances, strict=True):
        cells = sorted((c for c in measured.cells if c.distance == distance), key=lambda c: c.ratio)
        equal = next(cell.epsilon for cell in cells if cell.ratio == 1.0)
        for name, colour, marker in (("pinned", BLUE, "o"), ("fitted", ORANGE, "D"), ("adaptive", GREEN, "s")):
            ratios, deviations = ([getattr(cell, of) for cell in cells] for of in ("ratio", name))
            axis.plot(ratios, deviations, color=colour, marker=marker, markersize=4, linewidth=1.1, label=name)
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_locator(NullLocator())
        axis.set(title=f"ε = {equal:g} at equal deviations, k = {measured.count:,}")
        axis.set(xlabel="true ratio of deviations, observed to null")
    axes[0].set_ylabel("root mean square error of ε̂")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def _figures(run: Run) -> dict[str, Figure]:
    pictures = {}
    if simulated := _simulated(run):
        pictures[_SWEEP] = dimension_sweep(simulated)
    if measured := _default_of(run):
        pictures[_ERRORS] = errors(measured)
    return pictures


def _picture_of(result: Result) -> str:
    if is_of(result, SimulatedCell):
        return _SWEEP
    return _ERRORS if is_of(result, DefaultEstimator) else ""


PAGE = Page(
    "estimators",
    "Estimators",
    "Estimators: error, bias, deviation",
    text,
    figures=_figures,
    pictures=tuple(_CAPTIONS),
    picture_of=_picture_of,
    captions=_CAPTIONS,
)
