"""Command ``canaryproof model-card``: an audit's part of a model card."""

from pathlib import Path

import click

from canaryproof.verify.audit.cli.options import FilePath


@click.command("model-card")
@click.argument("file", type=FilePath())
def model_card_command(file: Path) -> None:
    """Write an audit's part of a model card.

    FILE is a report of the audit in any form. The section of Markdown on stdout has a row for each fact, with what is
    not known of it. It repeats the report, and check-report tells whether that is true. It claims no conformity with
    any guideline.
    """
    # Loads compiled kernels.
    from canaryproof.verify.audit.answer.model_card import model_card

    click.echo(model_card(file), nl=False)
