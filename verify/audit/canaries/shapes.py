"""Between a model's parameters, as a framework holds them, and the flat vectors of canaries and deltas.

A tree is an array of numpy, JAX or torch, on any device, or a mapping, list or tuple of trees. It may also be

- a torch module, or the iterator of its ``named_parameters()``: a mapping from names to parameters. A module gives
  those that are trained, ``requires_grad``, since the others are no part of what is released;
- a torch state dict: a mapping. A parameter that two modules share stands in it twice, and is refused by both names
  until ``skip`` has one of them; a module gives it once;
- any other pytree once JAX is loaded, such as a registered dataclass: its children in JAX's order.

Its coordinates stand in one order. A mapping's values are sorted by key, whatever order it was filled in. A sequence's
items follow one another, and an array's entries go row by row. ``None`` has no coordinates. This is the order of
``jax.flatten_util.ravel_pytree``, but for ``OrderedDict``, whose own order JAX keeps. A state dict and a delta made
from it may be filled in different orders. A canary that is scored in another order than it was inserted in is never
found.

A state dict also has what no update adds to: counters, and running statistics of the data. Both functions refuse them
by name until ``skip`` says what has no coordinates.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arrays import floating, is_floating, is_of, on_host, real
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import checked_texts, refusals_of, short_repr
from canaryproof.verify.audit import rules

# As the module says.
Tree = Any
Keys = tuple[Any, ...]
# How torch and flax name what a model has learnt of the data's mean and variance.
_STATISTICS = ("running_mean", "running_var", "batch_stats")


@set_module("canaryproof")
def flatten(tree: Tree, skip: Sequence[str] | None = None, scale: float | None = None) -> NDArray[Any]:
    """Return a tree's coordinates as one vector.

    Parameters
    ----------
    tree
        Tree of arrays of floating-point numbers, on any device.
    skip
        Patterns of names that have no coordinates, such as ``["*.num_batches_tracked", "*.running_*"]``, with the
        wildcards of ``fnmatch``. A name is the keys and numbers on the way to an array, joined by dots. By default no
        name, and running statistics are refused; with ``[]`` they have coordinates.
    scale
        What an integer counts, where arrays are sums of a secure aggregation: their coordinates are integers times this
        scale. Arrays of integers are refused without it.

    Returns
    -------
    Vector of shape (dim,) in the module's order: float64 if any array has more digits than float32, else float32.

    Raises
    ------
    ValueError
        If an array is not of floating-point numbers, two share memory, running statistics are not decided on, or there
        is no array.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> cp.flatten({"weight": np.ones((2, 2)), "bias": np.zeros(2)})
    array([0., 0., 1., 1., 1., 1.])
    """
    if scale is not None:
        scale = rules.POSITIVE.number("scale", scale)
    parts: list[NDArray[Any]] = []

    def take(leaf: Any) -> None:
        array = on_host(leaf)
        if scale is not None and array.dtype.kind in "iu":
            array = scale * array.astype(np.float64)
        parts.append(floating(array).ravel())

    _map(take, tree, "tree", skip, integers=scale is not None)
    if not parts:
        raise ValueError("tree: has no arrays")
    return np.concatenate(parts)


@set_module("canaryproof")
def split(vector: ArrayLike, like: Tree, skip: Sequence[str] | None = None) -> Tree:
    """Cut a vector into arrays of a tree's shapes: the inverse of ``flatten``.

    Parameters
    ----------
    vector
        One-dimensional, such as ``Canaries.vector(j)``.
    like
        Tree of floating-point arrays, or of whatever has the shape of one, such as the model's parameters.
    skip
        As for ``flatten``. These arrays are as in ``like``.

    Returns
    -------
    A tree of the same types and keys as ``like``; a dictionary for a torch module. Arrays have the library, the device
    and the dtype of those in ``like``, bfloat16 too. They are views of the vector where numpy needs no other dtype.

    Raises
    ------
    ValueError
        If the vector has not as many coordinates as the tree, or the tree has arrays that ``flatten`` refuses.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> parts = cp.split(np.arange(6.0), {"weight": np.ones((2, 2)), "bias": np.zeros(2)})
    >>> parts["weight"].shape, parts["bias"].shape
    ((2, 2), (2,))
    """
    with refusals_of("vector"):
        flat = real(vector)
    if flat.ndim != 1:
        raise ValueError(f"vector must have one axis, not {flat.ndim}")
    end = 0

    def give(leaf: Any) -> Any:
        nonlocal end
        shape = tuple(leaf.shape) if hasattr(leaf, "shape") else on_host(leaf).shape
        start, end = end, end + math.prod(shape)
        # The tree is gone through to its end, so that the message can name its size.
        return _convert_like(leaf, flat[start:end].reshape(shape)) if end <= len(flat) else flat

    tree = _map(give, like, "like", skip)
    if end != len(flat):
        raise ValueError(f"vector must have {end} coordinates, as like has, not {len(flat)}")
    return tree


@set_module("canaryproof")
def omitted_tensors(module: Any) -> dict[str, str]:
    """Return what of a torch module has no coordinates, and why.

    Parameters
    ----------
    module
        A torch module.

    Returns
    -------
    A reason for each name: ``frozen``, ``buffer``, ``counter`` for a buffer of integers, or ``tied to`` the name under
    which a shared parameter has its coordinates.
    """
    if not hasattr(module, "named_parameters"):
        raise ValueError(f"module: must be a torch module, not {short_repr(module)}")
    reasons, names = {}, {id(array): name for name, array in module.named_parameters()}
    for name, array in module.named_parameters(remove_duplicate=False):
        if not array.requires_grad:
            reasons[name] = "frozen"
        elif names[id(array)] != name:
            reasons[name] = f"tied to {names[id(array)]}"
    for name, array in module.named_buffers():
        reasons[name] = "buffer" if array.is_floating_point() else "counter"
    return reasons


def _map(
    visit: Callable[[Any], Any], tree: Tree, field: str, skip: Sequence[str] | None, *, integers: bool = False
) -> Tree:
    """Replace each array with coordinates, in order, by what ``visit`` makes of it. Others stay as they are."""
    patterns = () if skip is None else checked_texts("skip", skip, "patterns")
    strange: list[str] = []
    held: list[_Memory] = []
    statistics: list[str] = []

    def decide(leaf: Any, keys: Keys) -> Any:
        name = ".".join(map(str, keys))
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            return leaf
        if is_of("torch", "Tensor", leaf) and (form := _unusual_form(leaf)):
            raise ValueError(f"{field}: {name}: must be a dense tensor of numbers in memory, not a {form} one")
        if (memory := _memory(leaf, len(held), name)) is not None:
            held.append(memory)
        dtype = _dtype(leaf)
        if dtype is not None and not (is_floating(dtype) or (integers and dtype.kind in "iu")):
            strange.append(f"{name} has {dtype}" if keys else str(dtype))
            return leaf
        if skip is None and any(part in _STATISTICS for part in name.split(".")):
            statistics.append(name)
        with refusals_of(f"{field}: {name}:" if keys else f"{field}:"):
            return visit(leaf)

    result = _walk(decide, tree, ())
    _refuse_ties(held, field)
    if strange:
        raise ValueError(
            f"{field}: must be floating-point numbers, not {', '.join(strange)}; counters are left out by skip=[...]"
        )
    if statistics:
        raise ValueError(
            f"{field}: {', '.join(statistics)} are statistics of the data; skip=[...] must say what has no coordinates"
        )
    return result


def _unusual_form(tensor: Any) -> str:
    """Name the form of a torch tensor whose numbers are not in its memory one by one; empty for others."""
    if tensor.is_meta:
        return "meta"
    if tensor.is_quantized:
        return "quantised"
    return "" if str(tensor.layout) == "torch.strided" else str(tensor.layout).removeprefix("torch.")


@dataclass(frozen=True, order=True)
class _Memory:
    """Where an array's numbers begin, how many bytes they take, and whether they follow one another."""

    start: int
    length: int
    is_whole: bool
    number: int
    name: str


