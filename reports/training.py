"""The page of a training experiment, made from what ``canaryproof train`` found."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from canaryproof.reports import training_canife
from canaryproof.reports import training_pictures as pictures
from canaryproof.reports.encoding import svg
from canaryproof.reports.markdown import plus_minus
from canaryproof.reports.section import Section, page
from canaryproof.reports.training_document import (
    ATTACKS,
    BOUND,
    ESTIMATE,
    audit_of,
    has_canaries,
    has_canife,
    header_of,
    label,
    row_of,
    value,
)

_ESTIMATORS = ("adaptive", "pinned", "fitted", "threshold")
_COVERAGES = ("proven", "asymptotic", "heuristic")
_ORDERS = (0.1, 0.3, 0.5, 0.7, 0.9)
# Fewer repetitions have no such quantiles.
_FEWEST_FOR_QUANTILES = 5

Document = Mapping[str, Any]
Cell = Mapping[str, Any]
Timings = Sequence[Mapping[str, Any]]


def render(document: Document, timings: Timings) -> dict[str, str]:
    """Make the page and its pictures.

    Parameters
    ----------
    document
        What was found, as JSON has it.
    timings
        Seconds of each training.

    Returns
    -------
    Texts by file name.
    """
    return {
        "results.md": text(document, timings),
        **{name: svg(figure) for name, figure in figures(document).items()},
    }


def text(document: Document, timings: Timings) -> str:
    """Make the page, as Markdown."""
    said = [about(document), *(f"**Warning:** {warning}" for warning in warnings(document))]
    return page(document["title"] or document["name"], said, sections(document, timings))


def figures(document: Document) -> dict[str, Figure]:
    """Draw the pictures, by file name."""
    drawn = {}
    if has_canaries(document):
        drawn = {"densities.svg": pictures.densities(document), "estimates.svg": pictures.estimates(document)}
    if has_canife(document):
        drawn["canife.svg"] = training_canife.picture(document)
    return drawn


def about(document: Document) -> str:
    """Say what was done."""
    cells = document["cells"]
    like = f" Analogue of {document['source']}." if document["source"] else ""
    clients, dim, rounds = (_range([cell[name] for cell in cells]) for name in ("clients", "dim", "rounds"))
    return (
        f"`canaryproof train {document['name']} --size {document['size']}`, seed {document['seed']}, "
        f"repetitions: {document['repetitions']}.{like} Data: {cells[0]['federation']}, {clients} clients; "
        f"{cells[0]['settings']['model']['name']} with d = {dim} parameters; {rounds} rounds."
    )


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def sections(document: Document, timings: Timings) -> list[Section]:
    """Put all that was found into tables."""
    found = []
    if has_canaries(document):
        found.append(_estimates(document))
    if has_canife(document):
        found += training_canife.sections(document)
    found.append(_accounting(document))
    if has_canaries(document):
        found += [_attack(document, attack) for attack in ATTACKS]
        found += [_bounds(document, attack) for attack in ATTACKS]
        if document["repetitions"] >= _FEWEST_FOR_QUANTILES:
            found.append(_quantiles(document))
    if any(cell["settings"]["audit"]["without_canaries"] for cell in document["cells"]):
        found.append(_utility(document))
    return [*found, _times(document, timings)]


def warnings(document: Document) -> list[str]:
    """Say what the trainings warned of, each with its cell, repetition and run."""
    return [
        f"{label(cell['swept']) or 'training'}, repetition {i}, run {j}: {warning}"
        for cell in document["cells"]
        for i, result in enumerate(cell["results"])
        for j, run in enumerate(result["runs"])
        for warning in run["warnings"]
    ]


def _over(cell: Cell, pick: Callable[[Mapping[str, Any]], tuple[float, float]]) -> str:
    """Render a number with its standard error; over repetitions, their mean with their standard deviation."""
    found = [pick(result) for result in cell["results"]]
    if len(found) == 1:
        return plus_minus(*map(float, found[0]))
    values = [float(one) for one, _ in found]
    return plus_minus(statistics.fmean(values), statistics.stdev(values))


def _with_error(attack: str, name: str) -> Callable[[Mapping[str, Any]], tuple[float, float]]:
    return lambda result: (audit_of(result, attack)[name], audit_of(result, attack)[f"{name}_error"])


def _estimate(cell: Cell, attack: str, name: str) -> str:
    def pick(result: Mapping[str, Any]) -> tuple[float, float]:
        found = audit_of(result, attack)["estimates"][name]
        return found["epsilon"], found["standard_error"]

    return _over(cell, pick)


def _down(values: Sequence[float]) -> str:
    """Render the mean of bounds with three digits, rounded down, as rounded up it would be none."""
    mean = statistics.fmean(values)
    if not mean or not math.isfinite(mean):
        return f"{mean:.3g}"
    return f"{Decimal(mean).quantize(Decimal(1).scaleb(Decimal(mean).adjusted() - 2), rounding=ROUND_FLOOR):f}"


def _analytical(cell: Cell) -> str:
    epsilon = cell["analytical"]["epsilon"]
    return "none known" if epsilon is None else value(float(epsilon))


def _estimates(document: Document) -> Section:
    rows = []
    for cell in document["cells"]:
        row = [f"{cell['noise_multiplier']:.4g}", _analytical(cell)]
        for attack in ATTACKS:
            bounds = [float(audit_of(result, attack)["bounds"][BOUND]["value"]) for result in cell["results"]]
            row.append(f"{_estimate(cell, attack, ESTIMATE)}; ≥ {_down(bounds)}")
        rows.append(row_of(cell, *row))
    plan = document["cells"][0]["settings"]["audit"]
    several = " Over repetitions: mean ± standard deviation; mean bound." if document["repetitions"] > 1 else ""
    note = (
        f"δ = {plan['delta']:g}. First ε̂ by `{ESTIMATE}`, the paper's estimate, ± its standard error, then the lower "
        f"bound `{BOUND}` at {plan['confidence']:.0%}.{several} An ε̂ is neither an upper nor a lower bound on ε."
    )
    alternative = "A row of panels for each attack: ε̂ as bars and lower bounds as ticks, with the table's numbers"
    header = header_of(document, "noise multiplier", "analytical ε", *(attack.name for attack in ATTACKS.values()))
    return Section("Estimates and bounds", header, tuple(rows), note, "estimates.svg", alternative)


def _accounting(document: Document) -> Section:
    rows = tuple(
        row_of(cell, _analytical(cell), cell["analytical"]["relation"], cell["analytical"]["rule"])
        for cell in document["cells"]
    )
    whose = "canary" if has_canaries(document) else "client"
    note = (
        f"Of the least protected {whose} in all trainings, for an attacker who sees all rounds; nothing better is "
        "known for the final model."
    )
    return Section("Analytical ε", header_of(document, "analytical ε", "neighbours", "rule"), rows, note)


def _attack(document: Document, attack: str) -> Section:
    header = [*(f"ε̂, {name}" for name in _ESTIMATORS), "distance", "deviation ratio", "normal: A²", "p"]
    if attack != "all":
        header.append("null law: p")
    rows = []
    for cell in document["cells"]:
        row = [_estimate(cell, attack, name) for name in _ESTIMATORS]
        row += [_over(cell, _with_error(attack, name)) for name in ("distance", "ratio")]
        normality = audit_of(cell["results"][0], attack)["normality"]
        row += [f"{normality['statistic']:.3g}", f"{normality['p_value']:.2g}"]
        if attack != "all":
            row.append(f"{cell['results'][0]['audits'][attack]['unobserved']['null_law']['p_value']:.2g}")
        rows.append(row_of(cell, *row))
    units = (
        "Distance and ratio of mean and deviation are in units of the unobserved canaries' maxima."
        if attack == "all"
        else "Distance is √d·μ̂ and ratio √d·σ̂; the null law's p is of Kolmogorov and Smirnov's test that cosines of "
        "unobserved canaries follow Theorem 3.1."
    )
    first = ", of the first repetition" if document["repetitions"] > 1 else ""
    note = f"{ATTACKS[attack].score}. {units} A² is Anderson and Darling's statistic, as in Table 6{first}."
    if attack != "final":
        return Section(f"Attack: {ATTACKS[attack].name}", header_of(document, *header), tuple(rows), note)
    alternative = "A row of panels for each attack: densities of observed canaries' scores, and the null's in black"
    title = f"Attack: {ATTACKS[attack].name}"
    return Section(title, header_of(document, *header), tuple(rows), note, "densities.svg", alternative)


def _bounds(document: Document, attack: str) -> Section:
    """Show every bound under the null that serves it, the exact one if both do."""

    def found(result: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        nulls = result["audits"][attack]
        return {**nulls["unobserved"]["bounds"], **nulls.get("exact", {"bounds": {}})["bounds"]}

    plan = document["cells"][0]["settings"]["audit"]
    known = found(document["cells"][0]["results"][0])
    methods = sorted(known, key=lambda name: _COVERAGES.index(known[name]["coverage"]))
    rows = tuple(
        row_of(cell, *(_down([float(found(result)[name]["value"]) for result in cell["results"]]) for name in methods))
        for cell in document["cells"]
    )
    kinds = "; ".join(
        f"{coverage}: {', '.join(of_kind)}"
        for coverage in _COVERAGES
        if (of_kind := [f"`{name}`" for name in methods if known[name]["coverage"] == coverage])
    )
    note = (
        f"At {plan['confidence']:.0%}; coverage is {kinds}. A heuristic one may be above ε in any share of audits, and "
        "`bayesian` is the lower end of a posterior interval."
    )
    return Section(f"Lower bounds, {ATTACKS[attack].name}", header_of(document, *methods), rows, note)


def _quantiles(document: Document) -> Section:
    rows = []
    for cell in document["cells"]:
        for attack in ATTACKS:
            values = [float(audit_of(r, attack)["estimates"][ESTIMATE]["epsilon"]) for r in cell["results"]]
            quantiles = np.quantile(values, _ORDERS)
            rows.append(row_of(cell, ATTACKS[attack].name, *(f"{quantile:.3g}" for quantile in quantiles)))
    note = f"Quantiles of ε̂ (`{ESTIMATE}`) over {document['repetitions']} repetitions, as in Table 5."
    return Section("Quantiles", header_of(document, "attack", *map(str, _ORDERS)), tuple(rows), note)


def _utility(document: Document) -> Section:
    rows = []
    for cell in document["cells"]:
        pairs = [(one["accuracy"], one["accuracy_without"]) for r in cell["results"] for one in r["runs"]]
        if any(without is None for _, without in pairs):
            continue
        means = [statistics.fmean(accuracies) for accuracies in zip(*pairs, strict=True)]
        differences = [100.0 * (one - other) for one, other in pairs]
        difference = f"{statistics.fmean(differences):+.2f}"
        if len(pairs) > 1:
            difference += f" ± {statistics.stdev(differences) / math.sqrt(len(pairs)):.2g}"
        rows.append(row_of(cell, *(f"{mean:.2%}" for mean in means), difference))
    header = header_of(document, "accuracy with canaries", "without", "difference, points")
    note = (
        f"Share of the {document['cells'][0]['test_examples']:,} held-out examples that are recognised. Both models "
        "have the same seeds; over several pairs, ± the standard error of the mean difference."
    )
    return Section("Utility", header, tuple(rows), note)


def _times(document: Document, timings: Timings) -> Section:
    rows = []
    for i, cell in enumerate(document["cells"]):
        own = [row for row in timings if row["cell"] == i]
        training, scoring = (math.fsum(row[name] for row in own) for name in ("training", "scoring"))
        share = scoring / (training + scoring) if own else 0.0
        times = [str(len(own)), f"{training:.3g}", f"{scoring:.3g}", f"{share:.0%}"]
        if has_canife(document):
            times += [f"{math.fsum(row.get(name, 0.0) for row in own):.3g}" for name in ("design", "attack")]
        rows.append(row_of(cell, *times))
    names = ["models", "seconds training", "seconds scoring", "share of scoring"]
    if has_canife(document):
        names += ["seconds designing", "seconds attacking"]
    return Section("Time", header_of(document, *names), tuple(rows), "Of this run on this machine.")
