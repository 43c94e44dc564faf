"""The page on Opacus has each cell of a watch, and says about it what the tests of the trainings expect."""

import re
from pathlib import Path

import pytest

from tests.verify.audit.watch.cells import CANNOT_SAY, DECIDED, REFUSED

PAGE = Path(__file__).parents[4] / "docs/how/opacus.md"


def names_of_page(word):
    """Return the kinds of training in a table of the page."""
    table = re.search(rf"^\| {word} \|.*\n\|---\|---\|\n((?:\|.*\n)+)", PAGE.read_text(encoding="utf-8"), re.M)[1]
    return sorted(name.strip() for line in table.splitlines() for name in line.split("|")[1].split(";"))


@pytest.mark.parametrize(("word", "cells"), [("decided", DECIDED), ("cannot say", CANNOT_SAY), ("refused", REFUSED)])
def test_the_page_has_each_cell(word, cells):
    assert names_of_page(word) == sorted(cells)
