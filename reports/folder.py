"""What a finished run leaves in its folder: results for programs, pages for people, and pictures."""

import json
from collections.abc import Mapping

from matplotlib.figure import Figure

from canaryproof.reports import figures
from canaryproof.reports.accuracy import accuracy, sweeps_of
from canaryproof.reports.blindspots import blindspots
from canaryproof.reports.blindspots import figures as blindspots_figures
from canaryproof.reports.claims import claims, documents, page_name
from canaryproof.reports.convergence import convergence, picture_name
from canaryproof.reports.coverage import coverage
from canaryproof.reports.figures import svg
from canaryproof.reports.pitfalls import pitfalls
from canaryproof.reports.proofs import proofs
from canaryproof.reports.series import series_of
from canaryproof.reports.summary import SHOWN, summary
from canaryproof.verify.check.results import Run

RESULTS = "results.json"
# What a run's folder may hold beside the summary, and another run's may lack.
PAGES = (
    "accuracy.*",
    "blindspots.md",
    "blindspots-*.svg",
    "claims-*.md",
    "convergence.md",
    "convergence-*.svg",
    "proofs.md",
    "coverage.svg",
    "pitfalls.md",
    "*-sweep.svg",
    "*-errors.svg",
)


def as_written(run: Run) -> tuple[str, Run]:
    """Return the text of ``results.json`` and the run as it reads back from there.

    All pages come from what the file says, so that they can be made from it again: numpy's floats print otherwise.
    """
    results = json.dumps(run.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return results, Run.from_json(json.loads(results))


def render(run: Run) -> dict[str, bytes]:
    """Make all Markdown of a run: ``results.json``, ``summary.md``, and pages and pictures for which it has numbers.

    Parameters
    ----------
    run
        A finished run, or one that was read back: the files are the same.

    Returns
    -------
    Contents by name.
    """
    results, run = as_written(run)
    return markdown_of(run, results, figures_of(run))


def markdown_of(run: Run, results: str, pictures: Mapping[str, Figure]) -> dict[str, bytes]:
    """Make the files of ``render`` from what ``as_written`` and ``figures_of`` returned."""
    pages = pages_of(run)
    files = {
        RESULTS: results,
        "summary.md": summary(run, [name for name in sorted(pictures) if name in SHOWN], sorted(pages)),
        **pages,
        **{name: svg(figure) for name, figure in pictures.items()},
    }
    return {name: text.encode() for name, text in files.items()}


def pages_of(run: Run) -> dict[str, str]:
    """Make the pages beside the summary for which a run has numbers, as Markdown by file name."""
    pages = {page_name(document): claims(run, document) for document in documents(run)}
    run = run.measured
    if any(result.is_line for result in run.results):
        pages["proofs.md"] = proofs(run)
    if sweeps_of(run):
        pages["accuracy.md"] = accuracy(run, "accuracy.svg")
    if any(map(series_of, run.results)):
        pages["convergence.md"] = convergence(run)
    if any(result.suite == "bounds" for result in run.results):
        covered = any(result.id == "bounds.nominal" for result in run.results)
        pages["pitfalls.md"] = pitfalls(run, "coverage.svg" if covered else None)
    if text := blindspots(run):
        pages["blindspots.md"] = text
    return pages


def figures_of(run: Run) -> dict[str, Figure]:
    """Draw the pictures for which a run has numbers, by file name."""
    run = run.measured
    evidence = {result.id: result.evidence for result in run.results}
    pictures = {}
    sweep = [
        {"source": r.source, **r.evidence} for r in run.results if r.suite == "gaussian" and "readings" in r.evidence
    ]
    if sweep:
        pictures["dimension-sweep.svg"] = figures.dimension_sweep(sweep)
    if "gaussian.default-estimator" in evidence:
        pictures["estimator-errors.svg"] = figures.estimator_errors(evidence["gaussian.default-estimator"])
    sweeps = sweeps_of(run)
    if sweeps:
        pictures["accuracy.svg"] = figures.comparison_errors(sweeps)
    if "bounds.nominal" in evidence:
        pictures["coverage.svg"] = coverage(evidence["bounds.nominal"]["levels"])
    pictures |= blindspots_figures(run)
    for result in run.results:
        if series := series_of(result):
            pictures[picture_name(result.id)] = figures.convergence(series)
    return pictures
