"""A run as one Markdown page: verdicts first, then the tables behind them."""

from collections import Counter
from collections.abc import Mapping

from canaryproof.reports import estimators
from canaryproof.reports.claims import TITLES, documents, page_name, statements
from canaryproof.reports.page import provenance
from canaryproof.verify.audit.markup.markdown import table
from canaryproof.verify.papers.check.documents import Voice, distinct, voice
from canaryproof.verify.papers.check.results import Run, Subject, Verdict, false_alarms


def text(run: Run, pages: Mapping[str, str], pictures: Mapping[str, str]) -> str:
    """Render a run, with the pages of these files and what each has, and the pictures of these files and captions."""
    parts = [f"# Verification results\n\n{provenance(run)}.", _counts(run)]
    if run.designs:
        parts.append(f"{false_alarms(run)} ([tests](#what-depends-on-chance)).")
    if pages:
        parts.append("\n".join(f"- [{name}]({name}): {about}" for name, about in pages.items()))
    parts += _documents(run) + _own(run)
    parts += [f"![{caption}]({name})" for name, caption in pictures.items()]
    parts += estimators.sections(run)
    parts += designs(run)
    return "\n\n".join(parts) + "\n"


def _documents(run: Run) -> list[str]:
    """Count the verdicts on each document's statements, and say where they stand."""
    names = documents(run)
    if not names:
        return []
    rows = []
    for document in names:
        stated = [r for r in statements(run, document) if voice(r) is Voice.DOCUMENT]
        counts = Counter(result.verdict for result in stated)
        name = f"[{TITLES.get(document, document)}]({page_name(document)})"
        rows.append((name, *(f"{counts[verdict]}" for verdict in Verdict), f"{counts.total()}"))
    once = Counter(group[0].verdict for group in distinct(run.results).values())
    rows.append(("different statements, each once", *(f"{once[verdict]}" for verdict in Verdict), f"{once.total()}"))
    header = ("document", *(str(verdict) for verdict in Verdict), "all")
    return ["## Statements of the documents", table(header, rows)]


def _own(run: Run) -> list[str]:
    """List our own checks, without the lines of proofs that hold: they have a page of their own."""
    results = [result for result in run.results if result.subject is Subject.IMPLEMENTATION]
    shown = [result for result in results if not (result.is_line and not result.failed)]
    if not results:
        return []
    parts = ["## This package's own checks"]
    # A table a suite: code hosts show no table of many hundred rows.
    for suite in dict.fromkeys(result.suite for result in shown):
        here = [result for result in shown if result.suite == suite]
        rows = [(f"`{r.id}`", r.statement, f"**{r.verdict}**", r.finding) for r in here]
        header = ("check", "statement", "verdict", "finding")
        parts += [f"### Checks of the suite {suite}", table(header, rows, [r.id for r in here])]
    if len(shown) < len(results):
        parts.append(
            f"{len(results) - len(shown)} more are lines of proofs; they hold and stand in [proofs.md](proofs.md)."
        )
    return parts


def designs(run: Run) -> list[str]:
    """List the tests behind the verdicts that depend on chance."""
    suites: dict[str, list[tuple[str, ...]]] = {}
    for result in run.results:
        if (test := result.design) is not None:
            columns = (f"{test.level:.1g}", test.alternative, f"{test.power:.3g}", f"{test.runs:,}")
            suites.setdefault(result.suite, []).append((f"`{result.id}`", test.null, *columns))
    if not suites:
        return []
    parts = [
        "## What depends on chance",
        "Each test says what holds where there is nothing to find, with what probability at most it says otherwise "
        "then, and what it notices with what probability.",
    ]
    header = ("check", "null hypothesis", "level", "alternative", "power", "runs")
    for suite, rows in suites.items():
        parts += [f"### Tests of the suite {suite}", table(header, rows)]
    return parts


def _counts(run: Run) -> str:
    counts = Counter(result.verdict for result in run.results if result.subject is Subject.DOCUMENT)
    own = sum(result.subject is Subject.IMPLEMENTATION for result in run.results)
    words = f"{own - len(run.failures)} of {own} of this package's own checks hold."
    if counts:
        judged = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
        words += f" Statements of the documents: {judged}."
    return words
