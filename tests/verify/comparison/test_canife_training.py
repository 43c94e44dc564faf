import numpy as np
import pytest

from canaryproof.verify.accounting import analytical as accountants
from canaryproof.verify.canife.factored import FactoredUpdates
from canaryproof.verify.check.json_records import written
from canaryproof.verify.comparison import canife_training
from canaryproof.verify.comparison.canife_training import (
    CONFIDENCE,
    EVERY,
    Fault,
    Halved,
    Repeated,
    Scenario,
    Unclipped,
    trial_noise,
    with_unclipped,
)
from canaryproof.verify.files.benchmark_record import MemoryRecord
from canaryproof.verify.training.assembly import Seeds
from canaryproof.verify.training.clients import Clients
from canaryproof.verify.training.noise import Independent
from canaryproof.verify.training.outcome import CanaryScores, audits


def test_repeated_noise_is_that_of_the_first_round():
    noise = Independent(0.5, 3)
    faulty = Repeated(noise)
    assert faulty.noise_multiplier == 0.5
    for number in (0, 1, 7):
        np.testing.assert_array_equal(faulty.sample(number, 5, 2.0), noise.sample(0, 5, 2.0))
    assert not np.array_equal(noise.sample(0, 5, 2.0), noise.sample(1, 5, 2.0))
    assert faulty.sensitivity([1, 2]) == np.inf


def test_halved_noise_is_that_of_the_even_coordinates():
    noise = Independent(0.5, 3)
    faulty = Halved(noise)
    assert faulty.noise_multiplier == 0.5
    expected = noise.sample(4, 5, 2.0)
    np.testing.assert_array_equal(faulty.sample(4, 5, 2.0), [expected[0], 0.0, expected[2], 0.0, expected[4]])
    assert faulty.sensitivity([1]) == np.inf


def test_trials_have_the_noise_of_the_server():
    canary = np.array([0.6, 0.0, 0.0, 0.8])
    assert trial_noise(Fault.CLIPPING, 0.5, canary) == 0.5
    assert trial_noise(Fault.NOISE, 0.5, canary) == 0.0
    found = trial_noise(Fault.COORDINATES, 0.5, canary)
    # The deviation of a score ⟨c, aggregate⟩/‖c‖, by draws of the faulty noise.
    faulty = Halved(Independent(0.5, 1))
    draws = [canary @ faulty.sample(i, 4, 1.0) for i in range(20_000)]
    assert np.std(draws) == pytest.approx(found, rel=0.03)
    assert found == pytest.approx(0.3)


def test_one_client_in_a_hundred_is_not_clipped(bench):
    clients = Clients(bench.federation, bench.model, rate=1.0, epochs=1, batch_size=1, examples=1, cohort=8)
    theta = np.concatenate([np.ravel(leaf) for leaf in _leaves(bench.model.init(1))])
    chosen = np.array([1, 2, EVERY, EVERY + 1, 2 * EVERY])
    clip_norm = 0.1
    found = Unclipped(clients).sum(theta, chosen, clip_norm)
    alone = [clients.sum(theta, chosen[i : i + 1], clip_norm if chosen[i] % EVERY else 1e6) for i in range(5)]
    np.testing.assert_allclose(found.total, sum(one.total for one in alone), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.norms, [one.norms[0] for one in alone], rtol=1e-5)
    assert np.linalg.norm(alone[2].total) > 2.0 * clip_norm
    assert np.linalg.norm(alone[1].total) < 1.0001 * clip_norm


def test_the_same_of_mock_clients(bench):
    federation, count = bench.federation, EVERY + 1
    inputs, labels = federation.test_inputs[:count][:, None], federation.test_labels[:count][:, None]
    arguments = bench.model.init(2), inputs, labels, np.ones((count, 1), np.float32)
    updates = FactoredUpdates(0.1)
    state = updates.prepare(*arguments)
    faulty, free = with_unclipped(state, *arguments), FactoredUpdates(1e6).prepare(*arguments)
    for mixed, clipped, unclipped in zip(*map(_leaves, (faulty.clients, state.clients, free.clients)), strict=True):
        np.testing.assert_array_equal(mixed[1:EVERY], clipped[1:EVERY])
        np.testing.assert_allclose(mixed[::EVERY], unclipped[::EVERY], rtol=1e-5)
    assert not np.allclose(faulty.clients[0].outputs[0], state.clients[0].outputs[0])


