"""Between a model's parameters, as a framework holds them, and the flat vectors of canaries and deltas.

A tree is an array, or a mapping, list or tuple of trees. Its coordinates stand in one order: a mapping's values by
sorted key, whatever order it was filled in; a sequence's items one after the other; an array's entries row by row.
``None`` has no coordinates. This is the order of ``jax.flatten_util.ravel_pytree``, but for ``OrderedDict``, whose own
order JAX keeps: a state dict and a delta made from it may well be filled differently, and a canary that is looked for
in another order than it was put in is never found.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Mappings, lists and tuples of whatever numpy takes for an array: its own, JAX's, torch's on the processor.
Tree = Any


def flatten(tree: Tree) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return a tree's coordinates as one vector.

    Parameters
    ----------
    tree
        Tree of arrays of floating-point numbers.

    Returns
    -------
    Vector of shape (dim,) in the module's order: float64 if any array has more digits than float32, else float32.

    Raises
    ------
    ValueError
        If an array is not of floating-point numbers, or there is none.
    """
    parts: list[NDArray[Any]] = []

    def take(leaf: Any, place: str) -> None:
        array = np.asarray(leaf)
        # V: bfloat16 and its like are strangers to numpy, but convert exactly.
        if array.dtype.kind not in "fV" or not np.can_cast(array.dtype, np.float64):
            raise ValueError(f"{place}: must be an array of floating-point numbers, not {array.dtype}")
        parts.append(array.astype(np.promote_types(array.dtype, np.float32), copy=False).ravel())

    _mapped(take, tree, "tree")
    if not parts:
        raise ValueError("tree: has no arrays")
    return np.concatenate(parts)


def split(vector: ArrayLike, like: Tree) -> Tree:
    """Cut a vector into arrays of a tree's shapes: the inverse of ``flatten``.

    Parameters
    ----------
    vector
        One-dimensional, such as ``Canaries.vector(j)``.
    like
        Tree of anything with a shape, such as the model's parameters.

    Returns
    -------
    Mappings, lists and tuples of the same types and keys as ``like``, with views of the vector for arrays.

    Raises
    ------
    ValueError
        If the vector has not as many coordinates as the tree.
    """
    flat = np.asarray(vector)
    if flat.ndim != 1:
        raise ValueError(f"vector must have one axis, not {flat.ndim}")
    end = 0

    def give(leaf: Any, _: str) -> NDArray[Any]:
        nonlocal end
        shape = np.shape(leaf)
        start, end = end, end + math.prod(shape)
        # The tree is gone through to its end, so that the message can name its size.
        return flat[start:end].reshape(shape) if end <= len(flat) else flat

    tree = _mapped(give, like, "like")
    if end != len(flat):
        raise ValueError(f"vector must have {end} coordinates, as like has, not {len(flat)}")
    return tree


def _mapped(visit: Callable[[Any, str], Any], tree: Tree, place: str) -> Tree:
    """Replace each array, in order, by what ``visit`` makes of it and its place."""
    if tree is None:
        return None
    if isinstance(tree, Mapping):
        values = {key: _mapped(visit, tree[key], f"{place}[{key!r}]") for key in sorted(tree)}
        return type(tree)({key: values[key] for key in tree})  # type: ignore[call-arg]
    if isinstance(tree, (list, tuple)):
        items = [_mapped(visit, item, f"{place}[{i}]") for i, item in enumerate(tree)]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return visit(tree, place)
