"""A released vector that stays in its files: ``.safetensors``, one or several with an index, and ``.npy``.

Coordinates stand in the order of the tensors' names, and row by row in each: the order of ``flatten``. Only the slices
that are asked for are read. Nothing in a file is believed: what a header declares must fill the file, without a gap and
without an overlap.

A ``.safetensors`` file begins with its header's length in 8 bytes, little-endian, and the header in JSON. This has the
type and the shape of each tensor, and where its bytes begin and end. Values of bfloat16 are upper halves of float32.

The library ``safetensors`` (0.8) maps a file, so that a file truncated meanwhile kills the process by SIGBUS. It needs
``ml_dtypes`` for bfloat16, reads no flat slice of a tensor, and writes only tensors that are all in memory.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import checked_integer, checked_path, checked_texts, short_repr, shorten
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import (
    LARGEST_DOCUMENT,
    array_header,
    content,
    open_file,
    parsed_json,
    size_of,
)
from canaryproof.verify.audit.rules import POSITIVE

_LARGEST_DIM = 2**40
_INDEX = ".safetensors.index.json"
SUFFIXES = (".npy", ".safetensors", _INDEX)
_BFLOAT16 = "bfloat16"
_FLOATS = {"F16": "<f2", "BF16": _BFLOAT16, "F32": "<f4", "F64": "<f8"}
_KINDS = {dtype: kind for kind, dtype in _FLOATS.items()}
# Bits of a value of the other types: of integers, which are no part of a release, and of numbers that are not read.
_INTEGERS = {
    **dict.fromkeys(("BOOL", "U8", "I8"), 8),
    **dict.fromkeys(("U16", "I16"), 16),
    **dict.fromkeys(("U32", "I32"), 32),
    **dict.fromkeys(("U64", "I64"), 64),
}
_UNREAD = {
    "F4": 4,
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    "C64": 64,
}
_OTHERS = _INTEGERS | _UNREAD
_AT_ONCE = 2**20


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Tensor:
    """Where a tensor is.

    Attributes
    ----------
    name
        Its name, empty for that of a ``.npy`` file.
    shape
        Its shape.
    dtype
        Type of its values as numpy names it, or ``bfloat16``; empty if they are no floating-point numbers.
    path, offset
        Its file, and where its first byte is.
    nbytes
        Number of its bytes.
    kind
        Type of its values as a header of ``.safetensors`` names it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    path: Path
    offset: int
    nbytes: int
    kind: str = ""

    @property
    def size(self) -> int:
        """Number of its values."""
        return math.prod(self.shape)

    @property
    def working(self) -> type[np.float32] | type[np.float64]:
        """Type in which its values are exact; float64 for long doubles."""
        return np.float32 if self.dtype == _BFLOAT16 or np.dtype(self.dtype).itemsize <= 4 else np.float64

    def read(self, start: int, out: NDArray[np.floating]) -> None:
        """Fill ``out`` with the values from ``start`` on, which must be finite."""
        raw_type = np.dtype("<u2" if self.dtype == _BFLOAT16 else self.dtype)
        raw = np.empty(min(_AT_ONCE, len(out)), raw_type)
        with open_file(self.path) as file:
            file.seek(self.offset + start * raw_type.itemsize)
            for first in range(0, len(out), _AT_ONCE):
                raw = raw[: len(out) - first]
                if file.readinto(raw.view(np.uint8)) != raw.nbytes:  # type: ignore[attr-defined]
                    raise ValueError("truncated while it was read")
                values = (raw.astype(np.uint32) << 16).view(np.float32) if self.dtype == _BFLOAT16 else raw
                # A long double beyond the range becomes infinite.
                with np.errstate(over="ignore"):
                    out[first : first + len(raw)] = values
                finite = np.isfinite(out[first : first + len(raw)])
                if not finite.all():
                    wrong = first + int(finite.argmin())
                    index = [int(i) for i in np.unravel_index(start + wrong, self.shape)] or ""
                    raise ValueError(f"{self.name or 'release'}{index}: must be finite, not {float(out[wrong])!r}")


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class StoredRelease:
    """A released vector in files.

    Attributes
    ----------
    tensors
        Its tensors, in the order of their names.
    left_out
        Names of the files' other tensors: those that the filter leaves out, and those of integers.
    base
        Tensors of the same names and shapes that are subtracted; empty for none.
    canary_norm
        Norm of a canary in the unit of the files.
    only, skip, base_path
        As given to ``open_release``.
    """

    tensors: tuple[Tensor, ...]
    left_out: tuple[str, ...] = ()
    base: tuple[Tensor, ...] = ()
    canary_norm: float = 1.0
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    base_path: Path | None = None

    @property
    def dim(self) -> int:
        """Number d of coordinates."""
        return sum(tensor.size for tensor in self.tensors)

    def read(self, start: int, stop: int) -> NDArray[np.float32] | NDArray[np.float64]:
        """Read a slice of the coordinates, in the unit of the files.

        Parameters
        ----------
        start, stop
            Ends of the slice, 0 ≤ start < stop ≤ d.

        Returns
        -------
        The coordinates in float32 if all tensors have at most 32 bits a value, else in float64.

        Raises
        ------
        ValueError
            If an end is out of its range.
        InputError
            If a file cannot be read, or a coordinate in it is not finite.
        """
        start = checked_integer("start", start, 0, self.dim - 1)
        stop = checked_integer("stop", stop, start + 1, self.dim)
        released = _read(self.tensors, start, stop, self._working)
        if self.base:
            released -= _read(self.base, start, stop, self._working)
        return released

    def record(self) -> dict[str, Any]:
        """Describe the order of the coordinates, for a report."""
        return {
            "order": "by name of the tensor, then row by row",
            "dim": self.dim,
            "tensors": [[tensor.name, list(tensor.shape)] for tensor in self.tensors],
            "left_out": list(self.left_out),
            "only": list(self.only),
            "skip": list(self.skip),
            "base": None if self.base_path is None else self.base_path.name,
            "canary_norm": self.canary_norm,
        }

    @property
    def _working(self) -> type[np.float32] | type[np.float64]:
        single = all(tensor.working is np.float32 for tensor in (*self.tensors, *self.base))
        return np.float32 if single else np.float64


