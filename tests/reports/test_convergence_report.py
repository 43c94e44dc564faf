"""The page of a convergence report: the answer first, every number of the record, and nothing to fetch."""

import json
import re

import pytest

from canaryproof.reports import convergence_report
from canaryproof.reports.html import tables
from canaryproof.verify.papers.convergence.report import convergence


@pytest.fixture(scope="module")
def report():
    return convergence(1e4, 20, epsilon=(3.0, 10.0), estimator=("pinned", "fitted"), replicates=100)


@pytest.fixture(scope="module")
def files(report):
    return {name: contents.decode() for name, contents in convergence_report.files(report).items()}


def test_the_files_are_those_that_a_folder_is_kept_free_for(files):
    assert sorted(files) == sorted(convergence_report.FILES)


def test_the_answer_is_first(report, files):
    assert files["convergence_report.md"].split("\n\n")[1] == report.answer()
    body = files["convergence_report.html"].partition("</h1>")[2]
    assert body.strip().startswith(f"<p>{report.answer()}</p>")


def test_every_table_of_the_text_is_on_the_page(report, files):
    cells = {cell for header, rows in tables(files["convergence_report.md"]) for row in [header, *rows] for cell in row}
    for setting in report.settings:
        for errors in setting.estimators:
            assert errors.estimator in cells
    for row in report.orders:
        assert row.title in cells
        assert f"## Points: {row.title}" in files["convergence_report.md"]


def test_the_page_fetches_nothing_and_shows_its_pictures(files):
    page = files["convergence_report.html"]
    assert page.count("<svg") == 2
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?!#)", page)
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_json_and_csv_have_the_numbers(report, files):
    document = json.loads(files["convergence_report.json"])
    assert document["answer"] == report.answer()
    assert document["settings"][1]["epsilon"] == 10.0
    lines = files["convergence_report.csv"].splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("dim,canaries,epsilon,noise_multiplier,delta,")


def test_equal_reports_give_equal_bytes(report, files):
    again = convergence_report.files(report)
    assert {name: contents.decode() for name, contents in again.items()} == files
