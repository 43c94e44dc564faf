"""Reading a user's files: canaries' scores, or a released vector; and the rules for both, wherever they are from.

Nothing in a file is believed: no pickle is loaded, and no size that a header declares is allocated before as many bytes
are there. Whatever breaks a rule becomes one line that names the file, the place in it and the rule.

Cosines and releases must be floating-point (text in a ``.csv``). An integer cosine can only be −1, 0 or 1, and an
integer release still carries its quantisation step, so that it is not in units of the canary norm. Other scores may be
whole numbers. Columns and arrays under other names than those of ``PAIRS`` are refused: a misspelt name would silently
change the null hypothesis.
"""

import codecs
import contextlib
import csv
import errno
import io
import json
import re
import stat
import warnings
import zipfile
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels.arrays import is_floating, on_host
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import short_repr, shorten
from canaryproof.verify.audit.files.errors import InputError, RuleError

if TYPE_CHECKING:
    import pandas as pd

# Bounds what a small compressed file can make us allocate.
LARGEST_COUNT = 10_000_000
_LARGEST_DIM = 2**40
_LONGEST_LINE = 10_000
_TOO_LONG = f"must have at most {_LONGEST_LINE} characters"
# Limits of a Parquet file: columns, bytes of their list. The list is followed by its length and a mark, in 8 bytes.
_MOST_COLUMNS, _LARGEST_FOOTER, _PARQUET_END = 10_000, 2**24, 8
# Bytes of text, or values, that are looked at together.
_BLOCK, _PIECE = 2**20, 2**18
# Four times the results of a full run are some 20 MB, in which there are less than a million values.
LARGEST_DOCUMENT, _MOST_VALUES = 2**26, 4_000_000
OWN_NAMES = ("observed", "unobserved")
# Names of the two kinds of scores. Under the first, which are this package's own, cosines are expected.
PAIRS = (
    *(OWN_NAMES, ("in_canary_scores", "out_canary_scores"), ("in", "out"), ("train", "test")),
    *(("member", "nonmember"), ("members", "nonmembers"), ("loss_train", "loss_test"), ("train_loss", "test_loss")),
)


class Readable(Protocol):
    """A file that can be read piece by piece."""

    def read(self, size: int, /) -> bytes: ...  # noqa: D102


# Words for a canary that took part and one that did not.
_MEMBERS = {"1": True, "true": True, "1.0": True, "0": False, "false": False, "0.0": False}


def require(holds: bool, rule: str) -> None:
    """Raise a ``RuleError`` if a rule does not hold."""
    if not holds:
        raise RuleError(rule)


@set_module("canaryproof.typing")
class ScoreKind(StrEnum):
    """Kinds of scores."""

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
    """Values as a file gives them, and how to name the position of one."""

    values: NDArray[np.float64]
    position: Callable[[int], str]


