"""The chapter on estimators: printed simulations and repeated ones, bias, deviation, coverage."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from canaryproof.reports.figures import BLACK, BLUE, GREEN, GREY, ORANGE, STYLE
from canaryproof.reports.markdown import interval, table
from canaryproof.verify.check.results import Run

Evidence = Mapping[str, Any]


def sections(run: Run) -> list[str]:
    """Render what a run found of the estimators as sections of Markdown, none where it has no such results."""
    evidence = {result.id: result.evidence for result in run.measured.results}
    parts = _printed_cells(evidence)
    for name, render in _SECTIONS.items():
        if name in evidence:
            parts += render(evidence[name])
    return parts


def headline(run: Run) -> str:
    """Say in a sentence how far each estimator is from the best of them; "" if it was not measured."""
    evidence = {result.id: result.evidence for result in run.measured.results}.get("estimators.default-estimator")
    if evidence is None:
        return ""
    names, cells = ("pinned", "fitted", "adaptive"), evidence["cells"]
    worst = {name: max(cell[name] / min(cell[of] for of in names) for cell in cells) for name in names}
    spread = max(abs(cell["ratio"] - 1.0) for cell in cells)
    parts = [f"`{name}` {times:.1f} times" for name, times in worst.items()]
    return (
        f"Where the deviations of observed and unobserved cosines differ by up to {spread:.0%}, an estimator's root "
        f"mean square error can be this many times the smallest one: {', '.join(parts)}."
    )


def _plus_minus(row: Evidence) -> str:
    return f"{row['mean']:.3f} ± {row['deviation']:.3f}"


def _printed_cells(evidence: Mapping[str, Evidence]) -> list[str]:
    cells = {name: row for name, row in evidence.items() if {"readings", "dim", "count"} <= row.keys()}
    if not cells:
        return []
    readings = list(next(iter(cells.values()))["readings"])
    rows = []
    for name, cell in cells.items():
        readings_shown = [
            _plus_minus(of) + ("" if of["p_value"] >= cell["level"] else " ✗")
            for of in (cell["readings"][reading] for reading in readings)
        ]
        rows.append((f"`{name}`", f"{cell['dim']:.0e}", f"{cell['count']}", f"{cell['epsilon']:g}",
                     f"{cell['printed']['mean']:g} ± {cell['printed']['deviation']:g}", *readings_shown))  # fmt: skip
    first = next(iter(cells.values()))
    return [
        "## Printed simulations and ours",
        f"Mean ± standard deviation of the estimate, δ = {first['delta']:g}, {first['runs']} simulations a cell of "
        f"ours, {first['printed']['runs']} printed. ✗: excluded at level {first['level']:g} by the means or the "
        "deviations.",
        table(("cell", "d", "k", "ε", "printed", *readings), rows),
        "Proven enclosures of the means, for the parameters fitted in our runs:",
        table(
            ("cell", *readings),
            [
                (f"`{name}`", *(interval(cell["readings"][reading]["mean_certified"]) for reading in readings))
                for name, cell in cells.items()
            ],
        ),
    ]


def _estimator_rows(cells: Sequence[Evidence], labels: Sequence[str]) -> list[tuple[str, ...]]:
    rows = []
    for cell in cells:
        values = [interval(cell[x]) if x == "epsilon_certified" else f"{cell[x]:.4g}" for x in labels]
        for name, row in cell["estimators"].items():
            rows.append((*values, name, f"{row['bias']:+.3f}",
                         f"{row['deviation']:.3f}", f"{row['root_mean_square_error']:.3f}",
                         f"{row['coverage']:.1%}", f"{row['below']:.1%}", f"{row['width']:.2f}"))  # fmt: skip
    return rows


_MEASURES = ("estimator", "bias", "deviation", "RMS error", "coverage", "truth below", "width")


def _equal(evidence: Evidence) -> list[str]:
    return [
        "## Estimators where the variances agree",
        f"Algorithm 1 from its exact law, d = {evidence['dim']:.0e}, δ = {evidence['delta']:g}, {evidence['runs']} "
        "runs a cell; nominal coverage 95%.",
        table(("k", "ε", *_MEASURES), _estimator_rows(evidence["cells"], ("count", "epsilon"))),
    ]


def _unequal(evidence: Evidence) -> list[str]:
    return [
        "## Estimators where the variances differ",
        f"Normal cosines with √d times their deviation equal to the ratio, k = {evidence['count']}, δ = "
        f"{evidence['delta']:g}, {evidence['runs']} runs a cell.",
        table(
            ("√d·μ", "ratio", "ε in", *_MEASURES),
            _estimator_rows(evidence["cells"], ("distance", "ratio", "epsilon_certified")),
        ),
    ]


def _default(evidence: Evidence) -> list[str]:
    rows = [
        (f"{cell['distance']:.4g}", f"{cell['ratio']:g}", interval(cell["epsilon_certified"]),
         *(f"{cell[name]:.3f}" for name in ("pinned", "fitted", "adaptive")))
        for cell in evidence["cells"]
    ]  # fmt: skip
    return [
        "## The default estimator",
        f"Root mean square error of ε̂, k = {evidence['count']}, δ = {evidence['delta']:g}, {evidence['runs']} runs a "
        "cell.",
        table(("√d·μ", "ratio", "ε in", "pinned", "fitted", "adaptive"), rows),
    ]


def _bias(evidence: Evidence) -> list[str]:
    rows = [
        (f"{cell['delta']:g}", f"{cell['epsilon']:g}", f"{cell['count']}",
         f"{cell['bias']:.4f} ± {cell['standard_error']:.4f}", f"{cell['by_quadrature']:.4f}",
         f"{cell['leading_term']:.4f}")
        for cell in evidence["cells"]
    ]  # fmt: skip
    return [
        "## The upward bias of `fitted`",
        "ε is V-shaped in the fitted variance: it rises on both sides of equality, so that any error of σ̂ raises it. "
        f"Bias at equal variances, {evidence['runs']} runs a cell.",
        table(("δ", "ε", "k", "simulated", "by quadrature", "leading term"), rows),
    ]


def _sweep(title: str, evidence: Evidence) -> list[str]:
    rows = [
        (row["case"], f"{row['dim']:.0e}", f"{row['count']}", f"{row['epsilon']:g}", f"{row['data_norm']:.4g}",
         f"{row['pinned_mean']:.3f} ± {row['pinned_deviation']:.3f}", interval(row["epsilon_certified"]),
         f"{row['fitted_mean']:.3f}")
        for row in evidence["rows"]
    ]  # fmt: skip
    return [
        f"## {title}",
        f"{evidence['runs']} runs a cell. Expected: ε of the noise multiplier σ·√(1 + (k + ‖Σxᵢ‖²)/(σ²d)).",
        table(("case", "d", "k", "ε", "‖Σxᵢ‖", "pinned", "expected, in", "fitted, mean"), rows),
    ]


# By the check whose evidence a section shows, in this order.
_SECTIONS: dict[str, Callable[[Evidence], list[str]]] = {
    "estimators.coverage.equal-variances": _equal,
    "estimators.coverage.unequal-variances": _unequal,
    "estimators.default-estimator": _default,
    "estimators.fitted-bias": _bias,
    "estimators.count-sweep": partial(_sweep, "From 10 canaries on, at fixed dimension"),
    "estimators.data-sweep": partial(_sweep, "Data vectors added to the canaries"),
}

# Label, colour, marker, displacement, whose cells, and what is drawn of a cell.
_SERIES: tuple[tuple[str, str, str, float, str, Callable[[Any], Any]], ...] = (
    ("printed, Table 2", BLACK, "s", 0.56, "Table 2", lambda cell: cell["printed"]),
    ("printed, reviews", GREY, "^", 0.76, "Reviews", lambda cell: cell["printed"]),
    ("pinned, simulated here", BLUE, "o", 1.0, "Reviews", lambda cell: cell["readings"]["pinned"]),
    ("fitted, simulated here", ORANGE, "D", 1.36, "Reviews", lambda cell: cell["readings"]["fitted, both directions"]),
)


@mpl.rc_context(STYLE)
def dimension_sweep(cells: Sequence[Evidence]) -> Figure:
    """Draw printed and simulated estimates against the dimension, a panel for each ε.

    Each cell is the evidence of a check of a printed cell, with the check's ``source``.
    """
    levels = sorted({cell["epsilon"] for cell in cells})
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    axes = figure.subplots(1, len(levels), squeeze=False)[0]
    for axis, epsilon in zip(axes, levels, strict=True):
        chosen = sorted((cell for cell in cells if cell["epsilon"] == epsilon), key=lambda cell: cell["dim"])
        axis.axhline(epsilon, color=GREY, linewidth=0.8, zorder=0, label="analytical ε")
        for label, colour, marker, shift, position, pick in _SERIES:
            shown = [cell for cell in chosen if position in cell["source"]]
            positions = [cell["dim"] * shift for cell in shown]
            means, deviations = ([pick(cell)[of] for cell in shown] for of in ("mean", "deviation"))
            style: dict[str, Any] = {"fmt": marker, "color": colour, "markersize": 4, "linewidth": 1.1, "capsize": 2}
            axis.errorbar(positions, means, deviations, **style, label=label)
        axis.set(xscale="log", title=f"analytical ε = {epsilon:g}", xlabel="dimension d, k = √d")
    axes[0].set_ylabel("ε̂, mean ± standard deviation of a run")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    return figure


@mpl.rc_context(STYLE)
def errors(evidence: Evidence) -> Figure:
    """Draw three estimators' errors against the ratio of deviations, from ``estimators.default-estimator``."""
    distances = sorted({cell["distance"] for cell in evidence["cells"]})
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.subplots(1, len(distances), squeeze=False)[0]
    for axis, distance in zip(axes, distances, strict=True):
        cells = sorted((c for c in evidence["cells"] if c["distance"] == distance), key=lambda c: c["ratio"])
        equal = next(cell["epsilon"] for cell in cells if cell["ratio"] == 1.0)
        for name, colour, marker in (("pinned", BLUE, "o"), ("fitted", ORANGE, "D"), ("adaptive", GREEN, "s")):
            ratios, deviations = ([cell[of] for cell in cells] for of in ("ratio", name))
            axis.plot(ratios, deviations, color=colour, marker=marker, markersize=4, linewidth=1.1, label=name)
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_locator(NullLocator())
        axis.set(title=f"ε = {equal:g} at equal deviations, k = {evidence['count']:,}")
        axis.set(xlabel="true ratio of deviations, observed to null")
    axes[0].set_ylabel("root mean square error of ε̂")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure
