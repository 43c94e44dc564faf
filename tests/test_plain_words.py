"""README and site are in plain words: sentences are short."""

from pathlib import Path

import click
import pytest

from canaryproof.verify.command_line import main
from tests.plain_words import FRAGMENT, PRIVATE, comments, docstrings, longest, sentences

ROOT = Path(__file__).parents[1]
WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [
    path for room in ("kernels", "proofs_check", "verify", "reports") for path in sorted((ROOT / room).rglob("*.py"))
]
PAGES = [*WRITTEN, ROOT / "CHANGELOG.md", *sorted((ROOT / "proofs_check").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page):
    mean, most, sentence = longest(page.read_text(encoding="utf-8"))
    # Formulas count as words, which makes a proof's sentences longer.
    assert mean <= (18.0 if page in WRITTEN else 20.0)
    assert most <= (30 if page in WRITTEN else 40), sentence


def test_the_average_is_short():
    assert longest("\n\n".join(page.read_text(encoding="utf-8") for page in PAGES))[0] <= 18.0


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_words_are_those_of_the_field(page):
    text = " ".join(sentences(page.read_text(encoding="utf-8")))
    assert PRIVATE.findall(text) == []


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_and_comments_are_in_plain_sentences(path):
    code = path.read_text(encoding="utf-8")
    for line, text in (*docstrings(code), *comments(code)):
        assert PRIVATE.search(" ".join(sentences(text))) is None, (line, text)
        assert FRAGMENT.match(text) is None, (line, text)
        # As in a page of proofs, formulas count as words.
        assert longest(text)[1] <= (40 if "proofs_check" in path.parts else 30), (line, longest(text)[2])


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
    assert most <= 30, sentence


def test_counts_words():
    page = (
        "# A title\n\nOne two three. Four five\nsix!\n\n- seven eight\n- nine [ten](x)\n\n| a | b |\n\n```sh\nno\n```\n"
    )
    assert longest(page) == (2.5, 3, "One two three.")


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
