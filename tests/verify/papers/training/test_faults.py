import numpy as np
import pytest

pytest.importorskip("jax", reason="training needs the extra 'federated'")

from canaryproof.verify.papers.canife.factored import FactoredUpdates
from canaryproof.verify.papers.training.clients import Clients
from canaryproof.verify.papers.training.data import digits
from canaryproof.verify.papers.training.faults import (
    EVERY,
    Fault,
    Halved,
    Repeated,
    Unclipped,
    trial_noise,
    with_unclipped,
)
from canaryproof.verify.papers.training.networks import model
from canaryproof.verify.papers.training.noise import Independent


@pytest.fixture(scope="module")
def data():
    return digits.load(1, 0)


@pytest.fixture(scope="module")
def network(data):
    return model("two_layer", data, hidden=8)


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


def test_one_client_in_a_hundred_is_not_clipped(data, network):
    clients = Clients(data, network, rate=1.0, epochs=1, batch_size=1, examples=1, cohort=8)
    theta = np.concatenate([np.ravel(leaf) for leaf in _leaves(network.init(1))])
    chosen = np.array([1, 2, EVERY, EVERY + 1, 2 * EVERY])
    clip_norm = 0.1
    found = Unclipped(clients).sum(theta, chosen, clip_norm)
    alone = [clients.sum(theta, chosen[i : i + 1], clip_norm if chosen[i] % EVERY else 1e6) for i in range(5)]
    np.testing.assert_allclose(found.total, sum(one.total for one in alone), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.norms, [one.norms[0] for one in alone], rtol=1e-5)
    assert np.linalg.norm(alone[2].total) > 2.0 * clip_norm
    assert np.linalg.norm(alone[1].total) < 1.0001 * clip_norm


def test_the_same_of_mock_clients(data, network):
    federation, count = data, EVERY + 1
    inputs, labels = federation.test_inputs[:count][:, None], federation.test_labels[:count][:, None]
    arguments = network.init(2), inputs, labels, np.ones((count, 1), np.float32)
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
