"""Seed every fault, or those named, and print what catches it: ``python -m canaryproof.verify.faults``."""

import sys

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from canaryproof.verify.faults import FAULTS
from canaryproof.verify.faults.trial import Trial, Trials, alarms, stochastic
from canaryproof.verify.results import Check, Context, Level
from canaryproof.verify.suites.catalogue import SUITES


@click.command("faults")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--level", type=click.Choice([level.value for level in Level]), default="quick", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness.")
@click.option(
    "--alarms", "seeds", type=click.IntRange(min=1), help="Seed no fault; count the alarms at so many seeds instead."
)
@click.option(
    "--longest", type=float, default=3.0, show_default=True, help="With --alarms: seconds that a check may take."
)
def main(names: tuple[str, ...], level: str, seed: int, seeds: int | None, longest: float) -> None:
    """Run the checks that touch a faulty function, for each fault NAME; for all by default.

    The exit status is 1 if a fault is missed.
    """
    checks = {check.id: check for suite in SUITES.values() for check in suite}
    if seeds is not None:
        _count_alarms(checks, Level(level), seeds, longest)
        return
    for name in names:
        if name not in FAULTS:
            raise click.UsageError(f"NAME: there is no fault {name!r}")
    trials = Trials(checks, Context(Level(level), seed))
    chosen = [FAULTS[name] for name in names or FAULTS]
    done = [
        trials.run(fault) for fault in track(chosen, "seeding faults", console=Console(stderr=True), transient=True)
    ]
    _print(done)
    sys.exit(0 if all(trial.caught_by for trial in done) else 1)


def _print(done: list[Trial]) -> None:
    table = Table(expand=False)
    table.add_column("fault", overflow="fold")
    table.add_column("caught by", overflow="fold", ratio=1)
    table.add_column("not noticed by", overflow="fold", ratio=1)
    for trial in done:
        # An error is shown; that a verdict changed goes without saying.
        caught = [f"{name} ({said})" if said.endswith("Error") else name for name, said in trial.caught_by.items()]
        table.add_row(trial.fault.name, ", ".join(caught) or "[red]missed[/red]", ", ".join(trial.silent))
    console = Console()
    console.print(table)
    missed = [trial.fault for trial in done if not trial.caught_by]
    seconds = sum(trial.seconds for trial in done)
    console.print(f"{len(done) - len(missed)} of {len(done)} faults caught in {seconds:.0f} s")
    for fault in missed:
        console.print(f"[red]missed[/red] {fault.name}: {fault.description}")


def _count_alarms(checks: dict[str, Check], level: Level, seeds: int, longest: float) -> None:
    console = Console()
    tried = stochastic(checks.values(), level, longest)
    total = 0
    for check in track(tried, "counting alarms", console=Console(stderr=True), transient=True):
        found = alarms(check, level, range(seeds))
        total += len(found)
        for alarm in found:
            console.print(f"{alarm.id}: {alarm.said} at seed {alarm.seed}")
    console.print(f"{total} alarms of {len(tried)} stochastic checks at {seeds} seeds")


if __name__ == "__main__":
    main()
