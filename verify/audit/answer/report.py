"""The report of an audit: one record of all numbers, written as JSON, Markdown or HTML, that can be computed again.

The record has what was asked, the SHA-256 of what was audited, and all numbers; equal input gives equal bytes. Its last
field is the SHA-256 of all others, so that a damaged or carelessly edited report is noticed. Whoever edits on purpose
computes it again: then the numbers differ from those that the input gives (``derive``).
"""

import hashlib
import json
import math
import os
import platform
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.answer import text
from canaryproof.verify.audit.answer.plan_comparison import Comparison
from canaryproof.verify.audit.answer.result import NOTICE, AuditResult, AuditRow, EstimateRow, MechanismTest, Request
from canaryproof.verify.audit.answer.trade_off import trade_off_curve
from canaryproof.verify.audit.canaries.round_scores import directions_of, layers_of
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Scores
from canaryproof.verify.audit.engine.provenance import digest_of_files
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.json_records import Count, OmittedIfNone, dump, seal
from canaryproof.verify.audit.files.reading import open_file
from canaryproof.verify.audit.files.writing import replace_file
from canaryproof.verify.audit.rules import printable

SCHEMA = "canaryproof audit report 2.0.0"
SUFFIXES = (".html", ".md", ".json")
# Packages that compute and draw.
_PACKAGES = ("canaryproof", "numpy", "scipy", "numba", "statsmodels", "dp-accounting", "matplotlib")
# False positive rates and values of δ that the trade-off curve is read at.
_RATES, _DELTAS = (0.01, 0.001), (0.0, 1e-9, 1e-6, 1e-5, 1e-3)
# Largest number of points of a curve in the record.
_POINTS = 60
# The evidence raises an alarm in an honest training with this probability at most.
_ALARM = 1e-3


@dataclass(frozen=True)
class SecondFileRecord:
    """A file of unobserved scores: its name, size and SHA-256."""

    name: str
    bytes: Count
    sha256: str


@dataclass(frozen=True)
class FileRecord:
    """The file that was audited: its name, size and SHA-256, and the columns that were read in it, also that of ids.

    Unobserved scores may be in a second one.
    """

    name: str
    bytes: Count
    sha256: str
    columns: tuple[str, str] | None
    id: OmittedIfNone[str] = None
    unobserved: OmittedIfNone[SecondFileRecord] = None


@dataclass(frozen=True)
class InputRecord:
    """The input of an audit.

    Attributes
    ----------
    subject
        ``release`` or ``scores``.
    sha256
        Of a release: SHA-256 of its coordinates, little-endian. Of scores: see ``scores_digest``.
    kind, inclusion, neighbours, dim, inserted
        As of ``Scores``; of a release those of its cosines.
    file
        The file, if the audit was of one.
    """

    subject: str
    sha256: str
    kind: str
    inclusion: str
    neighbours: str
    dim: Count | None
    inserted: Count | None
    file: FileRecord | None


@dataclass(frozen=True)
class CanarySource:
    """The seed of a release's canaries, and all else that they are made from; independent ones have no layers."""

    seed: Count
    count: Count
    dim: Count
    directions: str
    layers: Count


@dataclass(frozen=True)
class RequestRecord:
    """The arguments of the audit; ``epsilon`` is a claim that was a number, and the rest are keywords."""

    delta: float
    confidence: float
    epsilon: float | None
    claim: Claim | None
    noise_multiplier: float | None
    bounds: tuple[str, ...]
    force: bool
    neighbours: str | None
    rate: float | None
    rounds: Count | None
    participations: Count | None
    data_norm: float | None
    difference: bool
    notice: float
    ask: tuple[str, ...]
    canaries: CanarySource | None
    tried: OmittedIfNone[Count] = None


@dataclass(frozen=True)
class ReportHeading:
    """The heading of a report by whoever writes it: its file's name, and a title, a subject and a date, if any."""

    name: str
    title: str = ""
    subject: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        for each in fields(self)[1:]:
            try:
                rules.line(getattr(self, each.name))
            except ValueError as error:
                raise ValueError(f"{each.name}: {error}") from None


