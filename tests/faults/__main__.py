"""Seed every fault, or those named, and print what catches it: ``python -m tests.faults``."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from canaryproof.verify.check.results import Level
from canaryproof.verify.engine.executors import inherited, processes_of_a_run
from canaryproof.verify.estimators.simulation import threads
from tests.faults import FAULTS
from tests.faults.trial import Answer, Each, Trial, alarms, trials


@click.command("faults")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--level", type=click.Choice([level.value for level in Level]), default="quick", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness.")
@click.option(
    "--alarms", "seeds", type=click.IntRange(min=1), help="Seed no fault; count the alarms at so many seeds instead."
)
def main(names: tuple[str, ...], level: str, seed: int, seeds: int | None) -> None:
    """Run the checks that call a faulty function, for each fault NAME; for all by default.

    The exit status is 1 if a fault is missed. NUMBA_NUM_THREADS sets how many processes there are.
    """
    if seeds is not None:
        _print_alarms(Level(level), seeds)
        return
    for name in names:
        if name not in FAULTS:
            raise click.UsageError(f"NAME: there is no fault {name!r}")
    with processes() as each:
        done = trials(names or FAULTS, Level(level), seed, each)
    _print(done)
    sys.exit(0 if all(trial.caught_by for trial in done) else 1)


@contextmanager
def processes() -> Iterator[Each]:
    """Give a way to judge many checks in processes of one thread each, and show how many are done."""
    with processes_of_a_run(threads()) as pool:

        def each(function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]) -> list[Answer]:
            with inherited():
                futures = [pool.submit(function, *some) for some in arguments]
            done = as_completed(futures)
            for _ in track(done, "judging", total=len(futures), console=Console(stderr=True), transient=True):
                pass
            return [future.result() for future in futures]

        yield each


def _print(done: list[Trial]) -> None:
    table = Table(expand=False)
    table.add_column("fault", overflow="fold")
    table.add_column("caught by", overflow="fold", ratio=1)
    table.add_column("not noticed by", overflow="fold", ratio=1)
    for trial in done:
        # An error is shown; that a verdict changed goes without saying.
        caught = [f"{name} ({said})" if said.endswith("Error") else name for name, said in trial.caught_by.items()]
        silent = [*trial.silent, *(f"{name} (not touched)" for name in trial.untouched)]
        table.add_row(trial.fault.name, ", ".join(caught) or "[red]missed[/red]", ", ".join(silent))
    console = Console()
    console.print(table)
    missed = [trial.fault for trial in done if not trial.caught_by]
    seconds = math.fsum(trial.seconds for trial in done)
    console.print(f"{len(done) - len(missed)} of {len(done)} faults caught by checks that took {seconds:.0f} s in all")
    for fault in missed:
        console.print(f"[red]missed[/red] {fault.name}: {fault.description}")


def _print_alarms(level: Level, seeds: int) -> None:
    with processes() as each:
        tried, found = alarms(level, seeds, each)
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
