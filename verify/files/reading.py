"""Reading a user's files: canaries' scores, or a released vector; and the rules for both, wherever they are from.

Nothing in a file is believed: no pickle is loaded, and no size that a header declares is allocated before as many bytes
are there. Whatever breaks a rule becomes one line that names the file, the place in it and the rule.

Values must be floating-point (text in a ``.csv``). Integers are refused, because an integer cosine can only be −1, 0 or
1, and an integer release still carries its quantisation step, so that it is not in units of the canary norm. Columns
and arrays under other names than ``observed`` and ``unobserved`` are refused too: a misspelt name would silently change
the null hypothesis.
"""

import csv
import io
import re
import stat
import warnings
import zipfile
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

# Bounds what a small compressed file can make us allocate.
LARGEST_COUNT = 10_000_000
_LARGEST_DIM = 2**40
_LONGEST_LINE = 10_000
_NAMES = ("observed", "unobserved")
# Of any kind but cosines: squares must not overflow.
_LARGEST_SCORE, _SCORE_RULE = 1e100, "a score must lie in [-1e100, 1e100]"


class InputError(Exception):
    """Input that breaks a rule, which its message names in one line."""

    @property
    def message(self) -> str:
        """The line."""
        return str(self)


class RuleError(ValueError):
    """A rule that a file breaks, with the field's name; whoever opened the file names it."""


def require(holds: bool, rule: str) -> None:
    """Raise a ``RuleError`` if a rule does not hold."""
    if not holds:
        raise RuleError(rule)


class ScoreKind(StrEnum):
    """What scores are."""

    COSINE = "cosine"  # cosines with one released vector, or their maxima over rounds
    ANY = "any"  # any real scores, higher where a canary left a trace


@dataclass(frozen=True)
class ScoreColumns:
    """Checked scores of one run.

    Attributes
    ----------
    observed
        Scores of canaries that took part, shape (k,), k ≥ 2, not all equal.
    unobserved
        Scores of canaries that did not, shape (k₀,), k₀ ≥ 2, not all equal; None if the file has none.
    """

    observed: NDArray[np.float64]
    unobserved: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class _Column:
    """Values as a file gives them, and how to name the place of one."""

    values: NDArray[np.float64]
    place: Callable[[int], str]


def read_scores(path: Path, kind: ScoreKind = ScoreKind.COSINE) -> ScoreColumns:
    """Read scores from a ``.npy``, ``.npz`` or ``.csv`` file.

    Parameters
    ----------
    path
        A one-dimensional ``.npy`` array; a ``.npz`` archive with ``observed`` and optionally ``unobserved``; or a
        ``.csv`` file in UTF-8 with one number a line, or with a header that names these columns, of which the shorter
        one ends in empty cells.
    kind
        What they are.

    Returns
    -------
    The scores in float64.

    Raises
    ------
    InputError
        If the file cannot be read or breaks a rule.
    """
    readers = {".npy": _read_npy, ".npz": _read_npz, ".csv": _read_csv}
    with opened(path, tuple(readers)) as file:
        columns = readers[path.suffix.lower()](file)
        return ScoreColumns(
            **{name: checked_scores(name, column.values, kind, column.place) for name, column in columns.items()}
        )


def checked_scores(
    name: str, values: NDArray[np.float64], kind: ScoreKind, place: Callable[[int], str] | None = None
) -> NDArray[np.float64]:
    """Return scores that keep the rules.

    Parameters
    ----------
    name
        What they are: ``observed`` or ``unobserved``.
    values
        Scores in float64, shape (k,).
    kind
        What they are said to be.
    place
        How to name the place of one; by default its index.

    Returns
    -------
    The scores.

    Raises
    ------
    ValueError
        If one is not finite or out of its range, or there are too few, or all are equal.
    """
    where = place or (lambda i: f"{name}[{i}]")
    _check_finite(values, where)
    largest, rule = (1.0, "a cosine must lie in [-1, 1]") if kind is ScoreKind.COSINE else (_LARGEST_SCORE, _SCORE_RULE)
    outside = np.flatnonzero(np.abs(values) > largest)
    if len(outside):
        i = int(outside[0])
        raise ValueError(f"{where(i)}: {rule}, not {float(values[i])!r}")
    if len(values) < 2:
        raise ValueError(f"{name}: must have at least 2 values, not {len(values)}")
    if values.min() == values.max():
        raise ValueError(f"{name}: all {len(values)} values are equal; their variance must not be zero")
    return values


