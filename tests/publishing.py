"""The published record, ``reports/published``: judge what has no row in it at the full level, and make all its pages.

``make published`` judges the checks that have no row, or other words than their row, or follow from printed numbers
alone by other code than their row's. ``CHECKS`` names others: ids, suites, or ``outdated`` for whatever ``make
release-check`` finds, which before a release with another minor version is a run of everything. What is done is
published even if the command is interrupted, so that the next one goes on. The tables of expected verdicts and findings
get what was judged, too. Read the diff.
"""

import json
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any

import click

from canaryproof.proofs_check.code_digest import code_digest
from canaryproof.reports import canife, training
from canaryproof.reports.pages import FILES, RESULTS, figures_of, markdown_of
from canaryproof.verify.audit.cli.progress import progress
from canaryproof.verify.audit.engine.executors import Local, threads
from canaryproof.verify.audit.files.json_records import plain, read, to_document
from canaryproof.verify.papers.check.results import Check, Context, Origin, Result, Run
from canaryproof.verify.papers.check.verdicts import is_fixed
from canaryproof.verify.papers.records.benchmark_record import BenchmarkRecord
from canaryproof.verify.papers.records.report_input import (
    CANIFE,
    ENVIRONMENT,
    EXPERIMENT,
    read_record,
    read_run,
)
from canaryproof.verify.papers.records.tables import in_tables, out_of_tables
from canaryproof.verify.papers.records.training_record import ExperimentRecord
from canaryproof.verify.papers.runs import expected
from canaryproof.verify.papers.runs.plan import Plan, load
from canaryproof.verify.papers.runs.run_file import RunFile, result_of
from canaryproof.verify.papers.runs.run_plan import run_plan
from tests import written as documents

ROOT = Path(__file__).parents[1]
PUBLISHED, EXPECTED = ROOT / "reports/published", ROOT / "verify/papers/runs"
SUITES = "canaryproof.verify.papers.suites.catalogue:SUITES"
OUTDATED = "outdated"
# Measured numbers keep so many digits, or the most that a float has, where their table is so large: its pages show five
# at most.
_DIGITS, _MOST_DIGITS, _LARGE = 6, 17, 5_000

Suites = Mapping[str, Sequence[Check]]


def source(check: Check) -> str:
    """Return the digest of a check's own code: its functions, what they reach in their modules, and their arguments.

    What these call of other modules is no part of it: the library's tests hold that, and a release's minor version.
    """
    places: list[tuple[str, str]] = []
    words: list[str] = []
    left: list[Any] = [check.judge]
    while left:
        part = left.pop()
        part = getattr(part, "__wrapped__", getattr(part, "py_func", part))
        if isinstance(part, FunctionType) and part.__module__.startswith("canaryproof."):
            name = part.__qualname__.partition(".")[0]
            place = part.__module__, f"<lambda> {part.__code__.co_firstlineno}" if name.startswith("<") else name
            if place not in places:
                places.append(place)
                left += [*(part.__defaults__ or ()), *(cell.cell_contents for cell in part.__closure__ or ())]
        elif isinstance(part, partial):
            left += [part.func, *part.args, *part.keywords.items()]
        elif is_dataclass(part) and not isinstance(part, type):
            left += [getattr(part, field.name) for field in fields(part)]
        elif isinstance(part, tuple | list):
            left += part
        elif isinstance(part, Mapping):
            left += part.items()
        elif part is None or isinstance(part, str | int | float | Fraction | Enum):
            words.append(repr(part))
        else:
            words.append(getattr(part, "__qualname__", type(part).__qualname__))
    code = code_digest(places, {module for module, _ in places})
    return sha256("\n".join([code, *words]).encode()).hexdigest()[:12]


def new(check: Check, row: Result | None) -> str:
    """Say why a check is judged anew without being asked for; nothing if it is not."""
    if row is None:
        return "no row"
    if (row.statement, row.source) != (check.statement, check.source):
        return "other words"
    return "other code, and no chance" if is_fixed(check.judge) and _changed(check, row) else ""


def outdated(check: Check, row: Result | None) -> str:
    """Say why a row cannot be released; nothing if it can."""
    if row is None or row.origin is None or new(check, row):
        return new(check, row) or "no origin"
    if (minor := _minor(row.origin.version)) != _minor(version("canaryproof")):
        return f"of version {minor}"
    return "other code" if _changed(check, row) else ""


def _changed(check: Check, row: Result) -> bool:
    return row.origin is None or row.origin.source != source(check)


def _minor(number: str) -> str:
    return ".".join(number.split(".")[:2])


def reasons(run: Run, suites: Suites, rule: Any) -> dict[str, str]:
    """Return the ids of the checks that a rule names, with why."""
    rows = {row.id: row for row in run.results}
    found = {check.id: rule(check, rows.get(check.id)) for checks in suites.values() for check in checks}
    return {name: why for name, why in found.items() if why}


def chosen(names: Sequence[str], run: Run, suites: Suites) -> frozenset[str]:
    """Return the ids of the checks that names ask for: ids, suites, or what is outdated; what is new by default."""
    if not names:
        return frozenset(reasons(run, suites, new))
    ids = {check.id for checks in suites.values() for check in checks}
    found: set[str] = set()
    for name in names:
        if name == OUTDATED:
            found |= reasons(run, suites, outdated).keys()
        elif name in suites:
            found |= {check.id for check in suites[name]}
        elif name in ids:
            found.add(name)
        else:
            raise click.BadParameter(f"there is no check and no suite {name!r}")
    return frozenset(found)


