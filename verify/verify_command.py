"""Command ``canaryproof verify``: run suites, print a verdict on every check, leave a run folder."""

import json
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from canaryproof.verify.results import Check, Context, Level, Result, Run, Subject, Verdict, perform
from canaryproof.verify.suites import SUITES

_STYLES = {
    Verdict.CONFIRMED: "green",
    Verdict.QUALIFIED: "yellow",
    Verdict.REFUTED: "red",
    Verdict.INCONCLUSIVE: "magenta",
    Verdict.NEEDS_DATA: "cyan",
}


def run_suites(names: tuple[str, ...], context: Context, *, progress: Progress | None = None) -> Run:
    """Judge all checks of the named suites, in order.

    Parameters
    ----------
    names
        Names of suites.
    context
        Level and seed.
    progress
        Where to show how far it is.

    Returns
    -------
    The run.
    """
    checks: list[tuple[str, Check]] = [(name, check) for name in names for check in SUITES[name]]
    task = progress.add_task("", total=len(checks)) if progress else None
    results = []
    for suite, check in checks:
        if progress and task is not None:
            progress.update(task, description=check.id)
        results.append(perform(suite, check, context))
        if progress and task is not None:
            progress.advance(task)
    return Run(version("canaryproof"), context.level, context.seed, tuple(results))


@click.command("verify")
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option("--level", type=click.Choice([level.value for level in Level]), default="quick", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder to leave results in.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def verify_command(suites: tuple[str, ...], level: str, seed: int, out: Path | None, as_json: bool) -> None:
    """Check the numerics, the algorithms, the printed tables and the proofs.

    SUITE is numerics, gaussian or theorems; all of them by default. The exit status is 1 if a check of this package
    fails; a document's refuted statement is a finding and not a failure.
    """
    for name in suites:
        if name not in SUITES:
            raise click.UsageError(f"SUITE: there is no suite {name!r}; there are {', '.join(SUITES)}")
    if out is not None:
        # Before the work, so that a folder that cannot be made costs no time.
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.UsageError(f"--out: {out}: {error.strerror}") from None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        run = run_suites(suites or tuple(SUITES), Context(Level(level), seed), progress=progress)
    if out is not None:
        # The reports need matplotlib, which takes a second to import.
        from canaryproof.reports.folder import write_folder

        write_folder(run, out)
    if as_json:
        click.echo(json.dumps(run.to_json(), ensure_ascii=False, indent=1, allow_nan=False))
    else:
        _print(run, out)
    sys.exit(1 if run.failures else 0)


def _print(run: Run, out: Path | None) -> None:
    console = Console()
    for subject, title in (
        (Subject.IMPLEMENTATION, "This package's own checks"),
        (Subject.DOCUMENT, "Statements of the documents"),
    ):
        results = [result for result in run.results if result.subject is subject]
        shown = [result for result in results if not (result.is_line and result.verdict is Verdict.CONFIRMED)]
        if shown:
            console.print(_table(title, shown))
        if len(shown) < len(results):
            console.print(f"{len(results) - len(shown)} lines of proofs more are confirmed; --out lists them\n")
    counts = Counter(result.verdict for result in run.results if result.subject is Subject.DOCUMENT)
    own = sum(result.subject is Subject.IMPLEMENTATION for result in run.results)
    summary = f"{own - len(run.failures)} of {own} own checks hold"
    if counts:
        summary += "; documents: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    console.print(summary)
    for failure in run.failures:
        console.print(f"[red]failed[/red] {failure.id}: {failure.finding}")
    if out is not None:
        console.print(f"Results: {out}", highlight=False)


def _table(title: str, results: list[Result]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", expand=False)
    table.add_column("check", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("finding", overflow="fold", ratio=1)
    for result in results:
        table.add_row(result.id, f"[{_STYLES[result.verdict]}]{result.verdict}[/]", result.finding)
    return table
