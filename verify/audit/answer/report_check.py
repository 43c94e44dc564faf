"""Check a report: derive every value again from the audited input, and list the differences."""

import functools
import hashlib
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.kernels.refusals import short_repr
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.answer import plan_file
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
    FileRecord,
    ReportHeading,
    ReportRecord,
    escape,
    file_record,
    record,
    render,
    versions_here,
)
from canaryproof.verify.audit.answer.run_audit import Audit, audit, audit_release, with_comparison
from canaryproof.verify.audit.canaries.round_scores import ReleaseCanaries
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import dump, seal
from canaryproof.verify.audit.files.reading import LARGEST_COUNT, content, open_file, parsed_json
from canaryproof.verify.audit.files.stored_release import StoredRelease

# The largest report that is read, in bytes.
_LARGEST = 2**24
# The most slices of a release that processes summed up. Each costs some milliseconds however small it is: more than the
# first number of them must have so many coordinates on average.
_MOST_SMALL_SLICES, _MOST_SLICES, _SMALL_SLICE = 2**8, 2**12, 2**16
# Relative differences up to this one may be due to other versions or another processor.
_ROUNDING = 1e-9
_EMBEDDED = re.compile(f"{re.escape(OPEN)}\n(.*)\n-->\n{SEAL}([0-9a-f]{{64}}) -->\n\\Z", re.DOTALL)


_Record = TypeVar("_Record")


@dataclass(frozen=True)
class ReportFile(Generic[_Record]):
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
    record: _Record | None
    made_by: str
    damage: tuple[str, ...]


def read(path: Path) -> ReportFile[ReportRecord]:
    """Read an audit's report; an ``InputError`` names the file, the field and the rule."""
    return read_kind(path, ReportRecord, SCHEMA)


def read_kind(path: Path, kind: type[_Record], schema: str) -> ReportFile[_Record]:
    """Read a report whose record is of a kind; an ``InputError`` names the file, the field and the rule."""
    # The name of the form, of any version.
    family = schema.rpartition(" ")[0] + " "
    suffix = path.suffix.lower()
    with open_file(path, SUFFIXES) as opened_file:
        whole = bytes(content(opened_file, _LARGEST))
        if 0 < whole.count(b"\n") == whole.count(b"\r\n"):
            raise ValueError("its line ends were changed to CR LF by whatever copied it: fetch it again as it is")
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
        # Records of other kinds lack fields of this one, and are named before those are missed.
        form = document.get("schema") if isinstance(document, dict) else None
        if isinstance(form, str) and not form.startswith(family):
            raise ValueError(f"schema: must begin with {family!r}, not {short_repr(form)}")
        head = json_records.read(_ReportHead, document)
        assert isinstance(document, dict)  # It was read into a record.
        made_by = head.versions.get("canaryproof", "none")
        same = minor(made_by) == minor(version("canaryproof"))
        checked = json_records.read(kind, document) if same else None
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
        options |= {"claim": claim, "tried": 1 if asked.tried is None else asked.tried}
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
        options |= {"neighbours": asked.neighbours, "data_norm": asked.data_norm, "difference": asked.difference}
        result = audit_release(source, canaries, **options)
        # A report of an array in memory names no file.
        of_array = coordinates is None and report.input.file is None
        return replace(result, request=replace(result.request, stored=None)) if of_array else result
    except InputError:
        raise
    except (ValueError, OverflowError) as error:
        raise InputError(f"the report's request cannot be repeated: {error}") from error


