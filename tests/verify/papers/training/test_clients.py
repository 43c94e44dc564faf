from dataclasses import replace

import numpy as np
import plain
import pytest

pytest.importorskip("jax", reason="training needs the extra 'federated'")

import jax
import jax.numpy as jnp
import tiny
from jax.flatten_util import ravel_pytree

from canaryproof.verify.papers.training import clients as module
from canaryproof.verify.papers.training import networks
from canaryproof.verify.papers.training.clients import Clients

SIZES = [4, 1, 7, 3, 2, 9, 5]
EVERYBODY = np.arange(len(SIZES))
# Rounding of float32 in a few hundred operations of numbers near 1.
ROUNDING = 2e-6


@pytest.fixture(scope="module")
def federation():
    return tiny.federation(SIZES)


@pytest.fixture(scope="module")
def theta():
    return np.asarray(ravel_pytree(tiny.init(3))[0])


def made(federation, *, rate=0.3, epochs=1, batch_size=20, examples=6, cohort=7, model=tiny.MODEL):
    return Clients(federation, model, rate=rate, epochs=epochs, batch_size=batch_size, examples=examples, cohort=cohort)


@pytest.fixture(scope="module", params=[(1, 20), (3, 2), (1, 4)], ids=str)
def trained(request, federation):
    """Clients with some epochs and a batch size, and what their updates should be, as a function of θ."""
    epochs, batch_size = request.param

    def updates(theta):
        return [
            plain.update(theta.astype(float), *tiny.examples(federation, i, 6), 0.3, epochs, batch_size)
            for i in EVERYBODY
        ]

    return made(federation, epochs=epochs, batch_size=batch_size), updates


@pytest.mark.deep(every=3)
@pytest.mark.parametrize("clip_norm", [0.05, 0.3, 100.0])
def test_the_sum_is_that_of_clipped_updates_of_plain_numpy(trained, theta, clip_norm):
    clients, updates = trained
    expected = updates(theta)

    found = clients.sum(theta, EVERYBODY, clip_norm)

    np.testing.assert_allclose(found.norms, [np.linalg.norm(update) for update in expected], rtol=20 * ROUNDING)
    np.testing.assert_allclose(
        found.total, sum(plain.clip(update, clip_norm) for update in expected), atol=len(SIZES) * ROUNDING
    )


def test_only_those_who_take_part_train_in_their_order_and_nothing_is_compiled_twice(trained, theta):
    clients, updates = trained
    expected = updates(theta)
    clients.sum(theta, EVERYBODY, 1.0)
    compiled = clients._sum._cache_size()

    for chosen in ([], [5], [6, 0, 2], [1, 1, 1, 3, 4, 5, 2, 0, 0]):
        found = clients.sum(theta, np.array(chosen, dtype=np.int64), 1.0)

        np.testing.assert_allclose(found.norms, [np.linalg.norm(expected[i]) for i in chosen], rtol=20 * ROUNDING)
        total = sum((plain.clip(expected[i], 1.0) for i in chosen), np.zeros(plain.DIM))
        np.testing.assert_allclose(found.total, total, atol=10 * ROUNDING)
    assert clients._sum._cache_size() == compiled == 1


def test_chunks_change_only_rounding(federation, theta, monkeypatch):
    whole = made(federation).sum(theta, EVERYBODY, 0.3)
    # As many chunks as memory for three clients needs, all of one size: 7 clients are 3 + 3 + 1.
    monkeypatch.setattr(module, "_HELD", 3 * plain.DIM)
    clients = made(federation)
    found = clients.sum(theta, EVERYBODY, 0.3)

    assert clients.chunk == 3
    np.testing.assert_allclose(found.norms, whole.norms, rtol=ROUNDING)
    np.testing.assert_allclose(found.total, whole.total, atol=len(SIZES) * ROUNDING)


def test_chunks_are_even_and_of_few_sizes(federation, monkeypatch):
    monkeypatch.setattr(module, "_HELD", 40 * plain.DIM)

    assert [made(federation, cohort=cohort).chunk for cohort in (0, 1, 40, 41, 100)] == [1, 1, 40, 22, 36]
    assert {made(federation, cohort=cohort).chunk for cohort in range(32, 41)} == {32, 36, 40}


