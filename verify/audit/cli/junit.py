"""The option ``--junit``: a file in which systems for continuous integration show each check.

The format is that of JUnit's reports, which has no standard: ``testsuites``, ``testsuite``, ``testcase``, and in one of
them ``failure``, ``skipped`` and ``system-out``.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from canaryproof.verify.audit.files.errors import InputError, OutputError

if TYPE_CHECKING:
    from canaryproof.verify.audit.answer.findings import Decision, Finding
    from canaryproof.verify.audit.answer.result import AuditResult

# XML 1.0 has none of these characters, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class JUnitCase:
    """A check as JUnit has it.

    Attributes
    ----------
    name
        Its name.
    text
        Its finding.
    failure
        Why it fails; empty if it holds.
    skipped
        Why it was not judged; empty if it was.
    error
        What kept it from being judged, as bad input does; empty if nothing did.
    """

    name: str
    text: str
    failure: str = ""
    skipped: str = ""
    error: str = ""


def check(path: Path, *, overwrite: bool) -> None:
    """Refuse, before the work, a file that could not be written."""
    if path.suffix.lower() != ".xml":
        raise InputError(f"{path}: the file's name must end in .xml")
    if os.path.lexists(path) and not overwrite:
        raise InputError(f"{path}: must not exist already, unless with --overwrite")
    if not path.parent.is_dir():
        raise InputError(f"{path}: No such file or directory")


def write(path: Path, suites: Mapping[str, Sequence[JUnitCase]]) -> None:
    """Write suites of checks, whole or not at all."""
    # This import loads what reads runs, which an audit without the option does without; so below.
    from canaryproof.verify.audit.files.writing import replace_file

    every = [case for cases in suites.values() for case in cases]
    root = ET.Element("testsuites", {"name": "canaryproof"} | _numbers(every))
    for name, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", {"name": name} | _numbers(cases))
        for case in cases:
            element = ET.SubElement(suite, "testcase", classname=f"canaryproof.{name}", name=_legal(case.name))
            if case.failure:
                # The first line is what most systems list.
                ET.SubElement(element, "failure", message=_legal(case.failure)).text = _legal(case.text)
            if case.error:
                ET.SubElement(element, "error", message=_legal(case.error)).text = _legal(case.text)
            if case.skipped:
                ET.SubElement(element, "skipped", message=_legal(case.skipped))
            ET.SubElement(element, "system-out").text = _legal(case.text)
    ET.indent(root)
    try:
        with replace_file(path) as file:
            ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error


def write_error(path: Path, command: str, message: str) -> None:
    """Write that a command judged nothing, and why: no file of a former run may speak for this one."""
    write(path, {command: [JUnitCase("the command ends with a decision", message, error=message)]})


def _numbers(cases: Sequence[JUnitCase]) -> dict[str, str]:
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": str(len(cases))} | {
        name: str(sum(bool(getattr(case, field)) for case in cases)) for name, field in kinds.items()
    }


def _legal(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def of_audit(result: "AuditResult") -> dict[str, list[JUnitCase]]:
    """Return a case for each question; some fail exactly where a gate does not pass."""
    # Loads compiled kernels.
    from canaryproof.verify.audit.answer.text import answer

    return {"audit": cases_of(result.findings, result.decision, answer(result))}


def cases_of(findings: "Sequence[Finding]", decision: "Decision | None", sentence: str) -> list[JUnitCase]:
    """Return a case for each finding, with the answer in a sentence in all of them."""
    return [_of_finding(finding, decision, sentence) for finding in findings]


def _of_finding(finding: "Finding", decision: "Decision | None", sentence: str) -> JUnitCase:
    # Loads compiled kernels.
    from canaryproof.verify.audit.answer.text import is_open

    rest = (finding.noticed and f"would have been noticed: {finding.noticed}", finding.do, sentence)
    text = "\n".join([f"{finding.status}: {finding.because}", *filter(None, rest)])
    name = _QUESTIONS[finding.question]
    if decision is None:
        return JUnitCase(name, text, skipped="nothing is claimed")
    # Where the input is wrong, nothing else is judged.
    judged = decision.rule != "wrong-input" or finding.question == "input"
    if judged and is_open(finding, decision):
        return JUnitCase(name, text, f"{finding.status}: {finding.because}")
    return JUnitCase(name, text, skipped="" if finding.status == "as claimed" else str(finding.status))


_QUESTIONS = {
    "input": "the input is what it is said to be",
    "noise": "the claimed noise is there",
    "clipping": "every record was clipped",
    "sampling": "rounds were drawn as claimed",
    "accounting": "the recorded mechanism has the claimed epsilon",
    "leak": "nothing contradicts the claim, and missing noise would be noticed",
    "plan": "the audit is as planned",
}
