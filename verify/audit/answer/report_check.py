"""Check a report: derive every value again from the audited input, and list the differences."""

import functools
import hashlib
import itertools
import math
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.answer.plan_comparison import minor
from canaryproof.verify.audit.answer.release_sums import (
    ArrayRelease,
    ReadableRelease,
    ReleaseSums,
    as_source,
    release_sums,
)
from canaryproof.verify.audit.answer.report import (
    OPEN,
    SCHEMA,
    SEAL,
    SUFFIXES,
    ReportRecord,
    dump,
    escape,
    seal,
)
from canaryproof.verify.audit.answer.run_audit import Audit, audit, audit_release
from canaryproof.verify.audit.canaries.round_scores import ReleaseCanaries
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import LARGEST_COUNT, content, open_file, parsed_json
from canaryproof.verify.audit.files.stored_release import StoredRelease
from canaryproof.verify.audit.rules import short_repr

# The largest report that is read, in bytes.
_LARGEST = 2**24
# The most slices of a release that processes summed up.
_MOST_SLICES = 2**12
# Relative differences up to this one may be due to other versions or another processor.
_ROUNDING = 1e-9
_EMBEDDED = re.compile(f"{re.escape(OPEN)}\n(.*)\n-->\n{SEAL}([0-9a-f]{{64}}) -->\n\\Z", re.DOTALL)


@dataclass(frozen=True)
class ReportFile:
    """A report as it was read.

    Attributes
    ----------
    whole
        The file's bytes.
    document, record
        Its record in JSON's types and checked; unchecked (None) if another minor version made it.
    made_by
        Version of the package that made it.
    damage
        What shows that it was changed after it was written, in a sentence each.
    """

    whole: bytes
    document: dict[str, Any]
    record: ReportRecord | None
    made_by: str
    damage: tuple[str, ...]


def read(path: Path) -> ReportFile:
    """Read a report; an ``InputError`` names the file, the field and the rule."""
    suffix = path.suffix.lower()
    with open_file(path, SUFFIXES) as opened_file:
        whole = bytes(content(opened_file, _LARGEST))
        damage, embedded = [], whole
        if suffix != ".json":
            text = whole.decode(errors="replace")
            # The record has no such line, so that the last one begins it: a search would try each.
            match = _EMBEDDED.match(text, max(0, text.rfind(OPEN)))
            if match is None:
                raise ValueError("has no record of a report at its end")
            embedded = match[1].encode()
            if hashlib.sha256(whole[: whole.rindex(SEAL.encode())]).hexdigest() != match[2]:
                damage.append("The file's SHA-256 is not the one in its last line.")
        document = parsed_json(embedded)
        head = json_records.read(_ReportHead, document)
        assert isinstance(document, dict)  # It was read into a record.
        if not head.schema.startswith(_FAMILY):
            raise ValueError(f"schema: must begin with {_FAMILY!r}, not {short_repr(head.schema)}")
        made_by = head.versions.get("canaryproof", "none")
        same = minor(made_by) == minor(version("canaryproof"))
        checked = json_records.read(ReportRecord, document) if same else None
        if seal(document)["sha256"] != head.sha256:
            damage.append("The record's SHA-256 is not the one in its field sha256.")
        text_again = dump(document)
        if (escape(text_again).encode() if suffix != ".json" else f"{text_again}\n".encode()) != embedded:
            damage.append("The record is not written as this package writes it.")
    return ReportFile(whole, document, checked, made_by, tuple(damage))


@dataclass(frozen=True)
class _ReportHead:
    """The fields of a report of any version that say what made it, and its seal."""

    schema: str
    versions: dict[str, str]
    sha256: str


# Name of the form, of any version.
_FAMILY = SCHEMA.rpartition(" ")[0] + " "


def find_digest(document: dict[str, Any], *keys: str) -> str | None:
    """Return the SHA-256 under some keys of a record of any version; None if there is none."""
    node: Any = document
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, str) else None


def derive(report: ReportRecord, given: "Scores | StoredRelease | np.ndarray[Any, Any]") -> Audit:
    """Repeat the audit of a report on its scores or its release; an ``InputError`` says why that cannot be."""
    asked = report.request
    try:
        claim = asked.epsilon if asked.claim is None else _check_claim(asked.claim)
        options: dict[str, Any] = {
            name: getattr(asked, name)
            for name in ("delta", "confidence", "noise_multiplier", "bounds", "force", "notice", "ask")
        }
        options["claim"] = claim
        if isinstance(given, Scores):
            options |= {name: getattr(asked, name) for name in ("rate", "rounds", "participations")}
            return audit(given, **options)
        if asked.canaries is None:
            raise ValueError("request.canaries: must be there for a release")
        made = asked.canaries
        if made.count > LARGEST_COUNT:
            raise ValueError(f"request.canaries.count: must be at most {LARGEST_COUNT:g}, not {made.count}")
        canaries: ReleaseCanaries = Canaries(made.seed, made.count, made.dim)
        if made.layers:
            canaries = OrthonormalCanaries(made.seed, made.count, made.dim, made.layers)
        coordinates = report.audit.get("coordinates") if isinstance(report.audit, dict) else None
        slices = coordinates.get("slices") if isinstance(coordinates, dict) else None
        source = given if slices is None else _sum_slices(as_source(given), canaries, slices)
        options |= {"neighbours": asked.neighbours, "data_norm": asked.data_norm}
        result = audit_release(source, canaries, **options)
        # A report of an array in memory names no file.
        return result if coordinates else replace(result, request=replace(result.request, stored=None))
    except InputError:
        raise
    except (ValueError, OverflowError) as error:
        raise InputError(f"the report's request cannot be repeated: {error}") from error


