"""How the public functions call their compiled ufuncs."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def evaluate(ufunc: Callable[..., Any], *arguments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Broadcast a compiled ufunc over arguments that have been checked already.

    The compiler may compute both sides of a branch and keep one, so that floating-point flags say nothing about the
    result; numpy would print them as warnings.
    """
    with np.errstate(all="ignore"):
        result: NDArray[np.float64] = ufunc(*arguments)
    return result
