"""Results of finished experiments, which ``train`` and ``benchmark canife`` left in a folder.

A file is trusted no more than any other input. It is read into its record, and the settings that the paper states of an
experiment must be those of the one that comes with the package.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import plain
from canaryproof.verify.audit.files.reading import LARGEST_DOCUMENT, content, open_file
from canaryproof.verify.papers.records.benchmark_record import BenchmarkRecord
from canaryproof.verify.papers.records.report_input import document_of
from canaryproof.verify.papers.records.training_record import (
    NULLS,
    AuditRecord,
    CellRecord,
    ExperimentRecord,
    RepetitionRecord,
)
from canaryproof.verify.papers.training import configuration

RESULTS, BENCHMARK = "results.json", "canife.json"
# Twenty times the papers' number; experiments are simulated with so many.
_MOST_CANARIES = 20_000
# The lower bound that the papers print.
BOUND = "andrew"


@dataclass(frozen=True)
class FinishedExperiment:
    """A finished experiment that comes with the package, with the fields that its source does not state.

    The settings of its cells are by field, such as ``training.cohort``.
    """

    name: str
    size: str
    folder: str
    unstated: tuple[str, ...]
    cells: tuple[CellRecord, ...]


@dataclass(frozen=True)
class FinishedMeasurements:
    """All experiments in a folder, CANIFE's benchmark on Fashion-MNIST in full, and the digest of the files."""

    experiments: Mapping[str, FinishedExperiment]
    benchmark: BenchmarkRecord | None
    digest: str


def read(folder: Path) -> FinishedMeasurements:
    """Read the results in a folder, or in folders in it.

    An InputError of one line names the file, the field and the rule. It is raised if a file is damaged or not of the
    printed experiment, if an experiment occurs twice, or if there are no known results.
    """
    try:
        if not folder.is_dir():
            raise InputError(f"{folder}: must be a folder")
        folders = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from error
    experiments: dict[str, FinishedExperiment] = {}
    benchmark: BenchmarkRecord | None = None
    digests = []
    for path in (inner / name for inner in folders for name in (RESULTS, BENCHMARK)):
        if not path.is_file():
            continue
        with open_file(path) as file:
            encoded = content(file, LARGEST_DOCUMENT)
            document = document_of(encoded)
            if path.name == RESULTS:
                experiment = _experiment(document, path.parent)
                if experiment is None:
                    continue
                if (name := experiment.name) in experiments:
                    raise ValueError(f"name: {name} is in {experiments[name].folder} too")
                experiments[name] = experiment
            elif _decides(record := json_records.read(BenchmarkRecord, document)):
                if benchmark is not None:
                    raise ValueError("another folder has such results too")
                benchmark = record
        digests.append(hashlib.sha256(encoded).hexdigest())
    if not digests:
        raise InputError(
            f"{folder}: must hold folders that canaryproof train left of experiments that come with the package, or "
            "canaryproof benchmark canife with --level full and Fashion-MNIST as --data"
        )
    digest = hashlib.sha256("".join(digests).encode()).hexdigest()[:16]
    return FinishedMeasurements(experiments, benchmark, digest)


def _experiment(document: Any, folder: Path) -> FinishedExperiment | None:
    """Return an experiment that comes with the package; None if it is another."""
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str) or name not in configuration.names():
        return None
    record = json_records.read(ExperimentRecord, document)
    if record.size not in configuration.SIZES:
        raise ValueError(f"size: must be one of {', '.join(configuration.SIZES)}, not {repr(record.size)[:60]}")
    shipped = configuration.read(name, record.size)
    # A file of the user's own may have the same name.
    if record.source != shipped.heading.source or not shipped.unstated:
        return None
    cells = tuple(_cell(cell, f"cells[{i}]") for i, cell in enumerate(record.cells))
    swept = {field for axis in shipped.axes for field in axis}
    stated = {
        field: value
        for field, value in _flat(asdict(shipped.cells[0].settings)).items()
        if field not in {*shipped.unstated, *swept}
    }
    for i, cell in enumerate(cells):
        for field, value in stated.items():
            if cell.settings.get(field) != value:
                given = repr(cell.settings.get(field))[:60]
                raise ValueError(f"cells[{i}].settings.{field}: must be {value!r} as in {name}, not {given}")
    return FinishedExperiment(name, record.size, folder.name, shipped.unstated, cells)


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as the file has them, by table and field."""
    return {
        f"{table}.{field}": value
        for table, fields in plain(settings).items()
        for field, value in (fields or {}).items()
    }


def _cell(record: CellRecord, path: str) -> CellRecord:
    """Return a cell with its settings by field, after checking what its rules rely on."""
    settings = _settings(record.settings, f"{path}.settings")
    for i, repetition in enumerate(record.results):
        if repetition.audits is not None:
            _check_audits(repetition, f"{path}.results[{i}].audits")
    return replace(record, settings=settings)


def _settings(value: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Read settings by the rules of an experiment's file, where what is absent here is null."""
    tables = {}
    for name, table in value.items():
        if table is not None and not isinstance(table, dict):
            raise ValueError(f"{path}.{name[:60]}: must be an object")
        if given := {field: entry for field, entry in (table or {}).items() if entry is not None}:
            tables[name] = given
    try:
        return _flat(asdict(configuration.settings(tables)))
    except ValueError as error:
        raise ValueError(f"{path}.{error}") from None


def _check_audits(repetition: RepetitionRecord, path: str) -> None:
    audits = repetition.audits or {}
    for attack, null in NULLS.items():
        inside = f"{path}.{attack}"
        for audit_path, part, name in ((inside, audits, attack), (f"{inside}.{null}", audits.get(attack, {}), null)):
            if name not in part:
                raise ValueError(f"{audit_path}: is missing")
        _check_audit(repetition.audit(attack), f"{inside}.{null}")


def _check_audit(audit: AuditRecord, path: str) -> None:
    if not audit.ratio > 0.0 or not min(audit.distance_error, audit.ratio_error) >= 0.0:
        raise ValueError(f"{path}.ratio: must be above 0, and errors not below")
    if not 2 <= audit.observed <= _MOST_CANARIES:
        raise ValueError(f"{path}.observed: must be from 2 to {_MOST_CANARIES:,}")
    if audit.normality is not None and audit.normality.statistic <= 0.0:
        raise ValueError(f"{path}.normality.statistic: must be above 0")
    for part, name in (("estimates", "fitted"), ("estimates", "pinned"), ("bounds", BOUND)):
        if name not in getattr(audit, part):
            raise ValueError(f"{path}.{part}.{name}: is missing")


def _decides(record: BenchmarkRecord) -> bool:
    """Return whether a benchmark is one of Fashion-MNIST in full."""
    return record.printed is not None and record.printed.fashion and record.level == "full"
