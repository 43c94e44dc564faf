import math
import zlib
from dataclasses import fields, replace

import numpy as np
import pytest

from canaryproof.verify.papers.check import p_values
from canaryproof.verify.papers.check.results import Context, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.suites import catalogue
from canaryproof.verify.papers.suites.canife import designs, faults, measures, samples, trainings
from canaryproof.verify.papers.suites.canife.samples import DesignPlan, DesignSample, Numbers

CHECKS = (*designs.CHECKS, *trainings.CHECKS, *measures.CHECKS, *faults.CHECKS)
QUICK = Context(Effort.QUICK, 0)


def drawn(plan, repetitions, seed, scale=1.0, accuracy=1.0, healthy=True):
    """A sample of a plan with deviations of this scale, a few per cent apart, and one accuracy."""
    rng = np.random.default_rng(seed)
    shape = repetitions, len(plan.rounds)
    deviation = 0.04 * scale * np.exp(0.05 * rng.standard_normal(shape))
    return DesignSample(
        healthy=np.full(repetitions, healthy),
        health=np.full(repetitions, 0.99),
        attempts=np.ones(repetitions, dtype=np.int64),
        label=np.ones(repetitions),
        separation=1.0 + 0.02 * rng.standard_normal(shape),
        deviation=deviation,
        accuracy=np.full(shape, accuracy),
        shift=np.ones(shape),
        law=deviation,
    )


def drawn_samples(monkeypatch, law):
    """Draw samples whose scale, accuracy and health depend on the plan, in place of designs."""
    # Python's own hashes differ from process to process.
    monkeypatch.setattr(
        samples,
        "sample",
        lambda _, __, plan, size: drawn(plan, size, zlib.crc32(repr(plan).encode()), **law(plan)),
    )


@pytest.mark.parametrize(
    ("judge", "law", "verdict"),
    [
        (designs.success, lambda _: {}, Verdict.CONFIRMED),
        (designs.success, lambda _: {"accuracy": 0.99}, Verdict.REFUTED),
        (designs.close_to_noise, lambda _: {"scale": 0.423 / 0.04}, Verdict.CONFIRMED),
        (designs.close_to_noise, lambda _: {"scale": 0.5 / 0.04}, Verdict.REFUTED),
        (designs.separated, lambda _: {"scale": 5.0}, Verdict.CONFIRMED),
        (designs.separated, lambda _: {"scale": 5.9}, Verdict.REFUTED),
        (designs.clients, lambda _: {}, Verdict.INCONCLUSIVE),
        (designs.pool, lambda plan: {"scale": {16: 4.0, 64: 1.5, 256: 1.0}[plan.pool]}, Verdict.CONFIRMED),
        (designs.pool, lambda plan: {"scale": {16: 1.0, 64: 1.5, 256: 4.0}[plan.pool]}, Verdict.REFUTED),
        (designs.steps, lambda plan: {"scale": 100 / plan.settings.steps}, Verdict.CONFIRMED),
        (designs.steps, lambda plan: {"scale": plan.settings.steps / 100}, Verdict.REFUTED),
        (designs.rate, lambda plan: {"healthy": plan.settings.rate < 1.0}, Verdict.REFUTED),
        (designs.rate, lambda plan: {"healthy": plan.settings.rate == 1.0}, Verdict.CONFIRMED),
        (designs.start, lambda _: {}, Verdict.CONFIRMED),
        (designs.start, lambda plan: {"scale": 2.0 if plan.start == "pool" else 1.0}, Verdict.REFUTED),
        (designs.model, lambda plan: {"accuracy": 1.0 if plan.training else 0.6}, Verdict.CONFIRMED),
        (designs.model, lambda _: {}, Verdict.REFUTED),
        (designs.default, lambda _: {}, Verdict.CONFIRMED),
        (designs.default, lambda _: {"healthy": False}, Verdict.REFUTED),
        (
            designs.losses,
            lambda plan: {"accuracy": 0.9 if plan.settings.loss == "mean" else 1.0},
            Verdict.CONFIRMED,
        ),
        (designs.constancy, lambda _: {}, Verdict.CONFIRMED),
        (designs.constancy, lambda plan: {"accuracy": 0.9 if plan.pool == 32 else 1.0}, Verdict.REFUTED),
        (designs.sensitivity, lambda plan: {"accuracy": 0.9 if plan.pool == 32 else 1.0}, Verdict.CONFIRMED),
        (designs.sensitivity, lambda _: {}, Verdict.REFUTED),
        (
            designs.constants,
            lambda plan: {"scale": 3.0 if plan.settings.norm_constant > 1 else 1.0},
            Verdict.CONFIRMED,
        ),
        (designs.health, lambda _: {}, Verdict.REFUTED),
        (designs.health, lambda _: {"accuracy": 0.6}, Verdict.CONFIRMED),
    ],
)
def test_verdicts_follow_what_is_found(monkeypatch, judge, law, verdict):
    drawn_samples(monkeypatch, law)
    found = judge(QUICK)
    assert found.verdict is verdict
    assert found.design.level == 1e-6


