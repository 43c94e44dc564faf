"""Time canaries beside numpy, JAX and a BLAS with stored ones: ``python -m tests.benchmarks``.

``pytest tests/benchmarks --benchmark-enable`` times single calls.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from canaryproof.verify.audit.markup.markdown import Section
from canaryproof.verify.papers.cli.benchmark_command import prepare, write
from tests.benchmarks import kernels, performance, releases, waiting


@click.command("benchmarks")
@click.option(
    "--page",
    type=click.Choice(["performance", "releases", "waiting"]),
    default="performance",
    show_default=True,
    help="What is measured: kernels beside others, audits of large releases in files, or what users wait for.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the page, its pictures and its numbers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option(
    "--size",
    type=click.Choice(["full", "small"]),
    default="full",
    show_default=True,
    help="Full takes minutes and 3 GB of memory; small shows that all runs, and its times mean little.",
)
@click.option("--largest", is_flag=True, help="Audit a release of 2^30 coordinates too: 2 GB of disk, some minutes.")
@click.option(
    "--earlier",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The command canaryproof of another environment, which takes turns.",
)
def main(page: str, out: Path | None, as_json: bool, size: str, largest: bool, earlier: Path | None) -> None:
    """Time canaries beside numpy, JAX and a BLAS with stored ones, audits of large releases, or commands, in one run.

    All take turns, so that whatever else the machine does hits all alike. What was aimed at is printed beside what was
    found, and missing an aim is no failure.
    """
    if largest and page != "releases":
        raise click.UsageError("--largest must be given with --page releases")
    if earlier is not None and page != "waiting":
        raise click.UsageError("--earlier must be given with --page waiting")
    if out is not None:
        prepare(out, (f"{page}.json", f"{page}.md"), overwrite=True)
    dims = (*releases.DIMS[size], *([releases.LARGEST] if largest else []))
    with Console(stderr=True).status("") as status:

        def part(name: str) -> None:
            status.update(f"measuring: {name}")

        measured: Any
        if page == "performance":
            measured = kernels.measure(kernels.SIZES[size], part)
        elif page == "releases":
            measured = releases.measure(dims, part)
        else:
            measured = waiting.measure(waiting.TURNS[size], earlier, part)
    text = json.dumps(asdict(measured), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    document = json.loads(text)
    module: Any = {"performance": performance, "releases": releases, "waiting": waiting}[page]
    if out is not None:
        pages = {f"{page}.json": text, **module.render(document)}
        write({name: each.encode() for name, each in pages.items()}, out)
    if as_json:
        click.echo(text, nl=False)
        return
    show(module.about(document), module.sections(document))


def show(about: str, sections: Iterable[Section]) -> None:
    """Print what was measured as tables."""
    console = Console()
    console.print(" ".join(about.split()), "", highlight=False, sep="\n")
    for section in sections:
        table = Table(title=section.title, title_justify="left")
        for name in section.header:
            table.add_column(name)
        for row in section.rows:
            table.add_row(*map(escape, row))
        console.print(table, section.note, "", highlight=False)


if __name__ == "__main__":
    main()
