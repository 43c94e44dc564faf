"""Measure other people's tools and write the page on them: ``python -m other_tools``."""

import sys
from pathlib import Path

import click

from canaryproof.reports.pages import RESULTS, as_written
from canaryproof.verify.audit.cli.progress import progress
from canaryproof.verify.audit.engine.executors import Local, threads
from canaryproof.verify.papers.check.results import Context, Effort
from canaryproof.verify.papers.cli.benchmark_command import prepare, write
from canaryproof.verify.papers.runs.plan import Plan
from canaryproof.verify.papers.runs.run_file import RunFile
from canaryproof.verify.papers.runs.run_plan import run_plan
from other_tools import accountants, auditors, page

SUITES = {
    "auditors": auditors.CHECKS,
    "dependence": auditors.DEPENDENCE_CHECKS,
    "accountants": accountants.CHECKS,
}


@click.command("other_tools")
@click.argument("suites", nargs=-1, type=click.Choice(list(SUITES)), metavar="[SUITE]...")
@click.option("--level", type=click.Choice([Effort.QUICK.value, Effort.FULL.value]), default="quick", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the page and its numbers.")
def main(suites: tuple[str, ...], level: str, seed: int, out: Path) -> None:
    """Measure other people's auditing tools and accountants, and this package's in the same way.

    SUITE is auditors, dependence (the same on scores that depend on each other) or accountants; all by default. The
    exit status is 1 if a method of this package fails.
    """
    prepare(out, (RESULTS, page.PAGE, page.DEPENDENCE), overwrite=True)
    plan = Plan("other_tools.__main__:SUITES", tuple(dict.fromkeys(suites or SUITES)), Context(Effort(level), seed))
    with (
        RunFile(None, plan.origin, plan.checks) as file,
        progress("other_tools", equal_parts=False) as advance,
    ):
        run = run_plan(plan, file, Local(threads()), lambda done, total, current: advance(current, done, total))
    results, run = as_written(run)
    files = {RESULTS: results, **page.render(run)}
    write({name: text.encode() for name, text in files.items()}, out)
    for result in run.results:
        click.echo(f"{result.id}: {result.verdict}: {result.finding}")
    sys.exit(1 if run.failures else 0)


if __name__ == "__main__":
    main()
