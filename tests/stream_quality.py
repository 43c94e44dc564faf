"""Test the canary stream at length: ``python -m tests.stream_quality``, some 11 minutes of one core for 1e10."""

import sys
from collections import defaultdict

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.suites.stream_quality.quality import Quality, judge, visible_moment


@click.command("streams")
@click.option(
    "--coordinates", type=click.FloatRange(min=1.0, max=1e15), default=1e9, show_default=True, help="How many to read."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Chooses where to read.")
def main(coordinates: float, seed: int) -> None:
    """Read the stream of canaries in several orders and test its words and coordinates.

    A coordinate takes some 65 ns of one core. The exit status is 1 if a test fails.
    """
    columns = BarColumn(), TextColumn("{task.percentage:.0f}%"), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=coordinates)
        quality = judge(round(coordinates), seed, lambda read: progress.update(task, completed=read))
    _print(quality)
    sys.exit(0 if quality.passed else 1)


def _print(quality: Quality) -> None:
    interleavings: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for name, p in quality.p_values.items():
        interleaving, _, test = name.partition(": ")
        interleavings[interleaving][test] = p
    table = Table("interleaving", "tests", "smallest p-value", "of")
    for interleaving, p_values in interleavings.items():
        test, smallest = min(p_values.items(), key=lambda item: item[1])
        table.add_row(interleaving, str(len(p_values)), f"{smallest:.2g}", test)
    console = Console()
    console.print(table)
    count, tests = quality.coordinates, len(quality.p_values)
    visible = ", ".join(f"{visible_moment(order, count, tests):.1e}" for order in (2, 4, 6, 8))
    console.print(f"{count:,} coordinates, each that of its word: {'yes' if quality.linked else '[red]no[/red]'}")
    console.print(f"relative deviations of the moments 2, 4, 6 and 8 that are seen with probability 0.99: {visible}")
    found = "nothing found" if quality.passed else "[red]the stream fails[/red]"
    console.print(f"{tests} tests at level {LEVEL:g} together, {LEVEL / tests:.1e} each: {found}")


if __name__ == "__main__":
    main()
