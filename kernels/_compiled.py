"""Compiled loops: what numba keeps of them on disk, and how the public functions call them.

numba keeps a compiled function until the file that holds it changes, and older versions take the file's date and size
for its contents, which some installers set alike for all versions of a package. Here what is kept depends on the
contents of all of our files with compiled functions: numba does not notice changed code that another file inlines.

A ufunc of numba's is compiled anew in every process, which takes longer than all else that a short command does; a loop
is kept. What the loops call divides as numpy does (``error_model``): a quotient by zero is infinite or NaN, which the
formulas count on, and no error.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import caching
from numpy.typing import NDArray

_ROOT = Path(__file__).parents[1]


@cache
def digest() -> str:
    """Digest of all files of the package that have compiled functions."""
    found = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*.py")):
        content = path.read_bytes()
        if b"from numba import" in content:
            found.update(f"{path.relative_to(_ROOT)} ".encode() + hashlib.sha256(content).digest())
    return found.hexdigest()


def _stamped(locator: Any) -> Any:
    stamp = _numbas(locator)
    return (stamp, digest()) if Path(locator._py_file).is_relative_to(_ROOT) else stamp


# A class that numba does not promise: without it caching is what numba makes of it, and a test of ours fails.
_locators: Any = getattr(caching, "_SourceFileBackedLocatorMixin", None)
if _locators is not None:
    _numbas = _locators.get_source_stamp
    _locators.get_source_stamp = _stamped


Array = NDArray[np.float64]


def evaluate(loop: Callable[..., None], *arguments: Array) -> Array:
    """Broadcast arguments that have been checked already, and return what a loop over them fills in last."""
    arrays = np.broadcast_arrays(*arguments)
    result = np.empty(arrays[0].shape)
    # Copies, as each other layout would be compiled for itself.
    loop(*(np.array(array, dtype=np.float64).reshape(-1) for array in arrays), result.reshape(-1))
    filled: Array = result[()]
    return filled