def read_scores(path: Path, kind: ScoreKind = ScoreKind.COSINE) -> ScoreColumns:
    """Read scores from a ``.npy``, ``.npz`` or ``.csv`` file.

    Parameters
    ----------
    path
        A one-dimensional ``.npy`` array; a ``.npz`` archive with ``observed`` and optionally ``unobserved``, or another
        pair of ``PAIRS``; or a ``.csv`` file in UTF-8 with one number a line, or with a header that names the columns
        ``observed`` and ``unobserved``, of which the shorter one ends in empty cells.
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
    whole = kind is ScoreKind.ANY
    readers: dict[str, Callable[[IO[bytes]], dict[str, _Column]]]
    readers = {".npy": partial(_read_npy, whole=whole), ".npz": partial(_read_npz, whole=whole), ".csv": _read_csv}
    with open_file(path, tuple(readers)) as file:
        columns = readers[path.suffix.lower()](file)
        checked = {name: checked_scores(name, column.values, kind, column.position) for name, column in columns.items()}
        pair = next((pair for pair in PAIRS if set(pair) >= checked.keys()), OWN_NAMES)
        return ScoreColumns(checked[pair[0]], checked.get(pair[1]))


def read_score_columns(
    path: Path, score: str, member: str, kind: ScoreKind = ScoreKind.COSINE, id_column: str | None = None
) -> ScoreColumns:
    """Read scores from a table with a line for each canary, or for each of its scores, a ``.csv`` or ``.parquet`` file.

    Parameters
    ----------
    path
        The file. A ``.csv`` file is in UTF-8 with a header. A ``.parquet`` file is read by pyarrow, which believes the
        sizes that it declares.
    score, member
        Names of the columns with the score, and with 1 or true if the canary took part, 0 or false if it did not.
    kind
        What the scores are.
    id_column
        Name of the column that says which canary a line is about, if there are several lines for one. A canary has one
        score then, the mean of its lines'. Cosines of one canary must be equal, as their mean is no cosine.

    Returns
    -------
    The scores in float64.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or breaks a rule.
    """
    needed = {score, member} if id_column is None else {score, member, id_column}
    with open_file(path, (".csv", ".parquet")) as file:
        table = read_table(file, path.suffix.lower() == ".parquet", needed)
        return labelled_scores(table, score, member, kind, id_column)


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table with named columns.

    Attributes
    ----------
    names
        Names of the columns.
    columns
        The cells of the columns that are needed, by name.
    first_line
        Number of the line of the first row in its file; 0 where it has rows and no lines, which are counted from 0.
    """

    names: list[str]
    columns: Mapping[str, Iterable[Any]]
    first_line: int

    def cells(self, name: str) -> list[str]:
        """Return the cells of the one column of a name; a ``ValueError`` says that there is none, or more."""
        if self.names.count(name) != 1:
            listed = f"its columns are {shorten(', '.join(self.names), 200)}" if self.names else "it has none"
            raise ValueError(f"must have one column {short_repr(name)}; {listed}")
        # The shortest text of a number in half or in single precision is another number in double precision.
        return [str(float(cell) if isinstance(cell, np.floating) else cell) for cell in self.columns[name]]

    def position(self, row: int) -> str:
        """Name the place of a row, counted from 0."""
        return f"line {self.first_line + row}" if self.first_line else f"row {row}"


def table_of(frame: "pd.DataFrame") -> LabelledTable:
    """Return a pandas DataFrame as a table."""
    names = [str(name) for name in frame.columns]
    return LabelledTable(names, {name: frame.iloc[:, i] for i, name in enumerate(names)}, 0)


def read_table(file: IO[bytes], parquet: bool, needed: Collection[str]) -> LabelledTable:
    """Read the columns of some names, of those that a table has; a one-line ``ValueError`` says why it cannot be read.

    Columns and rows are counted before they are read, and others than those are not read at all.
    """
    if not parquet:
        text = io.TextIOWrapper(file, "utf-8-sig", newline="")
        try:
            return _read_csv_columns(text, needed)
        finally:
            # The file is its caller's to close.
            text.detach()
    try:
        return _read_parquet(file, needed)
    except ImportError as error:
        raise ValueError("a .parquet file needs pyarrow: pip install pyarrow") from error
    except (RuleError, MemoryError):
        raise
    except Exception as error:
        # Pyarrow has no closed list of exceptions.
        reason = shorten(str(error).strip(), 200) or type(error).__name__
        raise ValueError(f"is no table that can be read ({reason})") from error


def _check_length(number: int) -> None:
    require(number <= LARGEST_COUNT, f"must have at most {LARGEST_COUNT} lines of numbers")


def _read_csv_columns(text: IO[str], needed: Collection[str]) -> LabelledTable:
    """Read columns of a ``.csv`` file; the limit of a line is one of columns, too."""
    rows = _rows(text, 0)
    names = [name.strip() for name in next(rows, [])]
    columns: dict[str, list[str]] = {name: [] for name in names if name in needed}
    indices = {name: names.index(name) for name in columns}
    for count, row in enumerate(rows, 1):
        _check_length(count)
        require(len(row) <= len(names), f"line {count + 1}: must have at most {len(names)} cells, not {len(row)}")
        for name, index in indices.items():
            columns[name].append(row[index] if index < len(row) else "")
    return LabelledTable(names, columns, 2)


