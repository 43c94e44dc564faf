from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex

from canaryproof.reports import bounds
from canaryproof.reports.html import tables
from canaryproof.reports.pages import render
from canaryproof.verify.audit.markup.figures import BLUE, ORANGE, description, svg
from canaryproof.verify.papers.check.results import Effort, Result, Run, Subject, Verdict
from tests.reports.made_up import legend_of


def cell(shape, count, own, band):
    means = {"fixed-sequence": own, "band": band}
    where = {"shape": shape, "null": "exact", "count": count, "delta": 1e-5, "runs": 9}
    shares = {"error": 0.01, "share": own / max(own, band), "share_error": 0.012}
    return {**where, "means": means, **shares, "of_a_curve": {}}


@pytest.fixture
def run():
    cells = [cell("N(1, 1²)", 100, 1.5, 1.2), cell("Cauchy + 2", 100, 0.88, 1.1), cell("Cauchy + 5", 100, 0.0, 0.01)]
    evidence = {"level": 1e-7, "alpha": 0.05, "share": 0.9, "least": 0.5, "useful": 0.1, "cells": cells}
    result = Result("bounds.grid", "bounds", Subject.IMPLEMENTATION, "", "s", Verdict.CONFIRMED, "f", evidence)
    return Run("1.0", Effort.QUICK, 7, (result,))


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
    assert "bounds.md" not in render(Run("1.0", Effort.QUICK, 7, ()))


def test_the_picture_has_each_share_in_its_place_and_colour(run):
    cells = run.results[0].evidence["cells"]
    cells.append({**cell("Cauchy + 2", 1000, 0.75, 1.0), "delta": 1e-6, "null": "10 k"})
    cells.append({**cell("N(1, 1²)", 10**5, 0.97, 1.0), "delta": 1e-6, "null": "10 k"})
    figure = drawn(run)
    shapes, counts = ["N(1, 1²)", "Cauchy + 2", "Cauchy + 5"], ["100", "1,000", "10⁵"]
    expected = (
        {("N(1, 1²)", "100"): "100", ("Cauchy + 2", "100"): "80", ("Cauchy + 5", "100"): "·"},
        {("Cauchy + 2", "1,000"): "75", ("N(1, 1²)", "10⁵"): "97"},
    )
    for axis, numbers in zip(figure.axes, expected, strict=True):
        found = {text.get_position(): text.get_text() for text in axis.texts if text.get_text()}
        assert found == {
            (counts.index(count) + 0.5, shapes.index(shape) + 0.5): number for (shape, count), number in numbers.items()
        }
        (mesh,) = axis.collections
        assert np.ma.filled(mesh.get_array(), -1.0).tolist() == [
            [pytest.approx(float(numbers.get((shape, count), "·").replace("·", "-100")) / 100.0) for count in counts]
            for shape in shapes
        ]
        # White is a share of 90%, and blue as far above it as orange is below.
        low, high = mesh.get_clim()
        assert (low, (low + high) / 2.0) == (0.7, pytest.approx(0.9))
        assert [to_hex(mesh.cmap(share)) for share in (0.0, 1.0)] == [ORANGE.lower(), BLUE.lower()]
        # The first shape is at the top.
        assert axis.get_ylim()[0] > axis.get_ylim()[1]
        assert [label.get_text() for label in axis.get_xticklabels()] == counts
        assert list(axis.get_xticks()) == list(axis.get_yticks()) == [0.5, 1.5, 2.5]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == shapes
    tones = legend_of(figure)
    for share in (0.7, 0.8, 0.9, 1.0):
        mark = tones.pop(f"{share:.0%} or less" if share == 0.7 else f"{share:.0%}")
        assert mark.get_facecolor() == pytest.approx(mesh.to_rgba(share))
    assert list(tones) == ["largest mean below 0.1"]
    assert description(figure).startswith(
        "2 panels. exact null, δ = 1e-05; 10 k unobserved scores, δ = 1e-06. Axes of all: number k of observed scores; "
        "numbers are percent of the largest mean."
    )


def test_shapes_have_room_for_their_names(run):
    def height(shapes):
        run.results[0].evidence["cells"][:] = [cell(f"shape {i}", 100, 1.0, 0.9) for i in range(shapes)]
        return drawn(run).get_size_inches()[1]

    # Letters of 7 points are a tenth of an inch high.
    growth = (height(30) - height(10)) / 20.0
    assert 0.12 < growth < 0.25
    # Titles, ticks and the legend take the rest.
    assert 0.5 < height(10) - 10.0 * growth < 1.5


def test_groups_are_by_number_null_and_delta_and_the_best_is_counted(run):
    cells = run.results[0].evidence["cells"]
    # Shares of 60%, 90% and 100% in one group; the last is the largest alone.
    cells[:] = [
        *(cell(f"shape {i}", 100, own, band) for i, (own, band) in enumerate(((0.6, 1.0), (0.9, 1.0), (1.0, 0.5)))),
        {**cell("shape 0", 1000, 0.5, 1.0), "delta": 1e-6},
        {**cell("shape 1", 1000, 0.8, 1.0), "null": "k"},
    ]
    page = bounds.text(run)
    (summary, low) = (rows for _, rows in tables(page))
    assert summary == (
        ("100", "exact null", "1e-05", "3", "83.3%", "60.0%", "2", "1"),
        ("1,000", "exact null", "1e-06", "1", "50.0%", "50.0%", "0", "0"),
        ("1,000", "k unobserved scores", "1e-05", "1", "80.0%", "80.0%", "0", "0"),
    )
    # The lowest comes first.
    assert [row[4] for row in low] == ["50.0% ± 1.2%", "60.0% ± 1.2%", "80.0% ± 1.2%"]
    assert "at least 90% of the largest mean in 2 of 5 settings" in page
    cells[:] = [cell("shape 0", 100, 0.9, 1.0)]
    assert "No share is below 90%." in bounds.text(run)
    # What is a tenth at most is still shown.
    cells[:] = [cell("shape 0", 100, 0.1, 0.05), cell("shape 1", 100, 0.099, 0.05)]
    assert "in 1 of 1 settings" in bounds.text(run)
