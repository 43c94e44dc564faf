"""Algorithms 2 and 3 in plain numpy and float64, for a network of two layers: what the trainer is compared with."""

import numpy as np

INPUTS, HIDDEN, CLASSES = 6, 5, 3
SHAPES = {
    "first": {"bias": (HIDDEN,), "weights": (INPUTS, HIDDEN)},
    "second": {"bias": (CLASSES,), "weights": (HIDDEN, CLASSES)},
}
DIM = HIDDEN + INPUTS * HIDDEN + CLASSES + HIDDEN * CLASSES


def parameters(theta):
    """Cut θ into biases and weights: layers and their parts by name."""
    ends = np.cumsum([HIDDEN, INPUTS * HIDDEN, CLASSES])
    bias, weights, last_bias, last_weights = np.split(theta, ends)
    return bias, weights.reshape(INPUTS, HIDDEN), last_bias, last_weights.reshape(HIDDEN, CLASSES)


def gradient(theta, x, y):
    """Gradient of the mean cross-entropy, by hand."""
    bias, weights, last_bias, last_weights = parameters(theta)
    hidden = np.tanh(x @ weights + bias)
    scores = hidden @ last_weights + last_bias
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    error = (odds / odds.sum(axis=1, keepdims=True) - np.eye(CLASSES)[y]) / len(x)
    back = error @ last_weights.T * (1.0 - hidden**2)
    return np.concatenate([back.sum(axis=0), (x.T @ back).ravel(), error.sum(axis=0), (hidden.T @ error).ravel()])


def update(theta, x, y, rate, epochs, batch_size):
    """τ(θ): what a client with these examples returns."""
    local = theta.copy()
    for _ in range(epochs):
        for start in range(0, len(x), batch_size):
            local -= rate * gradient(local, x[start : start + batch_size], y[start : start + batch_size])
    return local - theta


def clip(x, norm):
    length = np.linalg.norm(x)
    return x if length == 0.0 else x * min(1.0, norm / length)


def project(x, norm):
    return x * norm / np.linalg.norm(x)


def deltas(theta, clients, canaries, noise, clip_norm, rate, momentum, local):
    """Lines 2 to 9 of Algorithm 2, of which 3 differs in nothing here: ρ̄ and θ of each round.

    ``clients(t)`` are pairs of examples, ``canaries(t)`` vectors, ``noise(t)`` Z(t), ``local`` what ``update`` takes.
    """
    velocity = np.zeros_like(theta)
    t = 0
    while (here := clients(t)) is not None:
        rho = np.zeros_like(theta)
        for x, y in here:
            rho += clip(update(theta, x, y, *local), clip_norm)
        for c in canaries(t):
            rho += project(c, clip_norm)
        m = len(here) + len(canaries(t))
        delta = (rho + noise(t)) / m
        velocity = momentum * velocity + delta
        theta = theta + rate * velocity
        yield delta, theta
        t += 1