@set_module("canaryproof")
def open_release(
    path: str | os.PathLike[str],
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    base: str | os.PathLike[str] | None = None,
    canary_norm: float = 1.0,
) -> StoredRelease:
    """Open a released vector that is larger than memory, or that is a model's checkpoint.

    Parameters
    ----------
    path
        A ``.safetensors`` file, the ``.safetensors.index.json`` of several, or a one-dimensional ``.npy`` of floats.
    only, skip
        Patterns such as ``"*.lora_*"`` for names of tensors to take, all by default, and to leave out.
    base
        A checkpoint in the same form that is subtracted: the model before training.
    canary_norm
        Norm of a canary in the files' unit, positive: all is told in units of it.

    Returns
    -------
    The release, of which nothing but the headers has been read.

    Raises
    ------
    InputError
        If a file cannot be read or breaks a rule, or the tensors of both checkpoints differ.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> np.save("release.npy", np.arange(5.0))
    >>> release = cp.open_release("release.npy")
    >>> release.read(1, release.dim)
    array([1., 2., 3., 4.])
    """
    canary_norm = POSITIVE.number("canary_norm", canary_norm)
    only, skip = checked_texts("only", only, "patterns"), checked_texts("skip", skip, "patterns")
    tensors, left_out = _choose_tensors(checked_path("path", path), only, skip)
    earlier: tuple[Tensor, ...] = ()
    if base is not None:
        earlier, _ = _choose_tensors(checked_path("base", base), only, skip)
        for tensor, other in zip(tensors, earlier, strict=False):
            if (tensor.name, tensor.shape) != (other.name, other.shape):
                raise InputError(
                    f"{base}: must have the tensors of {path}; it has {_describe(other)} for {_describe(tensor)}"
                )
        if len(tensors) != len(earlier):
            raise InputError(f"{base}: must have the tensors of {path}, {len(tensors)}, not {len(earlier)}")
    subtracted = None if base is None else Path(base)
    return StoredRelease(tensors, left_out, earlier, canary_norm, tuple(only), tuple(skip), subtracted)


def reopen(path: Path, record: object) -> StoredRelease:
    """Open a release as its record says, with its base from the same folder; an ``InputError`` refuses others."""
    if not isinstance(record, dict):
        return open_release(path)
    base, norm = record.get("base"), record.get("canary_norm")
    only, skip = record.get("only", []), record.get("skip", [])
    patterns = [*only, *skip] if isinstance(only, list) and isinstance(skip, list) else [None]
    named = base is None or (isinstance(base, str) and Path(base).name == base)
    if isinstance(norm, bool) or not isinstance(norm, int | float) or not named:
        norm = None
    if norm is None or not all(isinstance(pattern, str) for pattern in patterns):
        raise InputError("the report's audit.coordinates: must say how the release was opened")
    return open_release(path, only or (), skip or (), None if base is None else path.with_name(base), norm)


