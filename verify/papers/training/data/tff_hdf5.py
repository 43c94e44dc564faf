"""TensorFlow Federated's releases in HDF5, read by a process of its own, ``tff_hdf5_reader``.

That process may crash or be ended; what it answers is bytes, of which nothing is unpickled.
"""

import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training.data import files
from canaryproof.verify.papers.training.data.federation import PerProcess

if find_spec("h5py") is None:
    raise ImportError("h5py")
if sys.platform == "win32":
    raise InputError("releases of TFF in HDF5 are not read on Windows, which cannot limit a reader's memory and time")

_READER = "canaryproof.verify.papers.training.data.tff_hdf5_reader"
# Bytes of an answer, and of its first line: the output of a crash is not believed.
_LARGEST, _LONGEST_LINE = 2**30, 2**16


class _Reader(Protocol):
    def answer(self, question: str, client: int = 0, most: int = 0) -> list[Any]: ...


class Child:
    """A process that reads a file; an ``InputError`` of it, or of its end, is that of whoever asks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Not from the folder that one happens to be in; numpy's BLAS needs no threads, nor memory for them.
        command = [sys.executable, "-P", "-m", _READER, str(path)]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        weakref.finalize(self, _end, self._process)

    def answer(self, question: str, client: int = 0, most: int = 0) -> list[Any]:
        """Return what ``Reader.answer`` returns there, as bytes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps([question, client, most]).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline(_LONGEST_LINE)
            head = json.loads(line)
            if "refused" in head:
                raise InputError(head["refused"])
            if sum(head["sizes"]) > _LARGEST:
                raise ValueError("too large")
            parts = [self._process.stdout.read(size) for size in head["sizes"]]
            if [len(part) for part in parts] != head["sizes"]:
                raise ValueError("truncated")
        except InputError:
            raise
        # Whatever else comes is what a crash wrote, or nothing.
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            self._process.kill()
            raise InputError(f"{self._path}: {self._why()}") from error
        return parts

    def _why(self) -> str:
        """Say how the process ended."""
        status = -self._process.wait()
        if status == signal.SIGXCPU:
            return "damaged: HDF5's library does not come to an end with it"
        if status in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE):
            return f"damaged: HDF5's library crashes on it (signal {status})"
        return "cannot be read by HDF5's library"


def _end(process: "subprocess.Popen[bytes]") -> None:
    # It ends when nothing can be asked any more. After a fork these are another process's.
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            assert pipe is not None
            pipe.close()
    process.wait()


@dataclass(frozen=True)
class Hdf5Split:
    """One file; the clients' names are in the order of their code points, as TFF sorts them."""

    path: Path
    ids: tuple[str, ...]
    _file: PerProcess[_Reader]

    @property
    def digest(self) -> str:
        """A text that only equal files have; all of the file is read for it."""
        return files.digest(self.path)

    def images(self, client: int, most: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return pixels, shape (examples, 28, 28), and labels, shape (examples,), of a client's first examples."""
        pixels, labels = self._file.get().answer("images", client, most)
        return np.frombuffer(pixels, np.float32).reshape(-1, 28, 28), np.frombuffer(labels, np.int64)

    def sentences(self, client: int, most: int) -> Iterator[bytes]:
        """Yield the tokens of a client's first examples."""
        lengths, joined = self._file.get().answer("sentences", client, most)
        start = 0
        for length in np.frombuffer(lengths, np.int64).tolist():
            yield joined[start : start + length]
            start += length


def split(path: Path) -> Hdf5Split:
    """Open a file."""
    file = PerProcess(_opened, path)
    (names,) = file.get().answer("ids")
    return Hdf5Split(path, tuple(names.decode(errors="surrogateescape").split("\0")), file)


def _opened(path: Path) -> _Reader:
    return Child(path)
