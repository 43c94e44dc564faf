import copy
from xml.etree import ElementTree

import pytest

from canaryproof.reports import training
from canaryproof.reports.figures import svg
from canaryproof.reports.training import densities, estimates

DENSITY = {"x": [-1.0, 0.0, 9.0], "y": [0.1, 0.4, 0.1]}
AUDIT = {"estimates": {"fitted": {"epsilon": 2.5}}, "bounds": {"fixed-sequence": {"value": 1.5}}}
RESULT = {
    "audits": {attack: {"exact": AUDIT, "unobserved": AUDIT} for attack in ("all", "final", "change")},
    "densities": dict.fromkeys(("all", "final", "change"), DENSITY),
}
DOCUMENT = {
    "axes": [["training.one_round_epsilon"], ["canaries.presentations"]],
    "cells": [
        {"swept": {"training.one_round_epsilon": noise, "canaries.presentations": number}, "results": [RESULT]}
        for noise in ("inf", 30.0)
        for number in (1, 2, 4)
    ],
}


@pytest.fixture(autouse=True)
def text(monkeypatch):
    """Write letters, not their outlines."""
    monkeypatch.setitem(training.STYLE, "svg.fonttype", "none")


@pytest.mark.parametrize("draw", [densities, estimates])
def test_there_is_a_row_for_each_attack_and_a_panel_for_each_noise(draw):
    drawn = svg(draw(DOCUMENT))
    ElementTree.fromstring(drawn)
    for words in ("final model", "change of the model", "one round epsilon ∞", "one round epsilon 30", "presentations"):
        assert words in drawn
    assert drawn.count(">final model<") == 2


def test_densities_have_the_null_where_it_is_known():
    assert svg(densities(DOCUMENT)).count(">null<") == 1


@pytest.mark.parametrize("draw", [densities, estimates])
def test_an_experiment_without_a_sweep_has_one_panel(draw):
    drawn = svg(draw({"axes": [], "cells": [{"swept": {}, "results": [RESULT]}]}))
    assert drawn.count(">final model<") == 1


def test_repetitions_have_bars_of_error():
    document = copy.deepcopy(DOCUMENT)
    document["cells"][0]["results"] = [RESULT, RESULT]
    assert svg(estimates(document)) != svg(estimates(DOCUMENT))


@pytest.mark.parametrize("draw", [densities, estimates])
def test_the_last_axis_alone_is_told_in_a_panel(draw):
    drawn = svg(draw({**DOCUMENT, "axes": [["training.one_round_epsilon", "canaries.presentations"]]}))
    assert drawn.count(">final model<") == 1
    assert "∞, 4" in drawn
