"""The report of a watch: one record of its answer, as JSON, Markdown or HTML, that can be computed again from its file.

It has the form and the seals of an audit's report, and is checked in the same way: everything is derived anew from the
watch's file, and nothing of the report decides what is compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from canaryproof.verify.audit.answer.page import ReportSection, findings_section, html_page, markdown_page
from canaryproof.verify.audit.answer.report import (
    FileRecord,
    ReportHeading,
    file_record,
    in_form,
    quote,
    versions_here,
)
from canaryproof.verify.audit.answer.report_check import (
    ReportCheck,
    ReportFile,
    Trusted,
    compare_pages,
    other_file,
    read_kind,
)
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.watch.watch_answer import NEVER, WatchAnswer, answer_of
from canaryproof.verify.audit.watch.watch_record import read_record

SCHEMA = "canaryproof watch report 1.0.0"


@dataclass(frozen=True)
class WatchReportRecord:
    """A watch report's record.

    Attributes
    ----------
    schema
        Name and version of the form.
    heading
        What is said of the report by whoever wrote it.
    answer
        The decision and what it rests on, in words; ``watch`` has it with its findings.
    watch
        All numbers, as ``WatchAnswer.to_json`` has them.
    file
        The watch's file.
    pinned
        The ε that was claimed apart from the file; None if the file's claim alone was asked for.
    repeat
        Commands that repeat the answer.
    versions
        Versions of what computed.
    sha256
        SHA-256 of the record without this field.
    """

    schema: str
    heading: ReportHeading
    answer: str
    watch: Any
    file: FileRecord
    pinned: float | None
    repeat: tuple[str, ...]
    versions: dict[str, str]
    sha256: str


def record(
    answer: WatchAnswer,
    heading: ReportHeading,
    file: FileRecord,
    pinned: float | None,
    versions: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return the record of a watch's answer, of ``WatchReportRecord``'s fields in JSON's own types."""
    name, again = quote(file.name), quote(f"again-{heading.name}")
    claim = "" if pinned is None else f" --claim {pinned!r} --delta {answer.delta!r}"
    made = WatchReportRecord(
        schema=SCHEMA,
        heading=heading,
        answer=f"{answer.headline} {answer.cause}",
        watch=answer.to_dict(),
        file=file,
        pinned=pinned,
        repeat=(
            f"canaryproof audit {name}{claim} --report {again}",
            f"canaryproof check-report {quote(heading.name)} --watch {name}",
        ),
        versions=versions or versions_here(),
        sha256="",
    )
    return json_records.seal(json_records.to_document(made))


def render(answer: WatchAnswer, document: dict[str, Any], path: Path) -> bytes:
    """Render a record in the form of a file's suffix."""
    sections = tuple(_sections(answer, document))
    return in_form(
        document,
        path,
        lambda: markdown_page("watch", answer.decision, document, sections),
        lambda: html_page("watch", answer.decision, document, sections),
    )


def _sections(answer: WatchAnswer, document: dict[str, Any]) -> Iterator[ReportSection]:
    yield findings_section(answer.findings, answer.decision)
    rows = [
        (finding.question.value, each.name, "–" if each.value is None else f"{each.value:.6g}", each.unit or "–")
        for finding in answer.findings
        for each in finding.numbers
    ]
    yield ReportSection("Numbers", (), ("question", "number", "value", "unit"), rows)
    looked = f"{answer.steps:,} steps at δ = {answer.delta:g}, and {answer.tests:,} tests in {answer.looks} looks"
    yield ReportSection("What was watched", (f"{looked}; the last look was after step {answer.looked:,}.",))
    yield ReportSection("What no watch looks at", (f"No watch looks at: {'; '.join(NEVER)}.",))
    file = document["file"]
    origin = [("file", file["name"]), ("its size", f"{file['bytes']:,} bytes"), ("its SHA-256", file["sha256"])]
    yield ReportSection(
        "What was answered",
        ("The counts and sums in this file are the word of whoever ran the training.",),
        ("input", "value"),
        origin,
    )
    words = ("The last line derives the numbers of this report anew from that file, and says which differ.",)
    yield ReportSection("Repeat it", words, lines=tuple(document["repeat"]))
    yield ReportSection("Versions", (), ("package", "version"), list(document["versions"].items()))


def read(path: Path) -> ReportFile[WatchReportRecord]:
    """Read a watch's report; an ``InputError`` names the file, the field and the rule."""
    return read_kind(path, WatchReportRecord, SCHEMA)


def compare(report: ReportFile[WatchReportRecord], path: Path, file: Path) -> ReportCheck:
    """Hold a watch's report against the answer that its file gives again."""
    written, here, trusted = report.record, file_record(file), Trusted()
    assert written is not None
    if here.sha256 != written.file.sha256:
        return ReportCheck((other_file(file, "the watch that was answered", here.sha256, written.file.sha256),))
    answer = answer_of(read_record(file), written.pinned)
    heading = trusted.heading(written.heading, path)
    named = replace(here, name=trusted.name(written.file.name, file.name, "the file's name", len(written.repeat)))
    derived = record(answer, heading, named, written.pinned, trusted.versions(written.versions))
    return compare_pages(report, derived, lambda: render(answer, derived, path), path, trusted)
