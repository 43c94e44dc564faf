"""A private training in plain numpy that tests itself with ten canaries.

Run ``canaryproof self-test`` on it: the functions ``training`` and ``broken`` take what that hands over. The training
is of a network with one hidden layer on made data, by Poisson sampling. ``broken`` divides the noised sum by the number
of examples that were drawn, and not by the expected number.
"""

import numpy as np

EXAMPLES, FEATURES, HIDDEN, CLASSES = 1000, 64, 64, 10
DIM = FEATURES * HIDDEN + HIDDEN * CLASSES
RATE, NOISE_MULTIPLIER, CLIP_NORM, LEARNING_RATE, ROUNDS = 1 / 8, 1.0, 1.0, 0.5, 10


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
    """Return the sum of updates, each clipped to the clip norm; one that is not finite counts as zero."""
    finite = np.where(np.isfinite(updates).all(axis=1, keepdims=True), updates, 0.0)
    lengths = np.linalg.norm(finite, axis=1, keepdims=True)
    return (finite * np.minimum(1.0, CLIP_NORM / np.maximum(lengths, 1e-12))).sum(axis=0)


def release(updates, rng, divisor):
    """Return the noised sum of the clipped updates, divided."""
    return (clipped_sum(updates) + CLIP_NORM * NOISE_MULTIPLIER * rng.normal(size=DIM)) / divisor


def training(inspection, fault=False, seed=0):
    """Train for some rounds with the canaries of an inspection, which are the members from EXAMPLES on."""
    rng = np.random.default_rng(seed)
    x, y = made_data(rng)
    model = rng.normal(size=DIM) / 8.0
    expected = RATE * inspection.population
    for _ in range(ROUNDS):
        drawn = np.flatnonzero(rng.random(inspection.population) < RATE)
        examples = drawn[drawn < EXAMPLES]
        others = gradients(model, x[examples], y[examples])
        canaries = [inspection.update(i) for i in drawn[len(examples) :]]
        change = release(np.array([*others, *canaries]), rng, len(drawn) if fault else expected)
        inspection.add(change, drawn, clipped_sum(others) / expected)
        model += LEARNING_RATE * change

    def step(updates):
        return release(updates, np.random.default_rng(seed), max(1, len(updates)) if fault else expected)

    inspection.replay(step, gradients(model, x[:60], y[:60]))


def broken(inspection):
    """Divide the noised sum by the number of examples that were drawn."""
    training(inspection, fault=True)