def _sum_slices(source: ReadableRelease, canaries: ReleaseCanaries, slices: Any) -> ReleaseSums:
    """Sum a release up by slices, as the process of each did."""
    numbers = slices if isinstance(slices, list) and all(type(number) is int for number in slices) else []
    if not numbers or min(numbers) < 1 or sum(numbers) != source.dim:
        raise ValueError(f"audit.coordinates.slices: must be numbers of coordinates that sum to {source.dim:,}")
    most = min(_MOST_SLICES, max(_MOST_SMALL_SLICES, source.dim // _SMALL_SLICE))
    if len(numbers) > most:
        raise ValueError(
            f"audit.coordinates.slices: must be at most {most:,} of so few coordinates, not {len(numbers):,}"
        )
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
        if reported.keys() == derived.keys() and list(reported) != list(derived):
            fields = f"{name or 'the record'}, order of its fields"
            yield Difference(fields, _show([*reported]), _show([*derived]), rounding=False)
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


@dataclass(frozen=True)
class ReportCheck:
    """The result of comparing a report with a new audit.

    Attributes
    ----------
    differing
        What of the report is not as derived, in a sentence each; empty if nothing is.
    trusted
        What could not be derived and is the report's word alone, in a clause each.
    trusted_values
        The number of its values that these are.
    rounding
        Places of numbers that differ by less than 1e-9 of their size.
    undecided
        Why nobody can say whether the report is true; empty if one can.
    """

    differing: tuple[str, ...]
    trusted: tuple[str, ...] = ()
    trusted_values: int = 0
    rounding: tuple[str, ...] = ()
    undecided: str = ""


@dataclass
class Trusted:
    """A report's own word, which could not be derived: a clause each, and the number of its values."""

    clauses: list[str] = field(default_factory=list)
    values: int = 0
    # Whether another version computed or drew.
    has_other_versions: bool = False

    def note(self, clause: str, values: int = 1) -> None:
        """Note values that are the report's word alone."""
        self.clauses.append(clause)
        self.values += values

    def name(self, there: str, here: str, whose: str, lines: int) -> str:
        """Take a file's name from the report, where the file may have had it; so many lines may have it too."""
        if there == here or not _can_be_name(there, here):
            return here
        self.note(f"{whose} {there} (here {here}), also in the lines that repeat the audit", 1 + lines)
        return there

    def heading(self, heading: ReportHeading, path: Path) -> ReportHeading:
        """Take the words that whoever wrote the report chose."""
        if not heading.name.isprintable() or "/" in heading.name:
            heading = replace(heading, name=path.name)
        for name, each in asdict(heading).items():
            if each not in ("", path.name):
                self.note(f"its {name} {short_repr(each)}")
        return heading

    def versions(self, written: dict[str, str]) -> dict[str, str]:
        """Take the versions that a report has, where they have the form of one."""
        versions, other = versions_here(), []
        for name, here in versions.items():
            there = written.get(name, here)
            if there != here and re.fullmatch(r"[\w.+-]{1,64}", there, re.ASCII):
                versions[name] = there
                other.append(f"{name} {there} (here {here})")
        if other:
            self.note(f"the versions {', '.join(other)}", len(other))
            self.has_other_versions = True
        return versions


def compare(
    report: ReportFile[ReportRecord], result: Audit, path: Path, file: FileRecord, plan: Path | None
) -> ReportCheck:
    """Hold a report against its audit, computed again from a file; an ``InputError`` says why that cannot be.

    Nothing of the report decides what is compared. What only the report can say, such as the versions that made it, is
    put into the derived record if it has the form of such a value, and is counted.
    """
    written = report.record
    assert written is not None
    if written.plan is None and plan is not None:
        raise InputError(NO_PLAN)
    comparison, trusted, lines = written.plan, Trusted(), len(written.repeat)
    heading = trusted.heading(written.heading, path)
    if comparison is not None and plan is not None:
        if (here := file_record(plan).sha256) != comparison.sha256:
            return ReportCheck((other_file(plan, "the plan that the audit was held against", here, comparison.sha256),))
        compared = plan_file.compare_with_plan(result, plan, comparison.secret)
        comparison = replace(compared, file=trusted.name(comparison.file, plan.name, "the plan's name", lines))
    elif comparison is not None:
        values = count_values(json_records.to_document(comparison))
        trusted.note("what it says of its plan, and what follows from that", values)
    given = written.input.file
    if given is None:
        trusted.note("that the audit was of no file")
    else:
        name = trusted.name(given.name, file.name, "the file's name", lines)
        columns, id_column = (None, None) if written.input.subject == "release" else (given.columns, given.id)
        given = replace(file, name=name, columns=columns, id=id_column)
    versions = trusted.versions(written.versions)
    try:
        if comparison is not None:
            result = with_comparison(result, comparison)
        derived = record(result, heading, given, versions)
    except (ValueError, OverflowError) as error:
        # The claim's ε may be beyond what the kernels serve.
        raise InputError(f"the report's request cannot be repeated: {error}") from error
    undecided = ""
    if comparison is not None and plan is None:
        undecided = "it was held against a plan, which is not given (--plan)"
    return compare_pages(report, derived, lambda: render(result, derived, path), path, trusted, undecided)


def compare_pages(
    report: ReportFile[Any],
    derived: dict[str, Any],
    rendered: Callable[[], bytes],
    path: Path,
    trusted: Trusted,
    undecided: str = "",
) -> ReportCheck:
    """Hold a report's record against the one derived again, and its page against the one that is rendered of it."""
    differing = list(differences(report.document, derived))
    # The record's seal differs if anything does.
    wrong = [each for each in differing if not each.rounding and each.name != "sha256"]
    lines = [f"{each.name}: {each.reported} in the report, {each.derived} derived" for each in wrong[:_MOST]]
    lines += [f"and {len(wrong) - _MOST} more"] if len(wrong) > _MOST else []
    if not wrong and path.suffix.lower() != ".json":
        page = page_comparison(report.whole, rendered())
        if page.text:
            lines.append(page.text)
        elif page.pictures and not trusted.has_other_versions:
            lines.append("The pictures are not those of the audit.")
        elif page.shapes:
            undecided = undecided or "its pictures are not those that these versions draw; check it with its own"
        elif page.pictures:
            trusted.clauses.append(f"the coordinates in {page.pictures} of its pictures")
    rounding = tuple(each.name for each in differing if each.rounding)
    return ReportCheck(tuple(lines), tuple(trusted.clauses), trusted.values, rounding, undecided)


# Most differences that are named.
_MOST = 20
NO_PLAN = "--plan: must not be given, as the report is of an audit without a plan"


def other_file(path: Path, words: str, here: str, there: str) -> str:
    """Say that a file is another one than words name, by the digests of both."""
    return f"{path} is not {words}: its SHA-256 is {here}, not {there}."


def _can_be_name(name: str, here: str) -> bool:
    """Tell whether a file can have had a name, whatever it has now: one that no sentence could be hidden in."""
    same_form = Path(name).suffix.lower() == Path(here).suffix.lower()
    return same_form and re.fullmatch(r"[\w.+-]{1,255}", name) is not None


@dataclass(frozen=True)
class PageComparison:
    """How a page differs from the one derived again.

    Attributes
    ----------
    text
        What differs outside of pictures, or in their number or place, in a sentence; empty if nothing does.
    pictures
        The number of pictures that differ.
    shapes
        The number of those that differ in more than coordinates.
    """

    text: str = ""
    pictures: int = 0
    shapes: int = 0


def page_comparison(written: bytes, derived: bytes) -> PageComparison:
    """Compare two pages up to their records, byte by byte between pictures, and pictures also by their shape."""
    pages = [whole[: whole.rfind(OPEN.encode())].decode(errors="surrogateescape") for whole in (written, derived)]
    if pages[0] == pages[1]:
        return PageComparison()
    there, here = map(_split_at_pictures, pages)
    if there[::2] != here[::2]:
        lines = ["".join(parts[::2]).split("\n") for parts in (there, here)]
        pairs = zip(*lines, strict=False)
        number = next((i for i, pair in enumerate(pairs) if pair[0] != pair[1]), min(map(len, lines)))
        return PageComparison(
            f"The page does not say what its record says: line {number + 1} without pictures."
            if lines[0] != lines[1]
            else "The pictures are not where the audit has them."
        )
    drawn = [pair for pair in zip(there[1::2], here[1::2], strict=True) if pair[0] != pair[1]]
    return PageComparison("", len(drawn), sum(_shape(pair[0]) != _shape(pair[1]) for pair in drawn))


def _split_at_pictures(page: str) -> list[str]:
    """Return the parts of a page, every second of which is a picture, in one pass."""
    parts, position = [], 0
    while (start := page.find(_FIGURE, position)) >= 0 and (end := page.find(_END_OF_FIGURE, start)) >= 0:
        end += len(_END_OF_FIGURE)
        parts += [page[position:start], page[start:end]]
        position = end
    return [*parts, page[position:]]


_FIGURE, _END_OF_FIGURE = "<figure>", "</figure>"
# The attributes of a picture that say where something is, and the numbers in them.
_COORDINATES = re.compile(r' (?:d|x|y|cx|cy|x1|x2|y1|y2|points|transform|viewBox)="[-\d. ,a-zA-Z()]*"')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _shape(picture: str) -> str:
    """Return a picture with all of its coordinates left out."""
    return _COORDINATES.sub(lambda match: _NUMBER.sub("0", match[0]), picture)
