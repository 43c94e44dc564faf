from itertools import pairwise

import jax
import numpy as np
import pytest

from canaryproof.verify.papers.canife.design import Canary, Sample
from canaryproof.verify.papers.canife.factored import FactoredUpdates, dense_layers
from canaryproof.verify.papers.canife.general import GeneralUpdates, LocalTraining

RATE, DESIGN_RATE, CLIP = 0.6, 1.7, 0.8


@pytest.fixture(scope="module")
def roads(handwriting):
    """Both roads, in double precision, for clients of one to three examples."""
    federation, network, params = handwriting
    rng = np.random.default_rng(2)
    inputs = federation.inputs[:36].reshape(12, 3, 8, 8, 1)
    labels, mask = federation.labels[:36].reshape(12, 3), np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]] * 6)
    # A mild client, whose update is not clipped.
    inputs[1] *= 0.01
    drawn = rng.normal(size=(2, 8, 8, 1)), rng.dirichlet(np.ones(10), 2)
    canaries = [Canary(z, y, 1.0, 1.0, 1.0) for z, y in zip(*drawn, strict=True)]
    with jax.enable_x64(True):
        params = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), params)
        found = []
        local, design = LocalTraining(RATE), LocalTraining(DESIGN_RATE)
        for updates in (FactoredUpdates(CLIP, RATE, DESIGN_RATE), GeneralUpdates(network.loss, CLIP, local, design)):
            state = updates.prepare(params, inputs, labels, mask)
            sample = Sample(*(part[0] for part in drawn))
            products = tuple(map(np.asarray, jax.jit(updates.products)(state, sample)))
            found.append((products, updates.response(state, canaries)))
    return found


def test_products_are_the_general_ones(roads):
    (one, _), (other, _) = roads
    np.testing.assert_allclose(one[0], other[0], rtol=1e-11)
    np.testing.assert_allclose(one[1], other[1], rtol=1e-11)


def test_responses_are_the_general_ones(roads):
    (_, one), (_, other) = roads
    np.testing.assert_allclose(one.products, other.products, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(one.gram, other.gram, rtol=1e-10)
    assert np.diag(one.gram) == pytest.approx(CLIP**2, rel=1e-12)


def dense(*sizes):
    return {"kernel": np.zeros(sizes), "bias": np.zeros(sizes[-1])}


def test_layers_are_ordered_by_what_fits():
    layers = dense_layers({"a": dense(4, 3), "b": {"c": dense(9, 4)}}, 9)
    assert [layer.kernel.shape for layer in layers] == [(9, 4), (4, 3)]


@pytest.mark.parametrize("widths", [(9, 9, 3), (9, 3, 3), (9, 9, 9), (9, 4, 9, 3)])
def test_a_layer_may_be_as_wide_as_what_enters_another(widths):
    sizes = list(pairwise(widths))
    params = {str(i): dense(*pair) for i, pair in enumerate(reversed(sizes))}
    if widths == (9, 9, 9):
        with pytest.raises(ValueError, match="in one order"):
            dense_layers(params, 9)
        return
    assert [layer.kernel.shape for layer in dense_layers(params, 9)] == sizes


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"a": dense(3, 3, 1, 4)}, "only dense layers"),
        ({"a": {"embedding": np.zeros((4, 2))}}, "only dense layers"),
        ({"a": {"kernel": np.zeros((4, 2))}}, "only dense layers"),
        ({"a": dense(9, 4), "b": dense(5, 3)}, r"must fit together in one order from 9 inputs on"),
        ({"a": dense(9, 4), "b": dense(4, 4), "c": dense(4, 4), "d": dense(4, 3)}, "in one order"),
    ],
)
def test_what_is_not_dense_is_refused(params, rule):
    with pytest.raises(ValueError, match=rule):
        dense_layers(params, 9)
