"""The guard: a verdict on a document's statement is a finding, and one that changes is a failure.

The expected verdicts stand in a table under version control, whatever level and seed. This takes over the verdicts of a
finished run, for the suites that it ran::

    python -m canaryproof.verify.engine.expected RUN verify/engine/expected_verdicts.csv
"""

import csv
import sys
from collections.abc import Collection
from importlib.resources import files
from pathlib import Path

from canaryproof.verify.check.results import Run, Subject, Verdict
from canaryproof.verify.files.report_input import read_run

_TABLE = "expected_verdicts.csv"
_FIELDS = ["suite", "id", "verdict"]

Expected = dict[tuple[str, str], Verdict]


def read(text: str | None = None) -> Expected:
    """Read a table of expected verdicts.

    It is the package's by default. A ValueError says that its columns are others, a row is twice there, or there is no
    such verdict.
    """
    lines = ((files(__package__) / _TABLE).read_text(encoding="utf-8") if text is None else text).splitlines()
    header, *rows = csv.reader(lines)
    if header != _FIELDS:
        raise ValueError(f"{_TABLE}: the columns must be {', '.join(_FIELDS)}")
    expected = {(suite, name): Verdict(verdict) for suite, name, verdict in rows}
    if len(expected) < len(rows):
        raise ValueError(f"{_TABLE}: a suite and id are there twice")
    return expected


def changes(run: Run, expected: Expected, suites: Collection[str], *, with_data: bool = False) -> list[str]:
    """Compare a run with what is expected of the suites that it ran.

    ``suites`` are those that were to be judged. ``with_data`` says that the run had the user's experiments: what needed
    data may then have any verdict.
    """
    lines = []
    for result in run.results:
        if result.subject is not Subject.DOCUMENT:
            continue
        before = expected.get((result.suite, result.id))
        if before is None:
            lines.append(f"{result.id}: not in {_TABLE}, found {result.verdict}: {result.finding}")
        elif before is not result.verdict and not (with_data and before is Verdict.NEEDS_DATA):
            lines.append(f"{result.id}: expected {before}, found {result.verdict}: {result.finding}")
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


def main(folder: Path, table: Path) -> None:
    """Take over the verdicts of the run in a folder."""
    run = read_run(folder)
    if run.failures:
        sys.exit(f"{folder}: {run.failures[0].id} fails; only the verdicts of a run without failures can be expected")
    table.write_text(updated(run, read(table.read_text()) if table.exists() else {}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
