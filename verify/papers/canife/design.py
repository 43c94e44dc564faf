"""Canary design: gradient descent on a sample until its update is orthogonal to all mock clients' (Section 3.3).

The descent works on the pixels and, unless the label is fixed, on the logits of a soft label. Pixels are not kept
to a range: the canary is meant to be far from all data.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.papers.canife.attack import Response
from canaryproof.verify.papers.canife.options import CanaryOptions


class Sample(NamedTuple):
    """One example with a soft label (probabilities of the classes)."""

    input: Any  # JAX's or numpy's, as the label
    label: Any


@dataclass(frozen=True)
class Canary:
    """A designed canary."""

    input: NDArray[np.float32]  # of text, weights of tokens, which are 0 or 1
    label: NDArray[np.float32]  # probability of each class, or tokens to predict
    loss: float
    initial_loss: float  # where the design that is kept began
    norm: float  # before clipping, of the vector by which it is designed: the gradient, or an update
    attempts: int = 1  # designs made, restarts included
    healthy: bool = True  # whether the last of them met what was asked for

    @property
    def health(self) -> float:
        """Share of the initial loss that the design took away, 1 at best (Section 4.2)."""
        return 1.0 - self.loss / self.initial_loss

    @property
    def sample(self) -> Sample:
        """The sample for JAX."""
        return Sample(jnp.asarray(self.input), jnp.asarray(self.label))


def clip_factor(norm: jax.Array, clip_norm: float) -> jax.Array:
    """Return what clipping multiplies a vector of this norm by."""
    # The comparison serves the norm 0 as well.
    return jnp.where(norm > clip_norm, clip_norm / norm, 1.0)


State = Any


class Updates(Protocol):
    """A way to compute inner products of updates: ``FactoredUpdates``, ``GeneralUpdates`` or ``TextUpdates``.

    Its states hold a frozen model and the clipped updates uᵢ of its mock clients.
    """

    @property
    def clip_norm(self) -> float:
        """C."""

    def prepare(self, params: Any, inputs: ArrayLike, labels: ArrayLike, mask: ArrayLike) -> State:
        """Compute mock clients' clipped updates, for examples as ``Federation.cohort`` has them."""

    def products(self, state: State, sample: Any) -> tuple[jax.Array, jax.Array]:
        """⟨uᵢ, u⟩ for all mock clients, and ‖u‖², for the vector u by which a sample is designed, before clipping."""

    def response(self, state: State, canaries: list[Canary]) -> Response:
        """Inner products of canaries' clipped updates with the mock clients' and with each other."""


class Start(NamedTuple):
    """Where a design begins."""

    input: NDArray[np.float32]
    logits: NDArray[np.float32] | NDArray[np.integer]  # of its label; for text also tokens to predict, as integers
    client: int = -1  # mock client whose sample it is, which the design then leaves out; −1 if none


Starts = Callable[[np.random.Generator], Start]


def noise(shape: tuple[int, ...], classes: int, law: Literal["normal", "uniform"] = "normal") -> Starts:
    """Begin with random pixels, standard normal or uniform on [0, 1], and a random label."""

    def draw(rng: np.random.Generator) -> Start:
        pixels = rng.normal(size=shape) if law == "normal" else rng.random(shape)
        return Start(pixels.astype(np.float32), rng.normal(size=classes).astype(np.float32))

    return draw


def pool_samples(inputs: ArrayLike, labels: ArrayLike, classes: int) -> Starts:
    """Begin with the first sample of a random mock client; examples have the shape (clients, examples, …)."""
    first_inputs, first_labels = np.asarray(inputs)[:, 0], np.asarray(labels)[:, 0]

    def draw(rng: np.random.Generator) -> Start:
        client = int(rng.integers(len(first_labels)))
        # A soft label could not move from a class that has all the weight.
        probabilities = 0.9 * np.eye(classes)[first_labels[client]] + 0.1 / classes
        return Start(first_inputs[client].astype(np.float32), np.log(probabilities).astype(np.float32), client)

    return draw


class Variables(NamedTuple):
    """Variables of the descent: input, and logits unless the label is fixed."""

    input: jax.Array | NDArray[Any]
    logits: jax.Array | NDArray[Any] | None


