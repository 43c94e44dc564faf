"""The decorator of compiled functions, which caches them on disk, and the call of compiled loops.

Each module takes its decorator ``njit`` from here. The cache's folder is named after the digest of all files of the
package that have compiled functions. numba itself goes by the file of a function alone. It does not notice changed code
that another file inlines. Where no folder can be written, functions are compiled in memory, and so they are on Windows.

Cached code is run, so that nobody else may have written it. A folder is opened from the root on, one after another, and
each is checked by its descriptor; files are read and written by the last one. What stands under a name may change
meanwhile, what a descriptor is of does not.

numba's documented hook for the folder, ``NUMBA_CACHE_LOCATOR_CLASSES``, holds for a whole process, thus also for code
of others. It has no lock either. Hence this module subclasses numba's cache of a function.

numba compiles a ufunc anew in every process, which takes longer than all else that a short command does. A loop can be
cached. The loops' functions divide as numpy does (``error_model``): a quotient by zero is infinite or NaN. The formulas
count on that.
"""

import errno
import hashlib
import io
import logging
import multiprocessing
import os
import pickle
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
    parents = [Path(given)] if given else [*_user_folders(), _ROOT / "__pycache__"]
    # Links are followed here and never again.
    folders = [Path(os.path.realpath(parent)) / f"compiled-{digest()[:16]}" for parent in parents]
    return next(filter(_is_writable, folders), folders[0])


def _user_folders() -> list[Path]:
    try:
        path = user_cache_path("canaryproof")
    except RuntimeError:
        return []
    # A user whom the system does not know has no home: older versions return a path relative to the working directory.
    return [path] if path.is_absolute() else []


def _is_writable(path: Path) -> bool:
    with suppress(OSError), opened_folder(path, make=True) as descriptor:
        name = f".{secrets.token_hex(8)}"
        os.close(_open_file(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, descriptor))
        os.unlink(name, dir_fd=descriptor)
        return True
    return False


@contextmanager
def opened_folder(path: Path, make: bool = False) -> Iterator[int]:
    """Open a folder into which only the user and root can write, or put another in its place.

    Who can write a folder can replace others in it, unless it is sticky. So the folder and all above it must be the
    user's or root's, and closed to everybody else. On Windows, owners and modes say nothing of who can write, so that
    no folder is trusted.

    Parameters
    ----------
    path
        Its absolute path. It must have no links.
    make
        Whether to make what is missing.

    Yields
    ------
    Its descriptor.

    Raises
    ------
    OSError
        If it cannot be opened, or others can write there.
    """
    if sys.platform == "win32":
        raise PermissionError(errno.EPERM, _DISTRUST)
    root, *names = path.parts
    descriptor = os.open(root, _FOLDER)
    try:
        for name in names:
            _refuse_others(descriptor, stat.S_ISVTX)
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=descriptor)
            above, descriptor = descriptor, os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(above)
        _refuse_others(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    # Why a folder is not trusted.
    _DISTRUST = "Windows does not say who can write there"
else:
    _DISTRUST = "others can write there"
    # Folders that may be passed through need not be readable, where the system can open them so.
    _FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW


def _refuse_others(descriptor: int, allowed: int = 0) -> None:
    """Refuse what others own or can write, unless its mode has an allowed bit."""
    status = os.fstat(descriptor)
    if status.st_uid not in {0, os.geteuid()} or (status.st_mode & 0o022 and not status.st_mode & allowed):
        raise PermissionError(errno.EPERM, _DISTRUST)


def _open_file(name: str, flags: int, folder_descriptor: int) -> int:
    """Open a file of a trusted folder that is no link, and that nobody else can write."""
    descriptor = os.open(name, flags | os.O_NOFOLLOW, 0o600, dir_fd=folder_descriptor)
    try:
        _refuse_others(descriptor)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


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

    def ensure_cache_path(self) -> None:
        """Do nothing, as the folder has been opened by now."""

    def get_source_stamp(self) -> str:
        return digest()

    def get_disambiguator(self) -> str:
        return str(self._function.__code__.co_firstlineno)


class _Located(caching.CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_Locator]  # noqa: RUF012 (as numba declares it)


# numba's classes have no types.
_FunctionCache: Any = caching.FunctionCache
_CacheFile: Any = caching.IndexDataCacheFile


class _Files(_CacheFile):  # type: ignore[misc]
    """The index of a function's compiled code and the files with it, by the descriptor of their folder."""

    _descriptor = -1

    @contextmanager
    def hold_folder(self, make: bool = False) -> Iterator[None]:
        """Keep the folder open as long as the ``with`` block lasts."""
        with opened_folder(Path(self._cache_path), make) as self._descriptor:
            yield

    def open(self, name: str, mode: str) -> IO[bytes]:
        """Open a file of the folder."""
        return open(name, mode, opener=lambda _, flags: _open_file(name, flags, self._descriptor))

    def _load_index(self) -> Any:
        """As in the base class."""
        try:
            with self.open(self._index_name, "rb") as file:
                content = io.BytesIO(file.read())
        except FileNotFoundError:
            return {}
        if pickle.load(content) != self._version:
            return {}
        stamp, overloads = pickle.load(content)
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        """As in the base class."""
        with self.open(name, "rb") as file:
            return pickle.loads(file.read())

    @contextmanager
    def _open_for_write(self, path: str) -> Iterator[IO[bytes]]:
        """As in the base class."""
        name = Path(path).name
        partial = f"{name}.tmp.{secrets.token_hex(8)}"
        try:
            with self.open(partial, "xb") as file:
                yield file
            os.replace(partial, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        finally:
            with suppress(OSError):
                os.unlink(partial, dir_fd=self._descriptor)


class CachedFunction(_FunctionCache):  # type: ignore[misc]
    """A function's compiled code on disk. If it can be neither read nor written, the function is compiled in memory.

    One process at a time compiles it. Two that wrote code for different arguments at once would take the same file, and
    one could run the other's code for its own.
    """

    _impl_class = _Located
    _lock: IO[bytes] | None = None

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        code = self._load(sig, target_context)
        if code is None and self._lock is None and self._try_to_lock():
            code = self._load(sig, target_context)
            if code is not None:
                self._unlock()
        return code

    def _try_to_lock(self) -> bool:
        """Wait for other processes, and lock them out."""
        with suppress(OSError):
            with self._cache_file.hold_folder(make=True):
                self._lock = self._cache_file.open(f"{self._impl.filename_base}.lock", "ab")
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
        with suppress(OSError), self._cache_file.hold_folder():
            try:
                return super().load_overload(sig, target_context)
            except Exception:
                # The files are damaged, or may not be read.
                self.flush()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            with self._cache_file.hold_folder(make=True):
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
            once = ", once after an installation" if _is_writable(folder()) else ""
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
