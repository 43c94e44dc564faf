"""The map of the papers leads somewhere: its elements are those of the ledger, its files and commands exist."""

import re
import shlex
from pathlib import Path

import click
import pytest

import canaryproof as cp
from canaryproof.verify.command_line import main
from tests.written import elements_of

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


def test_every_kind_of_element_is_there():
    for name in ("Algorithm 3", "Theorem 3.3", "Lemma A.1", "Equation 1", "Table 6", "Figure 4", "Appendix B"):
        assert f"| {name} | " in MAP
