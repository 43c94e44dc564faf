"""The folder of compiled code, which only the user can write.

It is named after the digest of all files of the package that have compiled functions. numba itself goes by the file of
a function alone. It does not notice changed code that another file inlines. Where no folder can be written, functions
are compiled in memory, and so they are on Windows.

Kept code is run, so that nobody else may have written it. A folder is opened from the root on, one after another, and
each is checked by its descriptor; files are read and written by the last one. What stands under a name may change
meanwhile, what a descriptor is of does not.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

PACKAGE = "canaryproof."
_ROOT = Path(__file__).parents[1]
# The rooms that may have compiled functions. In a checkout much else lies next to them: tests, an environment.
_ROOMS = ("kernels", "proofs_check", "verify")
_PREFIX = "compiled-"
# Seconds for which the code of another version is kept after its last use.
_LONGEST_UNUSED = 30 * 86400.0


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
    given = os.environ.get("NUMBA_CACHE_DIR", "")
    parents = [Path(given)] if given else [*_user_folders(), _ROOT / "__pycache__"]
    # Links are followed here and never again.
    folders = [Path(os.path.realpath(parent)) / f"{_PREFIX}{digest()[:16]}" for parent in parents]
    for own in filter(is_writable, folders):
        _prune(own.parent)
        return own
    return folders[0]


def _prune(parent: Path) -> None:
    """Remove folders of other versions that nothing has used for a month: ``is_writable`` marks the use."""
    with suppress(OSError), opened_folder(parent) as descriptor:
        readable = os.open(".", os.O_RDONLY, dir_fd=descriptor)
        try:
            with os.scandir(readable) as entries:
                names = [entry.name for entry in entries if re.fullmatch(f"{_PREFIX}[0-9a-f]{{16}}", entry.name)]
            for name in names:
                used = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mtime
                if time.time() - used > _LONGEST_UNUSED:
                    shutil.rmtree(name, ignore_errors=True, dir_fd=descriptor)
        finally:
            os.close(readable)


def _user_folders() -> list[Path]:
    try:
        path = user_cache_path("canaryproof")
    except RuntimeError:
        return []
    # A user whom the system does not know has no home: older versions return a path relative to the working directory.
    return [path] if path.is_absolute() else []


def is_writable(path: Path) -> bool:
    with suppress(OSError), opened_folder(path, make=True) as descriptor:
        name = f".{secrets.token_hex(8)}"
        os.close(open_file(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, descriptor))
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


def open_file(name: str, flags: int, folder_descriptor: int) -> int:
    """Open a file of a trusted folder that is no link, and that nobody else can write."""
    descriptor = os.open(name, flags | os.O_NOFOLLOW, 0o600, dir_fd=folder_descriptor)
    try:
        _refuse_others(descriptor)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
