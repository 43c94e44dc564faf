"""The ledger's pages: what a document states, claim by claim, and what holds of it."""

from collections import Counter

from canaryproof.reports.markdown import table
from canaryproof.verify.results import Result, Run, Subject, Verdict

# Documents in the order of their pages, by the first part of a claim's id.
TITLES = {
    "final": "Andrew et al., final version",
    "v1": "Andrew et al., first version",
    "submission": "Andrew et al., anonymous submission",
    "review": "Reviews of Andrew et al. and the authors' answers",
    "canife": "Maddock et al., CANIFE",
    "bounds": "Lower bounds of the literature",
}
MEANINGS = {
    Verdict.CONFIRMED: "holds as printed",
    Verdict.QUALIFIED: "holds under a reading that the text does not state, which is named",
    Verdict.REFUTED: "false as printed; what is true is given",
    Verdict.INCONCLUSIVE: "the evidence cannot decide",
    Verdict.NEEDS_DATA: "only a data set decides, which is named",
}


def statements(run: Run, document: str) -> list[Result]:
    """Results on a document's statements, lines of proofs included."""
    return [
        result
        for result in run.results
        if result.subject is Subject.DOCUMENT and result.id.partition(".")[0] == document
    ]


def documents(run: Run) -> list[str]:
    """Documents that a run has statements of."""
    found = dict.fromkeys(r.id.partition(".")[0] for r in run.results if r.subject is Subject.DOCUMENT)
    return sorted(found, key=lambda name: [*TITLES, name].index(name))


def page_name(document: str) -> str:
    """Name the page of a document."""
    # Results may be read from a file, and none may lead out of the folder.
    return "claims-" + "".join(c if c.isalnum() else "-" for c in document) + ".md"


def claims(run: Run, document: str) -> str:
    """Render a document's page.

    Parameters
    ----------
    run
        A finished run.
    document
        First part of the ids of its statements.

    Returns
    -------
    Markdown text.
    """
    results = statements(run, document)
    counts = Counter(result.verdict for result in results)
    parts = [
        f"# {TITLES.get(document, document)}: what it states and what holds",
        f"canaryproof {run.version}, `canaryproof verify --level {run.level} --seed {run.seed}`. `canaryproof claims "
        "ID` shows a claim with all its evidence.",
        table(
            ("verdict", "claims", "means"),
            [(f"{verdict}", f"{counts[verdict]}", meaning) for verdict, meaning in MEANINGS.items() if counts[verdict]],
        ),
    ]
    # What fails is what people come for.
    for verdict in (Verdict.REFUTED, Verdict.QUALIFIED, Verdict.INCONCLUSIVE, Verdict.CONFIRMED, Verdict.NEEDS_DATA):
        rows = [
            (f"`{result.id}`", result.source, result.statement, result.finding)
            for result in results
            if result.verdict is verdict and not (result.is_line and verdict is Verdict.CONFIRMED)
        ]
        if rows:
            parts += [f"## {str(verdict).capitalize()}", table(("claim", "place", "what it says", "finding"), rows)]
    held = sum(result.is_line and result.verdict is Verdict.CONFIRMED for result in results)
    if held:
        parts.append(f"{held} lines of proofs more are confirmed; they stand in [proofs.md](proofs.md).")
    return "\n\n".join(parts) + "\n"
