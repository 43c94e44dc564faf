"""What finished experiments say, as far as claims ask for it: what ``train`` and ``benchmark canife`` left in a folder.

A file is believed no more than any other input: it is read into its record, and what the paper states of an experiment
must be as in the one that comes with the package.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from canaryproof.verify.check import json_records
from canaryproof.verify.check.json_records import plain
from canaryproof.verify.files.benchmark_record import BenchmarkRecord, PrintedReading
from canaryproof.verify.files.errors import InputError
from canaryproof.verify.files.reading import LARGEST_DOCUMENT, content, opened, parsed_json
from canaryproof.verify.files.training_record import (
    NULLS,
    AuditRecord,
    CellRecord,
    ExperimentRecord,
    RepetitionRecord,
    TrainingRecord,
)
from canaryproof.verify.training import configuration

RESULTS, BENCHMARK = "results.json", "canife.json"
# Twenty times the papers' number; experiments are simulated with so many.
_MOST_CANARIES = 20_000
# The lower bound that the papers print.
_BOUND = "andrew"
# What CANIFE makes of an attack without errors, which its figures show at the bound.
_RULE = "capped"


@dataclass(frozen=True)
class FinishedAudit:
    """The audit of a repetition's canaries under one threat model.

    ``distance`` is their mean in the null's deviations, ``ratio`` their deviation in those, ``statistic`` Anderson's,
    and ``bound`` the 95% lower bound by the authors' method.
    """

    observed: int
    unobserved: int | None
    distance: float
    distance_error: float
    ratio: float
    ratio_error: float
    statistic: float
    fitted: float
    pinned: float
    bound: float


@dataclass(frozen=True)
class Trials:
    """An attack by CANIFE: its canary's health, and of its scores the accuracy, the deviation and ε̂.

    ``epsilon`` is at the cap where a threshold makes no error, and ``separated`` infinite there.
    """

    health: float
    accuracy: float
    deviation: float
    epsilon: float
    separated: float


@dataclass(frozen=True)
class FinishedRound:
    """CANIFE's audit of a model: rounds done, the model's accuracy then, and the attacks."""

    round: int
    accuracy: float
    trials: tuple[Trials, ...]


@dataclass(frozen=True)
class FinishedTraining:
    """One training: accuracy with canaries, and without if that was trained; CANIFE's audits in order, and its ε̂."""

    accuracy: float
    without: float | None
    audits: tuple[FinishedRound, ...]
    composed: float | None


@dataclass(frozen=True)
class Repetition:
    """A cell's repetition: its trainings, and the audits of all canaries in them by attack."""

    runs: tuple[FinishedTraining, ...]
    attacks: Mapping[str, FinishedAudit]


@dataclass(frozen=True)
class FinishedCell:
    """A combination of swept values: these and all settings by field, facts of its trainings, and what was found."""

    swept: Mapping[str, Any]
    settings: Mapping[str, Any]
    federation: str
    dim: int
    rounds: int
    clients: int
    test_examples: int
    noise_multiplier: float
    repetitions: tuple[Repetition, ...]

    def runs(self) -> Iterator[FinishedTraining]:
        """Give the trainings of all repetitions."""
        for repetition in self.repetitions:
            yield from repetition.runs


@dataclass(frozen=True)
class FinishedExperiment:
    """A finished experiment that comes with the package; ``ours`` are the fields that its source does not state."""

    name: str
    size: str
    folder: str
    ours: tuple[str, ...]
    cells: tuple[FinishedCell, ...]


@dataclass(frozen=True)
class FinishedMeasurements:
    """All that a folder holds, with the digest of all files that were read.

    ``benchmark`` has the rows on the papers' numbers of CANIFE's benchmark on Fashion-MNIST, None if there is none, and
    ``seconds`` what canaries, CANIFE and training took there on average.
    """

    experiments: Mapping[str, FinishedExperiment]
    benchmark: tuple[PrintedReading, ...] | None
    seconds: Mapping[str, float]
    digest: str


