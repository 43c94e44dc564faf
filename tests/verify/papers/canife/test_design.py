import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from canaryproof.verify.papers.canife.attack import TrialRound, attack, halves, score_law
from canaryproof.verify.papers.canife.descent import DenseDesigner
from canaryproof.verify.papers.canife.design import Designer, Sample, noise, pool_samples
from canaryproof.verify.papers.canife.factored import FactoredUpdates
from canaryproof.verify.papers.canife.general import GeneralUpdates, LocalTraining
from canaryproof.verify.papers.canife.options import AS_PRINTED, CanaryOptions

POOL = 128


def pool(federation, count=POOL):
    inputs, labels = federation.test_inputs[:count, None], federation.test_labels[:count, None]
    return inputs, labels, np.ones((count, 1), np.float32)


@pytest.fixture(scope="module")
def digits(handwriting):
    """A designer that is compiled once, a state, and starts."""
    federation, _, params = handwriting
    updates = FactoredUpdates()
    designer = DenseDesigner(updates, CanaryOptions(steps=1000))
    return designer, updates.prepare(params, *pool(federation)), noise((8, 8, 1), 10)


def test_a_canary_is_nearly_orthogonal_to_all_clients_and_long_enough(digits):
    designer, state, starts = digits
    canary = designer.design(state, starts, np.random.default_rng(1))
    assert canary.healthy
    assert canary.norm > 1.0
    assert canary.health == 1.0 - canary.loss / canary.initial_loss > 0.99
    assert canary.label.sum() == pytest.approx(1.0, rel=1e-5)
    response = designer.updates.response(state, [canary])
    assert response.gram[0, 0] == pytest.approx(1.0, rel=1e-5)
    # The loss is the sum of squared products before clipping, and the hinge's part.
    squares = np.sum(response.products**2) * canary.norm**2
    assert canary.loss == pytest.approx(squares + max(1.25 - canary.norm, 0.0) ** 2, rel=1e-3)
    assert score_law(response, TrialRound(32, 0.2)).clients < 0.1


def test_designs_depend_on_nothing_but_their_arguments(digits):
    designer, state, starts = digits
    one, other = (designer.design(state, starts, np.random.default_rng(2)) for _ in range(2))
    np.testing.assert_array_equal(one.input, other.input)


def test_losses_of_the_paper(digits):
    designer, state, _ = digits
    rng = np.random.default_rng(4)
    sample = Sample(jnp.asarray(0.01 * rng.normal(size=(8, 8, 1)), jnp.float32), jax.nn.one_hot(3, 10))
    products, squared = (
        np.asarray(part, dtype=np.float64) for part in jax.jit(designer.updates.products)(state, sample)
    )
    mean = jax.jit(Designer(designer.updates, CanaryOptions(loss="mean", norm_constant=7.0)).loss)
    loss = jax.jit(designer.loss)
    hinge = max(1.25 - np.sqrt(squared), 0.0) ** 2
    assert float(loss(state, sample)[0]) == pytest.approx(np.sum(products**2) + hinge, rel=1e-5)
    without = np.sum(np.delete(products, 5) ** 2)
    assert float(loss(state, sample, 5)[0]) == pytest.approx(without + hinge, rel=1e-5)
    hinge = max(7.0 - np.sqrt(squared), 0.0) ** 2
    assert hinge > 0.0
    assert float(mean(state, sample)[0]) == pytest.approx(products.mean() ** 2 + hinge, rel=1e-5)


def test_a_sample_without_gradient_is_poor_and_designed_anew(handwriting):
    _, _, params = handwriting
    # No hidden unit ever fires, and class 3 is certain: a canary of class 3 has no gradient at all.
    dead = jax.tree.map(jnp.zeros_like, params)
    sizes = {name: layer["bias"].shape[0] for name, layer in dead.items()}
    out, hidden = (next(name for name, size in sizes.items() if size == width) for width in (10, 16))
    dead[hidden]["bias"] -= 1.0
    dead[out]["bias"] = dead[out]["bias"].at[3].set(200.0)
    updates = FactoredUpdates()
    state = updates.prepare(dead, np.zeros((2, 1, 8, 8, 1)), np.zeros((2, 1), int), np.ones((2, 1)))
    starts = noise((8, 8, 1), 10)
    designer = DenseDesigner(updates, replace(AS_PRINTED, steps=3, restarts=2))
    canary = designer.design(state, lambda rng: starts(rng)._replace(logits=np.eye(10)[3]), np.random.default_rng(1))
    assert not canary.healthy
    assert canary.attempts == 3
    assert (canary.loss, canary.norm, canary.health) == (1.0, 0.0, 0.0)
    assert np.all(np.isfinite(canary.input))


