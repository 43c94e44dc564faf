"""Options, exit statuses and the printing of a line, which commands of both storeys share."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from canaryproof.verify.audit.files.errors import InputError, OutputError, extra
from canaryproof.verify.audit.rules import NumberRange, printable

if TYPE_CHECKING:
    from canaryproof.verify.audit.engine.cluster import Cluster

# The exit statuses that are no decisions; 0, 1, 3 and 4 are a gate's. 64 to 78 are those of BSD's sysexits.h.
BAD_INPUT, ENGINE_LOST, CRASHED, UNWRITTEN, INTERRUPTED, TERMINATED = 2, 69, 70, 74, 130, 143

# Where a command says, in its context, why an option is missing that is not given.
WHY_MISSING = "canaryproof.why_missing"


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


def number_of(rule: NumberRange) -> Callable[[str], float]:
    """Return a converter to a number that keeps a rule; 1e6 is a whole one too."""

    def number(text: str) -> float:
        with contextlib.suppress(InvalidOperation, ValueError):
            value = Decimal(text) if rule.whole else float(text)
            if value in rule:
                return int(value) if rule.whole else float(value)
        raise click.BadParameter(rule.objection(text))

    if rule.whole:
        number.__name__ = "integer"
    return number


SEED = number_of(NumberRange("be a whole number from 0 to 2^64 - 1", 0, 2**64 - 1, whole=True))


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


def check_output(out: Path, suffixes: tuple[str, ...], size: int, *, overwrite: bool) -> None:
    """Refuse a file that exists and is not to be replaced, that has another suffix, or for which there is no room."""
    try:
        if out.suffix.lower() not in suffixes:
            raise InputError(f"{out}: the file's name must end in {' or '.join(suffixes)}")
        if os.path.lexists(out) and not (overwrite and (out.is_file() or out.is_symlink())):
            raise InputError(f"{out}: must not exist already, unless with --overwrite")
        # A disk also has room where a file stands in place of the folder.
        if out.parent.exists() and not out.parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        free = shutil.disk_usage(out.parent).free
    except OSError as error:
        raise InputError(f"{out}: {error.strerror or error}") from error
    if size > free:
        # No help waits for this import.
        from rich.filesize import decimal

        raise OutputError(f"{out}: needs {decimal(size)}, and the disk has {decimal(free)} free")


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
