from dataclasses import replace

import numpy as np
import pytest

from canaryproof.proofs_check import consistency
from canaryproof.verify.audit.estimators import epsilon_estimators, simulation
from canaryproof.verify.audit.estimators.moments import Moments
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import estimators as suite
from canaryproof.verify.papers.suites import inference

CONTEXT = Context(Effort.QUICK, 42)


@pytest.mark.parametrize("check", suite.CHECKS, ids=lambda check: check.id)
def test_every_statement_is_confirmed(check, quick_run):
    assert quick_run.results[check.id].verdict is Verdict.CONFIRMED


@pytest.mark.parametrize("candidate", suite.CANDIDATES.values())
def test_candidates_take_many_runs_as_each_alone(candidate):
    distance, ratio = np.array([0.2, 1.0, 3.0]), np.array([0.97, 1.0, 1.2])
    together = candidate(Moments(distance, ratio, 1000), suite.DELTA)
    for i in range(3):
        alone = candidate(Moments(distance[i], ratio[i], 1000), suite.DELTA)
        for field in ("epsilon", "standard_error", "low", "high"):
            assert getattr(together, field)[i] == pytest.approx(float(getattr(alone, field)), rel=1e-9)


def test_intervals_half_as_wide_are_found(monkeypatch):
    right = epsilon_estimators.pinned_estimate

    def narrow(moments, delta, confidence=0.95):
        estimate = right(moments, delta, confidence)
        middle, half = 0.5 * (estimate.low + estimate.high), 0.25 * (estimate.high - estimate.low)
        return replace(estimate, low=middle - half, high=middle + half)

    monkeypatch.setitem(suite.ESTIMATORS, "pinned", narrow)
    assert suite._equal_variances(CONTEXT).verdict is Verdict.REFUTED


def test_an_interval_that_trusts_equal_variances_is_found_where_they_differ(monkeypatch):
    monkeypatch.setitem(suite.ESTIMATORS, "adaptive", epsilon_estimators.pinned_estimate)
    assert suite._unequal_variances(CONTEXT).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("owner", "road"),
    [pytest.param(consistency.Slopes, "fitted_bias", marks=pytest.mark.deep), (suite, "_exact_bias")],
)
def test_a_bias_of_another_size_is_found(monkeypatch, owner, road):
    right = getattr(owner, road)
    monkeypatch.setattr(owner, road, lambda *arguments: 1.1 * right(*arguments))
    assert suite._kink(CONTEXT).verdict is Verdict.REFUTED


def test_a_wrong_dilution_is_found(monkeypatch):
    right = simulation.simulate
    monkeypatch.setattr(simulation, "simulate", lambda *a: right(*a[:-1], data_norm=2 * a[-1]))
    assert suite._data_sweep(CONTEXT).verdict is Verdict.REFUTED


@pytest.mark.parametrize("check", inference.CHECKS, ids=lambda check: check.id)
def test_the_estimators_pass(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding


def test_a_frequency_is_told_from_another_probability() -> None:
    events = np.arange(1000) < 300
    assert inference._frequency(events, 0.3) > 0.9
    assert inference._frequency(events, 0.2) < 1e-10 > inference._frequency(events, 0.4)
    assert inference._frequency(events, 0.25, margin=0.05) > 0.9
