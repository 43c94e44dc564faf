"""The clients' part of a round, lines 4 and 5 of Algorithms 2 and 3: local training, clipping and the sum.

The clients of a chunk are trained at once, by ``vmap`` over clients and ``scan`` over local batches. Cohorts are
trained chunk by chunk, so that memory does not grow with them. Chunks have one shape, whatever the cohort, so that
nothing is compiled twice. A chunk is filled up with clients whose examples are all masked, so that their update is
zero. One step of the two-layer network is numpy's.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.papers.canife.factored import Layer, gradient_factors
from canaryproof.verify.papers.training.data.federation import FederatedData
from canaryproof.verify.papers.training.networks import Model

Array = NDArray[np.float32]
ChunkSum = Callable[..., tuple[Array | jax.Array, Array | jax.Array]]

# Coordinates of the clients' updates held at a time: 16 MB stay near the processor.
_HELD = 2**22
# Numbers between inputs and loss held at a time: half a GB.
_HELD_BETWEEN = 2**27


@dataclass(frozen=True)
class CohortSum:
    """The clients' part of a round."""

    total: NDArray[np.float64]  # Σ Clip(τ_i(θ); S), shape (dim,)
    # ‖τ_i(θ)‖ before clipping, one a client, in their order; not finite where an update is not
    norms: NDArray[np.float32]


class CohortSums(Protocol):
    """The clients as a training loop sees them."""

    def sum(self, theta: jax.Array | NDArray[np.float32], clients: NDArray[np.int64], clip_norm: float) -> CohortSum:
        """Train the clients of a round from θ on and add their clipped updates."""


class Clients:
    """The training functions τ_i of a federation's clients, and the sum of their clipped updates.

    τ_i(θ) is the change that ``epochs`` passes of stochastic gradient descent over the client's examples make from θ
    on. This is Algorithm 2 of Andrew et al. (arXiv 2302.03098), lines 4, 5, 14 and 15. The examples are cut into
    batches in their order, the same in each epoch: McMahan et al., arXiv 1602.05629, Algorithm 1, but for the
    shuffling. The last batch of an epoch may be smaller. With one example a client, a batch of one, one epoch and rate
    1, updates are the negative gradients of single examples, as in DP-SGD.

    A client uses its first ``examples``. ``cohort`` is the largest number of clients in a round; larger rounds work
    too, with chunks that are not of the best size. ``chunk`` clients are trained at a time.
    """

    def __init__(
        self,
        federation: FederatedData,
        model: Model,
        *,
        rate: float,
        epochs: int,
        batch_size: int,
        examples: int,
        cohort: int,
    ) -> None:
        self._federation = federation
        self._examples = examples
        self.chunk = chunk_of(model, federation, cohort, min(batch_size, examples))
        self._rate = np.float32(rate)
        by_factors = model.name == "two_layer" and epochs == 1 and examples <= batch_size
        self._sum = _two_layer_sum(model) if by_factors else _chunk_sum(model, epochs, batch_size)

    def sum(self, theta: jax.Array | NDArray[np.float32], clients: NDArray[np.int64], clip_norm: float) -> CohortSum:
        """Train the clients of a round from the flat θ on and add their clipped updates.

        The sum is in float32 within a chunk and in float64 over chunks.
        """
        total, norms = np.zeros(np.shape(theta)), [np.zeros(0, np.float32)]
        chunks = self._chunks(theta, clients, clip_norm)
        running = next(chunks, None)
        while running is not None:
            # JAX returns before it is done: the next chunk's examples are gathered meanwhile.
            following = next(chunks, None)
            total += np.asarray(running[0])
            norms.append(np.asarray(running[1]))
            running = following
        return CohortSum(total, np.concatenate(norms)[: len(clients)])

    def _chunks(
        self, theta: Any, clients: NDArray[np.int64], clip_norm: float
    ) -> Iterator[tuple[Array | jax.Array, Array | jax.Array]]:
        for start in range(0, len(clients), self.chunk):
            some = clients[start : start + self.chunk]
            inputs, labels, mask = self._federation.cohort(np.resize(some, self.chunk), self._examples)
            mask[len(some) :] = 0.0
            yield self._sum(theta, inputs, labels, mask, self._rate, np.float32(clip_norm))


