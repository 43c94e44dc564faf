"""Command ``canaryproof model-card``: an audit's part of a model card."""

import shlex
import sys
from pathlib import Path

import click

from canaryproof.verify.audit.cli.options import FilePath


@click.command("model-card")
@click.argument("file", type=FilePath())
def model_card_command(file: Path) -> None:
    """Write an audit's part of a model card.

    FILE is a report of the audit in any form. The section of Markdown on stdout has a row for each fact, with what is
    not known of it. It repeats the report, and check-report tells whether that is true. It claims no conformity with
    any guideline. A terminal shows the facts alone; send the output to a file to get the section.
    """
    # Loads compiled kernels.
    from canaryproof.verify.audit.answer.model_card import model_card, outline

    if not sys.stdout.isatty():
        click.echo(model_card(file), nl=False)
        return
    card = f"canaryproof model-card {shlex.quote(str(file))} > card.md"
    click.echo(f"{outline(file)}\n\nThe section of Markdown, with what is not known of each fact:\n  {card}")
