"""Files that are written whole or not at all, and not through symbolic links.

A link in place of a file is replaced, and the file that it points to stays as it was. A link in place of a folder
inside an output folder is refused. The output folder itself may be one, as its name was given.
"""

import errno
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from canaryproof.verify.audit.files.errors import InputError, OutputError

if sys.platform != "win32":
    import fcntl


@contextmanager
def replace_file(path: Path, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of another when the ``with`` block ends.

    A crash, even of the machine, leaves the old file or the new one, whole; so does an error inside the block. If
    several processes write the same file at once, that of one of them stays.

    Parameters
    ----------
    path
        File to write or replace; a hidden name beside it serves meanwhile.
    private
        Whether only the user may read it, as it has a seed.

    Yields
    ------
    The new file, to write bytes to.

    Raises
    ------
    OSError
        If it cannot be written; the file is named.
    """
    try:
        with _partial_file(path, private) as (partial, file):
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
            partial.replace(path)
    except OSError as error:
        # The error of a write names no file, and numpy's has no number either.
        if error.filename is None:
            raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error
        raise
    if sys.platform != "win32":
        # The new name itself is on disk only when the folder is.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_output(
    path: Path, write: Callable[[IO[bytes]], object], *, private: bool = False, overwrite: bool = False
) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    path
        File to write.
    write
        Writes its bytes.
    private
        Whether only the user may read it, as it has a seed.
    overwrite
        Whether a file of that name is replaced.

    Raises
    ------
    OutputError
        If it cannot be written.
    InputError
        If it exists by then, and is not to be replaced.
    """
    try:
        with _partial_file(path, private) as (partial, file):
            write(file)
            file.close()
            if overwrite:
                partial.replace(path)
            else:
                _rename_new(partial, path)
    except FileExistsError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error


@contextmanager
def _partial_file(path: Path, private: bool) -> Iterator[tuple[Path, IO[bytes]]]:
    """Open a file in the same folder under a name that no other process has; the name is removed in the end."""
    partial = path.with_name(f".canaryproof-{secrets.token_hex(8)}.part")
    mode = 0o600 if private else 0o666
    try:
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield partial, file
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _rename_new(partial: Path, path: Path) -> None:
    """Rename a file, without replacing one that has come into being meanwhile."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:
        # The file system has no links.
        if os.path.lexists(path):
            raise FileExistsError(f"{path}: exists by now") from None
        partial.rename(path)


def own_folder(path: Path) -> None:
    """Make a folder inside an output folder, or find it there.

    Parameters
    ----------
    path
        The folder.

    Raises
    ------
    OSError
        If it cannot be made, or is a symbolic link, through which nothing is written.
    """
    refuse_link(path)
    path.mkdir(exist_ok=True)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder as long as the ``with`` block lasts, or this process; not so on Windows.

    Parameters
    ----------
    folder
        An existing folder. A file ``.lock`` stays in it.

    Raises
    ------
    InputError
        If another run is in it.
    OSError
        If it cannot be written.
    """
    if sys.platform == "win32":
        yield
    else:
        file = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(file)
            raise InputError(f"{folder}: another run is writing to it") from error
        try:
            yield
        finally:
            os.close(file)


def refuse_link(path: Path) -> None:
    """Refuse a folder that is a symbolic link, through which nothing is written, by an OSError."""
    if path.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "must be a folder, not a symbolic link", str(path))
