"""The documents whose statements are judged, in the order of their pages; each makes the claims that are its own."""

from collections.abc import Callable
from dataclasses import dataclass

from canaryproof.verify.papers.check.results import Check, Context, Outcome, Subject


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

DOCUMENTS = (FINAL, FIRST_VERSION, SUBMISSION, REVIEWS, CANIFE)


def document_of(statement: str) -> Document:
    """Return the document that makes a statement, from the first part of its id."""
    return {document.id: document for document in DOCUMENTS}[statement.partition(".")[0]]
