import subprocess
import sys
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.canaries.shapes import flatten, omitted_tensors, split

Pair = namedtuple("Pair", ["weights", "bias"])


@dataclass
class Layer:
    """A tree of JAX's once it is registered."""

    weights: object
    rest: object


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
    from jax import Array, jit, tree
    from jax import numpy as jax_numpy
    from jax.flatten_util import ravel_pytree
    from jax.tree_util import register_dataclass

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
    parts = split(vector, coarse)
    for part, leaf in zip(tree.leaves(parts), tree.leaves(coarse), strict=True):
        assert isinstance(part, Array)
        assert (part.dtype, part.sharding) == (leaf.dtype, leaf.sharding)
    assert np.array_equal(flatten(parts), vector)
    # Whatever JAX knows for a tree, in its order; under a transformation too.
    register_dataclass(Layer)
    layer = Layer(jax_numpy.ones((2, 2)), {"b": jax_numpy.zeros(3)})
    assert np.array_equal(flatten([layer]), ravel_pytree([layer])[0])
    assert isinstance(split(np.arange(7.0), layer), Layer)
    added = jit(lambda one: tree.map(jax_numpy.add, one, split(np.arange(7.0), one)))(layer)
    assert np.array_equal(flatten(added), [1, 2, 3, 4, 4, 5, 6])


@pytest.mark.deep
@pytest.mark.skipif(find_spec("jax") is None, reason="needs the extra 'federated'")
def test_jax_has_the_same_order():
    # JAX's threads would warn every later test of this process that forks.
    program = f"import {Path(__file__).stem}; {Path(__file__).stem}.compare_with_jax()"
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, check=True)


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch, which the extra 'opacus' brings")
@pytest.mark.filterwarnings("ignore")
def test_torchs_modules_named_parameters_and_state_dicts_are_trees():
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2, bias=False))
    names = ["0.bias", "0.weight", "1.weight"]
    vector = np.concatenate([model.state_dict()[name].numpy().ravel() for name in names])
    for tree in (model, model.named_parameters(), dict(model.named_parameters()), model.state_dict()):
        assert np.array_equal(flatten(tree), vector)
    for like in (model, model.named_parameters(), model.state_dict()):
        parts = split(np.arange(12.0), like)
        assert {*parts} == {*names}
        values = [part.flatten().tolist() for _, part in sorted(parts.items())]
        assert values == [[0, 1], [*range(2, 8)], [*range(8, 12)]]
        assert all(part.dtype == torch.float32 and not part.requires_grad for part in parts.values())
    coarse = {"a": torch.ones(2, dtype=torch.bfloat16), "b": torch.ones(1, dtype=torch.float64, device="meta")}
    assert flatten(coarse["a"]).dtype == np.float32
    parts = split(np.arange(3.0), coarse)
    assert (parts["a"].dtype, parts["b"].dtype, parts["b"].device.type) == (torch.bfloat16, torch.float64, "meta")
    assert parts["a"].tolist() == [0, 1]
    assert flatten([torch.ones(2, dtype=torch.float64, requires_grad=True)]).dtype == np.float64
    # What is frozen is no part of what is released.
    model[0].weight.requires_grad_(False)
    assert len(flatten(model)) == 6


class FakeTensor:
    """What of torch's tensors is asked for, where there is no torch."""

    requires_grad = True
    is_meta = is_quantized = False
    layout = "torch.strided"

    def __init__(self, values, bits=32):
        self.values, self.bits, self.shape = np.asarray(values, np.float32), bits, np.shape(values)

    def detach(self):
        return self

    cpu = detach

    def is_floating_point(self):
        return True

    def element_size(self):
        return self.bits // 8

    def numel(self):
        return self.values.size

    def data_ptr(self):
        return self.values.ctypes.data

    def is_contiguous(self):
        return True

    def float(self):
        return FakeTensor(self.values)

    def numpy(self):
        assert self.bits > 16
        return self.values

    def new_tensor(self, values):
        return FakeTensor(values, self.bits)


class FakeModule:
    def named_parameters(self):
        frozen = FakeTensor([2.0])
        frozen.requires_grad = False
        yield from {"b": FakeTensor([1.0], 16), "a": FakeTensor([3.0]), "c": frozen}.items()


def test_what_is_asked_of_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=FakeTensor))
    monkeypatch.setitem(sys.modules, "torch.nn", SimpleNamespace(Module=FakeModule))
    assert flatten(FakeModule()).tolist() == [3, 1]
    assert flatten(FakeModule().named_parameters()).tolist() == [3, 1, 2]
    parts = split(np.arange(2.0), FakeModule())
    assert [(name, part.bits, part.values.tolist()) for name, part in parts.items()] == [("b", 16, [1]), ("a", 32, [0])]


