"""What lies in a run's folder, and what a report is made from: the run, its documents, and trainings beside it."""

import json
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from canaryproof.verify.check.records import read
from canaryproof.verify.check.results import Run
from canaryproof.verify.files.benchmark_record import BenchmarkRecord
from canaryproof.verify.files.reading import InputError
from canaryproof.verify.files.training_record import ExperimentRecord

RESULTS, RUN_FILE = "results.json", "run.sqlite"
ENVIRONMENT, CANIFE = "environment.json", "canife.json"
# What canaryproof train leaves beside its results.
EXPERIMENT, TIMINGS = "experiment.json", "timings.json"

_T = TypeVar("_T")


@dataclass(frozen=True)
class TrainingFolder:
    """What ``canaryproof train`` left in a folder: its record, and the seconds of each training."""

    record: ExperimentRecord
    timings: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Material:
    """A run and its companions."""

    run: Run
    # What made it: command, versions, processor.
    environment: Mapping[str, str] = field(default_factory=dict)
    # The record of ``canaryproof benchmark canife``, where it was left beside the run.
    canife: BenchmarkRecord | None = None
    # By the folder of the run's folder in which each was left.
    trainings: Mapping[str, TrainingFolder] = field(default_factory=dict)
    # How many of the documents' statements this version judges and the run did not, by suite.
    unjudged: Mapping[str, int] = field(default_factory=dict)
    # How far an interrupted run came, or nothing.
    unfinished: str = ""


def read_run(folder: Path) -> Run:
    """Read the run that ``canaryproof verify --out`` left in a folder; an InputError names what breaks a rule."""
    if not folder.is_dir():
        raise InputError(f"{folder}: must be a folder, as canaryproof verify --out leaves it")
    file = folder / RESULTS
    try:
        return Run.from_json(read_json(file))
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


def read_record(kind: type[_T], file: Path) -> _T:
    """Read a file of JSON into a record; an InputError names the file and what breaks a rule."""
    try:
        return read(kind, read_json(file))
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


def read_object(file: Path) -> Mapping[str, Any]:
    """Read a file that holds a JSON object."""
    document = read_json(file)
    if not isinstance(document, dict):
        raise InputError(f"{file}: must be an object")
    return document


def read_json(file: Path) -> object:
    """Read a file of JSON, which has no infinities and no NaN; an InputError names the file and what is wrong."""
    try:
        # Opening a pipe would wait for its writer.
        if not stat.S_ISREG(file.stat().st_mode):
            raise ValueError("must be a regular file")
        return json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: must be text in UTF-8") from error
    except RecursionError as error:
        raise InputError(f"{file}: is nested too deeply") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{file}: {place}: truncated or damaged, as it is not JSON ({error.msg})") from error
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"is not JSON, which has no number {constant}")
