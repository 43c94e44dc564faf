import numpy as np
import pytest

pytest.importorskip("optax", reason="training needs the extra 'federated'")

from canaryproof.verify.training.training import Server

DIM, STEPS = 7, 5
RATE = 0.3


@pytest.fixture(scope="module")
def deltas():
    return np.random.default_rng(0).normal(size=(STEPS, DIM))


@pytest.fixture(scope="module")
def initial():
    return np.random.default_rng(1).normal(size=DIM).astype(np.float32)


def sgd(momentum, theta, deltas):
    velocity = np.zeros(DIM)
    for delta in deltas:
        velocity = momentum * velocity + delta
        theta = theta + RATE * velocity
    return theta


def adam(theta, deltas):
    first, second = np.zeros(DIM), np.zeros(DIM)
    for t, delta in enumerate(deltas, start=1):
        first, second = 0.9 * first + 0.1 * delta, 0.99 * second + 0.01 * delta**2
        theta = theta + RATE * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.99**t)) + 1e-3)
    return theta


EXPECTED = {
    ("sgd", 0.0): lambda theta, deltas: theta + RATE * deltas.sum(axis=0),
    ("sgd", 0.9): lambda theta, deltas: sgd(0.9, theta, deltas),
    ("adam", 0.0): adam,
}


@pytest.mark.parametrize(("name", "momentum"), EXPECTED)
def test_steps_are_those_of_plain_numpy(name, momentum, initial, deltas):
    server = Server(name, RATE, momentum, initial)
    for delta in deltas:
        server.step(delta)

    np.testing.assert_allclose(server.theta, EXPECTED[name, momentum](initial.astype(float), deltas), rtol=0, atol=3e-6)


@pytest.mark.parametrize(("name", "momentum"), EXPECTED)
def test_a_restored_server_goes_on_with_the_same_bits(name, momentum, initial, deltas):
    server = Server(name, RATE, momentum, initial)
    for delta in deltas[:2]:
        server.step(delta)
    other = Server(name, RATE, momentum, np.zeros(DIM))
    other.restore({key: array.copy() for key, array in server.arrays().items()})
    for delta in deltas[2:]:
        server.step(delta)
        other.step(delta)

    assert server.arrays().keys() == other.arrays().keys()
    for key, array in server.arrays().items():
        assert np.array_equal(array, other.arrays()[key])
