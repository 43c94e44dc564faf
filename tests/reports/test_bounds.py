from xml.etree import ElementTree

import pytest

from canaryproof.reports import bounds
from canaryproof.reports.figures import svg
from canaryproof.reports.pages import render
from canaryproof.verify.check.results import Level, Result, Run, Subject, Verdict


def cell(shape, count, own, band):
    best = "band" if band > own else "fixed-sequence"
    means = {"fixed-sequence": own, "band": band}
    where = {"shape": shape, "null": "exact", "count": count, "delta": 1e-5, "runs": 9}
    shares = {"best": best, "share": own / max(own, band), "share_error": 0.012}
    return {**where, "means": means, "errors": dict.fromkeys(means, 0.01), **shares, "of_a_curve": {}}


@pytest.fixture
def run():
    cells = [cell("N(1, 1²)", 100, 1.5, 1.2), cell("Cauchy + 2", 100, 0.88, 1.1), cell("Cauchy + 5", 100, 0.0, 0.01)]
    evidence = {"level": 1e-7, "alpha": 0.05, "share": 0.9, "least": 0.5, "useful": 0.1, "cells": cells}
    result = Result("bounds.grid", "bounds", Subject.IMPLEMENTATION, "", "s", Verdict.CONFIRMED, "f", evidence)
    return Run("1.0", Level.QUICK, 7, (result,))


def test_shares_are_counted_and_low_ones_listed(run):
    page = bounds.text(run)
    assert "| 100 | exact null | 1e-05 | 2 | 90.0% | 80.0% | 1 | 1 |" in page
    assert "| Cauchy + 2 | 100 | exact null | 1e-05 | 80.0% ± 1.2% | 0.88 | 1.1 |" in page
    # Nothing to be found there.
    assert "Cauchy + 5" not in page


def test_a_setting_counts_where_any_bound_finds_something(run):
    run.results[0].evidence["cells"].append(cell("Cauchy + 3", 100, 0.05, 0.5))
    page = bounds.text(run)
    assert "at least 90% of the largest mean in 1 of 3 settings" in page
    assert "| Cauchy + 3 | 100 | exact null | 1e-05 | 10.0% ± 1.2% | 0.05 | 0.5 |" in page


def test_bounds_of_a_gaussian_curve_are_shown_apart(run):
    assert "trade-off curve is Gaussian" not in bounds.text(run)
    run.results[0].evidence["cells"][0]["of_a_curve"] = {"normal-scores": 2.25}
    page = bounds.text(run)
    assert "| shape | k | null | δ | `fixed-sequence` | `normal-scores` |" in page
    assert "| N(1, 1²) | 100 | exact null | 1e-05 | 1.5 | 2.25 |" in page


def drawn(run):
    return bounds.PAGE.figures(run)[bounds.PICTURE]


def test_the_picture_has_a_number_for_each_cell(run):
    figure = drawn(run)
    assert sorted(text.get_text() for text in figure.axes[0].texts) == ["100", "80", "·"]
    # What was not run is no cell in which nothing was found.
    run.results[0].evidence["cells"].append(cell("Cauchy + 2", 10**6, 1.0, 0.9))
    columns = drawn(run).axes[0]
    assert sorted(text.get_text() for text in columns.texts) == ["", "", "100", "100", "80", "·"]
    assert [label.get_text() for label in columns.get_xticklabels()] == ["100", "10⁶"]
    assert ElementTree.fromstring(svg(figure)).tag.endswith("svg")


def test_the_page_comes_with_its_measurement(run):
    files = render(run)
    assert "](bounds-grid.svg)" in files["bounds.md"].decode()
    assert "bounds-grid.svg" in files
    assert "bounds.md" not in render(Run("1.0", Level.QUICK, 7, ()))