def test_arrays_keep_their_dtype():
    like = {"a": np.zeros(2, np.float16), "b": np.zeros(1, np.float32)}
    parts = split(np.arange(3.0), like)
    assert [part.dtype.char for part in parts.values()] == ["e", "f"]


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


STATE = {
    "conv.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "bn.weight": np.ones(2, np.float16),
    "bn.running_mean": np.zeros(2, np.float32),
    "bn.running_var": np.ones(2, np.float32),
    "bn.num_batches_tracked": np.array(7, np.int64),
}


def test_counters_and_running_statistics_are_named_and_never_have_coordinates():
    floats = {name: array for name, array in STATE.items() if array.dtype.kind == "f"}
    for call, field in ((flatten, "tree"), (lambda tree: split(np.ones(12), tree), "like")):
        with pytest.raises(ValueError, match=f"^{field}: must be .* not bn.num_batches_tracked has int64; .*skip"):
            call(STATE)
        with pytest.raises(ValueError, match=f"^{field}: bn.running_mean, bn.running_var are statistics of the data"):
            call(floats)
    skip = ["*.num_batches_tracked", "*.running_*"]
    vector = flatten(STATE, skip)
    assert vector.tolist() == [1, 1, 0, 1, 2, 3, 4, 5]
    parts = split(-vector, STATE, skip)
    # What is skipped stays, so that the whole can be loaded as a state.
    assert list(parts) == list(STATE)
    assert parts["bn.num_batches_tracked"] == 7
    assert parts["bn.running_var"].tolist() == [1, 1]
    assert parts["bn.weight"].dtype == np.float16
    assert np.array_equal(flatten(parts, skip), -vector)
    # Whoever averages statistics too says so, and a list's items are named by their numbers.
    assert len(flatten(STATE, ["*.num_batches_tracked"])) == 12
    assert len(flatten(list(STATE.values()), ["4"])) == 12


def test_sums_of_integers_have_a_scale():
    sums = {"a": np.array([-3, 5], np.int32), "b": np.array([[2**30]], np.int32)}
    assert flatten(sums, scale=2.0**-16).tolist() == [-3 / 2**16, 5 / 2**16, 2.0**14]


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch, which the extra 'opacus' brings")
@pytest.mark.filterwarnings("ignore")
def test_a_modules_parameters_without_coordinates_are_listed():
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False), nn.BatchNorm1d(3), nn.Linear(3, 1))
    model[1].weight = model[0].weight
    model[3].weight.requires_grad_(False)
    assert omitted_tensors(model) == {
        "1.weight": "tied to 0.weight",
        "3.weight": "frozen",
        "2.running_mean": "buffer",
        "2.running_var": "buffer",
        "2.num_batches_tracked": "counter",
    }
    skip = ["1.weight", "3.weight", "*.running_*", "*.num_batches_tracked"]
    assert np.array_equal(flatten(model), flatten(model.state_dict(), skip))
    back = split(flatten(model), model.state_dict(), skip)
    model.load_state_dict(back)


@pytest.mark.parametrize("tie", [lambda array: array, lambda array: array.T, lambda array: array[1:], np.ravel])
def test_arrays_that_share_their_memory_are_refused_by_both_names(tie):
    embed = np.arange(12.0).reshape(3, 4)
    state = {"body": np.ones(3), "embed": embed, "head": tie(embed)}
    for call in (lambda: flatten(state), lambda: split(np.zeros(30), state)):
        with pytest.raises(ValueError, match="embed and head share their memory, as tied weights do"):
            call()
    np.testing.assert_array_equal(flatten(state, skip=["head"]), [1.0] * 3 + list(range(12)))
    # Parts of one array that do not overlap are no ties.
    both = {"even": embed[:, ::2], "odd": embed[:, 1::2], "none": embed[:0]}
    assert len(flatten(both)) == 12
    assert len(flatten({"first": embed[:1], "others": embed[1:]})) == 12


@pytest.mark.parametrize(
    ("name", "value", "form"),
    [("is_meta", True, "meta"), ("is_quantized", True, "quantised"), ("layout", "torch.sparse_coo", "sparse_coo")],
)
def test_tensors_of_torch_without_plain_memory_are_refused_by_name(monkeypatch, name, value, form):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=FakeTensor))
    monkeypatch.setitem(sys.modules, "torch.nn", SimpleNamespace(Module=FakeModule))
    strange, plain = FakeTensor([1.0, 2.0]), FakeTensor([3.0])
    setattr(strange, name, value)
    with pytest.raises(ValueError, match=f"tree: head: must be a dense tensor of numbers in memory, not a {form} one"):
        flatten({"body": plain, "head": strange})
    with pytest.raises(ValueError, match="body and head share their memory"):
        flatten({"body": plain, "head": plain})
    np.testing.assert_array_equal(flatten({"body": plain, "head": strange}, skip=["head"]), [3.0])
