"""Reading data sets from folders; nothing in a file is believed."""

import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import Readable, open_file

# Some twice EMNIST's largest file, and LEAF's.
LARGEST = 2**30
_PIECE = 2**20
# Images of MNIST's kind inflate to five times their size, and sorted labels to a thousand times.
_MOST_TIMES, _SMALL = 20, 2**24


def inside(data: Path, path: Path) -> Path:
    """Return a place in a folder of data; an ``InputError`` says that it is a link out of that folder."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(data)):
        raise InputError(f"{path}: must not be a link that leads out of {data}")
    return path


def in_folder(folder: Path, pattern: str, data: Path | None = None) -> list[Path]:
    """Return a folder's files whose names match a glob pattern, in the order of their names.

    None is a link out of the folder ``data``, by default the folder itself.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: must be a folder")
    return sorted(inside(data or folder, path) for path in folder.glob(pattern) if not path.is_dir())


class _Inflated:
    """The contents of a gzip stream, of at most a given number of bytes."""

    def __init__(self, stream: gzip.GzipFile, most: int) -> None:
        self._stream, self._most, self._left = stream, most, most

    def read(self, size: int = -1) -> bytes:
        """Read some bytes, or all; a ``ValueError`` says that there are too many."""
        piece = self._stream.read(self._left + 1 if size < 0 else size)
        self._left -= len(piece)
        if self._left < 0:
            raise ValueError(f"must not inflate to more than {self._most} bytes")
        return piece


@contextmanager
def inflated(path: Path) -> Iterator[Readable]:
    """Open a file, and inflate it as it is read if its name ends in ``.gz``; what fails inside is an ``InputError``."""
    with open_file(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as stream:
                yield _Inflated(stream, max(_SMALL, _MOST_TIMES * path.stat().st_size))
        except EOFError as error:
            raise ValueError("truncated: its gzip stream has no end") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"is not a readable gzip file ({error})") from error


def digest(path: Path) -> str:
    """Return the SHA-256 of a file of any size, which is read in pieces."""
    hashed = hashlib.sha256()
    with open_file(path) as file:
        while piece := file.read(_PIECE):
            hashed.update(piece)
    return hashed.hexdigest()


def first_line(error: Exception) -> str:
    """Return what a library says of a file: the first line, not too long, and without an object's address."""
    message = str(error).partition("\n")[0] or type(error).__name__
    return re.sub(" at 0x[0-9a-f]+", "", message)[:200]
