"""Compiled loops: what numba keeps of them on disk, and how the public functions call them.

numba keeps a compiled function until the file that holds it changes, and older versions take the file's date and size
for its contents, which some installers set alike for all versions of a package. Here what is kept depends on the
contents of all of our files with compiled functions: numba does not notice changed code that another file inlines.

A ufunc of numba's is compiled anew in every process, which takes longer than all else that a short command does; a loop
is kept. What the loops call divides as numpy does (``error_model``): a quotient by zero is infinite or NaN, which the
formulas count on, and no error.

Compiling takes seconds the first time after an installation, so that what few numbers need is not compiled: Python runs
the same code on the same C library's functions, and a test sees that the bits are the same.
"""

import hashlib
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numba.core import caching, event
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

_ROOT = Path(__file__).parents[1]
_PACKAGE = "canaryproof."


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


class _Notice(event.Listener):
    """Says once, to whoever sits at a terminal, that a function of ours is being compiled: it takes seconds."""

    said = False

    def on_start(self, event: Any) -> None:
        if not self.said and event.data["dispatcher"].py_func.__module__.startswith(_PACKAGE):
            self.said = True
            if sys.stderr.isatty():
                print("canaryproof: compiling; some seconds, once after an installation", file=sys.stderr)  # noqa: T201

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Notice())

Array = NDArray[np.float64]

# Seconds that Python itself may run a loop, with the same bits, before it is worth the seconds of compiling it.
_PATIENCE = 2.0
# Numbers of the first call that tell what one costs.
_SAMPLE = 8
_numbers: Counter[Any] = Counter()
_seconds: defaultdict[Any, float] = defaultdict(float)


def evaluate(loop: Callable[..., None], *arguments: Array) -> Array:
    """Broadcast arguments that have been checked already, and return what a loop over them fills in last."""
    arrays = np.broadcast_arrays(*arguments)
    result = np.empty(arrays[0].shape)
    # Copies, as each other layout would be compiled for itself.
    flat = [np.array(array, dtype=np.float64).reshape(-1) for array in arrays]
    if not _interprets(loop, flat, result.reshape(-1)):
        loop(*flat, result.reshape(-1))
    filled: Array = result[()]
    return filled


def _interprets(loop: Any, arguments: list[Array], result: Array) -> bool:
    """Let Python run a loop that is not compiled, unless that takes long or Python raises what numba does not."""
    if _is_compiled(loop):
        return False
    try:
        if not _numbers[loop]:
            few = slice(0, _SAMPLE)
            _interpret(loop, [array[few] for array in arguments], result[few])
        if _seconds[loop] * (1.0 + result.size / max(1, _numbers[loop])) > _PATIENCE:
            return False
        _interpret(loop, arguments, result)
    except (ArithmeticError, ValueError):
        return False
    return True


def _interpret(loop: Any, arguments: list[Array], result: Array) -> None:
    start = time.thread_time()
    # Of such arrays the elements are Python's floats.
    plain = np.empty(result.shape, dtype=object)
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        _python(loop)(*(array.astype(object) for array in arguments), plain)
    result[:] = plain
    _seconds[loop] += time.thread_time() - start
    _numbers[loop] += result.size


def _is_compiled(loop: Any) -> bool:
    """Whether a loop is compiled, or lies compiled on disk, as far as numba shows where."""
    index = getattr(getattr(getattr(loop, "_cache", None), "_cache_file", None), "_index_path", None)
    return bool(getattr(loop, "signatures", True)) or (index is not None and Path(index).exists())


def _python(function: Any) -> Callable[..., None]:
    """Return a compiled function as Python runs it, with all that it calls."""
    code = function.py_func
    return FunctionType(code.__code__, _names(code.__module__))


@cache
def _names(module: str) -> dict[str, Any]:
    """Return the names of a module, its compiled functions as Python runs them."""
    names = dict(vars(sys.modules[module]))
    for name, value in names.items():
        if isinstance(value, Dispatcher):
            home = names if value.py_func.__module__ == module else _names(value.py_func.__module__)
            names[name] = FunctionType(value.py_func.__code__, home)
        elif isinstance(value, ModuleType) and value.__name__.startswith(_PACKAGE):
            names[name] = SimpleNamespace(**_names(value.__name__))
    return names
