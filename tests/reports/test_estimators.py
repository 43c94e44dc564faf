import pytest

from canaryproof.reports import estimators
from canaryproof.verify.audit.markup.figures import description
from canaryproof.verify.papers.check.results import Effort, Run
from tests.reports import made_up


def cell(ratio, pinned, fitted, adaptive):
    errors = {"pinned": pinned, "fitted": fitted, "adaptive": adaptive}
    return {"distance": 1.0, "ratio": ratio, "epsilon": 3.0, "epsilon_certified": [3.0, 3.1], **errors}


def test_the_chapter_says_how_far_each_estimator_is_from_the_best_at_the_worst():
    # Ratios to the smallest error of a cell: 1, 4, 2; then 6, 3, 1.
    cells = [cell(1.0, 0.5, 2.0, 1.0), cell(0.7, 1.2, 0.6, 0.2)]
    evidence = {"runs": 100, "count": 1000, "delta": 1e-6, "cells": cells, "largest_excess": 0.0}
    result = made_up.claim("estimators.default-estimator", suite="estimators", **evidence)
    words = estimators.text(Run("0", Effort.QUICK, 0, (result,))).partition("\n")[0]
    assert "differ by up to 30%" in words
    assert words.endswith("`pinned` 6.0 times, `fitted` 4.0 times, `adaptive` 2.0 times.")


def simulated(name, epsilon, dim, mean):
    """A cell whose printed and simulated estimates all differ."""
    reading = {"mean_certified": [0.0, 9.0], "p_value": 0.5}
    readings = {
        "fitted, both directions": {"mean": mean + 0.2, "deviation": 0.2, **reading},
        "pinned": {"mean": mean + 0.3, "deviation": 0.3, **reading},
    }
    evidence = {"dim": dim, "count": 100, "epsilon": epsilon, "delta": 1e-6, "noise_multiplier": 1.0, "runs": 200}
    evidence |= {"printed": {"mean": mean, "deviation": 0.1, "runs": 50}, "level": 1e-6, "power_against": {}}
    return made_up.claim(name, suite="algorithm1", **evidence, readings=readings)


CELLS = (
    simulated("review.b", 1.0, 10**6, 1.5),
    simulated("review.a", 1.0, 10**4, 1.25),
    simulated("final.table2.a", 1.0, 10**6, 1.75),
    simulated("final.table2.b", 3.0, 10**6, 3.5),
)


def test_the_sweep_has_a_panel_for_each_epsilon_and_points_beside_their_dimension():
    figure = estimators.PAGE.figures(Run("0", Effort.QUICK, 0, CELLS))["dimension-sweep.svg"]
    one, three = figure.axes
    # Points at one dimension stand beside each other, so that their bars do not meet.
    expected = {
        "printed, Table 2": [(0.56e6, 1.75, 0.1)],
        "printed, reviews": [(0.76e4, 1.25, 0.1), (0.76e6, 1.5, 0.1)],
        "pinned, simulated here": [(1e4, 1.55, 0.3), (1e6, 1.8, 0.3)],
        "fitted, simulated here": [(1.36e4, 1.45, 0.2), (1.36e6, 1.7, 0.2)],
    }
    for bars in one.containers:
        found = [
            (x, y, (high - low) / 2.0)
            for (x, y), ((_, low), (_, high)) in zip(
                bars.lines[0].get_xydata(), bars.lines[2][0].get_segments(), strict=True
            )
        ]
        assert found == [pytest.approx(point) for point in expected.pop(bars.get_label())]
    assert not expected
    # Of the other ε there is a cell of Table 2 alone.
    assert [len(bars.lines[0].get_xdata()) for bars in three.containers] == [1, 0, 0, 0]
    assert len({(bars.lines[0].get_color(), bars.lines[0].get_marker()) for bars in one.containers}) == 4
    assert [set(axis.get_lines()[0].get_ydata()) for axis in figure.axes] == [{1.0}, {3.0}]
    assert one.get_xscale() == "log"
    assert description(figure) == (
        "2 panels. analytical ε = 1: dimension d, k = √d, ε̂, mean ± standard deviation of a run; analytical ε = 3: "
        "dimension d, k = √d. Drawn: analytical ε, printed, Table 2, printed, reviews, pinned, simulated here, fitted, "
        "simulated here."
    )


def test_errors_are_drawn_along_the_ratio_a_panel_for_each_distance():
    # Out of order; ε of the titles is that where the deviations are equal.
    cells = [cell(2.0, 0.5, 2.0, 1.0), cell(1.0, 1.2, 0.6, 0.3), cell(0.5, 0.7, 0.8, 0.9)]
    cells[0]["epsilon"], cells[2]["epsilon"] = 9.0, 7.0
    cells += [{**one, "distance": 2.0, "epsilon": 1.0 + one["epsilon"]} for one in cells[:2]]
    evidence = {"runs": 100, "count": 1000, "delta": 1e-6, "cells": cells, "largest_excess": 0.0}
    result = made_up.claim("estimators.default-estimator", suite="estimators", **evidence)
    figure = estimators.PAGE.figures(Run("0", Effort.QUICK, 0, (result,)))["estimator-errors.svg"]
    near, far = ({line.get_label(): line.get_xydata().tolist() for line in axis.get_lines()} for axis in figure.axes)
    assert near == {
        "pinned": [[0.5, 0.7], [1.0, 1.2], [2.0, 0.5]],
        "fitted": [[0.5, 0.8], [1.0, 0.6], [2.0, 2.0]],
        "adaptive": [[0.5, 0.9], [1.0, 0.3], [2.0, 1.0]],
    }
    assert far == {name: points[1:] for name, points in near.items()}
    assert [axis.get_yscale() for axis in figure.axes] == ["log", "log"]
    assert description(figure) == (
        "2 panels. ε = 3 at equal deviations, k = 1,000: true ratio of deviations, observed to null, root mean square "
        "error of ε̂; ε = 4 at equal deviations, k = 1,000: true ratio of deviations, observed to null. Drawn: pinned, "
        "fitted, adaptive."
    )


def test_each_result_leads_to_its_picture():
    evidence = {"runs": 1, "count": 1, "delta": 1e-6, "cells": [cell(1.0, 1.0, 1.0, 1.0)], "largest_excess": 0.0}
    default = made_up.claim("estimators.default-estimator", suite="estimators", **evidence)
    shown = [estimators.PAGE.picture_of(one) for one in (CELLS[0], default, made_up.claim("final.a"))]
    assert shown == ["dimension-sweep.svg", "estimator-errors.svg", ""]
    # The chapter shows those that there are.
    page = estimators.text(Run("0", Effort.QUICK, 0, CELLS))
    assert "](dimension-sweep.svg)" in page
    assert "estimator-errors" not in page
    assert estimators.text(Run("0", Effort.QUICK, 0, ())) == ""


def test_what_is_excluded_by_a_test_has_a_cross():
    def marked(p_value):
        one = simulated("review.a", 1.0, 10**4, 1.25)
        one.evidence["readings"]["pinned"]["p_value"] = p_value
        return "1.550 ± 0.300 ✗" in estimators.text(Run("0", Effort.QUICK, 0, (one,)))

    # The level is 1e-6.
    assert [marked(p_value) for p_value in (9e-7, 1e-6, 0.5)] == [True, False, False]
