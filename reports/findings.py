"""Which findings matter most: a rule, so that nobody chooses them."""

from canaryproof.reports.claims import TITLES
from canaryproof.verify.results import Result, Run, Subject, Verdict

RULE = (
    "Of the documents' statements, refuted ones come before qualified ones; what a proof only says on its way to a "
    "conclusion that stands comes last; statements of ε, of privacy, of confidence or of a theorem come before others; "
    "then the order of the documents, final version first, and of their statements. Each suite gives its first one, as "
    "suites ask different questions, before any gives a second."
)
_MATTERS = ("ε", "privacy", "confidence", "theorem")
_ORDER = (Verdict.REFUTED, Verdict.QUALIFIED)


def in_passing(result: Result) -> bool:
    """Whether this is a line of a proof whose conclusion stands all the same."""
    return bool(result.evidence.get("kind") == "wrong term")


def findings(run: Run, count: int = 3) -> list[Result]:
    """Choose the findings to show first, by ``RULE``.

    Parameters
    ----------
    run
        A run.
    count
        How many at most.

    Returns
    -------
    Results on documents' statements, fewer where fewer are refuted or qualified.
    """
    known = list(TITLES)

    def rank(result: Result) -> tuple[int, bool, bool, int]:
        document = result.id.partition(".")[0]
        return (
            _ORDER.index(result.verdict),
            in_passing(result),
            not any(word in result.statement.lower() for word in _MATTERS),
            known.index(document) if document in known else len(known),
        )

    ranked = sorted((r for r in run.results if r.subject is Subject.DOCUMENT and r.verdict in _ORDER), key=rank)
    places: dict[str, int] = {}
    turns = []
    for result in ranked:
        turns.append(places.setdefault(result.suite, 0))
        places[result.suite] += 1
    chosen = sorted(zip(turns, ranked, strict=True), key=lambda pair: (rank(pair[1])[:2], pair[0]))
    return [result for _, result in chosen[:count]]
