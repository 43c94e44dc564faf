from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.bounds import fixed_sequence, mechanisms, one_run, thresholds
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.check.declared_tests import LEVEL
from canaryproof.verify.check.results import Context, Level, Subject, Verdict
from canaryproof.verify.suites import bounds

CONTEXT = Context(Level.QUICK, 42)


@pytest.mark.parametrize("check", bounds.CHECKS, ids=lambda check: check.id)
def test_statements_of_ours_are_confirmed_and_those_of_documents_judged(check, quick_run):
    verdict = quick_run.results[check.id].verdict
    if check.subject is Subject.IMPLEMENTATION:
        assert verdict is Verdict.CONFIRMED
    else:
        name = check.id.removeprefix("bounds.printed.")
        assert verdict is (Verdict.CONFIRMED if name.startswith("canife") else Verdict.REFUTED)


def test_every_method_is_measured_and_every_mechanism_and_delta(quick_run):
    judged = {check.id.rpartition(".")[2] for check in bounds.CHECKS}
    assert set(METHODS) <= judged
    cells = quick_run.results["bounds.coverage.fixed-threshold"].evidence["cells"]
    assert {row["mechanism"] for row in cells} == {family(1.0).name for family in mechanisms.FAMILIES}
    assert {row["epsilon"] for row in cells} == {0.0, 0.5, 1.0, 3.0, 10.0}
    assert {row["delta"] for row in cells} == {1e-6, 1e-5, 1e-2}
    assert {row["null"] for row in cells} == {"exact", "unobserved"}
    for row in cells:
        assert row["deficit"] == pytest.approx(row["truth"] - row["mean"])
        low, high = row["interval"]
        assert low <= row["rate"] == row["above"] / row["runs"] <= high
        exact = stats.binomtest(row["above"], row["runs"]).proportion_ci()
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_full_level_has_ten_thousand_scores_too():
    for table in (bounds._RUNS, bounds._FEWER, bounds._COSINE_RUNS):
        assert set(table[Level.FULL]) == {100, 1000, 10_000}


def faulty(name, compute):
    return {**METHODS, name: replace(METHODS[name], compute=compute)}


def both_at_full_alpha(scores, delta, alpha):
    return thresholds.simultaneous(scores, delta, min(0.99, 8.0 * alpha))


def without_delta(scores, _delta, alpha):
    return thresholds.fixed(scores, 0.0, alpha)


def best_of_all(scores, delta, alpha):
    return METHODS["jagielski"].compute(scores, delta, alpha)


@pytest.mark.parametrize(
    ("name", "compute"),
    [("band", both_at_full_alpha), ("bonferroni", best_of_all)],
)
def test_bounds_that_promise_too_much_are_found(monkeypatch, name, compute):
    monkeypatch.setattr(bounds, "METHODS", faulty(name, compute))
    assert bounds._coverage(CONTEXT, name).verdict is Verdict.REFUTED


def test_delta_dropped_is_found(monkeypatch):
    # At δ = 0.01 the truth of Laplace noise is 0.02 lower, more than the spread of large audits only.
    monkeypatch.setattr(bounds, "_RUNS", {Level.QUICK: {100_000: 40}})
    monkeypatch.setattr(bounds, "EPSILONS", (0.5,))
    monkeypatch.setattr(mechanisms, "FAMILIES", (mechanisms.randomised_response,))
    monkeypatch.setattr(bounds, "METHODS", faulty("fixed-threshold", without_delta))
    assert bounds._coverage(CONTEXT, "fixed-threshold").verdict is Verdict.REFUTED


def test_one_run_bounds_that_promise_too_much_are_found(monkeypatch):
    right = one_run.steinke_bound
    monkeypatch.setattr(one_run, "steinke_bound", lambda m, r, v, _, alpha: right(m, r, v, 0.0, min(0.9, 12 * alpha)))
    assert bounds._coverage(CONTEXT, "one-run").verdict is Verdict.REFUTED


