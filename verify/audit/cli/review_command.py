"""Command ``canaryproof review``: a second opinion on another tool's audit."""

from pathlib import Path
from typing import Any

import click

from canaryproof.verify.audit.cli.options import KIND, FilePath, columns_options
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import ScoreKind


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
    help="Numbers of guesses, or scores, that were tried on the same records; 1 if what decides was declared before.",
)
@click.option("--kind", type=click.Choice([kind.value for kind in ScoreKind]), help=KIND)
@columns_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def review_command(file: Path, as_json: bool, **asked: Any) -> None:
    """Give a second opinion on another tool's audit.

    FILE has scores of both kinds, as "audit" reads them: columns score and member, a line for each canary; or a column
    for each kind, as in and out, train and test, or jax_privacy's in_canary_scores and out_canary_scores; or counts tp,
    fp, fn and tn; or rates fpr and tpr with the numbers of members and others. Scores that are clearly lower for
    members are not judged: negate losses. Or it has counts of guesses: m canaries, r guesses and v right ones, a line
    for each number of guesses that was tried. Or it is memaudit's report, or the output of PrivacyGuard's AnalysisNode.

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