def monitored(rise=1.0, gap=4.0, health=0.999):
    def make(_, __, epsilon, runs):
        rng = np.random.default_rng(int(epsilon))
        rounds = 18.0 / gap * np.exp(0.02 * rng.standard_normal((runs, 6)))
        rounds[:, 0] /= rise
        noise = np.exp(0.001 * rng.standard_normal((runs, 6)))
        return samples.Monitored(rounds, rounds, health * noise, epsilon / gap * noise[:, 0], np.ones(runs))

    return make


@pytest.mark.parametrize(
    ("judge", "values", "verdict"),
    [
        (trainings.level, {}, Verdict.CONFIRMED),
        (trainings.rise, {}, Verdict.CONFIRMED),
        (trainings.rise, {"rise": 2.0}, Verdict.REFUTED),
        (trainings.gap, {"gap": 0.5}, Verdict.REFUTED),
        (trainings.gap, {"gap": 20.0}, Verdict.CONFIRMED),
        (trainings.health, {}, Verdict.CONFIRMED),
        (trainings.health, {"health": 0.99}, Verdict.INCONCLUSIVE),
        (trainings.health, {"health": 0.9}, Verdict.REFUTED),
    ],
)
def test_verdicts_along_trainings(monkeypatch, judge, values, verdict):
    monkeypatch.setattr(samples, "monitored", monitored(**values))
    assert judge(QUICK).verdict is verdict


@pytest.mark.parametrize(
    ("changes", "plausible", "stronger"),
    [
        ({}, Verdict.CONFIRMED, Verdict.INCONCLUSIVE),
        ({"fitted": 200.0}, Verdict.QUALIFIED, Verdict.INCONCLUSIVE),
        ({"fitted": 200.0, "pinned": 0.1, "round": 0.1}, Verdict.REFUTED, Verdict.CONFIRMED),
    ],
)
def test_the_reviewers_experiment(monkeypatch, changes, plausible, stronger):
    base = samples.SideBySide(analytical=90.0, bound=1.0, fitted=20.0, pinned=5.0, round=3.4)._replace(**changes)

    def make(_, __, runs):
        rng = np.random.default_rng(1)
        return [samples.SideBySide(*np.array(base) * np.exp(0.05 * rng.standard_normal(5))) for _ in range(runs)]

    monkeypatch.setattr(samples, "side_by_side", make)
    assert trainings.plausible(QUICK).verdict is plausible
    assert trainings.stronger(QUICK).verdict is stronger


def test_audits_leave_trainings_alone_and_a_difference_is_noticed(monkeypatch):
    assert samples.undisturbed(np.random.SeedSequence(3))
    monkeypatch.setattr(samples, "undisturbed", lambda _: False)
    assert trainings.undisturbed(QUICK).verdict is Verdict.REFUTED


