"""The guard: a verdict on a document's statement is a finding, and one that changes is a failure.

The expected verdicts stand in a table under version control, whatever level and seed. So do the sentences that follow
from printed numbers alone. This takes over those of a finished run, for the suites that it ran::

    python -m canaryproof.verify.papers.runs.expected RUN verify/audit/engine
"""

import csv
import io
import re
import sys
from collections.abc import Collection, Mapping
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from canaryproof.verify.papers.check.results import Run, Subject, Verdict
from canaryproof.verify.papers.check.verdicts import is_fixed
from canaryproof.verify.papers.records.report_input import read_run
from canaryproof.verify.papers.runs.plan import load

_TABLE = "expected_verdicts.csv"
_FIELDS = ["suite", "id", "verdict"]
_FINDINGS = "expected_findings.csv"
_FINDING_FIELDS = ["id", "finding"]

Expected = dict[tuple[str, str], Verdict]


def read(text: str | None = None) -> Expected:
    """Read a table of expected verdicts.

    It is the package's by default. A ValueError says that its columns are others, a row is twice there, or there is no
    such verdict.
    """
    header, *rows = csv.reader(_text(_TABLE, text).splitlines())
    if header != _FIELDS:
        raise ValueError(f"{_TABLE}: the columns must be {', '.join(_FIELDS)}")
    expected = {(suite, name): Verdict(verdict) for suite, name, verdict in rows}
    if len(expected) < len(rows):
        raise ValueError(f"{_TABLE}: a suite and id are there twice")
    return expected


def read_findings(text: str | None = None) -> dict[str, str]:
    """Read a table of the findings that follow from printed numbers alone, by check.

    It is the package's by default. A ValueError says that its columns are others, or a row is twice there.
    """
    header, *rows = csv.reader(_text(_FINDINGS, text).splitlines())
    if header != _FINDING_FIELDS:
        raise ValueError(f"{_FINDINGS}: the columns must be {', '.join(_FINDING_FIELDS)}")
    findings = dict(rows)
    if len(findings) < len(rows):
        raise ValueError(f"{_FINDINGS}: an id is there twice")
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
            lines.append(f"{result.id}: not in {_TABLE}, found {result.verdict}: {result.finding}")
        elif before is not result.verdict and not (with_data and before is Verdict.NEEDS_DATA):
            lines.append(f"{result.id}: expected {before}, found {result.verdict}: {result.finding}")
        elif not _alike(result.finding, sentence := findings.get(result.id, result.finding)):
            lines.append(f'{result.id}: expected the finding "{sentence}", found "{result.finding}"')
    # A check that could not be judged is a failure already, under the same id.
    judged = {(result.suite, result.id) for result in run.results}
    lost = [name for suite, name in expected if suite in suites and (suite, name) not in judged]
    return lines + [f"{name}: in {_TABLE}, but no check judges it" for name in lost]


def updated(run: Run, expected: Expected) -> str:
    """Return the table with the verdicts of a run in place of those expected of its suites."""
    suites = {result.suite for result in run.results}
    rows = {key: verdict for key, verdict in expected.items() if key[0] not in suites}
    rows |= {(r.suite, r.id): r.verdict for r in run.results if r.subject is Subject.DOCUMENT}
    lines = [_FIELDS, *([*key, str(verdict)] for key, verdict in sorted(rows.items()))]
    return "".join(",".join(line) + "\n" for line in lines)


def updated_findings(run: Run, findings: Mapping[str, str], fixed: Collection[str]) -> str:
    """Return the table of the findings of ``fixed`` checks, with those of a run in place of earlier ones."""
    anew = {result.id: result.finding for result in run.results}
    rows = [(name, sentence) for name, sentence in sorted({**findings, **anew}.items()) if name in fixed]
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([_FINDING_FIELDS, *rows])
    return table.getvalue()


def main(folder: Path, tables: Path) -> None:
    """Take over the verdicts and findings of the run in a folder."""
    run = read_run(folder)
    if run.failures:
        sys.exit(f"{folder}: {run.failures[0].id} fails; only the verdicts of a run without failures can be expected")
    suites = load("canaryproof.verify.papers.suites.catalogue:SUITES")
    fixed = {check.id for checks in suites.values() for check in checks if is_fixed(check.judge)}
    verdicts, findings = (tables / name for name in (_TABLE, _FINDINGS))
    verdicts.write_text(updated(run, read(verdicts.read_text()) if verdicts.exists() else {}), encoding="utf-8")
    before = read_findings(findings.read_text(encoding="utf-8")) if findings.exists() else {}
    findings.write_text(updated_findings(run, before, fixed), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
