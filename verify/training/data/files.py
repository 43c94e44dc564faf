"""Reading data sets from folders; nothing in a file is believed."""

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from canaryproof.verify.files.reading import InputError, opened

# Some twice EMNIST's largest file, and LEAF's.
LARGEST = 2**30
_PIECE = 2**20

Readable = IO[bytes] | gzip.GzipFile


def in_folder(folder: Path, pattern: str) -> list[Path]:
    """Return a folder's files whose names match a glob pattern, in the order of their names."""
    if not folder.is_dir():
        raise InputError(f"{folder}: must be a folder")
    return sorted(path for path in folder.glob(pattern) if not path.is_dir())


@contextmanager
def inflated(path: Path) -> Iterator[Readable]:
    """Open a file, and inflate it as it is read if its name ends in ``.gz``; what fails inside is an ``InputError``."""
    with opened(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as content:
                yield content
        except EOFError as error:
            raise ValueError("truncated: its gzip stream has no end") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"is not a readable gzip file ({error})") from error


def read_one_more(file: Readable, size: int) -> bytearray:
    """Read a number of bytes and one more, which tells whether the file goes on; memory is that of what is there."""
    content = bytearray()
    while piece := file.read(min(_PIECE, size + 1 - len(content))):
        content += piece
    return content


def read_text(path: Path) -> str:
    """Read a text in UTF-8 of at most ``LARGEST`` bytes, without a byte order mark."""
    with opened(path) as file:
        content = read_one_more(file, LARGEST)
        if len(content) > LARGEST:
            raise ValueError(f"must have at most {LARGEST} bytes")
        return content.decode("utf-8-sig")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file of any size, which is read in pieces."""
    hashed = hashlib.sha256()
    with opened(path) as file:
        while piece := file.read(_PIECE):
            hashed.update(piece)
    return hashed.hexdigest()


def first_line(error: Exception) -> str:
    """Return what a library says of a file: the first line, not too long, and without an object's address."""
    said = str(error).partition("\n")[0] or type(error).__name__
    return re.sub(" at 0x[0-9a-f]+", "", said)[:200]
