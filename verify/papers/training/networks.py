"""Networks to train, in flax: those that classify images, those that read text, and ``model``, which has them by name.

On a CPU, XLA's own convolution reaches a twentieth of its speed or less inside a compiled loop over a client's batches,
and outside of it where images are small. Here the neighbourhood of each pixel is laid out, and a matrix product
convolves.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from jax import Array
from numpy.typing import NDArray

from canaryproof.verify.papers.training.data.federation import ExampleForm

# As PyTorch adds to a variance.
_EPSILON = 1e-5


class TwoLayer(nn.Module):
    """One hidden layer."""

    classes: int
    hidden: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        """Return logits."""
        flat = images.reshape(len(images), -1)
        hidden = nn.relu(nn.Dense(self.hidden)(flat))
        return nn.Dense(self.classes)(hidden)


class SmallCnn(nn.Module):
    """Two convolutions, a maximum and one hidden layer."""

    classes: int
    hidden: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        """Return logits."""
        features = images
        for filters in (32, 64):
            features = nn.relu(nn.Dense(filters)(_patches(features)))
        flat = _pooled(features).reshape(len(images), -1)
        hidden = nn.relu(nn.Dense(self.hidden)(flat))
        return nn.Dense(self.classes)(hidden)


class FourLayerCnn(nn.Module):
    """Four convolutions, each normalised by the same parameters, cut at 0 and halved by a maximum."""

    classes: int
    channels: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        """Return logits."""
        normalised = _GroupNorm(self.channels)
        features = images
        for _ in range(4):
            features = nn.Dense(self.channels)(_patches(_padded(features, 2)))
            features = _largest(nn.relu(normalised(features)), 2)
        return nn.Dense(self.classes)(features.reshape(len(images), -1))


class ResNet18(nn.Module):
    """He et al.'s residual network of 18 layers with parameters (arXiv 1512.03385, Table 1)."""

    classes: int
    channels: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        """Return logits."""
        features = _Convolution(self.channels, 7, 2)(images)
        features = nn.relu(_normalisation(self.channels)(features))
        features = _largest(_padded(features, 1), 3)
        for stage in range(4):
            for block in range(2):
                features = _Residual(self.channels << stage, 2 if stage > 0 and block == 0 else 1)(features)
        return nn.Dense(self.classes)(features.mean(axis=(1, 2)))


class _Residual(nn.Module):
    channels: int
    stride: int

    @nn.compact
    def __call__(self, features: Array) -> Array:
        inner = nn.relu(_normalisation(self.channels)(_Convolution(self.channels, 3, self.stride)(features)))
        inner = _normalisation(self.channels)(_Convolution(self.channels, 3, 1)(inner))
        if features.shape[-1] != self.channels:
            features = _normalisation(self.channels)(_Convolution(self.channels, 1, self.stride)(features))
        return nn.relu(features + inner)


