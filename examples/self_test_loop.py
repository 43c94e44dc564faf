"""A private training in plain numpy that tests itself under a watch.

Run ``canaryproof self-test`` on its functions ``training`` and ``broken``. The training is of a network with one
hidden layer on made data, by Poisson sampling. ``broken`` divides the noised sum by the number of examples that were
drawn, and not by the expected number.
"""

import numpy as np

import canaryproof as cp

EXAMPLES, FEATURES, HIDDEN, CLASSES = 1000, 64, 64, 10
DIM = FEATURES * HIDDEN + HIDDEN * CLASSES
RATE, NOISE_MULTIPLIER, CLIP_NORM, LEARNING_RATE, STEPS = 1 / 8, 1.0, 1.0, 0.5, 16


def made_data(rng):
    """Draw examples of ten classes around ten centres."""
    labels = rng.integers(CLASSES, size=EXAMPLES)
    return rng.normal(size=(CLASSES, FEATURES))[labels] + rng.normal(size=(EXAMPLES, FEATURES)), labels


def gradients(model, x, y):
    """Return the negative gradient of each example, shape (n, DIM)."""
    first, last = model[: FEATURES * HIDDEN].reshape(FEATURES, HIDDEN), model[FEATURES * HIDDEN :].reshape(HIDDEN, -1)
    hidden = np.maximum(x @ first, 0.0)
    logits = hidden @ last
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = np.eye(CLASSES)[y] - odds / odds.sum(axis=1, keepdims=True)
    back = (error @ last.T) * (hidden > 0.0)
    parts = x[:, :, np.newaxis] * back[:, np.newaxis], hidden[:, :, np.newaxis] * error[:, np.newaxis]
    return np.concatenate([part.reshape(len(x), -1) for part in parts], axis=1)


def clipped_sum(updates):
    """Return the sum of updates, each clipped to the clip norm."""
    lengths = np.linalg.norm(updates, axis=1, keepdims=True)
    return (updates * np.minimum(1.0, CLIP_NORM / np.maximum(lengths, 1e-12))).sum(axis=0)


def training(fault=False, seed=0):
    """Train for some steps under a watch, and return it."""
    rng = np.random.default_rng(seed)
    x, y = made_data(rng)
    model, expected = rng.normal(size=DIM) / 8.0, RATE * EXAMPLES
    claim = cp.accounting.poisson(NOISE_MULTIPLIER, rate=RATE, rounds=STEPS)
    watch = cp.watch(delta=1e-5, claim=claim, members=EXAMPLES, divisor=expected)
    clip = watch.clipping(clipped_sum, CLIP_NORM)
    for _ in range(STEPS):
        drawn = np.flatnonzero(rng.random(EXAMPLES) < RATE)
        rows = gradients(model, x[drawn], y[drawn])
        total = clip(rows)
        noised = total + CLIP_NORM * NOISE_MULTIPLIER * rng.normal(size=DIM)
        release = noised / (len(drawn) if fault else expected)
        watch.step(
            release=release,
            total=total,
            gradients=rows,
            drawn=drawn,
            clip_norm=CLIP_NORM,
        )
        model += LEARNING_RATE * release
    return watch


def broken():
    """Divide the noised sum by the number of examples that were drawn."""
    return training(fault=True)
