"""Command ``canaryproof review``: a second opinion on another tool's audit."""

from pathlib import Path
from typing import Any

import click

from canaryproof.verify.audit.cli.options import FilePath
from canaryproof.verify.audit.files.errors import InputError


@click.command("review")
@click.argument("file", type=FilePath())
@click.option("--delta", type=float, help="Delta of the reported epsilon; by default that of FILE.")
@click.option("--epsilon", type=float, help="Reported epsilon; by default that of FILE.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence of the bounds.")
@click.option(
    "--inclusion",
    type=click.Choice(["fixed", "coin", "independent"]),
    default="fixed",
    show_default=True,
    help="Whether the canaries were chosen in advance, each by a fair coin, or are of a training each.",
)
@click.option(
    "--tried",
    type=float,
    help="Numbers of guesses that were tried on the same scores; 1 if the number was declared before.",
)
@click.option("--score", metavar="COLUMN", help="Column of scores, higher for members.")
@click.option("--member", metavar="COLUMN", help="Column with 1 or true for members, else 0 or false.")
@click.option("--id", "id_column", metavar="COLUMN", help="Column of canaries, if one has several lines.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def review_command(file: Path, as_json: bool, **asked: Any) -> None:
    """Give a second opinion on another tool's audit.

    FILE is a .csv or .parquet table, an .npz or a .json document. It has columns score and member, a line for each
    canary; or a column for each kind, as observed and unobserved, in and out, train and test, or jax_privacy's
    in_canary_scores and out_canary_scores. Scores that are lower for members are not judged: negate losses. Or it has
    counts: m canaries, r guesses and v right ones, a line for each number of guesses that was tried. Or it is
    memaudit's report, or the output of PrivacyGuard's AnalysisNode.

    The opinion on the reported epsilon comes first, then bounds with their coverage and caps. Then it says what choices
    on the same scores would have given, and what cannot be seen from what is given.
    """
    # Loads compiled kernels.
    from canaryproof.verify.audit.answer.review import review

    try:
        reviewed = review(file, **asked)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"--{error}") from error
    click.echo(reviewed.to_json() if as_json else str(reviewed))
