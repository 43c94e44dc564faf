"""An audit's part of a model card: facts of its record, and what each of them leaves unknown.

It claims no conformity with any guideline. Tables by NIST SP 800-226 and by Opinion 28/2024 of the European Data
Protection Board are not written: they would have to quote texts that this package was made without.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import checked_path, short_repr
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.answer import report, report_check
from canaryproof.verify.audit.answer.findings import GateOutcome, Question, Status
from canaryproof.verify.audit.answer.plan_comparison import other_version
from canaryproof.verify.audit.answer.result import condition_of
from canaryproof.verify.audit.answer.run_audit import Audit
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import Count
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.markup.digits import percent, round_down, round_to_error
from canaryproof.verify.audit.markup.markdown import code, literal, table

_Text = Annotated[str, rules.line]
_Delta = Annotated[float, rules.number(0.0, 1.0)]
_Probability = Annotated[float, rules.number(0.0, 1.0)]
# Infinite ones are null in JSON.
_Number = Annotated[float, rules.number(-1e300, 1e300)] | None
_Positive = Annotated[float, rules.number(0.0, 1e300)] | None


@dataclass(frozen=True)
class _Named:
    name: _Text


@dataclass(frozen=True)
class _Decision:
    outcome: GateOutcome


@dataclass(frozen=True)
class _Finding:
    question: Question
    status: Status
    because: _Text


@dataclass(frozen=True)
class _Warning:
    kind: _Text


@dataclass(frozen=True)
class _Noise:
    value: _Number
    low: _Number
    high: _Number
    standard_error: _Positive
    claimed: _Positive


@dataclass(frozen=True)
class _Estimate:
    name: _Text
    epsilon: _Number
    low: _Number
    high: _Number
    standard_error: _Positive
    assumes: _Text


@dataclass(frozen=True)
class _Bound:
    name: _Text
    low: _Positive
    cap: _Positive
    coverage: _Text
    assumes: _Text


@dataclass(frozen=True)
class _CardRecord:
    """The fields of an audit's record that a card has."""

    answer: _Text
    decision: _Decision | None
    findings: tuple[_Finding, ...]
    claim: _Positive
    delta: _Delta
    confidence: _Probability
    neighbours: _Text
    count: Count
    null_count: Count | None
    dim: Count | None
    kind: _Text
    inclusion: _Text
    mechanism: _Noise | None
    noticed: _Probability | None
    warnings: tuple[_Warning, ...]
    estimate: _Named | None
    no_estimate: _Text | None
    bound: _Named | None
    estimates: tuple[_Estimate, ...]
    bounds: tuple[_Bound, ...]

    @property
    def has_canaries(self) -> bool:
        """Whether the scores are known to be of canaries: cosines, or those that measure the noise of rounds."""
        return self.kind == ScoreKind.COSINE or self.mechanism is not None


# Facts that the answer to a question leaves unknown.
_UNKNOWN = {
    "input": "mistakes that leave no trace in the scores",
    "noise": "whether it is random, the same in each coordinate, and of a generator with enough states",
    "clipping": "whether each record is clipped that is unlike a random canary",
    "sampling": "whether records are drawn as canaries are",
    "accounting": "whether all that was trained and released is in the record",
    "leak": "what a stronger attacker learns",
    "plan": "what was tried before the plan was made",
}
# The same where scores are of records.
_UNKNOWN_OF_RECORDS = _UNKNOWN | {
    "clipping": "whether each record is clipped",
    "sampling": "whether each record is drawn as the claim says",
}
_NO_PART = "not part of an audit"
# Columns of a terminal.
_WIDTH = 80
_CHOSEN = {
    "fixed": "chosen in advance",
    "coin": "each by a fair coin of its own",
    "independent": "each in a training of its own",
}


@set_module("canaryproof")
def model_card(source: "Audit | str | Path") -> str:
    """Write an audit's part of a model card.

    Parameters
    ----------
    source
        An audit; or its report in any form, which ``Audit.report`` or ``canaryproof audit --report`` wrote.

    Returns
    -------
    A section of Markdown: a table with a row for each fact, and what is not known of it.

    Raises
    ------
    InputError
        If a file cannot be read or is no report, was changed after it was written, or was made by another minor
        version. A card repeats a report, and only ``canaryproof check-report`` tells whether that is true.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> observed = cp.exact_law.cosines(1000, 10**6, 1.54, np.random.default_rng(0))
    >>> found = cp.audit(cp.Scores(observed, dim=10**6), delta=1e-6, claim=3.01)
    >>> card = cp.model_card(found)
    >>> print(card.splitlines()[0])
    ## Privacy audit
    """
    return _card(*_numbers(source))


def outline(source: str | Path) -> str:
    """Lay out a card's facts for a terminal, in lines of 80 columns; what is not known stands in the Markdown alone."""
    answer, rows = _facts(*_numbers(source))
    lines = [*textwrap.wrap(answer, _WIDTH), ""]
    for fact, text, _ in rows:
        if text != _NO_PART:
            # As it reads where Markdown is shown.
            plain = re.sub(r"\\(.)|`", r"\1", text)
            lines += textwrap.wrap(plain, _WIDTH, initial_indent=f"{fact:24}", subsequent_indent=" " * 24)
    return rules.printable("\n".join(lines))