def _read_parquet(file: IO[bytes], needed: Collection[str]) -> LabelledTable:
    """Read columns of a Parquet file, words by their dictionary: a file can say a long one very often."""
    # An optional library.
    import pyarrow as pa
    from pyarrow import parquet

    file.seek(max(0, size_of(file) - _PARQUET_END))
    end = file.read(_PARQUET_END)
    # Pyarrow refuses any other file.
    footer = int.from_bytes(end[:4], "little") if end.endswith(b"PAR1") else 0
    require(footer <= _LARGEST_FOOTER, f"its list of columns must have at most {_LARGEST_FOOTER} bytes")
    file.seek(0)
    head = parquet.ParquetFile(file)
    require(head.metadata.num_columns <= _MOST_COLUMNS, f"must have at most {_MOST_COLUMNS} columns")
    _check_length(head.metadata.num_rows)
    names = [str(name) for name in head.schema_arrow.names]
    taken = [name for name in names if name in needed and names.count(name) == 1]
    for name in taken:
        nested = pa.types.is_nested(head.schema_arrow.field(name).type)
        require(not nested, f"{name}: must have a number, a word or a truth value in each row")
    columns: dict[str, list[Any]] = {name: [] for name in taken}
    source = parquet.ParquetFile(file, read_dictionary=taken)
    for batch in source.iter_batches(_PIECE, columns=taken, use_pandas_metadata=False) if taken else ():
        for name, cells in columns.items():
            column = batch.column(name)
            if pa.types.is_dictionary(column.type):
                words = column.dictionary.to_pylist()
                require(all(len(word) <= _LONGEST_LINE for word in words), f"{name}: {_TOO_LONG}")
                cells += [None if i is None else words[i] for i in column.indices.to_pylist()]
            else:
                cells += column.to_pylist()
            _check_length(len(cells))
    return LabelledTable(names, columns, 0)


def labelled_scores(
    table: LabelledTable, score: str, member: str, kind: ScoreKind, id_column: str | None = None
) -> ScoreColumns:
    """Return the scores of a table with labels, one of each canary; a ``ValueError`` says which rule is broken."""
    numbers, members = table.cells(score), table.cells(member)
    _check_length(len(numbers))
    values = np.array(
        [parsed_number(score, table.position(i), cell) for i, cell in enumerate(numbers)], dtype=np.float64
    )
    took_part = np.array(
        [_is_member(member, table.position(i), cell) for i, cell in enumerate(members)], dtype=np.bool_
    )
    lines = np.arange(len(values))
    if id_column is not None:
        values, took_part, lines = _one_of_each_id(table, id_column, values, took_part, kind)
    groups = (("observed", np.flatnonzero(took_part)), ("unobserved", np.flatnonzero(~took_part)))

    def position(rows: NDArray[np.intp]) -> Callable[[int], str]:
        return lambda i: f"{score}, {table.position(int(lines[rows[i]]))}"

    checked = {
        name: checked_scores(name, values[rows], kind, position(rows))
        for name, rows in groups
        if name == "observed" or len(rows)
    }
    return ScoreColumns(**checked)


def _one_of_each_id(
    table: LabelledTable, name: str, values: NDArray[np.float64], took_part: NDArray[np.bool_], kind: ScoreKind
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.intp]]:
    """Return one score of each id, whether it took part, and the first line that is about it."""
    ids = [cell.strip() for cell in table.cells(name)]
    empty = next((i for i, each in enumerate(ids) if each in ("", "nan", "None", "<NA>")), None)
    if empty is not None:
        raise ValueError(f"{name}, {table.position(empty)}: must name a canary, not {short_repr(ids[empty])}")
    _, firsts, index, counts = np.unique(
        np.array(ids, dtype=object), return_index=True, return_inverse=True, return_counts=True
    )
    for wrong, rule in (
        (took_part != took_part[firsts][index], "must have taken part in all of its lines or in none"),
        (
            (values != values[firsts][index]) & (kind is ScoreKind.COSINE),
            "must have equal cosines in all of its lines; scores that differ are of kind any",
        ),
    ):
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(f"{name}, {table.position(i)}: {short_repr(ids[i])} {rule}")
    # The mean of equal scores is the score itself, to the last digit.
    means = np.bincount(index, values) / counts
    are_equal = np.bincount(index, values != values[firsts][index]) == 0
    means[are_equal] = values[firsts][are_equal]
    order = np.argsort(firsts)
    return means[order], took_part[firsts][order], firsts[order]