def _leaves(tree):
    import jax

    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


ROOT = np.random.SeedSequence(5)
SHUFFLED, FAULTY = Scenario("shuffled", shuffled=True), Scenario("faulty", fault=Fault.CLIPPING)


@pytest.fixture(scope="module")
def found(bench):
    return bench.run(ROOT, SHUFFLED)


def test_the_sizes_are_those_of_one_epoch(bench):
    assert (bench.rounds, bench.sampling, bench.audited) == (12, 125 / 1500, [8])
    assert bench.memory() == MemoryRecord(32 * (4 * bench.model.dim + 8 * 40), 4 * 150 * (64 + 8 + 8 + 10))


def test_audits_leave_the_training_alone(bench, found):
    scores = CanaryScores.of(*_trained(bench))
    assert found.oneshot == audits(scores, bench.model.dim, bench.setting.delta, CONFIDENCE, "fixed")
    assert len(scores.observed["all"]) == len(scores.unobserved["all"]) == 20


def test_cosines_with_clients_are_those_of_plain_gradients(bench):
    import jax

    params, rng = bench.model.init(3), np.random.default_rng(4)
    canary = bench._design(bench._state(params, bench._pool(rng), None), rng)
    federation, chosen = bench.federation, np.random.default_rng(5).choice(1500, bench.setting.batch, replace=False)

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


def test_equal_arguments_give_equal_numbers_and_audits_are_of_the_model_before_their_round(bench, found, monkeypatch):
    seen = []
    real = canife_training.Trainer

    class Watched(real):
        @property
        def params(self):
            seen.append(self.rounds + 1)
            return super().params

    monkeypatch.setattr(canife_training, "Trainer", Watched)
    again = bench.run(ROOT, SHUFFLED)
    assert seen[:1] == [8] == [audit.round for audit in again.canife]
    assert _timeless(written(again)) == _timeless(written(found))


def test_scores_have_their_law(bench, found):
    noise = bench.setting.noise_multiplier
    for audit in found.canife:
        law, (few, many) = audit.law, audit.scores
        assert (few.trials, many.trials) == (20, 60)
        assert law.noise == pytest.approx(noise * np.sqrt(law.shift))
        assert law.deviation == pytest.approx(np.hypot(law.noise, law.clients))
        # A difference of means of 30 scores each, six standard deviations.
        assert abs(many.separation - law.shift) < 6.0 * law.deviation * np.sqrt(2.0 / 30.0)
        for scores in audit.scores:
            largest = np.log((1.0 - 1.0 / scores.trials) * scores.trials / 2)
            assert scores.epsilon.capped.epsilon <= largest * (1.0 + 1e-12)
        assert "one-run" in audit.bounds
        assert "normal-scores" not in audit.bounds


def test_a_scenario_changes_schedule_and_server(bench, found, monkeypatch):
    # Seconds of work that its own tests do.
    monkeypatch.setattr(accountants, "pld", lambda *_: 2.5)
    poisson = bench.run(ROOT, FAULTY)
    assert poisson.canife[0].law != found.canife[0].law
    assert "Poisson sampling" in poisson.analytical.rule
    assert "known to the attacker" in found.analytical.rule


def _trained(bench):
    trainer, canary_clients, _ = bench._prepared(Seeds.of(ROOT), SHUFFLED, bench.setting.rate)
    trainer.run()
    return trainer, canary_clients


def _timeless(value):
    if isinstance(value, dict):
        return {name: _timeless(part) for name, part in value.items() if name != "seconds"}
    return [_timeless(part) for part in value] if isinstance(value, list) else value
