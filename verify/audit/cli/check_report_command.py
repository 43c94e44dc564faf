"""Command ``canaryproof check-report``: derive every number of a report again from the audited input."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from canaryproof.verify.audit.cli.audit_command import UNASKED, scores_of
from canaryproof.verify.audit.cli.options import FilePath, one_line
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.files.stored_release import reopen

if TYPE_CHECKING:
    from canaryproof.verify.audit.answer.plan_comparison import Comparison
    from canaryproof.verify.audit.answer.report import InputRecord, ReportRecord
    from canaryproof.verify.audit.answer.report_check import ReportFile
    from canaryproof.verify.audit.answer.run_audit import Audit

# Most differences that are printed.
_MOST = 20
# Exit status where nobody can say, as of a gate.
_UNDECIDED = 3


@click.command("check-report")
@click.argument("report", type=FilePath())
@click.option("--release", type=FilePath(), metavar="FILE", help="The released vector that was audited.")
@click.option("--scores", type=FilePath(), metavar="FILE", help="The scores that were audited.")
@click.option("--plan", type=FilePath(), metavar="FILE", help="The plan that the audit was held against.")
def check_report_command(report: Path, release: Path | None, scores: Path | None, plan: Path | None) -> int:
    """Compute every number of an audit's report again, and say which differ.

    REPORT is what "audit --report" or Audit.report of Python wrote, in any of its forms. The audit is repeated on the
    release, whose canaries are made again from the seed in the report, or on the scores. The exit status is 0 if the
    report is true, and 1 if it was changed, or a number differs, or the file is another one than the audited. A report
    that another minor version made is only looked at for changes: the status is then 3 at best.
    """
    if (release is None) == (scores is None):
        raise InputError("--release or --scores: must be given, and not both")
    # Loads compiled kernels, which a mistake in the options does not wait for.
    from canaryproof.verify.audit.answer import report_check

    read = report_check.read(report)
    subject, file = ("release", release) if release is not None else ("scores", scores)
    if read.record is None:
        assert file is not None
        return _of_other_version(read, report, file, plan)
    if read.record.input.subject != subject or file is None:
        raise InputError(f"--{subject}: must not be given, as the report is of {_subject_name(read.record.input)}")
    notes: list[str] = []
    audited = read.record.input.file
    differing = [] if audited is None else _other_file(audited.sha256, file)
    differing = [
        *read.damage,
        *(differing or _compare(read, _repeat(read.record, file), report, plan, notes)),
    ]
    name, of = one_line(str(report)), one_line(str(file))
    if differing:
        click.echo(f"{name} is not true.")
        click.echo("\n".join(f"  {difference}" for difference in differing))
    else:
        count = report_check.count_values(read.document)
        # The decision first: that a report is true does not mean that the audit passed.
        click.echo(one_line(read.record.answer))
        click.echo(f"{name} is true: all {count:,} values are derived anew from {of} and are the same.")
    click.echo("".join(f"{note}\n" for note in notes), nl=False)
    return 1 if differing else 0


def _of_other_version(read: "ReportFile", report: Path, file: Path, plan: Path | None) -> int:
    """Look whether a report that another minor version made was changed, or is of another file or plan."""
    from canaryproof.verify.audit.answer import report_check
    from canaryproof.verify.audit.answer.plan_comparison import other_version

    digest = report_check.find_digest(read.document, "input", "file", "sha256")
    changed = [*read.damage, *([] if digest is None else _other_file(digest, file))]
    if plan is not None:
        held_against = report_check.find_digest(read.document, "plan", "sha256")
        if held_against is None:
            raise InputError(_NO_PLAN)
        changed += _other_plan(held_against, plan)
    if changed:
        click.echo(f"{one_line(str(report))} is not true.")
        click.echo("\n".join(f"  {change}" for change in changed))
        return 1
    click.echo(other_version("report", read.made_by))
    same = "" if digest is None else f", and {one_line(str(file))} is the file that was audited"
    click.echo(f"{one_line(str(report))} was not changed after it was written{same}.")
    return _UNDECIDED


def _subject_name(audited: "InputRecord") -> str:
    return "a release" if audited.subject == "release" else "scores"


_NO_PLAN = "--plan: must not be given, as the report is of an audit without a plan"


def _other_file(digest: str, file: Path, words: str = "the audited file") -> list[str]:
    """Say whether a file is another one than that of a digest, which words name."""
    from canaryproof.verify.audit.answer import report as reports

    here = reports.file_record(file).sha256
    if here == digest:
        return []
    return [f"{one_line(str(file))} is not {words}: its SHA-256 is {here}, not {one_line(digest)}."]


def _other_plan(digest: str, plan: Path) -> list[str]:
    """Say whether a plan is another one than that of a digest."""
    return _other_file(digest, plan, "the plan that the audit was held against")


def _repeat(record: "ReportRecord", file: Path) -> "Audit":
    from canaryproof.verify.audit.answer import report_check

    audited = record.input
    if audited.subject == "release":
        coordinates = record.audit.get("coordinates") if isinstance(record.audit, dict) else None
        return report_check.derive(record, reopen(file, coordinates))
    columns, id_column = (None, None) if audited.file is None else (audited.file.columns, audited.file.id)
    given: dict[str, Any] = UNASKED
    if file.suffix.lower() != ".json":
        given = {name: getattr(audited, name) for name in UNASKED} | {"kind": _kind(audited.kind)}
    return report_check.derive(record, scores_of(file, columns, given, id_column))


def _kind(name: str) -> ScoreKind:
    try:
        return ScoreKind(name)
    except ValueError as error:
        raise InputError(f"the report's input.kind: must be cosine or any, not {one_line(name)!r}") from error


def _compare(read: "ReportFile", result: "Audit", report: Path, plan: Path | None, notes: list[str]) -> list[str]:
    """Compare a report with its audit, computed again; notes name the parts that were not compared."""
    from canaryproof.verify.audit.answer import report as reports
    from canaryproof.verify.audit.answer import report_check
    from canaryproof.verify.audit.answer.run_audit import with_comparison

    assert read.record is not None
    comparison = _plan(read, result, plan, notes)
    if isinstance(comparison, str):
        return [comparison]
    file, versions = read.record.input.file, read.record.versions
    try:
        if comparison is not None:
            result = with_comparison(result, comparison)
        derived = reports.record(result, file, versions)
    except (ValueError, OverflowError) as error:
        # The claim's ε may be beyond what the kernels serve.
        raise InputError(f"the report's request cannot be repeated: {error}") from error
    differing = list(report_check.differences(read.document, derived))
    rounded = [each.name for each in differing if each.rounding]
    here = reports.versions_here()
    others = [
        f"{name} {there}, here {here.get(name, 'none')}" for name, there in versions.items() if here.get(name) != there
    ]
    if others:
        notes.append(f"Other versions than those of the report: {'; '.join(map(one_line, others))}.")
    if rounded:
        named = ", ".join(map(one_line, rounded[:3])) + (", …" if len(rounded) > 3 else "")
        notes.append(f"Numbers that other versions or processors round otherwise, by less than 1e-9: {named}.")
    # The record's seal differs if anything does.
    wrong = [each for each in differing if not each.rounding and each.name != "sha256"]
    lines = [f"{one_line(each.name)}: {each.reported} in the report, {each.derived} derived" for each in wrong[:_MOST]]
    lines += [f"and {len(wrong) - _MOST} more"] if len(wrong) > _MOST else []
    if not wrong and report.suffix.lower() != ".json":
        page = reports.render(result, derived, report)
        damage = report_check.page_damage(read, page, same_versions=not others)
        lines += [] if damage is None else [damage]
    return lines


def _plan(read: "ReportFile", result: "Audit", plan: Path | None, notes: list[str]) -> "Comparison | str | None":
    """Return the comparison with the plan, computed again or as reported, or the reason why there is none."""
    from canaryproof.verify.audit.answer import plan_file

    assert read.record is not None
    if read.record.plan is None:
        if plan is not None:
            raise InputError(_NO_PLAN)
        return None
    reported = read.record.plan
    if plan is None:
        notes.append("The plan was not given (--plan), so that the audit was not held against it again.")
        return reported
    # The plan that the audit was held against can be read.
    for other in _other_plan(reported.sha256, plan):
        return other
    return plan_file.compare_with_plan(result, plan, reported.secret)
