"""Command ``canaryproof benchmark kernels``: what the kernels cost on this machine, beside others."""

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from canaryproof.verify.input_files import InputError

_DOCUMENT = "performance.json"


@click.group("benchmark")
def benchmark_command() -> None:
    """Measure this package beside others on this machine."""


@benchmark_command.command("kernels")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for performance.md, its pictures and its numbers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option(
    "--size",
    type=click.Choice(["full", "small"]),
    default="full",
    show_default=True,
    help="Full takes minutes and 3 GB of memory; small shows that all runs, and its times mean little.",
)
def kernels_command(out: Path | None, as_json: bool, size: str) -> None:
    """Time canaries beside numpy, JAX and a BLAS with stored ones, in one run.

    All take turns, so that whatever else the machine does hits all alike. What was aimed at is printed beside what was
    found, and missing an aim is no failure.
    """
    # Minutes of measuring are not to be lost to a folder that cannot be written.
    if out is not None:
        _in_folder(out, {})
    from canaryproof.verify.benchmark.kernels import SIZES, measure

    with Console(stderr=True).status("") as status:
        found = measure(SIZES[size], lambda part: status.update(f"measuring: {part}"))
    text = json.dumps(asdict(found), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    document = json.loads(text)
    # matplotlib takes a second to import.
    from canaryproof.reports import performance

    if out is not None:
        _in_folder(out, {_DOCUMENT: text, **performance.render(document)})
    if as_json:
        click.echo(text, nl=False)
        return
    console = Console()
    console.print(" ".join(performance.about(document).split()), "", highlight=False, sep="\n")
    for section in performance.sections(document):
        table = Table(title=section.title, title_justify="left")
        for name in section.header:
            table.add_column(name)
        for row in section.rows:
            table.add_row(*map(escape, row))
        console.print(table, section.note, "", highlight=False)


def _in_folder(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror or error}") from error
