"""Federated averaging with differential privacy and canaries, in JAX: ``python examples/jax_loop.py FOLDER``.

It trains what ``numpy_loop.py`` trains, with ``CanaryClients``: which canaries now, their updates, the round's delta.
It writes ``scores.json``, with the scores of who knows each canary's round and all other clients' updates, and
``final.npy``. Parameters and updates are pytrees throughout: a canary client returns its canary in the parameters'
shapes.
"""

import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from canaryproof import Canaries, CanaryClients, Insertion, flatten, shuffled_epochs, split

ROUNDS, CLIENTS, CANARIES, SEED = 20, 50, 1000, 7
CLIP_NORM, SERVER_RATE, LOCAL_STEPS = 1.0, 1.0, 3
FEATURES, HIDDEN, CLASSES, EXAMPLES = 64, 128, 4, 20


def made_data(key, clients):
    """Draw examples of each client from one normal law a class, around centres that all clients share."""
    label_key, noise_key = jax.random.split(key)
    centres = jax.random.normal(jax.random.key(1), (CLASSES, FEATURES))
    labels = jax.random.randint(label_key, (clients, EXAMPLES), 0, CLASSES)
    return centres[labels] + 2.0 * jax.random.normal(noise_key, (clients, EXAMPLES, FEATURES)), labels


def logits(model, x):
    """Return the classes' scores."""
    hidden = jax.nn.relu(x @ model["hidden"]["weights"] + model["hidden"]["bias"])
    return hidden @ model["out"]["weights"] + model["out"]["bias"]


def loss(model, x, y):
    """Return the mean cross-entropy."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits(model, x)), y[:, jnp.newaxis], axis=1).mean()


def clipped_update(model, rate, x, y):
    """Train on a client's examples and return the change of the model, clipped."""
    local = model
    for _ in range(LOCAL_STEPS):
        local = jax.tree.map(lambda p, g: p - rate * g, local, jax.grad(loss)(local, x, y))
    change = jax.tree.map(jnp.subtract, local, model)
    norm = jnp.sqrt(sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(change)))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, CLIP_NORM / jnp.maximum(norm, 1e-12)), change)


@jax.jit
def clients_sum(model, rate, xs, ys):
    """Add the clients' updates."""
    return jax.tree.map(lambda leaf: leaf.sum(axis=0), jax.vmap(partial(clipped_update, model, rate))(xs, ys))


def train(folder, noise_multiplier=0.5, client_rate=0.1, seed=0, score="known rounds"):
    """Train, write the two files and return the model."""
    first_key, last_key, data_key, noise_key = jax.random.split(jax.random.key(seed), 4)
    initial = model = {
        "hidden": {
            "weights": jax.random.normal(first_key, (FEATURES, HIDDEN)) / FEATURES**0.5,
            "bias": jnp.zeros(HIDDEN),
        },
        "out": {
            "weights": jax.random.normal(last_key, (HIDDEN, CLASSES)) / HIDDEN**0.5,
            "bias": jnp.zeros(CLASSES),
        },
    }
    dim = len(flatten(model))
    xs, ys = made_data(data_key, ROUNDS * CLIENTS)

    # It is known how canaries that were never there score in a known round, so all take
    # part. For other scores, those show it that a fair coin leaves out.
    known = score == "known rounds"
    inserted = Insertion(CANARIES, CANARIES) if known else Insertion(2 * CANARIES)
    participation = shuffled_epochs(ROUNDS * CLIENTS, CLIENTS, 1, seed, inserted)
    canary_clients = CanaryClients(Canaries(SEED, inserted.count, dim), participation)
    # The expected number of clients: that of a round may show who was drawn.
    step = SERVER_RATE / (CLIENTS + CANARIES / ROUNDS)
    for t, key in enumerate(jax.random.split(noise_key, ROUNDS)):
        now = participation.clients(t)
        total = others = clients_sum(model, client_rate, xs[now], ys[now])
        for update in canary_clients.updates(t, CLIP_NORM):
            total = jax.tree.map(jnp.add, total, split(update, total))
        noise = split(noise_multiplier * CLIP_NORM * jax.random.normal(key, dim), total)
        noised = jax.tree.map(jnp.add, total, noise)
        delta = jax.tree.map(lambda leaf: step * leaf, noised)
        canary_clients.add(flatten(delta), t, known=step * flatten(others))
        model = jax.tree.map(jnp.add, model, delta)

    canary_clients.scores(score).save(Path(folder, "scores.json"))
    # The initial model is public, so that the attacker subtracts it; in units of the
    # canary's norm in the model.
    change = flatten(jax.tree.map(jnp.subtract, model, initial))
    np.save(Path(folder, "final.npy"), change / np.float32(step * CLIP_NORM))
    for warning in canary_clients.warnings():
        print(warning, file=sys.stderr)
    return model


if __name__ == "__main__":
    train(sys.argv[1])
