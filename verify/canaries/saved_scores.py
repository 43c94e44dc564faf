"""Scores with their record in a file of JSON, as a training loop hands them to the command line."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from canaryproof.verify.canaries.scores import RoundsRecord, Score, Scores
from canaryproof.verify.check import json_records, rules
from canaryproof.verify.check.json_records import Count
from canaryproof.verify.check.rules import shown
from canaryproof.verify.estimators.noise_multiplier import RoundTraces
from canaryproof.verify.files.errors import InputError
from canaryproof.verify.files.reading import read_json
from canaryproof.verify.files.writing import replaced

_FORMAT = "canaryproof scores 1"


@dataclass(frozen=True)
class _SavedTraces:
    cosines: tuple[float, ...]
    lengths: tuple[float, ...]
    dim: Count
    residual: bool
    rounds: Count


@dataclass(frozen=True)
class _SavedRecord:
    score: str
    participations: Count
    left_out: Count
    rounds: Count
    missing: Count
    skipped: Count
    traces: _SavedTraces | None


@dataclass(frozen=True)
class _SavedScores:
    format: str
    kind: str
    inclusion: str
    neighbours: str
    dim: Count | None
    record: _SavedRecord | None
    observed: tuple[float, ...]
    unobserved: tuple[float, ...] | None


def _saved_record(record: RoundsRecord) -> _SavedRecord:
    traces = record.traces
    return _SavedRecord(
        score=str(record.score),
        **{name: getattr(record, name) for name in _COUNTS},
        traces=None
        if traces is None
        else _SavedTraces(
            tuple(traces.cosines.tolist()), tuple(traces.lengths.tolist()), traces.dim, traces.residual, traces.rounds
        ),
    )


# Counts of a record that are saved as they are.
_COUNTS = ("participations", "left_out", "rounds", "missing", "skipped")


def _record(saved: _SavedRecord) -> RoundsRecord:
    traces = None
    if saved.traces is not None:
        given = saved.traces
        traces = RoundTraces(np.array(given.cosines), np.array(given.lengths), given.dim, given.residual, given.rounds)
    score = Score(rules.choice("record.score", saved.score, Score))
    return RoundsRecord(score=score, traces=traces, **{name: getattr(saved, name) for name in _COUNTS})


def write(scores: Scores, target: Path) -> None:
    """Write scores as ``Scores.save`` says."""
    if target.suffix.lower() != ".json":
        raise ValueError(f"path: must end in .json, not {target.name!r}")
    unobserved = None if scores.unobserved is None else tuple(scores.unobserved.tolist())
    saved = _SavedScores(
        format=_FORMAT,
        kind=str(scores.kind),
        inclusion=str(scores.inclusion),
        neighbours=scores.neighbours,
        dim=scores.dim,
        record=None if scores.record is None else _saved_record(scores.record),
        observed=tuple(scores.observed.tolist()),
        unobserved=unobserved,
    )
    with replaced(target) as file:
        file.write(json.dumps(json_records.written(saved), allow_nan=False).encode())


def read(target: Path) -> Scores:
    """Read scores as ``Scores.load`` says."""
    document = read_json(target)
    try:
        saved = json_records.read(_SavedScores, document)
        if saved.format != _FORMAT:
            raise ValueError(f"format: must be {_FORMAT!r}, not {shown(saved.format)}")
        unobserved = None if saved.unobserved is None else np.array(saved.unobserved)
        return Scores(
            np.array(saved.observed),
            unobserved,
            saved.dim,
            saved.inclusion,
            saved.kind,
            None if saved.record is None else _record(saved.record),
            saved.neighbours,
        )
    except ValueError as error:
        raise InputError(f"{target}: {error}") from error
