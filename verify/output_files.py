"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of another when the ``with`` block ends.

    A crash, even of the machine, leaves the old file or the new one, whole; so does an error inside the block.

    Parameters
    ----------
    path
        File to write or replace; its name with ``.part`` at the end serves meanwhile.

    Yields
    ------
    The new file, to write bytes to.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    partial = path.with_name(f"{path.name}.part")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    if os.name == "posix":
        # The new name itself is on disk only when the folder is.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
