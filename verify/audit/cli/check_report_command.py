"""Command ``canaryproof check-report``: derive every number of a report again from the audited input."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from canaryproof.verify.audit.cli.audit_command import scores_of
from canaryproof.verify.audit.cli.options import FilePath, one_line
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.files.stored_release import reopen

if TYPE_CHECKING:
    from canaryproof.verify.audit.answer.plan_file import Comparison
    from canaryproof.verify.audit.answer.report import InputRecord, ReportRecord
    from canaryproof.verify.audit.answer.report_check import ReportFile
    from canaryproof.verify.audit.answer.run_audit import Audit

# Most differences that are printed.
_MOST = 20


@click.command("check-report")
@click.argument("report", type=FilePath())
@click.option("--release", type=FilePath(), metavar="FILE", help="The released vector that was audited.")
@click.option("--scores", type=FilePath(), metavar="FILE", help="The scores that were audited.")
@click.option("--plan", type=FilePath(), metavar="FILE", help="The plan that the audit was held against.")
def check_report_command(report: Path, release: Path | None, scores: Path | None, plan: Path | None) -> int:
    """Compute every number of an audit's report again, and say which differ.

    REPORT is what "audit --report" or Audit.report of Python wrote, in any of its forms. The audit is repeated on the
    release, whose canaries are made again from the seed in the report, or on the scores. The exit status is 0 if the
    report holds, and 1 if it was changed, or a number differs, or the file is another one than the audited.
    """
    if (release is None) == (scores is None):
        raise InputError("--release or --scores: must be given, and not both")
    # Loads compiled kernels, which a mistake in the options does not wait for.
    from canaryproof.verify.audit.answer import report_check

    read = report_check.read(report)
    subject, file = ("release", release) if release is not None else ("scores", scores)
    if read.record.input.subject != subject or file is None:
        raise InputError(f"--{subject}: must not be given, as the report is of {_subject_name(read.record.input)}")
    notes: list[str] = []
    findings = _other_file(read.record.input, file) or _compare(read, _repeat(read.record, file), report, plan, notes)
    findings = [*read.damage, *findings]
    name, of = one_line(str(report)), one_line(str(file))
    if findings:
        click.echo(f"{name} does not hold.")
        click.echo("\n".join(f"  {finding}" for finding in findings))
    else:
        count = report_check.count_values(read.document)
        click.echo(f"{name} holds: all {count:,} values are derived anew from {of} and are the same.")
    click.echo("".join(f"{note}\n" for note in notes), nl=False)
    return 1 if findings else 0


def _subject_name(audited: "InputRecord") -> str:
    return "a release" if audited.subject == "release" else "scores"


def _other_file(audited: "InputRecord", file: Path) -> list[str]:
    """Say whether a file is another one than the audited."""
    from canaryproof.verify.audit.answer import report as reports

    here = reports.file_record(file)
    if audited.file is None or here.sha256 == audited.file.sha256:
        return []
    return [f"{one_line(str(file))} is not the audited file: its SHA-256 is {here.sha256}, not {audited.file.sha256}."]


def _repeat(record: "ReportRecord", file: Path) -> "Audit":
    from canaryproof.verify.audit.answer import report_check

    audited = record.input
    if audited.subject == "release":
        coordinates = record.audit.get("coordinates") if isinstance(record.audit, dict) else None
        return report_check.derive(record, reopen(file, coordinates))
    given: dict[str, Any] = {"dim": None, "inclusion": "fixed", "kind": ScoreKind.COSINE, "neighbours": "add-or-remove"}
    columns = None if audited.file is None else audited.file.columns
    if file.suffix.lower() != ".json":
        given = {name: getattr(audited, name) for name in given}
        given["kind"] = _kind(audited.kind)
    return report_check.derive(record, scores_of(file, columns, given))


def _kind(name: str) -> ScoreKind:
    try:
        return ScoreKind(name)
    except ValueError as error:
        raise InputError(f"the report's input.kind: must be cosine or any, not {one_line(name)!r}") from error


def _compare(read: "ReportFile", result: "Audit", report: Path, plan: Path | None, notes: list[str]) -> list[str]:
    """Compare a report with its audit, computed again; notes name the parts that were not compared."""
    from canaryproof.verify.audit.answer import report as reports
    from canaryproof.verify.audit.answer import report_check

    comparison = _plan(read, result, plan, notes)
    if isinstance(comparison, str):
        return [comparison]
    file, versions = read.record.input.file, read.record.versions
    try:
        derived = reports.record(result, file, comparison, versions)
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

    if read.record.plan is None:
        if plan is not None:
            raise InputError("--plan: must not be given, as the report is of an audit without a plan")
        return None
    reported = read.record.plan
    if plan is None:
        notes.append("The plan was not given (--plan), so that the audit was not held against it again.")
        return reported
    comparison = plan_file.compare_with_plan(result, plan, reported.secret)
    if comparison.sha256 != reported.sha256:
        other = f"its SHA-256 is {comparison.sha256}, not {reported.sha256}"
        return f"{one_line(str(plan))} is not the plan that the audit was held against: {other}."
    return comparison