def _is_member(name: str, position: str, cell: str) -> bool:
    member = _MEMBERS.get(cell.strip().lower())
    if member is None:
        raise ValueError(
            f"{name}, {position}: must be 1 or true if the canary took part, else 0 or false, not {short_repr(cell)}"
        )
    return member


def checked_scores(
    name: str, values: NDArray[np.float64], kind: ScoreKind, position: Callable[[int], str] | None = None
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
    position
        How to name the position of one; by default its index.

    Returns
    -------
    The scores.

    Raises
    ------
    ValueError
        If one is no number, a cosine is out of its range, or there are too few, or all are equal.
    """
    where = position or (lambda i: f"{name}[{i}]")
    if kind is ScoreKind.COSINE:
        _check_finite(values, where)
        try:
            _check_each(values, lambda piece: np.abs(piece) <= 1.0, where, "a cosine must lie in [-1, 1]")
        except ValueError as error:
            raise ValueError(f"{error}; other scores are of kind any") from error
    else:
        # A certain guess has an infinite score, whose rank is known.
        _check_each(values, lambda piece: ~np.isnan(piece), where, "must be a number")
    if len(values) < 2:
        raise ValueError(f"{name}: must have at least 2 values, not {len(values)}")
    # Bounds go by the order of other scores, and need no variance.
    if kind is ScoreKind.COSINE and values.min() == values.max():
        raise ValueError(f"{name}: all {len(values)} values are equal; their variance must not be zero")
    return values


def floats(values: object, *, whole: bool = False) -> NDArray[Any]:
    """Return anything that numpy takes for an array, if it is one of floating-point numbers with one axis.

    Parameters
    ----------
    values
        The array.
    whole
        Whether integers will do.

    Raises
    ------
    ValueError
        If it is not.
    """
    vector = on_host(values)
    if not is_floating(vector.dtype) and not (whole and vector.dtype.kind in "iu"):
        raise ValueError(f"values must be floating-point, not {shorten(str(vector.dtype))}")
    if vector.ndim != 1:
        raise ValueError(f"the array must have one axis, not {vector.ndim}")
    return vector


def checked_release(given: NDArray[Any]) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return a released vector that keeps the rules, in float32 or float64.

    Raises
    ------
    ValueError
        If it has fewer than 2 coordinates, one is not finite, or all are zero.
    """
    single = given.dtype.itemsize <= np.dtype(np.float32).itemsize
    release: NDArray[Any] = _convert(given, np.float32 if single else np.float64)
    if len(release) < 2:
        raise ValueError(f"the release must have at least 2 coordinates, not {len(release)}")
    if not release.any():
        raise ValueError("the release must not be the zero vector")
    _check_finite(release, lambda i: f"release[{i}]")
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
    with open_file(path, (".npy",)) as file:
        return checked_release(_read_array(file, size_of(file), _LARGEST_DIM))


@contextlib.contextmanager
def open_file(path: Path, suffixes: tuple[str, ...] | None = None) -> Iterator[IO[bytes]]:
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
        with regular(path) as file:
            if size_of(file) == 0:
                raise ValueError("the file is empty")
            yield file
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: must be text in UTF-8") from error
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    except MemoryError as error:
        raise InputError(f"{path}: does not fit in memory") from error


def regular(path: Path) -> IO[bytes]:
    """Open a file that is no pipe and no device; an ``OSError`` says that it cannot be opened, or is another thing."""
    # Opening a pipe would wait for its writer, and a device may have no end.
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "must be a regular file", str(path))
    return path.open("rb")


