"""TensorFlow Federated's releases in SQLite.

A database has a table ``client_metadata`` (client_id, split_name, num_examples) and a table ``examples`` (split_name,
client_id, serialized_example_proto) with an index of split_name and client_id. Each row of the latter is one example as
a ``tf.train.Example`` (``sql_client_data.py`` and its test in tensorflow_federated's ``simulation/datasets``; fedjax's
``core/sqlite_federated_data.py`` has the whole schema). A client's examples are in the order of their rowid, as fedjax
reads them.

Nothing of the database's own schema is run: no view, no virtual table, no generated column.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
from numpy.typing import NDArray

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import open_file
from canaryproof.verify.papers.training.data import files
from canaryproof.verify.papers.training.data.federation import PerProcess

_MAGIC = b"SQLite format 3\0"
_COLUMNS = {
    "client_metadata": ("client_id", "split_name", "num_examples"),
    "examples": ("split_name", "client_id", "serialized_example_proto"),
}
# A row of the releases has some thousand bytes.
_LONGEST_ROW = 2**18
_MOST_CLIENTS = 10**7
# In bytes; a damaged file could have one row many times.
_SHORTEST_ROW = 8
_MOST_EXAMPLES = 2**31 - 1
_CLIENTS = "SELECT client_id, num_examples FROM client_metadata WHERE split_name = ? LIMIT ?"
_EXAMPLES = (
    "SELECT serialized_example_proto FROM examples WHERE split_name = ? AND client_id = ? ORDER BY rowid LIMIT ?"
)
_PIXELS = 28 * 28


@dataclass(frozen=True)
class SqliteSplit:
    """One split of a database; the clients' names are in the order of their code points, as TFF sorts them."""

    path: Path
    split: str
    ids: tuple[str, ...]
    counts: NDArray[np.int32]  # how many examples each has, at least one, shape (clients,)
    _database: PerProcess[sqlite3.Connection]

    @property
    def digest(self) -> str:
        """A text that only equal databases and splits have; all of the file is read for it."""
        return f"{files.digest(self.path)} {self.split}"

    def images(self, client: int, most: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return pixels, shape (examples, 28, 28), and labels, shape (examples,), of a client's first examples."""
        pixels, labels = [], []
        for example in self._examples(client, most):
            pixels.append(np.array(self._values(client, example, "pixels", "float_list", _PIXELS), np.float32))
            labels += self._values(client, example, "label", "int64_list", 1)
        return np.stack(pixels).reshape(-1, 28, 28), np.array(labels, np.int64)

    def sentences(self, client: int, most: int) -> Iterator[bytes]:
        """Yield the tokens of a client's first examples."""
        for example in self._examples(client, most):
            yield self._values(client, example, "tokens", "bytes_list", 1)[0]

    def _examples(self, client: int, most: int) -> Iterator[Any]:
        count, name = int(self.counts[client]), self.ids[client]
        read = 0
        with _reading(self.path):
            # One more than there should be tells whether there are more. One by one: rows of a damaged file may share
            # their bytes.
            for (row,) in self._database.get().execute(_EXAMPLES, (self.split, name, min(most, count + 1))):
                try:
                    example = _EXAMPLE.FromString(row)
                except (message.DecodeError, TypeError) as error:
                    raise self._refused(client, "serialized_example_proto must be a tf.train.Example") from error
                read += 1
                yield example
        if read != min(most, count):
            there = "more" if read > count else read
            raise self._refused(client, f"num_examples must be the number of its examples: it is {count}, not {there}")

    def _values(self, client: int, example: Any, field: str, kind: str, count: int) -> Any:
        features = example.features.feature
        # A map makes what it is asked for.
        values = getattr(features[field], kind).value if field in features else ()
        if len(values) != count:
            raise self._refused(client, f"{field} must be a {kind} of {count} in every example, not of {len(values)}")
        return values

    def _refused(self, client: int, rule: str) -> InputError:
        return InputError(f"{self.path}: {self.split}: client {self.ids[client][:60]!r}: {rule}")


def split(path: Path, name: str) -> SqliteSplit:
    """Open a split of a database."""
    database = PerProcess(_opened, path)
    with _reading(path):
        opened_database = database.get()
        most = min(_MOST_CLIENTS, path.stat().st_size // _SHORTEST_ROW)
        rows = opened_database.execute(_CLIENTS, (name, most + 1)).fetchall()
    if not 1 <= len(rows) <= most:
        there = "none" if not rows else "more"
        raise InputError(f"{path}: client_metadata must have 1 to {most} clients of {name}, not {there}")
    for client, count in rows:
        if not isinstance(client, str):
            raise InputError(f"{path}: client_metadata: client_id must be text, not {str(client)[:60]!r}")
        if not isinstance(count, int) or not 1 <= count <= _MOST_EXAMPLES:
            raise InputError(
                f"{path}: client_metadata: client {client[:60]!r}: num_examples must be a whole number from 1 to "
                f"{_MOST_EXAMPLES}, not {str(count)[:60]}"
            )
    rows.sort()
    ids = tuple(client for client, _ in rows)
    for i in range(1, len(ids)):
        if ids[i] == ids[i - 1]:
            raise InputError(f"{path}: client_metadata: client {ids[i][:60]!r}: must be there once in {name}")
    return SqliteSplit(path, name, ids, np.array([count for _, count in rows], np.int32), database)


def _opened(path: Path) -> sqlite3.Connection:
    with open_file(path) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("is not an SQLite database")
    with _reading(path):
        # Immutable: nothing is locked, and no journal next to it is rolled back.
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        database = sqlite3.connect(uri, uri=True, check_same_thread=False)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_ROW)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cell_size_check = ON")
        for table, columns in _COLUMNS.items():
            _check_table(path, database, table, columns)
        plan = " ".join(str(row[-1]) for row in database.execute(f"EXPLAIN QUERY PLAN {_EXAMPLES}", ("", "", 1)))
        if "USING INDEX" not in plan or "B-TREE" in plan:
            raise InputError(f"{path}: table examples must have an index of split_name and client_id, as TFF's have")
    return database


def _check_table(path: Path, database: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> None:
    tables = database.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    if len(tables) != 1 or tables[0][0] != "table" or not str(tables[0][1]).upper().startswith("CREATE TABLE"):
        raise InputError(f"{path}: must have a table {table}, which is no view and not virtual")
    # The last field tells what is generated or hidden.
    there = {row[1] for row in database.execute(f"PRAGMA table_xinfo({table})") if row[6] == 0}
    for column in columns:
        if column not in there:
            raise InputError(f"{path}: table {table} must have a column {column}, which is not generated")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name the database in whatever SQLite says of it."""
    try:
        yield
    # A text that is not UTF-8 comes as an OperationalError or a UnicodeDecodeError.
    except (sqlite3.Error, UnicodeError) as error:
        raise InputError(f"{path}: is damaged ({files.first_line(error)})") from error
    except MemoryError as error:
        raise InputError(f"{path}: does not fit in memory") from error


def _example() -> Any:
    """Make the class of ``tf.train.Example`` (tensorflow's ``core/example/example.proto`` and ``feature.proto``)."""
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="canaryproof/example.proto", package="tf_train", syntax="proto3")

    def add(name: str, *fields: tuple[str, int, int, bool, str]) -> Any:
        made = file.message_type.add(name=name)
        for field, number, of, repeated, of_message in fields:
            label = kind.LABEL_REPEATED if repeated else kind.LABEL_OPTIONAL
            made.field.add(name=field, number=number, type=of, label=label, type_name=of_message or None)
        return made

    add("BytesList", ("value", 1, kind.TYPE_BYTES, True, ""))
    add("FloatList", ("value", 1, kind.TYPE_FLOAT, True, ""))
    add("Int64List", ("value", 1, kind.TYPE_INT64, True, ""))
    feature = add(
        "Feature",
        ("bytes_list", 1, kind.TYPE_MESSAGE, False, ".tf_train.BytesList"),
        ("float_list", 2, kind.TYPE_MESSAGE, False, ".tf_train.FloatList"),
        ("int64_list", 3, kind.TYPE_MESSAGE, False, ".tf_train.Int64List"),
    )
    feature.oneof_decl.add(name="kind")
    for field in feature.field:
        field.oneof_index = 0
    features = add("Features", ("feature", 1, kind.TYPE_MESSAGE, True, ".tf_train.Features.FeatureEntry"))
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    entry.field.add(
        name="value", number=2, type=kind.TYPE_MESSAGE, label=kind.LABEL_OPTIONAL, type_name=".tf_train.Feature"
    )
    add("Example", ("features", 1, kind.TYPE_MESSAGE, False, ".tf_train.Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tf_train.Example"))


_EXAMPLE = _example()
