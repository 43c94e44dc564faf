"""What a finished run leaves in its folder: results for programs, pages for people, and pictures."""

import json
from collections.abc import Mapping
from pathlib import Path

from canaryproof.reports import figures
from canaryproof.reports.accuracy import accuracy, sweeps_of
from canaryproof.reports.claims import claims, documents, page_name
from canaryproof.reports.convergence import convergence, picture_name
from canaryproof.reports.coverage import coverage
from canaryproof.reports.pitfalls import pitfalls
from canaryproof.reports.proofs import proofs
from canaryproof.reports.series import series_of
from canaryproof.reports.summary import summary
from canaryproof.verify.results import Run

RESULTS = "results.json"
# What a folder may hold beside the summary.
_PAGES = (
    "accuracy.*",
    "claims-*.md",
    "convergence.md",
    "convergence-*.svg",
    "proofs.md",
    "coverage.svg",
    "pitfalls.md",
    "*-sweep.svg",
    "*-errors.svg",
)


def render(run: Run) -> dict[str, bytes]:
    """Make all files of a run: ``results.json``, ``summary.md``, and pages and pictures for which it has numbers.

    Parameters
    ----------
    run
        A finished run, or one that was read back: the files are the same.

    Returns
    -------
    Contents by name.
    """
    results = json.dumps(run.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    # Pages come from what the file says, so that they can be made from it again: numpy's floats print otherwise.
    run = Run.from_json(json.loads(results))
    pictures = _pictures(run)
    pages = {}
    if any(result.is_line for result in run.results):
        pages["proofs.md"] = proofs(run)
    if sweeps_of(run):
        pages["accuracy.md"] = accuracy(run, "accuracy.svg")
    pages |= {page_name(document): claims(run, document) for document in documents(run)}
    converging = {result.id: series for result in run.results if (series := series_of(result))}
    if converging:
        pages["convergence.md"] = convergence(run)
    if any(result.suite == "bounds" for result in run.results):
        pages["pitfalls.md"] = pitfalls(run, "coverage.svg" if "coverage.svg" in pictures else None)
    files = {
        RESULTS: results,
        "summary.md": summary(run, sorted(pictures), sorted(pages)),
        **pages,
        **pictures,
        **{picture_name(name): figures.convergence(series) for name, series in converging.items()},
    }
    return {name: text.encode() for name, text in files.items()}


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files to an existing folder, each in one step.

    Parameters
    ----------
    files
        Contents by name.
    folder
        An existing folder; files of the same names are replaced. If it has a run's results already, pages and pictures
        of that run which the new one lacks are removed.
    """
    stale = [path for pattern in _PAGES for path in folder.glob(pattern)] if (folder / RESULTS).exists() else []
    for name, contents in files.items():
        temporary = folder / f".{name}.part"
        try:
            temporary.write_bytes(contents)
            temporary.replace(folder / name)
        finally:
            temporary.unlink(missing_ok=True)
    for path in stale:
        if path.name not in files:
            path.unlink()


def _pictures(run: Run) -> dict[str, str]:
    """Draw the pictures that the summary shows."""
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
    return pictures
