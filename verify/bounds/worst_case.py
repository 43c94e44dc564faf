"""What (ε, δ)-privacy allows at most, and the values of ε that are tested."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Tested values of ε are this far apart, absolutely and, where that is more, relatively.
_STEP, _RATIO, _LAST = 0.002, 1.004, 1e4


def _epsilons() -> Array:
    low = np.arange(0.0, _STEP / (_RATIO - 1.0), _STEP)
    steps = math.ceil(math.log(_LAST / low[-1]) / math.log(_RATIO))
    return np.concatenate([low, low[-1] * _RATIO ** np.arange(1.0, steps + 1.0)])


EPSILONS = _epsilons()


def worst_tail(epsilon: Array | float, log_tail: Array, delta: float) -> Array:
    """Return the largest tail of the observed scores that (ε, δ)-privacy allows for the null's, rounded up."""
    high = np.exp(np.minimum(epsilon + log_tail, 0.0)) + delta
    low = 1.0 - np.exp(-epsilon) * np.maximum(-np.expm1(log_tail) - delta, 0.0)
    return np.clip(np.minimum(high, low) * (1.0 + 1e-14), 0.0, 1.0)
