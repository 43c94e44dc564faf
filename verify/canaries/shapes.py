"""Between a model's parameters, as a framework holds them, and the flat vectors of canaries and deltas.

A tree is an array of numpy, JAX or torch, on any device, or a mapping, list or tuple of trees. It may also be

- a torch module, or the iterator of its ``named_parameters()``: a mapping from names to parameters. A module gives
  those that are trained, ``requires_grad``, since the others are no part of what is released;
- a torch state dict: a mapping. A parameter that two modules share stands in it twice, and in a module once;
- any other pytree once JAX is loaded, such as a registered dataclass: its children in JAX's order.

Its coordinates stand in one order. A mapping's values are sorted by key, whatever order it was filled in. A sequence's
items follow one another, and an array's entries go row by row. ``None`` has no coordinates. This is the order of
``jax.flatten_util.ravel_pytree``, but for ``OrderedDict``, whose own order JAX keeps. A state dict and a delta made
from it may be filled in different orders. A canary that is scored in another order than it was inserted in is never
found.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# As the module says.
Tree = Any


def flatten(tree: Tree) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return a tree's coordinates as one vector.

    Parameters
    ----------
    tree
        Tree of arrays of floating-point numbers, on any device.

    Returns
    -------
    Vector of shape (dim,) in the module's order: float64 if any array has more digits than float32, else float32.

    Raises
    ------
    ValueError
        If an array is not of floating-point numbers, or there is none.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> cp.flatten({"weight": np.ones((2, 2)), "bias": np.zeros(2)})
    array([0., 0., 1., 1., 1., 1.])
    """
    parts: list[NDArray[Any]] = []

    def take(leaf: Any, path: str) -> None:
        array = _on_host(leaf)
        # V: bfloat16 and its like are strangers to numpy, but convert exactly.
        if array.dtype.kind not in "fV" or not np.can_cast(array.dtype, np.float64):
            raise ValueError(f"{path}: must be an array of floating-point numbers, not {array.dtype}")
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
    A tree of the same types and keys as ``like``; a dictionary for a torch module. Arrays have the library, the device
    and the dtype of those in ``like``, bfloat16 too. They are views of the vector where numpy needs no other dtype.

    Raises
    ------
    ValueError
        If the vector has not as many coordinates as the tree.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> parts = cp.split(np.arange(6.0), {"weight": np.ones((2, 2)), "bias": np.zeros(2)})
    >>> parts["weight"].shape, parts["bias"].shape
    ((2, 2), (2,))
    """
    flat = np.asarray(vector)
    if flat.ndim != 1:
        raise ValueError(f"vector must have one axis, not {flat.ndim}")
    end = 0

    def give(leaf: Any, _: str) -> Any:
        nonlocal end
        shape = np.shape(leaf)
        start, end = end, end + math.prod(shape)
        # The tree is gone through to its end, so that the message can name its size.
        return _held_as(leaf, flat[start:end].reshape(shape)) if end <= len(flat) else flat

    tree = _mapped(give, like, "like")
    if end != len(flat):
        raise ValueError(f"vector must have {end} coordinates, as like has, not {len(flat)}")
    return tree


def _mapped(visit: Callable[[Any, str], Any], tree: Tree, path: str) -> Tree:
    """Replace each array, in order, by what ``visit`` makes of it and its path."""
    if tree is None:
        return None
    if _is_of("torch.nn", "Module", tree):
        tree = {name: array for name, array in tree.named_parameters() if array.requires_grad}
    elif isinstance(tree, Iterator):
        tree = _named(tree, path)
    if isinstance(tree, Mapping):
        values = {key: _mapped(visit, tree[key], f"{path}[{key!r}]") for key in sorted(tree)}
        return type(tree)({key: values[key] for key in tree})  # type: ignore[call-arg]
    if isinstance(tree, (list, tuple)):
        items = [_mapped(visit, item, f"{path}[{i}]") for i, item in enumerate(tree)]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if "jax" in sys.modules:
        library = sys.modules["jax"].tree_util
        children, structure = library.tree_flatten(tree, is_leaf=lambda node: node is not tree)
        if not library.treedef_is_leaf(structure):
            items = [_mapped(visit, child, f"{path}, child {i}") for i, child in enumerate(children)]
            return library.tree_unflatten(structure, items)
    return visit(tree, path)


def _named(pairs: Iterator[Any], path: str) -> dict[Any, Any]:
    """Return what ``named_parameters()`` goes through as a mapping."""
    try:
        return dict(pairs)
    except (TypeError, ValueError):
        raise ValueError(f"{path}: an iterator must give pairs of a name and an array") from None


def _is_of(module: str, name: str, value: object) -> bool:
    """Tell whether a value is an instance of a library's class. Without the library loaded nothing is."""
    return module in sys.modules and isinstance(value, getattr(sys.modules[module], name))


def _on_host(leaf: Any) -> NDArray[Any]:
    """Return an array of any library as numpy's."""
    if _is_of("torch", "Tensor", leaf):
        held = leaf.detach().cpu()
        # numpy has no bfloat16.
        leaf = (held.float() if held.is_floating_point() and held.element_size() < 4 else held).numpy()
    return np.asarray(leaf)


def _held_as(leaf: Any, part: NDArray[Any]) -> Any:
    """Return coordinates in a leaf's library, dtype and device."""
    if _is_of("torch", "Tensor", leaf):
        return leaf.new_tensor(part)
    dtype = getattr(leaf, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "fV":
        part = part.astype(dtype, copy=False)
    # Under a transformation of JAX there is no device yet, and numpy's arrays are as good.
    if _is_of("jax", "Array", leaf) and not isinstance(leaf, sys.modules["jax"].core.Tracer):
        return sys.modules["jax"].device_put(part, leaf.sharding)
    return part
