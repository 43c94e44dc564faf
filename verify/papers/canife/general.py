"""Clients' updates for any model, as vectors of all coordinates; the factored ones are checked by them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.papers.canife.attack import Response
from canaryproof.verify.papers.canife.design import Canary, Sample, clip_factor

Params = Any
# (parameters, inputs, labels, mask) to the mean loss over examples where the mask is not 0, weighted by it.
Loss = Callable[[Params, Any, Any, Any], Any]

# Updates computed at a time.
_CHUNK = 32


@dataclass(frozen=True)
class LocalTraining:
    """A client's local training: steps of gradient descent on all of its examples, one a local epoch."""

    rate: float = 1.0
    steps: int = 1


# One step at rate 1, whose update is the gradient, but for the sign: by it equation (1) designs.
GRADIENT = LocalTraining()


class GeneralState(NamedTuple):
    """The frozen model, and its mock clients' clipped updates, shape (clients, dim)."""

    params: Params
    updates: jax.Array | NDArray[np.floating]


class GeneralUpdates:
    """Updates of clients of any model.

    A canary is designed by its gradient, however many steps at whatever rate the clients make (equation 1; Appendix F,
    first way). With ``local`` for ``design`` it is designed by its update, back through all steps (second way).
    """

    def __init__(
        self,
        loss: Loss,
        clip_norm: float = 1.0,
        local: LocalTraining | None = None,
        design: LocalTraining | None = None,
    ) -> None:
        self.loss, self.clip_norm = loss, clip_norm
        self.local = local or LocalTraining()
        self.design = design or GRADIENT
        self._prepare = jax.jit(self._clipped)
        self._canary = jax.jit(lambda params, sample: self._clip(self._of_sample(params, sample, self.local)))

    def prepare(self, params: Params, inputs: ArrayLike, labels: ArrayLike, mask: ArrayLike) -> GeneralState:
        """Compute mock clients' clipped updates, as ``design.Updates`` has it."""
        return GeneralState(params, self._prepare(params, *map(np.asarray, (inputs, labels, mask))))

    def products(self, state: GeneralState, sample: Sample) -> tuple[jax.Array, jax.Array]:
        """Inner products ⟨uᵢ, u⟩ with a sample's own vector u before clipping, and ‖u‖²; twice differentiable."""
        update = self._of_sample(state.params, sample, self.design)
        return jnp.asarray(state.updates) @ update, update @ update

    def canary_updates(self, params: Params, canaries: Sequence[Canary]) -> NDArray[np.floating]:
        """Compute the clipped updates of canary clients, shape (canaries, dim), whatever they were designed with."""
        return np.stack([self._canary(params, canary.sample) for canary in canaries])

    def response(self, state: GeneralState, canaries: Sequence[Canary]) -> Response:
        """Inner products of canaries' clipped updates with the clients' and with each other.

        The state may be of other clients than the canaries were designed for, if they are to be judged on those.
        """
        own = self.canary_updates(state.params, canaries)
        products, gram = (own @ np.asarray(other).T for other in (state.updates, own))
        return Response(products.astype(np.float64), gram.astype(np.float64))

    def _clip(self, update: jax.Array) -> jax.Array:
        return update * clip_factor(jnp.linalg.norm(update), self.clip_norm)

    def _clipped(self, params: Params, inputs: jax.Array, labels: jax.Array, mask: jax.Array) -> jax.Array:
        def of_client(client: tuple[jax.Array, ...]) -> jax.Array:
            return self._clip(local_update(lambda p: self.loss(p, *client), params, self.local))

        updates: jax.Array = jax.lax.map(of_client, (inputs, labels, mask), batch_size=_CHUNK)
        return updates

    def _of_sample(self, params: Params, sample: Sample, local: LocalTraining) -> jax.Array:
        return local_update(lambda p: soft_loss(self.loss, p, sample.input, sample.label), params, local)


def soft_loss(loss: Loss, params: Params, sample: jax.Array, label: jax.Array) -> jax.Array:
    """Return the loss of one sample with a soft label: cross-entropy is linear in the label."""

    def of_class(index: jax.Array) -> jax.Array:
        return jnp.asarray(loss(params, sample[None], index[None], jnp.ones(1)))

    # Under ``vmap`` only what depends on the class is done for each: not the network.
    return label @ jax.vmap(of_class)(jnp.arange(len(label)))


def local_update(loss: Callable[[Params], Any], params: Params, local: LocalTraining) -> jax.Array:
    """Return the change of the parameters that local training makes, flat and before clipping."""
    flat, unravel = ravel_pytree(params)

    def step(change: jax.Array, _: None) -> tuple[jax.Array, None]:
        return change - local.rate * jax.grad(lambda vector: loss(unravel(vector)))(flat + change), None

    if local.steps == 1:
        return step(jnp.zeros_like(flat), None)[0]
    return jax.lax.scan(step, jnp.zeros_like(flat), None, length=local.steps)[0]