@dataclass(frozen=True)
class ReportRecord:
    """A report's record.

    Attributes
    ----------
    schema
        Name and version of the form; ``report_schema.json`` describes it.
    heading
        What is said of the report by whoever wrote it.
    answer
        The decision and what it rests on, in words; ``audit`` has it with its findings.
    claimed
        The claimed mechanism, its ε, the attacker whom it holds against, and the accounting of the ε.
    attacker
        Who the numbers are for.
    to_report
        Sentences to quote.
    audit
        All numbers, as ``Audit.to_json`` has them.
    rounds, evidence
        Record of a training's rounds, and the evidence against the claimed noise after each.
    curve
        Trade-off curve: what is read from it, and some of its points.
    request, input
        What was asked, and what was audited.
    plan
        Comparison with a plan, if there was one.
    repeat
        Commands that repeat the audit.
    versions
        Versions of what computed.
    sha256
        SHA-256 of the record without this field.
    """

    schema: str
    heading: ReportHeading
    answer: str
    claimed: Any
    attacker: str
    to_report: str
    audit: Any
    rounds: Any
    evidence: Any
    curve: Any
    request: RequestRecord
    input: InputRecord
    plan: Comparison | None
    repeat: tuple[str, ...]
    versions: dict[str, str]
    sha256: str


# The record of an audit.


def numbers(result: AuditResult) -> dict[str, Any]:
    """Return all numbers of an audit in JSON's own types; infinite ones are None."""
    names = (
        *("count", "null_count", "dim", "delta", "confidence", "claim", "neighbours"),
        *("noise_multiplier", "withheld", "standardised_mean", "mean_error", "deviation_ratio", "ratio_error"),
        *("variance_p_value", "release_norm", "residual_norm", "dilution"),
    )
    document = {
        "answer": text.answer(result),
        "decision": None if result.decision is None else asdict(result.decision),
        "findings": [asdict(finding) for finding in result.findings],
        "level": result.level,
        "noticed": result.noticed_share,
        "mechanism": None if result.mechanism is None else _mechanism_record(result.mechanism),
        "kind": result.scores.kind,
        "inclusion": result.scores.inclusion,
        **{name: getattr(result, name) for name in names},
        **{
            name: None if (part := getattr(result, name)) is None else asdict(part)
            for name in ("normality", "shape", "null_law", "blind_spots")
        },
        "warnings": [asdict(warning) for warning in result.warnings],
        "coordinates": _coordinates(result.request),
        "estimate": _headline(result.estimate),
        "no_estimate": text.no_estimate(result) or None,
        "bound": _headline(result.bound),
        "estimates": [_estimate_row(row) for row in result.estimates],
        "bounds": [asdict(row) for row in result.bounds],
    }
    finite: dict[str, Any] = _plain(document)
    return finite


def _headline(row: AuditRow | None) -> dict[str, Any] | None:
    """Name the row that an audit states, with the version of its method."""
    return None if row is None else {"name": row.name, "version": row.version}


def _coordinates(request: Request) -> dict[str, Any] | None:
    """Say how the coordinates of a release were read, if they were in files, or summed up by slices."""
    if request.stored is not None:
        return request.stored.record()
    if request.slices is None:
        return None
    return {"slices": list(request.slices[0]), "canary_norm": request.slices[1]}


def _mechanism_record(mechanism: MechanismTest) -> dict[str, Any]:
    traces = mechanism.all_traces
    return {
        **asdict(mechanism.measured),
        "claimed": mechanism.claimed,
        "p_value": mechanism.p_value,
        "measures": traces.noise_source,
        "measured_rounds": len(traces.cosines),
        "rounds": traces.rounds,
    }


def _estimate_row(row: EstimateRow) -> dict[str, Any]:
    named = {field.name: getattr(row, field.name) for field in fields(row) if field.name != "fit"}
    return {**named, "certified": row.enclosure}


