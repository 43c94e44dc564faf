"""The pages have each cell of a watch, and say about it what the tests of the trainings expect."""

import re
from pathlib import Path

import pytest

from tests.verify.audit.watch.cells import CANNOT_SAY, CANNOT_SAY_ELSEWHERE, DECIDED, DECIDED_ELSEWHERE, REFUSED

PAGES = Path(__file__).parents[4] / "docs/how"
TABLES = [
    *(("opacus", word, cells) for word, cells in [("decided", DECIDED), ("cannot say", CANNOT_SAY)]),
    ("opacus", "refused", REFUSED),
    *((page, "decided", cells) for page, cells in DECIDED_ELSEWHERE.items()),
    *((page, "cannot say", cells) for page, cells in CANNOT_SAY_ELSEWHERE.items()),
]


def names_of_page(page, word):
    """Return the kinds of training in a table of a page."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    table = re.search(rf"^\| {word} \|.*\n\|---\|---\|\n((?:\|.*\n)+)", text, re.M)[1]
    return sorted(name.strip() for line in table.splitlines() for name in line.split("|")[1].split(";"))


@pytest.mark.parametrize(("page", "word", "cells"), TABLES)
def test_a_page_has_each_cell(page, word, cells):
    assert names_of_page(page, word) == sorted(cells)
