"""Command ``canaryproof claims``: the ledger of the documents' statements, listed or some of them judged."""

import difflib
import json
from collections import Counter
from collections.abc import Collection, Sequence
from importlib.metadata import version

import click

from canaryproof.verify.audit.cli.progress import progress
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.check.documents import DOCUMENTS, OWN
from canaryproof.verify.papers.check.results import Check, Context, Effort, Result, Run, Subject, Verdict, perform
from canaryproof.verify.papers.check.verdicts import rule
from canaryproof.verify.papers.cli import screen
from canaryproof.verify.papers.runs import expected, own_sentences
from canaryproof.verify.papers.suites.catalogue import SUITES, lacking

_DOCUMENTS = tuple(document.id for document in DOCUMENTS)
# A terminal has no room for all statements: these come first.
_FIRST = (Verdict.REFUTED, Verdict.QUALIFIED, Verdict.INCONCLUSIVE, Verdict.NEEDS_DATA, Verdict.CONFIRMED)
# Names that are near a wrong one, and lines of a statement in the overview.
_NEAR, _STATEMENT_LINES = 3, 2


def _identifiers(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete the id of a statement."""
    names = [*(name for _suite, name in expected.read()), *(row.id for row in own_sentences.read())]
    return sorted(name for name in names if name.startswith(incomplete))


@click.command("claims")
@click.argument("identifier", required=False, metavar="[ID]", shell_complete=_identifiers)
@click.option("--document", type=click.Choice(_DOCUMENTS), help="List the statements of this document only.")
@click.option("--verdict", type=click.Choice([v.value for v in Verdict]), help="List those with this verdict only.")
@click.option("--all", "every", is_flag=True, help="Print a line for each statement, as a pipe gets them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def claims_command(
    identifier: str | None, document: str | None, verdict: str | None, every: bool, as_json: bool
) -> None:
    """List the documents' statements and the verdicts on them, or judge one or some of them.

    Without ID, you see the verdicts that are under version control. A terminal shows how many there are of each, and
    the refuted ones that matter most. A pipe, or --all, gets a line for each statement. With ID, the statement is
    judged anew, at the quick level with seed 0, and printed with its evidence. An ID may end early: final.table2 is
    Table 2, with the printed and the true numbers side by side.

    The document own is about this package: sentences of its pages and its help, each with what shows that it holds.
    """
    if identifier is not None and identifier.rstrip(".*") not in _DOCUMENTS:
        if document or verdict:
            raise InputError("--document and --verdict: choose from the list, which ID does not print")
        judge = _print_own if _document(identifier) == OWN.id else _print_judged
        judge(identifier, every=every, as_json=as_json)
        return
    if identifier is not None:
        document = identifier.rstrip(".*")
    statements = expected.read_statements()
    rows = [
        {"id": name, "suite": suite, "verdict": str(judged), "statement": statements[suite, name]}
        for (suite, name), judged in expected.read().items()
    ]
    rows += [_own_row(own) for own in own_sentences.read()]
    rows = [row for row in rows if document in (None, _document(row["id"])) and verdict in (None, row["verdict"])]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=1))
    elif every or not screen.is_terminal():
        _echo(screen.columns([(row["id"], row["verdict"], row["statement"]) for row in rows]))
    elif document is None and verdict is None:
        _echo(_overview(rows))
    else:
        _echo(_listing(rows))


# The list.


def _overview(rows: Sequence[dict[str, str]]) -> list[str]:
    """Return the counts by document and verdict, and the refuted statements that matter most."""
    # Loads the reports, which lists in a pipe do without.
    from canaryproof.reports.claims import findings

    by_document = [Counter(row["verdict"] for row in rows if _document(row["id"]) == each) for each in _DOCUMENTS]
    shown = [verdict for verdict in Verdict if any(counts[verdict] for counts in by_document)]
    table = [("", *map(str, shown))]
    table += [
        (name, *(f"{counts[verdict]:,}" for verdict in shown))
        for name, counts in zip(_DOCUMENTS, by_document, strict=True)
    ]
    refuted = [_row_as_result(row) for row in rows if row["verdict"] == Verdict.REFUTED and "suite" in row]
    # A wrong line of a proof may leave the theorem as it is.
    ranked = sorted(findings(_run(refuted), len(refuted)), key=lambda result: result.suite == "theorems")
    head = [
        *screen.paragraph(f"{len(rows)} statements of six documents, by the verdict on them."),
        "",
        *screen.columns(table, numbers=True),
        "",
        f"Refuted, of {len(ranked)} those that matter most:",
    ]
    foot = [
        "",
        "claims ID judges one anew and shows the evidence, claims final.table2 a table.",
        "--document and --verdict choose; --all, or a pipe, has a line for each.",
    ]
    body: list[str] = []
    for result in ranked:
        block = [f"  {result.id}", *screen.paragraph(result.statement, "    ", _STATEMENT_LINES)]
        if len(head) + len(body) + len(block) + len(foot) > screen.MOST_LINES:
            break
        body += block
    return [*head, *body, *foot]


def _listing(rows: Sequence[dict[str, str]]) -> list[str]:
    """Return as many statements as fit, each with its verdict and the beginning of what it says."""
    if not rows:
        return ["No statement is like that."]
    counts = Counter(row["verdict"] for row in rows)
    ranked = sorted(rows, key=lambda row: _FIRST.index(Verdict(row["verdict"])))
    lines = [
        line
        for row in ranked
        for line in (f"{row['id']}  {row['verdict']}", *screen.paragraph(row["statement"], "  ", 1))
    ]
    numbers = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    shown = screen.fit(lines, "--all has a line for each", screen.MOST_LINES - 2)
    return [*shown, *screen.paragraph(f"{len(rows)} statements: {numbers}")]


def _document(identifier: str) -> str:
    return identifier.partition(".")[0]


def _own_row(own: own_sentences.OwnSentence) -> dict[str, str]:
    return {
        "id": own.id,
        "page": own.page,
        "verdict": str(own.verdict),
        "statement": own.quote,
        "evidence": str(own),
    }


def _row_as_result(row: dict[str, str]) -> Result:
    return Result(
        row["id"], row["suite"], Subject.DOCUMENT, "", row["statement"], Verdict(row["verdict"]), "", evidence={}
    )


def _run(results: Sequence[Result]) -> Run:
    return Run(version("canaryproof"), Effort.QUICK, 0, tuple(results))


# Statements that are judged.


def _plain(identifier: str) -> str:
    """Return an ID as it is compared: who writes theorem3.3 means theorem-3.3."""
    return identifier.lower().replace("-", "").rstrip(".*")


def _choose(identifier: str, known: Collection[str]) -> list[str]:
    """Return the statement of an ID, or those that are below it; an error names the nearest."""
    asked = _plain(identifier)
    chosen = [name for name in known if _plain(name) == asked]
    chosen = chosen or [name for name in known if _plain(name).startswith(f"{asked}.")]
    if chosen:
        return chosen
    parts = sorted((name for name in known if f".{asked}." in f".{_plain(name)}."), key=lambda name: name.count("."))
    # Tables and sections can be asked for, too.
    above = {name.rsplit(".", i)[0] for name in known for i in range(name.count("."))}
    by_plain = {_plain(name): name for name in sorted(above)}
    alike = [by_plain[name] for name in difflib.get_close_matches(asked, by_plain, n=_NEAR)]
    near = list(dict.fromkeys([*parts, *alike]))[:_NEAR]
    hint = f"; near it: {', '.join(near)}" if near else "; canaryproof claims lists all"
    raise InputError(f"ID: there is no statement {identifier!r}{hint}")


def _print_judged(identifier: str, *, every: bool, as_json: bool) -> None:
    suites = {name: suite for suite, name in expected.read()}
    chosen = _choose(identifier, suites)
    reasons = {name: reason for name in chosen if (reason := lacking(suites[name]))}
    if len(reasons) == len(chosen):
        raise InputError(f"ID: {chosen[0]} {reasons[chosen[0]]}")
    results = []
    with progress("canaryproof claims", equal_parts=False) as advance:
        for i, name in enumerate(chosen):
            advance(name, i, len(chosen) if len(chosen) > 1 else 0)
            if name not in reasons:
                results.append(perform(suites[name], _check(suites[name], name), Context(Effort.QUICK, 0)))
    for name, reason in reasons.items():
        click.echo(f"not judged: {name} {reason}", err=True)
    if as_json:
        documents = [result.to_json() for result in results]
        whole = documents[0] if len(chosen) == 1 else documents
        click.echo(json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False))
    elif len(chosen) == 1:
        _echo(_evidence(results[0], whole=every or not screen.is_terminal()))
    elif every or not screen.is_terminal():
        _echo(screen.columns([(result.id, str(result.verdict), *_numbers_or_sentences(result)) for result in results]))
    else:
        _echo(_table(results))


def _print_own(identifier: str, *, every: bool, as_json: bool) -> None:
    """Print sentences of our own with their evidence; the checks of a single one are judged anew."""
    rows = {row.id: row for row in own_sentences.read()}
    chosen = [rows[name] for name in _choose(identifier, rows)]
    if as_json:
        documents = [_own_row(row) for row in chosen]
        click.echo(json.dumps(documents[0] if len(chosen) == 1 else documents, ensure_ascii=False, indent=1))
        return
    lines = []
    for row in chosen:
        lines += [row.id, *screen.paragraph(row.page, "page       "), *screen.paragraph(row.quote, "sentence   ")]
        for evidence in row.evidence:
            lines += screen.paragraph(evidence.words, "because    ")
            if evidence.check_id and len(chosen) == 1:
                suite, name = evidence.check_id
                if reason := lacking(suite):
                    lines += screen.paragraph(f"not judged: {name} {reason}", " " * 11)
                    continue
                result = perform(suite, _check(suite, name), Context(Effort.QUICK, 0))
                lines += screen.paragraph(f"{result.verdict}: {result.finding}", "judged now ")
    _echo(lines if every or not screen.is_terminal() else screen.fit(lines, "--all has all of them"))


def _check(suite: str, name: str) -> Check:
    return next(check for check in SUITES[suite] if check.id == name)


def _numbers_or_sentences(result: Result) -> tuple[str, str]:
    """Return the printed and the true number of a statement, or else two sentences."""
    judged = result.evidence.get("rule")
    if isinstance(judged, dict) and isinstance(judged["value"], int | float):
        return str(judged["printed"]), f"{judged['value']:.6g} ({judged['reading']})"
    return result.statement, result.finding


def _table(results: Sequence[Result]) -> list[str]:
    """Return a table of statements, each with the printed number or sentence and the true one."""
    # Loads the reports.
    from canaryproof.reports.claims import table_2

    three_ways = table_2(_run(results))
    head: list[str] = []
    shown: list[str] = []
    if three_ways is not None:
        head = [*screen.columns(three_ways.rows, numbers=True), *screen.paragraph(three_ways.note), ""]
        shown = three_ways.ids
    lines: list[str] = []
    # Sentences take a line each where there is no room for two.
    for most in (_STATEMENT_LINES, 1):
        lines = list(head)
        for result in results:
            lines.append(f"{result.id}  {result.verdict}")
            if result.id not in shown:
                printed, true = _numbers_or_sentences(result)
                lines += screen.paragraph(printed, "  prints  ", most) + screen.paragraph(true, "  true    ", most)
        if len(lines) <= screen.MOST_LINES:
            break
    return screen.fit(lines, "--all has a line for each, claims ID the whole of one")


def _draws(result: Result) -> str:
    """Say what was drawn at random: vectors, scores by their law, or nothing."""
    if result.suite == "canife":
        return "canary vectors, in trainings on scikit-learn's digits"
    if result.design is None:
        return "none: the verdict follows from printed numbers and exact laws"
    if result.suite == "algorithm1":
        return "cosines by the exact law of Algorithm 1; no vectors"
    return "scores by their laws; no canary vectors"


def _evidence(result: Result, *, whole: bool) -> list[str]:
    """Return a statement with its verdict, the true one, and the evidence in a table."""
    facts = {
        "verdict": str(result.verdict),
        "statement": result.statement,
        "finding": result.finding,
        "rule": rule(result),
        "source": result.source,
        "draws": _draws(result),
    }
    lines = [result.id]
    for name, text in facts.items():
        lines += screen.paragraph(text, f"{name:11}")
    table = screen.evidence_lines({name: value for name, value in result.evidence.items() if name != "rule"})
    lines += ["", *table] if table else []
    return lines if whole else screen.fit(lines, "--all has the whole table, --json all digits")


def _echo(lines: Sequence[str]) -> None:
    click.echo("\n".join(lines))