def _plain(value: Any) -> Any:
    """Return a value in JSON's own types; infinities, which it does not have, become null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def record(
    result: AuditResult,
    heading: ReportHeading,
    file: FileRecord | None = None,
    versions: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return an audit's record, of ``ReportRecord``'s fields in JSON's own types."""
    request, audited = _request(result), _input(result, file)
    made = ReportRecord(
        schema=SCHEMA,
        heading=heading,
        answer=text.answer(result),
        claimed=_claim_numbers(result),
        attacker=text.meaning(result),
        to_report=text.to_report(result),
        audit=numbers(result),
        rounds=None if result.scores.record is None else _rounds(result.scores.record),
        evidence=_evidence(result),
        curve=None if result.withheld else _curve(result),
        request=request,
        input=audited,
        plan=result.comparison,
        repeat=tuple(_repeat(result, audited, heading)),
        versions=versions or versions_here(),
        sha256="",
    )
    return seal(json_records.to_document(made))


@cache
def _package_versions() -> dict[str, str]:
    # Each is read from a file of its package.
    return {name: version(name) for name in _PACKAGES}


def versions_here() -> dict[str, str]:
    """Return the versions of the libraries that compute and draw, and the digest of this package's own files."""
    return {
        "python": platform.python_version(),
        **_package_versions(),
        "machine": platform.machine(),
        "files": digest_of_files(),
    }


def _request(result: AuditResult) -> RequestRecord:
    asked = result.request
    number = asked.claim is None or isinstance(asked.claim, int | float | np.number)
    canaries = asked.canaries
    return RequestRecord(
        delta=result.delta,
        confidence=result.confidence,
        epsilon=None if asked.claim is None or not number else float(asked.claim),  # type: ignore[arg-type]
        claim=None if number else result.claimed,
        noise_multiplier=None if asked.noise_multiplier is None else float(asked.noise_multiplier),
        bounds=asked.bounds,
        force=asked.force,
        # A release has them written also where the claim has them, so that they have one spelling.
        neighbours=asked.neighbours if asked.release is None else result.neighbours,
        rate=asked.rate,
        rounds=asked.rounds,
        participations=asked.participations,
        data_norm=asked.data_norm,
        difference=asked.difference,
        notice=asked.notice,
        ask=tuple(map(str, asked.ask)),
        canaries=None
        if canaries is None
        else CanarySource(canaries.seed, canaries.count, canaries.dim, directions_of(canaries), layers_of(canaries)),
        tried=None if asked.tried == 1 else asked.tried,
    )


def _input(result: AuditResult, file: FileRecord | None) -> InputRecord:
    scores, release = result.scores, result.request.release
    return InputRecord(
        subject="scores" if release is None else "release",
        sha256=scores_digest(scores) if release is None else release,
        kind=str(scores.kind),
        inclusion=str(scores.inclusion),
        neighbours=scores.neighbours,
        dim=scores.dim,
        inserted=scores.inserted,
        file=file,
    )


def scores_digest(scores: Scores) -> str:
    """Return the SHA-256 of scores with all that is recorded of them.

    First comes JSON of their options, counts and record, with sorted keys. Then come, in float64 and little-endian, the
    observed and unobserved scores, and of a record the cosines and lengths of both kinds of traces, and its counts.
    """
    arrays = [scores.observed] if scores.unobserved is None else [scores.observed, scores.unobserved]
    rounds = None
    if scores.record is not None:
        rounds = _rounds(scores.record)
        for name, traces in (("traced", scores.record.traces), ("all_traced", scores.record.all_traces)):
            if traces is not None:
                rounds |= {"dim": traces.dim, "residual": traces.residual, name: traces.rounds}
                arrays += [traces.cosines, traces.lengths]
        arrays += [] if scores.record.counts is None else [scores.record.counts.astype(np.float64)]
    options = {name: getattr(scores, name) for name in ("kind", "inclusion", "neighbours", "dim", "ranked", "inserted")}
    head = {**options, "lengths": [len(array) for array in arrays], "record": rounds}
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array, "<f8").data)
    return digest.hexdigest()


def _rounds(rounds: RoundsRecord) -> dict[str, Any]:
    names = ("participations", "left_out", "rounds", "missing", "skipped", "carry_over")
    optional = ("members", "taken", "correlation", "pairs", "kurtosis")
    perhaps = {name: value for name in optional if (value := getattr(rounds, name)) is not None}
    return {"score": str(rounds.score), **{name: getattr(rounds, name) for name in names}, **perhaps}


