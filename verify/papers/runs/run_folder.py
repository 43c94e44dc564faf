"""Reading all of a run's folder for a report: its results, finished or not, and what else lies there."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.check.results import Run
from canaryproof.verify.papers.records.benchmark_record import BenchmarkRecord
from canaryproof.verify.papers.records.report_input import (
    CANIFE,
    ENVIRONMENT,
    EXPERIMENT,
    RESULTS,
    RUN_FILE,
    TIMINGS,
    Material,
    TrainingFolder,
    read_record,
    read_run,
)
from canaryproof.verify.papers.records.training_record import ExperimentRecord, Timings
from canaryproof.verify.papers.runs import expected
from canaryproof.verify.papers.runs.run_file import read_unfinished, result_of


def read_material(folder: Path) -> Material:
    """Read all that a report is made from; an InputError names what cannot be read or breaks a rule.

    Where a folder has no results yet, those that an interrupted run has found so far are taken. The record that
    ``benchmark`` left in the folder, and trainings in folders in it, come along.
    """
    try:
        return _read(folder)
    except OSError as error:
        # To ask whether a file is there takes the right to search its folder.
        raise InputError(f"{error.filename or folder}: {error.strerror or error}") from error


def _read(folder: Path) -> Material:
    unfinished, file = "", folder / ENVIRONMENT
    environment = dict(read_record(Mapping[str, str], file)) if file.exists() else {}  # type: ignore[type-abstract]
    if folder.is_dir() and not (folder / RESULTS).exists() and (folder / RUN_FILE).exists():
        run, environment = _read_unfinished(folder / RUN_FILE)
        unfinished = f"This run was interrupted. It has {len(run.results):,} results so far, and --resume goes on."
    else:
        run = read_run(folder)
    canife = read_record(BenchmarkRecord, folder / CANIFE) if (folder / CANIFE).exists() else None
    trainings = {
        path.parent.name: TrainingFolder(
            read_record(ExperimentRecord, path.with_name(RESULTS)),
            read_record(Timings, path.with_name(TIMINGS)).trainings,
        )
        for path in sorted(folder.glob(f"*/{EXPERIMENT}"))
        if path.with_name(TIMINGS).exists()
    }
    return Material(run, environment, canife, trainings, unjudged(run), unfinished)


def unjudged(run: Run) -> dict[str, int]:
    """Count the documents' statements that this version judges and a run did not, by suite."""
    judged = {(result.suite, result.id) for result in run.results}
    return dict(Counter(suite for suite, name in expected.read() if (suite, name) not in judged))


def _read_unfinished(file: Path) -> tuple[Run, dict[str, str]]:
    meta, rows = read_unfinished(file)
    try:
        document = {"version": meta["version"], "level": meta["level"], "seed": int(meta["seed"])}
        run = Run.from_json({**document, "results": []})
    except (KeyError, ValueError) as error:
        raise InputError(f"{file}: is damaged ({error})") from error
    return replace(run, results=tuple(result_of(file, row) for row in rows)), meta
