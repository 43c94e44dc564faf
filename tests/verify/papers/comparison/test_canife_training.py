from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from canaryproof.verify.audit.accounting.accountant import gaussian, poisson
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.papers.accounting import analytical as accountants
from canaryproof.verify.papers.comparison.canife_designs import BOTH
from canaryproof.verify.papers.comparison.canife_training import CONFIDENCE, Scenario
from canaryproof.verify.papers.records.benchmark_record import MemoryRecord
from canaryproof.verify.papers.records.training_record import DATA_KNOWN, DATA_UNKNOWN
from canaryproof.verify.papers.training import assembly
from canaryproof.verify.papers.training.assembly import Seeds
from canaryproof.verify.papers.training.canary_scores import CanaryScores, audits
from canaryproof.verify.papers.training.faults import Fault

ROOT, REDESIGNED = np.random.SeedSequence(5), BOTH[1]
SHUFFLED, FAULTY = Scenario("shuffled", shuffled=True), Scenario("faulty", fault=Fault.CLIPPING)


@pytest.fixture(scope="module")
def found(bench):
    return bench.run(ROOT, SHUFFLED)


def test_the_sizes_are_those_of_one_epoch(bench):
    sizes = bench.sizes
    assert (sizes.rounds, sizes.sampling, sizes.audited) == (12, 125 / 1500, (8,))
    assert bench.memory() == MemoryRecord(32 * (4 * bench.model.dim + 8 * 40), 4 * 150 * (64 + 8 + 8 + 10))


def test_audits_leave_the_training_alone(bench, found):
    scores = CanaryScores.of(_trained(bench))
    assert found.oneshot == audits(scores, bench.model.dim, bench.plan.delta, CONFIDENCE, "fixed")
    assert len(scores.observed["all"]) == len(scores.unobserved["all"]) == 20


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("scenario", [Scenario("Poisson"), SHUFFLED], ids=lambda scenario: scenario.name)
def test_known_rounds_measure_the_noise_and_compose_it(bench, scenario):
    finished, plan, sizes = bench.train(ROOT, scenario, with_bounds=False), bench.plan, bench.sizes
    records = bench._known_rounds(finished, scenario)
    canary_clients = finished.trainer.canary_clients
    claim = gaussian(plan.noise_multiplier)
    if scenario is not SHUFFLED:
        claim = poisson(plan.noise_multiplier, rate=sizes.sampling, rounds=sizes.rounds)
    traces = {DATA_UNKNOWN: canary_clients.traces, DATA_KNOWN: finished.trainer.known_data}
    for knowledge, record in records.items():
        noise = traces[knowledge].noise_multiplier(CONFIDENCE)
        assert (record.noise_multiplier, record.low, record.high) == (noise.value, noise.low, noise.high)
        assert record.epsilon.epsilon == replace(claim, noise_multiplier=noise.value).epsilon(plan.delta)
        assert record.epsilon.low < record.epsilon.epsilon < record.epsilon.high
    # The noise is within 5 standard errors; with data unknown it is at least that.
    known = traces[DATA_KNOWN].noise_multiplier()
    assert abs(known.value - plan.noise_multiplier) < 5.0 * known.standard_error
    unknown = traces[DATA_UNKNOWN].noise_multiplier()
    assert unknown.value > plan.noise_multiplier - 5.0 * unknown.standard_error


def test_known_data_leave_what_an_attacker_with_all_updates_has(bench):
    trainer = bench._trainer(Seeds.of(ROOT), SHUFFLED, bench.plan.rate)
    ours = trainer.canary_clients
    theirs = CanaryClients(ours.canaries, trainer.participation)

    def on_round(done):
        theirs.add(done.delta, done.number, known=done.known)

    trainer.run(on_round=on_round)
    # Sums in another order.
    np.testing.assert_allclose(trainer.known_data.cosines, theirs.traces.cosines, rtol=1e-13)
    np.testing.assert_allclose(trainer.known_data.lengths, theirs.traces.lengths, rtol=1e-13)
    assert trainer.known_data.residual
    assert trainer.known_data.rounds == theirs.traces.rounds == bench.sizes.rounds


def test_cosines_with_clients_are_those_of_plain_gradients(bench):
    import jax

    params, rng = bench.model.init(3), np.random.default_rng(4)
    canary = bench._auditors["redesigned"].design(params, bench._pool(rng), rng)
    federation, chosen = bench.federation, np.random.default_rng(5).choice(1500, bench.plan.batch, replace=False)

    def gradient(inputs, labels, mask):
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(grad(params, inputs, labels, mask))])

    grad = jax.jit(jax.grad(bench.model.loss))
    classes = np.arange(federation.classes)
    own = gradient(np.broadcast_to(canary.input, (len(classes), *canary.input.shape)), classes, canary.label)
    one = np.ones(1, np.float32)
    others = [gradient(federation.inputs[i : i + 1], federation.labels[i : i + 1], one) for i in chosen]
    cosines = [other @ own / np.linalg.norm(other) / np.linalg.norm(own) for other in others]
    found = bench._cosines(params, canary, np.random.default_rng(5))
    assert found.root_mean_square == pytest.approx(np.sqrt(np.mean(np.square(cosines))), rel=1e-3)
    assert found.largest == pytest.approx(np.max(np.abs(cosines)), rel=1e-3)


