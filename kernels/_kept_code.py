"""numba's cache of a function's compiled code, in the folder of ``_code_folder``, and the line that says it compiles.

numba's documented hook for the folder, ``NUMBA_CACHE_LOCATOR_CLASSES``, holds for a whole process, thus also for code
of others. It has no lock either. Hence this module subclasses numba's cache of a function. It loads numba, so that it
is imported where a function is compiled first.
"""

import io
import logging
import multiprocessing
import os
import pickle
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from numba.core import caching
from numba.core.event import Listener, register

from canaryproof.kernels._code_folder import PACKAGE, digest, folder, is_writable, open_file, opened_folder

if sys.platform != "win32":
    import fcntl

# Seconds that a process waits for another one that compiles the same function.
_LONGEST = 60.0


class _Locator(caching._CacheLocator):
    """The file of a cached function. The folder's name has the digest, so that no stamp is needed."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._function = function

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Locator":
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        return str(folder() / self._function.__module__.removeprefix(PACKAGE))

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
        return open(name, mode, opener=lambda _, flags: open_file(name, flags, self._descriptor))

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
        if event.data["dispatcher"].py_func.__module__.startswith(PACKAGE):
            once = ", once after an installation" if is_writable(folder()) else ""
            _log_once(logging.INFO, f"compiling; some seconds{once}")

    def on_end(self, event: Any) -> None:
        pass


register("numba:compile", _Notice())
