"""Networks that read text, in flax."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array
from numpy.typing import NDArray


class Recurrent(nn.Module):
    """Embedded tokens, LSTM layers and dense ones without a bend between them.

    Attributes
    ----------
    classes, vocabulary
        Number of classes, and of tokens.
    hidden, layers
        Width of an LSTM layer, and how many there are.
    last_only
        Whether logits are wanted for the last place alone.
    width
        Dimensions of the embedding.
    vectors
        The embedding, shape (vocabulary, dimensions), if it is given and not trained.
    two_biases
        Whether an LSTM layer has two biases, which add up: PyTorch's has.
    projection
        Width of a dense layer before the last, if there is one.
    """

    classes: int
    vocabulary: int
    hidden: int
    layers: int
    last_only: bool
    width: int
    vectors: NDArray[np.float32] | None = None
    two_biases: bool = False
    projection: int | None = None

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
