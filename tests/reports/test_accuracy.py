import json
from dataclasses import replace

import pytest

from canaryproof.reports.pages import render
from canaryproof.verify.check.results import Check, Context, Level, Run, perform
from canaryproof.verify.files.writing import write_files
from canaryproof.verify.suites import numerics

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
