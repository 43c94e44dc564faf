"""Inner products of gradients of dense networks, without a gradient.

A dense layer's gradient is the outer product of the layer's input, with a 1 appended for the bias, and the output's
gradient. The inner product of two such is (1 + ⟨a, a'⟩)·⟨g, g'⟩, so that a client of E examples costs E times the
network's width instead of its number of parameters. Right for one local step on all of a client's examples.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.papers.canife.attack import Response
from canaryproof.verify.papers.canife.design import Canary, Sample

Params = Any


class Layer(NamedTuple):
    """A dense layer: weights of shape (inputs, outputs), and biases."""

    kernel: NDArray[np.floating]
    bias: NDArray[np.floating]


class Factors(NamedTuple):
    """A layer's share of gradients: inputs (…, inputs) and gradients of outputs (…, outputs)."""

    inputs: Any
    outputs: Any


class FactoredState(NamedTuple):
    """The frozen model, and its mock clients' clipped updates, layer by layer, of shape (clients, examples, …)."""

    layers: tuple[Layer, ...]
    clients: tuple[Factors, ...]


class FactoredUpdates:
    """Updates of clients of a dense network with ReLU between its layers, after one local step at rate ``rate``.

    Clients' updates are made by numpy, which has no call to wait for and nothing to compile. Canaries are designed by
    their update at ``design_rate``, by default their gradient, as equation (1) has it.
    """

    def __init__(self, clip_norm: float = 1.0, rate: float = 1.0, design_rate: float = 1.0) -> None:
        self.clip_norm, self.rate, self.design_rate = clip_norm, rate, design_rate

    def prepare(self, params: Params, inputs: ArrayLike, labels: ArrayLike, mask: ArrayLike) -> FactoredState:
        """Compute mock clients' clipped updates; parameters of other than dense layers are a ``ValueError``."""
        rows = np.reshape(inputs, (*np.shape(mask), -1))
        layers = dense_layers(params, rows.shape[-1])
        dtype = layers[0].kernel.dtype
        one_hot = np.eye(len(layers[-1].bias), dtype=dtype)[np.asarray(labels)]
        return FactoredState(layers, self._clipped(layers, rows.astype(dtype), one_hot, np.asarray(mask, dtype=dtype)))

    def _clipped(
        self,
        layers: tuple[Layer, ...],
        inputs: NDArray[np.floating],
        labels: NDArray[np.floating],
        mask: NDArray[np.floating],
    ) -> tuple[Factors, ...]:
        share = (mask / np.maximum(mask.sum(axis=1, keepdims=True), 1.0))[..., None]
        # A model that diverges overflows, and says so by what it gives.
        with np.errstate(all="ignore"):
            # One product for all clients, and not one for each.
            gradients = gradient_factors(layers, *(part.reshape(-1, part.shape[-1]) for part in (inputs, labels)))
            factors = [Factors(*(part.reshape(*mask.shape, -1) for part in each)) for each in gradients]
            factors = [Factors(a, g * share) for a, g in factors]
            # ‖Σ a gᵀ‖² over a client's examples, by its examples' products among each other.
            squared = np.zeros(len(mask), mask.dtype)
            for a, g in factors:
                squared += ((1.0 + a @ a.swapaxes(1, 2)) * (g @ g.swapaxes(1, 2))).sum(axis=(1, 2))
            scale = -self.rate * self.clip_norm / np.maximum(self.rate * np.sqrt(squared), self.clip_norm)
            return tuple(Factors(a, g * scale[:, None, None]) for a, g in factors)

    def products(self, state: FactoredState, sample: Sample) -> tuple[jax.Array, jax.Array]:
        """Inner products ⟨uᵢ, u⟩ with a sample's own vector u before clipping, and ‖u‖²."""
        own = gradient_factors(state.layers, jnp.ravel(sample.input), sample.label)
        squared = sum((1.0 + a @ a) * (g @ g) for a, g in own)
        inner = sum(
            jnp.sum((1.0 + clients.inputs @ a) * (clients.outputs @ g), axis=1)
            for clients, (a, g) in zip(state.clients, own, strict=True)
        )
        return -self.design_rate * jnp.asarray(inner), self.design_rate**2 * jnp.asarray(squared)

    def response(self, state: FactoredState, canaries: Sequence[Canary]) -> Response:
        """Inner products of canaries' clipped updates with the clients' and with each other."""
        own = self._own(state, canaries)
        return Response(_inner(own, state.clients), _inner(own, own))

    def _own(self, state: FactoredState, canaries: Sequence[Canary]) -> tuple[Factors, ...]:
        dtype = state.layers[0].kernel.dtype
        inputs = np.array([[canary.input.ravel()] for canary in canaries], dtype=dtype)
        labels = np.array([[canary.label] for canary in canaries], dtype=dtype)
        return self._clipped(state.layers, inputs, labels, np.ones((len(canaries), 1), dtype))


