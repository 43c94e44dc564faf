import zlib
from dataclasses import fields, replace

import numpy as np
import pytest

from canaryproof.verify.check import declared_tests
from canaryproof.verify.check.results import Context, Level, Verdict
from canaryproof.verify.suites import canife, canife_ablations, canife_trainings, catalogue
from canaryproof.verify.suites.canife_trainings import Plan, Sample

QUICK = Context(Level.QUICK, 0)


def drawn(plan, repetitions, seed, scale=1.0, accuracy=1.0, healthy=True):
    """A sample of a plan with deviations of this scale, a few per cent apart, and one accuracy."""
    rng = np.random.default_rng(seed)
    shape = repetitions, len(plan.rounds)
    deviation = 0.04 * scale * np.exp(0.05 * rng.standard_normal(shape))
    return Sample(
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


def samples(monkeypatch, law):
    """Draw samples whose scale, accuracy and health depend on the plan, in place of designs."""
    # Python's own hashes differ from process to process.
    monkeypatch.setattr(
        canife_trainings,
        "sample",
        lambda _, __, plan, size: drawn(plan, size, zlib.crc32(repr(plan).encode()), **law(plan)),
    )


@pytest.mark.parametrize(
    ("judge", "law", "verdict"),
    [
        (canife_ablations.success, lambda _: {}, Verdict.CONFIRMED),
        (canife_ablations.success, lambda _: {"accuracy": 0.99}, Verdict.REFUTED),
        (canife_ablations.close_to_noise, lambda _: {"scale": 0.423 / 0.04}, Verdict.CONFIRMED),
        (canife_ablations.close_to_noise, lambda _: {"scale": 0.5 / 0.04}, Verdict.REFUTED),
        (canife_ablations.separated, lambda _: {"scale": 5.0}, Verdict.CONFIRMED),
        (canife_ablations.separated, lambda _: {"scale": 5.9}, Verdict.REFUTED),
        (canife_ablations.clients, lambda _: {}, Verdict.INCONCLUSIVE),
        (canife_ablations.pool, lambda plan: {"scale": {16: 4.0, 64: 1.5, 256: 1.0}[plan.pool]}, Verdict.CONFIRMED),
        (canife_ablations.pool, lambda plan: {"scale": {16: 1.0, 64: 1.5, 256: 4.0}[plan.pool]}, Verdict.REFUTED),
        (canife_ablations.steps, lambda plan: {"scale": 100 / plan.settings.steps}, Verdict.CONFIRMED),
        (canife_ablations.steps, lambda plan: {"scale": plan.settings.steps / 100}, Verdict.REFUTED),
        (canife_ablations.rate, lambda plan: {"healthy": plan.settings.rate < 1.0}, Verdict.QUALIFIED),
        (canife_ablations.rate, lambda _: {}, Verdict.CONFIRMED),
        (canife_ablations.start, lambda _: {}, Verdict.CONFIRMED),
        (canife_ablations.start, lambda plan: {"scale": 2.0 if plan.start == "pool" else 1.0}, Verdict.REFUTED),
        (canife_ablations.model, lambda plan: {"accuracy": 1.0 if plan.training else 0.6}, Verdict.CONFIRMED),
        (canife_ablations.model, lambda _: {}, Verdict.REFUTED),
        (canife_ablations.default, lambda _: {}, Verdict.CONFIRMED),
        (canife_ablations.default, lambda _: {"healthy": False}, Verdict.REFUTED),
        (
            canife_ablations.losses,
            lambda plan: {"accuracy": 0.9 if plan.settings.loss == "mean" else 1.0},
            Verdict.CONFIRMED,
        ),
        (canife_ablations.constancy, lambda _: {}, Verdict.CONFIRMED),
        (canife_ablations.constancy, lambda plan: {"accuracy": 0.9 if plan.pool == 32 else 1.0}, Verdict.REFUTED),
        (canife_ablations.sensitivity, lambda plan: {"accuracy": 0.9 if plan.pool == 32 else 1.0}, Verdict.CONFIRMED),
        (canife_ablations.sensitivity, lambda _: {}, Verdict.REFUTED),
        (
            canife_ablations.constants,
            lambda plan: {"scale": 3.0 if plan.settings.norm_constant > 1 else 1.0},
            Verdict.CONFIRMED,
        ),
        (canife_ablations.health, lambda _: {}, Verdict.REFUTED),
        (canife_ablations.health, lambda _: {"accuracy": 0.6}, Verdict.CONFIRMED),
    ],
)
def test_verdicts_follow_what_is_found(monkeypatch, judge, law, verdict):
    samples(monkeypatch, law)
    found = judge(QUICK)
    assert found.verdict is verdict
    assert found.design.level == 1e-6


def monitored(rise=1.0, gap=4.0, health=0.999):
    def make(_, __, epsilon, runs):
        rng = np.random.default_rng(int(epsilon))
        rounds = 18.0 / gap * np.exp(0.02 * rng.standard_normal((runs, 6)))
        rounds[:, 0] /= rise
        noise = np.exp(0.001 * rng.standard_normal((runs, 6)))
        return canife_trainings.Monitored(rounds, rounds, health * noise, epsilon / gap * noise[:, 0], np.ones(runs))

    return make


@pytest.mark.parametrize(
    ("judge", "values", "verdict"),
    [
        (canife.level, {}, Verdict.CONFIRMED),
        (canife.rise, {}, Verdict.REFUTED),
        (canife.rise, {"rise": 2.0}, Verdict.CONFIRMED),
        (canife.gap, {"gap": 0.5}, Verdict.REFUTED),
        (canife.gap, {"gap": 20.0}, Verdict.CONFIRMED),
        (canife.health, {}, Verdict.CONFIRMED),
        (canife.health, {"health": 0.9}, Verdict.REFUTED),
    ],
)
def test_verdicts_along_trainings(monkeypatch, judge, values, verdict):
    monkeypatch.setattr(canife_trainings, "monitored", monitored(**values))
    assert judge(QUICK).verdict is verdict


@pytest.mark.parametrize(
    ("changes", "plausible", "stronger"),
    [
        ({}, Verdict.CONFIRMED, Verdict.REFUTED),
        ({"fitted": 200.0}, Verdict.QUALIFIED, Verdict.REFUTED),
        ({"fitted": 200.0, "pinned": 0.1, "round": 0.1}, Verdict.REFUTED, Verdict.CONFIRMED),
    ],
)
def test_the_reviewers_experiment(monkeypatch, changes, plausible, stronger):
    base = canife_trainings.Beside(analytical=90.0, bound=1.0, fitted=20.0, pinned=5.0, round=3.4)._replace(**changes)

    def make(_, __, runs):
        rng = np.random.default_rng(1)
        return [canife_trainings.Beside(*np.array(base) * np.exp(0.05 * rng.standard_normal(5))) for _ in range(runs)]

    monkeypatch.setattr(canife_trainings, "side_by_side", make)
    assert canife.plausible(QUICK).verdict is plausible
    assert canife.stronger(QUICK).verdict is stronger


def test_audits_leave_trainings_alone_and_a_difference_is_noticed(monkeypatch):
    assert canife_trainings.undisturbed(np.random.SeedSequence(3))
    monkeypatch.setattr(canife_trainings, "undisturbed", lambda _: False)
    assert canife.undisturbed(QUICK).verdict is Verdict.REFUTED


def test_plans_of_a_purpose_share_networks_and_starts():
    plan = Plan(replace(canife_trainings.BASE, steps=20))
    one, again = (canife_trainings.sample(QUICK, "test", plan, 2) for _ in range(2))
    other = canife_trainings.sample(QUICK, "test", replace(plan, pool=16), 2)
    for field in fields(Sample):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(again, field.name))
    assert one.label == pytest.approx(np.ones(2), rel=1e-5)
    assert np.all(one.deviation != other.deviation)


def test_the_second_road_notices_what_is_wrong(monkeypatch):
    assert canife.measures(QUICK).verdict is Verdict.CONFIRMED
    real = canife.training_epsilon
    monkeypatch.setattr(canife, "training_epsilon", lambda *a: (1.0 + 1e-5) * real(*a))
    assert canife.measures(QUICK).verdict is Verdict.REFUTED


def test_equal_values_are_judged_by_their_signs():
    assert declared_tests.above(np.full(10, 0.5)) == 0.5**10
    assert declared_tests.above(np.zeros(10)) == declared_tests.below(np.full(10, 0.5)) == 1.0


def test_two_settings():
    both = declared_tests.both
    assert both(Verdict.CONFIRMED, Verdict.REFUTED) is Verdict.QUALIFIED
    assert both(Verdict.REFUTED, Verdict.REFUTED) is Verdict.REFUTED
    assert both(Verdict.CONFIRMED, Verdict.INCONCLUSIVE) is Verdict.INCONCLUSIVE


def test_the_suite_needs_the_extra(monkeypatch):
    assert catalogue.SUITES["canife"] == tuple(canife.CHECKS)
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None if name == "jax" else object())
    assert catalogue.lacking("canife") == "needs jax: pip install canaryproof[federated]"
