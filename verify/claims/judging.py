"""What the claims of all documents share."""

from collections.abc import Callable
from typing import Any

from canaryproof.verify.results import Check, Context, Outcome, Subject, Verdict


def claim(id: str, source: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:  # noqa: A002
    """Return a document's claim as a check.

    Parameters
    ----------
    id
        Document and place, such as ``final.table2.row1`` or ``canife.section3.4.cap``.
    source
        Document and place in words.
    statement
        What it says, in our own words, with its printed numbers.
    judge
        Function that gathers the evidence.
    """
    return Check(id, Subject.DOCUMENT, source, statement, judge)


def found(verdict: Verdict, finding: str, **evidence: Any) -> Outcome:
    """Return what a judge found, with the numbers behind it."""
    return Outcome(verdict, finding, evidence)


def needs_data(what: str, command: str) -> Callable[[Context], Outcome]:
    """Return the judge of a claim that only a data set decides, with the command that will."""
    return lambda _: found(Verdict.NEEDS_DATA, f"needs {what}; then: {command}", data=what, command=command)