@pytest.fixture
def forgetful(monkeypatch):
    """Forget critical values before and after, and look at fewer cells, as many of them must be computed anew."""
    monkeypatch.setattr(bounds, "_RUNS", {Level.QUICK: {100: 400}})
    monkeypatch.setattr(bounds, "EPSILONS", (0.0, 1.0))
    monkeypatch.setattr(bounds, "DELTAS", (1e-5,))
    caches = fixed_sequence._sum_critical_values, fixed_sequence._guess_critical_values
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("forgetful")
def test_critical_values_too_small_are_found(monkeypatch):
    right = fixed_sequence.least_rejecting
    monkeypatch.setattr(fixed_sequence, "least_rejecting", lambda tails, count, alpha: right(tails, count, 4.0 * alpha))
    assert bounds._coverage(CONTEXT, "fixed-sequence").verdict is Verdict.REFUTED


@pytest.mark.usefixtures("forgetful")
def test_too_many_wrong_guesses_are_found(monkeypatch):
    right = fixed_sequence.wrong_at_most
    monkeypatch.setattr(fixed_sequence, "wrong_at_most", lambda *arguments: 0.2 * right(*arguments))
    assert bounds._coverage(CONTEXT, "fixed-sequence").verdict is Verdict.REFUTED


def test_a_poor_default_is_found(monkeypatch):
    monkeypatch.setattr(bounds, "DEFAULT", "split")
    assert bounds._best(CONTEXT).verdict is Verdict.REFUTED


def test_a_lead_varies_as_it_is_said_to(monkeypatch):
    monkeypatch.setattr(bounds, "_RUNS", {Level.QUICK: {100: 60}})
    monkeypatch.setattr(bounds, "EPSILONS", (1.0, 3.0))
    monkeypatch.setattr(bounds, "DELTAS", (1e-5, 1e-2))
    found = [bounds._best(Context(Level.QUICK, seed)).evidence for seed in range(40)]
    for name in ("band", "bonferroni", "fixed-threshold", "split"):
        spread = np.std([evidence["leads"][name] for evidence in found])
        # A deviation of 40 draws errs by 11%.
        assert np.mean([evidence["errors"][name] for evidence in found]) == pytest.approx(spread, rel=0.5)


def test_the_default_s_design_is_that_of_a_t_test(quick_run):
    design = quick_run.results["bounds.default"].design
    sides, shift = 1e-6 / 4, float(design.alternative.split()[2])
    power = stats.nct.sf(stats.t.isf(sides, design.runs - 1), design.runs - 1, shift)
    assert design.runs == 100
    assert power == pytest.approx(design.power, abs=0.01)


def test_significance_is_of_all_cells_together():
    row = {"mechanism": "m", "epsilon": 1.0, "count": 10, "delta": 0.1, "null": "exact", "runs": 1000,
           "interval": (0.0, 1.0), "mean": 0.0, "truth": 1.0, "deficit": 1.0}  # fmt: skip
    # The least that is significant alone is not among a thousand.
    edge = int(stats.binom.isf(LEVEL, 1000, 0.05)) + 1
    one = {**row, "above": edge, "rate": edge / 1000}
    fine = {**row, "above": 50, "rate": 0.05}
    assert bounds._outcome([one], 0.05).verdict is Verdict.REFUTED
    assert bounds._outcome([one, *[fine] * 999], 0.05).verdict is Verdict.CONFIRMED
    assert bounds._outcome([{**one, "above": edge - 1}], 0.05).verdict is Verdict.CONFIRMED


def test_a_bound_at_the_truth_is_not_above_it():
    cell = bounds.AuditCell({"null": "exact"}, {0.1: 2.0}, ())
    for values, above in (([2.0, 2.0 * (1.0 + 1e-12)], 0), ([2.0001, 1.0], 1)):
        assert bounds._row(cell, 0.1, 2.0, np.array(values))["above"] == above


def test_coins_decide_on_twice_as_many_canaries():
    cell = next(iter(bounds.coin_cells(CONTEXT, (mechanisms.gaussian,))))
    sizes = [(scores.count, scores.null_count) for scores in cell.audits]
    assert {a + b for a, b in sizes} == {200}
    assert len({a for a, _ in sizes}) > 5
    assert all(scores.inclusion == "coin" for scores in cell.audits)


def test_cells_depend_on_the_seed_alone():
    def first(seed):
        cell = next(iter(bounds.independent_cells(Context(Level.QUICK, seed), (mechanisms.laplace,), ("exact",))))
        return cell.audits[0].observed

    assert np.array_equal(first(1), first(1))
    assert not np.array_equal(first(1), first(2))
