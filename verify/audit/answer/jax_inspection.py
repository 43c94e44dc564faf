"""An inspection of a training in JAX: a canary is an example whose loss is linear in the parameters.

The gradient of such a loss is the canary. So whatever takes gradients of examples and clips them takes canaries too:
``jax_privacy.clipped_grad``, or ``jax.vmap`` of ``jax.grad``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.answer.inspection import Inspection


@set_module("canaryproof")
class JaxInspection(Inspection):
    """An inspection of a training in JAX, by jax_privacy or another library, with ten canaries among the examples.

    The data set has ten examples more than the training: any ones, at its end, with numbers from ``members`` on. The
    training's own sampler draws them as all others. The inspection's loss takes the examples' numbers last, and makes a
    canary, ten clip norms long, the gradient of each of the ten::

        inspection = JaxInspection(loss, params, members=n, noise_multiplier=1.0, clip_norm=1.0, divisor=1)
        summed = clipped_grad(inspection.loss, l2_clip_norm=1.0, batch_argnums=(1, 2, 3))
        for i in batches:
            released, state = privatizer.update(summed(params, x[i], y[i], i), state)
            inspection.take(released, params, x[i], y[i], i)
            params = ...

    Parameters
    ----------
    loss
        The training's loss, a function of the parameters and of arrays of examples, which returns a number. It is
        called with one example at a time, which keeps its axis.
    params
        The parameters, a pytree.
    members
        Number of examples, without the canaries.
    noise_multiplier, clip_norm, rate, divisor
        What is claimed, as for ``Inspection``.
    layers
        Sizes of the parts that are tested one by one; those of the parameters' arrays by default.
    seed
        Seed of the canaries.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    The inspection takes the other examples' gradients and clips them itself.
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        params: Any,
        *,
        members: int,
        noise_multiplier: float,
        clip_norm: float,
        rate: float | None = None,
        divisor: float | None = None,
        layers: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        # JAX is an optional library.
        import jax
        from jax.flatten_util import ravel_pytree

        sizes = [int(np.size(leaf)) for leaf in jax.tree.leaves(params)]
        super().__init__(
            members=members,
            dim=sum(sizes),
            noise_multiplier=noise_multiplier,
            clip_norm=clip_norm,
            rate=rate,
            divisor=divisor,
            layers=sizes if layers is None else layers,
            seed=seed,
        )
        self._loss = loss
        self._updates = np.array([self.update(self.members + j) for j in range(self.canaries)])

        def row(parameters: Any, *example: Any) -> Any:
            alone = [array[np.newaxis] for array in example]
            return ravel_pytree(jax.grad(loss)(parameters, *alone))[0]

        self._rows = jax.jit(lambda parameters, *batch: jax.vmap(lambda *example: row(parameters, *example))(*batch))

    def loss(self, params: Any, *batch: Any) -> Any:
        """Return the loss of examples; that of a canary is linear in the parameters.

        Parameters
        ----------
        params
            The parameters.
        *batch
            What the training's loss takes of the examples, and then their numbers, shape (n,) or ().

        Returns
        -------
        The training's loss for other examples. That of a canary is −⟨parameters, canary⟩.
        """
        # JAX is an optional library.
        import jax.numpy as jnp
        from jax.flatten_util import ravel_pytree

        *given, numbers = batch
        number = jnp.atleast_1d(numbers)
        canary = number >= self.members
        products = jnp.asarray(self._updates)[jnp.where(canary, number - self.members, 0)] @ ravel_pytree(params)[0]
        own = jnp.where(canary.all(), 0.0, self._loss(params, *given))
        return own - jnp.where(canary, products, 0.0).mean()

    def take(self, released: Any, params: Any, *batch: Any) -> None:
        """Take a step.

        Parameters
        ----------
        released
            What the step releases, like the parameters: the noised sum of gradients over the divisor.
        params
            The parameters that the gradients were taken at.
        *batch
            As for ``loss``, for the whole batch: arrays with an axis of examples, and then the examples' numbers, shape
            (n,). Negative numbers are padding.

        Raises
        ------
        ValueError
            As ``Inspection.add`` does.
        """
        from jax.flatten_util import ravel_pytree

        *given, numbers = batch
        number = np.asarray(numbers)
        rows = np.asarray(self._rows(params, *given))[(number >= 0) & (number < self.members)]
        # A step goes against the gradient.
        self.add(-np.asarray(ravel_pytree(released)[0]), number[number >= 0], -self.clipped_sum(rows) / self.divisor)
