"""Networks to train, by name, in flax."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from jax import Array

from canaryproof.verify.federated.data.federation import FederatedData

# Nested dicts of arrays; their order as a vector is that of `verify.oneshot.shapes`.
Params = Any

_HIDDEN = {"two_layer": 128, "small_cnn": 128, "char_lstm": 256}
NAMES = tuple(_HIDDEN)
_BATCH = 100


@dataclass(frozen=True)
class Model:
    """A network for the examples of a federation, as functions that can be compiled, differentiated and vectorised.

    Attributes
    ----------
    name
        What it is called.
    dim
        Number of its parameters, d.
    init
        Draws parameters from a seed: biases 0, the entries of a matrix from N(0, 1/rows).
    loss
        Mean cross-entropy of the examples whose mask is 1, given parameters, inputs, labels and mask; 0 if there is
        none. An example of text has the mean over its characters.
    accuracy
        Share of labels that have the largest logit, given parameters, inputs and labels.
    """

    name: str
    dim: int
    init: Callable[[int], Params]
    loss: Callable[..., Array]
    accuracy: Callable[..., Array]


class _TwoLayer(nn.Module):
    classes: int
    hidden: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        flat = images.reshape(len(images), -1)
        hidden = nn.relu(nn.Dense(self.hidden)(flat))
        return nn.Dense(self.classes)(hidden)


class _SmallCnn(nn.Module):
    classes: int
    hidden: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        features = images
        for filters in (32, 64):
            features = nn.relu(nn.Dense(filters)(_patches(features)))
        flat = _pooled(features).reshape(len(images), -1)
        hidden = nn.relu(nn.Dense(self.hidden)(flat))
        return nn.Dense(self.classes)(hidden)


def _patches(images: Array) -> Array:
    """Return the 3 × 3 neighbourhood of every inner pixel, so that a matrix product convolves.

    On a CPU, XLA's own convolution takes some thirty times as long inside a compiled loop over clients.
    """
    height, width = images.shape[1] - 2, images.shape[2] - 2
    return jnp.concatenate([images[:, i : i + height, j : j + width] for i in range(3) for j in range(3)], axis=-1)


def _pooled(images: Array) -> Array:
    """Return the largest value of each square of 2 × 2; an odd last row or column is left out."""
    count, height, width, channels = images.shape
    even = images[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(count, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


class _Lstm(nn.Module):
    hidden: int

    @nn.compact
    def __call__(self, inputs: Array) -> Array:
        shapes = {"kernel": (inputs.shape[-1], 4 * self.hidden), "recurrent": (self.hidden, 4 * self.hidden)}
        kernel, recurrent = (self.param(name, nn.initializers.zeros, shape) for name, shape in shapes.items())
        bias = self.param("bias", nn.initializers.zeros, (4 * self.hidden,))
        # What does not depend on the output before is one product for all places.
        return _recurrence(inputs @ kernel + bias, recurrent)


@jax.custom_vjp
def _recurrence(inputs: Array, recurrent: Array) -> Array:
    """Return the outputs of an LSTM layer at all places, from the inputs' part of its gates i, f, g and o."""

    def step(state: tuple[Array, Array], entering: Array) -> tuple[tuple[Array, Array], Array]:
        output, memory = state
        i, f, g, o = jnp.split(entering + output @ recurrent, 4, axis=-1)
        memory = nn.sigmoid(f) * memory + nn.sigmoid(i) * nn.tanh(g)
        output = nn.sigmoid(o) * nn.tanh(memory)
        return (output, memory), output

    start = jnp.zeros((len(inputs), len(recurrent)))
    _, outputs = jax.lax.scan(step, (start, start), inputs.swapaxes(0, 1))
    return outputs.swapaxes(0, 1)


def _recurrence_forward(inputs: Array, recurrent: Array) -> tuple[Array, Any]:
    outputs, pullback = jax.vjp(lambda inputs: _recurrence.fun(inputs, recurrent), inputs)
    return outputs, (outputs, pullback)


def _recurrence_backward(kept: Any, slopes: Array) -> tuple[Array, Array]:
    outputs, pullback = kept
    (gates,) = pullback(slopes)
    # One product for all places; XLA would add a matrix to its sum at each of them, which takes twice as long.
    before = jnp.pad(outputs[:, :-1], ((0, 0), (1, 0), (0, 0)))
    return gates, jnp.einsum("bth,btg->hg", before, gates)


_recurrence.defvjp(_recurrence_forward, _recurrence_backward)


