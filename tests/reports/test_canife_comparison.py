"""The page of CANIFE against random canaries: the answer first, the table's numbers, and nothing to fetch."""

import json
import re

import pytest

from canaryproof.reports import canife_comparison
from canaryproof.reports.html import tables
from canaryproof.verify.papers.comparison.canife_laws import benchmark_canife


@pytest.fixture(scope="module")
def found():
    return benchmark_canife(1e4, 50, epsilon=3.0, rounds=1)


@pytest.fixture(scope="module")
def files(found):
    return {name: contents.decode() for name, contents in canife_comparison.files(found).items()}


def test_the_files_are_those_that_a_folder_is_kept_free_for(files):
    assert sorted(files) == sorted(canife_comparison.FILES)


def test_the_answer_is_first_and_all_methods_follow(found, files):
    assert files["canife_comparison.md"].split("\n\n")[1] == found.answer()
    body = files["canife_comparison.html"].partition("</h1>")[2]
    assert body.strip().startswith(f"<p>{found.answer()}</p>")
    ((_, rows),) = tables(files["canife_comparison.md"])
    assert [list(row[:2]) for row in rows] == [[each.budget, each.name] for each in found.outcomes]


def test_the_page_fetches_nothing_and_shows_its_picture(files):
    page = files["canife_comparison.html"]
    assert page.count("<svg") == 1
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?!#)", page)


def test_json_and_csv_have_the_numbers(found, files):
    document = json.loads(files["canife_comparison.json"])
    assert document["outcomes"][0]["epsilon"] == found.outcomes[0].epsilon
    assert len(files["canife_comparison.csv"].splitlines()) == 1 + len(found.outcomes)
