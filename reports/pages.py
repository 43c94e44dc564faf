"""A run's pages and pictures, as files of its folder and as chapters of its report."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from canaryproof.reports import (
    accuracy,
    blindspots,
    bounds,
    canife,
    claims,
    convergence,
    estimators,
    pitfalls,
    proofs,
    summary,
    training,
)
from canaryproof.reports.figures import svg
from canaryproof.reports.markdown import without_tags
from canaryproof.verify.check.results import Run
from canaryproof.verify.files.report_input import Material

RESULTS = "results.json"
# Files that one run's folder may hold besides the summary, and another's may lack.
PAGES = (
    *(
        "accuracy.*",
        "blindspots.md",
        "blindspots-*.svg",
        "claims-*.md",
        "convergence.md",
        "convergence-*.svg",
    ),
    *("proofs.md", "coverage.svg", "pitfalls.md", "bounds.md", "bounds-grid.svg", "*-sweep.svg", "*-errors.svg"),
)


def as_written(run: Run) -> tuple[str, Run]:
    """Return the text of ``results.json`` and the run as it reads back from there.

    All pages come from what the file says, so that they can be made from it again: numpy's floats print otherwise.
    """
    results = json.dumps(run.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return results, Run.from_json(json.loads(results))


def render(run: Run) -> dict[str, bytes]:
    """Make all Markdown of a run: ``results.json``, ``summary.md``, and pages and pictures for which it has numbers."""
    results, run = as_written(run)
    return markdown_of(run, results, figures_of(run))


def markdown_of(run: Run, results: str, pictures: Mapping[str, Figure]) -> dict[str, bytes]:
    """Make the files of ``render`` from what ``as_written`` and ``figures_of`` returned."""
    pages = pages_of(run)
    files = {
        RESULTS: results,
        "summary.md": summary.text(run, [name for name in sorted(pictures) if name in summary.SHOWN], sorted(pages)),
        **pages,
        **{name: svg(figure) for name, figure in pictures.items()},
    }
    return {name: (without_tags(text) if name.endswith(".md") else text).encode() for name, text in files.items()}


def pages_of(run: Run) -> dict[str, str]:
    """Make the pages besides the summary for which a run has numbers, as Markdown by file name."""
    pages = {claims.page_name(name): claims.text(run, name) for name in claims.documents(run)}
    run = run.measured
    if any(result.is_line for result in run.results):
        pages["proofs.md"] = proofs.text(run)
    if accuracy.sweeps_of(run):
        pages["accuracy.md"] = accuracy.text(run)
    if any(map(convergence.series_of, run.results)):
        pages["convergence.md"] = convergence.text(run)
    if any(result.suite == "bounds" for result in run.results):
        pages["pitfalls.md"] = pitfalls.text(run)
    if bounds.rows_of(run):
        pages["bounds.md"] = bounds.text(run)
    if text := blindspots.text(run):
        pages["blindspots.md"] = text
    return pages


def figures_of(run: Run) -> dict[str, Figure]:
    """Draw the pictures for which a run has numbers, by file name."""
    run = run.measured
    evidence = {result.id: result.evidence for result in run.results}
    pictures = {}
    simulated = [r for r in run.results if r.suite == "algorithm1" and "readings" in r.evidence]
    if simulated:
        cells = [{"source": result.source, **result.evidence} for result in simulated]
        pictures["dimension-sweep.svg"] = estimators.dimension_sweep(cells)
    if "estimators.default-estimator" in evidence:
        pictures["estimator-errors.svg"] = estimators.errors(evidence["estimators.default-estimator"])
    if sweeps := accuracy.sweeps_of(run):
        pictures[accuracy.PICTURE] = accuracy.picture(sweeps)
    if "bounds.nominal" in evidence:
        pictures[pitfalls.PICTURE] = pitfalls.picture(evidence["bounds.nominal"]["levels"])
    if bounds.rows_of(run):
        pictures[bounds.PICTURE] = bounds.picture(run)
    pictures |= blindspots.figures(run)
    for result in run.results:
        if series := convergence.series_of(result):
            pictures[convergence.picture_name(result.id)] = convergence.picture(series)
    return pictures


_ESTIMATORS = ("dimension-sweep.svg", "estimator-errors.svg")


@dataclass(frozen=True)
class Chapter:
    """A chapter: its name in addresses and in the navigation, and Markdown that names its pictures by file."""

    name: str
    label: str
    title: str
    text: str
    figures: Mapping[str, Figure]


def chapters(material: Material, figures: Mapping[str, Figure]) -> list[Chapter]:
    """Make all chapters for which there are numbers, in the order in which they are read."""
    return [chapter for chapter in _all(material, figures) if chapter.text]


def _all(material: Material, figures: Mapping[str, Figure]) -> Iterator[Chapter]:
    run = material.run
    pages = pages_of(run)
    page = {
        "convergence.md": ("convergence", "Convergence", "Convergence: Theorems 3.1 to 3.3"),
        "pitfalls.md": ("bounds", "Bounds", "Lower bounds and their coverage"),
        "bounds.md": ("bounds-grid", "Shapes of scores", "Lower bounds for scores of many shapes"),
        "blindspots.md": ("blindspots", "Blind spots", "What a low ε̂ does not mean: the blind-spot atlas"),
        "accuracy.md": ("accuracy", "Accuracy", "Accuracy of the kernels"),
    }

    def of_page(file: str) -> Chapter:
        text = pages.get(file, "")
        return Chapter(*page[file], text, {name: figure for name, figure in figures.items() if f"]({name})" in text})

    yield of_page("convergence.md")
    shown = {name: figures[name] for name in _ESTIMATORS if name in figures}
    parts = [
        estimators.headline(run),
        *(f"![{summary.SHOWN[name]}]({name})" for name in shown),
        *estimators.sections(run),
    ]
    text = "\n\n".join(filter(None, parts))
    yield Chapter("estimators", "Estimators", "Estimators: error, bias, deviation", text, shown)
    yield of_page("pitfalls.md")
    yield of_page("bounds.md")
    yield of_page("blindspots.md")
    if material.canife is not None:
        benchmark = material.canife
        yield Chapter("canife", "CANIFE", canife.TITLE, canife.text(benchmark), canife.figures(benchmark))
    for path, trained in material.trainings.items():
        folder = re.sub(r"\W+", "-", path)
        pictures = training.figures(trained.record)
        drawn = {f"{folder}-{name}": figure for name, figure in pictures.items()}
        text = training.text(trained.record, trained.timings)
        for name in pictures:
            text = text.replace(f"]({name})", f"]({folder}-{name})")
        title = f"Training: {trained.record.title or trained.record.name}"
        yield Chapter(f"training-{folder}", f"Training: {trained.record.name}", title, text, drawn)
    yield of_page("accuracy.md")
    lines = "\n\n".join(proofs.overview(run)) if any(result.is_line for result in run.results) else ""
    yield Chapter("proofs", "Proofs", "The proofs, line by line", lines, {})