def read_one_more(file: Readable, size: int) -> bytearray:
    """Read one byte more than asked for, to learn whether the file continues."""
    contents = bytearray()
    while piece := file.read(min(_BLOCK, size + 1 - len(contents))):
        contents += piece
    return contents


def content(file: Readable, largest: int) -> bytearray:
    """Read a whole file of at most ``most`` bytes; a ``ValueError`` says that it has more."""
    contents = read_one_more(file, largest)
    if len(contents) > largest:
        raise ValueError(f"must have at most {largest} bytes")
    return contents


def read_json(path: Path, largest: int = LARGEST_DOCUMENT, most_values: int = _MOST_VALUES) -> object:
    """Read a JSON file of limited size, without infinities and NaN.

    Raises
    ------
    InputError
        If the file cannot be read or breaks a rule.
    """
    with open_file(path) as file:
        return parsed_json(content(file, largest), most_values)


def parsed_json(document: bytes | bytearray, most_values: int = _MOST_VALUES) -> object:
    """Parse JSON of at most ``most`` values; a one-line ``ValueError`` says which rule is broken."""
    # Each value but the first follows one of these, and takes some 60 bytes of memory.
    if sum(map(document.count, (b",", b"[", b"{"))) > most_values:
        raise ValueError(f"must have at most {most_values} values")
    if sum(map(document.count, (b" ", b"\t", b"\n", b"\r"))) > max(_BLOCK, 3 * len(document) // 4):
        raise ValueError("must have other things than blanks in at least a quarter of it")
    text = document.decode("utf-8-sig")
    try:
        return json.loads(text, parse_constant=_refused_constant)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{position}: truncated or damaged, as it is not JSON ({error.msg})") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _refused_constant(name: str) -> NoReturn:
    raise ValueError(f"is not JSON, which has no number {name}")


def size_of(file: IO[bytes]) -> int:
    """Return the number of a file's bytes."""
    here = file.tell()
    size = file.seek(0, io.SEEK_END)
    file.seek(here)
    return size


@contextlib.contextmanager
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
        raise ValueError(f"is not a readable {form} file ({shorten(reason, 200)})") from error


def _read_npy(file: IO[bytes], *, whole: bool) -> dict[str, _Column]:
    values = _convert(_read_array(file, size_of(file), LARGEST_COUNT, whole=whole), np.float64)
    return {"observed": _Column(values, lambda i: f"observed[{i}]")}


def _read_npz(file: IO[bytes], *, whole: bool) -> dict[str, _Column]:
    with parsing(".npz"):
        archive = zipfile.ZipFile(file)
    members = archive.infolist()
    names = [member.filename.removesuffix(".npy") for member in members]
    if not any(set(pair) == set(names) for pair in PAIRS):
        _check_names("array", names)
    return {name: _read_member(archive, member, name, whole=whole) for name, member in zip(names, members, strict=True)}


def array_names(path: Path) -> set[str]:
    """Return the names of an archive's arrays; an ``InputError`` says that it is none."""
    with open_file(path, (".npz",)) as file, parsing(".npz"):
        return {name.removesuffix(".npy") for name in zipfile.ZipFile(file).namelist()}


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, *, whole: bool) -> _Column:
    # numpy writes these two only, and of the others' decompressors zipfile does not bound the output.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name}: must be stored or deflated, as numpy.savez and numpy.savez_compressed do")
    with parsing(".npz"):
        file = archive.open(member)
    with file:
        try:
            values = _convert(_read_array(file, member.file_size, LARGEST_COUNT, whole=whole), np.float64)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return _Column(values, lambda i: f"{name}[{i}]")


def array_header(
    file: IO[bytes], size: int, largest_count: int, *, whole: bool = False
) -> tuple[int, np.dtype[Any], int]:
    """Read the header of a one-dimensional .npy array of floats, or of integers too, of exactly ``size`` bytes.

    Return the number of its values, their type, and where the first one is. A ``ValueError`` says which rule is broken.
    """
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
    if dtype.kind not in ("fiu" if whole else "f"):
        raise ValueError(f"values must be {'numbers' if whole else 'floating-point'}, not {shorten(str(dtype))}")
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
    return count, dtype, start


