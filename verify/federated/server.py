"""The server's part of a round: its optimiser takes the round's delta for the negative of a gradient."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import ArrayLike, NDArray

NAMES = ("sgd", "adam")

# Adam's other constants, β₁, β₂ and τ of Reddi et al. (arXiv 2003.00295): the defaults of FedAdam in Flower 1.43.
_FIRST_DECAY, _SECOND_DECAY, _ADAPTIVITY = 0.9, 0.99, 1e-3


class Server:
    """The model's parameters θ and the optimiser that changes them.

    With ``sgd`` and no momentum a step is θ ← θ + ηρ̄, line 9 of Algorithm 2. Momentum and ``adam`` mix the deltas of
    all rounds. Whoever sees all iterates undoes momentum; in any case Algorithm 3's attacker is one who sees ρ̄.

    Parameters
    ----------
    name
        ``sgd``, or ``adam`` for FedAdam (Reddi et al., arXiv 2003.00295), with the correction of Adam's bias.
    rate
        Server learning rate η.
    momentum
        Of ``sgd``: 0 for none.
    initial
        Parameters θ₀, flat, shape (dim,).

    Attributes
    ----------
    theta
        Parameters now, shape (dim,).
    """

    def __init__(self, name: str, rate: float, momentum: float, initial: ArrayLike) -> None:
        self.theta: jax.Array = jnp.asarray(initial, jnp.float32)
        initial_state, self._step = _optimiser(name, rate, momentum)
        self._state: Any = initial_state(self.theta)

    def step(self, delta: ArrayLike) -> None:
        """Change the parameters by a round's delta ρ̄, shape (dim,)."""
        self.theta, self._state = self._step(self.theta, self._state, jnp.asarray(delta, jnp.float32))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that changes from step to step, by name."""
        leaves = jax.tree.leaves(self._state)
        return {"theta": np.asarray(self.theta)} | {f"optimiser_{i}": np.asarray(x) for i, x in enumerate(leaves)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what ``arrays`` returned."""
        leaves, structure = jax.tree.flatten(self._state)
        self.theta = jnp.asarray(arrays["theta"])
        self._state = jax.tree.unflatten(structure, [jnp.asarray(arrays[f"optimiser_{i}"]) for i in range(len(leaves))])


# Another training with the same optimiser is not compiled anew.
@cache
def _optimiser(name: str, rate: float, momentum: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make the functions that give the first state, and new parameters and state from these and a delta."""
    if name == "adam":
        optimiser = optax.adam(rate, _FIRST_DECAY, _SECOND_DECAY, _ADAPTIVITY)
    else:
        optimiser = optax.sgd(rate, momentum if momentum > 0.0 else None)

    @jax.jit
    def step(theta: jax.Array, state: Any, delta: jax.Array) -> tuple[jax.Array, Any]:
        change, state = optimiser.update(-delta, state, theta)
        return jnp.asarray(optax.apply_updates(theta, change)), state

    return optimiser.init, step
