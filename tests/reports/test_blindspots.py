import dataclasses
import math
from xml.etree import ElementTree

import pytest

from canaryproof.reports import blindspots
from canaryproof.reports.blindspots import Visibility, atlas, sight, sight_of_test
from canaryproof.reports.pages import render
from canaryproof.verify.check.results import Level, Run
from tests.reports import made_up


def said(epsilon, rate):
    return {
        "epsilon": [0.9 * epsilon, epsilon, 1.1 * epsilon],
        "rate": [rate, 0.0, 1.0],
        "alarms": 0,
        "runs": 10,
        "low": 0.0,
    }


def cell(value, truth, unlimited, rate, count=1000, canife=3.0):
    names = {"adaptive": unlimited, "fixed-sequence": 0.5 * unlimited, "normal-scores": unlimited, "canife": 2.6}
    return {
        "value": value,
        "count": count,
        "exact": count == 100,
        "truth": [truth, truth],
        "distance": 1.0,
        "runs": 400,
        "rate": [rate, 0.0, 1.0],
        "predicted": rate,
        "unlimited": [unlimited, unlimited],
        "canife": canife,
        "methods": {name: said(epsilon, rate if name == "adaptive" else 0.0) for name, epsilon in names.items()},
    }


def mechanism(name, *rows, diagnosed=()):
    evidence = {
        "title": f"a fault, {name}",
        "parameter": f"how much of {name}",
        "claimed": {"epsilon": 3.0, "delta": 1e-5, "noise_multiplier": 1.39},
        "dim": 10**6,
        "reason": "a reason",
        "leading_order": [1000],
        "margin": 1.02,
        "cells": [
            dict(zip(("value", "truth", "unlimited", "rate", "count"), (*row, count), strict=True))
            for row in rows
            for count in (100, 1000)
        ],
        "diagnosed": list(diagnosed),
    }
    evidence["cells"] = [cell(**row) for row in evidence["cells"]]
    return dataclasses.replace(
        made_up.claim(f"ours.{name}", suite="blindspots", **evidence), id=f"blindspots.atlas.{name}"
    )


DIAGNOSED = [
    {"value": 1.0, "tests": {"norm": {"p_value": 0.5, "alarms": 1, "rate": [0.05, 0.0, 0.1]}}, "confined": None},
    {"value": 0.5, "tests": {"norm": {"p_value": 0.0, "alarms": 20, "rate": [1.0, 0.9, 1.0]}}, "confined": 1.0},
]
RUN = Run(
    "0",
    Level.QUICK,
    0,
    (
        mechanism("seen", (1.0, 3.0, 3.0, 0.05), (0.5, 6.7, 6.7, 1.0), diagnosed=DIAGNOSED),
        mechanism("missed", (0.0, 3.0, 3.0, 0.05), (0.1, math.inf, 3.2, 0.3)),
        mechanism("hidden", (0.0, 3.0, 3.0, 0.05), (1.0, math.inf, 3.0, 0.05), (math.inf, math.inf, 0.0, 0.0)),
        mechanism("honest", (1.0, 3.0, 3.0, 0.05), (2.0, 3.0, 6.7, 1.0)),
    ),
)


def test_verdicts_follow_the_numbers():
    found = atlas(RUN)
    assert {name: sight(one, "adaptive").verdict for name, one in found.items()} == {
        "seen": Visibility.SEES,
        "missed": Visibility.MISSES,
        "hidden": Visibility.CANNOT,
        "honest": Visibility.NOTHING,
    }
    assert sight(found["honest"], "adaptive").rate == 1.0
    assert sight(found["seen"], "fixed-sequence").verdict is Visibility.MISSES
    assert sight(found["seen"], "canife").verdict is Visibility.CANNOT
    assert sight(found["seen"], "one-run") is None
    assert (
        sight_of_test(found["seen"], "norm").verdict
        is sight_of_test(found["seen"], "confined").verdict
        is Visibility.SEES
    )
    assert sight_of_test(found["missed"], "norm") is None


