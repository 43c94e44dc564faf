"""The network of ``plain`` for the trainer, and a federation of clients with few examples."""

import jax
import jax.numpy as jnp
import numpy as np
import plain

from canaryproof.verify.papers.training.data.federation import Federation
from canaryproof.verify.papers.training.networks import Model


def init(seed):
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda shape: jnp.asarray(rng.normal(0.0, 0.5, shape), jnp.float32),
        plain.SHAPES,
        is_leaf=lambda node: isinstance(node, tuple),
    )


def scores(params, inputs):
    hidden = jnp.tanh(inputs.reshape(len(inputs), -1) @ params["first"]["weights"] + params["first"]["bias"])
    return hidden @ params["second"]["weights"] + params["second"]["bias"]


def loss(params, inputs, labels, mask):
    logs = jax.nn.log_softmax(scores(params, inputs))
    right = jnp.take_along_axis(logs, labels[:, jnp.newaxis], axis=1)[:, 0]
    return -(right * mask).sum() / jnp.maximum(mask.sum(), 1.0)


def accuracy(params, inputs, labels):
    return (scores(params, inputs).argmax(axis=1) == labels).mean()


MODEL = Model("tiny", plain.DIM, init, loss, accuracy)


def federation(sizes, seed=1):
    """Clients with so many examples, as images of 2 × 3 pixels."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    labels = rng.integers(0, plain.CLASSES, starts[-1] + 50).astype(np.int32)
    inputs = (rng.random((len(labels), 2, 3, 1)) + 0.5 * labels[:, None, None, None] / plain.CLASSES).astype(np.float32)
    return Federation("tiny", inputs[:-50], labels[:-50], starts, inputs[-50:], labels[-50:], plain.CLASSES)


def examples(federation, client, most):
    """One client's examples as ``plain`` takes them."""
    there = slice(federation.starts[client], min(federation.starts[client] + most, federation.starts[client + 1]))
    return federation.inputs[there].reshape(-1, plain.INPUTS).astype(np.float64), federation.labels[there]