@pytest.mark.parametrize("norm_constant", [1.0, 2.0])
def test_a_canary_is_poor_above_a_share_of_the_loss_without_gradient(norm_constant):
    options = CanaryOptions(norm_constant=norm_constant, largest_loss=0.25, restarts=3)
    designer = DenseDesigner(FactoredUpdates(1.5), options)
    # What it is compared with is (1.5 norm_constant)².
    zero = (1.5 * norm_constant) ** 2
    losses = iter([0.6 * zero, 0.3 * zero, math.nan, 0.4 * zero, 0.9 * zero, 0.24 * zero])
    sample = Sample(np.zeros((8, 8, 1)), np.eye(10)[3])
    designer._descend = lambda *_: (sample, 7.0, next(losses), 1.25)
    poor, healthy = (designer.design(None, noise((8, 8, 1), 10), np.random.default_rng(1)) for _ in range(2))
    assert (poor.loss, poor.attempts, poor.healthy) == (0.3 * zero, 4, False)
    assert (healthy.loss, healthy.attempts, healthy.healthy) == (0.24 * zero, 2, True)
    assert (healthy.initial_loss, healthy.norm, healthy.health) == (7.0, 1.25, 1.0 - 0.24 * zero / 7.0)


def test_starts(handwriting):
    federation, _, _ = handwriting
    rng = np.random.default_rng(5)
    uniform, normal = noise((8, 8, 1), 10, "uniform")(rng), noise((8, 8, 1), 10)(rng)
    assert 0.0 <= uniform.input.min() <= uniform.input.max() < 1.0 < np.abs(normal.input).max()
    assert uniform.client == normal.client == -1
    inputs, labels, _ = pool(federation)
    start = pool_samples(inputs, labels, 10)(rng)
    np.testing.assert_array_equal(start.input, inputs[start.client, 0])
    assert np.argmax(start.logits) == labels[start.client, 0]
    assert np.exp(start.logits).sum() == pytest.approx(1.0, rel=1e-6)


def test_the_general_road_descends_to_the_same_canary(handwriting):
    federation, network, params = handwriting
    found = []
    for kind, updates in ((DenseDesigner, FactoredUpdates()), (Designer, GeneralUpdates(network.loss))):
        state = updates.prepare(params, *pool(federation, 32))
        designer = kind(updates, CanaryOptions(steps=25, restarts=0))
        found.append(designer.design(state, noise((8, 8, 1), 10), np.random.default_rng(6)))
    one, other = found
    assert one.loss < 0.5 * one.initial_loss
    assert one.initial_loss == pytest.approx(other.initial_loss, rel=1e-5)
    assert one.loss == pytest.approx(other.loss, rel=1e-3)
    np.testing.assert_allclose(one.input, other.input, atol=1e-3)


def test_a_canary_for_several_local_epochs(handwriting):
    federation, network, params = handwriting
    local = LocalTraining(rate=0.5, steps=3)
    updates = GeneralUpdates(network.loss, local=local, design=local)
    state = updates.prepare(params, *pool(federation, 32))
    designer = Designer(updates, CanaryOptions(steps=150, restarts=0))
    canary = designer.design(state, noise((8, 8, 1), 10), np.random.default_rng(7))
    law = score_law(updates.response(state, [canary]), TrialRound(8, 0.2))
    assert law.shift == pytest.approx(1.0, rel=0.1)
    assert law.clients < 0.1


def test_scores_on_mnist_are_those_of_noise(mnist):
    federation, _, params = mnist
    updates = FactoredUpdates()
    inputs, labels, mask = pool(federation, 512)
    state = updates.prepare(params, inputs, labels, mask)
    designer = DenseDesigner(updates)
    rng = np.random.default_rng(8)
    canary = designer.design(state, noise((28, 28, 1), 10), rng)
    assert canary.healthy
    response, mechanism = updates.response(state, [canary]), TrialRound(128, 0.2)
    law = score_law(response, mechanism)
    assert law.shift == pytest.approx(1.0, abs=0.05)
    assert 0.2 * 0.85 < law.deviation < 0.2 * 1.15
    observed, unobserved = attack(response, halves(10_000, 1, rng), mechanism, rng).of()
    # Five deviations of the difference of means are 0.02.
    assert observed.mean() - unobserved.mean() == pytest.approx(1.0, abs=0.05)
    for scores in (observed, unobserved):
        assert 0.2 * 0.85 < scores.std(ddof=1) < 0.2 * 1.15


def test_rate_1_fails_on_mnist_where_the_default_does_not(mnist):
    federation, _, params = mnist
    updates = FactoredUpdates()
    state = updates.prepare(params, *pool(federation, 512))
    poor = {}
    for name, settings, law in (("printed", AS_PRINTED, "uniform"), ("default", CanaryOptions(restarts=0), "normal")):
        designer, rng = DenseDesigner(updates, settings), np.random.default_rng(9)
        designs = [designer.design(state, noise((28, 28, 1), 10, law), rng) for _ in range(20)]
        poor[name] = sum(not canary.healthy for canary in designs)
    assert poor["default"] == 0
    assert poor["printed"] > 10
