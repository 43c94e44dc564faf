"""The decorator of compiled functions, and the call of compiled loops, which Python itself runs for few elements.

Each module takes its decorator ``njit`` from here. A function is compiled when it is first needed, as numba takes a
third of a second to load, and a kernel seconds to compile. A command that asks for a few numbers would mostly wait for
that, so Python runs a loop until this has taken about as long as compiling it, or loading its compiled code, would
have: some thousand elements. Both ways give the same bits. They take the same steps in float64, and the same functions
of the C library; quotients and logarithms that Python refuses are numpy's here, as the compiled functions have them
(``error_model``): a quotient by zero is infinite or NaN. The formulas count on that.

Compiled code is kept on disk (``_kept_code``).

numba compiles a ufunc anew in every process, which takes longer than all else that a short command does. A loop can be
cached.
"""

import ast
import inspect
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from threading import RLock
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from canaryproof.kernels._code_folder import PACKAGE, folder
from canaryproof.kernels.arrays import Array

_Function = TypeVar("_Function", bound=Callable[..., Any])
# CPU seconds that it takes to compile a loop, to load its kept code, and to import numba.
_COMPILING, _LOADING, _IMPORTING = 2.0, 0.05, 0.25
# Elements that Python does before it is asked again whether it does the others, too.
_PIECE = 50
_MAKING = RLock()


class CompiledFunction:
    """A function that is compiled when it is first called, or when a function that calls it is."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], *, cached: bool, loop: bool) -> None:
        update_wrapper(self, function)
        self._function, self._options, self._cached, self._loop = function, options, cached, loop
        # Elements that Python has done and the CPU seconds that it took; at first, a guess.
        self._elements, self._seconds = 1, 1e-6

    @cached_property
    def dispatcher(self) -> Any:
        """The function as numba compiles it."""
        import numba

        from canaryproof.kernels._kept_code import CachedFunction

        with _MAKING:
            # Another thread may have made it meanwhile.
            if "dispatcher" not in vars(self):
                made: Any = numba.njit(**self._options)(self._function)
                # With NUMBA_DISABLE_JIT, numba returns the function itself.
                if self._cached and made is not self._function:
                    # As in the dispatcher's own ``enable_caching``, but with this package's class.
                    made._cache = CachedFunction(self._function)
                vars(self)["dispatcher"] = made
        return vars(self)["dispatcher"]

    @property
    def _numba_type_(self) -> Any:
        """By which numba knows the function where a compiled one calls it."""
        import numba

        return numba.typeof(self.dispatcher)

    def __getattr__(self, name: str) -> Any:
        # A property that fails with an AttributeError is asked for here, and would be asked for without an end.
        if name.startswith("__") or hasattr(type(self), name):
            return object.__getattribute__(self, name)
        return getattr(self.dispatcher, name)

    def __call__(self, *arguments: Any) -> Any:
        if self._loop:
            elements = max(a.size for a in arguments if isinstance(a, np.ndarray))
            if self.is_quick_in_python(elements):
                return self.in_python(elements, *arguments)
        return self.dispatcher(*arguments)

    # Whether Python runs loops over few elements.
    _may_run_in_python: ClassVar[bool] = True

    def is_quick_in_python(self, elements: int) -> bool:
        """Whether Python has done so many more elements before compiled code is there, or for little more."""
        if not self._may_run_in_python or "dispatcher" in vars(self):
            return False
        allowed = (_LOADING if self._is_on_disk else _COMPILING) + ("numba" not in sys.modules) * _IMPORTING
        return self._seconds * (1.0 + elements / self._elements) <= allowed

    @cached_property
    def _is_on_disk(self) -> bool:
        own = folder() / self.__module__.removeprefix(PACKAGE)
        return any(own.glob(f"*.{self._function.__qualname__}-{self._function.__code__.co_firstlineno}.*.nbi"))

    def in_python(self, elements: int, *arguments: Any) -> Any:
        """Run the function in Python, and remember what so many elements took."""
        begun = time.thread_time()
        # Constants in arrays are numpy's floats, which warn.
        with np.errstate(all="ignore"):
            result = _in_python(self.__module__)[self._function.__name__](*arguments)
        self._seconds += time.thread_time() - begun
        self._elements += elements
        return result


@contextmanager
def without_python() -> Iterator[None]:
    """Compile each function that is called in the ``with`` block, however few elements it is for."""
    CompiledFunction._may_run_in_python = False
    try:
        yield
    finally:
        CompiledFunction._may_run_in_python = True


def njit(**options: Any) -> Callable[[_Function], _Function]:
    """Compile a function as numba's ``njit`` does, and cache it, with ``cache=True``, in ``folder()``.

    Parameters
    ----------
    **options
        Those of ``numba.njit``; and ``loop=True`` for a loop over the elements of its arrays, which Python runs as long
        as there are few.

    Returns
    -------
    Callable
        The decorator. Without a folder it compiles in memory.
    """
    cached, loop = options.pop("cache", False), options.pop("loop", False)
    # With fastmath, results depend on how the function is compiled. Always inline, so that cached and fresh code agree.
    if options.get("fastmath") and not cached:
        options["forceinline"] = True

    def decorate(function: _Function) -> _Function:
        return cast(_Function, CompiledFunction(function, options, cached=cached, loop=loop))

    return decorate


class _Quotients(ast.NodeTransformer):
    """Every quotient as a call of ``_quotient``."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.Call(ast.Name(_quotient.__name__, ast.Load()), [node.left, node.right], [])