def judged(plan: Plan) -> list[Result]:
    """Judge a plan's checks, and return what was found, all of it unless that is interrupted or a check raises."""
    with RunFile(None, plan.origin, plan.checks) as file, progress("published", equal_parts=False) as advance:
        try:
            run_plan(plan, file, Local(threads()), lambda done, total, current: advance(current, done, total))
        except KeyboardInterrupt:
            click.echo("Interrupted. What was judged is published, and the same command goes on.", err=True)
        return [result_of(None, row) for row in file.results().values()]


def merged(run: Run, results: Iterable[Result], suites: Suites) -> Run:
    """Put results, judged today at the level and the seed of a published run, in the place of their rows."""
    checks = {check.id: check for each in suites.values() for check in each}
    today, number = datetime.now(UTC).date().isoformat(), version("canaryproof")
    rows = {row.id: row for row in run.results}
    for result in results:
        large = result.design is not None and len(json.dumps(plain(result.evidence))) > _LARGE
        evidence = rounded(result.evidence) if large else result.evidence
        origin = Origin(number, today, run.level, run.seed, source(checks[result.id]))
        rows[result.id] = replace(result, evidence=evidence, origin=origin)
    return replace(run, version=number, results=tuple(rows[name] for name in checks if name in rows))


def rounded(value: Any) -> Any:
    """Cut the digits of measured numbers; those of a list keep so many that different ones stay different.

    Two that are so near to each other are an enclosure, and keep all.
    """
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        numbers = {item for item in value if isinstance(item, float)}
        tried = range(_DIGITS, _MOST_DIGITS + 1) if len(value) > 2 else (_DIGITS, _MOST_DIGITS)
        digits = next(n for n in tried if len({_cut(x, n) for x in numbers}) == len(numbers))
        return [_cut(item, digits) if isinstance(item, float) else rounded(item) for item in value]
    return _cut(value, _DIGITS) if isinstance(value, float) else value


def _cut(value: float, digits: int) -> float:
    return value if value.is_integer() else float(f"{value:.{digits}g}")


def companions(folder: Path) -> Iterator[tuple[str, str]]:
    """Make the other records in a folder anew, with their pages and pictures, by file name."""
    if (path := folder / CANIFE).exists():
        record = read_record(BenchmarkRecord, path)
        # The page shows means, and claims are judged of the first trainings on Fashion-MNIST alone.
        kept = 1 if record.printed is not None and record.printed.fashion else 0
        bare = [scenario if i < kept else replace(scenario, runs=None) for i, scenario in enumerate(record.scenarios)]
        document = rounded(to_document(replace(record, scenarios=tuple(bare))))
        yield from {CANIFE: in_tables(document), **canife.render(read(BenchmarkRecord, document))}.items()
    if (path := folder / EXPERIMENT).exists():
        yield EXPERIMENT, in_tables(out_of_tables(json.loads(path.read_bytes())))
        document = rounded(to_document(read_record(ExperimentRecord, folder / RESULTS)))
        yield from {RESULTS: in_tables(document), **training.render(read(ExperimentRecord, document))}.items()


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files that differ into a folder."""
    for name, contents in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != contents:
            path.write_bytes(contents)


def expect(results: Sequence[Result], suites: Suites) -> None:
    """Take over verdicts and findings of results into the tables of those expected."""
    known = {(suite, check.id): check.statement for suite, checks in suites.items() for check in checks}
    fixed = {check.id for checks in suites.values() for check in checks if is_fixed(check.judge)}
    verdicts, findings = expected.read(), expected.read_findings()
    for name, text in (
        (expected.TABLE, expected.updated(results, verdicts, known)),
        (expected.FINDINGS, expected.updated_findings(results, findings, fixed)),
    ):
        (EXPECTED / name).write_text(text, encoding="utf-8")


@click.command("published")
@click.argument("names", nargs=-1, metavar="[ID|SUITE|outdated]...")
@click.option("--check", is_flag=True, help="Judge nothing; the exit status is 1 if a row cannot be released.")
def main(names: tuple[str, ...], check: bool) -> None:
    """Judge checks at the full level, put their rows into the published record, and make its pages anew."""
    suites, run = load(SUITES), read_run(PUBLISHED)
    if check:
        of_reason = defaultdict(list)
        for name, why in reasons(run, suites, outdated).items():
            of_reason[why].append(name)
        for why, those in of_reason.items():
            click.echo(f"{why}: {len(those)}: {' '.join(those)}")
        sys.exit(1 if of_reason else 0)
    ids = chosen(names, run, suites)
    plan = Plan(SUITES, tuple(suites), Context(run.level, run.seed), ids)
    found = judged(plan) if ids else []
    results = [result for result in found if not result.failed]
    run = merged(run, results, suites) if results else run
    made = markdown_of(run, in_tables(run.to_json()), figures_of(run))
    write(PUBLISHED, made)
    for path in (path for pattern in FILES for path in PUBLISHED.glob(pattern)):
        if path.name not in made:
            path.unlink()
    for folder in (PUBLISHED, *sorted(path for path in PUBLISHED.iterdir() if path.is_dir())):
        write(folder, {name: text.encode() for name, text in companions(folder)})
    if len(results) == len(run.results):
        environment = {"command": "make published", **plan.origin}
        text = json.dumps(environment, ensure_ascii=False, indent=1) + "\n"
        write(PUBLISHED, {ENVIRONMENT: text.encode()})
    expect(results, suites)
    # Parts of the documents show published results.
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        page.write_text(documents.written(text), encoding="utf-8")
    for result in found:
        click.echo(f"{result.id}: {'FAILED: ' if result.failed else ''}{result.verdict}: {result.finding}")
    lost = sorted(ids - {result.id for result in results})
    if lost:
        sys.exit(f"not published: {' '.join(lost)}")


if __name__ == "__main__":
    # A shell starts what is in the background without interrupts, and whoever ends it there sends SIGTERM.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    main()
