"""What the suite ``gaussian`` finds of the estimators: printed simulations beside ours, bias, deviation, coverage."""

from collections.abc import Mapping, Sequence
from typing import Any

from canaryproof.reports.markdown import interval, table
from canaryproof.verify.check.results import Run


def estimators(run: Run) -> list[str]:
    """Render what a run found of the estimators as sections of Markdown, none where it has no such results."""
    evidence = {result.id: result.evidence for result in run.measured.results}
    parts: list[str] = []
    for render in (_printed_cells, _equal, _unequal, _default, _bias, _sweeps):
        parts += render(evidence)
    return parts


def _plus_minus(row: Mapping[str, Any]) -> str:
    return f"{row['mean']:.3f} ± {row['deviation']:.3f}"


def _printed_cells(evidence: Mapping[str, Mapping[str, Any]]) -> list[str]:
    cells = {name: row for name, row in evidence.items() if {"readings", "dim", "count"} <= row.keys()}
    if not cells:
        return []
    readings = list(next(iter(cells.values()))["readings"])
    rows = []
    for name, cell in cells.items():
        found = [
            _plus_minus(cell["readings"][reading])
            + ("" if cell["readings"][reading]["p_value"] >= cell["level"] else " ✗")
            for reading in readings
        ]
        rows.append((f"`{name}`", f"{cell['dim']:.0e}", f"{cell['count']}", f"{cell['epsilon']:g}",
                     f"{cell['printed']['mean']:g} ± {cell['printed']['deviation']:g}", *found))  # fmt: skip
    first = next(iter(cells.values()))
    return [
        "## Printed simulations beside ours",
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


def _estimator_rows(cells: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> list[tuple[str, ...]]:
    rows = []
    for cell in cells:
        values = [interval(cell[x]) if x == "epsilon_certified" else f"{cell[x]:.4g}" for x in labels]
        for name, row in cell["estimators"].items():
            rows.append((*values, name, f"{row['bias']:+.3f}",
                         f"{row['deviation']:.3f}", f"{row['root_mean_square_error']:.3f}",
                         f"{row['mean_standard_error']:.3f}", f"{row['coverage']:.1%}",
                         f"{row['below']:.1%}", f"{row['width']:.2f}"))  # fmt: skip
    return rows


_MEASURES = ("estimator", "bias", "deviation", "RMS error", "mean s.e.", "coverage", "truth below", "width")


def _equal(evidence: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found = evidence.get("gaussian.coverage.equal-variances")
    if found is None:
        return []
    return [
        "## Estimators where the variances agree",
        f"Algorithm 1 from its exact law, d = {found['dim']:.0e}, δ = {found['delta']:g}, {found['runs']} runs a cell; "
        "nominal coverage 95%.",
        table(("k", "ε", *_MEASURES), _estimator_rows(found["cells"], ("count", "epsilon"))),
    ]


def _unequal(evidence: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found = evidence.get("gaussian.coverage.unequal-variances")
    if found is None:
        return []
    return [
        "## Estimators where the variances differ",
        f"Normal cosines with √d times their deviation equal to the ratio, k = {found['count']}, δ = "
        f"{found['delta']:g}, {found['runs']} runs a cell.",
        table(
            ("√d·μ", "ratio", "ε in", *_MEASURES),
            _estimator_rows(found["cells"], ("distance", "ratio", "epsilon_certified")),
        ),
    ]


def _default(evidence: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found = evidence.get("gaussian.default-estimator")
    if found is None:
        return []
    rows = [
        (f"{cell['distance']:.4g}", f"{cell['ratio']:g}", interval(cell["epsilon_certified"]),
         *(f"{cell[name]:.3f}" for name in ("pinned", "fitted", "adaptive")))
        for cell in found["cells"]
    ]  # fmt: skip
    return [
        "## The default estimator",
        f"Root mean square error of ε̂, k = {found['count']}, δ = {found['delta']:g}, {found['runs']} runs a cell.",
        table(("√d·μ", "ratio", "ε in", "pinned", "fitted", "adaptive"), rows),
    ]


def _bias(evidence: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found = evidence.get("gaussian.fitted-bias")
    if found is None:
        return []
    rows = [
        (f"{cell['delta']:g}", f"{cell['epsilon']:g}", f"{cell['count']}",
         f"{cell['bias']:.4f} ± {cell['standard_error']:.4f}", f"{cell['by_quadrature']:.4f}",
         f"{cell['leading_term']:.4f}")
        for cell in found["cells"]
    ]  # fmt: skip
    return [
        "## The upward bias of `fitted`",
        "ε is V-shaped in the fitted variance: it rises on both sides of equality, so that any error of σ̂ raises it. "
        f"Bias at equal variances, {found['runs']} runs a cell.",
        table(("δ", "ε", "k", "simulated", "by quadrature", "leading term"), rows),
    ]


def _sweeps(evidence: Mapping[str, Mapping[str, Any]]) -> list[str]:
    parts = []
    for name, title in (
        ("gaussian.count-sweep", "## From 10 canaries on, at fixed dimension"),
        ("gaussian.data-sweep", "## Data vectors beside the canaries"),
    ):
        if name not in evidence:
            continue
        rows = [
            (row["case"], f"{row['dim']:.0e}", f"{row['count']}", f"{row['epsilon']:g}", f"{row['data_norm']:.4g}",
             f"{row['pinned_mean']:.3f} ± {row['pinned_deviation']:.3f}", interval(row["epsilon_certified"]),
             f"{row['fitted_mean']:.3f}")
            for row in evidence[name]["rows"]
        ]  # fmt: skip
        parts += [
            title,
            f"{evidence[name]['runs']} runs a cell. Expected: ε of the noise multiplier σ·√(1 + (k + ‖Σxᵢ‖²)/(σ²d)).",
            table(("case", "d", "k", "ε", "‖Σxᵢ‖", "pinned", "expected, in", "fitted, mean"), rows),
        ]
    return parts
