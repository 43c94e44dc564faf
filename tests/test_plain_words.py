"""README, site, help, docstrings and comments use no word that only this project understands."""

from pathlib import Path

import click
import pytest

from canaryproof.verify.command_line import main
from tests.plain_words import FRAGMENT, PRIVATE, comments, docstrings, sentences

ROOT = Path(__file__).parents[1]
WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [
    path for room in ("kernels", "proofs_check", "verify", "reports") for path in sorted((ROOT / room).rglob("*.py"))
]


def test_words_are_those_of_the_field():
    texts = {str(page.relative_to(ROOT)): " ".join(sentences(page.read_text(encoding="utf-8"))) for page in WRITTEN}
    assert {page: words for page, text in texts.items() if (words := PRIVATE.findall(text))} == {}


def test_docstrings_and_comments_use_plain_words():
    wrong = []
    for path in CODE:
        code = path.read_text(encoding="utf-8")
        for line, text in (*docstrings(code), *comments(code)):
            if PRIVATE.search(" ".join(sentences(text))) or FRAGMENT.match(text):
                wrong.append((str(path.relative_to(ROOT)), line, text))
    assert wrong == []


def commands(group):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield from commands(command) if isinstance(command, click.Group) else [command]


@pytest.mark.parametrize("command", list(commands(main)), ids=lambda command: command.name)
def test_help_has_no_private_words(command):
    options = (parameter.help for parameter in command.params if isinstance(parameter, click.Option))
    assert PRIVATE.findall(" ".join(filter(None, [command.help, command.epilog, *options]))) == []


def test_reads_the_sentences_of_a_page():
    page = (
        "# A title\n\nOne two three. Four five\nsix!\n\n- seven eight\n- nine [ten](x)\n\n| a | b |\n\n```sh\nno\n```\n"
    )
    assert sentences(page) == ["One two three.", "Four five six!", "seven eight", "nine ten"]


def test_reads_docstrings_and_comments():
    code = "\n".join(
        [
            "def f():",
            '    """Return one.',
            "",
            "    Parameters",
            "    ----------",
            "    x",
            "        What it is.",
            '    """',
            "    # A reason",
            "    # in two lines.",
            "    x = 1  # the end",
            "    # type: ignore",
            "    # Another.",
        ]
    )
    assert list(docstrings(code)) == [(2, "Return one.\n")]
    assert list(comments(code)) == [(9, "A reason in two lines."), (11, "the end"), (13, "Another.")]