def read(folder: Path) -> FinishedMeasurements:
    """Read what is in a folder, or in folders in it.

    An InputError of one line names the file, the field and the rule: a file is damaged or not of the printed
    experiment, an experiment is there twice, or nothing known is there.
    """
    try:
        if not folder.is_dir():
            raise InputError(f"{folder}: must be a folder")
        places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from error
    experiments: dict[str, FinishedExperiment] = {}
    benchmark: tuple[PrintedReading, ...] | None = None
    seconds: Mapping[str, float] = {}
    digests = []
    for path in (place / name for place in places for name in (RESULTS, BENCHMARK)):
        if not path.is_file():
            continue
        with opened(path) as file:
            found_bytes = content(file, LARGEST_DOCUMENT)
            document = parsed_json(found_bytes)
            if path.name == RESULTS:
                found = _experiment(document, path.parent)
                if found is None:
                    continue
                if found.name in experiments:
                    raise ValueError(f"name: {found.name} is in {experiments[found.name].folder} too")
                experiments[found.name] = found
            elif (rows := _benchmark(document)) is not None:
                if benchmark is not None:
                    raise ValueError("another folder has such results too")
                benchmark, seconds = rows
        digests.append(hashlib.sha256(found_bytes).hexdigest())
    if not digests:
        raise InputError(
            f"{folder}: must hold folders that canaryproof train or benchmark canife left, such as those of "
            "the experiments that come with the package"
        )
    digest = hashlib.sha256("".join(digests).encode()).hexdigest()[:16]
    return FinishedMeasurements(experiments, benchmark, seconds, digest)


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
    if record.source != shipped.heading.source or not shipped.ours:
        return None
    cells = tuple(_cell(cell, f"cells[{i}]") for i, cell in enumerate(record.cells))
    swept = {field for axis in shipped.axes for field in axis}
    stated = {
        field: value
        for field, value in _flat(asdict(shipped.cells[0].settings)).items()
        if field not in {*shipped.ours, *swept}
    }
    for i, cell in enumerate(cells):
        for field, value in stated.items():
            if cell.settings.get(field) != value:
                given = repr(cell.settings.get(field))[:60]
                raise ValueError(f"cells[{i}].settings.{field}: must be {value!r} as in {name}, not {given}")
    return FinishedExperiment(name, record.size, folder.name, shipped.ours, cells)


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as the file has them, by table and field."""
    return {
        f"{table}.{field}": value
        for table, fields in plain(settings).items()
        for field, value in (fields or {}).items()
    }


def _cell(record: CellRecord, place: str) -> FinishedCell:
    return FinishedCell(
        record.swept,
        _settings(record.settings, f"{place}.settings"),
        record.federation,
        record.dim,
        record.rounds,
        record.clients,
        record.test_examples,
        record.noise_multiplier,
        tuple(_repetition(one, f"{place}.results[{i}]") for i, one in enumerate(record.results)),
    )


def _settings(value: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Read settings by the rules of an experiment's file, where what is absent here is null."""
    tables = {}
    for name, table in value.items():
        if table is not None and not isinstance(table, dict):
            raise ValueError(f"{place}.{name[:60]}: must be an object")
        if given := {field: entry for field, entry in (table or {}).items() if entry is not None}:
            tables[name] = given
    try:
        return _flat(asdict(configuration.settings(tables)))
    except ValueError as error:
        raise ValueError(f"{place}.{error}") from None


def _repetition(record: RepetitionRecord, place: str) -> Repetition:
    attacks = {}
    if record.audits is not None:
        for attack, null in NULLS.items():
            inside = f"{place}.audits.{attack}"
            for found, path in ((record.audits, inside), (record.audits.get(attack, {}), f"{inside}.{null}")):
                if path.rpartition(".")[2] not in found:
                    raise ValueError(f"{path}: is missing")
            attacks[attack] = _attack(record.audit(attack), f"{inside}.{null}")
    return Repetition(tuple(map(_training, record.runs)), attacks)


def _attack(audit: AuditRecord, place: str) -> FinishedAudit:
    if not audit.ratio > 0.0 or not min(audit.distance_error, audit.ratio_error) >= 0.0:
        raise ValueError(f"{place}.ratio: must be above 0, and errors not below")
    if not 2 <= audit.observed <= _MOST_CANARIES:
        raise ValueError(f"{place}.observed: must be from 2 to {_MOST_CANARIES:,}")
    for part, name in (("estimates", "fitted"), ("estimates", "pinned"), ("bounds", _BOUND)):
        if name not in getattr(audit, part):
            raise ValueError(f"{place}.{part}.{name}: is missing")
    return FinishedAudit(
        observed=audit.observed,
        unobserved=audit.unobserved,
        distance=audit.distance,
        distance_error=audit.distance_error,
        ratio=audit.ratio,
        ratio_error=audit.ratio_error,
        statistic=math.nan if audit.normality is None else audit.normality.statistic,
        fitted=audit.estimates["fitted"].epsilon,
        pinned=audit.estimates["pinned"].epsilon,
        bound=audit.bounds[_BOUND].value,
    )


def _training(record: TrainingRecord) -> FinishedTraining:
    if record.canife is None:
        return FinishedTraining(record.accuracy, record.accuracy_without, (), None)
    audits = tuple(
        FinishedRound(
            audit.round,
            audit.model_accuracy,
            tuple(
                Trials(one.health, one.accuracy, one.deviation, one.capped.epsilon, one.separated.epsilon)
                for one in audit.attacks
            ),
        )
        for audit in record.canife.audits
    )
    # The mean over the attacks of an audit, of which most experiments have one.
    composed = record.canife.composed.get(_RULE)
    mean = math.fsum(composed) / len(composed) if composed else None
    return FinishedTraining(record.accuracy, record.accuracy_without, audits, mean)


def _benchmark(document: Any) -> tuple[tuple[PrintedReading, ...], Mapping[str, float]] | None:
    """Return the rows on printed numbers, with the seconds of the parts; None if it is not of Fashion-MNIST in full."""
    found = json_records.read(BenchmarkRecord, document)
    if found.printed is None or not found.printed.fashion or found.level != "full":
        return None
    return found.printed.claims, asdict(found.scenarios[0].seconds)