def test_chunks_are_small_where_what_is_between_inputs_and_loss_is_much(federation, monkeypatch):
    one, two, ten = (module.between(tiny.MODEL, federation, examples) for examples in (1, 2, 10))
    # An example makes hidden units and scores at the least, more than once; few numbers are the whole batch's.
    assert plain.HIDDEN + plain.CLASSES < two - one <= one < 100
    assert ten - one == 9 * (two - one)
    monkeypatch.setattr(module, "_HELD_BETWEEN", 3 * module.between(tiny.MODEL, federation, 6))
    assert [made(federation, examples=examples).chunk for examples in (6, 3, 1)] == [3, 4, 7]
    monkeypatch.setattr(module, "_HELD_BETWEEN", 1)
    assert made(federation).chunk == 1


def test_one_example_a_client_gives_gradients_of_single_examples(theta):
    """DP-SGD: by finite differences of the loss, a third road."""
    federation = tiny.federation([1] * 5)
    clients = made(federation, rate=1.0, batch_size=1, examples=1, cohort=5)
    one = np.array([2])
    x, y = federation.inputs[one], federation.labels[one]
    _, unravel = ravel_pytree(tiny.init(0))

    def loss(vector):
        return float(tiny.loss(unravel(jnp.asarray(vector, jnp.float32)), x, y, np.ones(1, np.float32)))

    found = clients.sum(theta, one, 1e9).total

    steps = 0.01 * np.eye(plain.DIM)
    differences = [(loss(theta - step) - loss(theta + step)) / 0.02 for step in steps]
    np.testing.assert_allclose(found, differences, atol=1e-4)


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e25])
def test_a_norm_neither_overflows_nor_underflows(size):
    rng = np.random.default_rng(0)
    updates = {"a": rng.normal(size=(3, 4, 5)).astype(np.float32), "b": rng.normal(size=(3, 2)).astype(np.float32)}
    updates["a"][1], updates["b"][1] = 0.0, 0.0

    found = module._norms(jax.tree.map(lambda leaf: leaf * np.float32(size), updates))

    flat = np.concatenate([updates["a"].reshape(3, -1), updates["b"]], axis=1).astype(float)
    np.testing.assert_allclose(np.asarray(found, float), size * np.linalg.norm(flat, axis=1), rtol=1e-6)
    assert found[1] == 0.0


@pytest.mark.parametrize("rate", [0.0, 1e-12, 1e30], ids=["still", "little", "far"])
def test_clipping_serves_any_update_that_is_finite(federation, theta, rate):
    """No update at all, whose norm is 0, and one whose squared norm is past float32."""
    found = made(federation, rate=rate).sum(theta, EVERYBODY, 0.1)

    direct = made(federation, rate=1.0).sum(theta, EVERYBODY, 1e9)
    expected = [plain.clip(rate * update, 0.1) for update in rows(federation, theta)]
    assert np.isfinite(found.total).all()
    np.testing.assert_allclose(found.norms, rate * direct.norms.astype(float), rtol=20 * ROUNDING)
    np.testing.assert_allclose(found.total, sum(expected), atol=len(SIZES) * ROUNDING * min(0.1, rate))


def rows(federation, theta):
    return [plain.update(theta.astype(float), *tiny.examples(federation, i, 6), 1.0, 1, 20) for i in EVERYBODY]


def test_an_update_that_is_not_finite_is_not_clipped_but_seen(federation, theta):
    found = made(federation, rate=3e38, epochs=2, batch_size=2).sum(theta, EVERYBODY, 0.1)

    assert not np.isfinite(found.norms).all()
    assert not np.isfinite(found.total).all()


@pytest.mark.parametrize(
    ("examples", "size"),
    [(1, 1.0), (4, 1e15), *(pytest.param(*row, marks=pytest.mark.deep) for row in ((4, 1.0), (1, 1e15)))],
)
def test_one_step_of_the_two_layer_network_by_factors_is_that_by_updates(examples, size):
    rng = np.random.default_rng(5)
    data = tiny.federation(SIZES)
    images = (size * rng.normal(size=(len(data.labels), 3, 2, 1))).astype(np.float32)
    data = replace(data, inputs=images, test_inputs=images[:1])
    network = networks.model("two_layer", data, 6)
    theta = np.asarray(ravel_pytree(network.init(1))[0])
    for clip_norm in (0.1, 0.5 * size, 1e30):
        found, expected = (
            made(data, batch_size=4, examples=examples, model=one).sum(theta, EVERYBODY, clip_norm)
            for one in (network, replace(network, name="any other"))
        )
        assert expected.norms.max() > 0.1 * size
        np.testing.assert_allclose(found.norms, expected.norms, rtol=1e-5)
        np.testing.assert_allclose(found.total, expected.total, rtol=1e-5, atol=1e-6 * np.abs(expected.total).max())
