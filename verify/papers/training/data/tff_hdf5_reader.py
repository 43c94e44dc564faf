"""Reading TensorFlow Federated's releases in HDF5, in a process of its own: ``python -m`` this, and the file.

A file has a group ``examples`` with a group for each client, named as the client is. That has a dataset for each field
of its examples (``simulation/hdf5_client_data.py`` in older versions of tensorflow_federated): ``pixels`` and
``label`` of federated EMNIST, ``tokens`` and others of StackOverflow.

The HDF5 library reads the file's own structures, strings excepted. On a B-tree that somebody made into a circle it does
not end, or crashes. So it runs in a process of its own, with limits of time and memory, whom ``tff_hdf5`` asks. Only
what lies in the file itself is read: no external or symbolic link is followed, and no external or virtual dataset is
opened. Opening a file reads the clients' names and not their groups, of which StackOverflow has 342,477; what a client
has is checked when it is read.

Strings of variable length are read here, with every length and address checked. HDF5 itself does not end on some
damaged heaps of such strings, and returns one string as often as it is referred to. Sections IV.B and III.E of the
HDF5 file format specification, version 3, say how. A reference has 16 bytes: a length, the address of a global heap
collection and the number of an object in it. A collection is ``GCOL``, a version, 3 bytes of no meaning and its size.
Then objects follow, each a number, a count of references, 4 bytes of no meaning, a size, and as many bytes, filled up
to a multiple of 8.
"""

import json
import math
import os
import resource
import signal
import struct
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import open_file
from canaryproof.verify.papers.training.data import files

assert sys.platform != "win32"  # whoever asks refuses there

_MOST_CLIENTS = 10**7
# Bytes of one client's field, and of a chunk of it.
_LARGEST = 2**28
# Deflate shrinks to a thousandth at best, and HDF5 inflates a chunk to its end whatever its size should be.
_LARGEST_PACKED = 2**18
_FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
_LONGEST_SENTENCE = 2**18