def _read_array(file: IO[bytes], size: int, largest_count: int, *, whole: bool = False) -> NDArray[Any]:
    """Read a one-dimensional array of numbers in the .npy format that takes exactly ``size`` bytes."""
    count, dtype, _ = array_header(file, size, largest_count, whole=whole)
    # Zeros are not written to these, so that a file's holes take no memory here either.
    values = np.zeros(count, dtype)
    piece = np.empty(min(count, _PIECE), dtype)
    with parsing(".npy"):
        for first in range(0, count, _PIECE):
            piece = piece[: count - first]
            if file.readinto(piece.view(np.uint8)) != piece.nbytes:  # type: ignore[attr-defined]
                raise ValueError("truncated")
            if piece.any():
                values[first : first + _PIECE] = piece
        # Reading past the last byte makes zipfile compare the checksum.
        file.read(1)
        return values


def _read_csv(file: IO[bytes]) -> dict[str, _Column]:
    table: _Table | None = None
    for block in _blocks(file):
        if table is None:
            first = next(_rows(io.StringIO(block.decode(), newline=""), 0), [])
            names = [cell.strip() for cell in first]
            has_header = "observed" in names
            if has_header:
                _check_names("column", names)
            elif len(names) > 1 and not any(map(is_number, names)):
                needed = "its columns must be observed and, optionally, unobserved"
                raise ValueError(f"line 1: {needed}, not {shorten(', '.join(names))}; --score names another one")
            table = _Table(names if has_header else ["observed"], first_line=1 + has_header)
            if has_header:
                text = io.StringIO(block.decode(), newline="")
                text.readline()
                block = text.read().encode()
        table.add(block)
    return (table or _Table(["observed"], first_line=1)).columns()


def is_number(cell: str) -> bool:
    """Tell whether a cell has a number."""
    with contextlib.suppress(ValueError):
        float(cell)
        return True
    return False


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the file in blocks of whole lines, without a byte order mark."""
    rest = file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    while piece := file.read(_BLOCK):
        rest += piece
        # The line feed of a carriage return that ends the piece may follow.
        end = max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, -1)) + 1 or len(rest)
        yield rest[:end]
        rest = rest[end:]
    if rest:
        yield rest


class _Table:
    """Columns of numbers, to which lines are added block by block."""

    def __init__(self, names: list[str], first_line: int) -> None:
        self._names, self._first_line = names, first_line
        self._columns = [array("d") for _ in names]
        self._count = 0

    def columns(self) -> dict[str, _Column]:
        """Return the columns."""
        return {
            name: _Column(np.frombuffer(column), lambda i, name=name: f"{name}, line {self._first_line + i}")  # type: ignore[misc]
            for name, column in zip(self._names, self._columns, strict=True)
        }

    def add(self, block: bytes) -> None:
        """Add a block of whole lines; the last may lack its end."""
        cells = _cells(block, len(self._names))
        numbers = None if cells is None else [self._numbers(i, column) for i, column in enumerate(cells)]
        if cells is None or numbers is None or None in numbers:
            self._add_one_by_one(block)
        else:
            self._count += len(cells[0])
            for column, more in zip(self._columns, numbers, strict=True):
                column.extend(more or ())
        # Empty lines may follow.
        _check_length(max(*map(len, self._columns), self._count // 2))

    def _numbers(self, i: int, cells: list[bytes]) -> "array[float] | None":
        """Return a column's numbers in a block, none if it ends before; None if there are other things in it."""
        if len(self._columns[i]) == self._count:
            with contextlib.suppress(ValueError):
                return array("d", map(float, cells))
        return None if any(map(bytes.strip, cells)) else array("d")

    def _add_one_by_one(self, block: bytes) -> None:
        """Add any block that keeps the rules, and name the line of one that does not."""
        text = io.StringIO(block.decode(), newline="")
        for row in _rows(text, self._first_line + self._count - 1):
            line = self._first_line + self._count
            if len(row) > len(self._names):
                plural = "s" if len(self._names) > 1 else ""
                raise ValueError(f"line {line}: must have at most {len(self._names)} cell{plural}, not {len(row)}")
            for name, column, cell in zip(self._names, self._columns, row, strict=False):
                # An empty cell ends its column: what stands below it would be shorter than its line number says.
                if not cell.strip():
                    continue
                if len(column) != self._count:
                    raise ValueError(f"{name}, line {line}: no number may stand below an empty cell")
                column.append(parsed_number(name, f"line {line}", cell))
            self._count += 1


