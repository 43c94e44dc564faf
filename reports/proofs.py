"""The proofs' page: what exact arithmetic says of every line of the proofs that was checked."""

from collections import Counter
from collections.abc import Sequence

from canaryproof.reports.page import Page, provenance
from canaryproof.verify.audit.markup.markdown import table
from canaryproof.verify.papers.check.results import Result, Run, Subject
from canaryproof.verify.papers.records.evidence import ProofLine, records

_ABOUT = """\
{provenance}. Lines are judged by exact rational,
symbolic or ball arithmetic."""

# In this order; kinds that a later version adds come after them.
_MEANINGS = {
    "exact": "holds as printed",
    "right to leading order": "the leading term is right, and terms of lower order are missing or wrong",
    "wrong term": "a printed term is wrong, and what the proof draws from the line stands",
    "needs a hypothesis": "holds under a hypothesis that the text does not state",
    "false": "does not hold, nor does what is drawn from it",
}


def text(run: Run) -> str:
    """Render the page of a run of the suite ``theorems``; "" without lines of proofs."""
    lines = _lines(run)
    if not lines:
        return ""
    parts = _overview(run)
    for source in dict.fromkeys(result.source for result, _ in lines):
        here = [(result, line) for result, line in lines if result.source == source]
        rows = [(f"`{result.id}`", line.kind, result.statement, result.finding) for result, line in here]
        anchors = [result.id for result, _ in here]
        parts += [f"## {source}", table(("line", "kind", "what it says", "finding"), rows, anchors)]
    return "\n\n".join(parts) + "\n"


def _lines(run: Run) -> list[tuple[Result, ProofLine]]:
    lines = records(run, ProofLine)
    return [(result, lines[result.id]) for result in run.results if result.is_line]


def _shortened(run: Run) -> str:
    """Return what the page begins with."""
    return "\n\n".join(_overview(run)) if _lines(run) else ""


def _overview(run: Run) -> list[str]:
    """Say how many lines there are, and how they fare."""
    lines = _lines(run)
    displayed = sum(bool(line.display) for _, line in lines)
    kinds = Counter(line.kind for result, line in lines if result.subject is Subject.DOCUMENT)
    return [
        "# The proofs, line by line",
        f"Of {kinds.total()} lines of the documents' proofs, {kinds['exact']} hold as printed and "
        f"{kinds['right to leading order']} to leading order; {kinds['wrong term']} have a wrong term, "
        f"{kinds['needs a hypothesis']} need a further hypothesis, and {kinds['false']} are false.",
        _ABOUT.format(provenance=provenance(run, "theorems")),
        _counts(lines),
        f"{len(lines)} lines, of which {displayed} are printed lines of displayed formulas.",
    ]


def _counts(lines: Sequence[tuple[Result, ProofLine]]) -> str:
    counts = {
        subject: Counter(line.kind for result, line in lines if result.subject is subject)
        for subject in (Subject.DOCUMENT, Subject.IMPLEMENTATION)
    }
    kinds = dict.fromkeys([*_MEANINGS, *(line.kind for _, line in lines)])
    rows = [
        (kind, _MEANINGS.get(kind, ""), *(f"{counts[subject][kind]}" for subject in counts))
        for kind in kinds
        if any(count[kind] for count in counts.values())
    ]
    return table(("kind", "meaning", "of the documents", "of ours"), rows)


PAGE = Page(
    "proofs",
    "Proofs",
    "The proofs, line by line",
    text,
    file="proofs.md",
    about="every line of the proofs that was checked, and how it fares",
    shortened=_shortened,
)