@pytest.mark.parametrize("scenario", [Scenario("Poisson"), SHUFFLED], ids=lambda scenario: scenario.name)
def test_trial_rounds_are_of_the_training_s_clients_who_take_part_as_in_it(bench, scenario):
    import jax
    from jax.flatten_util import ravel_pytree

    params, design, federation = bench.model.init(3), REDESIGNED, bench.federation
    pool = bench._pool(np.random.default_rng(4))
    audit = bench._audit(
        bench._next_round(8, params, scenario), pool, np.random.default_rng(5), design, with_bounds=False
    )
    canary = bench._auditors[design.name].design(params, pool, np.random.default_rng(5), bench._starts(design, pool))

    def update(inputs, label):
        # A soft label weighs the losses of the example with each class.
        classes = np.arange(federation.classes)
        loss = partial(bench.model.loss, inputs=jax.numpy.broadcast_to(inputs, (len(classes), *inputs.shape)))
        flat = ravel_pytree(jax.grad(loss)(params, labels=classes, mask=label))[0]
        return -flat / jax.numpy.maximum(jax.numpy.linalg.norm(flat), 1.0)

    updates = jax.vmap(update)(federation.inputs, np.eye(federation.classes, dtype=np.float32)[federation.labels])
    products = np.asarray(updates @ update(canary.input, canary.label), float)
    count, batch = len(products), bench.plan.batch
    assert audit.law.mean == pytest.approx(batch * products.mean(), rel=1e-3, abs=1e-5)
    one = np.sqrt(np.mean(products**2)) if scenario is not SHUFFLED else products.std(ddof=1)
    assert audit.law.clients == pytest.approx(one * np.sqrt(batch * (1.0 - batch / count)), rel=1e-3)


def test_equal_arguments_give_equal_numbers_and_audits_are_of_the_model_before_their_round(bench, found, monkeypatch):
    seen = []
    real = assembly.Trainer

    class Watched(real):
        @property
        def params(self):
            seen.append(self.rounds + 1)
            return super().params

    monkeypatch.setattr(assembly, "Trainer", Watched)
    again = bench.run(ROOT, SHUFFLED)
    assert seen[0] == 8
    assert {8} == {audit.round for audits in again.canife.values() for audit in audits}
    assert _timeless(to_document(again)) == _timeless(to_document(found))


def test_scores_have_their_law(bench, found):
    noise = bench.plan.noise_multiplier
    assert list(found.canife) == ["as printed", "redesigned"]
    for (audit,) in found.canife.values():
        law, (few, many) = audit.law, audit.attacks
        assert (few.scores, many.scores) == (20, 60)
        assert law.noise == pytest.approx(noise * np.sqrt(law.shift))
        assert law.deviation == pytest.approx(np.hypot(law.noise, law.clients))
        # A difference of means of 30 scores each, six standard deviations.
        assert abs(many.separation - law.shift) < 6.0 * law.deviation * np.sqrt(2.0 / 30.0)
        for attack in audit.attacks:
            largest = np.log((1.0 - 1.0 / attack.scores) * attack.scores / 2)
            assert attack.epsilon.capped.epsilon <= largest * (1.0 + 1e-12)
        assert "one-run" in audit.bounds
        assert "normal-scores" not in audit.bounds


def test_a_scenario_changes_schedule_and_server(bench, found, monkeypatch):
    # Seconds of work that its own tests do.
    monkeypatch.setattr(accountants, "pld", lambda *_: 2.5)
    poisson = bench.run(ROOT, FAULTY)
    assert poisson.canife["redesigned"][0].law != found.canife["redesigned"][0].law
    # In a shuffled epoch every observed canary takes part, and by chance only some of Poisson samples.
    assert found.seen is None
    assert poisson.seen.observed < 20
    assert poisson.seen.unobserved == 20
    assert "Poisson sampling" in poisson.analytical.rule
    assert "known to the attacker" in found.analytical.rule


def _trained(bench):
    trainer = bench._trainer(Seeds.of(ROOT), SHUFFLED, bench.plan.rate)
    trainer.run()
    return trainer


def _timeless(value):
    if isinstance(value, dict):
        return {name: _timeless(part) for name, part in value.items() if name != "seconds"}
    return [_timeless(part) for part in value] if isinstance(value, list) else value
