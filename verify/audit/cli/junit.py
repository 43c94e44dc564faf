"""The option ``--junit``: a file in which systems for continuous integration show each check.

The format is that of JUnit's reports, which has no standard: ``testsuites``, ``testsuite``, ``testcase``, and in one of
them ``failure``, ``skipped`` and ``system-out``.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from canaryproof.verify.audit.files.errors import InputError

if TYPE_CHECKING:
    from canaryproof.verify.audit.answer.plan_file import Comparison
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
    """

    name: str
    text: str
    failure: str = ""
    skipped: str = ""


def check(path: Path) -> None:
    """Refuse, before the work, a file that could not be written."""
    if path.suffix.lower() != ".xml":
        raise InputError(f"{path}: the file's name must end in .xml")
    if os.path.lexists(path):
        raise InputError(f"{path}: must not exist already")
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
            if case.skipped:
                ET.SubElement(element, "skipped", message=_legal(case.skipped))
            ET.SubElement(element, "system-out").text = _legal(case.text)
    ET.indent(root)
    try:
        with replace_file(path) as file:
            ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _numbers(cases: Sequence[JUnitCase]) -> dict[str, str]:
    failures, skipped = (sum(map(bool, each)) for each in zip(*((c.failure, c.skipped) for c in cases), strict=True))
    return {"tests": str(len(cases)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}


def _legal(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def of_audit(
    result: "AuditResult", notice: float, comparison: "Comparison | None" = None
) -> dict[str, list[JUnitCase]]:
    """Return a case for each question of a gate; one fails exactly where the gate does not pass."""
    cases = list(_of_audit(result, notice))
    if comparison is not None:
        text = str(comparison)
        cases.append(JUnitCase("the audit is as planned", text, text if comparison.differences else ""))
    return {"audit": cases}


def _of_audit(result: "AuditResult", notice: float) -> Iterator[JUnitCase]:
    # Loads compiled kernels.
    from canaryproof.verify.audit.answer.result import ClaimVerdict
    from canaryproof.verify.audit.answer.text import answer
    from canaryproof.verify.audit.markup.digits import round_down

    answered = answer(result)
    signs = "\n".join(f"{warning.kind}: {warning.message} {warning.what_to_do}" for warning in result.warnings)
    failure = "a sign of misuse" if result.withheld or result.is_doubtful else ""
    yield JUnitCase("the input has no sign of misuse", signs or (answered if failure else "none"), failure)
    if result.claim is None:
        yield JUnitCase("the audit", answered, skipped="nothing is claimed")
        return
    failed = result.verdict in (ClaimVerdict.EXCEEDED, ClaimVerdict.REFUTED)
    yield JUnitCase("nothing contradicts the claim", answered, str(result.verdict) if failed else "")
    decided = result.verdict in (ClaimVerdict.CONSISTENT, ClaimVerdict.EXCEEDED, ClaimVerdict.REFUTED)
    yield JUnitCase("the audit decides", answered, "" if decided else str(result.verdict))
    noticed = result.noticed_share or 0.0
    # A share that is rounded up might not have been noticed.
    text = f"noise at {round_down(noticed)} of the claim would be noticed with probability 90%; {notice:g} is asked for"
    yield JUnitCase("missing noise would be noticed", text, "" if noticed >= notice else text)