def test_plans_of_a_purpose_share_networks_and_starts():
    plan = DesignPlan(replace(samples.BASE, steps=20))
    one, again = (samples.sample(QUICK, "test", plan, 2) for _ in range(2))
    other = samples.sample(QUICK, "test", replace(plan, pool=16), 2)
    for field in fields(DesignSample):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(again, field.name))
    assert one.label == pytest.approx(np.ones(2), rel=1e-5)
    assert np.all(one.deviation != other.deviation)


@pytest.mark.deep
def test_the_second_road_notices_what_is_wrong(monkeypatch, quick_run):
    assert quick_run.results["canife.measures"].verdict is Verdict.CONFIRMED
    real = measures.training_epsilon
    monkeypatch.setattr(measures, "training_epsilon", lambda *a: (1.0 + 1e-5) * real(*a))
    assert measures.measures(QUICK).verdict is Verdict.REFUTED


def test_equal_values_are_judged_by_their_signs():
    assert p_values.above(np.full(10, 0.5)) == 0.5**10
    assert p_values.above(np.zeros(10)) == p_values.below(np.full(10, 0.5)) == 1.0


def test_the_suite_needs_the_extra(monkeypatch):
    assert catalogue.SUITES["canife"] == CHECKS
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None if name == "jax" else object())
    assert catalogue.lacking("canife") == "needs jax: pip install '.[federated]' in canaryproof's folder"


def trained(monkeypatch, cosine=0.01, deviation=1.01):
    rng = np.random.default_rng(0)

    def numbers(runs):
        spread = np.exp(0.01 * rng.standard_normal((2, runs, 4)))
        return Numbers({}, np.ones((runs, 4)), cosine * spread[0], deviation * spread[1])

    monkeypatch.setattr(samples, "pairs", lambda _, __, runs: (numbers(runs), numbers(runs)))
    monkeypatch.setattr(samples, "dimension", lambda: 10_000)


@pytest.mark.parametrize(
    ("cosine", "verdict"), [(0.02, Verdict.REFUTED), (0.005, Verdict.CONFIRMED), (0.01, Verdict.INCONCLUSIVE)]
)
def test_orthogonality(monkeypatch, cosine, verdict):
    trained(monkeypatch, cosine=cosine)
    found = faults.orthogonality(QUICK)
    assert found.verdict is verdict
    assert found.evidence["random"] == 0.01


@pytest.mark.parametrize(
    ("share", "cap", "verdict"),
    [(0.98, 1.5, Verdict.QUALIFIED), (0.98, 0.87, Verdict.INCONCLUSIVE), (0.9, 1.5, Verdict.INCONCLUSIVE)],
)
def test_a_gap_that_the_cap_does_not_make_leaves_its_cause_open(monkeypatch, share, cap, verdict):
    # So does a cap below 0.879, which the authors have from CANIFE.
    held = Verdict.CONFIRMED if share > 0.95 else Verdict.REFUTED
    of_cap = Outcome(held, "ε̂ is 80 with unlimited scores", {"rows": [{"limits": (share, 1.0), "cap": cap}]})
    monkeypatch.setattr(faults, "share_of_cap", lambda _: of_cap)
    found = faults.cause(QUICK)
    assert found.verdict is verdict
    assert f"at most {1.0 - share:.2%} of the gap" in found.finding


@pytest.mark.parametrize(
    ("deviation", "verdict"), [(1.01, Verdict.CONFIRMED), (1.2, Verdict.REFUTED), (1.05, Verdict.INCONCLUSIVE)]
)
def test_disturbance(monkeypatch, deviation, verdict):
    trained(monkeypatch, deviation=deviation)
    assert faults.disturbance(QUICK).verdict is verdict


def test_the_cap_is_most_of_the_gap(quick_run):
    found = quick_run.results["comparison.cap"]
    rows = found.evidence["rows"]
    assert [row["trials"] for row in rows] == [100, 1000, 10_000]
    assert rows[0]["cap"] < rows[1]["cap"] < rows[2]["cap"] < 0.05 * found.evidence["unlimited"]
    for row in rows:
        low, high = row["limits"]
        assert 0.95 < low <= row["share"] <= high == pytest.approx(1.0)