class Designer:
    """Designs canaries for one kind of model: compiled at the first design, for any parameters."""

    def __init__(self, updates: Updates, settings: CanaryOptions | None = None) -> None:
        self.updates, self.settings = updates, settings or CanaryOptions()
        self._descend: Callable[..., tuple[Sample, Any, Any, Any]] = jax.jit(self._descended)

    def design(self, state: State, starts: Starts, rng: np.random.Generator) -> Canary:
        """Design a canary, from another start while it is poor; that of the smallest loss is kept.

        Maddock et al. (arXiv 2210.02912), Algorithm 1, lines 4 to 9. The paper's health compares with the initial loss,
        which is in the hundreds on MNIST. A sample without any gradient is of no use, but has loss C² and health 0.998.
        Whether a canary is poor is therefore decided by the loss itself.
        """
        largest = self.settings.largest_loss * self._least_norm**2
        best: Canary | None = None
        attempts = 0
        while attempts <= self.settings.restarts and (best is None or best.loss > largest):
            attempts += 1
            start = starts(rng)
            variables, label = self._begun(start)
            seed = rng.integers(2**32, dtype=np.uint32)
            sample, initial, loss, norm = self._descend(state, variables, label, start.client, seed)
            # A descent that overflowed is the poorest of all.
            reached = float(loss) if np.isfinite(loss) else math.inf
            if best is None or reached < best.loss:
                best = Canary(np.asarray(sample.input), np.asarray(sample.label), reached, float(initial), float(norm))
        assert best is not None
        return replace(best, attempts=attempts, healthy=best.loss <= largest)

    @property
    def _least_norm(self) -> float:
        return self.settings.norm_constant * self.updates.clip_norm

    def loss(self, state: State, sample: Any, excluded: ArrayLike = -1) -> tuple[jax.Array, jax.Array]:
        """Return a sample's canary loss and its update's length before clipping; client ``excluded`` does not count.

        Maddock et al. (arXiv 2210.02912), equation (1). What it calls the gradient is the vector that ``Updates``
        designs: the gradient, or with Appendix F's second way the update of several steps.
        """
        products, squared = self.updates.products(state, sample)
        products = jnp.where(jnp.arange(len(products)) == excluded, 0.0, products)
        inner = jnp.sum(products**2) if self.settings.loss == "covariance" else jnp.mean(products) ** 2
        # The root has no derivative at 0, where a sample without any gradient is.
        norm = jnp.where(squared > 0.0, jnp.sqrt(jnp.where(squared > 0.0, squared, 1.0)), 0.0)
        return inner + jnp.maximum(self._least_norm - norm, 0.0) ** 2, norm

    def _begun(self, start: Start) -> tuple[Variables, ArrayLike]:
        """Return the variables of the descent, and the label if it is none of them."""
        label = np.eye(len(start.logits), dtype=np.float32)[np.argmax(start.logits)]
        return Variables(start.input, start.logits if self.settings.label == "soft" else None), label

    def _sample(self, variables: Variables, label: jax.Array, _: jax.Array) -> Sample:
        """Return the sample of a step; a relaxation draws it by the last argument, a seed and the step's number."""
        return Sample(variables.input, label if variables.logits is None else jax.nn.softmax(variables.logits))

    def _ended(self, state: State, variables: Variables, label: jax.Array, excluded: jax.Array, draw: jax.Array) -> Any:
        """Return the sample at the end, its loss and its norm."""
        sample = self._sample(variables, label, draw)
        return sample, *self.loss(state, sample, excluded)

    def _descended(
        self, state: State, start: Variables, label: jax.Array, excluded: jax.Array, seed: jax.Array
    ) -> tuple[Sample, jax.Array, jax.Array, jax.Array]:
        """Return the sample at the end, the initial loss, the loss and the norm."""
        optimiser = optax.adam(self.settings.rate)

        def loss(variables: Variables, number: jax.Array | int) -> jax.Array:
            draw = jnp.stack([seed, jnp.uint32(number)])
            return self.loss(state, self._sample(variables, label, draw), excluded)[0]

        def step(carry: tuple[Variables, Any], number: jax.Array) -> tuple[tuple[Variables, Any], None]:
            variables, memory = carry
            change, memory = optimiser.update(jax.grad(loss)(variables, number), memory)
            return (optax.apply_updates(variables, change), memory), None

        steps = self.settings.steps
        (end, _), _ = jax.lax.scan(step, (start, optimiser.init(start)), jnp.arange(steps))
        sample, final, norm = self._ended(state, end, label, excluded, jnp.stack([seed, jnp.uint32(steps)]))
        return sample, loss(start, steps + 1), final, norm
