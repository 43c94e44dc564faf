"""A run as one Markdown page: verdicts first, then the tables behind them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from canaryproof.reports.claims import TITLES, documents, page_name, statements
from canaryproof.reports.markdown import interval, table
from canaryproof.verify.results import Run, Subject, Verdict, false_alarms

_PICTURES = {
    "accuracy.svg": "Errors of the kernels and of what a user would take instead, in ulps, along one line each",
    "coverage.svg": "Share of lower bounds above the true ε against what is promised, a panel a method",
    "dimension-sweep.svg": "ε̂ against the dimension: printed values beside our simulations of two estimators",
    "estimator-errors.svg": "Root mean square error of three estimators against the true ratio of deviations",
}

_PAGES = {
    "accuracy.md": "errors of the kernels, worst inputs, and the same of other libraries",
    "convergence.md": "how fast what the theorems bound goes to zero, beside what is proven",
    "pitfalls.md": "what goes wrong in empirical auditing, how bad, and how the package handles it",
    "proofs.md": "every line of the proofs that was checked, and how it fares",
}


def summary(run: Run, pictures: Sequence[str], pages: Sequence[str]) -> str:
    """Render a run.

    Parameters
    ----------
    run
        A finished run.
    pictures
        Names of the pictures that stand beside the page and are shown on it.
    pages
        Names of the pages that stand beside it.

    Returns
    -------
    Markdown text.
    """
    command = f"canaryproof verify --level {run.level} --seed {run.seed}"
    parts = [f"# Verification results\n\ncanaryproof {run.version}, `{command}`.", _counts(run)]
    if run.designs:
        parts.append(f"{false_alarms(run)} ([tests](#what-depends-on-chance)).")
    listed = [f"- [{name}]({name}): {_PAGES[name]}" for name in pages if name in _PAGES]
    if listed:
        parts.append("\n".join(listed))
    parts += _documents(run) + _own(run)
    parts += [f"![{_PICTURES[name]}]({name})" for name in pictures]
    evidence = {result.id: result.evidence for result in run.results}
    for render in (_printed_cells, _equal, _unequal, _default, _bias, _sweeps):
        parts += render(evidence)
    parts += _designs(run)
    return "\n\n".join(parts) + "\n"


def _documents(run: Run) -> list[str]:
    """Count the verdicts on each document's statements, and say where they stand."""
    found = documents(run)
    if not found:
        return []
    rows = []
    for document in found:
        counts = Counter(result.verdict for result in statements(run, document))
        name = f"[{TITLES.get(document, document)}]({page_name(document)})"
        rows.append((name, *(f"{counts[verdict]}" for verdict in Verdict), f"{counts.total()}"))
    header = ("document", *(str(verdict) for verdict in Verdict), "all")
    return ["## Statements of the documents", table(header, rows)]


def _own(run: Run) -> list[str]:
    """List our own checks, without the lines of proofs that hold: they have a page of their own."""
    results = [result for result in run.results if result.subject is Subject.IMPLEMENTATION]
    shown = [result for result in results if not (result.is_line and not result.failed)]
    if not results:
        return []
    parts = ["## This package's own checks"]
    if shown:
        rows = [(f"`{r.id}`", r.statement, f"**{r.verdict}**", r.finding) for r in shown]
        parts.append(table(("check", "statement", "verdict", "finding"), rows))
    if len(shown) < len(results):
        parts.append(
            f"{len(results) - len(shown)} more are lines of proofs; they hold and stand in [proofs.md](proofs.md)."
        )
    return parts


def _designs(run: Run) -> list[str]:
    """List the tests behind the verdicts that depend on chance."""
    tested = [(result.id, result.design) for result in run.results if result.design is not None]
    if not tested:
        return []
    rows = [
        (f"`{name}`", design.null, f"{design.level:.1g}", design.alternative, f"{design.power:.3g}", f"{design.runs:,}")
        for name, design in tested
    ]
    return [
        "## What depends on chance",
        "Each test says what holds where there is nothing to find, with what probability at most it says otherwise "
        "then, and what it notices with what probability.",
        table(("check", "null hypothesis", "level", "alternative", "power", "runs"), rows),
    ]


def _counts(run: Run) -> str:
    counts = Counter(result.verdict for result in run.results if result.subject is Subject.DOCUMENT)
    own = sum(result.subject is Subject.IMPLEMENTATION for result in run.results)
    text = f"{own - len(run.failures)} of {own} of this package's own checks hold."
    if counts:
        judged = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
        text += f" Statements of the documents: {judged}."
    return text


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