class Reader:
    """Answers questions on one file; the clients' names are in the order of their code points, as TFF sorts them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _opened(path)
        with _reading(path):
            clients = self._file["examples"]
            if not 1 <= len(clients) <= _MOST_CLIENTS:
                raise InputError(f"{path}: examples must have 1 to {_MOST_CLIENTS} clients, not {len(clients)}")
            self.ids = sorted(clients)

    def answer(self, question: str, client: int = 0, most: int = 0) -> list[Any]:
        """Return what can be sent as bytes: the clients' names, or fields of a client's first examples."""
        if question == "ids":
            # No name of HDF5's has a zero in it.
            return ["\0".join(self.ids).encode(errors="surrogateescape")]
        return self._images(client, most) if question == "images" else self._sentences(client, most)

    def _images(self, client: int, most: int) -> list[Any]:
        """Return pixels in float32 and labels in int64."""
        with self._reading(client):
            group = self._group(client)
            pixels, labels = self._dataset(client, group, "pixels"), self._dataset(client, group, "label")
            if pixels.dtype != np.float32 or pixels.shape[1:] != (28, 28):
                raise self._refused(client, f"pixels must be float32 of shape n × 28 × 28, not {_form(pixels)}")
            if labels.dtype.kind not in "iu" or labels.shape != pixels.shape[:1]:
                raise self._refused(client, f"label must be a whole number for each image, not {_form(labels)}")
            return [pixels[:most].astype(np.float32, copy=False), labels[:most].astype(np.int64)]

    def _sentences(self, client: int, most: int) -> list[Any]:
        """Return the lengths in int64 of the tokens of a client's first examples, and all these one after another."""
        sentences = []
        with self._reading(client):
            tokens = self._dataset(client, self._group(client), "tokens")
            if h5py.check_string_dtype(tokens.dtype) is None or len(tokens.shape) != 1:
                raise self._refused(client, f"tokens must be n strings, not {_form(tokens)}")
            fixed = tokens.dtype.kind == "S"
            for sentence in tokens[:most].tolist() if fixed else strings(tokens, most):
                if len(sentence) > _LONGEST_SENTENCE:
                    raise self._refused(client, f"tokens must be strings of at most {_LONGEST_SENTENCE} bytes")
                sentences.append(sentence)
            return [np.array([len(sentence) for sentence in sentences], np.int64), b"".join(sentences)]

    def _group(self, client: int) -> Any:
        clients = self._file["examples"]
        name = self.ids[client]
        if not _is_own(clients, name, h5py.Group):
            raise self._refused(client, "must be a group, and no link")
        return clients[name]

    def _dataset(self, client: int, group: Any, field: str) -> Any:
        """Return a dataset that can be read whole without harm."""
        if not _is_own(group, field, h5py.Dataset):
            raise self._refused(client, f"must have a dataset {field}, which is no link")
        data = group[field]
        if data.is_virtual or data.external:
            raise self._refused(client, f"{field} must be in this file, not in another")
        size = data.dtype.itemsize
        if not data.shape or not 1 <= math.prod(data.shape) * size <= _LARGEST:
            raise self._refused(client, f"{field} must have 1 to {_LARGEST} bytes, not {_form(data)}")
        filters = data.id.get_create_plist()
        used = [filters.get_filter(i)[0] for i in range(filters.get_nfilters())]
        if not set(used) <= _FILTERS or len(set(used)) != len(used):
            raise self._refused(client, f"{field} must be packed by deflate at most")
        stored = data.id.get_storage_size()
        if h5py.h5z.FILTER_DEFLATE not in used and stored < math.prod(data.shape) * size:
            raise self._refused(client, f"{field} is truncated: {_form(data)}, of which {stored} bytes are there")
        if used:
            packed = [0]
            # It would stop at the first value that is not None.
            data.id.chunk_iter(lambda chunk: packed.append(chunk.size))
            if math.prod(data.chunks) * size > _LARGEST or max(packed) > _LARGEST_PACKED:
                raise self._refused(client, f"{field} must have chunks of at most {_LARGEST_PACKED} bytes packed")
        return data

    @contextmanager
    def _reading(self, client: int) -> Iterator[None]:
        with _reading(self.path, f": client {self.ids[client][:60]!r}"):
            yield

    def _refused(self, client: int, rule: str) -> InputError:
        return InputError(f"{self.path}: client {self.ids[client][:60]!r}: {rule}")


def _opened(path: Path) -> h5py.File:
    with open_file(path), _reading(path):
        file = h5py.File(path, "r", locking=False)
        if not _is_own(file, "examples", h5py.Group):
            raise InputError(f"{path}: must have a group examples, which is no link")
        return file


def _is_own(group: Any, name: str, kind: type) -> bool:
    """Whether a group itself has something of a kind: a link elsewhere is not followed."""
    return isinstance(group.get(name, getlink=True), h5py.HardLink) and group.get(name, getclass=True) is kind


def _form(data: Any) -> str:
    return f"{data.dtype} of shape {' × '.join(map(str, data.shape)) or '()'}"


@contextmanager
def _reading(path: Path, client: str = "") -> Iterator[None]:
    """Name the file in whatever HDF5 says of it, for which it has no closed list of exceptions."""
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{path}{client}: does not fit in memory") from error
    except Exception as error:
        raise InputError(f"{path}{client}: is not a readable HDF5 file ({files.first_line(error)})") from error


_REFERENCE = struct.Struct("<IQI")
_COLLECTION = struct.Struct("<4sB3xQ")
_OBJECT = struct.Struct("<HH4xQ")
_LARGEST_COLLECTION = 2**20
# Collections kept for other strings of the same client, which lie near each other.
_CACHED = 16


