"""Command ``canaryproof check-report``: derive every number of a report again from the audited input."""

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from canaryproof.verify.audit.cli.audit_inputs import read_scores
from canaryproof.verify.audit.cli.options import FilePath, one_line
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.files.stored_release import reopen

if TYPE_CHECKING:
    from canaryproof.verify.audit.answer.report import InputRecord, ReportRecord
    from canaryproof.verify.audit.answer.report_check import ReportCheck, ReportFile
    from canaryproof.verify.audit.answer.run_audit import Audit

# Exit status where nobody can say, as of a gate.
_UNDECIDED = 3


@click.command("check-report")
@click.argument("report", type=FilePath())
@click.option("--release", type=FilePath(), metavar="FILE", help="The released vector that was audited.")
@click.option("--scores", type=FilePath(), metavar="FILE", help="The scores that were audited.")
@click.option(
    "--unobserved", type=FilePath(), metavar="FILE", help="The file of unobserved scores, if there was one of its own."
)
@click.option("--plan", type=FilePath(), metavar="FILE", help="The plan that the audit was held against.")
@click.option("--watch", type=FilePath(), metavar="FILE", help="The file of a watch, of whose answer the report is.")
def check_report_command(
    report: Path,
    release: Path | None,
    scores: Path | None,
    unobserved: Path | None,
    plan: Path | None,
    watch: Path | None,
) -> int:
    """Compute an audit's report again, and say which of its numbers differ.

    REPORT is what "audit --report" or Audit.report of Python wrote, in any of its forms. The audit is repeated on the
    release, whose canaries are made again from the seed in the report, or on the scores; a watch's file is answered
    again. The exit status is 0 if the report is true, 1 if it was changed, or a number differs, or the file is another
    one than the audited, and 3 if nobody can say: a report that was held against a plan needs the plan, and one that
    another minor version made is only looked at for changes.
    """
    if sum(each is not None for each in (release, scores, watch)) != 1:
        raise InputError("--release, --scores or --watch: must be given, and one of them alone")
    if unobserved is not None and scores is None:
        raise InputError("--unobserved: must be given with --scores")
    if watch is not None:
        if plan is not None:
            raise InputError("--plan: must not be given with --watch, as no watch has a plan")
        return _check_watch(report, watch)
    # Loads compiled kernels, which a mistake in the options does not wait for.
    from canaryproof.verify.audit.answer import report as reports
    from canaryproof.verify.audit.answer import report_check

    read = report_check.read(report)
    subject, file = ("release", release) if release is not None else ("scores", scores)
    assert file is not None
    if read.record is None:
        return _of_other_version(read, report, file, plan)
    if read.record.input.subject != subject:
        raise InputError(f"--{subject}: must not be given, as the report is of {_subject_name(read.record.input)}")
    second = read.record.input.file is not None and read.record.input.file.unobserved is not None
    if second and unobserved is None:
        raise InputError("--unobserved: must be given, as the report is of two files")
    differing = [*read.damage, *_other_file(read.document, file)]
    if unobserved is not None:
        differing += _other_file(read.document, unobserved, ("input", "file", "unobserved"))
    if differing:
        return _not_true(report, differing)
    audit = _repeat(read.record, file, unobserved)
    check = report_check.compare(read, audit, report, reports.file_record(file, unobserved=unobserved), plan)
    return _say_check(report, file, check, read.record.answer, report_check.count_values(read.document))


def _check_watch(report: Path, watch: Path) -> int:
    """Check the report of a watch's answer."""
    from canaryproof.verify.audit.answer import report_check
    from canaryproof.verify.audit.watch import watch_report

    read = watch_report.read(report)
    if read.record is None:
        return _of_other_version(read, report, watch, None, ("file",))
    if read.damage:
        return _not_true(report, read.damage)
    check = watch_report.compare(read, report, watch)
    return _say_check(report, watch, check, read.record.answer, report_check.count_values(read.document))


