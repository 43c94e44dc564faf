"""The sentences of this package's own pages and help that a decision may rest on, each with what shows that it holds.

The table is under version control. The tests hold it: a quote must stand in its place, and its evidence must be there.
A sentence that turns out to be false is mended, so that the table has no verdict but *confirmed*: its checks
fail a run, its tests fail ``make test``.
"""

import csv
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files

from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.runs import expected

TABLE = "own_sentences.csv"
FIELDS = ["id", "page", "quote", "evidence"]


class ReasonKind(StrEnum):
    """A reason why a sentence holds, by its kind."""

    CHECK = "check"  # of a suite, by its suite and id: ``check audit/audit.honest``
    STATEMENT = "statement"  # of a document, by its suite and id, with the verdict that the sentence reports
    THEOREM = "theorem"  # that Rocq has checked, by its name
    TEST = "test"  # of this repository: ``test tests/x/test_y.py::test_z``
    PUBLISHED = "published"  # a page of measurements under reports/published, with the command that makes it
    ARGUMENT = "argument"  # a reason in words


@dataclass(frozen=True)
class Reason:
    """One reason for a sentence."""

    kind: ReasonKind
    text: str

    @property
    def check_id(self) -> tuple[str, str] | None:
        """Suite and id of a check or of a document's statement; None of other evidence."""
        if self.kind not in (ReasonKind.CHECK, ReasonKind.STATEMENT):
            return None
        suite, _, name = self.text.partition(" ")[0].partition("/")
        return suite, name

    @property
    def verdict(self) -> Verdict:
        """Verdict that a document's statement must have, which stands behind its id."""
        return Verdict(self.text.partition(" ")[2] or Verdict.CONFIRMED)

    @property
    def words(self) -> str:
        """The reason as people read it."""
        if self.check_id is not None:
            return f"{self.kind} {self.check_id[1]} is {self.verdict}"
        return {
            ReasonKind.THEOREM: f"Rocq has checked {self.text}",
            ReasonKind.TEST: f"tested by {self.text}",
            ReasonKind.PUBLISHED: f"measured: {self.text}",
        }.get(self.kind, self.text)

    def __str__(self) -> str:
        return f"{self.kind} {self.text}"


@dataclass(frozen=True)
class OwnSentence:
    """A sentence of a page or of a command's help, and its evidence."""

    id: str
    page: str  # a file of the repository, ``canaryproof audit --help``, or a public name
    quote: str
    evidence: tuple[Reason, ...]

    @property
    def verdict(self) -> Verdict:
        """Confirmed, unless a statement that it reports has another verdict than it says."""
        reported = [each for each in self.evidence if each.kind is ReasonKind.STATEMENT]
        verdicts = expected.read() if reported else {}
        agree = all(verdicts.get(each.check_id or ("", "")) is each.verdict for each in reported)
        return Verdict.CONFIRMED if agree else Verdict.REFUTED

    def __str__(self) -> str:
        return " | ".join(map(str, self.evidence))


def read(text: str | None = None) -> tuple[OwnSentence, ...]:
    """Read the table, the package's by default. A ValueError of one line names what is wrong in which row."""
    if text is None:
        text = (files(__package__) / TABLE).read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines())
    if header != FIELDS:
        raise ValueError(f"{TABLE}: the columns must be {', '.join(FIELDS)}")
    return tuple(_sentence(*row) for row in rows)


def _sentence(id: str, page: str, quote: str, evidence: str) -> OwnSentence:  # noqa: A002
    reasons = []
    for reason in evidence.split(" | "):
        kind, _, rest = reason.partition(" ")
        if kind not in list(ReasonKind) or not rest:
            raise ValueError(f"{TABLE}: {id}: evidence must begin with {', '.join(ReasonKind)}, not {reason!r}")
        reasons.append(Reason(ReasonKind(kind), rest))
    return OwnSentence(id, page, quote, tuple(reasons))
