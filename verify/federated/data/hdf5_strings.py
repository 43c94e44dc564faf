"""Strings of variable length in an HDF5 file, read with every length and address checked.

HDF5 itself does not end on some damaged heaps of such strings, and returns one string as often as it is referred to.
So the references are read here, and the heaps in which the strings are: sections IV.B and III.E of the HDF5 file format
specification, version 3. A reference has 16 bytes: a length, the address of a global heap collection and the number of
an object in it. A collection is ``GCOL``, a version, 3 bytes of no meaning and its size; then objects, each a number, a
count of references, 4 bytes of no meaning, a size, and as many bytes, filled up to a multiple of 8.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np

_REFERENCE = struct.Struct("<IQI")
_COLLECTION = struct.Struct("<4sB3xQ")
_OBJECT = struct.Struct("<HH4xQ")
_LARGEST_COLLECTION = 2**20
# Collections kept for other strings of the same client, which lie near each other.
_KEPT = 16


def read(data: Any, most: int) -> Iterator[bytes]:
    """Yield the first strings of a dataset.

    Parameters
    ----------
    data
        A dataset of strings of variable length, shape (n,), n ≥ 1, unpacked or packed by deflate and the like.
    most
        How many strings at most.

    Raises
    ------
    ValueError
        If the file breaks a rule of the format.
    OSError
        If it cannot be read.
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
            if len(heaps) == _KEPT:
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
        found = b"" if offset is None else os.pread(descriptor, size, offset)
    else:
        found = b"".join(_chunk(data, first) for first in range(0, count, data.chunks[0]))[:size]
    if len(found) < size:
        raise ValueError("its references are truncated")
    return found


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
    place = _COLLECTION.size
    while place + _OBJECT.size <= size:
        number, _, length = _OBJECT.unpack_from(content, place)
        # What follows object 0 is free.
        if number == 0:
            break
        first, place = place + _OBJECT.size, place + _OBJECT.size + (length + 7) // 8 * 8
        if place > size:
            raise ValueError("an object is longer than its heap")
        objects[number] = content[first : first + length]
    return objects


def _exactly(descriptor: int, size: int, address: int) -> bytes:
    if address > 2**62 or len(content := os.pread(descriptor, size, address)) != size:
        raise ValueError("a heap of strings is not in the file")
    return content
