"""Command ``canaryproof report``: make the reports of a run anew, without running it again."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from canaryproof.verify.audit.cli.options import FilePath, one_line
from canaryproof.verify.audit.files.errors import InputError, OutputError
from canaryproof.verify.papers.records.output_files import write_files
from canaryproof.verify.papers.records.report_input import CANIFE, RESULTS
from canaryproof.verify.papers.runs.run_folder import read_material

if TYPE_CHECKING:
    from canaryproof.reports.formats import Report
    from canaryproof.verify.papers.records.report_input import Material


@click.command("report")
@click.argument("run", type=FilePath())
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "json", "pdf"]),
    help="Pages in Markdown and report.html by default.",
)
@click.option("--open", "show", is_flag=True, help="Open the report when it is made.")
@click.option("--out", type=FilePath(), help="Folder to write to; RUN by default.")
def report_command(run: Path, form: str | None, show: bool, out: Path | None) -> None:
    """Write the reports of a run anew.

    RUN is a folder that "canaryproof verify --out" left. The reports are made from its results.json, or from run.sqlite
    if the run was interrupted, and nothing is computed again. If "canaryproof benchmark canife --data" left results in
    the same folder, or "canaryproof train --out" in a folder in it, they become chapters of report.html.

    The format md writes Markdown with pictures; begin with summary.md. The format html writes one report.html, and next
    to it the tables as CSV and LaTeX, the pictures as SVG and PNG, a badge, and BibTeX. The format json writes
    results.json and its schema. The format pdf has Chromium print report.html, so Chromium must be installed.
    """
    material = read_material(run)
    try:
        made = _report(material, form)
    except (MemoryError, InputError):
        raise
    except Exception as error:
        # Evidence is free in form, each page reads its own, and a damaged one may raise anything.
        reason = f"there is no field {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        file = f"{run}/{_damaged(material)}"
        raise InputError(f"{file}: is not of the form that the reports read: {reason}") from error
    folder = out or run
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_files(made.files, folder, made.patterns)
    except FileExistsError as error:
        # The file of somebody else, or one in place of the folder.
        raise InputError(f"{error.filename or folder}: {error.strerror or error}") from error
    except OSError as error:
        raise OutputError(f"{error.filename or folder}: {error.strerror or error}") from error
    for name in made.files:
        click.echo(one_line(str(folder / name)))
    if show:
        click.launch(str(folder / made.main))


def _report(material: "Material", form: str | None) -> "Report":
    # matplotlib takes a second to import.
    from canaryproof.reports.formats import Format, report

    # Numbers that no run produces make matplotlib warn.
    with warnings.catch_warnings(action="ignore"):
        try:
            return report(material, None if form is None else Format(form))
        except OSError as error:
            raise InputError(f"--format {form}: {error}") from error


def _damaged(material: "Material") -> str:
    """Name what cannot be reported even by itself."""
    alone = replace(material, canife=None, trainings={})
    nothing = replace(alone, run=replace(material.run, results=()))
    parts = [
        (f"{RESULTS}: results[{i}].evidence", replace(alone, run=replace(alone.run, results=(result,))))
        for i, result in enumerate(alone.run.results)
    ]
    parts += [(CANIFE, replace(nothing, canife=material.canife))] if material.canife is not None else []
    parts += [
        (f"{folder}/{RESULTS}", replace(nothing, trainings={folder: training}))
        for folder, training in material.trainings.items()
    ]
    for name, part in parts:
        try:
            _report(part, None)
        except Exception:
            return name
    return f"{RESULTS}: results"
