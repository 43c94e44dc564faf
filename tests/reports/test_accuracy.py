import json
from dataclasses import replace

import pytest

from canaryproof.reports import accuracy
from canaryproof.reports.html import tables
from canaryproof.reports.pages import render
from canaryproof.verify.check.results import Check, Context, Level, Run, perform
from canaryproof.verify.files.writing import write_files
from canaryproof.verify.suites import numerics
from tests.reports.made_up import claim

CONTEXT = Context(Level.QUICK, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    names = (
        "numerics.null-cosine.pdf",
        "numerics.enclosures.gaussian-mechanism",
        "numerics.comparison.two-gaussians.epsilon",
    )
    checks: list[Check] = [check for check in numerics.CHECKS if check.id in names]
    run = Run("0", Level.QUICK, 0, tuple(perform("numerics", check, CONTEXT) for check in checks))
    path = tmp_path_factory.mktemp("run")
    write_files(render(run), path)
    return path


def test_the_page_shows_each_table_and_the_picture(folder):
    page = (folder / "accuracy.md").read_text()
    assert "| `null-cosine.pdf` |" in page
    assert "| `two-gaussians.epsilon` |" in page
    assert "| `gaussian-mechanism` |" in page
    assert "(accuracy.svg)" in page
    assert (folder / "accuracy.svg").read_text().startswith("<?xml")


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
    write_files(render(Run("0", Level.QUICK, 0, (perform("numerics", check, CONTEXT),))), tmp_path)
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
    page = accuracy.text(Run("0", Level.QUICK, 0, results))
    words = "of 1 functions is 1.5 ulps in practice and 48 anywhere, at most 75% of the budget of each"
    assert words in page
    assert "Of the 1 budgets in practice 1 are proven" in page
    searched, compared, twins = (rows for _, rows in tables(page))
    assert searched == (("norm.above", "1,030", "proven: 3.25", "1.50", "48.00", "75%", "y = 3", "[2.0, 2.5]"),)
    assert compared == (("norm.above", "a norm", "d from 1 to 100", "2", "4"),)
    assert twins == (("norm", "70", "2", "5"),)