def strings(data: Any, most: int) -> Iterator[bytes]:
    """Yield the first strings of a dataset of strings of variable length, unpacked or packed by deflate and the like.

    A ``ValueError`` says that the file breaks a rule of the format, an ``OSError`` that it cannot be read.
    """
    plist = data.file.id.get_create_plist()
    if plist.get_sizes() != (8, 8) or plist.get_userblock() != 0:
        raise ValueError("addresses must have 8 bytes and begin with the file")
    descriptor = data.file.id.get_vfd_handle()
    heaps: dict[int, dict[int, bytes]] = {}
    for length, address, number in _REFERENCE.iter_unpack(_references(data, descriptor, min(most, len(data)))):
        if length == 0:
            yield b""
            continue
        if address not in heaps:
            if len(heaps) == _CACHED:
                heaps.clear()
            heaps[address] = _collection(descriptor, address)
        string = heaps[address].get(number, b"")
        if len(string) < length:
            raise ValueError("a string is not in its heap")
        yield string[:length]


def _references(data: Any, descriptor: int, count: int) -> bytes:
    """Return the references to the first strings."""
    size = count * _REFERENCE.size
    if data.chunks is None:
        offset = data.id.get_offset()
        header = b"" if offset is None else os.pread(descriptor, size, offset)
    else:
        header = b"".join(_chunk(data, first) for first in range(0, count, data.chunks[0]))[:size]
    if len(header) < size:
        raise ValueError("its references are truncated")
    return header


def _chunk(data: Any, first: int) -> bytes:
    """Return a chunk of references as it was before it was packed."""
    size = data.chunks[0] * _REFERENCE.size
    skipped, content = data.id.read_direct_chunk((first,))
    filters = data.id.get_create_plist()
    for i in reversed(range(filters.get_nfilters())):
        name = filters.get_filter(i)[0]
        if skipped & 1 << i:
            continue
        if name == h5py.h5z.FILTER_DEFLATE:
            content = zlib.decompressobj().decompress(content, size + 1)
        elif name == h5py.h5z.FILTER_SHUFFLE:
            content = np.frombuffer(content, np.uint8).reshape(_REFERENCE.size, -1).T.tobytes()
    if len(content) != size:
        raise ValueError("a chunk has not its size")
    return bytes(content)


def _collection(descriptor: int, address: int) -> dict[int, bytes]:
    """Return the objects of a global heap collection by their numbers."""
    signature, version, size = _COLLECTION.unpack(_exactly(descriptor, _COLLECTION.size, address))
    if signature != b"GCOL" or version != 1 or not _COLLECTION.size <= size <= _LARGEST_COLLECTION:
        raise ValueError("a heap of strings has no header")
    content = _exactly(descriptor, size, address)
    objects = {}
    offset = _COLLECTION.size
    while offset + _OBJECT.size <= size:
        number, _, length = _OBJECT.unpack_from(content, offset)
        # The space after object 0 is free.
        if number == 0:
            break
        first, offset = offset + _OBJECT.size, offset + _OBJECT.size + (length + 7) // 8 * 8
        if offset > size:
            raise ValueError("an object is longer than its heap")
        objects[number] = content[first : first + length]
    return objects


def _exactly(descriptor: int, size: int, address: int) -> bytes:
    if address > 2**62 or len(content := os.pread(descriptor, size, address)) != size:
        raise ValueError("a heap of strings is not in the file")
    return content


# Seconds of the processor for one answer; the names of StackOverflow's 342,477 users take one.
SECONDS = 4
# Memory of the process: numpy, h5py and a client's field of 256 MB fit into it.
_MEMORY = 2**30


def _limited(kind: int, limit: int) -> None:
    # Not every system has every limit.
    with suppress(OSError, ValueError):
        resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))


def main(path: Path) -> None:
    """Answer questions on a file, each a line of JSON, until there are no more, by a line with sizes and the bytes."""
    # Whoever asks is interrupted, and closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limited(resource.RLIMIT_CORE, 0)
    _limited(resource.RLIMIT_AS, _MEMORY)
    reader = None
    for question in sys.stdin.buffer:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limited(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime) + SECONDS)
        try:
            reader = reader or Reader(path)
            parts = reader.answer(*json.loads(question))
            head: dict[str, Any] = {"sizes": [memoryview(part).nbytes for part in parts]}
        except InputError as error:
            parts, head = [], {"refused": error.message}
        sys.stdout.buffer.writelines([json.dumps(head).encode() + b"\n", *parts])
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
