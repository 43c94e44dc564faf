"""How the public functions call their compiled loops.

numba keeps a compiled loop on disk. A ufunc of numba's is compiled anew in every process, which takes longer than all
else that a short command does. What the loops call divides as numpy does (``error_model``): a quotient by zero is
infinite or NaN, which the formulas count on, and no error.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def evaluate(loop: Callable[..., None], *arguments: Array) -> Array:
    """Broadcast arguments that have been checked already, and return what a loop over them fills in last."""
    arrays = np.broadcast_arrays(*arguments)
    result = np.empty(arrays[0].shape)
    # Copies, as each other layout would be compiled for itself.
    loop(*(np.array(array, dtype=np.float64).reshape(-1) for array in arrays), result.reshape(-1))
    filled: Array = result[()]
    return filled
