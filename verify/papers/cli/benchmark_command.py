"""Command ``canaryproof benchmark canife``: CANIFE and Algorithms 2 and 3 on the same trainings."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape
from rich.table import Table

from canaryproof.verify.audit.cli.console import Console
from canaryproof.verify.audit.cli.options import EngineLost, FilePath, cluster, engine_option
from canaryproof.verify.audit.cli.progress import progress
from canaryproof.verify.audit.engine.executors import EngineError
from canaryproof.verify.audit.files.errors import InputError, extra
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.papers.records.output_files import check_files, write_files
from canaryproof.verify.papers.records.report_input import CANIFE

if TYPE_CHECKING:
    from canaryproof.verify.audit.markup.markdown import Section

_EXTRA = ("jax", "flax", "optax")


@click.group("benchmark")
def benchmark_command() -> None:
    """Measure this package and others on this machine."""


@benchmark_command.command("canife")
@click.option(
    "--data",
    type=FilePath(),
    help="Folder with the IDX files of MNIST or the like; scikit-learn's digits, at smaller sizes, without.",
)
@click.option("--repeat", type=click.IntRange(1, 1000), help="Trainings of each scenario: 3, or 10 at the full level.")
@click.option(
    "--level",
    type=click.Choice(["quick", "full"]),
    default="quick",
    show_default=True,
    help="On MNIST two or ten minutes on two cores; full also shuffles an epoch and tries learning rates.",
)
@click.option("--out", type=FilePath(), help="Folder for canife.md, its picture and its numbers.")
@engine_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def canife_command(
    data: Path | None, repeat: int | None, level: str, out: Path | None, engine_name: str, as_json: bool
) -> None:
    """Audit the same trainings by CANIFE, by Algorithms 2 and 3, and by all lower bounds.

    The setting is that of Section 5.4 of arXiv:2302.03098: a two-layer network, clip norm 1, noise multiplier 0.2, one
    epoch in batches of 128.
    """
    missing = [name for name in _EXTRA if find_spec(name) is None]
    if missing:
        raise InputError(f"benchmark canife: needs {', '.join(missing)}: {extra('federated')}")
    workers = cluster(engine_name)
    if out is not None:
        prepare(out, (CANIFE, "canife.md"))
    # Its trainings need JAX.
    from canaryproof.verify.papers.claims.canife import rules as canife_rules
    from canaryproof.verify.papers.comparison import canife as benchmark

    federation, setting, fashion = benchmark.read(data)
    try:
        with progress("canaryproof benchmark canife", equal_parts=False) as advance:
            record = benchmark.measure(
                federation,
                setting,
                level,
                repeat,
                lambda part: advance(f"training: {part}", 0, 0),
                cluster=workers,
                data=data,
            )
    except EngineError as error:
        raise EngineLost(str(error)) from error
    record = canife_rules.with_printed(record, fashion)
    text = json.dumps(to_document(record), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    from canaryproof.reports import canife

    if out is not None:
        write({CANIFE: text, **canife.render(record)}, out)
    if as_json:
        click.echo(text, nl=False)
        return
    show(canife.about(record), canife.sections(record))


def show(about: str, sections: "Iterable[Section]") -> None:
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


def prepare(folder: Path, names: Iterable[str]) -> None:
    """Make a folder: minutes of measuring are not to be lost to one that cannot be written to."""
    with _named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        check_files(names, folder)


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write texts by file name."""
    with _named(folder):
        write_files({name: text.encode() for name, text in files.items()}, folder)


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror or error}") from error
