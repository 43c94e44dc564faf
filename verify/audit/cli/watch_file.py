"""A watch's record, answered again by ``canaryproof audit``: the file says what is claimed, and a gate may pin it."""

import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import click

from canaryproof.verify.audit.cli.options import one_line, write_after_answer
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import open_file, read_json
from canaryproof.verify.audit.files.writing import write_output

# Options that belong to an answer, and not to what is audited.
_OPTIONS = (
    "file",
    "claim",
    "delta",
    "junit",
    "report",
    "title",
    "subject",
    "date",
    "as_json",
    "fail_above_claim",
    "overwrite",
)
_UNDECIDED = 3
# The form stands first in the file that a watch writes.
_HEAD, _FORM = 1024, b'"canaryproof watch '


def is_watch(file: Path) -> bool:
    """Tell whether a file is the record of a watch."""
    if file.suffix.lower() != ".json" or not file.is_file():
        return False
    with open_file(file) as opened:
        return _FORM in opened.read(_HEAD)


def answer_watch(
    context: click.Context,
    file: Path,
    junit: Path | None,
    report: Path | None,
    heading: Mapping[str, str],
    pinned: float | None,
    delta: float | None,
    *,
    as_json: bool,
    overwrite: bool,
) -> int:
    """Print the answer of a watch's record, write its files, and return the exit status of its decision.

    A pinned ε is held against the record besides what that claims, and needs its δ.
    """
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name)) is click.core.ParameterSource.COMMANDLINE
        if given and parameter.name not in _OPTIONS:
            raise InputError(
                f"{parameter.opts[0]}: must not be given with {file}, the record of a watch, which says it"
            )
    if (pinned is None) is not (delta is None):
        raise InputError(f"--claim, --delta: must be given together with {file}, the record of a watch, or neither")
    # These load compiled kernels, which a mistake in the options does not wait for.
    from canaryproof.verify.audit.answer.plan_comparison import minor, other_version
    from canaryproof.verify.audit.watch.watch_answer import answer_of
    from canaryproof.verify.audit.watch.watch_record import read_record

    document = read_json(file)
    made_by = document.get("version") if isinstance(document, dict) else None
    if isinstance(made_by, str) and minor(made_by) != minor(version("canaryproof")):
        click.echo(one_line(other_version("record", made_by)))
        return _UNDECIDED
    record = read_record(file)
    if delta not in (None, record.delta):
        raise InputError(f"--delta: must be {record.delta!r}, that of {file}, not {delta!r}")
    try:
        answer = answer_of(record, pinned)
        terminal = shutil.get_terminal_size().columns, getattr(sys.stdout, "encoding", None) or "utf-8"
        printed = answer.to_json() if as_json else answer.text(*terminal)
    except (ValueError, ArithmeticError) as error:
        raise InputError(f"{file}: {error}") from error
    click.echo(printed)

    def write_junit(path: Path) -> None:
        # Loads a writer of XML.
        from canaryproof.verify.audit.cli import junit as junit_file

        sentence = f"{answer.headline} {answer.cause}"
        junit_file.write(path, {"watch": junit_file.cases_of(answer.findings, answer.decision, sentence)})

    def write_report(path: Path) -> None:
        # Loads a writer of pages.
        from canaryproof.verify.audit.answer.report import ReportHeading, file_record
        from canaryproof.verify.audit.watch import watch_report

        made = watch_report.record(answer, ReportHeading(path.name, **heading), file_record(file), pinned)
        page = watch_report.render(answer, made, path)
        write_output(path, lambda target: target.write(page), overwrite=overwrite)

    return write_after_answer(answer.decision.status, ((junit, write_junit), (report, write_report)))
