"""Command ``canaryproof claims``: the ledger of the documents' statements, listed or one of them judged."""

import difflib
import json
from collections import Counter
from collections.abc import Iterator

import click
from rich.markup import escape
from rich.table import Table

from canaryproof.verify.audit.cli.console import Console
from canaryproof.verify.audit.cli.progress import progress
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.check.documents import DOCUMENTS
from canaryproof.verify.papers.check.results import Check, Context, Effort, Result, Subject, Verdict, perform
from canaryproof.verify.papers.check.verdicts import rule
from canaryproof.verify.papers.runs import expected
from canaryproof.verify.papers.suites.catalogue import SUITES, lacking

_DOCUMENTS = tuple(document.id for document in DOCUMENTS)


def _claims() -> Iterator[tuple[str, Check]]:
    """Suite and check of every statement of a document."""
    for suite, checks in SUITES.items():
        yield from ((suite, check) for check in checks if check.subject is Subject.DOCUMENT)


def _identifiers(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete the id of a statement."""
    ids = {name for _suite, name in expected.read() if name.partition(".")[0] in _DOCUMENTS}
    return sorted(name for name in ids if name.startswith(incomplete))


@click.command("claims")
@click.argument("identifier", required=False, metavar="[ID]", shell_complete=_identifiers)
@click.option("--document", type=click.Choice(_DOCUMENTS), help="List the statements of this document only.")
@click.option("--verdict", type=click.Choice([v.value for v in Verdict]), help="List those with this verdict only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def claims_command(identifier: str | None, document: str | None, verdict: str | None, as_json: bool) -> None:
    """List the documents' statements and the verdicts on them, or judge one.

    Without ID, all statements with their verdicts under version control. With ID, that statement is judged anew, at the
    quick level with seed 0, and printed with its evidence.
    """
    if identifier is not None:
        if document or verdict:
            raise InputError("--document and --verdict: choose from the list, which ID does not print")
        _print_one(_judged(identifier), as_json=as_json)
        return
    table = expected.read()
    rows = [
        {"id": check.id, "suite": suite, "verdict": str(table[suite, check.id]), "statement": check.statement}
        for suite, check in _claims()
        if document in (None, check.id.partition(".")[0]) and verdict in (None, str(table[suite, check.id]))
    ]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        _print_list(rows)


def _judged(identifier: str) -> Result:
    known = {check.id: (suite, check) for suite, check in _claims()}
    if identifier not in known:
        # A part of an identifier, as a table's number, comes before what is spelled alike.
        parts = sorted((name for name in known if f".{identifier}." in f".{name}."), key=lambda name: name.count("."))
        near = [*parts, *difflib.get_close_matches(identifier, known, n=3)][:3]
        hint = f"; near it: {', '.join(near)}" if near else "; canaryproof claims lists all"
        raise InputError(f"ID: there is no statement {identifier!r}{hint}")
    suite, check = known[identifier]
    if reason := lacking(suite):
        raise InputError(f"ID: {identifier} {reason}")
    with progress("canaryproof claims", equal_parts=False) as advance:
        advance(identifier, 0, 0)
        return perform(suite, check, Context(Effort.QUICK, 0))


def _draws(result: Result) -> str:
    """Say what was drawn at random: vectors, scores by their law, or nothing."""
    if result.suite == "canife":
        return "canary vectors, in trainings on scikit-learn's digits"
    if result.design is None:
        return "none: the verdict follows from printed numbers and exact laws"
    if result.suite == "algorithm1":
        return "cosines by the exact law of Algorithm 1; no vectors"
    return "scores by their laws; no canary vectors"


def _print_one(result: Result, *, as_json: bool) -> None:
    document = result.to_json()
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False))
        return
    click.echo(f"{'draws':10} {_draws(result)}")
    for name in ("id", "source", "statement", "verdict", "finding"):
        click.echo(f"{name:10} {document[name]}")
    click.echo(f"rule       {rule(result)}")
    evidence = {name: value for name, value in document["evidence"].items() if name != "rule"}
    click.echo("evidence   " + json.dumps(evidence, ensure_ascii=False, indent=1))


def _print_list(rows: list[dict[str, str]]) -> None:
    table = Table(expand=False)
    table.add_column("statement", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("what it says", overflow="fold", ratio=1)
    for row in rows:
        table.add_row(row["id"], row["verdict"], escape(row["statement"]))
    console = Console()
    console.print(table)
    counts = Counter(row["verdict"] for row in rows)
    shown = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    console.print(
        f"{len(rows)} statements: {shown}" if rows else "no statement is like that", highlight=False, soft_wrap=True
    )