def test_what_nobody_can_see_goes_by_the_limit_of_the_method():
    # CANIFE has a limit of its own; of the others it is that of many canaries. The margin is 2% above ε = 3.
    claimed, row = (1.0, 3.0, 3.0, 0.05), (0.5, 6.7, 6.7, 0.3)
    for canife, unlimited, expected in (
        (3.05, 3.07, {"adaptive": Visibility.MISSES, "canife": Visibility.CANNOT}),
        (3.07, 3.05, {"adaptive": Visibility.CANNOT, "canife": Visibility.MISSES}),
    ):
        result = mechanism("some", claimed, row)
        result.evidence["cells"][-1] |= {"canife": canife, "unlimited": [9.0, unlimited]}
        (measured,) = atlas(Run("0", Level.QUICK, 0, (result,))).values()
        assert {name: sight(measured, name).verdict for name in expected} == expected


@pytest.mark.parametrize(
    ("rate", "expected", "without_more_to_see"),
    [(0.9, Visibility.SEES, Visibility.SEES), (0.8975, Visibility.MISSES, Visibility.CANNOT)],
)
def test_nine_audits_of_ten_see_a_fault(rate, expected, without_more_to_see):
    result = mechanism("some", (1.0, 3.0, 3.0, 0.05), (0.5, 6.7, 6.7, rate))
    result.evidence["diagnosed"] = [
        DIAGNOSED[0],
        {"value": 0.5, "tests": {"norm": {"p_value": 0.0, "alarms": 9, "rate": [rate, 0.0, 1.0]}}, "confined": rate},
    ]
    (measured,) = atlas(Run("0", Level.QUICK, 0, (result,))).values()
    sights = sight(measured, "adaptive"), *(sight_of_test(measured, test) for test in ("norm", "confined"))
    assert {each.verdict for each in sights} == {expected}
    # What hardly exceeds the claim, by 2%, no number of canaries shows.
    result.evidence["cells"][-1]["unlimited"] = [9.0, 1.02 * 3.0]
    (measured,) = atlas(Run("0", Level.QUICK, 0, (result,))).values()
    assert sight(measured, "adaptive").verdict is without_more_to_see


def test_rates_and_medians_are_those_of_the_method_at_the_worst_row():
    result = mechanism("some", (0.0, 3.0, 3.0, 0.05), (0.1, math.inf, 3.2, 0.3))
    row = result.evidence["cells"][-1]
    row["methods"]["normal-scores"] |= {"rate": [0.37, 0.0, 1.0], "epsilon": [1.0, 2.75, 4.0]}
    # The default has a rate of its own, of more audits.
    row["methods"]["adaptive"] |= {"rate": [0.99, 0.0, 1.0]}
    (measured,) = atlas(Run("0", Level.QUICK, 0, (result,))).values()
    assert sight(measured, "normal-scores") == blindspots.Sight(Visibility.MISSES, 0.37, 2.75)
    assert sight(measured, "adaptive").rate == row["rate"][0] == 0.3


def test_the_folder_has_the_page_and_a_picture_of_each_mechanism():
    files = render(RUN)
    names = [f"blindspots-{name}.svg" for name in ("matrix", *atlas(RUN))]
    page = files["blindspots.md"].decode()
    assert "so many audits or more: 400 by `adaptive`; 10 by `fixed-sequence`, `normal-scores`, `canife`." in page
    for name in names:
        assert ElementTree.fromstring(files[name]).tag.endswith("svg")
        assert f"]({name})" in page
    assert "[blindspots.md](blindspots.md)" in files["summary.md"].decode()
    assert "| `missed` | ∞ | ○ 30%; 3.2 |" in page
    assert "where k is 100, and the leading order of it where k is 1,000" in page


def test_a_run_without_the_atlas_has_no_page():
    empty = dataclasses.replace(RUN, results=())
    assert blindspots.text(empty) == ""
    assert blindspots.figures(empty) == {}
    assert "blindspots.md" not in render(empty)


def test_the_chapter_is_in_the_report():
    page = made_up.page_of(*RUN.results)
    assert 'id="blindspots"' in page
    assert page.count('id="picture-blindspots-') >= len(RUN.results) + 1
    assert "Matrix of 4 mechanisms" in page


@pytest.mark.parametrize("name", list(atlas(RUN)))
def test_pictures_have_labelled_axes_and_one_shape(name):
    figure = blindspots.figures(RUN)[blindspots.picture_name(name)]
    (axis,) = figure.axes
    assert axis.get_xlabel() == f"how much of {name}"
    assert axis.get_ylabel()
    assert axis.get_ylim() == (0.1, 200.0)
    assert tuple(figure.get_size_inches()) == (7.2, 2.9)
