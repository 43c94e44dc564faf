"""The compiled descent against the same in JAX, which differentiates by itself."""

import itertools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from canaryproof.verify.papers.canife.descent import DenseDesigner, soft_label
from canaryproof.verify.papers.canife.design import Designer, noise, pool_samples
from canaryproof.verify.papers.canife.factored import FactoredUpdates
from canaryproof.verify.papers.canife.options import CanaryOptions

SHAPE, CLASSES = (4, 4, 1), 5


def network(widths, seed):
    """Parameters of a dense network, as flax has them."""
    rng = np.random.default_rng(seed)
    sizes = (int(np.prod(SHAPE)), *widths, CLASSES)
    return {
        f"Dense_{i}": {
            "kernel": jnp.asarray(rng.normal(size=pair) / np.sqrt(pair[0]), jnp.float32),
            "bias": jnp.asarray(0.1 * rng.normal(size=pair[1]), jnp.float32),
        }
        for i, pair in enumerate(itertools.pairwise(sizes))
    }


def clients(count, examples, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=(count, examples))
    return rng.normal(size=(count, examples, *SHAPE)).astype(np.float32), labels, np.ones((count, examples), np.float32)


SHAPES = [((7,), 1, 20, 1.0), ((), 1, 300, 1.0), ((6, 9, 4), 3, 100, 0.5)]
# Each two of shape, label and loss, at a number of steps that is another one for the next; JAX compiles each row.
ROWS = [
    pytest.param(
        *shape, label, loss, steps, marks=pytest.mark.deep if (i + j + k) % 2 or (i + 2 * j + k) % 3 != number else ()
    )
    for i, shape in enumerate(SHAPES)
    for j, label in enumerate(("soft", "class"))
    for k, loss in enumerate(("covariance", "mean"))
    for number, steps in enumerate((30, 1, 0))
]


@pytest.mark.deep(every=3)
@pytest.mark.parametrize(("widths", "examples", "count", "rate", "label", "loss", "steps"), ROWS)
def test_the_descent_is_that_of_jax(widths, examples, count, rate, label, loss, steps):
    updates = FactoredUpdates(clip_norm=0.7, rate=rate, design_rate=rate)
    given = clients(count, examples, 1)
    state = updates.prepare(network(widths, 2), *given)
    options = CanaryOptions(steps=steps, rate=0.02, label=label, loss=loss, restarts=0, norm_constant=3.0)
    # A client that is excluded, and none.
    for starts in (noise(SHAPE, CLASSES), pool_samples(*given[:2], CLASSES)):
        found, expected = (
            kind(updates, options).design(state, starts, np.random.default_rng(3)) for kind in (DenseDesigner, Designer)
        )
        np.testing.assert_allclose(found.input, expected.input, rtol=2e-3, atol=2e-3)
        np.testing.assert_allclose(found.label, expected.label, rtol=2e-3, atol=2e-4)
        assert (found.initial_loss, found.loss, found.norm) == pytest.approx(
            (expected.initial_loss, expected.loss, expected.norm), rel=5e-3, abs=1e-6
        )


def test_a_norm_beyond_the_hinge_feels_none():
    updates = FactoredUpdates()
    state = updates.prepare(network((7,), 4), *clients(10, 1, 5))
    options = CanaryOptions(steps=3, norm_constant=1e-3, restarts=0)
    found, expected = (
        kind(updates, options).design(state, noise(SHAPE, CLASSES), np.random.default_rng(6))
        for kind in (DenseDesigner, Designer)
    )
    assert expected.norm > 1e-3
    np.testing.assert_allclose(found.input, expected.input, atol=1e-4)


def test_a_label_is_a_softmax():
    logits = np.array([1e4, 0.0, 1e4 - 1.0], np.float32)
    np.testing.assert_allclose(soft_label(logits), jax.nn.softmax(logits), rtol=1e-5)


KEPT = """
import numpy as np
from canaryproof.verify.papers.canife.descent import descend
rng = np.random.default_rng(0)
network = np.array([[64, 8], [8, 10]])
weights, clients, point = (
    (scale * rng.normal(size=shape)).astype(np.float32) for scale, shape in ((0.3, 610), (0.3, (1, 90, 150)), (1.0, 74))
)
losses = descend(network, weights, clients, 1, 150, point, True, True, 1.0, 1.0, 0.1, 200)
print(sum(descend.stats.cache_hits.values()), point.tobytes().hex(), *losses)
"""


@pytest.mark.deep
def test_the_first_run_has_the_bits_of_all_later_ones(tmp_path):
    """The first process compiles, and the second one loads what was kept: sums in any order could differ."""
    outputs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", KEPT],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stdout.split())
    (hits, *first), (more_hits, *second) = outputs
    assert (hits, more_hits) == ("0", "1")
    assert first == second
