"""Equation (1) once more, from the paper alone: gradients by JAX, its own Adam, and nothing of the package's design."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.example_libraries import optimizers
from scipy import stats

from canaryproof.verify.papers.canife.attack import Response, TrialRound, score_law
from canaryproof.verify.papers.canife.design import noise
from canaryproof.verify.papers.canife.options import CanaryOptions
from canaryproof.verify.papers.comparison.canife_designs import BOTH
from canaryproof.verify.papers.training.dense_audits import DenseAuditor

POOL, WIDTHS = 96, (4, 32, 128)
ROUND, DELTA = TrialRound(16, 0.2), 1e-5


def gradient(params, pixels, label):
    """Return ∇_θ ℓ of a sample with a soft label, flat."""

    def loss(weights):
        (first, first_bias), (second, second_bias) = weights
        logits = jax.nn.relu(pixels @ first + first_bias) @ second + second_bias
        return -label @ jax.nn.log_softmax(logits)

    return jnp.concatenate([jnp.ravel(part) for pair in jax.grad(loss)(params) for part in pair])


def canary(params, updates, pixels, logits, rate, norm_constant, steps):
    """Design by Algorithm 1: Adam on pixels and soft label, with the loss of equation (1) and C = 1."""
    start, update, get = optimizers.adam(rate)

    def loss(point):
        vector = gradient(params, point[0], jax.nn.softmax(point[1]))
        return jnp.sum((updates @ vector) ** 2) + jnp.maximum(norm_constant - jnp.linalg.norm(vector), 0.0) ** 2

    state = jax.lax.fori_loop(
        0, steps, lambda i, state: update(i, jax.grad(loss)(get(state)), state), start((pixels, logits))
    )
    pixels, logits = get(state)
    vector = gradient(params, pixels, jax.nn.softmax(logits))
    return pixels, vector / jnp.maximum(jnp.linalg.norm(vector), 1.0)


def models(handwriting, width, seed):
    """Return random parameters as flax has them and as pairs, and the clipped updates of a pool."""
    federation, rng = handwriting[0], np.random.default_rng(seed)
    pairs = [
        ((rng.normal(size=size) / np.sqrt(size[0])).astype(np.float32), (0.1 * rng.normal(size=size[1])).astype("f4"))
        for size in ((64, width), (width, 10))
    ]
    pool = rng.choice(len(federation.test_labels), POOL, replace=False)
    images, labels = federation.test_inputs[pool].reshape(POOL, -1), np.eye(10)[federation.test_labels[pool]]
    vectors = jax.vmap(lambda x, y: gradient(pairs, x, y))(images, labels)
    updates = -vectors / jnp.maximum(jnp.linalg.norm(vectors, axis=1, keepdims=True), 1.0)
    flax = {f"Dense_{i}": {"kernel": kernel, "bias": bias} for i, (kernel, bias) in enumerate(pairs)}
    return flax, pairs, pool, updates


def both(handwriting, width, seed, design, steps):
    """Return the canary's pixels and the law of its scores, ours and once more."""
    flax, pairs, pool, updates = models(handwriting, width, seed)
    start = noise((8, 8, 1), 10, design.start)(np.random.default_rng(seed))
    options = CanaryOptions(steps, design.options.rate, norm_constant=design.options.norm_constant, restarts=0)
    auditor = DenseAuditor(handwriting[0], options)
    found = auditor.design(flax, pool, np.random.default_rng(seed), lambda _: start)
    response = auditor.response(auditor.pool_state(flax, pool), found)
    pixels, own = _DESIGN(
        pairs, updates, start.input.ravel(), start.logits, design.options.rate, design.options.norm_constant, steps
    )
    products = np.asarray(updates @ own, dtype=float)
    squared = float(own @ own)
    law = Response(products[None], np.array([[squared]]))
    return (found.input.ravel(), score_law(response, ROUND)), (pixels, score_law(law, ROUND))


_DESIGN = jax.jit(canary, static_argnums=(6,))


@pytest.mark.parametrize("width", [pytest.param(w, marks=() if w == 32 else pytest.mark.deep) for w in WIDTHS])
@pytest.mark.parametrize("design", BOTH, ids=lambda design: design.name)
def test_the_first_steps_are_the_same(handwriting, width, design):
    (pixels, law), (expected, other) = both(handwriting, width, 1, design, 5)
    np.testing.assert_allclose(pixels, expected, atol=2e-3 * design.options.rate)
    assert law.shift == pytest.approx(other.shift, rel=1e-2)


@pytest.mark.deep
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("design", BOTH, ids=lambda design: design.name)
def test_whole_designs_attack_as_well(handwriting, width, design):
    # Thousands of steps at rate 1 go their own ways, so that pairs of the same start are compared in the mean.
    pairs = [both(handwriting, width, 100 + seed, design, 1000) for seed in range(24)]
    ours, theirs = (np.array([one[1].epsilon(DELTA) for one in kind]) for kind in zip(*pairs, strict=True))
    if np.ptp(ours - theirs) > 0.0:
        assert stats.ttest_rel(ours, theirs).pvalue > 1e-6
