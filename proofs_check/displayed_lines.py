"""Lines of a proof as checks: how each fares, more finely than a verdict, and the displayed formula it stands in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from canaryproof.verify.papers.check.documents import document_of
from canaryproof.verify.papers.check.results import Check, Context, Outcome, Subject, Verdict


class Kind(StrEnum):
    """How a line of a proof fares; in a check's evidence."""

    EXACT = "exact"  # holds as printed, for all d and k that the text admits
    LEADING_ORDER = "right to leading order"  # the leading term is right; terms of lower order are missing or wrong
    WRONG_TERM = "wrong term"  # a printed term is wrong, and what the proof concludes from the line stands
    HYPOTHESIS = "needs a hypothesis"  # holds under one, or in a reading, that the finding names and the text does not
    FALSE = "false"  # and what is concluded from it falls as well


VERDICTS = {
    Kind.EXACT: Verdict.CONFIRMED,
    Kind.LEADING_ORDER: Verdict.QUALIFIED,
    Kind.HYPOTHESIS: Verdict.QUALIFIED,
    Kind.WRONG_TERM: Verdict.REFUTED,
    Kind.FALSE: Verdict.REFUTED,
}


@dataclass(frozen=True)
class LineJudge:
    """The judge of a line: ``display`` names the displayed formula that it is row ``row`` of, from 1; "" for prose."""

    decide: Callable[[], Outcome]
    display: str
    row: int

    def __call__(self, _: Context) -> Outcome:
        """Judge the line; the evidence ends with its display and row."""
        outcome = self.decide()
        if not self.display:
            return outcome
        return Outcome(outcome.verdict, outcome.finding, {**outcome.evidence, "display": self.display, "row": self.row})


def line(
    id: str,  # noqa: A002
    section: str,
    statement: str,
    judge: Callable[[], Outcome],
    display: str = "",
    row: int = 0,
    *,
    own: bool = False,
) -> Check:
    """Return a statement of a proof, or about one, as a check.

    ``section`` is where the document has it that the id begins with; ``own`` if no document makes it.
    """
    subject, source = (Subject.IMPLEMENTATION, section) if own else (Subject.DOCUMENT, document_of(id).at(section))
    return Check(id, subject, source, statement, LineJudge(judge, display, row))


def displayed(check: Check) -> tuple[str, int] | None:
    """Return the displayed formula and the row that a line is of; None for prose."""
    return (
        (check.judge.display, check.judge.row) if isinstance(check.judge, LineJudge) and check.judge.display else None
    )


def judged(kind: Kind, finding: str, evidence: Mapping[str, Any]) -> Outcome:
    """Return what was found about a line: what decides, and the corrected line where the printed one is not exact."""
    # Evidence may be that of another line, whose kind is not this one's.
    return Outcome(VERDICTS[kind], finding, {"kind": "", **evidence} | {"kind": str(kind)})


def kind_of(outcome: Outcome) -> Kind:
    """Return how a line fares."""
    return Kind(outcome.evidence["kind"])


def held(holds: bool | Mapping[str, bool], finding: str, otherwise: Kind = Kind.FALSE, /, **evidence: Any) -> Outcome:
    """Judge a statement by one fact, or by named ones, that exact arithmetic has proved or disproved.

    The facts are in the evidence by name, and in the finding those that fail: the line is then of the other kind.
    """
    facts = {name: bool(fact) for name, fact in (holds if isinstance(holds, Mapping) else {"holds": holds}).items()}
    failed = [name for name, fact in facts.items() if not fact]
    text = f"fails ({'; '.join(failed)}): {finding}" if failed else finding
    return judged(otherwise if failed else Kind.EXACT, text, {**facts, **evidence})
