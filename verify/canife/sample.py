"""A canary's sample: pixels and a soft label."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray


class Sample(NamedTuple):
    """One example with a soft label, as JAX arrays.

    Attributes
    ----------
    input
        Shape of the model's inputs.
    label
        Probability of each class, the sum 1.
    """

    input: jax.Array
    label: jax.Array


@dataclass(frozen=True)
class Canary:
    """A designed canary.

    Attributes
    ----------
    input, label
        The sample, and the probability of each class; of text, weights of tokens, which are 0 or 1, and perhaps tokens
        to predict.
    loss, initial_loss
        The canary loss at the end, and where the design that is kept began.
    norm
        Length of the canary's update before clipping, or of its gradient where the design has rate 1.
    attempts
        Designs made, those that were begun anew included.
    healthy
        Whether the last of them met what was asked for.
    """

    input: NDArray[np.float32]
    label: NDArray[np.float32]
    loss: float
    initial_loss: float
    norm: float
    attempts: int = 1
    healthy: bool = True

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
