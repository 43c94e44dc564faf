"""Time canaries beside numpy, JAX and a BLAS with stored ones: ``python -m tests.benchmarks``.

``pytest tests/benchmarks --benchmark-enable`` times single calls.
"""

import json
from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.console import Console

from canaryproof.verify.cli.benchmark import prepare, show, write
from tests.benchmarks import kernels, performance

PERFORMANCE = "performance.json"


@click.command("benchmarks")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for performance.md, its pictures and its numbers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option(
    "--size",
    type=click.Choice(["full", "small"]),
    default="full",
    show_default=True,
    help="Full takes minutes and 3 GB of memory; small shows that all runs, and its times mean little.",
)
@click.option("--largest", is_flag=True, help="Score releases of 2^30 coordinates too: 2 GB of disk, some minutes.")
def main(out: Path | None, as_json: bool, size: str, largest: bool) -> None:
    """Time canaries beside numpy, JAX and a BLAS with stored ones, in one run.

    All take turns, so that whatever else the machine does hits all alike. What was aimed at is printed beside what was
    found, and missing an aim is no failure.
    """
    if out is not None:
        prepare(out, (PERFORMANCE, "performance.md"))
    chosen = kernels.SIZES[size]
    if largest:
        chosen = replace(chosen, releases=(*chosen.releases, 2**30))
    with Console(stderr=True).status("") as status:
        found = kernels.measure(chosen, lambda part: status.update(f"measuring: {part}"))
    text = json.dumps(asdict(found), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    document = json.loads(text)
    if out is not None:
        write({PERFORMANCE: text, **performance.render(document)}, out)
    if as_json:
        click.echo(text, nl=False)
        return
    show(performance.about(document), performance.sections(document))


if __name__ == "__main__":
    main()