def _quotient(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return float(np.divide(a, b))


def _without_refusals(name: str) -> Callable[..., Any]:
    """Return a function of ``math`` that has numpy's value where Python raises an error."""
    exact, numpys = getattr(math, name), getattr(np, name)

    def function(*arguments: Any) -> Any:
        try:
            return exact(*arguments)
        except (ValueError, OverflowError):
            return float(numpys(*arguments))

    return function


_MATH = SimpleNamespace(
    **vars(math) | {name: _without_refusals(name) for name in ("exp", "expm1", "ldexp", "log", "log1p", "sqrt")}
)


@cache
def _in_python(name: str) -> dict[str, Any]:
    """Return the names of a module as its compiled functions see them, with these functions as Python runs them."""
    module = sys.modules[name]
    names = dict(vars(module)) | {_quotient.__name__: _quotient}
    tree, functions = ast.parse(inspect.getsource(module)), list[ast.stmt]()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and isinstance(names[node.name], CompiledFunction):
            node.decorator_list = []
            functions.append(node)
    tree.body = functions
    for used in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & set(names):
        value = names[used]
        if value is math:
            names[used] = _MATH
        elif isinstance(value, CompiledFunction) and value.__module__ != name:
            names[used] = _in_python(value.__module__)[value.__name__]
        elif isinstance(value, ModuleType) and value.__name__.startswith(PACKAGE):
            names[used] = SimpleNamespace(**_in_python(value.__name__))
    exec(compile(ast.fix_missing_locations(_Quotients().visit(tree)), module.__file__ or name, "exec"), names)
    return names


def evaluate(loop: Callable[..., None], *arguments: Array) -> Array:
    """Broadcast arguments that have been checked already, and return what a loop over them fills in last."""
    arrays = np.broadcast_arrays(*arguments)
    result = np.empty(arrays[0].shape)
    # Copies, as each other layout would be compiled for itself.
    flat = [*(np.array(array, dtype=np.float64).reshape(-1) for array in arrays), result.reshape(-1)]
    compiled, size = cast(CompiledFunction, loop), result.size
    while size > 0 and compiled.is_quick_in_python(size):
        piece, flat = [array[:_PIECE] for array in flat], [array[_PIECE:] for array in flat]
        # Python's floats: numpy's take twice as long.
        compiled.in_python(len(piece[-1]), *(array.tolist() for array in piece[:-1]), piece[-1])
        size = len(flat[-1])
    if size > 0:
        loop(*flat)
    filled: Array = result[()]
    return filled
