"""The file of a run: one SQLite database, which gets each result in a transaction of its own as soon as it is known.

Table ``meta`` has the origin of the results, and whether the run is finished. Table ``results`` holds the results as
JSON, each with a checksum, as SQLite would not notice a digit changed in it. The file is locked as long as it is open,
and nothing is written to it before all of it was found sound. A process may have one open only: closing another one of
the same path, even one that was refused, gives up the lock of the first (POSIX).
"""

import sqlite3
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from canaryproof.kernels.refusals import shorten
from canaryproof.verify.audit.files.errors import InputError, OutputError
from canaryproof.verify.audit.files.reading import parsed_json
from canaryproof.verify.papers.check.results import Result

_APPLICATION, _FORMAT = b"cnry", 2
_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE results (position INTEGER PRIMARY KEY, suite TEXT, id TEXT, result TEXT, checksum INTEGER)",
)
_STATE, _RUNNING, _FINISHED = "state", "running", "finished"
_NOTES = (_STATE, "command")  # the keys of meta on which no result depends

_REASONS = {
    "SQLITE_BUSY": "another run is writing to it",
    "SQLITE_FULL": "the disk is full; make room and go on with --resume",
    "SQLITE_IOERR": "cannot be read or written; once the disk serves again, go on with --resume",
    "SQLITE_IOERR_SHORT_READ": "is damaged",
    "SQLITE_READONLY": "cannot be written",
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_NOTADB": "is damaged",
}

_UNWRITABLE = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_READONLY")


