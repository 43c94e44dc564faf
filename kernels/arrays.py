"""Types of arrays, by what their elements are."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Complexes = NDArray[np.complex128]
Ints = NDArray[np.int64]
Singles = NDArray[np.float32]
