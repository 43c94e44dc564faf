import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from canaryproof.verify.papers.canife.design import Canary, Sample
from canaryproof.verify.papers.canife.general import GeneralUpdates, LocalTraining

RATE, STEPS, CLIP = 0.7, 3, 0.4


def loss(params, inputs, labels, mask):
    """Softmax regression without a bias: its gradient is an outer product."""
    entropies = optax.softmax_cross_entropy_with_integer_labels(inputs @ params, labels)
    return jnp.vdot(entropies, mask) / jnp.maximum(jnp.sum(mask), 1.0)


def by_hand(weights, inputs, labels, shares):
    """Change that local training makes, in numpy; labels are probabilities."""
    trained = weights.copy()
    for _ in range(STEPS):
        logits = inputs @ trained
        probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        trained -= RATE * inputs.T @ (shares[:, None] * (probabilities - labels))
    return (trained - weights).ravel()


def clipped(update):
    return update * min(1.0, CLIP / np.linalg.norm(update))


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(5, 3)) / 2.0
    inputs, labels = rng.normal(size=(4, 2, 5)), rng.integers(0, 3, (4, 2))
    mask = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    # Unclipped, and clipped.
    inputs[1] *= 0.05
    soft = np.array([0.2, 0.5, 0.3])
    sample, small = 2.0 * rng.normal(size=5), 0.02 * rng.normal(size=5)
    with jax.enable_x64(True):
        local = LocalTraining(RATE, STEPS)
        updates = GeneralUpdates(loss, CLIP, local, local)
        by_gradient = GeneralUpdates(loss, CLIP, local)
        state = updates.prepare(weights, inputs, labels, mask)
        canaries = [Canary(one, soft, 1.0, 1.0, 1.0) for one in (sample, small)]
        found = updates.canary_updates(weights, canaries), updates.response(state, canaries)
        value = jax.jit(lambda z, y: updates.products(state, Sample(z, y)))
        slope = [np.asarray(part) for part in jax.jit(jax.jacobian(value))(sample, soft)]
        step = 1e-6 * np.array([1.0, -2.0, 0.5, 1.0, 3.0])
        around = [value(sample + sign * step, soft) for sign in (1.0, -1.0)]
        products = value(sample, soft)
        gradient = by_gradient.products(state, Sample(sample, soft))
        assert np.array_equal(by_gradient.canary_updates(weights, canaries), found[0])
    clients = np.array(
        [clipped(by_hand(weights, x, np.eye(3)[y], m / m.sum())) for x, y, m in zip(inputs, labels, mask, strict=True)]
    )
    own = [by_hand(weights, canary.input[None], soft[None], np.ones(1)) for canary in canaries]
    return state, found, (clients, own), (products, slope, around, step), (gradient, weights, sample, soft)


def test_clients_updates_are_those_of_training_by_hand(case):
    state, _, (clients, _), *_ = case
    np.testing.assert_allclose(state.updates, clients, rtol=1e-12, atol=1e-15)
    norms = np.linalg.norm(clients, axis=1)
    assert norms.min() < 0.9 * CLIP < norms.max() <= CLIP * (1.0 + 1e-12)


def test_canaries_updates_are_those_of_training_by_hand(case):
    _, (updates, response), (clients, own), *_ = case
    expected = np.array([clipped(update) for update in own])
    assert np.linalg.norm(own[0]) > CLIP > np.linalg.norm(own[1])
    np.testing.assert_allclose(updates, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(response.products, expected @ clients.T, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(response.gram, expected @ expected.T, rtol=1e-11, atol=1e-15)


def test_products_go_back_through_all_local_steps(case):
    _, _, (clients, own), ((products, squared), slope, around, step), _ = case
    np.testing.assert_allclose(products, clients @ own[0], rtol=1e-12)
    assert float(squared) == pytest.approx(own[0] @ own[0], rel=1e-12)
    for part in (0, 1):
        difference = (np.asarray(around[0][part]) - np.asarray(around[1][part])) / 2.0
        np.testing.assert_allclose(slope[part] @ step, difference, rtol=1e-6, atol=1e-14)


def test_equation_1_is_of_the_gradient_whatever_clients_do(case):
    _, _, (clients, _), _, ((products, squared), weights, sample, soft) = case
    weighted = np.exp(sample @ weights)
    gradient = np.outer(sample, weighted / weighted.sum() - soft).ravel()
    np.testing.assert_allclose(products, -clients @ gradient, rtol=1e-12, atol=1e-15)
    assert float(squared) == pytest.approx(gradient @ gradient, rel=1e-12)
