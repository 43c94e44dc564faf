import subprocess
import sys
from collections import OrderedDict, namedtuple
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.canaries.shapes import flatten, split

Pair = namedtuple("Pair", ["weights", "bias"])


class Tensor:
    """What numpy takes for an array although it is none, as torch's."""

    def __init__(self, values):
        self._values = np.asarray(values, np.float32)
        self.shape = self._values.shape

    def __array__(self, dtype=None, copy=None):
        return self._values


def shapes():
    return st.lists(st.integers(0, 3), max_size=3).map(lambda shape: np.zeros(shape, np.float32))


def trees():
    return st.recursive(
        shapes() | st.none(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.tuples(inner, inner).map(lambda pair: Pair(*pair))
            | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
        ),
        max_leaves=6,
    )


def leaves(tree):
    """The arrays in the documented order, said once more."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (list, tuple)):
        return [leaf for item in tree for leaf in leaves(item)]
    return [tree]


def structure(tree):
    if isinstance(tree, dict):
        return {key: structure(value) for key, value in tree.items()}, list(tree)
    if isinstance(tree, (list, tuple)):
        return type(tree), [structure(item) for item in tree]
    return None if tree is None else np.shape(tree)


def test_order():
    tree = {"b": [np.array([[1, 2], [3, 4]], np.float32), None, (np.float32(5),)], "a": {"y": [6.0], "x": Tensor([7])}}
    # A list of numbers is a list of arrays.
    assert flatten(tree).tolist() == [7, 6, 1, 2, 3, 4, 5]
    assert flatten(np.arange(4.0).reshape(2, 2).T).tolist() == [0, 2, 1, 3]


@given(trees())
def test_split_and_flatten_undo_each_other(tree):
    size = sum(leaf.size for leaf in leaves(tree))
    vector = np.arange(size, dtype=np.float32)
    parts = split(vector, tree)
    assert structure(parts) == structure(tree)
    if leaves(tree):
        assert np.array_equal(flatten(parts), vector)
        assert np.array_equal(np.concatenate([leaf.ravel() for leaf in leaves(parts)]), vector)


def compare_with_jax():
    from jax import numpy as jax_numpy
    from jax import tree
    from jax.flatten_util import ravel_pytree

    model = {
        "out": Pair(jax_numpy.ones((2, 3)), jax_numpy.zeros(3)),
        "hidden": [{"w": jax_numpy.full((3, 2), 4.0), "b": None}, jax_numpy.arange(2.0)],
    }
    vector, back = ravel_pytree(model)
    assert np.array_equal(flatten(model), vector)
    canary = Canaries(1, 1, len(vector)).vector(0)
    assert tree.all(tree.map(np.array_equal, back(jax_numpy.asarray(canary)), split(canary, model)))
    coarse = tree.map(lambda leaf: leaf.astype(jax_numpy.bfloat16), model)
    assert flatten(coarse).dtype == np.float32
    assert np.array_equal(flatten(coarse), vector)


@pytest.mark.skipif(find_spec("jax") is None, reason="needs the extra 'federated'")
def test_jax_has_the_same_order():
    # JAX's threads would warn every later test of this process that forks.
    program = f"import {Path(__file__).stem}; {Path(__file__).stem}.compare_with_jax()"
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, check=True)


def test_a_mappings_order_of_filling_does_not_matter():
    state = OrderedDict(weight=Tensor([[1, 2]]), bias=Tensor([3]))
    delta = {"bias": np.array([3.0]), "weight": np.array([[1.0, 2.0]])}
    assert np.array_equal(flatten(state), flatten(delta))
    parts = split(flatten(delta), state)
    assert isinstance(parts, OrderedDict)
    # Its own order is kept for whoever goes by that.
    assert list(parts) == ["weight", "bias"]
    assert parts["weight"].tolist() == [[1, 2]]


def test_a_canary_is_found_where_it_was_put():
    like = {"weights": np.zeros((30, 40), np.float32), "bias": np.zeros(40, np.float32)}
    canaries = Canaries(2, 3, 1240)
    model = {name: like[name] + part for name, part in split(canaries.vector(1), like).items()}
    cosines = canaries.cosines(flatten(model))
    assert cosines[1] == pytest.approx(1.0, abs=1e-6)
    assert np.abs(cosines[[0, 2]]).max() < 0.5


@pytest.mark.parametrize(
    ("dtypes", "result"),
    [("e", "f"), ("f", "f"), ("ef", "f"), ("fd", "d"), ("d", "d")],
)
def test_the_vector_has_the_digits_of_its_arrays(dtypes, result):
    tree = [np.array([0.1], dtype) for dtype in dtypes]
    assert flatten(tree).dtype.char == result
    assert flatten(tree).tolist() == [float(array[0]) for array in tree]


def test_split_copies_nothing():
    vector = np.arange(6.0)
    parts = split(vector, [np.zeros((2, 2)), np.zeros(2)])
    assert all(np.shares_memory(part, vector) for part in parts)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": [np.zeros(2), np.zeros(2, int)]}, r"^tree\['a'\]\[1\]: must be .* not int64"),
        ({"steps": 3}, r"^tree\['steps'\]: must be .* not int64"),
        ([np.zeros(2, bool)], r"^tree\[0\]: must be"),
        (np.zeros(2, complex), "^tree: must be .* not complex128"),
        (np.zeros(2, np.longdouble), "^tree: must be"),
        (object(), "^tree: must be .* not object"),
        (np.zeros(2, "V4"), "^tree: must be"),
        ({}, "^tree: has no arrays"),
        (None, "^tree: has no arrays"),
    ],
)
def test_what_is_no_tree_of_floats_is_refused(tree, message):
    with pytest.raises(ValueError, match=message):
        flatten(tree)


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (np.zeros(5), "vector must have 6 coordinates, as like has, not 5"),
        (np.zeros(7), "vector must have 6 coordinates, as like has, not 7"),
        (np.zeros(0), "vector must have 6 coordinates, as like has, not 0"),
        (np.zeros((6, 1)), "vector must have one axis, not 2"),
    ],
)
def test_a_vector_of_another_size_is_refused(vector, message):
    with pytest.raises(ValueError, match=message):
        split(vector, [np.zeros((2, 2)), np.zeros(2)])
