"""Options, exit statuses and the printing of a line, which commands of both storeys share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from canaryproof.verify.audit.files.errors import InputError, extra
from canaryproof.verify.audit.rules import printable

if TYPE_CHECKING:
    from canaryproof.verify.audit.engine.cluster import Cluster

# The exit statuses that are no decisions; 0, 1, 3 and 4 are a gate's. 64 to 78 are those of BSD's sysexits.h.
BAD_INPUT, ENGINE_LOST, CRASHED, UNWRITTEN, INTERRUPTED, TERMINATED = 2, 69, 70, 74, 130, 143


def one_line(text: str) -> str:
    """Return a text as one printable line, such as a message with a hostile file name."""
    return printable(text).replace("\n", r"\n").replace("\t", r"\t")


class FilePath(click.Path):
    """A path that is not empty: the empty one would be the working folder."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: D102
        if not str(value):
            self.fail("must not be empty", param, ctx)
        return super().convert(value, param, ctx)


class EngineLost(click.ClickException):
    """An engine cannot go on; whether a check fails is not known."""

    exit_code = ENGINE_LOST


junit_option = click.option(
    "--junit",
    type=FilePath(),
    metavar="FILE",
    help="Write the checks as a JUnit .xml file, on bad input one that says so.",
)
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace the files of a former run.")


KIND = (
    "What the scores are: cosines, or any real scores with unobserved ones to compare, higher where a canary left a "
    "trace. By default cosines, unless FILE has other names than observed and unobserved."
)


def columns_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say where a file's scores are."""
    options = (
        click.option("--score", metavar="COLUMN", help="Column of scores in a table with a line for each canary."),
        click.option("--member", metavar="COLUMN", help="Its column with 1 or true for members, else 0 or false."),
        click.option(
            "--id",
            "id_column",
            metavar="COLUMN",
            help="Its column that says which canary a line is about; the mean of several lines for one counts once.",
        ),
        click.option(
            "--unobserved",
            type=FilePath(),
            metavar="FILE",
            help="Scores of canaries that did not take part, if they are in a file of their own.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def write_after_answer(status: int, files: Iterable[tuple[Path | None, Callable[[Path], object]]]) -> int:
    """Write the files of an answer that is printed, each whatever becomes of the others, and return the exit status.

    It is the decision's where that is no success, and else says whether one could not be written.
    """
    for path, write in files:
        try:
            if path is not None:
                write(path)
        except InputError as error:
            click.echo(f"Error: {one_line(error.message)}", err=True)
            status = status or UNWRITTEN
    return status


_DASK = "dask"

engine_option = click.option(
    "--engine",
    "engine_name",
    default="local",
    show_default=True,
    help="local, dask for a cluster on this machine, or dask://HOST:PORT for the one of a scheduler.",
)


def cluster(name: str, limit: float | None = None) -> "Cluster | None":
    """Return the cluster that ``--engine`` names, None for ``local``; a check may take ``limit`` seconds."""
    if name == "local":
        return None
    scheme, _, location = name.partition("://")
    if scheme != _DASK or (name != _DASK and not location):
        raise InputError(f"--engine: must be local, dask or dask://HOST:PORT, not {name!r}")
    if find_spec("distributed") is None:
        raise InputError(f"--engine: dask needs {extra('distributed')}")
    # Loads dask, which is optional, and numba.
    from canaryproof.verify.audit.engine.cluster import Cluster
    from canaryproof.verify.audit.engine.executors import threads

    address = location if "://" in location or not location else f"tcp://{location}"
    if address and not address.startswith("tls://"):
        click.echo(f"Warning: --engine {name} is not tls://: whoever reaches it can run code as you.", err=True)
    return Cluster(address, threads(), limit)


def report_repetitions(attempts: Mapping[int, int], names: Sequence[str]) -> dict[str, int]:
    """Say on stderr, and return, how often each task was given to a worker, if more than once."""
    again = {names[i]: times for i, times in sorted(attempts.items()) if times > 1}
    for name, times in again.items():
        click.echo(f"given to {times} workers, as some were lost: {name}", err=True)
    return again