def _numbers(source: "Audit | str | Path") -> tuple[str, object]:
    """Return the name and the numbers of an audit, or of the one that a report is of."""
    if isinstance(source, Audit):
        return "audit", report.numbers(source)
    if not isinstance(source, str | Path):
        raise ValueError(f"source: must be an audit, or the path of its report, not {short_repr(source)}")
    read = report_check.read(checked_path("source", source))
    if read.damage:
        raise InputError(f"{source}: was changed after it was written. {read.damage[0]}")
    if read.record is None:
        raise InputError(f"{source}: {other_version('report', read.made_by)}")
    return f"{source}: audit", read.record.audit


def _card(name: str, numbers: object) -> str:
    """Write the card of an audit's numbers."""
    answer, rows = _facts(name, numbers)
    lines = table(("fact", "this audit", "not known"), rows)
    return rules.printable(f"## Privacy audit\n\n{literal(answer)}\n\n{lines}\n")


def _facts(name: str, numbers: object) -> tuple[str, list[tuple[str, str, str]]]:
    """Return an audit's answer, and its facts; an ``InputError`` names the field that breaks a rule."""
    try:
        record = json_records.read(_CardRecord, numbers)
        return record.answer, list(_rows(record))
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error


def _rows(record: _CardRecord) -> Iterator[tuple[str, str, str]]:
    at = f"δ = {record.delta:g}"
    claim = (
        "none" if record.claim is None else f"ε = {record.claim:.4g} at {at}, neighbours: {literal(record.neighbours)}"
    )
    yield "claim", claim, "whether it is the ε of the training: accounting below says what was looked at"
    outcome = "none, as nothing is claimed" if record.decision is None else record.decision.outcome
    yield "decision", outcome, "no decision proves a claim"
    unknown = _UNKNOWN if record.has_canaries else _UNKNOWN_OF_RECORDS
    for finding in record.findings:
        yield finding.question, f"{finding.status}: {literal(finding.because)}", unknown[finding.question]
    yield "estimate", *_estimate(record, at)
    yield "lower bound", *_bound(record, at)
    others = "" if record.null_count is None else f" against {record.null_count:,} that did not"
    dim = "" if record.dim is None else f", in {record.dim:,} dimensions"
    chosen = rules.one_of(*_CHOSEN)(record.inclusion)
    took_part = f"{record.count:,} took part{others}{dim}; {_CHOSEN[chosen]}; scores: {literal(record.kind)}"
    if record.has_canaries:
        yield "canaries", took_part, "how much more a real record, or one made to be seen, would show"
    else:
        yield "records", took_part, "how much more other records, or one made to be seen, would show"
    yield "measured noise", *_noise(record)
    noticed = record.noticed
    less = (
        "not computed"
        if noticed is None
        else f"noise at {int(100 * noticed)}% of the claim or less, with probability 90%"
    )
    unseen = "random canaries do not see" if record.has_canaries else "these scores do not show"
    yield "would have been noticed", less, f"faults that {unseen}: one unclipped client, released data"
    signs = "; ".join(literal(warning.kind) for warning in record.warnings) or "none"
    yield "signs of misuse", signs, _UNKNOWN["input"]
    for fact in ("training data and whose they are", "purpose and release of the model", "other attacks"):
        yield fact, _NO_PART, "all of it: fill it in, or leave it out"


def _estimate(record: _CardRecord, at: str) -> tuple[str, str]:
    if record.estimate is None:
        return f"none: {literal(record.no_estimate or '')}", "what this attacker learns"
    row = _row(record.estimates, record.estimate)
    value, low, high = _digits(row.standard_error, row.epsilon, row.low, row.high)
    interval = f"{percent(record.confidence)}: {low} to {high}"
    shown = f"ε̂ = {value} at {at} ({interval}; {code(row.name)}){condition_of(row.assumes)}"
    return shown, "the ε of a stronger attacker"


def _bound(record: _CardRecord, at: str) -> tuple[str, str]:
    if record.bound is None:
        return "none", "whether anything leaks"
    row = _row(record.bounds, record.bound)
    value = "∞" if row.low is None else round_down(row.low)
    who = "canaries" if record.has_canaries else "records"
    cap = "" if row.cap is None else f", at most {round_down(row.cap)} from so many {who}"
    coverage = literal(row.coverage) + condition_of(row.assumes)
    return f"ε ≥ {value} at {at} ({code(row.name)}, {coverage}{cap})", "how much more leaks"


def _noise(record: _CardRecord) -> tuple[str, str]:
    measured = record.mechanism
    if measured is None:
        return "not measured", "the noise that was added"
    claimed = "" if measured.claimed is None else f"; claimed {measured.claimed:.4g}"
    value, low, high = _digits(measured.standard_error, measured.value, measured.low, measured.high)
    return f"noise multiplier {value} ({low} to {high}){claimed}", _UNKNOWN["noise"]


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


_Row = TypeVar("_Row", bound=_HasName)


def _row(rows: Iterable[_Row], stated: _Named) -> _Row:
    for row in rows:
        if row.name == stated.name:
            return row
    raise ValueError(f"states {short_repr(stated.name)}, which has no row")


def _digits(standard_error: float | None, *values: float | None) -> Iterator[str]:
    """Print numbers with two digits of their standard error; infinite ones are None in JSON."""
    error = math.inf if standard_error is None else standard_error
    return ("∞" if value is None else round_to_error(value, error) for value in values)