def _claim_numbers(result: AuditResult) -> dict[str, Any] | None:
    if result.claim is None:
        return None
    claim = result.claimed
    return {
        "epsilon": result.claim,
        "delta": result.delta,
        "neighbours": result.neighbours,
        "mechanism": f"ε = {result.claim:g} at δ = 0" if claim is None else str(claim),
        "attacker": "unstated" if claim is None else claim.attacker,
        "basis": "stated" if claim is None else claim.basis(result.delta),
    }


def _evidence(result: AuditResult) -> dict[str, Any] | None:
    """Return the evidence against the claimed noise after each measured round of a training."""
    mechanism = result.mechanism
    if result.scores.record is None or mechanism is None or mechanism.claimed is None:
        return None
    values = mechanism.traces.log_evidence(mechanism.claimed)
    above = np.flatnonzero(values > -math.log(_ALARM))
    return {
        "measured_rounds": len(values),
        "alarm_level": _ALARM,
        "alarm_round": int(above[0]) + 1 if len(above) else None,
        "largest_log": float(values.max()),
        "points": [[int(i) + 1, float(values[i])] for i in _some(len(values))],
    }


def _curve(result: AuditResult) -> dict[str, Any]:
    curve = trade_off_curve(result)
    frame = curve.to_frame()
    deltas = sorted({*_DELTAS, result.delta})
    return {
        "true_positive_rates": [
            {"false_positive_rate": rate, "estimate": estimate, "low": low}
            for rate in _RATES
            for estimate, low in [curve.true_positive_rate(rate)]
        ],
        "advantage": dict(zip(("estimate", "low"), curve.advantage, strict=True)),
        "epsilon": [{"delta": delta, "low": curve.epsilon(delta)} for delta in deltas],
        "columns": list(frame.columns),
        "points": frame.iloc[_some(len(frame))].to_numpy().tolist(),
    }


