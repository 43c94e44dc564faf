import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from scipy import stats

from canaryproof.reports import pitfalls
from canaryproof.reports.html import tables
from canaryproof.reports.pages import render
from canaryproof.verify.audit.markup.figures import BLUE, GREEN, ORANGE
from canaryproof.verify.papers.check.results import Effort, Run
from canaryproof.verify.papers.records.evidence import NominalCoverage, records
from tests.reports.made_up import claim, legend_of


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
    assert len(titles) == 9
    assert page.count("*Here:*") == 9


def test_numbers_are_those_of_the_run(run, page):
    cells = {r.id: r.evidence for r in run.results}["v1.section5.limit"]["cells"]
    (row,) = (
        r for r in cells
        if (r["mechanism"], r["null"], r["count"], r["epsilon"], r["delta"]) == ("Gaussian", "exact", 1000, 0.0, 1e-6)
    )  # fmt: skip
    low, high = stats.binomtest(row["above"], row["runs"]).proportion_ci()
    rate = row["above"] / row["runs"]
    assert f"| Gaussian | exact | 1,000 | 0 | {rate:.1%} [{low:.1%}, {high:.1%}] |" in page
    assert rate > 0.5


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


def share(above, runs=100):
    """A rate with its interval, as the page has them; scipy computes the interval in another way."""
    low, high = stats.binomtest(above, runs).proportion_ci()
    return f"{above / runs:.1%} [{low:.1%}, {high:.1%}]"


def measured(method="band", mechanism="Gaussian", above=7, mean=0.5, **where):
    setting = {"epsilon": 1.0, "count": 1000, "null": "exact", "delta": 1e-6, "truth": 1.25, "runs": 100, **where}
    return {"method": method, "mechanism": mechanism, **setting, "above": above, "mean": mean}


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
    page = pitfalls.text(Run("0", Effort.QUICK, 0, (printed, dependent)))
    # Of six settings the first alone is above 5% by more than chance: 90 of 100.
    assert "in more than 5% of audits: 1 of 6 for `andrew`, as printed." in page
    assert [rows for _, rows in tables(page)] == [
        (("Gaussian", "exact", "1,000", "1", share(90)),),
        (("randomised response", "exact", "1,000", "0", share(8)),),
        (("band", "1,000", "1", "100", share(11)),),
        (("momentum", "all rounds", "1.25", "band: 2", "100", share(14)),),
    ]


def test_means_and_caps_stand_under_their_methods():
    means = {"mechanism": "Gaussian", "epsilon": 3.0, "count": 1000, "null": "exact", "delta": 1e-6}
    means |= {"by_method": {"band": 1.5, "one-run": 0.25}, "errors": {"band": 0.1, "one-run": 0.1}}
    caps = {"method": "band", "100": 1.0, "1000": 2.0, "10000": 4.0}
    evidence = {"level": 1e-6, "means": [means, means | {"count": 100}], "caps": [caps]}
    evidence |= {"shares": {"band": 1.0}, "leads": {"band": 0.0}, "errors": {"band": 0.1}}
    result = replace(claim("default", suite="bounds", **evidence), id="bounds.default")
    cost, cap = tables(pitfalls.text(Run("0", Effort.QUICK, 0, (result,))))
    assert cost == (("null", "ε", "band", "one-run"), (("exact", "3", "1.5", "0.25"),))
    assert cap == (("bound", "k = 100", "k = 1,000", "k = 10,000"), (("band", "1.00", "2.00", "4.00"),))


def test_settings_of_the_picture_differ_by_colour_and_marker():
    def row(epsilon, null, nominal, rate):
        above = round(10_000 * rate)
        return {**measured(epsilon=epsilon, null=null, above=above, runs=10_000), "nominal": nominal}

    rates = {
        (epsilon, null): [(nominal, (i + 1) * nominal / 2.0) for nominal in (0.01, 0.05, 0.1)]
        for i, (epsilon, null) in enumerate((e, n) for e in (3.0, 0.0, 1.0) for n in ("exact", "unobserved"))
    }
    # What never happened is drawn at the lower edge.
    rates[0.0, "exact"][0] = (0.01, 0.0)
    levels = [row(*setting, *point) for setting, found in rates.items() for point in found]
    result = replace(claim("nominal", suite="bounds", level=1e-6, levels=levels), id="bounds.nominal")
    figure = pitfalls.PAGE.figures(Run("0", Effort.QUICK, 0, (result,)))["coverage.svg"]
    (axis,) = (one for one in figure.axes if one.get_visible())
    promised, *lines = axis.get_lines()
    assert promised.get_xydata().tolist() == [[0.01, 0.01], [0.05, 0.05], [0.1, 0.1]]
    drawn = {(line.get_color(), line.get_marker()): line.get_xydata().tolist() for line in lines}
    rates[0.0, "exact"][0] = (0.01, 2e-4)
    assert drawn == {
        (colour, marker): [pytest.approx(point) for point in rates[epsilon, null]]
        for epsilon, colour in ((0.0, BLUE), (1.0, ORANGE), (3.0, GREEN))
        for null, marker in (("exact", "o"), ("unobserved", "^"))
    }
    names = legend_of(figure)
    assert list(names) == [
        "as promised",
        *(f"ε = {epsilon}, {null} null" for epsilon in (0, 1, 3) for null in ("exact", "unobserved")),
    ]
    marks = {name: (mark.get_color(), mark.get_marker()) for name, mark in names.items()}
    assert (marks["ε = 0, exact null"], marks["ε = 3, unobserved null"]) == ((BLUE, "o"), (GREEN, "^"))
    assert axis.get_xscale() == axis.get_yscale() == "log"
    # The edge is within the picture, and so is a rate of 100%.
    assert axis.get_ylim()[0] < 2e-4 < 1.0 < axis.get_ylim()[1] < 1.5
    assert axis.get_yticklabels()[0].get_text() == "0"
    assert list(axis.get_xticks()) == [0.01, 0.05, 0.1]


