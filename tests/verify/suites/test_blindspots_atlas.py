import pytest

from canaryproof.verify.blindspots import alarms as methods
from canaryproof.verify.blindspots.mechanisms import MECHANISMS
from canaryproof.verify.check.results import Context, Level, Verdict
from canaryproof.verify.suites import blindspots as atlas

CONTEXT = Context(Level.QUICK, 7)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_is_in_the_atlas_and_as_foretold(name, quick_run):
    result = quick_run.results[f"blindspots.atlas.{name}"]
    assert result.verdict is Verdict.CONFIRMED, result.finding
    cells = result.evidence["cells"]
    assert {row["count"] for row in cells} == {100, 1000, 10_000}
    assert [row["value"] for row in cells if row["count"] == 100] == list(MECHANISMS[name].values)
    assert all(row["exact"] == (row["count"] == 100) for row in cells)
    assert set(methods.ESTIMATORS) | set(methods.COIN_BOUNDS) <= set(cells[0]["methods"])
    assert len(result.evidence["diagnosed"]) == (len(MECHANISMS[name].values) if MECHANISMS[name].draw else 0)


def test_the_full_level_has_the_exact_law_at_a_thousand_too():
    exact = {
        level: [s.count for s in atlas.sizes(MECHANISMS["dilution"], Context(level, 0)) if s.exact] for level in Level
    }
    assert exact == {Level.QUICK: [100], Level.FULL: [100, 1000]}


def cell(rate, predicted, *, unlimited=3.0, alarms=0, runs=400):
    return {
        "rate": [rate],
        "predicted": predicted,
        "runs": runs,
        "unlimited": [unlimited, unlimited],
        "methods": {"fixed-sequence": {"alarms": alarms, "runs": 100}},
    }


def test_a_rate_that_is_not_the_foretold_one_is_found():
    right, wrong, small = cell(0.06, 0.05), cell(0.3, 0.05), cell(0.3, 0.05, runs=10)
    assert atlas.wrong_rates([right, wrong, small]) == [wrong]
    assert atlas.wrong_rates([cell(0.5, 0.95)]) != []


def test_a_bound_that_sees_what_is_not_there_is_found():
    right, wrong, seen = cell(0.0, 0.0, alarms=5), cell(0.0, 0.0, alarms=40), cell(0.0, 0.0, alarms=100, unlimited=4.0)
    assert atlas.wrong_bounds([right, wrong, seen]) == [(wrong, "fixed-sequence")]


def test_a_prediction_that_forgets_the_data_is_found(monkeypatch):
    monkeypatch.setattr(atlas, "cells", lambda *_: (cell(0.0, 1.0) | {"value": 1.0, "count": 100, "exact": True},))
    monkeypatch.setattr(atlas, "diagnoses", lambda *_: [])
    assert atlas.judge(CONTEXT, "dilution").verdict is Verdict.REFUTED


def test_the_part_without_noise_is_seen_by_canaries_that_are_confined_to_it():
    rows = {row["value"]: row for row in atlas.diagnoses("no-noise-on-a-share", CONTEXT)}
    assert rows[0.01]["confined"] > 0.99
    assert rows[0.01]["tests"]["part-norms"]["rate"][0] == 1.0
    assert rows[0.0]["confined"] is None
