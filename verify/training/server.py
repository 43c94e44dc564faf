"""The server of a training: the model's parameters, and the optimiser that changes them by each round's delta."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import ArrayLike, NDArray

OPTIMISERS = ("sgd", "adam")

# Adam's other constants, β₁, β₂ and τ of Reddi et al. (arXiv 2003.00295): the defaults of FedAdam in Flower 1.43.
_FIRST_DECAY, _SECOND_DECAY, _ADAPTIVITY = 0.9, 0.99, 1e-3


class Server:
    """The model's flat parameters θ and the optimiser that changes them: ``sgd``, or ``adam`` for FedAdam.

    With ``sgd`` and no momentum a step is θ ← θ + ηρ̄, line 9 of Algorithm 2. Momentum and ``adam`` mix the deltas of
    all rounds. FedAdam (Reddi et al., arXiv 2003.00295) has the correction of Adam's bias. Whoever sees all iterates
    undoes momentum; in any case Algorithm 3's attacker is one who sees ρ̄.
    """

    def __init__(self, name: str, rate: float, momentum: float, initial: ArrayLike) -> None:
        self.theta: NDArray[np.float32] = np.asarray(initial, np.float32)
        initial_state, self._step = _optimiser(name, rate, momentum)
        self._state: Any = initial_state(self.theta)

    def step(self, delta: ArrayLike) -> None:
        """Change the parameters by a round's delta ρ̄, shape (dim,)."""
        theta, self._state = self._step(self.theta, self._state, np.asarray(delta, np.float32))
        self.theta = np.asarray(theta)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that changes from step to step, by name."""
        leaves = jax.tree.leaves(self._state)
        return {"theta": self.theta} | {f"optimiser_{i}": np.asarray(x) for i, x in enumerate(leaves)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what ``arrays`` returned."""
        leaves, structure = jax.tree.flatten(self._state)
        self.theta = arrays["theta"]
        self._state = jax.tree.unflatten(structure, [jnp.asarray(arrays[f"optimiser_{i}"]) for i in range(len(leaves))])


# Another training with the same optimiser is not compiled anew.
@cache
def _optimiser(name: str, rate: float, momentum: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make the functions that give the first state, and new parameters and state from these and a delta."""
    if name == "sgd" and momentum == 0.0:
        # A call of JAX takes longer than the sum. What overflows is seen by the caller.
        def add(theta: NDArray[np.float32], state: Any, delta: NDArray[np.float32]) -> tuple[NDArray[np.float32], Any]:
            with np.errstate(all="ignore"):
                return theta + np.float32(rate) * delta, state

        return lambda _: (), add
    if name == "adam":
        optimiser = optax.adam(rate, _FIRST_DECAY, _SECOND_DECAY, _ADAPTIVITY)
    else:
        optimiser = optax.sgd(rate, momentum)

    @jax.jit
    def step(theta: jax.Array, state: Any, delta: jax.Array) -> tuple[jax.Array, Any]:
        change, state = optimiser.update(-delta, state, theta)
        return jnp.asarray(optax.apply_updates(theta, change)), state

    return optimiser.init, step