def test_panels_of_methods_have_their_room():
    def size(count):
        levels = [{**measured(f"method {i}"), "nominal": 0.05} for i in range(count)]
        result = replace(claim("nominal", suite="bounds", level=1e-6, levels=levels), id="bounds.nominal")
        figure = pitfalls.PAGE.figures(Run("0", Effort.QUICK, 0, (result,)))["coverage.svg"]
        return tuple(figure.get_size_inches())

    one, four, five = map(size, (1, 4, 5))
    assert one == four
    assert 7.0 < one[0] == five[0] < 11.0
    # Four in a row.
    row = five[1] - four[1]
    assert 1.8 < row < 3.0
    assert 0.3 < four[1] - row < 1.0


def test_a_share_of_each_delta_and_null_stands_in_its_column():
    cells = [
        measured(above=above, null=null, delta=delta)
        for above, null, delta in ((1, "exact", 1e-6), (2, "unobserved", 1e-6), (3, "exact", 1e-5))
    ]
    page = pitfalls.text(Run("0", Effort.QUICK, 0, (coverage("bounds.printed.andrew-at-one", *cells),)))
    ((header, rows),) = tables(page)
    assert header == ("δ", "exact null", "unobserved scores")
    shown = [share(i) for i in (1, 2, 3)]
    assert rows == (("1e-06", *shown[:2]), ("1e-05", shown[2], "–"))
    # A part of a section without a title of its own.
    assert "## " not in page


def test_each_check_has_its_column_and_a_setting_that_one_lacks_a_dash():
    both = (
        coverage("v1.section5.limit", measured(above=1), measured(above=2, epsilon=3.0)),
        coverage("bounds.coverage.fixed-sequence", measured(above=3, epsilon=3.0), measured(above=4, null="k")),
    )
    (rows,) = (rows for _, rows in tables(pitfalls.text(Run("0", Effort.QUICK, 0, both))))
    shown = [share(i) for i in (1, 2, 3, 4)]
    assert rows == (
        ("Gaussian", "exact", "1,000", "1", shown[0], "–"),
        ("Gaussian", "exact", "1,000", "3", shown[1], shown[2]),
        ("Gaussian", "k", "1,000", "1", "–", shown[3]),
    )


@pytest.mark.parametrize(("above", "count"), [(20, 0), (21, 1)])
def test_a_setting_is_above_if_chance_makes_it_so_at_the_level_split_over_all(above, count):
    # Of 100 audits 20 or more are above at rate 5% with probability 1.5e-7; 21 or more with 3.8e-8.
    tails = [sum(math.comb(100, i) * 0.05**i * 0.95 ** (100 - i) for i in range(k, 101)) for k in (20, 21)]
    assert tails[0] > 1e-7 > tails[1]
    # A level of 1e-6 for ten settings.
    cells = [measured(above=above), *(measured(above=0, count=i) for i in range(9))]
    page = pitfalls.text(Run("0", Effort.QUICK, 0, (coverage("v1.section5.limit", *cells),)))
    assert f"in more than 5% of audits: {count} of 10 for `andrew`, as printed." in page


def test_of_a_training_the_sharpest_and_the_worst_bound_are_shown():
    where = {"mechanism": "momentum: all rounds", "delta": 1e-5}
    cells = [
        measured("band", above=3, mean=1.0, runs=400, **where),
        measured("one-run", above=9, mean=0.5, runs=300, **where),
        measured("fixed-sequence", above=1, mean=1.125, runs=200, truth=2.5, **where),
    ]
    page = pitfalls.text(Run("0", Effort.QUICK, 0, (coverage("bounds.dependent-cosines", *cells),)))
    ((_, rows),) = tables(page)
    assert rows == (("momentum", "all rounds", "2.5", "fixed-sequence: 1.12", "200", share(9, 300)),)