def stored_tensors(path: Path) -> tuple[Tensor, ...]:
    """Return all tensors of a checkpoint or a ``.npy`` file, in the order of their names."""
    name = path.name.lower()
    if name.endswith(_INDEX):
        tensors = _read_index(path)
    elif name.endswith(".safetensors"):
        with open_file(path) as file:
            tensors = list(_header(file, path))
    else:
        with open_file(path, SUFFIXES) as file:
            count, dtype, start = array_header(file, size_of(file), _LARGEST_DIM)
        tensors = [Tensor("", (count,), dtype.str, path, start, count * dtype.itemsize)]
    return tuple(sorted(tensors, key=lambda tensor: tensor.name))


def written_size(path: Path, release: StoredRelease) -> int:
    """Return about how many bytes ``write_sum`` writes."""
    widths = {tensor.name: np.dtype(tensor.working).itemsize for tensor in release.tensors}
    tensors = stored_tensors(path)
    return sum(widths[t.name] * t.size if t.name in widths else t.nbytes for t in tensors)


def write_sum(
    file: IO[bytes], path: Path, release: StoredRelease, added: Callable[[int, int], NDArray[np.float64]]
) -> None:
    """Write a file's tensors with something added to those of a release, given its ends of a slice of coordinates.

    What it is added to is written in float32, or in float64 where it has more digits: values of 16 bits would lose it.
    Other tensors are copied.
    """
    tensors, first = stored_tensors(path), 0
    taken = {tensor.name: np.dtype(tensor.working).newbyteorder("<") for tensor in release.tensors}
    if path.suffix.lower() == ".npy":
        np.lib.format.write_array_header_1_0(
            file, {"descr": taken[""].str, "fortran_order": False, "shape": (release.dim,)}
        )
    else:
        file.write(_written_header(tensors, taken))
    for tensor in tensors:
        if tensor.name in taken:
            for start in range(0, tensor.size, _AT_ONCE):
                values = np.empty(min(_AT_ONCE, tensor.size - start), tensor.working)
                tensor.read(start, values)
                values += added(first + start, first + start + len(values))
                file.write(values.astype(taken[tensor.name], copy=False).data)
            first += tensor.size
        else:
            _copy(tensor, file)


