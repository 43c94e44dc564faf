"""What the claims of all documents share."""

from collections.abc import Callable
from typing import Any

from canaryproof.verify.check.declared_tests import LEVEL as LEVEL
from canaryproof.verify.check.results import Check, Context, Design, Outcome, Subject, Verdict


def claim(id: str, source: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:  # noqa: A002
    """Return a document's claim as a check."""
    return Check(id, Subject.DOCUMENT, source, statement, judge)


def found(verdict: Verdict, finding: str, design: Design | None = None, **evidence: Any) -> Outcome:
    """Return what a judge found, with the test if it depends on chance, and the numbers behind it."""
    return Outcome(verdict, finding, evidence, design)


def holds(condition: bool) -> Verdict:
    """Return confirmed or refuted."""
    return Verdict.CONFIRMED if condition else Verdict.REFUTED