def between(model: Model, federation: FederatedData, batch: int) -> int:
    """Count the numbers that the loss of a batch of examples makes on the way, most of which its gradient needs."""
    return _between(model, *(((batch, *part.shape[1:]), part.dtype) for part in federation.template))


# Tracing takes milliseconds, as long as some trainings.
@cache
def _between(model: Model, *examples: tuple[tuple[int, ...], np.dtype[Any]]) -> int:
    params = jax.eval_shape(lambda: model.init(0))
    inputs, labels = (np.broadcast_to(np.zeros((), dtype), shape) for shape, dtype in examples)
    steps = jax.make_jaxpr(model.loss)(params, inputs, labels, np.ones(len(labels), np.float32)).eqns
    return sum(math.prod(value.aval.shape) for step in steps for value in step.outvars)


@cache
def _two_layer_sum(model: Model) -> ChunkSum:
    """Make the function of ``_chunk_sum`` for one step of clients of the two-layer network, from their factors.

    No client's update is ever written down: a sum of weighted ones is a product of factors (Goodfellow 2015, arXiv
    1510.01799, for single examples). By numpy, as a small training takes less time than to compile one.
    """
    # Flax numbers the layers in the order in which ``TwoLayer`` makes them; a bias comes before its kernel.
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(model.init(0))]
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    one_hot = np.eye(*shapes[2], dtype=np.float32)

    def clipped_sum(
        theta: ArrayLike, inputs: Array, labels: NDArray[np.int32], mask: Array, rate: np.float32, clip_norm: np.float32
    ) -> tuple[Array, Array]:
        first, kernel, last, top = (
            part.reshape(shape) for part, shape in zip(np.split(np.asarray(theta), ends), shapes, strict=True)
        )
        layers, rows = (Layer(kernel, first), Layer(top, last)), inputs.reshape(labels.size, -1)
        shares = mask / np.maximum(mask.sum(axis=1, keepdims=True), np.float32(1.0))
        # A model that diverges overflows, and its norms say so.
        with np.errstate(all="ignore"):
            factors = gradient_factors(layers, rows, one_hot[labels.ravel()])
            squares = np.zeros(len(mask))
            for each in factors:
                # Squares leave float32's range early.
                a, g = (part.astype(np.float64).reshape(*mask.shape, -1) for part in each)
                g *= shares[..., np.newaxis]
                squares += ((1.0 + a @ a.swapaxes(1, 2)) * (g @ g.swapaxes(1, 2))).sum(axis=(1, 2))
            norms = rate * np.sqrt(np.maximum(squares, 0.0)).astype(np.float32)
            # The comparison of a NaN gives a NaN: not the clip hides it but the caller finds it.
            weights = -rate * (clip_norm / np.maximum(norms, clip_norm))[:, np.newaxis] * shares
            total = []
            for a, g in factors:
                weighted = g * weights.reshape(-1, 1)
                total += [weighted.sum(axis=0), (a.T @ weighted).ravel()]
        return np.concatenate(total), norms

    return clipped_sum


