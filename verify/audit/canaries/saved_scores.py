"""Scores with their record in a file of JSON, as a training loop hands them to the command line."""

import json
from dataclasses import dataclass
from pathlib import Path

from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import Count, OmittedIfNone
from canaryproof.verify.audit.files.reading import read_json
from canaryproof.verify.audit.files.writing import replaced
from canaryproof.verify.audit.rules import shown

FORMAT = "canaryproof scores 1"


@dataclass(frozen=True)
class SavedTraces:
    """The fields of ``RoundTraces``."""

    cosines: tuple[float, ...]
    lengths: tuple[float, ...]
    dim: Count
    residual: bool
    rounds: Count


@dataclass(frozen=True)
class SavedRecord:
    """The fields of ``RoundsRecord``."""

    score: str
    participations: Count
    left_out: Count
    rounds: Count
    missing: Count
    skipped: Count
    traces: SavedTraces | None
    counts: OmittedIfNone[tuple[Count, ...]] = None
    carry_over: float = 0.0


@dataclass(frozen=True)
class SavedScores:
    """The fields of ``Scores``, and the form's name and version."""

    format: str
    kind: str
    inclusion: str
    neighbours: str
    dim: Count | None
    ranked: bool
    record: SavedRecord | None
    observed: tuple[float, ...]
    unobserved: tuple[float, ...] | None


def write(saved: SavedScores, target: Path) -> None:
    """Write the fields of scores to a file or replace it; an ``OSError`` says that it cannot be written."""
    with replaced(target) as file:
        file.write(json.dumps(json_records.written(saved), allow_nan=False).encode())


def read(target: Path) -> SavedScores:
    """Read what ``write`` wrote; an ``InputError`` names the file, the field and the rule."""
    document = read_json(target)
    try:
        saved = json_records.read(SavedScores, document)
        if saved.format != FORMAT:
            raise ValueError(f"format: must be {FORMAT!r}, not {shown(saved.format)}")
    except ValueError as error:
        raise InputError(f"{target}: {error}") from error
    return saved
