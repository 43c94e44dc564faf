import math
from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import integrate, stats

from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.bounds import fixed_sequence, guesses, ladders, one_run, thresholds
from canaryproof.verify.audit.bounds.catalogue import MEASURED as METHODS
from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.results import Context, Effort, Subject, Verdict
from canaryproof.verify.papers.records.evidence import CoverageRow
from canaryproof.verify.papers.suites import bounds, bounds_trainings
from canaryproof.verify.papers.suites.bounds import FAMILIES, gaussian, laplace, randomised_response, rounded_gaussian


@pytest.mark.parametrize("nominal", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-5, 1e-2])
def test_epsilon_of_the_gaussian_by_integration(nominal, delta):
    mechanism = gaussian(nominal)
    mu, epsilon = bounds.shift(nominal), mechanism.epsilon(delta)
    # δ(ε) = ∫ (p − e^ε q)₊, positive above the place where the loss is ε.
    start = epsilon / mu + mu / 2
    found, _ = integrate.quad(
        lambda x: stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x),
        start,
        start + 40,
        epsabs=0,
        epsrel=1e-10,
    )
    assert found == pytest.approx(delta, rel=1e-7)


@pytest.mark.parametrize("nominal", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_epsilon_of_laplace_by_integration(nominal, delta):
    epsilon = laplace(nominal).epsilon(delta)
    points = [0.0, (nominal + epsilon) / 2, nominal]
    found, _ = integrate.quad(
        lambda x: max(0.0, stats.laplace.pdf(x, nominal) - math.exp(epsilon) * stats.laplace.pdf(x)),
        -40.0, 60.0, points=points, epsabs=1e-13, limit=400,
    )  # fmt: skip
    assert found == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize("nominal", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_epsilon_of_randomised_response_over_all_events(nominal, delta):
    epsilon = randomised_response(nominal).epsilon(delta)
    right = math.exp(nominal) / (1 + math.exp(nominal))
    excess = max(right - math.exp(epsilon) * (1 - right), (1 - right) - math.exp(epsilon) * right, 0.0)
    assert excess == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("nominal", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_epsilon_of_the_rounded_gaussian_in_many_digits(nominal, delta):
    mechanism = rounded_gaussian(nominal)
    with mp.workdps(40):
        mu, epsilon = mpf(bounds.shift(nominal)), mpf(mechanism.epsilon(delta))
        total = {1: mpf(0), -1: mpf(0)}
        for i in range(-60, 61):
            low, high = mpf(i) / 2 - mpf(1) / 4, mpf(i) / 2 + mpf(1) / 4
            p, q = mp.ncdf(high - mu) - mp.ncdf(low - mu), mp.ncdf(high) - mp.ncdf(low)
            total[1] += max(0, p - mp.exp(epsilon) * q)
            total[-1] += max(0, q - mp.exp(epsilon) * p)
        assert float(max(total.values())) == pytest.approx(delta, rel=1e-8)
    # Rounding is post-processing.
    assert mechanism.epsilon(delta) <= gaussian(nominal).epsilon(delta) * (1.0 + 1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_told_apart_at_epsilon_zero(family):
    mechanism = family(0.0)
    assert mechanism.epsilon(1e-6) == 0.0
    one, other = (draw(np.random.default_rng(1), (500,)) for draw in (mechanism.draw, mechanism.draw_null))
    assert np.array_equal(one, other)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("nominal", [0.0, 1.0, 10.0])
def test_the_null_is_the_law_of_its_draws(family, nominal):
    mechanism = family(nominal)
    draws = mechanism.draw_null(np.random.default_rng(2), (200_000,))
    for t in np.quantile(draws, [0.1, 0.5, 0.9, 0.999]):
        expected = math.exp(mechanism.null.log_tail(np.array([t]))[0])
        count = int(np.sum(draws >= t))
        assert stats.binom.cdf(count, 200_000, min(expected, 1.0)) > 1e-7
        assert stats.binom.sf(count - 1, 200_000, min(expected, 1.0)) > 1e-7


def test_laplace_places_have_their_tails():
    null = laplace(1.0).null
    logs = np.log([0.999, 0.5, 0.2, 1e-12])
    assert null.log_tail(null.quantile(logs)) == pytest.approx(logs, rel=1e-9, abs=1e-12)


def test_rounded_scores_are_multiples_of_a_half():
    draws = rounded_gaussian(3.0).draw(np.random.default_rng(3), (1000,))
    assert np.array_equal(2.0 * draws, np.rint(2.0 * draws))
    assert len(np.unique(draws)) < 20


CONTEXT = Context(Effort.QUICK, 42)


@pytest.mark.parametrize("check", bounds.CHECKS, ids=lambda check: check.id)
def test_statements_of_ours_are_confirmed_and_those_of_documents_judged(check, quick_run):
    verdict = quick_run.results[check.id].verdict
    if check.subject is Subject.IMPLEMENTATION:
        assert verdict is Verdict.CONFIRMED
    elif check.id.startswith("v1."):
        # A footnote of the document states the condition, which the bound itself needs and the first of these rows has.
        assert verdict is (Verdict.CONFIRMED if check.id == "v1.section5.limit" else Verdict.QUALIFIED)
    else:
        assert verdict is (Verdict.CONFIRMED if check.id.startswith("canife") else Verdict.REFUTED)


def test_every_method_is_measured_and_every_mechanism_and_delta(quick_run):
    judged = {check.id.rpartition(".")[2] for check in bounds.CHECKS} | set(bounds._CLAIMED)
    assert set(METHODS) <= judged
    cells = quick_run.results["bounds.coverage.fixed-threshold"].evidence["cells"]
    assert {row["mechanism"] for row in cells} == {family(1.0).name for family in bounds.FAMILIES}
    assert {row["epsilon"] for row in cells} == {0.0, 0.5, 1.0, 3.0, 10.0}
    assert {row["delta"] for row in cells} == {1e-6, 1e-2}
    assert {row["null"] for row in cells} == {"exact", "unobserved"}
    for row in cells:
        low, high = CoverageRow(**row).interval
        assert low <= CoverageRow(**row).rate == row["above"] / row["runs"] <= high
        exact = stats.binomtest(row["above"], row["runs"]).proportion_ci()
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_full_level_has_ten_thousand_scores_and_a_middle_delta_too():
    assert set(bounds.DELTAS[Effort.FULL]) == {1e-6, 1e-5, 1e-2}
    for table in (bounds._RUNS, bounds._FEWER, bounds._COSINE_RUNS):
        assert set(table[Effort.FULL]) == {100, 1000, 10_000}


def faulty(name, compute):
    return {**METHODS, name: replace(METHODS[name], compute=compute)}


def both_at_full_alpha(scores, delta, alpha):
    return thresholds.simultaneous(scores, delta, min(0.99, 8.0 * alpha))


def without_delta(scores, _delta, alpha):
    return thresholds.fixed_threshold(scores, 0.0, alpha)


def best_of_all(scores, delta, alpha):
    return METHODS["jagielski"].compute(scores, delta, alpha)


@pytest.mark.parametrize(
    ("name", "compute"),
    [pytest.param("band", both_at_full_alpha, marks=pytest.mark.deep), ("bonferroni", best_of_all)],
)
def test_bounds_that_promise_too_much_are_found(monkeypatch, name, compute):
    monkeypatch.setattr(bounds, "METHODS", faulty(name, compute))
    assert bounds._coverage(CONTEXT, name).verdict is Verdict.REFUTED


@pytest.mark.deep
def test_delta_dropped_is_found(monkeypatch):
    # At δ = 0.01 the truth of Laplace noise is 0.02 lower, more than the spread of large audits only.
    monkeypatch.setattr(bounds, "_RUNS", {Effort.QUICK: {100_000: 16}})
    monkeypatch.setattr(bounds, "EPSILONS", (0.5,))
    monkeypatch.setattr(bounds, "DELTAS", {Effort.QUICK: (1e-2,)})
    monkeypatch.setattr(bounds, "FAMILIES", (bounds.randomised_response,))
    monkeypatch.setattr(bounds, "METHODS", faulty("fixed-threshold", without_delta))
    assert bounds._coverage(CONTEXT, "fixed-threshold").verdict is Verdict.REFUTED


@pytest.mark.deep
def test_one_run_bounds_that_promise_too_much_are_found(monkeypatch):
    # Of every size that coins leave, weights are declared anew: a part of the cells finds it by far.
    monkeypatch.setattr(bounds, "_FEWER", {Effort.QUICK: {100: 100}})
    monkeypatch.setattr(bounds, "EPSILONS", (0.0, 1.0))
    right = one_run.bound_of_guesses
    monkeypatch.setattr(
        one_run, "bound_of_guesses", lambda m, g, w, block, _, alpha: right(m, g, w, block, 0.0, min(0.9, 12 * alpha))
    )
    assert bounds._coverage(CONTEXT, "one-run").verdict is Verdict.REFUTED


def test_every_score_of_every_training_is_measured(quick_run):
    rows = [row for row in quick_run.results["bounds.dependent-cosines"].evidence["cells"] if ": " in row["mechanism"]]
    scores = {"final model", "all rounds", "known rounds"}
    for training in bounds_trainings.TRAININGS:
        own = [row for row in rows if row["mechanism"].startswith(f"{training.name}: ")]
        expected = scores - ({"all rounds"} if training.strategy is not None else set())
        if training.claim.rate is not None:
            expected = scores - {"known rounds"} | {"sampling"}
        else:
            assert "composed-bound" in {row["method"] for row in own}
        assert {row["mechanism"].partition(": ")[2] for row in own} == expected
        assert {row["truth"] for row in own} == {training.claim.epsilon(1e-5)}
    assert {row["mechanism"] for row in rows if row["method"] == "participations"} == {"unequal rounds: known rounds"}


def test_a_training_with_half_of_the_claimed_noise_is_found(monkeypatch):
    training = replace(bounds_trainings.TRAININGS[0], claim=accountant.gaussian(2.0, participations=3))
    monkeypatch.setattr(bounds_trainings, "TRAININGS", (training,))
    assert bounds._outcome(list(bounds._of_trainings(CONTEXT)), 0.05).verdict is Verdict.REFUTED


@pytest.fixture
def forgetful(monkeypatch):
    """Forget critical values before and after, and look at fewer cells, as many of them must be computed anew."""
    monkeypatch.setattr(bounds, "_RUNS", {Effort.QUICK: {100: 400}})
    monkeypatch.setattr(bounds, "EPSILONS", (0.0, 1.0))
    monkeypatch.setattr(bounds, "DELTAS", {Effort.QUICK: (1e-5,)})
    caches = guesses.most_wrong, ladders.rungs, ladders.ladder_table
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("forgetful")
def test_critical_values_too_small_are_found(monkeypatch):
    right = fixed_sequence.least_rejecting
    monkeypatch.setattr(
        fixed_sequence, "least_rejecting", lambda tails, count, alpha: right(tails, count, 16.0 * alpha)
    )
    assert bounds._coverage(CONTEXT, "fixed-sequence").verdict is Verdict.REFUTED


@pytest.mark.usefixtures("forgetful")
def test_too_many_wrong_guesses_are_found(monkeypatch):
    right = guesses.wrong_at_most
    monkeypatch.setattr(ladders, "_MOST", 0)
    monkeypatch.setattr(guesses, "wrong_at_most", lambda *arguments: 0.05 * right(*arguments))
    assert bounds._coverage(CONTEXT, "fixed-sequence").verdict is Verdict.REFUTED


@pytest.mark.usefixtures("forgetful")
def test_rungs_that_are_reached_too_often_are_found(monkeypatch):
    right = ladders.chance
    monkeypatch.setattr(ladders, "chance", lambda *arguments: 0.1 * right(*arguments))
    assert bounds._coverage(CONTEXT, "fixed-sequence").verdict is Verdict.REFUTED


@pytest.fixture
def few_rivals(monkeypatch):
    """Compare in a part of the runs, of ε and of δ, and leave out the bound whose critical values take longest."""
    monkeypatch.setattr(bounds, "_RUNS", {Effort.QUICK: {100: 60}})
    monkeypatch.setattr(bounds, "EPSILONS", (1.0, 3.0))
    monkeypatch.setattr(bounds, "DELTAS", {Effort.QUICK: (1e-5, 1e-2)})
    monkeypatch.setattr(bounds, "METHODS", {name: METHODS[name] for name in ("band", "bonferroni", "fixed-threshold")})


@pytest.mark.usefixtures("few_rivals")
@pytest.mark.parametrize(("default", "verdict"), [("band", Verdict.CONFIRMED), ("fixed-threshold", Verdict.REFUTED)])
def test_a_poor_default_is_found(monkeypatch, default, verdict):
    monkeypatch.setattr(bounds, "DEFAULT", default)
    assert bounds._best(CONTEXT).verdict is verdict


@pytest.mark.deep
@pytest.mark.usefixtures("few_rivals")
def test_a_lead_varies_as_it_is_said_to(monkeypatch):
    # It is behind one of them and before the other.
    monkeypatch.setattr(bounds, "DEFAULT", "bonferroni")
    found = [bounds._best(Context(Effort.QUICK, seed)).evidence for seed in range(40)]
    for name in ("band", "fixed-threshold"):
        spread = np.std([evidence["leads"][name] for evidence in found])
        # A deviation of 40 draws errs by 11%.
        assert np.mean([evidence["errors"][name] for evidence in found]) == pytest.approx(spread, rel=0.5)


def test_the_default_s_design_is_that_of_a_t_test(quick_run):
    design = quick_run.results["bounds.default"].design
    sides, shift = 1e-6 / 3, float(design.alternative.split()[2])
    power = stats.nct.sf(stats.t.isf(sides, design.runs - 1), design.runs - 1, shift)
    assert design.runs == min(bounds._RUNS[quick_run.run.level].values())
    assert power == pytest.approx(design.power, abs=0.01)


def test_significance_is_of_all_cells_together():
    where = {"mechanism": "m", "epsilon": 1.0, "count": 10, "delta": 0.1, "null": "exact"}
    row = {**where, "runs": 1000, "mean": 0.0, "truth": 1.0}
    # The least that is significant alone is not among a thousand.
    edge = int(stats.binom.isf(LEVEL, 1000, 0.05)) + 1
    one = CoverageRow(**row, above=edge)
    fine = CoverageRow(**row, above=50)
    assert bounds._outcome([one], 0.05).verdict is Verdict.REFUTED
    assert bounds._outcome([one, *[fine] * 999], 0.05).verdict is Verdict.CONFIRMED
    assert bounds._outcome([replace(one, above=edge - 1)], 0.05).verdict is Verdict.CONFIRMED


def test_a_bound_at_the_truth_is_not_above_it():
    where = {"mechanism": "m", "epsilon": 1.0, "count": 2, "null": "exact"}
    cell = bounds.AuditCell(where, {0.1: 2.0}, ())
    for values, above in (([2.0, 2.0 * (1.0 + 1e-12)], 0), ([2.0001, 1.0], 1)):
        assert bounds._row(cell, 0.1, 2.0, np.array(values)).above == above


def test_coins_decide_on_twice_as_many_canaries():
    cell = next(iter(bounds.coin_cells(CONTEXT, (bounds.gaussian,))))
    sizes = [(scores.count, scores.null_count) for scores in cell.audits]
    assert {a + b for a, b in sizes} == {200}
    assert len({a for a, _ in sizes}) > 5
    assert all(scores.inclusion == "coin" for scores in cell.audits)


def test_cells_depend_on_the_seed_alone():
    def first(seed):
        cell = next(iter(bounds.independent_cells(Context(Effort.QUICK, seed), (bounds.laplace,), ("exact",))))
        return cell.audits[0].observed

    assert np.array_equal(first(1), first(1))
    assert not np.array_equal(first(1), first(2))
