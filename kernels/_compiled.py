"""The decorator of compiled functions, which caches them on disk, and the call of compiled loops.

Each module takes its decorator ``njit`` from here. The cache's folder is named after the digest of all files of the
package that have compiled functions. numba itself goes by the file of a function alone. It does not notice changed code
that another file inlines. Where no folder can be written, functions are compiled in memory, and so they are on Windows.

numba's documented hook for the folder, ``NUMBA_CACHE_LOCATOR_CLASSES``, holds for a whole process, thus also for code
of others. It has no lock either. Hence this module subclasses numba's cache of a function.

numba compiles a ufunc anew in every process, which takes longer than all else that a short command does. A loop can be
cached. The loops' functions divide as numpy does (``error_model``): a quotient by zero is infinite or NaN. The formulas
count on that.
"""

import errno
import hashlib
import logging
import multiprocessing
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

import numba
import numpy as np
from numba.core import caching, config
from numba.core.event import Listener, register
from platformdirs import user_cache_path

from canaryproof.kernels.arrays import Array

if sys.platform != "win32":
    import fcntl

_ROOT = Path(__file__).parents[1]
# The rooms that may have compiled functions. In a checkout much else lies next to them: tests, an environment.
_ROOMS = ("kernels", "proofs_check", "verify")
_PACKAGE = "canaryproof."
_Function = TypeVar("_Function", bound=Callable[..., Any])
# Seconds that a process waits for another one that compiles the same function.
_LONGEST = 60.0


def njit(**options: Any) -> Callable[[_Function], _Function]:
    """Compile a function as numba's ``njit`` does, and cache it, with ``cache=True``, in ``folder()``.

    Parameters
    ----------
    **options
        Those of ``numba.njit``.

    Returns
    -------
    Callable
        The decorator. Without a folder it compiles in memory.
    """
    cached = options.pop("cache", False)
    # With fastmath, results depend on how the function is compiled. Always inline, so that cached and fresh code agree.
    if options.get("fastmath") and not cached:
        options["forceinline"] = True

    def decorate(function: _Function) -> _Function:
        dispatcher: Any = numba.njit(**options)(function)
        if cached:
            # As in the dispatcher's own ``enable_caching``, but with this module's class.
            dispatcher._cache = CachedFunction(function)
        decorated: _Function = dispatcher
        return decorated

    return decorate


@cache
def digest() -> str:
    """Digest all files of the package that have compiled functions."""
    hashed = hashlib.sha256()
    for path in sorted(path for room in _ROOMS for path in (_ROOT / room).rglob("*.py")):
        content = path.read_bytes()
        if b"njit(" in content:
            hashed.update(f"{path.relative_to(_ROOT)} ".encode() + hashlib.sha256(content).digest())
    return hashed.hexdigest()


@cache
def folder() -> Path:
    """Return the cache's folder: in that of ``NUMBA_CACHE_DIR``, or in the user's, or in the package, if writable.

    If none is writable, return the first, which may still hold a readable cache.
    """
    given = getattr(config, "CACHE_DIR", "")
    parents = [Path(given).absolute()] if given else [*_user_folders(), _ROOT / "__pycache__"]
    folders = [parent / f"compiled-{digest()[:16]}" for parent in parents]
    return next(filter(_is_writable, folders), folders[0])


def _user_folders() -> list[Path]:
    try:
        path = user_cache_path("canaryproof")
    except RuntimeError:
        return []
    # A user whom the system does not know has no home: older versions return a path relative to the working directory.
    return [path] if path.is_absolute() else []


def _is_writable(path: Path) -> bool:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_trusted(path):
            return False
        path.mkdir(mode=0o700, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return False
    return True


def _is_trusted(path: Path) -> bool:
    """Tell whether only the user and root can write a folder, or put another in its place: cached code is run.

    Who can write a folder can replace others in it, unless it is sticky. The folder and the one that holds it must be
    the user's or root's, and closed to the group; those above must be closed to everybody else. On Windows, owners and
    modes say nothing of who can write, so that no folder is trusted.
    """
    if sys.platform == "win32":
        return False
    for depth, ancestor in enumerate((path, *path.parents)):
        try:
            status = ancestor.stat()
        except FileNotFoundError:
            continue
        near = depth < _NEAR
        if near and status.st_uid not in {0, os.geteuid()}:
            return False
        sticky = depth > 0 and status.st_mode & stat.S_ISVTX
        if status.st_mode & (0o022 if near else 0o002) and not sticky:
            return False
    return True


# The cache's folder and the one that holds it, which a variable may name.
_NEAR = 2
# Why a folder is not trusted.
_DISTRUST = "Windows does not say who can write there" if sys.platform == "win32" else "others can write there"


class _Locator(caching._CacheLocator):
    """The file of a cached function. The folder's name has the digest, so that no stamp is needed."""

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


class _Located(caching.CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_Locator]  # noqa: RUF012 (as numba declares it)


# numba's classes have no types.
_FunctionCache: Any = caching.FunctionCache


class CachedFunction(_FunctionCache):  # type: ignore[misc]
    """A function's compiled code on disk. If it can be neither read nor written, the function is compiled in memory.

    One process at a time compiles it. Two that wrote code for different arguments at once would take the same file, and
    one could run the other's code for its own.
    """

    _impl_class = _Located
    _lock: IO[bytes] | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        code = self._load(sig, target_context)
        if code is None and self._lock is None and self._try_to_lock():
            code = self._load(sig, target_context)
            if code is not None:
                self._unlock()
        return code

    def _try_to_lock(self) -> bool:
        """Wait for other processes, and lock them out."""
        if not _is_trusted(folder()):
            return False
        with suppress(OSError):
            path = Path(self._cache_file._index_path)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = path.with_suffix(".lock").open("ab")
            end = time.monotonic() + _LONGEST
            while time.monotonic() < end:
                with suppress(BlockingIOError):
                    if sys.platform != "win32":
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
            return super().load_overload(sig, target_context) if _is_trusted(folder()) else None
        except Exception:
            # The files are damaged, or may not be read.
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            if not _is_trusted(folder()):
                raise PermissionError(errno.EPERM, _DISTRUST)
            super().save_overload(sig, data)
        except OSError as error:
            _log_once(
                logging.WARNING,
                f"cannot keep compiled code in {folder()} ({error.strerror}): compiling each time, in memory",
            )
        finally:
            self._unlock()


@cache
def _log_once(level: int, text: str) -> None:
    """Log a line, unless the command that has started this process does."""
    if multiprocessing.parent_process() is None:
        logging.getLogger("canaryproof").log(level, text)


class _Notice(Listener):
    """A line that a function of the package is being compiled: it takes seconds."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].py_func.__module__.startswith(_PACKAGE):
            once = ", once after an installation" if _is_trusted(folder()) else ""
            _log_once(logging.INFO, f"compiling; some seconds{once}")

    def on_end(self, event: Any) -> None:
        pass


register("numba:compile", _Notice())


def evaluate(loop: Callable[..., None], *arguments: Array) -> Array:
    """Broadcast arguments that have been checked already, and return what a loop over them fills in last."""
    arrays = np.broadcast_arrays(*arguments)
    result = np.empty(arrays[0].shape)
    # Copies, as each other layout would be compiled for itself.
    loop(*(np.array(array, dtype=np.float64).reshape(-1) for array in arrays), result.reshape(-1))
    filled: Array = result[()]
    return filled