def _written_header(tensors: Sequence[Tensor], taken: Mapping[str, np.dtype[Any]]) -> bytes:
    """Return the length of a header and the header, with blanks up to a multiple of 8 bytes."""
    entries, end = {}, 0
    for tensor in tensors:
        dtype, start = taken.get(tensor.name), end
        end += tensor.nbytes if dtype is None else tensor.size * dtype.itemsize
        kind = tensor.kind if dtype is None else _KINDS[dtype.str]
        entries[tensor.name] = {"dtype": kind, "shape": tensor.shape, "data_offsets": [start, end]}
    header = json.dumps(entries, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def _copy(tensor: Tensor, file: IO[bytes]) -> None:
    """Copy a tensor's bytes."""
    with open_file(tensor.path) as source:
        source.seek(tensor.offset)
        for start in range(0, tensor.nbytes, _AT_ONCE):
            length = min(_AT_ONCE, tensor.nbytes - start)
            piece = source.read(length)
            if len(piece) < length:
                raise ValueError("truncated while it was read")
            file.write(piece)


def _choose_tensors(path: Path, only: Sequence[str], skip: Sequence[str]) -> tuple[tuple[Tensor, ...], tuple[str, ...]]:
    """Return the floating-point tensors that a filter takes, and the names of the others."""
    tensors = stored_tensors(path)
    for pattern in (*only, *skip):
        if not any(fnmatchcase(tensor.name, pattern) for tensor in tensors):
            raise InputError(f"{path}: has no tensor with a name like {short_repr(pattern)}")
    passed = [
        tensor
        for tensor in tensors
        if (not only or any(fnmatchcase(tensor.name, pattern) for pattern in only))
        and not any(fnmatchcase(tensor.name, pattern) for pattern in skip)
    ]
    for tensor in passed:
        if tensor.kind in _UNREAD:
            raise InputError(
                f"{path}: {short_repr(tensor.name)} has numbers of type {tensor.kind}, which are not read: leave it "
                "out by --skip, or write it in another type"
            )
    taken = tuple(tensor for tensor in passed if tensor.dtype)
    dim = sum(tensor.size for tensor in taken)
    if not 2 <= dim <= _LARGEST_DIM:
        raise InputError(f"{path}: the release must have at least 2 coordinates, and at most 2^40, not {dim}")
    names = {tensor.name for tensor in taken}
    return taken, tuple(tensor.name for tensor in tensors if tensor.name not in names)


def _describe(tensor: Tensor) -> str:
    return f"{short_repr(tensor.name)} of shape {tensor.shape}"


def _read_index(path: Path) -> list[Tensor]:
    """Return the tensors of several files that an index names."""
    with open_file(path) as file:
        index = parsed_json(content(file, LARGEST_DOCUMENT))
        names = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(names, dict) or not names:
            raise ValueError('must be an index of checkpoints, an object with a "weight_map"')
        for shard in names.values():
            # The index may come from anybody, and names files of its own folder.
            if not isinstance(shard, str) or Path(shard).name != shard or not shard.endswith(".safetensors"):
                raise ValueError(
                    f"weight_map: must name .safetensors files of its folder, not {short_repr(str(shard))}"
                )
    tensors = []
    for shard in sorted(set(names.values())):
        with open_file(path.with_name(shard)) as file:
            of_shard = {tensor.name: tensor for tensor in _header(file, path.with_name(shard))}
        for name in (name for name, file_name in names.items() if file_name == shard):
            if name not in of_shard:
                raise InputError(f"{path}: weight_map: {short_repr(name)} is not in {shard}")
            tensors.append(of_shard[name])
    return tensors


def _header(file: IO[bytes], path: Path) -> Iterator[Tensor]:
    """Read the header of a ``.safetensors`` file."""
    size = size_of(file)
    length = int.from_bytes(file.read(8), "little")
    if 2 <= length <= size - 8 and length > LARGEST_DOCUMENT:
        raise ValueError(f"its header must have at most {LARGEST_DOCUMENT:,} bytes, not {length:,}")
    if size < 8 or not 2 <= length <= size - 8:
        raise ValueError("is not a .safetensors file, or truncated: its header does not fit in it")
    header = parsed_json(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("is not a .safetensors file: its header must be an object")
    header.pop("__metadata__", None)
    end, start = 0, 8 + length
    tensors = []
    for name, entry in header.items():
        try:
            tensors.append(_entry(name, entry))
        except (KeyError, TypeError, ValueError) as error:
            reason = str(error) if type(error) is ValueError else "must have dtype, shape and data_offsets"
            raise ValueError(f"{short_repr(name)}: {reason}") from None
    for first, last, name, kind, shape in sorted(tensors):
        if first != end:
            raise ValueError(f"{short_repr(name)}: its bytes must begin where the others end, at {end}, not at {first}")
        end = last
        yield Tensor(name, shape, _FLOATS.get(kind, ""), path, start + first, last - first, kind)
    if start + end != size:
        raise ValueError(f"truncated or damaged: its tensors have {end} bytes, and {size - start} follow the header")


def _entry(name: str, entry: Any) -> tuple[int, int, str, str, tuple[int, ...]]:
    """Check a tensor's entry in the header."""
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    numbers = [*shape, *offsets]
    if len(offsets) != 2 or not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
        raise ValueError("shape and data_offsets must be whole numbers")
    if kind not in _FLOATS and kind not in _OTHERS:
        listed = ", ".join((*_FLOATS, *_OTHERS))
        raise ValueError(f"dtype: must be one of {listed}, not {shorten(str(kind))}")
    dtype = _FLOATS.get(kind, "")
    bits = _OTHERS[kind] if not dtype else 16 if dtype == _BFLOAT16 else 8 * np.dtype(dtype).itemsize
    length, rest = divmod(math.prod(shape) * bits, 8)
    if rest:
        raise ValueError(f"must have whole bytes, not {math.prod(shape)} values of {bits} bits")
    if offsets[1] - offsets[0] != length:
        raise ValueError(f"must have {length} bytes, as its shape says, not {offsets[1] - offsets[0]}")
    return offsets[0], offsets[1], name, kind, tuple(shape)


def _read(tensors: Sequence[Tensor], start: int, stop: int, dtype: type[np.floating]) -> NDArray[Any]:
    """Read a slice of the coordinates of tensors that follow one another."""
    values, first = np.empty(stop - start, dtype), 0
    for tensor in tensors:
        begin, end = max(start, first), min(stop, first + tensor.size)
        if begin < end:
            tensor.read(begin - first, values[begin - start : end - start])
        first += tensor.size
    return values
