"""The files of a run or a report in its folder, never written over what others left.

A hidden list names what the package wrote there. A link in place of a file of the package is replaced, and the file
that it points to stays as it was; a link in place of a folder of the package is refused.
"""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.writing import own_folder, refuse_link, replace_file
from canaryproof.verify.papers.records.report_input import read_run

# This file in a folder names the files that the package wrote there, a line each.
_LIST = ".canaryproof"
_LARGEST_LIST = 10**6


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
        with replace_file(path) as file:
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
        if path.parent != folder:
            refuse_link(path.parent)
        if name not in listed and os.path.lexists(path) and not _has_run(folder):
            raise FileExistsError(errno.EEXIST, "was not written by canaryproof, and is not replaced", str(path))


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
    with replace_file(folder / _LIST) as file:
        file.write("".join(f"{name}\n" for name in sorted(names)).encode())
