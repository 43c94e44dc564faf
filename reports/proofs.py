"""The proofs' page: what exact arithmetic says of every line of the proofs that was checked."""

from collections import Counter
from collections.abc import Sequence

from canaryproof.reports.markdown import table
from canaryproof.verify.check.results import Result, Run, Subject

_ABOUT = """\
canaryproof {version}, `canaryproof verify theorems --level {level} --seed {seed}`. Lines are judged by exact rational,
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
    """Render the page of a run of the suite ``theorems``."""
    lines = [result for result in run.results if result.is_line]
    parts = overview(run)
    for source in dict.fromkeys(line.source for line in lines):
        here = [line for line in lines if line.source == source]
        rows = [(f"`{line.id}`", _kind(line), line.statement, line.finding) for line in here]
        parts += [f"## {source}", table(("line", "kind", "what it says", "finding"), rows, [line.id for line in here])]
    return "\n\n".join(parts) + "\n"


def overview(run: Run) -> list[str]:
    """Render what the page begins with: how many lines there are, and how they fare."""
    lines = [result for result in run.results if result.is_line]
    displayed = sum(bool(line.evidence.get("display")) for line in lines)
    documents = [result for result in lines if result.subject is Subject.DOCUMENT]
    kinds = Counter(map(_kind, documents))
    return [
        "# The proofs, line by line",
        f"Of {len(documents)} lines of the documents' proofs, {kinds['exact']} hold as printed and "
        f"{kinds['right to leading order']} to leading order; {kinds['wrong term']} have a wrong term, "
        f"{kinds['needs a hypothesis']} need a further hypothesis, and {kinds['false']} are false.",
        _ABOUT.format(version=run.version, level=run.level, seed=run.seed),
        _counts(lines),
        f"{len(lines)} lines, of which {displayed} are printed lines of displayed formulas.",
    ]


def _kind(line: Result) -> str:
    return str(line.evidence["kind"])


def _counts(lines: Sequence[Result]) -> str:
    counts = {
        subject: Counter(_kind(line) for line in lines if line.subject is subject)
        for subject in (Subject.DOCUMENT, Subject.IMPLEMENTATION)
    }
    kinds = dict.fromkeys([*_MEANINGS, *map(_kind, lines)])
    rows = [
        (kind, _MEANINGS.get(kind, ""), *(f"{counts[subject][kind]}" for subject in counts))
        for kind in kinds
        if any(count[kind] for count in counts.values())
    ]
    return table(("kind", "meaning", "of the documents", "of ours"), rows)