def _memory(leaf: Any, number: int, name: str) -> _Memory | None:
    """Return the memory of an array; None where nobody can change it, as of JAX, or where there is none."""
    if is_of("torch", "Tensor", leaf):
        try:
            start = leaf.data_ptr()
        except RuntimeError:
            # Under a transformation of torch.
            return None
        length, is_whole = leaf.numel() * leaf.element_size(), leaf.is_contiguous()
    elif isinstance(leaf, np.ndarray):
        start, length, is_whole = leaf.__array_interface__["data"][0], leaf.nbytes, leaf.flags.c_contiguous
    else:
        return None
    return _Memory(start, length, is_whole, number, name) if start and length else None


def _refuse_ties(held: list[_Memory], field: str) -> None:
    """Refuse arrays in one another's memory, whose coordinates would count twice."""
    last = furthest = _Memory(-1, 0, False, -1, "")
    for each in sorted(held):
        # Columns of one array lie between one another's.
        overlaps = each.is_whole and each.start < furthest.start + furthest.length
        if each.start == last.start or overlaps:
            pair = sorted((each, furthest if overlaps else last), key=lambda memory: memory.number)
            raise ValueError(
                f"{field}: {pair[0].name} and {pair[1].name} share their memory, as tied weights do, and their "
                "coordinates would count twice; skip=[...] must have one of them"
            )
        last = each
        if each.is_whole:
            furthest = each


