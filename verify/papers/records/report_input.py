"""The input of a report, read from a run's folder: the run, its documents, and trainings in the same folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import read
from canaryproof.verify.audit.files.reading import LARGEST_DOCUMENT, content, open_file, parsed_json
from canaryproof.verify.papers.check.results import Run
from canaryproof.verify.papers.records.benchmark_record import BenchmarkRecord
from canaryproof.verify.papers.records.tables import out_of_tables
from canaryproof.verify.papers.records.training_record import ExperimentRecord, TrainingSeconds

RESULTS, RUN_FILE = "results.json", "run.sqlite"
ENVIRONMENT, CANIFE = "environment.json", "canife.json"
# Files that canaryproof train writes next to its results.
EXPERIMENT, TIMINGS = "experiment.json", "timings.json"

_T = TypeVar("_T")


@dataclass(frozen=True)
class TrainingFolder:
    """Output of ``canaryproof train`` in a folder: its record, and the seconds of each training."""

    record: ExperimentRecord
    timings: Sequence[TrainingSeconds]


@dataclass(frozen=True)
class Material:
    """A run and its companions."""

    run: Run
    # The run's command, versions and processor.
    environment: Mapping[str, str] = field(default_factory=dict)
    # The record of ``canaryproof benchmark canife``, where it was left in the run's folder.
    canife: BenchmarkRecord | None = None
    # By the folder of the run's folder in which each was left.
    trainings: Mapping[str, TrainingFolder] = field(default_factory=dict)
    # Number of the documents' statements that this version judges and the run did not, by suite.
    unjudged: Mapping[str, int] = field(default_factory=dict)
    # How far an interrupted run came, or nothing.
    unfinished: str = ""


def read_run(folder: Path) -> Run:
    """Read the run that ``canaryproof verify --out`` left in a folder; an InputError names what breaks a rule."""
    if not folder.is_dir():
        raise InputError(f"{folder}: must be a folder, as canaryproof verify --out leaves it")
    if not (folder / RESULTS).exists():
        raise InputError(f"{folder}: has no {RESULTS}, which canaryproof verify --out leaves in its folder")
    with open_file(folder / RESULTS) as file:
        return Run.from_json(document_of(content(file, LARGEST_DOCUMENT)))


def read_record(kind: type[_T], path: Path) -> _T:
    """Read a file of JSON into a record; an InputError names the file and what breaks a rule."""
    with open_file(path) as file:
        return read(kind, document_of(content(file, LARGEST_DOCUMENT)))


def document_of(contents: bytes | bytearray) -> Any:
    """Read a record's file, whose alike objects may be rows of tables; a ValueError says what breaks a rule."""
    document = parsed_json(contents)
    try:
        return out_of_tables(document)
    except RecursionError:
        # The record's rule of depth names the place.
        return document
