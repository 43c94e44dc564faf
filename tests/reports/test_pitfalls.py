from dataclasses import replace
from xml.etree import ElementTree

import pytest

from canaryproof.reports import pitfalls
from canaryproof.reports.html import tables
from canaryproof.reports.pages import render
from canaryproof.verify.check.evidence import NominalCoverage, records
from canaryproof.verify.check.results import Level, Run
from tests.reports.made_up import claim


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


def measured(method="band", mechanism="Gaussian", above=7, mean=0.5, **where):
    setting = {"epsilon": 1.0, "count": 1000, "null": "exact", "delta": 1e-6, "truth": 1.25, "runs": 100, **where}
    found = {"above": above, "rate": above / 100, "interval": [0.0, 0.5], "mean": mean, "deficit": 0.0}
    return {"method": method, "mechanism": mechanism, **setting, **found}


def coverage(name, *cells):
    result = claim(name, suite="bounds", alpha=0.05, level=1e-6, visible=0.1, cells=list(cells))
    return replace(result, id=name)


def test_each_table_has_its_own_rows_and_no_others():
    printed = coverage(
        "v1.section5.limit",
        measured(above=90),
        *(measured(above=1, **other) for other in ({"count": 100}, {"delta": 1e-5})),
        measured(mechanism="randomised response", above=8, epsilon=0.0),
        measured(mechanism="randomised response", above=2, epsilon=3.0),
        measured(mechanism="Laplace", above=3),
    )
    training = {"mechanism": "momentum: all rounds", "delta": 1e-5}
    dependent = coverage(
        "bounds.dependent-cosines",
        measured(above=11),
        measured("one-run", above=12),
        measured("band", above=13, mean=2.0, **training),
        measured("normal-scores", above=14, mean=1.0, **training),
    )
    page = pitfalls.text(Run("0", Level.QUICK, 0, (printed, dependent)))
    # Of six settings the first alone is above 5% by more than chance: 90 of 100.
    assert "in more than 5% of audits: 1 of 6 for `andrew`, as printed." in page
    assert [rows for _, rows in tables(page)] == [
        (("Gaussian", "exact", "1,000", "1", "90.0% [0.0%, 50.0%]"),),
        (("randomised response", "exact", "1,000", "0", "8.0% [0.0%, 50.0%]"),),
        (("band", "1,000", "1", "100", "11.0% [0.0%, 50.0%]"),),
        (("momentum", "all rounds", "1.25", "band: 2", "100", "14.0% [0.0%, 50.0%]"),),
    ]


def test_means_and_caps_stand_under_their_methods():
    means = {"mechanism": "Gaussian", "epsilon": 3.0, "count": 1000, "null": "exact", "delta": 1e-6}
    means |= {"by_method": {"band": 1.5, "one-run": 0.25}, "errors": {"band": 0.1, "one-run": 0.1}}
    caps = {"method": "band", "100": 1.0, "1000": 2.0, "10000": 4.0}
    evidence = {"level": 1e-6, "means": [means, means | {"count": 100}], "caps": [caps]}
    evidence |= {"shares": {"band": 1.0}, "leads": {"band": 0.0}, "errors": {"band": 0.1}}
    result = replace(claim("default", suite="bounds", **evidence), id="bounds.default")
    cost, cap = tables(pitfalls.text(Run("0", Level.QUICK, 0, (result,))))
    assert cost == (("null", "ε", "band", "one-run"), (("exact", "3", "1.5", "0.25"),))
    assert cap == (("bound", "k = 100", "k = 1,000", "k = 10,000"), (("band", "1.00", "2.00", "4.00"),))
