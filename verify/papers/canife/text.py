"""Canaries of text: descent on the logits of tokens through the Gumbel-softmax distribution (Section 3.3).

Each step draws relaxed tokens, softmax((Θ + Gumbel noise)/temperature), and descends on Θ. At the end tokens are drawn
from softmax(Θ), and those of the smallest loss are the canary. A relaxed token enters the network as a mixture of
embeddings. For this the network gets an embedding table with one more row for each position of the text, so that any
model with a table will do. Sources of the paper: Guo et al. (arXiv 2104.13733), Jang et al. (arXiv 1611.01144).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.papers.canife.design import Designer, Sample, Start, Starts, State, Variables
from canaryproof.verify.papers.canife.general import (
    GeneralUpdates,
    LocalTraining,
    Loss,
    Params,
    local_update,
    soft_loss,
)
from canaryproof.verify.papers.canife.options import TEXTS, CanaryOptions

_EMBEDDING = "embedding"


class TextUpdates(GeneralUpdates):
    """Updates of clients of a model of text.

    A sample's input holds weights of tokens, shape (length, vocabulary). Its label is soft where a text has one class,
    and fixed where each token has a next one to predict: integers, shape (length,). ``extended_loss`` is the loss of
    the same model for a vocabulary that is larger by the texts' length. With given embeddings ``vectors`` it takes
    parameters {"embedding": rows for the larger vocabulary, "rest": the model's}.
    """

    def __init__(
        self,
        loss: Loss,
        extended_loss: Loss,
        clip_norm: float = 1.0,
        local: LocalTraining | None = None,
        design: LocalTraining | None = None,
        vectors: NDArray[np.float32] | None = None,
    ) -> None:
        super().__init__(loss, clip_norm, local, design)
        self.extended_loss, self.vectors = extended_loss, vectors

    def _of_sample(self, params: Params, sample: Sample, local: LocalTraining) -> jax.Array:
        length, vocabulary = sample.input.shape
        text = vocabulary + jnp.arange(length)

        def loss(p: Params) -> jax.Array:
            if self.vectors is not None:
                p = {_EMBEDDING: self.vectors, "rest": p}
            extended = _with_rows(p, sample.input)
            if jnp.issubdtype(sample.label.dtype, jnp.integer):
                value: jax.Array = self.extended_loss(extended, text[None], sample.label[None], jnp.ones(1))
                return value
            return soft_loss(self.extended_loss, extended, text, sample.label)

        return local_update(loss, params, local)


def _with_rows(params: Params, weights: jax.Array) -> Params:
    """Append mixtures of embeddings to the embedding table."""
    if not isinstance(params, Mapping):
        return params
    return {
        name: jnp.concatenate([part, weights @ part]) if name == _EMBEDDING else _with_rows(part, weights)
        for name, part in params.items()
    }


@dataclass(frozen=True)
class Relaxation:
    """The Gumbel-softmax distribution."""

    temperature: float = 1.0  # above 0; the smaller, the nearer to tokens
    draws: int = TEXTS  # drawn at the end


class TextDesigner(Designer):
    """Designs canaries of text."""

    def __init__(
        self, updates: TextUpdates, settings: CanaryOptions | None = None, relaxation: Relaxation | None = None
    ) -> None:
        super().__init__(updates, settings)
        self.relaxation = relaxation or Relaxation()

    def _begun(self, start: Start) -> tuple[Variables, ArrayLike]:
        if np.issubdtype(start.logits.dtype, np.integer):
            return Variables(jnp.asarray(start.input), None), start.logits
        return super()._begun(start)

    def _sample(self, variables: Variables, label: jax.Array, draw: jax.Array) -> Sample:
        noise = jax.random.gumbel(_key(draw), variables.input.shape)
        weights = jax.nn.softmax((variables.input + noise) / self.relaxation.temperature)
        return Sample(weights, super()._sample(variables, label, draw).label)

    def _ended(self, state: State, variables: Variables, label: jax.Array, excluded: jax.Array, draw: jax.Array) -> Any:
        noise = jax.random.gumbel(_key(draw), (self.relaxation.draws, *variables.input.shape))
        # The largest of logits and Gumbel noise is a draw from their softmax.
        tokens = jnp.argmax(variables.input + noise, axis=-1)
        hot = jax.nn.one_hot(tokens, variables.input.shape[-1])
        own = super()._sample(variables, label, draw).label
        losses, norms = jax.lax.map(lambda text: self.loss(state, Sample(text, own), excluded), hot)
        best = jnp.argmin(losses)
        return Sample(hot[best], own), losses[best], norms[best]


def _key(draw: jax.Array) -> jax.Array:
    return jax.random.fold_in(jax.random.key(draw[0]), draw[1])


def random_tokens(length: int, vocabulary: int, label: int | NDArray[np.integer]) -> Starts:
    """Begin with logits of tokens from the standard normal law.

    The label is the number of classes, if it begins at random, or the tokens to predict, which stay.
    """

    def draw(rng: np.random.Generator) -> Start:
        tokens = rng.normal(size=(length, vocabulary)).astype(np.float32)
        return Start(tokens, rng.normal(size=label).astype(np.float32) if isinstance(label, int) else label)

    return draw


def text_of(tokens: NDArray[np.integer], vocabulary: int, label: int | NDArray[np.integer]) -> Starts:
    """Begin with a text, each of whose tokens has probability 0.9."""
    weights = 0.9 * np.eye(vocabulary)[tokens] + 0.1 / vocabulary
    random = random_tokens(len(tokens), vocabulary, label)
    return lambda rng: random(rng)._replace(input=np.log(weights).astype(np.float32))
