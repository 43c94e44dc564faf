"""The documents whose statements are judged, in the order of their pages; each makes the claims that are its own."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from canaryproof.verify.papers.check.results import Check, Context, Outcome, Result, Subject


@dataclass(frozen=True)
class Document:
    """A document: the first part of its claims' ids, its name as a source, and the title of its page."""

    id: str
    name: str
    title: str

    def at(self, section: str) -> str:
        """Return a section, table or figure of the document as the source of a statement."""
        return f"{self.name}, {section}"

    def claim(self, id: str, section: str, statement: str, rule: Callable[[Context], Outcome]) -> Check:  # noqa: A002
        """Return a claim: its id after the document's, such as ``table2.row1``, section, statement and rule."""
        return Check(f"{self.id}.{id}", Subject.DOCUMENT, self.at(section), statement, rule)


FINAL = Document("final", "Andrew et al., arXiv 2302.03098, final version", "Andrew et al., final version")
FIRST_VERSION = Document("v1", "Andrew et al., arXiv 2302.03098, first version", "Andrew et al., first version")
SUBMISSION = Document("submission", "Andrew et al., anonymous submission", "Andrew et al., anonymous submission")
REVIEWS = Document("review", "reviews of Andrew et al.", "Reviews of Andrew et al. and the authors' answers")
CANIFE = Document("canife", "Maddock et al., arXiv 2210.02912", "Maddock et al., CANIFE")
# This package itself; its sentences are in ``runs.own_sentences``, as no run judges them.
OWN = Document("own", "canaryproof's own pages and help", "Our own sentences")

DOCUMENTS = (FINAL, FIRST_VERSION, SUBMISSION, REVIEWS, CANIFE, OWN)


def document_of(statement: str) -> Document:
    """Return the document that makes a statement, from the first part of its id."""
    return {document.id: document for document in DOCUMENTS}[statement.partition(".")[0]]


class Voice(StrEnum):
    """Who speaks in a statement: the document of its own data or of others, or somebody of what it should be."""

    DOCUMENT = "document"
    ANALOGUE = "analogue"  # the document, whose sentence is tried on other data than its own
    PROMISE = "promise"  # of the authors, on a later version
    REVIEWER = "reviewer"  # on the submission


def voice(result: Result) -> Voice:
    """Return who speaks in a statement, of which not all are a paper's of its own data."""
    if result.id.startswith(f"{CANIFE.id}.study."):
        return Voice.ANALOGUE
    # Results may be of documents that this version does not know.
    if result.id.partition(".")[0] != REVIEWS.id:
        return Voice.DOCUMENT
    if result.id.startswith(f"{REVIEWS.id}.promise."):
        return Voice.PROMISE
    return Voice.DOCUMENT if "authors' answer" in result.source else Voice.REVIEWER


def distinct(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Return the documents' statements by their words, with the places that have them, as ``Voice.DOCUMENT`` has them.

    What two versions state in the same words of the same numbers is one statement. Where it has another verdict in one
    of them, as what it is of differs, it is another one.
    """
    by_words: dict[str, list[Result]] = {}
    for result in results:
        if result.subject is Subject.DOCUMENT and voice(result) is Voice.DOCUMENT:
            by_words.setdefault(f"{result.verdict} {result.statement}", []).append(result)
    return by_words