COMPARED = ("final.section5.4.", "comparison.")
# Pairs of trainings; `plausible` looks at single ones.
BY_ID = {check.id: check for check in CHECKS if check.id.startswith(COMPARED) and check.id != "comparison.plausible"}
METHODS = ("canife-law", "algorithm-3", "algorithm-3-pinned", "final", "change", "change-fitted", "bound")


def trained_with(monkeypatch, factor, share=1.0):
    """Have numbers that a fault multiplies, in place of trainings."""

    def pairs(context, scenario, runs):
        rng = np.random.default_rng(context.key(scenario))
        without = {name: rng.lognormal(0.0, 0.5, runs) for name in METHODS}
        with_fault = {name: factor * values * rng.lognormal(0.0, 0.02, runs) for name, values in without.items()}
        ones = np.ones((runs, 4))
        return Numbers(without, ones, ones, ones), Numbers(with_fault, share * ones, ones, ones)

    monkeypatch.setattr(samples, "pairs", pairs)
    monkeypatch.setattr(samples, "rounds", lambda: 30)


@pytest.mark.parametrize("check", [check for check in CHECKS if check.id.startswith("comparison.")], ids=lambda c: c.id)
@pytest.mark.parametrize(
    ("factor", "moves"), [(3.0, "rises"), (0.3, "falls"), (1.0, "unmoved"), (1.25, "open"), (0.8, "open")]
)
def test_statements_of_ours_hold_for_what_they_say_alone(monkeypatch, check, factor, moves):
    if check.id.count(".") < 2 or check.id.endswith(".canife"):
        return
    trained_with(monkeypatch, factor)
    says = next(moved for word, moved in WORDS.items() if word in check.statement)
    found = check.judge(QUICK)
    assert check.subject is Subject.IMPLEMENTATION
    assert found.evidence["moves"] == moves
    expected = Verdict.INCONCLUSIVE if moves == "open" else Verdict.CONFIRMED if moves == says else Verdict.REFUTED
    assert found.verdict is expected


WORDS = {"rises by more": "rises", "falls by more": "falls", "rises by less": "unmoved"}


@pytest.mark.parametrize(
    ("share", "verdict"), [(1.0, Verdict.CONFIRMED), (0.2, Verdict.REFUTED), (0.8, Verdict.INCONCLUSIVE)]
)
def test_a_cap_that_all_audits_reach_hides_a_fault(monkeypatch, share, verdict):
    trained_with(monkeypatch, 3.0, share)
    assert BY_ID["comparison.unclipped.canife"].judge(QUICK).verdict is verdict
    # What is its cap either way cannot show that an assumption matters.
    found = BY_ID["final.section5.4.canife.reused"].judge(QUICK)
    assert found.verdict is (Verdict.INCONCLUSIVE if verdict is Verdict.CONFIRMED else verdict)
    assert ("unlimited ones change ε̂ by a factor of 3" in found.finding) == (found.verdict is Verdict.INCONCLUSIVE)


def test_canife_is_not_wrong_where_nothing_changes(monkeypatch):
    trained_with(monkeypatch, 1.0)
    monkeypatch.setattr(faults.analytical, "pld", lambda *_: 33.0)
    assert BY_ID["final.section5.4.canife.shuffled"].judge(QUICK).verdict is Verdict.REFUTED
    assert BY_ID["final.section5.4.canife.halved"].judge(QUICK).verdict is Verdict.INCONCLUSIVE


def test_designs_are_declared(quick_run):
    for name in BY_ID:
        design = quick_run.results[name].design
        assert 0.0 < design.level <= 1e-6
        assert design.power >= 0.9
        assert design.runs >= 24
        assert "-" not in design.alternative.replace("e-", "")


def test_both_roads_of_a_canary_give_the_same_share_of_noise(quick_run):
    """With noise on half of the coordinates the law of a round has about √2 of the distance."""
    found = quick_run.results["comparison.halved.canife-law"].evidence["methods"]["canife-law"]
    assert 1.0 < found["factor"] < 3.0
    assert math.isfinite(found["limits"][1])