def _cells(block: bytes, columns: int) -> list[list[bytes]] | None:
    """Split a block of lines into the cells of each column; None where it is not as plain as most files are."""
    # Python takes 1_000 for a number.
    if b'"' in block or b"_" in block:
        return None
    block = block.replace(b"\r\n", b"\n").removesuffix(b"\n")
    if b"\r" in block:
        return None
    characters = np.frombuffer(block + b"\n", np.uint8)
    ends = np.flatnonzero(characters == ord("\n"))
    commas = np.flatnonzero(characters == ord(","))
    # The commas before each line's end.
    if np.diff(ends, prepend=-1).max() > _LONGEST_LINE or not np.array_equal(
        np.searchsorted(commas, ends), (columns - 1) * np.arange(1, len(ends) + 1)
    ):
        return None
    cells = block.replace(b"\n", b",").split(b",")
    return [cells[i::columns] for i in range(columns)]


def _rows(text: IO[str], before: int) -> Iterator[list[str]]:
    """Split lines into cells, one row per line; ``before`` counts the lines above them."""
    reader = csv.reader(_lines(text, before), strict=True)
    number = before
    try:
        for row in reader:
            number += 1
            if reader.line_num != number - before:
                raise ValueError(f"line {number}: a quoted cell must end on its line")
            yield row
    except csv.Error as error:
        raise ValueError(f"line {number + 1}: is not comma-separated text ({error})") from error


def _lines(text: IO[str], number: int) -> Iterator[str]:
    while line := text.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise ValueError(f"line {number}: {_TOO_LONG}")
        yield line


def parsed_number(name: str, position: str, cell: str) -> float:
    """Return the number in a cell of a column; a ``ValueError`` names its place."""
    try:
        # Python also takes 1_000 and digits of other scripts for numbers; a data file that has them is damaged.
        if not cell.isascii() or "_" in cell:
            raise ValueError
        return float(cell)
    except ValueError:
        hint = " or a header that names the column observed" if position == "line 1" else ""
        raise ValueError(f"{name}, {position}: must be a number{hint}, not {short_repr(cell)}") from None


def _check_names(kind: str, names: list[str]) -> None:
    for name in names:
        if name not in OWN_NAMES:
            raise ValueError(f"{kind}s must be named observed and, optionally, unobserved, not {short_repr(name)}")
    if "observed" not in names:
        raise ValueError(f"must have an {kind} named observed" if kind == "array" else f"must have a {kind} observed")
    if len(set(names)) < len(names):
        raise ValueError(f"every {kind} must have a name of its own")


def _check_finite(values: NDArray[Any], position: Callable[[int], str]) -> None:
    _check_each(values, np.isfinite, position, "must be finite")


def _check_each(
    values: NDArray[Any], holds: Callable[[NDArray[Any]], NDArray[np.bool]], position: Callable[[int], str], rule: str
) -> None:
    for first in range(0, len(values), _PIECE):
        wrong = np.flatnonzero(~holds(values[first : first + _PIECE]))
        if len(wrong):
            i = first + int(wrong[0])
            raise ValueError(f"{position(i)}: {rule}, not {float(values[i])!r}")


def _convert(values: NDArray[Any], dtype: type[np.floating]) -> NDArray[Any]:
    # A long double beyond the range becomes infinite, which a rule refuses.
    with np.errstate(over="ignore"):
        return values.astype(dtype, copy=False)
