"""Federated averaging with differential privacy and canaries, in plain numpy: ``python examples/numpy_loop.py FOLDER``.

It trains a network with one hidden layer on made data of 1,000 clients, 50 a round, beside 1,000 canary clients who
take part in one round each. Then ``canaryproof audit`` takes what it wrote:

- ``scores.json``: scores for an attacker who sees all model deltas, and knows each canary's round and all updates;
- ``final.npy``: what all rounds added to the model, for Algorithm 2's attacker (Andrew et al., arXiv 2302.03098), who
  sees the final model alone. It has 1,000 canaries of seed 7.
"""

import sys
from pathlib import Path

import numpy as np

from canaryproof import Canaries, CanaryClients, Insertion, flatten, shuffled_epochs, split

ROUNDS, CLIENTS, CANARIES, SEED = 20, 50, 1000, 7
CLIP_NORM, SERVER_RATE, LOCAL_STEPS = 1.0, 1.0, 3
FEATURES, HIDDEN, CLASSES, EXAMPLES = 64, 128, 4, 20


def made_data(rng, clients):
    """Draw examples of each client from one normal law a class, around centres that all clients share."""
    centres = np.random.default_rng(1).normal(size=(CLASSES, FEATURES))
    labels = rng.integers(CLASSES, size=(clients, EXAMPLES))
    return centres[labels] + 2.0 * rng.normal(size=(clients, EXAMPLES, FEATURES)), labels


def first_model(rng):
    """Draw the model that training begins with."""
    return {
        "in": rng.normal(size=(FEATURES, HIDDEN)) / np.sqrt(FEATURES),
        "in_bias": np.zeros(HIDDEN),
        "out": rng.normal(size=(HIDDEN, CLASSES)) / np.sqrt(HIDDEN),
        "out_bias": np.zeros(CLASSES),
    }


def forward(model, x):
    """Return the hidden layer and the classes' probabilities."""
    hidden = np.maximum(x @ model["in"] + model["in_bias"], 0.0)
    logits = hidden @ model["out"] + model["out_bias"]
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return hidden, odds / odds.sum(axis=-1, keepdims=True)


def client_update(model, x, y, rate):
    """Train on a client's examples and return the change of the model."""
    local = dict(model)
    for _ in range(LOCAL_STEPS):
        hidden, p = forward(local, x)
        error = (p - np.eye(CLASSES)[y]) / len(y)
        back = (error @ local["out"].T) * (hidden > 0.0)
        gradient = {"in": x.T @ back, "in_bias": back.sum(0), "out": hidden.T @ error, "out_bias": error.sum(0)}
        local = {name: local[name] - rate * gradient[name] for name in local}
    return flatten({name: local[name] - model[name] for name in local})


def insertion(score, count):
    """Let all canaries take part, if it is known how they score without: in known rounds. Else a fair coin decides."""
    return Insertion(count, count) if score == "known rounds" else Insertion(2 * count)


def train(folder, noise_multiplier=0.5, client_rate=0.1, seed=0, score="known rounds"):
    """Train, write the two files and return the model."""
    rng = np.random.default_rng(seed)
    model = first_model(rng)
    initial = flatten(model)
    xs, ys = made_data(rng, ROUNDS * CLIENTS)

    participation = shuffled_epochs(ROUNDS * CLIENTS, CLIENTS, 1, seed, insertion(score, CANARIES))
    canary_clients = CanaryClients(Canaries(SEED, len(participation.included), len(initial)), participation)
    # The expected number of clients: that of a round may show who was drawn.
    step = SERVER_RATE / (CLIENTS + CANARIES / ROUNDS)
    for t in range(ROUNDS):
        others = np.zeros(len(initial))
        for i in participation.clients(t):
            update = client_update(model, xs[i], ys[i], client_rate)
            others += update * min(1.0, CLIP_NORM / max(np.linalg.norm(update), 1e-12))
        noise = CLIP_NORM * noise_multiplier * rng.normal(size=len(others))
        delta = step * (others + canary_clients.total(t, CLIP_NORM) + noise)
        canary_clients.add(delta, t, known=step * others)
        model = {name: model[name] + change for name, change in split(delta, model).items()}

    canary_clients.scores(score).save(Path(folder, "scores.json"))
    # The initial model is public, so that the attacker subtracts it; in units of the canary's norm in the model.
    np.save(Path(folder, "final.npy"), (flatten(model) - initial) / (step * CLIP_NORM))
    return model


if __name__ == "__main__":
    train(sys.argv[1])