def _dtype(leaf: Any) -> np.dtype[Any] | None:
    """Return the type of an array's numbers; None for floating-point numbers of torch and for a mere shape."""
    if is_of("torch", "Tensor", leaf):
        return None if leaf.is_floating_point() else np.dtype(str(leaf.dtype).removeprefix("torch."))
    dtype = getattr(leaf, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype
    if hasattr(leaf, "shape"):
        return None
    # A text or a date is refused where its numbers are asked for.
    with suppress(Exception):
        return np.asarray(leaf).dtype
    return None


def _walk(visit: Callable[[Any, Keys], Any], tree: Tree, keys: Keys) -> Tree:
    """Replace each array, in order, by what ``visit`` makes of it and the keys on the way to it."""
    if tree is None:
        return None
    if is_of("torch.nn", "Module", tree):
        tree = {name: array for name, array in tree.named_parameters() if array.requires_grad}
    elif isinstance(tree, Iterator):
        tree = _to_mapping(tree)
    if isinstance(tree, Mapping):
        values = {key: _walk(visit, tree[key], (*keys, key)) for key in _sort_keys(tree)}
        return type(tree)({key: values[key] for key in tree})  # type: ignore[call-arg]
    if isinstance(tree, (list, tuple)):
        items = [_walk(visit, item, (*keys, i)) for i, item in enumerate(tree)]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if "jax" in sys.modules:
        library = sys.modules["jax"].tree_util
        children, structure = library.tree_flatten(tree, is_leaf=lambda node: node is not tree)
        if not library.treedef_is_leaf(structure):
            items = [_walk(visit, child, (*keys, i)) for i, child in enumerate(children)]
            return library.tree_unflatten(structure, items)
    return visit(tree, keys)


def _sort_keys(tree: Mapping[Any, Tree]) -> list[Any]:
    """Return a mapping's keys in order."""
    try:
        return sorted(tree)
    except TypeError:
        kinds = ", ".join(sorted({type(key).__name__ for key in tree}))
        raise ValueError(f"tree: must have keys of one type, which have an order, not {kinds}") from None


def _to_mapping(pairs: Iterator[Any]) -> dict[Any, Any]:
    """Return what ``named_parameters()`` goes through as a mapping."""
    try:
        return dict(pairs)
    except (TypeError, ValueError):
        raise ValueError("tree: an iterator must give pairs of a name and an array") from None


def _convert_like(leaf: Any, part: NDArray[Any]) -> Any:
    """Return coordinates in a leaf's library, dtype and device."""
    if is_of("torch", "Tensor", leaf):
        return leaf.new_tensor(part)
    dtype = getattr(leaf, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "fV":
        part = part.astype(dtype, copy=False)
    # Under a transformation of JAX there is no device yet, and numpy's arrays are as good.
    if is_of("jax", "Array", leaf) and not isinstance(leaf, sys.modules["jax"].core.Tracer):
        return sys.modules["jax"].device_put(part, leaf.sharding)
    return part