def _say_check(report: Path, file: Path, check: "ReportCheck", answer: str, count: int) -> int:
    """Say what a check of a report has found, and return its status."""
    if check.differing:
        return _not_true(report, check.differing)
    others = f"{count - check.trusted_values:,} values are derived anew from {file} and are the same"
    trusted = f"not derived, {check.trusted_values} of its {count:,} values: {'; '.join(check.trusted)}"
    if check.undecided:
        _say(f"Cannot say whether {report} is true, as {check.undecided}.")
        if check.trusted:
            _say(f"N{trusted[1:]}.")
        _say(f"The other {others}.")
    elif check.trusted:
        _say(f"{report} is true but for what was {trusted}.")
        _say(answer)
        _say(f"The other {others}.")
    else:
        # The decision first: that a report is true does not mean that the audit passed.
        _say(answer)
        _say(f"{report} is true: all {others}.")
    if check.rounding:
        named = ", ".join(check.rounding[:3]) + (", …" if len(check.rounding) > 3 else "")
        _say(f"Numbers that other versions or processors round otherwise, by less than 1e-9 of their size: {named}.")
    return _UNDECIDED if check.undecided else 0


def _say(sentence: str) -> None:
    """Print a sentence, whatever names in it look like: as one line, on a terminal in lines that break no name."""
    line = one_line(sentence)
    if sys.stdout.isatty():
        line = textwrap.fill(line, 80, break_long_words=False, break_on_hyphens=False)
    click.echo(line)


def _not_true(report: Path, differing: Sequence[str]) -> int:
    _say(f"{report} is not true.")
    # A line each, as a pipe searches them.
    for difference in differing:
        click.echo(f"  {one_line(difference)}")
    return 1


def _of_other_version(
    read: "ReportFile[Any]", report: Path, file: Path, plan: Path | None, keys: tuple[str, ...] = ("input", "file")
) -> int:
    """Look whether a report that another minor version made was changed, or is of another file or plan."""
    from canaryproof.verify.audit.answer import report_check
    from canaryproof.verify.audit.answer.plan_comparison import other_version

    changed = [*read.damage, *_other_file(read.document, file, keys)]
    if plan is not None:
        if report_check.find_digest(read.document, "plan", "sha256") is None:
            raise InputError(report_check.NO_PLAN)
        changed += _other_file(read.document, plan, ("plan",), "the plan that the audit was held against")
    if changed:
        return _not_true(report, changed)
    _say(other_version("report", read.made_by))
    named = report_check.find_digest(read.document, *keys, "sha256") is not None
    same = f", and {file} is the file that was audited" if named else ""
    _say(f"{report} was not changed after it was written{same}.")
    return _UNDECIDED


def _subject_name(audited: "InputRecord") -> str:
    return "a release" if audited.subject == "release" else "scores"


def _other_file(
    document: dict[str, Any], file: Path, keys: tuple[str, ...] = ("input", "file"), words: str = "the audited file"
) -> list[str]:
    """Say whether a file is another one than that whose digest a report has under some keys, if it has one."""
    from canaryproof.verify.audit.answer import report as reports
    from canaryproof.verify.audit.answer import report_check

    there, here = report_check.find_digest(document, *keys, "sha256"), reports.file_record(file).sha256
    return [] if there in (None, here) else [report_check.other_file(file, words, here, str(there))]


def _repeat(record: "ReportRecord", file: Path, unobserved: Path | None) -> "Audit":
    from canaryproof.verify.audit.answer import report_check

    audited = record.input
    if audited.subject == "release":
        coordinates = record.audit.get("coordinates") if isinstance(record.audit, dict) else None
        return report_check.derive(record, reopen(file, coordinates))
    columns: dict[str, str | None] = {}
    if audited.file is not None:
        pair = audited.file.columns or (None, None)
        columns = {"score": pair[0], "member": pair[1], "id_column": audited.file.id}
    # Loads compiled kernels.
    from canaryproof.verify.audit.canaries.score_files import UNASKED

    given = {name: getattr(audited, name) for name in UNASKED} | {"kind": _kind(audited.kind)}
    return report_check.derive(record, read_scores(file, given, columns, unobserved))


def _kind(name: str) -> ScoreKind:
    try:
        return ScoreKind(name)
    except ValueError as error:
        raise InputError(f"the report's input.kind: must be cosine or any, not {name!r}") from error
