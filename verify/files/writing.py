"""Files that are written whole or not at all, and never over what others left.

Nothing is written through a symbolic link inside an output folder. A link in place of a file of the package is
replaced, and the file that it points to stays as it was. A link in place of a folder of the package is refused. The
folder itself may be one, as its name was given.
"""

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from canaryproof.verify.files.errors import InputError
from canaryproof.verify.files.report_input import read_run

# This file in a folder names the files that the package wrote there, a line each.
_LIST = ".canaryproof"
_LARGEST_LIST = 10**6


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of another when the ``with`` block ends.

    A crash, even of the machine, leaves the old file or the new one, whole; so does an error inside the block.

    Parameters
    ----------
    path
        File to write or replace; a hidden name beside it serves meanwhile.

    Yields
    ------
    The new file, to write bytes to.

    Raises
    ------
    OSError
        If it cannot be written; the file is named.
    """
    partial = path.with_name(f".{path.name}.canaryproof")
    try:
        # A crash may have left one; a link in its place would lead elsewhere.
        partial.unlink(missing_ok=True)
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        # The error of a write names no file, and numpy's has no number either.
        if error.filename is None:
            raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error
        raise
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    if os.name == "posix":
        # The new name itself is on disk only when the folder is.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_files(files: Mapping[str, bytes], folder: Path, patterns: Sequence[str] = ()) -> None:
    """Write files to an existing folder, each in one step.

    Parameters
    ----------
    files
        Contents by name; a name may begin with a folder's in it.
    folder
        An existing folder; files of the same names are replaced if they are ours, as ``check_files`` tells.
    patterns
        What the names of files are like that an earlier call may have left here; those that this one lacks are removed.

    Raises
    ------
    OSError
        If a file cannot be written, or is somebody else's.
    """
    check_files(files, folder)
    listed = _listed(folder)
    left = {path.relative_to(folder).as_posix() for pattern in patterns for path in folder.glob(pattern)}
    stale = (left & listed) - files.keys()
    # The list is written before the files, so that a crash leaves none that it does not name.
    _write_list(listed | files.keys(), folder)
    for name, contents in files.items():
        path = folder / name
        if path.parent != folder:
            own_folder(path.parent)
        with replaced(path) as file:
            file.write(contents)
    for name in stale:
        if not (folder / name).parent.is_symlink():
            (folder / name).unlink()
    if stale:
        _write_list((listed | files.keys()) - stale, folder)


def check_files(names: Iterable[str], folder: Path) -> None:
    """Make sure that a folder holds no files of others under the names of the package's files.

    Parameters
    ----------
    names
        As in ``write_files``.
    folder
        An existing folder. What it holds under these names is ours if we wrote it, or if there is a run's
        ``results.json`` beside it.

    Raises
    ------
    OSError
        If a file or a folder is somebody else's; it is named.
    """
    listed = _listed(folder)
    for name in names:
        path = folder / name
        if path.parent != folder and path.parent.is_symlink():
            raise _link(path.parent)
        if name not in listed and os.path.lexists(path) and not _has_run(folder):
            raise FileExistsError(errno.EEXIST, "was not written by canaryproof, and is not replaced", str(path))


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
    if path.is_symlink():
        raise _link(path)
    path.mkdir(exist_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder as long as the ``with`` block lasts, or this process.

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


def _link(path: Path) -> OSError:
    return NotADirectoryError(errno.ENOTDIR, "must be a folder, not a symbolic link", str(path))


def _has_run(folder: Path) -> bool:
    try:
        read_run(folder)
    except InputError:
        return False
    return True


def _listed(folder: Path) -> set[str]:
    file = folder / _LIST
    if not file.is_file():
        return set()
    with file.open("rb") as content:
        return set(content.read(_LARGEST_LIST).decode(errors="replace").splitlines())


def _write_list(names: Iterable[str], folder: Path) -> None:
    with replaced(folder / _LIST) as file:
        file.write("".join(f"{name}\n" for name in sorted(names)).encode())