def _some(count: int) -> list[int]:
    """Choose indices to show: always the first and the last, and denser among the largest values."""
    ends = np.geomspace(1.0, count, _POINTS // 2) - 1.0
    indices = np.concatenate([ends, np.linspace(0.0, count - 1.0, _POINTS // 2)]).round().astype(int)
    return [int(i) for i in np.unique(indices)]


def _repeat(result: AuditResult, audited: InputRecord, heading: ReportHeading) -> Iterator[str]:
    """Yield the lines that repeat an audit and check its report."""
    subject = audited.subject
    name = audited.file.name if audited.file else {"release": "release.npy", "scores": "scores.json"}[subject]
    file, asked = quote(name), result.request
    number = asked.claim is None or isinstance(asked.claim, int | float | np.number)
    # The command line makes no other orthonormal canaries.
    usual = asked.canaries is None or layers_of(asked.canaries) in (0, OrthonormalCanaries.layers)
    # The secret of a plan stays with those who made it.
    if number and usual and result.comparison is None:
        yield f"canaryproof audit {file}{_options(result, audited)} --report {quote(f'again-{heading.name}')}"
    held = "" if result.comparison is None else f" --plan {quote(result.comparison.file)}"
    second = "" if audited.file is None or audited.file.unobserved is None else _second(audited.file.unobserved)
    yield f"canaryproof check-report {quote(heading.name)} --{subject} {file}{second}{held}"


def _second(file: SecondFileRecord) -> str:
    return f" --unobserved {quote(file.name)}"


def _options(result: AuditResult, audited: InputRecord) -> str:
    asked = result.request
    given: list[tuple[str, object]] = []
    if (canaries := asked.canaries) is not None:
        given += [("canaries", canaries.count), ("canary-seed", canaries.seed)]
        given += [("directions", "orthonormal")] if layers_of(canaries) else []
        if (stored := asked.stored) is not None:
            given += [("only", pattern) for pattern in stored.only] + [("skip", pattern) for pattern in stored.skip]
            given += [] if stored.base_path is None else [("base", stored.base_path.name)]
            given += [] if stored.canary_norm == 1.0 else [("canary-norm", repr(stored.canary_norm))]
        given += [] if asked.neighbours in (None, "add-or-remove") else [("neighbours", asked.neighbours)]
    elif audited.file is not None:
        given += [] if audited.file.unobserved is None else [("unobserved", audited.file.unobserved.name)]
        given += [] if audited.dim is None else [("dim", audited.dim)]
        given += [] if audited.inserted is None else [("inserted", audited.inserted)]
        given += [("kind", audited.kind)]
        for option, usual in (("inclusion", "fixed"), ("neighbours", "add-or-remove")):
            given += [] if getattr(audited, option) == usual else [(option, getattr(audited, option))]
        if audited.file.columns is not None:
            given += zip(("score", "member"), audited.file.columns, strict=True)
        given += [] if audited.file.id is None else [("id", audited.file.id)]
    given += [("delta", repr(result.delta))]
    given += [] if result.confidence == 0.95 else [("confidence", repr(result.confidence))]
    given += [] if asked.claim is None else [("claim", repr(float(asked.claim)))]  # type: ignore[arg-type]
    given += [] if asked.noise_multiplier is None else [("noise-multiplier", repr(float(asked.noise_multiplier)))]
    for name in ("rate", "rounds", "participations", "data_norm"):
        given += [] if getattr(asked, name) is None else [(name.replace("_", "-"), repr(getattr(asked, name)))]
    given += [] if asked.notice == NOTICE else [("notice", repr(asked.notice))]
    given += [] if asked.tried == 1 else [("tried", asked.tried)]
    given += [("ask", question) for question in asked.ask]
    given += [("bound", name) for name in asked.bounds]
    line = "".join(f" --{option} {quote(str(value))}" for option, value in given)
    return line + (" --difference" if asked.difference else "") + (" --force" if asked.force else "")


def quote(word: str) -> str:
    """Quote a word for a shell; one with other than printable characters in a way that bash and zsh know."""
    if word.isprintable():
        return shlex.quote(word)
    bare = (c if c.isprintable() and c not in "\\'" else "".join(f"\\x{b:02x}" for b in os.fsencode(c)) for c in word)
    return f"$'{''.join(bare)}'"


# Writing and reading.


def render(result: AuditResult, document: dict[str, Any], path: Path) -> bytes:
    """Render a record in the form of a file's suffix."""
    # This import loads matplotlib.
    from canaryproof.verify.audit.answer import page

    return in_form(document, path, lambda: page.markdown(result, document), lambda: page.html(result, document))


def in_form(document: dict[str, Any], path: Path, markdown: Callable[[], str], html: Callable[[], str]) -> bytes:
    """Return a record alone, or at the end of a page, whichever form a file's suffix has."""
    if path.suffix.lower() == ".json":
        return f"{dump(document)}\n".encode()
    made = markdown() if path.suffix.lower() == ".md" else html()
    body = f"{printable(made)}\n{OPEN}\n{escape(dump(document))}\n-->\n"
    return f"{body}{SEAL}{hashlib.sha256(body.encode()).hexdigest()} -->\n".encode()


# Lines around the record at the end of a page.
OPEN = "<!-- The record of this report, as a report in JSON has it:"
SEAL = "<!-- SHA-256 of all lines above: "


def escape(document: str) -> str:
    """Escape what could end a comment or begin a tag."""
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", document)


def write(result: AuditResult, path: Path, **heading: str) -> None:
    """Write a report of an audit that is of no file; an ``OSError`` says that it cannot be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"path: must end in .html, .md or .json, not {path.name!r}")
    made = render(result, record(result, ReportHeading(path.name, **heading)), path)
    with replace_file(path) as target:
        target.write(made)


def file_record(
    path: Path, columns: Mapping[str, str | None] | None = None, unobserved: Path | None = None
) -> FileRecord:
    """Return the record of a file, and of a second one; an ``InputError`` says that it cannot be read."""
    named = columns or {}
    pair = (score, member) if (score := named.get("score")) and (member := named.get("member")) else None
    second = None if unobserved is None else SecondFileRecord(unobserved.name, *_size_and_digest(unobserved))
    return FileRecord(path.name, *_size_and_digest(path), pair, named.get("id_column"), second)


def _size_and_digest(path: Path) -> tuple[int, str]:
    with open_file(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        return file.tell(), digest
