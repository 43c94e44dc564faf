from dataclasses import replace
from xml.etree import ElementTree

import pytest

from canaryproof.reports import pitfalls
from canaryproof.reports.pages import render
from canaryproof.verify.check.evidence import NominalCoverage, records


@pytest.fixture(scope="module")
def run(quick_run):
    return replace(quick_run.run, results=tuple(r for r in quick_run.run.results if r.suite == "bounds"))


@pytest.fixture(scope="module")
def page(run):
    return pitfalls.text(run)


def test_the_folder_has_the_page_and_the_picture(quick_run, page):
    folder = quick_run.folder
    assert ElementTree.parse(folder / "coverage.svg").getroot().tag.endswith("svg")
    assert (folder / "pitfalls.md").read_text() == page
    assert "(coverage.svg)" in page
    summary = (folder / "summary.md").read_text()
    assert "[pitfalls.md](pitfalls.md)" in summary
    assert "](coverage.svg)" in summary


def test_all_sections_are_there_with_their_remedies(page):
    titles = [line for line in page.splitlines() if line.startswith("## ")]
    assert len(titles) == 8
    assert page.count("*Here:*") == 8


def test_numbers_are_those_of_the_run(run, page):
    cells = {r.id: r.evidence for r in run.results}["v1.section5.limit"]["cells"]
    (row,) = (
        r for r in cells
        if (r["mechanism"], r["null"], r["count"], r["epsilon"], r["delta"]) == ("Gaussian", "exact", 1000, 0.0, 1e-6)
    )  # fmt: skip
    low, high = row["interval"]
    assert f"| Gaussian | exact | 1,000 | 0 | {row['rate']:.1%} [{low:.1%}, {high:.1%}] |" in page
    assert row["rate"] > 0.5


def test_every_row_has_as_many_cells_as_its_header(page):
    header = 0
    for line in page.splitlines():
        cells = line.count("|") if line.startswith("|") else 0
        assert cells == header or not cells or not header
        header = cells


def test_what_was_not_measured_is_left_out(run):
    one = replace(run, results=tuple(r for r in run.results if r.id == "bounds.gaussian-elsewhere"))
    page = pitfalls.text(one)
    assert page.count("## ") == 1
    assert "svg" not in page
    assert "pitfalls.md" in render(one)
    assert "coverage.svg" not in render(one)


def test_the_picture_has_a_panel_a_method_and_every_rate(run):
    rows = records(run, NominalCoverage)["bounds.nominal"].levels
    drawn = pitfalls.picture(rows)
    panels = [axis for axis in drawn.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in panels] == list(dict.fromkeys(row.method for row in rows))
    for axis in panels:
        method = axis.get_title(loc="left")
        shown = sorted(y for line in axis.lines[1:] for y in line.get_ydata())
        assert shown == sorted(max(row.rate, pitfalls._LEAST) for row in rows if row.method == method)
        # The first line is what is promised.
        assert list(axis.lines[0].get_xdata()) == list(axis.lines[0].get_ydata())
