"""README and site are in plain words: sentences are short."""

import re
from pathlib import Path

import click
import pytest

from canaryproof.verify.cli.command_line import main
from tests.plain_words import longest, sentences

ROOT = Path(__file__).parents[1]
WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [*WRITTEN, ROOT / "CHANGELOG.md", *sorted((ROOT / "proofs_check").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page):
    mean, most, sentence = longest(page.read_text(encoding="utf-8"))
    # Formulas make a proof's sentences longer; the average is that of the site.
    assert mean <= (18.0 if page in WRITTEN else 20.0)
    assert most <= 40, sentence


def test_the_average_is_short():
    assert longest("\n\n".join(page.read_text(encoding="utf-8") for page in PAGES))[0] <= 18.0


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_words_are_those_of_the_field(page):
    text = " ".join(sentences(page.read_text(encoding="utf-8")))
    assert re.findall(r"\b(?:beside|foretold|ours|road|told)\b", text) == []


def commands(group):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield from commands(command) if isinstance(command, click.Group) else [command]


@pytest.mark.parametrize("command", list(commands(main)), ids=lambda command: command.name)
def test_help_is_in_short_sentences(command):
    options = (parameter.help for parameter in command.params if isinstance(parameter, click.Option))
    mean, most, sentence = longest("\n\n".join(filter(None, [command.help, command.epilog, *options])))
    assert mean <= 18.0
    assert most <= 40, sentence


def test_counts_words():
    page = (
        "# A title\n\nOne two three. Four five\nsix!\n\n- seven eight\n- nine [ten](x)\n\n| a | b |\n\n```sh\nno\n```\n"
    )
    assert longest(page) == (2.5, 3, "One two three.")
