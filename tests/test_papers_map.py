"""The map of the papers leads somewhere: its elements are those of the ledger, its files and commands exist."""

import re
import shlex
from pathlib import Path

import click
import pytest

import canaryproof as cp
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.training import configuration
from tests.written import CURVES, NUMBERED, elements_of

ROOT = Path(__file__).parents[1]
MAP = (ROOT / "docs" / "reference" / "papers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("place", "elements"),
    [
        ("Section 3.1, Theorem 3.2", {("Theorem", "3.2")}),
        ("Appendix A, Lemma A.1 and its proof", {("Appendix", "A"), ("Lemma", "A.1")}),
        ("captions of Tables 3 and 4", {("Table", "3"), ("Table", "4")}),
        ("Figure 7a, Appendix C.4", {("Figure", "7"), ("Appendix", "C.4")}),
        ("Section 2, Equation (1)", {("Equation", "1")}),
        ("Section 5 and footnote 5", set()),
        ("Appendix D, Figure 12", {("Appendix", "D"), ("Figure", "12")}),
    ],
)
def test_a_place_names_its_elements(place, elements):
    assert elements_of(f", {place}") == elements


def test_files_and_commands_exist():
    paths = re.findall(r"`([a-z_]+/[a-z_/0-9]+(?:\.py|/))`", MAP)
    assert len(paths) > 50
    assert [path for path in paths if not (ROOT / path).exists()] == []
    for command in set(re.findall(r"`canaryproof ([^`]+)`", MAP)):
        found, context = main, click.Context(main)
        for word in shlex.split(command):
            if isinstance(found, click.Group):
                found = found.get_command(context, word)
                assert found is not None, command
            elif word.startswith("--"):
                assert any(word in option.opts for option in found.params), command
    for name in re.findall(r"`cp\.(\w+)`", MAP):
        assert hasattr(cp, name)


@pytest.mark.parametrize("document", NUMBERED)
def test_each_numbered_element_of_a_document_is_there(document):
    section = MAP.partition(f"<!-- written: elements {document} -->")[2].partition("<!-- end -->")[0]
    listed = re.findall(rf"^\| ({'|'.join(NUMBERED['final'])}) ([\w.]+) \|", section, re.MULTILINE)
    numbered = {(kind, number) for kind, numbers in NUMBERED[document].items() for number in numbers.split()}
    assert len(listed) == len(numbered)
    assert set(listed) == numbered


def test_canifes_figures_are_curves():
    """All of them but the drawing of the attack, by experiments that come with the package and are published."""
    figures = {figure for numbers in CURVES.values() for figure in numbers.split()}
    assert figures == set(NUMBERED["canife"]["Figure"].split()) - {"2"}
    for name in CURVES:
        assert name in configuration.names()
        assert (ROOT / "reports/published" / name / "canife.svg").exists()
