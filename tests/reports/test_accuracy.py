import json
import math
from dataclasses import replace

import pytest

from canaryproof.reports import accuracy
from canaryproof.reports.html import tables
from canaryproof.reports.pages import render
from canaryproof.verify.audit.markup.figures import description
from canaryproof.verify.papers.check.results import Check, Context, Effort, Run, perform
from canaryproof.verify.papers.records.output_files import write_files
from canaryproof.verify.papers.suites import numerics
from tests.reports.made_up import claim

CONTEXT = Context(Effort.QUICK, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    names = (
        "numerics.null-cosine.pdf",
        "numerics.enclosures.gaussian-mechanism",
        "numerics.comparison.two-gaussians.epsilon",
    )
    checks: list[Check] = [check for check in numerics.CHECKS if check.id in names]
    run = Run("0", Effort.QUICK, 0, tuple(perform("numerics", check, CONTEXT) for check in checks))
    path = tmp_path_factory.mktemp("run")
    write_files(render(run), path)
    return path


def test_the_page_shows_each_table_and_the_picture(folder):
    page = (folder / "accuracy.md").read_text()
    assert "| `null-cosine.pdf` |" in page
    assert "| `two-gaussians.epsilon` |" in page
    assert "| `gaussian-mechanism` |" in page
    assert "(accuracy.svg)" in page
    assert (folder / "accuracy.svg").read_text().startswith("<svg ")


def test_numbers_of_the_page_are_those_of_the_results(folder):
    page = (folder / "accuracy.md").read_text()
    results = {row["id"]: row["evidence"] for row in json.loads((folder / "results.json").read_text())["results"]}
    worst = results["numerics.comparison.two-gaussians.epsilon"]["worst"]
    assert f"| {worst['canaryproof']:.3g} | {worst['plain formula']:.3g} |" in page
    assert f"| {results['numerics.null-cosine.pdf']['whole']['ulps']:.2f} |" in page


def test_no_result_at_all_is_said_and_drawn(tmp_path):
    sweep = next(sweep for sweep in numerics.SWEEPS if sweep.title.startswith("ε at δ = 1e-6, distance"))
    fails = replace(sweep, methods={**sweep.methods, "plain formula": lambda *_: 1.0 / 0.0})
    known = next(check for check in numerics.CHECKS if check.id == "numerics.comparison.two-gaussians.epsilon")
    check = replace(known, judge=lambda context: numerics.judge_sweep(fails, context))
    write_files(render(Run("0", Effort.QUICK, 0, (perform("numerics", check, CONTEXT),))), tmp_path)
    assert "| no result |" in (tmp_path / "accuracy.md").read_text()


def test_each_column_has_its_own_number():
    """Real errors leave some columns alike, such as the two of enclosures that are all right."""
    worst = {"judged": 1000, "ulps": 1.5, "budget": 8.0, "share_of_budget": 0.1875, "arguments": {"x": 2.0}}
    worst |= {"value": 1.0, "enclosure": [1.0, 1.25]}
    whole = {"judged": 30, "ulps": 48.0, "budget": 64.0, "share_of_budget": 0.75, "arguments": {"y": 3.0}}
    whole |= {"value": 2.0, "enclosure": [2.0, 2.5]}
    enclosed = {"compared": 70, "undecided": 1, "missed": ["a", "b"], "wide": 5, "digits": 60}
    results = (
        claim("numerics.norm.above", practice={**worst, "proven": 3.25}, whole=whole),
        claim("numerics.enclosures.norm", **enclosed),
        claim(
            "numerics.comparison.norm.above",
            title="a norm",
            axis="d",
            points=[1.0, 100.0],
            ulps={"canaryproof": [0.5, 2.0], "scipy": [4.0, 3.0]},
            worst={"canaryproof": 2.0, "scipy": 4.0},
        ),
    )
    page = accuracy.text(Run("0", Effort.QUICK, 0, results))
    words = "of 1 functions is 1.5 ulps in practice and 48 anywhere, at most 75% of the budget of each"
    assert words in page
    assert "Of the 1 budgets in practice 1 are proven" in page
    searched, compared, twins = (rows for _, rows in tables(page))
    assert searched == (("norm.above", "1,030", "proven: 3.25", "1.50", "48.00", "75%", "y = 3", "[2.0, 2.5]"),)
    assert compared == (("norm.above", "a norm", "d from 1 to 100", "2", "4"),)
    assert twins == (("norm", "70", "2", "5"),)


def sweep(name, title, ulps, points=(1.0, 10.0, 100.0)):
    worst = {method: max(found) for method, found in ulps.items()}
    return claim(f"numerics.comparison.{name}", title=title, axis="d", points=list(points), ulps=ulps, worst=worst)


def test_the_picture_has_each_methods_errors_between_its_edges():
    found = {"canaryproof": [0.0, 0.5, 12.0], "scipy": [0.05, 1e5, math.inf], "another": [1.0, 1.0, 1.0]}
    run = Run(
        "0", Effort.QUICK, 0, (sweep("a", "first", found), sweep("b", "second", {"canaryproof": [1.0, 2.0, 3.0]}))
    )
    figure = accuracy.PAGE.figures(run)["accuracy.svg"]
    first, second = figure.axes
    drawn = {(line.get_color(), line.get_marker()): line.get_xydata().tolist() for line in first.get_lines()}
    colours = {name: accuracy._METHODS[name] for name in ("canaryproof", "scipy")}
    # Exact results stand at the lower edge, and what is none at the upper one.
    assert drawn[colours["canaryproof"]] == [[1, 0.1], [10, 0.5], [100, 12]]
    assert drawn[colours["scipy"]] == [[1, 0.1], [10, 1e5], [100, 1e16]]
    for axis in figure.axes:
        (budget,) = (line for line in axis.get_lines() if line.get_marker() == "None")
        assert list(budget.get_ydata()) == [8.0, 8.0]
        assert axis.get_ylim() == (0.1, 1e16)
        assert axis.get_xscale() == axis.get_yscale() == "log"
        ticks = zip(axis.get_yticks(), (text.get_text() for text in axis.get_yticklabels()), strict=True)
        assert [(value, words) for value, words in ticks if words] == [
            (0.1, "exact"), (1e4, "10⁴"), (1e8, "10⁸"), (pytest.approx(1e12), "10¹²"), (1e16, "none"),
        ]  # fmt: skip
    assert len(second.get_lines()) == 2
    assert description(figure) == (
        "2 panels. a first: d, error, ulps; b second: d, error, ulps. Drawn: scipy, canaryproof, budget: 8 ulps."
    )


def test_panels_of_functions_have_their_room():
    def size(count):
        run = Run("0", Effort.QUICK, 0, tuple(sweep(f"{i}", "t", {"scipy": [1.0, 2.0, 3.0]}) for i in range(count)))
        return tuple(accuracy.PAGE.figures(run)["accuracy.svg"].get_size_inches())

    sizes = [size(count) for count in (1, 2, 3)]
    assert sizes[0] == sizes[1]
    assert 6.0 < sizes[0][0] == sizes[2][0] < 10.0
    # Two in a row; a legend is above all.
    row = sizes[2][1] - sizes[1][1]
    assert 2.0 < row < 3.0
    assert 0.3 < sizes[1][1] - row < 1.0


def test_results_lead_to_the_picture_of_comparisons():
    one = sweep("a", "first", {"canaryproof": [1.0, 2.0, 3.0]})
    assert accuracy.PAGE.picture_of(one) == "accuracy.svg"
    assert accuracy.PAGE.picture_of(claim("numerics.norm")) == ""
    assert accuracy.PAGE.figures(Run("0", Effort.QUICK, 0, ())) == {}


def test_the_worst_of_several_functions_is_said_and_what_is_searched_alone_is_not_proven():
    """Largest errors, in practice and anywhere, and of their budget, are of three functions."""

    def searched(name, practice, whole, share, proven):
        rest = {"judged": 10, "arguments": {"x": 1.0}, "value": 1.0, "enclosure": [1.0, 1.0]}
        return claim(
            f"numerics.{name}",
            practice={**rest, "ulps": practice, "budget": 8.0, "share_of_budget": practice / 8.0, "proven": proven},
            whole={**rest, "ulps": whole, "budget": 64.0, "share_of_budget": share},
        )

    results = (
        searched("a.f", 6.0, 7.0, 0.1, None),
        searched("b.f", 1.0, 60.0, 0.9375, 4.5),
        searched("c.f", 2.0, 3.0, 0.99, 5.5),
        sweep("a", "first", {"canaryproof": [1.0, 2.0, math.inf], "scipy": [1.0, 2.0, 3.0]}),
        sweep("b", "second", {"scipy": [1.0, 2.0, 3.5]}),
    )
    page = accuracy.text(Run("0", Effort.QUICK, 0, results))
    assert "of 3 functions is 6 ulps in practice and 60 anywhere, at most 99% of the budget of each." in page
    assert "Of the 3 budgets in practice 2 are proven" in page
    kinds, compared, _ = (rows for _, rows in tables(page))
    assert [row[2] for row in kinds] == ["searched", "proven: 4.50", "proven: 5.50"]
    # The first has 6 of 8 ulps in practice, which is more than anywhere.
    assert [row[5] for row in kinds] == ["75%", "94%", "99%"]
    assert [row[3:] for row in compared] == [("no result", "3"), ("", "3.5")]
