"""Compiled functions: what is kept of them on disk, and how the public functions call them.

Each module takes its decorator ``njit`` from here. What it keeps of compiled functions lies in a folder whose name is
the digest of all our files that have any: numba itself goes by the file of a function alone, and does not notice
changed code that another file inlines. Where no folder can be written, functions are compiled in memory.

A ufunc of numba's is compiled anew in every process, which takes longer than all else that a short command does; a loop
is kept. What the loops call divides as numpy does (``error_model``): a quotient by zero is infinite or NaN, which the
formulas count on, and no error.

Compiling takes seconds the first time after an installation, so that what few numbers need is not compiled: Python runs
the same code on the same C library's functions, and a test sees that the bits are the same.
"""

import fcntl
import hashlib
import multiprocessing
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import IO, Any, TypeVar

import numba
import numpy as np
from numba.core import caching, config, event
from numba.core.dispatcher import Dispatcher
from platformdirs import user_cache_path

from canaryproof.kernels.arrays import Array

_ROOT = Path(__file__).parents[1]
_PACKAGE = "canaryproof."
_Function = TypeVar("_Function", bound=Callable[..., Any])
# Seconds that a process waits for another one that compiles the same function.
_LONGEST = 60.0


def njit(**options: Any) -> Callable[[_Function], _Function]:
    """Compile a function as numba's ``njit`` does, and keep it, with ``cache=True``, where ``folder`` says.

    Parameters
    ----------
    **options
        Those of ``numba.njit``.

    Returns
    -------
    Callable
        The decorator. Nothing fails for want of a folder.
    """
    kept = options.pop("cache", False)
    # Sums in any order have the bits of one compilation. A call goes to what was compiled alone, but in kept code to a
    # copy that was optimised with its caller: there would be two.
    if options.get("fastmath") and not kept:
        options["forceinline"] = True

    def compiled(function: _Function) -> _Function:
        dispatcher: Any = numba.njit(**options)(function)
        if kept:
            # What its own ``enable_caching`` does.
            dispatcher._cache = _Kept(function)
        found: _Function = dispatcher
        return found

    return compiled


@cache
def digest() -> str:
    """Digest of all files of the package that have compiled functions."""
    found = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*.py")):
        content = path.read_bytes()
        if b"njit(" in content:
            found.update(f"{path.relative_to(_ROOT)} ".encode() + hashlib.sha256(content).digest())
    return found.hexdigest()


@cache
def folder() -> Path:
    """Folder of what is kept: in that of ``NUMBA_CACHE_DIR``, or in the user's, or in the package, if writable.

    Where none is, the first, from which what somebody else left there can still be read.
    """
    given = getattr(config, "CACHE_DIR", "")
    places = [Path(given).absolute()] if given else [*_of_the_user(), _ROOT / "__pycache__"]
    found = [place / f"compiled-{digest()[:16]}" for place in places]
    return next(filter(_is_writable, found), found[0])


def _of_the_user() -> list[Path]:
    try:
        place = user_cache_path("canaryproof")
    except RuntimeError:
        return []
    # A user whom the system does not know has no home: older versions give a path from wherever one stands.
    return [place] if place.is_absolute() else []


def _is_writable(path: Path) -> bool:
    try:
        # What is read from there is run: nobody else may write it.
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return False
    return True


class _Locator(caching._CacheLocator):
    """Where a function is kept: the folder's name has the digest, so that no stamp is needed."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._function = function

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Locator":
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        return str(folder() / self._function.__module__.removeprefix(_PACKAGE))

    def get_source_stamp(self) -> str:
        return digest()

    def get_disambiguator(self) -> str:
        return str(self._function.__code__.co_firstlineno)


class _Place(caching.CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_Locator]  # noqa: RUF012 (as numba declares it)


# numba's classes have no types.
_FunctionCache: Any = caching.FunctionCache


class _Kept(_FunctionCache):  # type: ignore[misc]
    """What is kept of a function. Where it can be neither read nor written, it is compiled in memory.

    One process at a time compiles it: two that kept code for different arguments at once would take the same file, and
    one could run the other's code for its own.
    """

    _impl_class = _Place
    _lock: IO[bytes] | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._load(sig, target_context)
        if found is None and self._lock is None and self._waited():
            found = self._load(sig, target_context)
            if found is not None:
                self._unlock()
        return found

    def _waited(self) -> bool:
        """Wait for other processes, and lock them out."""
        with suppress(OSError):
            path = Path(self._cache_file._index_path)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = path.with_suffix(".lock").open("ab")
            end = time.monotonic() + _LONGEST
            while time.monotonic() < end:
                with suppress(BlockingIOError):
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                time.sleep(0.05)
        self._unlock()
        return False

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
        self._lock = None

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            # Damaged, or not to be read.
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _say_once(f"cannot keep compiled code in {folder()} ({error.strerror}): compiling each time, in memory")
        finally:
            self._unlock()


@cache
def _say_once(text: str) -> None:
    """Say something on stderr, unless the command that has started this process does."""
    if multiprocessing.parent_process() is None:
        print(f"canaryproof: {text}", file=sys.stderr)  # noqa: T201


class _Notice(event.Listener):
    """Says, to whoever sits at a terminal, that a function of ours is being compiled: it takes seconds."""

    def on_start(self, event: Any) -> None:
        if sys.stderr.isatty() and event.data["dispatcher"].py_func.__module__.startswith(_PACKAGE):
            _say_once("compiling; some seconds, once after an installation")

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Notice())


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