def floats(values: object) -> NDArray[Any]:
    """Return anything that numpy takes for an array, if it is one of floating-point numbers with one axis.

    Raises
    ------
    ValueError
        If it is not.
    """
    # A tensor of another device or with a gradient raises what its library chooses.
    try:
        array = np.asarray(values)
    except Exception as error:
        raise ValueError(f"must be an array of numbers ({_shortened(str(error), 200)})") from error
    # V: bfloat16 and its like are strangers to numpy, but convert exactly.
    if array.dtype.kind == "V" and np.can_cast(array.dtype, np.float64):
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise ValueError(f"values must be floating-point, not {_shortened(str(array.dtype))}")
    if array.ndim != 1:
        raise ValueError(f"the array must have one axis, not {array.ndim}")
    return array


def checked_release(given: NDArray[Any]) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return a released vector that keeps the rules, in float32 or float64.

    Raises
    ------
    ValueError
        If it has fewer than 2 coordinates, one is not finite, or all are zero.
    """
    single = given.dtype.itemsize <= np.dtype(np.float32).itemsize
    release: NDArray[Any] = _converted(given, np.float32 if single else np.float64)
    if len(release) < 2:
        raise ValueError(f"the release must have at least 2 coordinates, not {len(release)}")
    _check_finite(release, lambda i: f"release[{i}]")
    if not release.any():
        raise ValueError("the release must not be the zero vector")
    return release


def read_release(path: Path) -> NDArray[np.float32] | NDArray[np.float64]:
    """Read a released vector from a ``.npy`` file.

    Parameters
    ----------
    path
        A one-dimensional array of floats. It is not flattened: the order of the coordinates must be that in which the
        canaries were added, and a file of another shape doesn't tell.

    Returns
    -------
    The vector in float32 or float64, not zero, shape (d,), d ≥ 2.

    Raises
    ------
    InputError
        If the file cannot be read or breaks a rule.
    """
    with opened(path, (".npy",)) as file:
        return checked_release(_read_array(file, _size(file), _LARGEST_DIM))


@contextmanager
def opened(path: Path, suffixes: tuple[str, ...] | None = None) -> Iterator[IO[bytes]]:
    """Open a regular file that is not empty, and name it in whatever goes wrong.

    Parameters
    ----------
    path
        The file.
    suffixes
        In what its name must end; None for any.

    Yields
    ------
    The file. A ``ValueError`` of the caller's becomes an ``InputError`` that names it.

    Raises
    ------
    InputError
        If the file cannot be read, or what is done with it fails.
    """
    try:
        if suffixes is not None and path.suffix.lower() not in suffixes:
            raise ValueError(f"the file's name must end in {' or '.join(suffixes)}")
        # Opening a pipe would wait for its writer, and a device may have no end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError("must be a regular file")
        with path.open("rb") as file:
            if _size(file) == 0:
                raise ValueError("the file is empty")
            yield file
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: must be text in UTF-8") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    except MemoryError as error:
        raise InputError(f"{path}: does not fit in memory") from error


def _size(file: IO[bytes]) -> int:
    here = file.tell()
    size = file.seek(0, io.SEEK_END)
    file.seek(here)
    return size


@contextmanager
def parsing(form: str) -> Iterator[None]:
    """Turn into a ValueError whatever a library raises over a malformed file of some form."""
    # numpy's header parser and zipfile have no closed list of exceptions; a flipped bit may raise any of a dozen.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        # An object's address would differ from run to run.
        reason = re.sub(" at 0x[0-9a-f]+", "", reason)
        raise ValueError(f"is not a readable {form} file ({_shortened(reason, 200)})") from error


def _read_npy(file: IO[bytes]) -> dict[str, _Column]:
    values = _converted(_read_array(file, _size(file), LARGEST_COUNT), np.float64)
    return {"observed": _Column(values, lambda i: f"observed[{i}]")}


def _read_npz(file: IO[bytes]) -> dict[str, _Column]:
    with parsing(".npz"):
        archive = zipfile.ZipFile(file)
    members = archive.infolist()
    names = [member.filename.removesuffix(".npy") for member in members]
    _check_names("array", names)
    return {name: _read_member(archive, member, name) for name, member in zip(names, members, strict=True)}


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> _Column:
    # numpy writes these two only, and of the others' decompressors zipfile does not bound the output.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name}: must be stored or deflated, as numpy.savez and numpy.savez_compressed do")
    with parsing(".npz"):
        file = archive.open(member)
    with file:
        try:
            values = _converted(_read_array(file, member.file_size, LARGEST_COUNT), np.float64)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return _Column(values, lambda i: f"{name}[{i}]")


def _read_array(file: IO[bytes], size: int, largest_count: int) -> NDArray[Any]:
    """Read a one-dimensional array of floats in the .npy format that takes exactly ``size`` bytes."""
    with parsing(".npy"):
        version = np.lib.format.read_magic(file)
        # Later versions differ in their headers' size alone, up to 4 GB; plain arrays never need it.
        if version != (1, 0):
            raise ValueError(f"format version {version[0]}.{version[1]}; plain arrays have 1.0")
        try:
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        except MemoryError:
            # The parser's word for deep nesting; the header itself has at most 64 kB.
            raise ValueError("its header is nested too deeply") from None
        start = file.tell()
    if dtype.kind != "f":
        raise ValueError(f"values must be floating-point, not {_shortened(str(dtype))}")
    if len(shape) != 1:
        raise ValueError(f"the array must have one axis, not {len(shape)}")
    count = int(shape[0])
    if not 0 <= count <= largest_count:
        raise ValueError(f"the array must have 0 to {largest_count} values, not {count}")
    length = count * dtype.itemsize
    if length != size - start:
        raise ValueError(
            f"truncated or damaged: the header declares {count} values of {dtype.name} ({length} bytes), "
            f"and {size - start} bytes follow it"
        )
    with parsing(".npy"):
        # Reading past the last byte makes zipfile compare the checksum.
        data = file.read(length) + file.read(1)
        return np.frombuffer(data, dtype)


def _read_csv(file: IO[bytes]) -> dict[str, _Column]:
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        rows = _rows(text)
        first = next(rows, [])
        if "observed" in (cell.strip() for cell in first):
            names = [cell.strip() for cell in first]
            _check_names("column", names)
            first_line = 2
        else:
            names = ["observed"]
            rows = _chained(first, rows)
            first_line = 1
        columns = _read_columns(names, rows, first_line)
    return {
        name: _Column(np.array(column), lambda i, name=name: f"{name}, line {first_line + i}")  # type: ignore[misc]
        for name, column in zip(names, columns, strict=True)
    }


def _chained(first: list[str], rest: Iterator[list[str]]) -> Iterator[list[str]]:
    yield first
    yield from rest


def _rows(text: IO[str]) -> Iterator[list[str]]:
    """Split lines into cells, a row a line."""
    reader = csv.reader(_lines(text), strict=True)
    number = 0
    try:
        for row in reader:
            number += 1
            if reader.line_num != number:
                raise ValueError(f"line {number}: a quoted cell must end on its line")
            yield row
    except csv.Error as error:
        raise ValueError(f"line {number + 1}: is not comma-separated text ({error})") from error


def _lines(text: IO[str]) -> Iterator[str]:
    number = 0
    while line := text.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise ValueError(f"line {number}: must have at most {_LONGEST_LINE} characters")
        yield line


def _read_columns(names: list[str], rows: Iterator[list[str]], first_line: int) -> "list[array[float]]":
    columns = [array("d") for _ in names]
    for index, row in enumerate(rows):
        line = first_line + index
        if len(row) > len(names):
            plural = "s" if len(names) > 1 else ""
            raise ValueError(f"line {line}: must have at most {len(names)} cell{plural}, not {len(row)}")
        for name, column, cell in zip(names, columns, row, strict=False):
            # An empty cell ends its column: what stands below it would be shorter than its line number says.
            if not cell.strip():
                continue
            if len(column) != index:
                raise ValueError(f"{name}, line {line}: no number may stand below an empty cell")
            column.append(_number(name, line, cell))
        if index >= LARGEST_COUNT and any(len(column) > LARGEST_COUNT for column in columns):
            raise ValueError(f"must have at most {LARGEST_COUNT} lines of numbers")
    return columns


def _number(name: str, line: int, cell: str) -> float:
    try:
        # Python also takes 1_000 and digits of other scripts for numbers; a data file that has them is damaged.
        if not cell.isascii() or "_" in cell:
            raise ValueError
        return float(cell)
    except ValueError:
        hint = " or a header that names the column observed" if line == 1 else ""
        raise ValueError(f"{name}, line {line}: must be a number{hint}, not {_shortened(repr(cell))}") from None


def _check_names(kind: str, names: list[str]) -> None:
    for name in names:
        if name not in _NAMES:
            raise ValueError(
                f"{kind}s must be named observed and, optionally, unobserved, not {_shortened(repr(name))}"
            )
    if "observed" not in names:
        raise ValueError(f"must have an {kind} named observed" if kind == "array" else f"must have a {kind} observed")
    if len(set(names)) < len(names):
        raise ValueError(f"every {kind} must have a name of its own")


def _check_finite(values: NDArray[Any], place: Callable[[int], str]) -> None:
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(f"{place(i)}: must be finite, not {float(values[i])!r}")


def _converted(values: NDArray[Any], dtype: type[np.floating]) -> NDArray[Any]:
    # A long double beyond the range becomes infinite, which a rule refuses.
    with np.errstate(over="ignore"):
        return values.astype(dtype, copy=False)


def _shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[:length] + "..."
