"""Command ``canaryproof report``: make the reports of a run anew, without running it again."""

import json
import stat
import warnings
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import click

from canaryproof.verify.command_line import one_line
from canaryproof.verify.input_files import InputError
from canaryproof.verify.results import Run

_RESULTS = "results.json"


def read_run(folder: Path) -> Run:
    """Read the run that ``canaryproof verify --out`` left in a folder.

    Parameters
    ----------
    folder
        The folder, which holds ``results.json``.

    Returns
    -------
    The run.

    Raises
    ------
    InputError
        If the folder or the file cannot be read, or the file breaks a rule.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: must be a folder, as canaryproof verify --out leaves it")
    file = folder / _RESULTS
    try:
        # Opening a pipe would wait for its writer.
        if not stat.S_ISREG(file.stat().st_mode):
            raise ValueError("must be a regular file")
        return Run.from_json(json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: must be text in UTF-8") from error
    except RecursionError as error:
        raise InputError(f"{file}: is nested too deeply") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{file}: {place}: truncated or damaged, as it is not JSON ({error.msg})") from error
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"is not JSON, which has no number {constant}")


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write to; RUN by default.")
def report_command(run: Path, out: Path | None) -> None:
    """Write the reports of a run anew.

    RUN is a folder that "canaryproof verify --out" left. Everything is made from the results.json in it, and nothing is
    computed again.
    """
    found = read_run(run)
    # matplotlib takes a second to import.
    from canaryproof.reports.folder import write_files

    try:
        files = _render(found)
    except MemoryError:
        raise
    except Exception as error:
        # Evidence is free in form, each page reads its own, and a damaged one may raise anything.
        reason = f"there is no field {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        place = f"{run / _RESULTS}: {_damaged(found)}"
        raise InputError(f"{place}: is not of the form that the reports read: {reason}") from error
    folder = out or run
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_files(files, folder)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror or error}") from error
    for name in files:
        click.echo(one_line(str(folder / name)))


def _render(run: Run) -> dict[str, bytes]:
    from canaryproof.reports.folder import render

    # Numbers that no run produces make matplotlib warn.
    with warnings.catch_warnings(action="ignore"):
        return render(run)


def _damaged(run: Run) -> str:
    """Name the first result whose evidence cannot be reported even by itself."""
    for i, result in enumerate(run.results):
        try:
            _render(replace(run, results=(result,)))
        except Exception:
            return f"results[{i}].evidence"
    return "results"
