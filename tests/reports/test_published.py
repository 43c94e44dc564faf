"""What the repository shows is what the current code finds: the table of expected verdicts is the measure."""

import csv
import json
import re
from pathlib import Path

import pytest

from canaryproof.verify.check.results import Subject
from canaryproof.verify.suites.catalogue import SUITES

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "reports" / "published"
DOCUMENTS = {
    row["id"]: row["verdict"]
    for row in csv.DictReader((ROOT / "verify/engine/expected_verdicts.csv").read_text(encoding="utf-8").splitlines())
}
OURS = {check.id for suite in SUITES for check in SUITES[suite] if check.subject is Subject.IMPLEMENTATION}
RESULTS = {row["id"]: row for row in json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8"))["results"]}
MAKE = "`make published` judges everything anew, at the full level"


def test_published_verdicts_are_the_expected_ones():
    verdicts = {name: row["verdict"] for name, row in RESULTS.items() if row["subject"] == "document"}
    assert verdicts == DOCUMENTS, MAKE


def test_published_checks_are_those_of_the_code():
    assert {name for name, row in RESULTS.items() if row["subject"] == "implementation"} == OURS, MAKE


@pytest.mark.parametrize("page", ["README.md", "reports/published/summary.md"])
def test_numbers_of_own_checks_are_those_of_the_code(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    quoted = re.findall(r"(\d+) of (\d+)\s+(?:of this package's\s+)?own checks", text)
    assert quoted, "the page quotes no number of own checks"
    assert set(quoted) == {(str(len(OURS)), str(len(OURS)))}


# Words of letters: formulas, numbers and names of code are none. What has many of these is limited by its blanks.
_WORD = re.compile(r"[^\W\d_]{2,}(?:[-'’][^\W\d_]+)*")
_MOST_WORDS, _MOST_PARTS = 40, 80


def _too_long(text):
    plain = re.sub(r"`[^`]*`", "", text)
    return len(_WORD.findall(plain)) > _MOST_WORDS or len(text.split()) > _MOST_PARTS


def test_statements_are_short():
    checks = [check for suite in SUITES for check in SUITES[suite]]
    assert not [check.id for check in checks if _too_long(check.statement)]


def test_published_findings_are_short():
    assert not [name for name, row in RESULTS.items() if _too_long(row["finding"])]


def test_published_pages_name_the_version_and_the_code():
    environment = json.loads((PUBLISHED / "environment.json").read_text(encoding="utf-8"))
    assert {"version", "source code", "command"} <= environment.keys()


def test_results_that_pages_show_are_published():
    text = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    shown = [name for block in re.findall(r"<!-- written: results (.*?) -->", text) for name in block.split()]
    assert shown
    assert set(shown) <= RESULTS.keys()


def test_quoted_numbers_of_the_benchmark_are_published():
    """Each mean with its deviation is one of the page, in fewer digits."""
    text = (ROOT / "docs/how/benchmark.md").read_text(encoding="utf-8")
    table = text[text.index("| method |") : text.index("\n\n- ")]
    page = (PUBLISHED / "canife.md").read_text(encoding="utf-8")
    pair = re.compile(r"([\d.]+) ± ([\d.]+)")
    published = [tuple(map(float, found)) for found in pair.findall(page)]
    quoted = pair.findall(table)
    assert len(quoted) > 8
    for numbers in quoted:
        digits = [len(number.partition(".")[2]) for number in numbers]
        rounded = {tuple(round(n, d) for n, d in zip(found, digits, strict=True)) for found in published}
        assert tuple(map(float, numbers)) in rounded, numbers