class RunFile:
    """The results of a run, kept in a file that no other run can open meanwhile.

    Without a path they are kept in memory. A run goes on with ``resume``, and only where all of ``origin`` is as it
    was; it is replaced with ``overwrite`` alone. An InputError says that the file is damaged, foreign, of another run
    or in use, or cannot be written. It says too that the file holds a run that is neither to be resumed nor replaced.
    The file is then left as it was.
    """

    def __init__(
        self,
        path: Path | None,
        origin: Mapping[str, str],
        checks: Sequence[tuple[str, str]],
        *,
        command: str = "",
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self._path = path
        self._checks = checks
        if path is not None:
            _check_header(path)
        with _named_errors(self._path):
            self._database = sqlite3.connect(path or ":memory:", timeout=0.0, isolation_level=None)
        try:
            with _named_errors(self._path):
                self._begin({**origin, "command": command}, resume=resume, overwrite=overwrite)
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def results(self) -> dict[int, str]:
        """Return the JSON of the results so far, by the positions of their checks."""
        with _named_errors(self._path):
            return dict(self._all("SELECT position, result FROM results ORDER BY position"))

    def check(self) -> None:
        """Read the results so far; an ``InputError`` says that one is not that of its check."""
        for position, row in self.results().items():
            result = result_of(self._path, row)
            if (result.suite, result.id) != self._checks[position]:
                raise _error(self._path, f"is damaged: a result of {shorten(result.id)} stands for another")

    def add(self, position: int, result: str) -> None:
        """Commit the JSON of a result; once this returns, no crash loses it."""
        row = (position, *self._checks[position], result)
        # On a file that was removed SQLite goes on writing, for nobody.
        if self._path is not None and not self._path.exists():
            raise _error(self._path, "was removed during the run")
        with _named_errors(self._path):
            self._database.execute("INSERT INTO results VALUES (?, ?, ?, ?, ?)", (*row, _checksum(*row)))

    def finish(self) -> None:
        """Say that nothing is left to do, if so, and that the next run may replace this one."""
        if len(self.results()) == len(self._checks):
            with _named_errors(self._path):
                self._database.execute("REPLACE INTO meta VALUES (?, ?)", (_STATE, _FINISHED))

    def _begin(self, meta: dict[str, str], *, resume: bool, overwrite: bool) -> None:
        # In this mode the lock outlives the transaction.
        for statement in ("PRAGMA locking_mode = EXCLUSIVE", "PRAGMA synchronous = FULL", "BEGIN EXCLUSIVE"):
            self._database.execute(statement)
        if self._all("PRAGMA application_id") == [(0,)]:  # an empty file
            number = int.from_bytes(_APPLICATION, "big")
            for statement in (f"PRAGMA application_id = {number}", f"PRAGMA user_version = {_FORMAT}", *_TABLES):
                self._database.execute(statement)
        elif _is_damaged(self._database):
            raise _error(self._path, "is damaged")
        old = dict(self._all("SELECT key, value FROM meta"))
        (count,) = self._all("SELECT count(*) FROM results")[0]
        if old and resume:
            self._check_origin(old, meta)
        elif count and not overwrite:
            finished = old[_STATE] == _FINISHED
            kind, resumed = ("a finished", "write its pages again") if finished else ("an unfinished", "go on")
            raise _error(
                self._path,
                f"holds {kind} run with {count} results: {resumed} with --resume, replace it with --overwrite, or "
                "choose another --out",
            )
        else:
            self._database.execute("DELETE FROM results")
        self._database.execute("DELETE FROM meta")
        rows = {**meta, _STATE: _RUNNING}.items()
        self._database.executemany("INSERT INTO meta VALUES (?, ?)", rows)
        self._database.execute("COMMIT")

    def _check_origin(self, old: dict[str, str], new: dict[str, str]) -> None:
        for key in sorted((old.keys() | new.keys()) - set(_NOTES)):
            if old.get(key) != new.get(key):
                raise _error(
                    self._path,
                    f"was begun with {key} {old.get(key)}, not {new.get(key)}; a run can only go on as it was begun",
                )
        rows = self._all("SELECT position, suite, id FROM results")
        if not set(rows) <= {(i, *check) for i, check in enumerate(self._checks)}:
            raise _error(self._path, "has results of other checks")

    def _all(self, statement: str) -> list[tuple[Any, ...]]:
        return self._database.execute(statement).fetchall()


def read_unfinished(path: Path) -> tuple[dict[str, str], list[str]]:
    """Read what an unfinished run has found so far.

    Returns the origin with the notes, and the JSON of each result in the order of the checks. An InputError says that
    the file is damaged, foreign or in use.
    """
    _check_header(path)
    # Opening it mends what a crash left.
    with _named_errors(path), closing(sqlite3.connect(path, timeout=0.0, isolation_level=None)) as database:
        if _is_damaged(database):
            raise _error(path, "is damaged")
        rows = database.execute("SELECT result FROM results ORDER BY position").fetchall()
        meta = dict(database.execute("SELECT key, value FROM meta").fetchall())
    return {key: value for key, value in meta.items() if key != _STATE}, [row for (row,) in rows]


def result_of(path: Path | None, row: object) -> Result:
    """Read the JSON of a result; an InputError names the file if it is none, as a checksum is soon forged."""
    try:
        if not isinstance(row, str):
            raise ValueError("is no text")
        return Result.from_json(parsed_json(row.encode()))
    except ValueError as error:
        raise _error(path, f"is damaged: a result: {error}") from None


def _is_damaged(database: sqlite3.Connection) -> bool:
    def rows(statement: str) -> list[tuple[Any, ...]]:
        return database.execute(statement).fetchall()

    # An index has no statement of its own.
    tables = rows("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return (
        rows("PRAGMA integrity_check") != [("ok",)]
        or tables != [(table,) for table in _TABLES]
        or rows(f"SELECT value FROM meta WHERE key = '{_STATE}'") not in ([(_RUNNING,)], [(_FINISHED,)])
        or any(_checksum(*row) != checksum for *row, checksum in rows("SELECT * FROM results"))
    )


def _error(path: Path | None, reason: str) -> InputError:
    return InputError(f"{path or 'results in memory'}: {reason}")


@contextmanager
def _named_errors(path: Path | None) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # Names go on in detail, such as SQLITE_IOERR_WRITE; a text that is no UTF-8 gets none.
        name = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")
        reason = _REASONS.get(name) or _REASONS.get("_".join(name.split("_")[:2]), "cannot be used")
        kind = OutputError if name.startswith(_UNWRITABLE) else InputError
        raise kind(f"{path or 'results in memory'}: {reason} ({error})") from error


def _checksum(*row: object) -> int:
    return zlib.crc32(repr(row).encode())


def _check_header(path: Path) -> None:
    """Refuse a foreign file before SQLite, which mends what a crash left, may touch it."""
    try:
        # Opening a pipe would wait for its writer.
        # And SQLite would write through a link, to whatever it points to.
        if not stat.S_ISREG(path.lstat().st_mode):
            raise InputError(f"{path}: must be a regular file")
        with path.open("rb") as file:
            header = file.read(100)
    except FileNotFoundError:
        # SQLite would take a journal of this name for one of its own after a crash, and remove it.
        for suffix in ("-journal", "-wal"):
            if path.with_name(path.name + suffix).exists():
                raise InputError(f"{path}{suffix}: belongs to a file that is not there; move it away") from None
        return
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    # A run that is killed before its first commit leaves an empty file.
    if header and (not header.startswith(b"SQLite format 3\0") or header[68:72] != _APPLICATION):
        raise InputError(f"{path}: is not a run of canaryproof")
    if header and int.from_bytes(header[60:64], "big") != _FORMAT:
        raise InputError(f"{path}: is of another version of canaryproof, whose format this one does not read")
