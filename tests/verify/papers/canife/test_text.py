from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from canaryproof.verify.audit.canaries.shapes import flatten
from canaryproof.verify.papers.canife.attack import TrialRound, score_law
from canaryproof.verify.papers.canife.design import Sample
from canaryproof.verify.papers.canife.general import GeneralState
from canaryproof.verify.papers.canife.options import CanaryOptions
from canaryproof.verify.papers.canife.text import Relaxation, TextDesigner, TextUpdates, random_tokens, text_of
from canaryproof.verify.papers.training.data.federation import Federation
from canaryproof.verify.papers.training.networks import model

LENGTH, VOCABULARY, CLIENTS = 6, 9, 12


def test_weights_that_are_tokens_have_the_tokens_gradient():
    rng = np.random.default_rng(1)
    inputs, labels = rng.integers(0, VOCABULARY, (2, 1, LENGTH)).astype(np.int32)
    federation = Federation("random", inputs, labels, np.arange(2), inputs, labels, VOCABULARY, VOCABULARY)
    network = model("char_lstm", federation, hidden=4)
    longer = model("char_lstm", replace(federation, vocabulary=VOCABULARY + LENGTH), hidden=4)
    params = jax.tree.map(lambda leaf: 2.0 * leaf, network.init(1))
    update = -flatten(jax.jit(jax.grad(network.loss))(params, inputs, labels, np.ones(1)))
    clients = rng.normal(size=(3, network.dim)).astype(np.float32)
    sample = Sample(np.eye(VOCABULARY)[inputs[0]], labels[0])
    products, squared = jax.jit(TextUpdates(network.loss, longer.loss).products)(GeneralState(params, clients), sample)
    np.testing.assert_allclose(products, clients @ update, rtol=1e-4, atol=1e-6)
    assert float(squared) == pytest.approx(float(update @ update), rel=1e-4)


def bag_of_tokens(params, inputs, labels, mask):
    """A small model of text with one label: its mean embedding decides."""
    logits = params["embedding"][inputs].mean(axis=1) @ params["out"]
    entropies = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]
    return jnp.vdot(entropies, mask) / jnp.maximum(jnp.sum(mask), 1.0)


def test_a_canary_is_a_text_and_better_than_its_start():
    rng = np.random.default_rng(3)
    params = {"embedding": rng.normal(size=(VOCABULARY, 4)), "out": rng.normal(size=(4, 3))}
    params = jax.tree.map(lambda leaf: leaf.astype(np.float32), params)
    updates = TextUpdates(bag_of_tokens, bag_of_tokens)
    inputs, labels = rng.integers(0, VOCABULARY, (CLIENTS, 1, LENGTH)), rng.integers(0, 3, (CLIENTS, 1))
    state = updates.prepare(params, inputs, labels, np.ones((CLIENTS, 1), np.float32))
    designer = TextDesigner(updates, CanaryOptions(steps=100, norm_constant=1.0, restarts=1), Relaxation(0.7, 16))
    canary = designer.design(state, random_tokens(LENGTH, VOCABULARY, 3), np.random.default_rng(2))
    assert canary.input.shape == (LENGTH, VOCABULARY)
    np.testing.assert_array_equal(np.sort(canary.input, axis=1)[:, -2:], [[0.0, 1.0]] * LENGTH)
    assert canary.loss < canary.initial_loss
    response = updates.response(state, [canary])
    assert 0.0 < score_law(response, TrialRound(4, 0.1)).shift <= 1.0 + 1e-5


def test_given_embeddings_are_mixed_and_not_trained():
    rng = np.random.default_rng(3)
    table, out = rng.normal(size=(VOCABULARY, 4)).astype(np.float32), rng.normal(size=(4, 3)).astype(np.float32)

    def loss(params, *batch):
        return bag_of_tokens({"embedding": table, **params}, *batch)

    def extended_loss(params, *batch):
        return bag_of_tokens({"embedding": params["embedding"], **params["rest"]}, *batch)

    updates = TextUpdates(loss, extended_loss, vectors=table)
    text, clients = rng.integers(0, VOCABULARY, LENGTH), rng.normal(size=(2, 12)).astype(np.float32)
    label = np.array([0.0, 1.0, 0.0], np.float32)
    products, squared = updates.products(GeneralState({"out": out}, clients), Sample(np.eye(VOCABULARY)[text], label))
    update = -flatten(jax.grad(loss)({"out": out}, text[None], np.array([1]), np.ones(1)))
    np.testing.assert_allclose(products, clients @ update, rtol=1e-4)
    assert float(squared) == pytest.approx(float(update @ update), rel=1e-4)


def test_starts():
    tokens, rng = np.array([1, 0, 2]), np.random.default_rng(1)
    start = text_of(tokens, 4, 5)(rng)
    probabilities = np.exp(start.input)
    assert probabilities[[0, 1, 2], tokens] == pytest.approx(0.925, rel=1e-6)
    assert probabilities.sum(axis=1) == pytest.approx(1.0, rel=1e-6)
    assert start.logits.shape == (5,)
    assert random_tokens(3, 4, tokens)(rng).logits is tokens