def dense_layers(params: Params, width: int) -> tuple[Layer, ...]:
    """Read dense layers from parameters, in the one order in which they fit together from ``width`` inputs on.

    Every layer has a ``kernel`` of shape (inputs, outputs) and a ``bias``. Names are not heeded: flax numbers layers in
    the order in which a network's expression makes them, which may be from the last. A ``ValueError`` says that no
    order fits, or several.
    """
    dense: list[Layer] = []

    def walk(tree: Params) -> None:
        if isinstance(tree, Mapping) and set(tree) == {"kernel", "bias"} and np.ndim(tree["kernel"]) == 2:
            dense.append(Layer(np.asarray(tree["kernel"]), np.asarray(tree["bias"])))
        elif isinstance(tree, Mapping) and "kernel" not in tree:
            for part in tree.values():
                walk(part)
        else:
            raise ValueError("params: only dense layers have factors, each a kernel with two axes and a bias")

    walk(params)
    orders = _orders(tuple(dense), width)
    if len(orders) != 1:
        shapes = [layer.kernel.shape for layer in dense]
        raise ValueError(f"params: kernels of shapes {shapes} must fit together in one order from {width} inputs on")
    return orders[0]


def _orders(layers: tuple[Layer, ...], width: int) -> list[tuple[Layer, ...]]:
    """Return the orders in which all layers fit together; two at most, as one more than one is enough to know."""
    if not layers:
        return [()]
    orders: list[tuple[Layer, ...]] = []
    for i, layer in enumerate(layers):
        if layer.kernel.shape[0] == width and len(orders) < 2:
            rest = (*layers[:i], *layers[i + 1 :])
            orders += [(layer, *order) for order in _orders(rest, layer.kernel.shape[1])]
    return orders[:2]


def gradient_factors(layers: tuple[Layer, ...], inputs: Any, labels: Any) -> list[Factors]:
    """Cross-entropy's gradient for each example, as factors by layer; of numpy's arrays or of JAX's."""
    arrays = inputs.__array_namespace__()
    entering, signal = [], inputs
    for layer in layers:
        entering.append(signal)
        logits = signal @ layer.kernel + layer.bias
        signal = arrays.maximum(logits, 0.0)
    weights = arrays.exp(logits - logits.max(axis=-1, keepdims=True))
    leaving = [weights / weights.sum(axis=-1, keepdims=True) - labels]
    for layer, after in zip(layers[:0:-1], entering[:0:-1], strict=True):
        leaving.append((leaving[-1] @ layer.kernel.T) * (after > 0.0))
    return [Factors(a, g) for a, g in zip(entering, leaving[::-1], strict=True)]


def _inner(left: tuple[Factors, ...], right: tuple[Factors, ...]) -> NDArray[np.float64]:
    """Return the products between two lists of clients, shape (of left, of right)."""

    def between(part: ArrayLike, opposite: ArrayLike) -> NDArray[np.float64]:
        # Examples of all clients, one after another.
        rows, columns = (np.asarray(each, np.float64).reshape(-1, np.shape(each)[-1]) for each in (part, opposite))
        return rows @ columns.T

    products = np.sum(
        [(1.0 + between(p.inputs, q.inputs)) * between(p.outputs, q.outputs) for p, q in zip(left, right, strict=True)],
        axis=0,
    )
    # The axes are client and example of the left, client and example of the right.
    shape = (*np.shape(left[0].inputs)[:2], *np.shape(right[0].inputs)[:2])
    return np.asarray(products.reshape(shape).sum(axis=(1, 3)))