class _Convolution(nn.Module):
    """Without shift, as a normalisation follows, and with so many zeros around that stride 1 keeps the size."""

    channels: int
    width: int
    stride: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        patches = _patches(_padded(images, self.width // 2), self.width, self.stride)
        return nn.Dense(self.channels, use_bias=False)(patches)


class _GroupNorm(nn.Module):
    """Mean 0 and variance 1 in each group of neighbouring channels of an image (arXiv 1803.08494), scaled and shifted.

    The sums over a group are a product with a matrix of zeros and ones; flax's own take four times as long.
    """

    groups: int

    @nn.compact
    def __call__(self, images: Array) -> Array:
        count, height, width, channels = images.shape
        scale = self.param("scale", nn.initializers.ones, (channels,))
        bias = self.param("bias", nn.initializers.zeros, (channels,))
        member = np.repeat(np.eye(self.groups, dtype=np.float32), channels // self.groups, axis=0)
        size = height * width * channels / self.groups

        def mean(values: Array) -> Array:
            return (values.sum(axis=1) @ member / size @ member.T)[:, np.newaxis]

        pixels = images.reshape(count, -1, channels)
        pixels = pixels - mean(pixels)
        factors = scale * jax.lax.rsqrt(mean(jnp.square(pixels)) + _EPSILON)
        return (pixels * factors + bias).reshape(images.shape)


def _normalisation(channels: int) -> _GroupNorm:
    # Opacus puts these groups in place of batch normalisation, which mixes the examples of a batch.
    return _GroupNorm(math.gcd(32, channels))


def _padded(images: Array, pixels: int) -> Array:
    return jnp.pad(images, ((0, 0), (pixels, pixels), (pixels, pixels), (0, 0)))


def _patches(images: Array, width: int = 3, stride: int = 1) -> Array:
    """Return the neighbourhood of every inner pixel, or of every second one, so that a matrix product convolves."""
    height, breadth = images.shape[1] - width + 1, images.shape[2] - width + 1
    shifts = ((i, j) for i in range(width) for j in range(width))
    return jnp.concatenate([images[:, i : i + height : stride, j : j + breadth : stride] for i, j in shifts], axis=-1)


def _pooled(images: Array) -> Array:
    """Return the largest value of each square of 2 × 2; an odd last row or column is left out."""
    count, height, width, channels = images.shape
    even = images[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(count, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def _largest(images: Array, window: int) -> Array:
    """Return the largest values of windows that start at every second pixel.

    The gradient of XLA's own maximum takes some four times as long.
    """
    for axis in (1, 2):
        last = images.shape[axis] - window
        shifted = (jax.lax.slice_in_dim(images, i, i + last + 1, 2, axis) for i in range(window))
        images = reduce(jnp.maximum, shifted)
    return images


class Recurrent(nn.Module):
    """Embedded tokens, LSTM layers and dense ones without a bend between them."""

    classes: int
    vocabulary: int
    hidden: int
    layers: int
    last_only: bool  # logits are wanted for the last place alone
    width: int  # dimensions of the embedding
    # an embedding that is given and not trained, shape (vocabulary, dimensions)
    vectors: NDArray[np.float32] | None = None
    two_biases: bool = False  # an LSTM layer has two biases, which add up, as PyTorch's has
    projection: int | None = None  # width of a dense layer before the last

    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        """Return logits, shape (examples, classes) or (examples, length, classes)."""
        if self.vectors is None:
            features = nn.Embed(self.vocabulary, self.width)(tokens)
        else:
            features = jnp.asarray(self.vectors)[tokens]
        for _ in range(self.layers):
            features = _Lstm(self.hidden, self.two_biases)(features)
        if self.last_only:
            features = features[:, -1]
        if self.projection is not None:
            features = nn.Dense(self.projection)(features)
        return nn.Dense(self.classes)(features)


class _Lstm(nn.Module):
    hidden: int
    two_biases: bool

    @nn.compact
    def __call__(self, inputs: Array) -> Array:
        shapes = {"kernel": (inputs.shape[-1], 4 * self.hidden), "recurrent": (self.hidden, 4 * self.hidden)}
        kernel, recurrent = (self.param(name, nn.initializers.zeros, shape) for name, shape in shapes.items())
        bias = self.param("bias", nn.initializers.zeros, (4 * self.hidden,))
        if self.two_biases:
            bias = bias + self.param("recurrent_bias", nn.initializers.zeros, (4 * self.hidden,))
        # The part that does not depend on the output before is one product for all positions.
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


def _recurrence_backward(saved: Any, slopes: Array) -> tuple[Array, Array]:
    outputs, pullback = saved
    (gates,) = pullback(slopes)
    # One product for all places; XLA would add a matrix to its sum at each of them, which takes twice as long.
    before = jnp.pad(outputs[:, :-1], ((0, 0), (1, 0), (0, 0)))
    return gates, jnp.einsum("bth,btg->hg", before, gates)


_recurrence.defvjp(_recurrence_forward, _recurrence_backward)


# Nested dicts of arrays; their order as a vector is that of `verify.audit.canaries.shapes`.
Params = Any

# Networks of images with the width of their hidden layers: units, or channels of the first convolution.
_IMAGES: dict[str, tuple[Callable[[int, int], nn.Module], int]] = {
    "two_layer": (TwoLayer, 128),
    "small_cnn": (SmallCnn, 128),
    "four_layer_cnn": (FourLayerCnn, 32),
    "resnet18": (ResNet18, 64),
}
_TEXT: dict[str, dict[str, Any]] = {
    "char_lstm": {"width": 8, "layers": 2, "hidden": 256},
    "word_lstm": {"width": 96, "layers": 1, "hidden": 670, "projection": 96},
    "sent140_lstm": {"width": 300, "layers": 2, "hidden": 100, "two_biases": True},
    "leaf_lstm": {"width": 8, "layers": 2, "hidden": 256, "two_biases": True},
}
NAMES = (*_IMAGES, *_TEXT)
_BATCH = 100


@dataclass(frozen=True)
class Model:
    """A network for the examples of a federation, as functions that can be compiled, differentiated and vectorised."""

    name: str
    dim: int  # number of its parameters, d
    # Draws parameters from a seed: biases 0, scales of normalisations 1, the entries of a matrix from N(0, 1/rows).
    init: Callable[[int], Params]
    # Mean cross-entropy of the examples whose mask is 1, given parameters, inputs, labels and mask; 0 if there is none.
    # An example of text has the mean over the places where something is to be predicted, and doesn't count if there is
    # none.
    loss: Callable[..., Array]
    # Share of the labels that have the largest logit, given parameters, inputs and labels; 0 if there is none. Labels
    # that the federation doesn't score don't count. It is not to be compiled.
    accuracy: Callable[..., Array | np.float32]


def model(name: str, federation: ExampleForm, hidden: int | None = None) -> Model:
    """Return a network for the examples of a federation; ``hidden`` is another width than the papers'.

    ``two_layer``, for images: one hidden layer of 128, d = 101,770 on MNIST. Andrew et al. (final version, Section 5.4)
    compare with CANIFE on a network of two layers and don't print its width; the width here is our choice.

    ``small_cnn``, for images of at least 6 × 6: 3 × 3 convolutions to 32 and 64 channels, a 2 × 2 maximum and a hidden
    layer of 128. With EMNIST's 62 classes d = 1,206,590. It is the network of Reddi et al. (arXiv 2003.00295) for
    EMNIST as the repository ``google-research/federated`` has it, without dropout. Andrew et al. (submission) print
    only its 1.2 million parameters.

    ``four_layer_cnn``, for images: four 3 × 3 convolutions of 32 channels with 2 zeros around, and one dense layer.
    Each convolution is normalised by image and channel, with one scale and shift for all four, and halved by a 2 × 2
    maximum. With 2 classes and 32 × 32 pixels in colour d = 29,282, as CANIFE (arXiv 2210.02912, Appendix B) prints for
    CelebA. The text leaves the rest open; here it is as in the repository ``facebookresearch/canife``.

    ``resnet18``, for images: He et al.'s (arXiv 1512.03385, Table 1), with 7 × 7 pixels in the first convolution and
    projections where the size changes. Normalisation is in 32 groups, as that repository has it by way of Opacus: batch
    normalisation would mix a client's examples. With 2 classes d = 11,177,538, as CANIFE prints.

    ``char_lstm``, for text: characters embedded in 8 dimensions and two LSTM layers of 256, d = 820,522 with 90 tokens.
    So has the repository of ``small_cnn`` for Shakespeare's plays after McMahan et al. (arXiv 1602.05629).

    ``word_lstm``, for text: words embedded in 96 dimensions, an LSTM layer of 670 and a dense one of 96 before the
    last. With 10,004 tokens d = 4,050,748. So have Reddi et al. for StackOverflow. Andrew et al. (final version,
    Section 4) print 4.1 million parameters.

    ``sent140_lstm``, for text: tokens embedded in 300 dimensions, two LSTM layers of 100 and one dense layer. With 101
    characters and 2 classes d = 272,102, as CANIFE prints. Its repository has the network so, but for dropout.

    ``leaf_lstm``, for text: as ``char_lstm``, but with the two biases of an LSTM layer that PyTorch has. With 80
    characters d = 819,920, as CANIFE prints for LEAF's Shakespeare.

    Networks of text predict every next token, or one class from the last state where a text has one label. Where the
    federation gives its tokens' embeddings, these take the place of trained ones. A ``ValueError`` says that the name
    is unknown or the examples are of another form.
    """
    if name not in NAMES:
        raise ValueError(f"model must be one of {', '.join(NAMES)}, not {name!r}")
    if hidden is not None and hidden < 1:
        raise ValueError(f"hidden must be at least 1, not {hidden}")
    classes, vocabulary = federation.classes, federation.vocabulary
    inputs, labels = federation.template
    if name in _TEXT:
        if vocabulary is None:
            raise ValueError(f"model {name} takes text, and {federation.name} is of images")
        sizes = _TEXT[name] if hidden is None else {**_TEXT[name], "hidden": hidden}
        last_only = labels.ndim == 1
        network: nn.Module = Recurrent(classes, vocabulary, last_only=last_only, vectors=federation.vectors, **sizes)
        return _model(name, network, federation)
    if vocabulary is not None:
        raise ValueError(f"model {name} takes images, and {federation.name} is of text")
    if name == "small_cnn" and min(inputs.shape[1:3]) < 6:
        raise ValueError(f"model {name} takes images of at least 6 × 6 pixels")
    make, width = _IMAGES[name]
    return _model(name, make(classes, width if hidden is None else hidden), federation)


def _model(name: str, network: nn.Module, federation: ExampleForm) -> Model:
    shapes = jax.eval_shape(network.init, jax.random.key(0), federation.template[0])["params"]
    unscored = federation.unscored

    def init(seed: int) -> Params:
        rng = np.random.default_rng(seed)

        # numpy's normal numbers need no compilation, which takes seconds for flax's initial values.
        def drawn(path: Any, leaf: jax.ShapeDtypeStruct) -> Array:
            if len(leaf.shape) == 1:
                return jnp.full(leaf.shape, float(path[-1].key == "scale"))
            return jnp.asarray(rng.standard_normal(leaf.shape, dtype=np.float32) / np.sqrt(np.float32(leaf.shape[0])))

        return jax.tree_util.tree_map_with_path(drawn, shapes)

    def logits(params: Params, inputs: Array) -> Array:
        return network.apply({"params": params}, inputs)  # type: ignore[return-value]

    def loss(params: Params, inputs: Array, labels: Array, mask: Array) -> Array:
        predicted = (labels >= 0).reshape(len(labels), -1)
        entropies = optax.softmax_cross_entropy_with_integer_labels(logits(params, inputs), jnp.maximum(labels, 0))
        entropies = jnp.where(predicted, entropies.reshape(len(entropies), -1), 0.0)
        means = entropies.sum(axis=1) * (1.0 / jnp.maximum(predicted.sum(axis=1), 1))
        mask = mask * predicted.any(axis=1)
        return jnp.vdot(means, mask) / jnp.maximum(jnp.sum(mask), 1.0)

    @jax.jit
    def right(params: Params, inputs: Array, labels: Array) -> tuple[Array, Array]:
        scored = labels >= 0
        for label in unscored:
            scored &= labels != label
        return jnp.sum(scored & (logits(params, inputs).argmax(axis=-1) == labels)), jnp.sum(scored)

    def accuracy(params: Params, inputs: Array, labels: Array) -> np.float32:
        # In batches, because the patches of 10,000 images take 7 GB; what the last one lacks has no labels.
        hits, count = 0, 0
        for start in range(0, len(labels), _BATCH):
            some, theirs = inputs[start : start + _BATCH], labels[start : start + _BATCH]
            absent = [(0, _BATCH - len(theirs)), *((0, 0) for _ in theirs.shape[1:])]
            filled = np.resize(some, (_BATCH, *some.shape[1:])), np.pad(theirs, absent, constant_values=-1)
            correct, scored = right(params, *filled)
            hits, count = hits + int(correct), count + int(scored)
        return np.float32(hits) * np.float32(1.0 / max(count, 1))

    dim = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
    return Model(name, dim, init, loss, accuracy)
