"""Command ``canaryproof convergence``: how far Algorithm 1 is from its limits at one's own d, k and ε."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from canaryproof.verify.audit.cli.options import INTERRUPTED, FilePath, overwrite_option
from canaryproof.verify.audit.cli.progress import progress
from canaryproof.verify.audit.files.errors import InputError, OutputError
from canaryproof.verify.papers.records.output_files import check_files, write_files

if TYPE_CHECKING:
    from canaryproof.verify.papers.records.convergence_report import ConvergenceReport

_ESTIMATORS = ("adaptive", "fitted", "pinned", "threshold")
_RUN = "convergence_report.sqlite"


@click.command("convergence")
@click.option("--dim", type=float, multiple=True, metavar="D", help="Dimension of the release; 1e6 by default.")
@click.option("--canaries", type=float, multiple=True, metavar="K", help="Number of canaries; 1000 by default.")
@click.option("--epsilon", type=float, multiple=True, help="Epsilon of the mechanism; 1, 3 and 10 by default.")
@click.option("--noise-multiplier", type=float, multiple=True, help="Its noise multiplier, instead of epsilon.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="Target delta.")
@click.option(
    "--estimator",
    type=click.Choice(_ESTIMATORS),
    multiple=True,
    help="Estimator of epsilon; all by default. The answer is about the first.",
)
@click.option("--replicates", type=float, default=2000, show_default=True, help="Runs that are drawn for each D and K.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all randomness.")
@click.option("--out", type=FilePath(file_okay=False), help="Folder for the page, its tables and its pictures.")
@click.option("--resume", is_flag=True, help="Go on with the report in --out that was stopped, given the same options.")
@overwrite_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def convergence_command(
    dim: tuple[float, ...],
    canaries: tuple[float, ...],
    epsilon: tuple[float, ...],
    noise_multiplier: tuple[float, ...],
    delta: float,
    estimator: tuple[str, ...],
    replicates: float,
    seed: int,
    out: Path | None,
    resume: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Report how accurate the estimate is at your d and k, and how fast it converges.

    The answer says how close to epsilon 95 of 100 runs are, whether the dimension or the number of canaries limits the
    accuracy, and how many canaries would bring it within 5%. The tables have that number for 20 and 10% too, the error
    and the coverage of each estimator, how far cosines are from normal and how much they depend on each other, and how
    fast all of this converges, next to what the theorems say.

    D, K, epsilon and the noise multiplier may be given several times. By default they are those of Table 2 of the
    paper (arXiv:2302.03098), which takes about 20 seconds.

    With --out, the folder gets a page with pictures, and the numbers as CSV and JSON. Each part is kept as soon as it
    is made, so that --resume can go on with an interrupted report.
    """
    if resume and out is None:
        raise InputError("--resume: needs --out, the folder of the report to go on with")
    # Loads compiled kernels and SymPy, which a mistake in the options does not wait for.
    from canaryproof.verify.papers.convergence.report import COUNT, DIM, checked_request, make_report, run_file

    try:
        request = checked_request(
            dim or DIM,
            canaries or COUNT,
            epsilon or None,
            noise_multiplier or None,
            delta,
            estimator or _ESTIMATORS,
            replicates,
            seed,
        )
    except ValueError as error:
        name, _, rule = str(error).partition(":")
        raise InputError(f"--{name.replace('_', '-')}:{rule}") from error
    path = None if out is None else _prepare(out) / _RUN
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    with (
        run_file(request, path, command=command, resume=resume, overwrite=overwrite) as file,
        progress("canaryproof convergence", equal_parts=False) as advance,
    ):
        try:
            report = make_report(request, file, advance)
        except KeyboardInterrupt:
            if out is None:
                raise
            click.echo("Interrupted; the same command with --resume goes on.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
    document = json.dumps(report.to_json(), ensure_ascii=False, indent=1, allow_nan=False) if as_json else str(report)
    click.echo(document)
    if out is not None:
        _write(report, out)


def _prepare(folder: Path) -> Path:
    """Make a folder: minutes of drawing are not to be lost to one that cannot be written to."""
    # Loads matplotlib.
    from canaryproof.reports import convergence_report

    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_files(convergence_report.FILES, folder)
    except OSError as error:
        raise InputError(f"--out: {error.filename or folder}: {error.strerror or error}") from None
    return folder


def _write(report: "ConvergenceReport", folder: Path) -> None:
    from canaryproof.reports import convergence_report

    try:
        write_files(convergence_report.files(report), folder)
    except OSError as error:
        raise OutputError(f"{error.filename or folder}: {error.strerror or error}") from error
