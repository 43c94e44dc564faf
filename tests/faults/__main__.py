"""Seed every fault, or those named, and print what catches it: ``python -m tests.faults``."""

import math
import sys
import time

import click
from rich.console import Console

from canaryproof.verify.audit.engine.executors import Local, threads
from canaryproof.verify.papers.check.results import Effort
from tests.faults import FAULTS
from tests.faults.trial import Trial, alarms, trials


@click.command("faults")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--level", type=click.Choice([level.value for level in Effort]), default="quick", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness.")
@click.option(
    "--alarms", "seeds", type=click.IntRange(min=1), help="Seed no fault; count the alarms at so many seeds instead."
)
def main(names: tuple[str, ...], level: str, seed: int, seeds: int | None) -> None:
    """Run the checks that call a faulty function until one notices, for each fault NAME; for all by default.

    Each line names a fault, the check that noticed it, those before it that did not, and CPU seconds. The exit status
    is 1 if a fault is missed. NUMBA_NUM_THREADS sets how many processes there are.
    """
    if seeds is not None:
        _print_alarms(Effort(level), seeds)
        return
    for name in names:
        if name not in FAULTS:
            raise click.UsageError(f"NAME: there is no fault {name!r}")
    began, missed, count = time.perf_counter(), [], 0
    for trial in trials(names or FAULTS, Effort(level), seed, Local(threads())):
        count += 1
        _print(trial)
        if not trial.caught_by:
            missed.append(trial.fault)
    click.echo(f"{count - len(missed)} of {count} faults caught in {time.perf_counter() - began:.0f} s")
    for fault in missed:
        click.echo(f"missed {fault}: {FAULTS[fault].description}")
    sys.exit(1 if missed else 0)


def _print(trial: Trial) -> None:
    caught = f"{trial.fault}: {trial.caught_by} ({trial.said})" if trial.caught_by else f"{trial.fault}: MISSED"
    others = [*(f"{name} does not" for name in trial.silent), *(f"{name} is not touched" for name in trial.untouched)]
    click.echo("; ".join([caught, *others, f"{trial.seconds:.1f} s"]))


def _print_alarms(level: Effort, seeds: int) -> None:
    tried, found = alarms(level, seeds, Local(threads()))
    console = Console()
    for alarm in found:
        kind = "exception" if alarm.design is None else "alarm"
        console.print(f"[red]{kind}[/red] {alarm.id}: {alarm.said} at seed {alarm.seed}", highlight=False)
    levels = [design.level for design in tried.values() if design is not None]
    false = sum(alarm.design is not None for alarm in found)
    console.print(
        f"{seeds} seeds: {false} alarms of {len(levels)} tests, of whose levels the sum is {math.fsum(levels):.2g}; "
        f"{len(found) - false} exceptions found by {len(tried) - len(levels)} checks with random inputs"
    )


if __name__ == "__main__":
    main()