def _sum_slices(source: ReadableRelease, canaries: ReleaseCanaries, slices: Any) -> ReleaseSums:
    """Sum a release up by slices, as the process of each did."""
    numbers = slices if isinstance(slices, list) and all(type(number) is int for number in slices) else []
    if not 1 <= len(numbers) <= _MOST_SLICES or min(numbers) < 1 or sum(numbers) != source.dim:
        raise ValueError(f"audit.coordinates.slices: must be numbers of coordinates that sum to {source.dim:,}")
    stops = list(itertools.accumulate(numbers))
    parts = (
        release_sums(ArrayRelease(source.read(stop - number, stop), source.canary_norm), canaries, stop - number)
        for number, stop in zip(numbers, stops, strict=True)
    )
    return functools.reduce(operator.add, parts)


def _check_claim(claim: Claim) -> Claim:
    """Return a report's claim with all of its numbers in range; a ``ValueError`` names the field and the rule."""
    noise, rounds, neighbours = claim.noise_multiplier, claim.rounds, claim.neighbours
    if claim.event is not None:
        return accountant.from_event(claim.event, neighbours=neighbours)
    if claim.statement is not None:
        return accountant.epsilon_delta(*claim.statement, neighbours=neighbours)
    if noise is None or rounds is None:
        raise ValueError("request.claim: must have a noise multiplier and rounds, a statement or an event")
    if claim.epochs is not None:
        epochs = claim.epochs
        return accountant.shuffled(noise, batches=rounds // max(1, epochs), epochs=epochs, neighbours=neighbours)
    if claim.rate is not None:
        return accountant.poisson(noise, rate=claim.rate, rounds=rounds, neighbours=neighbours)
    return accountant.gaussian(noise, participations=claim.participations or 0, rounds=rounds, neighbours=neighbours)


@dataclass(frozen=True)
class Difference:
    """A value in a report that differs from the one derived again.

    Attributes
    ----------
    name
        Its place in the record.
    reported, derived
        Both values, or ``missing``.
    rounding
        Whether they are numbers that differ by less than 1e-9 of their size.
    """

    name: str
    reported: str
    derived: str
    rounding: bool


def differences(reported: Any, derived: Any, name: str = "") -> Iterator[Difference]:
    """Compare two records value by value."""
    if isinstance(reported, dict) and isinstance(derived, dict):
        for key in [*derived, *(key for key in reported if key not in derived)]:
            below = f"{name}.{key}" if name else str(key)
            yield from differences(reported.get(key, _MISSING), derived.get(key, _MISSING), below)
    elif isinstance(reported, list) and isinstance(derived, list):
        for i in range(max(len(reported), len(derived))):
            there, here = (values[i] if i < len(values) else _MISSING for values in (reported, derived))
            yield from differences(there, here, f"{name}[{i}]")
    elif type(reported) is not type(derived) or reported != derived:
        numbers = isinstance(reported, float) and isinstance(derived, float)
        near = numbers and math.isclose(reported, derived, rel_tol=_ROUNDING)
        yield Difference(name, _show(reported), _show(derived), near)


_MISSING = object()


def _show(value: Any) -> str:
    return "missing" if value is _MISSING else short_repr(value)


def count_values(document: Any) -> int:
    """Return the number of numbers, words and truth values in a record."""
    if isinstance(document, dict):
        return sum(map(count_values, document.values()))
    return sum(map(count_values, document)) if isinstance(document, list) else 1


def _without_figures(page: bytes) -> bytes:
    """Return a page without its pictures, in one pass."""
    others, position = [], 0
    while (start := page.find(_FIGURE, position)) >= 0 and (end := page.find(_END_OF_FIGURE, start)) >= 0:
        others.append(page[position:start])
        position = end + len(_END_OF_FIGURE)
    return b"".join([*others, page[position:]])


_FIGURE, _END_OF_FIGURE = b"<figure>", b"</figure>"


def page_damage(report: ReportFile, derived: bytes, *, same_versions: bool) -> str | None:
    """Return how a page differs from the one derived again; pictures drawn by other versions may differ."""
    if report.whole == derived:
        return None
    pages = [whole[: whole.rfind(OPEN.encode())] for whole in (report.whole, derived)]
    lines = [_without_figures(page).split(b"\n") for page in pages]
    if lines[0] == lines[1]:
        return "The pictures are not those of the audit." if same_versions else None
    number = next((i for i, pair in enumerate(zip(*lines, strict=False)) if pair[0] != pair[1]), min(map(len, lines)))
    return f"The page does not say what its record says: line {number + 1} without pictures."
