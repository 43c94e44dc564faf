"""What a finished run leaves in its folder: results for programs, a summary for people, and pictures."""

import json
from pathlib import Path

from canaryproof.reports.accuracy import accuracy, sweeps_of
from canaryproof.reports.figures import comparison_errors, dimension_sweep, estimator_errors
from canaryproof.reports.summary import summary
from canaryproof.verify.results import Run


def write_folder(run: Run, folder: Path) -> None:
    """Write ``results.json``, ``summary.md`` and the pictures for which the run has numbers.

    Parameters
    ----------
    run
        A finished run.
    folder
        An existing folder; files of the same names are replaced, each in one step.
    """
    evidence = {result.id: result.evidence for result in run.results}
    pictures = {}
    sweep = [{"source": r.source, **r.evidence} for r in run.results if "readings" in r.evidence]
    if sweep:
        pictures["dimension-sweep.svg"] = dimension_sweep(sweep)
    if "gaussian.default-estimator" in evidence:
        pictures["estimator-errors.svg"] = estimator_errors(evidence["gaussian.default-estimator"])
    sweeps = sweeps_of(run)
    if sweeps:
        pictures["accuracy.svg"] = comparison_errors(sweeps)
    files = {
        "results.json": json.dumps(run.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n",
        "summary.md": summary(run, sorted(pictures)),
        **pictures,
    }
    if sweeps:
        files["accuracy.md"] = accuracy(run, "accuracy.svg")
    for name, text in files.items():
        temporary = folder / f".{name}.part"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(folder / name)