# Another training of the same model is not compiled anew.
@cache
def _chunk_sum(model: Model, epochs: int, batch_size: int) -> ChunkSum:
    """Make the compiled function of (θ, inputs, labels, mask, rate, clip norm): the clipped sum, and the norms."""
    trained = _trained(model, epochs, batch_size)

    @jax.jit
    def clipped_sum(
        theta: jax.Array, inputs: jax.Array, labels: jax.Array, mask: jax.Array, rate: jax.Array, clip_norm: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        updates, norms, factors = trained(theta, inputs, labels, mask, rate, clip_norm)
        total, _ = ravel_pytree(jax.tree.map(lambda leaf: jnp.tensordot(factors, leaf, 1), updates))
        return total, norms

    return clipped_sum


@cache
def clipped_updates(model: Model, epochs: int, batch_size: int) -> Callable[..., jax.Array]:
    """Make the compiled function of clients' examples to their clipped updates themselves.

    It takes (θ, inputs, labels, mask, rate, clip norm), examples as ``Federation.cohort`` has them, to an array of
    shape (clients, dim).
    """
    trained = _trained(model, epochs, batch_size)

    @jax.jit
    def clipped(
        theta: jax.Array, inputs: jax.Array, labels: jax.Array, mask: jax.Array, rate: jax.Array, clip_norm: jax.Array
    ) -> jax.Array:
        updates, _, factors = trained(theta, inputs, labels, mask, rate, clip_norm)
        rows = [leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(updates)]
        return jnp.concatenate(rows, axis=1) * factors[:, jnp.newaxis]

    return clipped


def chunk_of(model: Model, federation: FederatedData, cohort: int, batch: int) -> int:
    """Return how many clients' updates to compute at a time, for steps on ``batch`` examples."""
    most = max(1, min(_HELD // model.dim, _HELD_BETWEEN // between(model, federation, batch)))
    # Equal chunks, so that the last one is not nearly empty.
    chunk = max(1, math.ceil(cohort / max(1, math.ceil(cohort / most))))
    # Chunks have few sizes, so that trainings with random cohorts do not each compile their own.
    step = max(1, (1 << chunk.bit_length()) // 16)
    return step * math.ceil(chunk / step)


def _trained(model: Model, epochs: int, batch_size: int) -> Callable[..., tuple[Any, jax.Array, jax.Array]]:
    """Make the function of (θ, inputs, labels, mask, rate, clip norm): updates, their norms, and what clips them."""
    _, unravel = ravel_pytree(model.init(0))

    def update(params: Any, batches: Any, rate: jax.Array) -> Any:
        number = len(batches[0])

        def step(params: Any, i: Any) -> Any:
            gradient = jax.grad(model.loss)(params, *(array[i % number] for array in batches))
            return jax.tree.map(lambda leaf: -rate * leaf, gradient)

        def later(change: Any, i: jax.Array) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, change, step(jax.tree.map(jnp.add, params, change), i)), None

        # At the first step all clients have the same parameters, and products with them are one product for all.
        change = step(params, 0)
        if epochs * number > 1:
            change, _ = jax.lax.scan(later, change, jnp.arange(1, epochs * number))
        return change

    def batched(examples: jax.Array) -> jax.Array:
        """Cut (clients, examples, …) into (clients, batches, batch, …)."""
        clients, count, *rest = examples.shape
        batch = min(batch_size, count)
        padding = [(0, 0), (0, -count % batch), *((0, 0) for _ in rest)]
        return jnp.pad(examples, padding).reshape(clients, -1, batch, *rest)

    def updates_and_factors(
        theta: jax.Array, inputs: jax.Array, labels: jax.Array, mask: jax.Array, rate: jax.Array, clip_norm: jax.Array
    ) -> tuple[Any, jax.Array, jax.Array]:
        batches = tuple(batched(array) for array in (inputs, labels, mask))
        updates = jax.vmap(update, (None, 0, None))(unravel(theta), batches, rate)
        norms = _norms(updates)
        return updates, norms, _clip_factors(norms, clip_norm)

    return updates_and_factors


def _clip_factors(norms: jax.Array, clip_norm: jax.Array) -> jax.Array:
    # The comparison serves the norm 0 as well. A NaN stays one: not the clip hides it but the caller finds it.
    return jnp.where(norms > clip_norm, clip_norm / norms, 1.0)


def _norms(updates: Any) -> jax.Array:
    """Norms of a stack of updates: scaled by the largest coordinate, since squares leave float32's range early."""
    rows = [leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(updates)]
    scale = _largest(*rows)
    return scale * jnp.sqrt(sum(jnp.square(row / scale[:, jnp.newaxis]).sum(axis=1) for row in rows))


def _largest(*rows: jax.Array) -> jax.Array:
    """Return the largest absolute value in each row of some arrays, and 1 where all are 0."""
    largest = jnp.stack([jnp.abs(row).max(axis=1) for row in rows]).max(axis=0)
    return jnp.where(largest > 0.0, largest, 1.0)
