"""Types of arrays, by what their elements are, and the rule by which arrays of any library become numpy's.

Whatever takes a vector takes an array of numpy, JAX or torch on any device. Its numbers are floating-point: float16 and
bfloat16 become float32, exactly. Integers are no vector until they have a scale, which ``shapes.flatten`` gives them.
"""

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels.refusals import shorten

# Numbers of a long vector that are taken at a time; a power of 2.
SLICE = 2**18
Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Complexes = NDArray[np.complex128]
Ints = NDArray[np.int64]
Singles = NDArray[np.float32]


def is_of(module: str, name: str, value: object) -> bool:
    """Tell whether a value is an instance of a library's class. Without the library loaded nothing is."""
    return module in sys.modules and isinstance(value, getattr(sys.modules[module], name))


def on_host(values: Any) -> NDArray[Any]:
    """Return numbers, or truth values, of any library as an array of numpy.

    Raises
    ------
    ValueError
        If they are something else, such as texts or dates, or some are masked.
    """
    if np.ma.is_masked(values):
        raise ValueError("must have no masked values: leave them out")
    try:
        if is_of("torch", "Tensor", values):
            held = values.detach().cpu()
            # numpy has no bfloat16.
            values = (held.float() if held.is_floating_point() and held.element_size() < 4 else held).numpy()
        array = np.asarray(values)
    # A tensor of another device raises what its library chooses, and so does whatever calls itself an array.
    except Exception as error:
        raise ValueError(f"must be an array of numbers ({shorten(' '.join(str(error).split()), 200)})") from error
    if array.dtype.kind not in "biufcV" or array.dtype.names is not None:
        raise ValueError(f"must be an array of numbers, not of {shorten(str(array.dtype))}")
    return array


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Tell whether numbers are floating-point ones that float64 holds exactly."""
    # V: bfloat16 and its like are strangers to numpy, but convert exactly.
    return dtype.kind in "fV" and np.can_cast(dtype, np.float64)


def floating(values: Any) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return floating-point numbers of any library in float32, or in float64 where they have more digits.

    Raises
    ------
    ValueError
        If they are something else, such as integers, complex numbers or long doubles.
    """
    array = real(values)
    return array.astype(np.promote_types(array.dtype, np.float32), copy=False)


def real(values: Any) -> NDArray[Any]:
    """Return floating-point numbers of any library in their own format; errors as ``floating``."""
    array = on_host(values)
    if not is_floating(array.dtype):
        hint = "; flatten(..., scale=...) makes them of integers" if array.dtype.kind in "iu" else ""
        raise ValueError(f"must be floating-point numbers, not {array.dtype}{hint}")
    return array


def precision(values: Any) -> float:
    """Return the relative spacing of the format in which floating-point numbers of any library are held."""
    if is_of("torch", "Tensor", values):
        return float(sys.modules["torch"].finfo(values.dtype).eps)
    dtype = on_host(values).dtype
    # Whoever holds a number format that is strange to numpy has this loaded.
    return float(np.finfo(dtype).eps if dtype.kind == "f" else sys.modules["ml_dtypes"].finfo(dtype).eps)


def two_norm(values: NDArray[Any]) -> float:
    """Return the 2-norm without BLAS, whose threads take most of the time where others use the processor."""
    flat = values.reshape(-1)
    return math.sqrt(sum(float(np.square(flat[part], dtype=np.float64).sum()) for part in slices(len(flat))))


def slices(count: int) -> Iterator[slice]:
    """Yield slices of so many numbers, so that of a long vector no copy is made in one piece."""
    for start in range(0, count, SLICE):
        yield slice(start, min(start + SLICE, count))
