"""Checkpoints from which a training resumes: arrays by name, and a description of the training that they belong to.

A crash, even of the machine, leaves the old file or the new one, whole. Nothing is unpickled.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.audit.files.errors import InputError, RuleError
from canaryproof.verify.audit.files.reading import parsing, regular, require
from canaryproof.verify.audit.files.writing import replaced

_FORMAT = 1
_DESCRIPTION = "description"
_LARGEST_TEXT, _LARGEST_HEADER = 10**6, 2**16


def write(path: Path, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write or replace a checkpoint; ``description``, of JSON's values, is what ``read`` must find again."""
    text = np.frombuffer(_described(description).encode(), np.uint8)
    with replaced(path) as file:
        np.savez(file, **{_DESCRIPTION: text}, **arrays)  # type: ignore[arg-type]


def read(path: Path, description: Mapping[str, Any], like: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Read the finite arrays of a checkpoint, which must have this description, and the types and shapes of ``like``.

    An ``InputError`` names the file, the field and the rule if it is damaged, or of another training.
    """
    with regular(path) as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                # Sizes first: what a damaged or foreign file asks for is not allocated.
                sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.zip.infolist()}
                limits = {_DESCRIPTION: _LARGEST_TEXT} | {name: array.nbytes for name, array in like.items()}
                for name in sizes.keys() & limits.keys():
                    limit = limits[name] + _LARGEST_HEADER
                    require(sizes[name] <= limit, f"{name}: must have at most {limit} bytes, not {sizes[name]}")
                _check_description(json.loads(archive[_DESCRIPTION].tobytes()), description)
                require(
                    sizes.keys() == limits.keys(),
                    f"its arrays must be {', '.join(limits)}, not {', '.join(sizes):.200}",
                )
                arrays = {name: archive[name] for name in like}
            for name, array in arrays.items():
                expected = like[name].dtype, like[name].shape
                require(
                    (array.dtype, array.shape) == expected,
                    f"{name}: must be {expected[0]} of shape {expected[1]}, not {array.dtype} of {array.shape}",
                )
                require(bool(np.isfinite(array).all()), f"{name}: must be finite")
        except RuleError as error:
            raise InputError(f"{path}: {error}") from None
        # zipfile, json and numpy have no closed list of what they raise over a damaged file.
        except Exception as error:
            reason = str(error).partition("\n")[0][:200]
            raise InputError(f"{path}: is not a checkpoint, or a damaged one ({reason})") from error
    return arrays


def stored(file: IO[bytes], names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Read named arrays from a ``numpy.savez`` file; a ``ValueError`` says what is damaged or missing."""
    with parsing(".npz"), np.load(file, allow_pickle=False) as archive:
        entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.zip.infolist()}
        # As it is written; nothing that is packed is unpacked to a size that nobody sees.
        packed = any(entry.file_size > entry.compress_size for entry in entries.values())
        lacking = [name for name in names if name not in entries]
        arrays = {} if packed or lacking else {name: archive[name] for name in names}
    if packed:
        raise ValueError("must be stored, as numpy.savez does")
    if lacking:
        raise ValueError(f"{lacking[0]}: is missing")
    return arrays


def digest(*arrays: NDArray[Any]) -> str:
    """Return a digest of arrays that are too large to stand in a description."""
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(f"{array.dtype} {array.shape}".encode())
        hashed.update(array.tobytes())
    return hashed.hexdigest()


def _check_description(document: Any, description: Mapping[str, Any]) -> None:
    require(isinstance(document, dict), "description: must be an object")
    # As the file has it: JSON knows no tuples.
    for name, value in json.loads(_described(description)).items():
        require(
            name in document and document[name] == value,
            f"{name}: must be {value!r} here, not {document.get(name)!r:.200}",
        )


def _described(description: Mapping[str, Any]) -> str:
    return json.dumps({"format": _FORMAT, **description})