class _CharLstm(nn.Module):
    classes: int
    hidden: int
    vocabulary: int
    last_only: bool

    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        features = nn.Embed(self.vocabulary, 8)(tokens)
        for _ in range(2):
            features = _Lstm(self.hidden)(features)
        return nn.Dense(self.classes)(features[:, -1] if self.last_only else features)


def model(name: str, federation: FederatedData, hidden: int | None = None) -> Model:
    """Return a network for the examples of a federation.

    Parameters
    ----------
    name
        ``two_layer``, for images: one hidden layer of 128, d = 101,770 on MNIST. Andrew et al. (final version,
        Section 5.4) compare with CANIFE on a network of two layers and don't print its width; this one is ours.

        ``small_cnn``, for images of at least 6 × 6: 3 × 3 convolutions to 32 and 64 channels, a 2 × 2 maximum and a
        hidden layer of 128, d = 1,206,590 with EMNIST's 62 classes. It is the network of Reddi et al.
        (arXiv 2003.00295) for EMNIST as the repository ``google-research/federated`` has it, without dropout. Andrew et
        al. (submission) print only its 1.2 million parameters.

        ``char_lstm``, for text: characters embedded in 8 dimensions and two LSTM layers of 256, d = 820,522 with 90
        tokens, as the same repository has it for Shakespeare's plays after McMahan et al. (arXiv 1602.05629). It
        predicts every next character, or one class from the last state where a text has one label.
    federation
        Tells the examples' shape and the number of classes.
    hidden
        Width of the hidden layers, ≥ 1, if it is to be another.

    Returns
    -------
    The model.

    Raises
    ------
    ValueError
        If the name is unknown or the examples are of another form.
    """
    if name not in NAMES:
        raise ValueError(f"model must be one of {', '.join(NAMES)}, not {name!r}")
    width = _HIDDEN[name] if hidden is None else hidden
    if width < 1:
        raise ValueError(f"hidden must be at least 1, not {width}")
    classes, vocabulary = federation.classes, federation.vocabulary
    inputs, labels = federation.template
    if name == "char_lstm":
        if vocabulary is None:
            raise ValueError(f"model {name} takes text, and {federation.name} is of images")
        return _model(name, _CharLstm(classes, width, vocabulary, labels.ndim == 1), federation)
    if vocabulary is not None:
        raise ValueError(f"model {name} takes images, and {federation.name} is of text")
    if name == "two_layer":
        return _model(name, _TwoLayer(classes, width), federation)
    if min(inputs.shape[1:3]) < 6:
        raise ValueError(f"model {name} takes images of at least 6 × 6 pixels")
    return _model(name, _SmallCnn(classes, width), federation)


def _model(name: str, network: nn.Module, federation: FederatedData) -> Model:
    shapes = jax.eval_shape(network.init, jax.random.key(0), federation.template[0])["params"]

    def init(seed: int) -> Params:
        rng = np.random.default_rng(seed)

        # numpy's normal numbers need no compilation, which takes seconds for flax's initial values.
        def drawn(leaf: jax.ShapeDtypeStruct) -> Array:
            if len(leaf.shape) == 1:
                return jnp.zeros(leaf.shape)
            return jnp.asarray(rng.standard_normal(leaf.shape, dtype=np.float32) / np.sqrt(np.float32(leaf.shape[0])))

        return jax.tree.map(drawn, shapes)

    def logits(params: Params, inputs: Array) -> Array:
        return network.apply({"params": params}, inputs)  # type: ignore[return-value]

    def loss(params: Params, inputs: Array, labels: Array, mask: Array) -> Array:
        entropies = optax.softmax_cross_entropy_with_integer_labels(logits(params, inputs), labels)
        means = entropies.reshape(len(entropies), -1).mean(axis=1)
        return jnp.vdot(means, mask) / jnp.maximum(jnp.sum(mask), 1.0)

    @jax.jit
    def accuracy(params: Params, inputs: Array, labels: Array) -> Array:
        # In batches, because the patches of 10,000 images take 7 GB; the last one goes on with the first examples.
        batches = -(-len(inputs) // _BATCH)
        batched = jnp.resize(inputs, (batches, _BATCH, *inputs.shape[1:]))
        found = jax.lax.map(lambda batch: logits(params, batch).argmax(axis=-1), batched)
        return jnp.mean(found.reshape(-1, *labels.shape[1:])[: len(labels)] == labels)

    dim = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
    return Model(name, dim, init, loss, accuracy)
