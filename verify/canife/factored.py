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

from canaryproof.verify.canife.attack import Response
from canaryproof.verify.canife.design import Canary, Sample, clip_factor

Params = Any


class Layer(NamedTuple):
    """A dense layer: weights of shape (inputs, outputs), and biases."""

    kernel: jax.Array
    bias: jax.Array


class Factors(NamedTuple):
    """A layer's share of gradients: inputs (…, inputs) and gradients of outputs (…, outputs)."""

    inputs: jax.Array
    outputs: jax.Array


class FactoredState(NamedTuple):
    """The frozen model, and its mock clients' clipped updates, layer by layer, of shape (clients, examples, …)."""

    layers: tuple[Layer, ...]
    clients: tuple[Factors, ...]


class FactoredUpdates:
    """Updates of clients of a dense network with ReLU between its layers, after one local step at rate ``rate``."""

    def __init__(self, clip_norm: float = 1.0, rate: float = 1.0) -> None:
        self.clip_norm, self.rate = clip_norm, rate
        self._prepare = jax.jit(self._clipped)

    def prepare(self, params: Params, inputs: ArrayLike, labels: ArrayLike, mask: ArrayLike) -> FactoredState:
        """Compute mock clients' clipped updates; parameters of other than dense layers are a ``ValueError``."""
        rows = np.reshape(inputs, (*np.shape(mask), -1))
        layers = dense_layers(params, rows.shape[-1])
        dtype = layers[0].kernel.dtype
        one_hot = np.eye(len(layers[-1].bias), dtype=dtype)[np.asarray(labels)]
        return FactoredState(layers, self._prepare(layers, rows.astype(dtype), one_hot, np.asarray(mask, dtype=dtype)))

    def _clipped(
        self, layers: tuple[Layer, ...], inputs: jax.Array, labels: jax.Array, mask: jax.Array
    ) -> tuple[Factors, ...]:
        share = mask / jnp.maximum(mask.sum(axis=1, keepdims=True), 1.0)
        factors = [Factors(a, g * share[..., None]) for a, g in gradient_factors(layers, inputs, labels)]
        # ‖Σ a gᵀ‖² over a client's examples, by its examples' products among each other.
        squared = sum(
            jnp.sum((1.0 + jnp.einsum("cei,cfi->cef", a, a)) * jnp.einsum("ceo,cfo->cef", g, g), axis=(1, 2))
            for a, g in factors
        )
        scale = -clip_factor(self.rate * jnp.sqrt(squared), self.clip_norm) * self.rate
        return tuple(Factors(a, g * scale[:, None, None]) for a, g in factors)

    def products(self, state: FactoredState, sample: Sample) -> tuple[jax.Array, jax.Array]:
        """Inner products ⟨uᵢ, u⟩ with a sample's own update u before clipping, and ‖u‖²."""
        own = gradient_factors(state.layers, jnp.ravel(sample.input), sample.label)
        squared = sum((1.0 + a @ a) * (g @ g) for a, g in own)
        inner = sum(
            jnp.sum((1.0 + clients.inputs @ a) * (clients.outputs @ g), axis=1)
            for clients, (a, g) in zip(state.clients, own, strict=True)
        )
        return -self.rate * jnp.asarray(inner), self.rate**2 * jnp.asarray(squared)

    def response(self, state: FactoredState, canaries: Sequence[Canary]) -> Response:
        """Inner products of canaries' clipped updates with the clients' and with each other."""
        own = self._own(state, canaries)
        return Response(_inner(own, state.clients), _inner(own, own))

    def padded(self, state: FactoredState, places: int) -> FactoredState:
        """Return the state with so many more clients, whose updates are 0."""
        return state._replace(
            clients=jax.tree.map(lambda part: np.pad(part, ((0, places), (0, 0), (0, 0))), state.clients)
        )

    def placed(self, state: FactoredState, canary: Canary, place: int) -> FactoredState:
        """Return the state with a canary's clipped update for that of the client at a place."""

        def put(part: ArrayLike, own: ArrayLike) -> NDArray[np.floating]:
            changed = np.array(part)
            changed[place] = 0.0
            changed[place, 0] = np.asarray(own)[0, 0]
            return changed

        return state._replace(clients=jax.tree.map(put, state.clients, self._own(state, [canary])))

    def _own(self, state: FactoredState, canaries: Sequence[Canary]) -> tuple[Factors, ...]:
        dtype = state.layers[0].kernel.dtype
        inputs = np.array([[canary.input.ravel()] for canary in canaries], dtype=dtype)
        labels = np.array([[canary.label] for canary in canaries], dtype=dtype)
        own: tuple[Factors, ...] = self._prepare(state.layers, inputs, labels, np.ones((len(canaries), 1), dtype))
        return own


def dense_layers(params: Params, width: int) -> tuple[Layer, ...]:
    """Read dense layers from parameters, in the one order in which they fit together from ``width`` inputs on.

    Every layer has a ``kernel`` of shape (inputs, outputs) and a ``bias``. Names are not heeded: flax numbers layers in
    the order in which a network's expression makes them, which may be from the last.
    """
    found: list[Layer] = []

    def walk(tree: Params) -> None:
        if isinstance(tree, Mapping) and set(tree) == {"kernel", "bias"} and np.ndim(tree["kernel"]) == 2:
            found.append(Layer(jnp.asarray(tree["kernel"]), jnp.asarray(tree["bias"])))
        elif isinstance(tree, Mapping) and "kernel" not in tree:
            for part in tree.values():
                walk(part)
        else:
            raise ValueError("params: only dense layers have factors, each a kernel with two axes and a bias")

    walk(params)
    layers: list[Layer] = []
    while found:
        next_ones = [layer for layer in found if layer.kernel.shape[0] == width]
        if len(next_ones) != 1:
            shapes = [layer.kernel.shape for layer in found]
            raise ValueError(f"params: of kernels of shapes {shapes} exactly one must take {width} inputs")
        layers += next_ones
        found = [layer for layer in found if layer is not next_ones[0]]
        width = next_ones[0].kernel.shape[1]
    return tuple(layers)


def gradient_factors(layers: tuple[Layer, ...], inputs: jax.Array, labels: jax.Array) -> list[Factors]:
    """Cross-entropy's gradient for each example, as factors by layer."""
    entering, signal = [], inputs
    for layer in layers:
        entering.append(signal)
        signal = jax.nn.relu(signal @ layer.kernel + layer.bias)
    logits = entering[-1] @ layers[-1].kernel + layers[-1].bias
    leaving = [jax.nn.softmax(logits) - labels]
    for layer, after in zip(layers[:0:-1], entering[:0:-1], strict=True):
        leaving.append((leaving[-1] @ layer.kernel.T) * (after > 0.0))
    return [Factors(a, g) for a, g in zip(entering, leaving[::-1], strict=True)]


def _inner(one: tuple[Factors, ...], other: tuple[Factors, ...]) -> NDArray[np.float64]:
    """Products between two lists of clients, shape (of one, of other)."""

    def between(part: ArrayLike, opposite: ArrayLike) -> NDArray[np.float64]:
        return np.tensordot(np.asarray(part, dtype=np.float64), np.asarray(opposite, dtype=np.float64), (2, 2))

    # The axes are client and example of the one, client and example of the other.
    terms = [
        (1.0 + between(p.inputs, q.inputs)) * between(p.outputs, q.outputs) for p, q in zip(one, other, strict=True)
    ]
    return np.asarray(np.sum(terms, axis=(0, 2, 4)))
