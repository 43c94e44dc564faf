"""The guard: a verdict on a document's statement is a finding, and one that changes is a failure.

The expected verdicts stand in a table under version control with their statements, whatever level and seed: to list
them, no suite is loaded. So do the sentences that follow from printed numbers alone. ``make published`` takes over what
belongs to the checks that it judges.
"""

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from importlib.resources import files
from types import MappingProxyType

from canaryproof.verify.papers.check.results import Result, Run, Subject, Verdict

TABLE = "expected_verdicts.csv"
_FIELDS = ["suite", "id", "verdict", "statement"]
FINDINGS = "expected_findings.csv"
_FINDING_FIELDS = ["id", "finding"]

Expected = dict[tuple[str, str], Verdict]


def read(text: str | None = None) -> Expected:
    """Read a table of expected verdicts.

    It is the package's by default. A ValueError says that its columns are others, a row is twice there, or there is no
    such verdict.
    """
    rows = _rows(text)
    expected = {(suite, name): Verdict(verdict) for suite, name, verdict, _ in rows}
    if len(expected) < len(rows):
        raise ValueError(f"{TABLE}: a suite and id are there twice")
    return expected


def read_statements(text: str | None = None) -> dict[tuple[str, str], str]:
    """Read the statements of the table of expected verdicts, by suite and id."""
    return {(suite, name): statement for suite, name, _, statement in _rows(text)}


def _rows(text: str | None) -> list[list[str]]:
    header, *rows = csv.reader(_text(TABLE, text).splitlines())
    if header != _FIELDS:
        raise ValueError(f"{TABLE}: the columns must be {', '.join(_FIELDS)}")
    return rows


def read_findings(text: str | None = None) -> dict[str, str]:
    """Read a table of the findings that follow from printed numbers alone, by check.

    It is the package's by default. A ValueError says that its columns are others, or a row is twice there.
    """
    header, *rows = csv.reader(_text(FINDINGS, text).splitlines())
    if header != _FINDING_FIELDS:
        raise ValueError(f"{FINDINGS}: the columns must be {', '.join(_FINDING_FIELDS)}")
    findings = dict(rows)
    if len(findings) < len(rows):
        raise ValueError(f"{FINDINGS}: an id is there twice")
    return findings


def _text(name: str, text: str | None) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8") if text is None else text


_ROUNDED = re.compile(r"(\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+)")


def _alike(finding: str, sentence: str) -> bool:
    """Tell whether two sentences say the same, but for one unit of a rounded number's last digit.

    Processors and libraries differ in the last bits, which now and then decide how a number is rounded.
    """
    parts, expected = _ROUNDED.split(finding), _ROUNDED.split(sentence)
    # Words stand at even places, and rounded numbers between them.
    return parts[::2] == expected[::2] and all(
        abs(Decimal(number) - Decimal(before)) <= Decimal((0, (1,), int(Decimal(before).as_tuple().exponent)))
        for number, before in zip(parts[1::2], expected[1::2], strict=True)
    )


def changes(
    run: Run,
    expected: Expected,
    suites: Collection[str],
    *,
    findings: Mapping[str, str] = MappingProxyType({}),
    with_data: bool = False,
) -> list[str]:
    """Compare a run with what is expected of the suites that it ran.

    ``suites`` are those that were to be judged. ``findings`` are sentences that are expected too, by check.
    ``with_data`` says that the run had the user's experiments: what needed data may then have any verdict.
    """
    lines = []
    for result in run.results:
        # Checks of this package fail by their own verdict.
        own = result.subject is Subject.IMPLEMENTATION
        before = result.verdict if own else expected.get((result.suite, result.id))
        if before is None:
            lines.append(f"{result.id}: not in {TABLE}, found {result.verdict}: {result.finding}")
        elif before is not result.verdict and not (with_data and before is Verdict.NEEDS_DATA):
            lines.append(f"{result.id}: expected {before}, found {result.verdict}: {result.finding}")
        elif not _alike(result.finding, sentence := findings.get(result.id, result.finding)):
            lines.append(f'{result.id}: expected the finding "{sentence}", found "{result.finding}"')
    # A check that could not be judged is a failure already, under the same id.
    judged = {(result.suite, result.id) for result in run.results}
    lost = [name for suite, name in expected if suite in suites and (suite, name) not in judged]
    return lines + [f"{name}: in {TABLE}, but no check judges it" for name in lost]


def updated(results: Sequence[Result], expected: Expected, known: Mapping[tuple[str, str], str]) -> str:
    """Return the table with the verdicts of results in place of earlier ones, of the ``known`` statements."""
    rows = {key: verdict for key, verdict in expected.items() if key in known}
    rows |= {(r.suite, r.id): r.verdict for r in results if r.subject is Subject.DOCUMENT}
    statements = dict(known) | {(r.suite, r.id): r.statement for r in results}
    return _table([_FIELDS, *([*key, str(verdict), statements[key]] for key, verdict in sorted(rows.items()))])


def updated_findings(results: Sequence[Result], findings: Mapping[str, str], fixed: Collection[str]) -> str:
    """Return the table of the findings of ``fixed`` checks, with those of results in place of earlier ones."""
    anew = {result.id: result.finding for result in results}
    rows = [(name, sentence) for name, sentence in sorted({**findings, **anew}.items()) if name in fixed]
    return _table([_FINDING_FIELDS, *rows])


def _table(rows: Iterable[Sequence[str]]) -> str:
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(rows)
    return table.getvalue()
