"""Checkpoints from which a training resumes: arrays by name, and a description of the training that they belong to.

A crash, even of the machine, leaves the old file or the new one, whole. Nothing is unpickled. A seal, the digest of
all that was written, shows arrays that were exchanged since; it is no signature, as anybody can make one.
"""

import hashlib
import json
import math
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from canaryproof.kernels.refusals import shorten
from canaryproof.verify.audit.files.errors import InputError, RuleError
from canaryproof.verify.audit.files.reading import parsing, regular, require
from canaryproof.verify.audit.files.writing import replace_file

_FORMAT = 2
_DESCRIPTION, _SEAL = "description", "seal"
_LONGEST_TEXT, _BYTES_AT_ONCE = 10**6, 2**20


def write(path: Path, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write or replace a checkpoint; ``description``, of JSON's values, is what ``read`` must find again."""
    text = np.frombuffer(_serialise(description).encode(), np.uint8)
    with replace_file(path, private=True) as file:
        np.savez(file, **{_DESCRIPTION: text}, **arrays, **{_SEAL: _seal(text, arrays)})  # type: ignore[arg-type]


def read(path: Path, description: Mapping[str, Any], like: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Read the finite arrays of a checkpoint, which must have this description, and the types and shapes of ``like``.

    An ``InputError`` names the file, the field and the rule if it is damaged, or of another training.
    """
    with regular(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                require(_DESCRIPTION in names, "has no description")
                text = read_array(archive, _DESCRIPTION, np.uint8, most=_LONGEST_TEXT)
                _check_description(json.loads(text.tobytes()), description)
                expected = _DESCRIPTION, *like, _SEAL
                require(
                    sorted(names) == sorted(expected),
                    f"its arrays must be {', '.join(expected)}, not {', '.join(names):.200}",
                )
                arrays = {name: read_array(archive, name, each.dtype, each.shape) for name, each in like.items()}
                own = _seal(text, arrays)
                sealed = read_array(archive, _SEAL, own.dtype, own.shape)
                require(sealed.tobytes() == own.tobytes(), "its arrays are not those that were written")
            for name, array in arrays.items():
                require(bool(np.isfinite(array).all()), f"{name}: must be finite")
        except RuleError as error:
            raise InputError(f"{path}: {error}") from None
        # zipfile, json and numpy have no closed list of what they raise over a damaged file.
        except Exception as error:
            raise InputError(f"{path}: is not a checkpoint, or a damaged one ({short_reason(error)})") from error
    return arrays


def read_arrays(file: IO[bytes], names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Read named arrays from a ``numpy.savez`` file; a ``ValueError`` names a damaged or missing one."""
    with parsing(".npz"):
        archive = zipfile.ZipFile(file)
    # As it is written; nothing that is packed is unpacked to a size that nobody sees.
    if any(entry.file_size > entry.compress_size for entry in archive.infolist()):
        raise ValueError("must be stored, as numpy.savez does")
    for name in names:
        require(f"{name}.npy" in archive.namelist(), f"{name}: is missing")
    return {name: read_array(archive, name) for name in names}


def read_array(
    archive: zipfile.ZipFile,
    name: str,
    dtype: DTypeLike | None = None,
    shape: tuple[int, ...] | None = None,
    out: NDArray[Any] | None = None,
    most: float = math.inf,
) -> NDArray[Any]:
    """Read an array of this type and shape, any by default, into ``out``, a new one by default.

    Nothing is allocated before the file is known to hold as much, and at most ``most`` bytes. A ``RuleError`` says what
    is wrong.
    """
    member = archive.getinfo(f"{name}.npy")
    try:
        with archive.open(member) as file:
            version = np.lib.format.read_magic(file)
            require(version == (1, 0), f"{name}: must be an array of .npy format 1.0")
            stored_shape, fortran, kind = np.lib.format.read_array_header_1_0(file)
            wanted = kind if dtype is None else np.dtype(dtype), stored_shape if shape is None else shape
            require(
                (kind, stored_shape, fortran, kind.hasobject) == (*wanted, False, False),
                f"{name}: must be {wanted[0]} of shape {wanted[1]}, not {kind} of {stored_shape}",
            )
            size = math.prod(stored_shape) * kind.itemsize
            require(member.file_size - file.tell() == size <= most, f"{name}: must have {min(size, most)} bytes")
            array: NDArray[Any] = np.empty(stored_shape, kind) if out is None else out
            raw, done = array.reshape(-1).view(np.uint8), 0
            # Reading to the end makes zipfile compare the checksum.
            while chunk := file.read(_BYTES_AT_ONCE):
                raw[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
                done += len(chunk)
    except (RuleError, MemoryError):
        raise
    except Exception as error:
        raise RuleError(f"{name}: is damaged ({short_reason(error)})") from error
    require(done == size, f"{name}: must have {size} bytes, not {done}")
    return array


def digest(*arrays: NDArray[Any]) -> str:
    """Return a digest of arrays that are too large for a description."""
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(f"{array.dtype} {array.shape}".encode())
        hashed.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return hashed.hexdigest()


def _seal(text: NDArray[np.uint8], arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return the digest of a description and its arrays, whatever their order."""
    sealed = digest(text, *(np.asarray(arrays[name]) for name in sorted(arrays)))
    return np.frombuffer(bytes.fromhex(sealed), np.uint8)


def short_reason(error: Exception) -> str:
    """Return a library's error about a damaged file as one short line."""
    return shorten(" ".join(str(error).split()), 200)


def _check_description(document: Any, description: Mapping[str, Any]) -> None:
    require(isinstance(document, dict), "description: must be an object")
    # As the file has it: JSON knows no tuples.
    for name, value in json.loads(_serialise(description)).items():
        require(
            name in document and document[name] == value,
            # A seed is a secret.
            f"{name}: must be the same as here"
            if name == "seed"
            else f"{name}: must be {value!r} here, not {document.get(name)!r:.200}",
        )


def _serialise(description: Mapping[str, Any]) -> str:
    return json.dumps({"format": _FORMAT, **description})
