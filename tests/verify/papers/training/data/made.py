"""Small releases of federated EMNIST and StackOverflow in exactly the formats of TensorFlow Federated.

Examples of clients are given by name: images and labels, or sentences. Serialised examples are spelt byte by byte, so
that what reads them is not what made them.
"""

import sqlite3
import string
import struct

import h5py
import numpy as np

METADATA = "CREATE TABLE client_metadata (client_id TEXT NOT NULL, split_name TEXT NOT NULL, num_examples INTEGER)"
EXAMPLES = "CREATE TABLE examples (split_name TEXT NOT NULL, client_id TEXT NOT NULL, serialized_example_proto BLOB)"
# As in fedjax's core/sqlite_federated_data.py.
INDICES = (
    "CREATE INDEX idx_examples_client_id ON examples (client_id)",
    "CREATE INDEX idx_examples_client_id_split ON examples (split_name, client_id)",
    "CREATE INDEX idx_metadata_client_id ON client_metadata (client_id)",
)
WORDS = ("the", "a", "is", "to", "if", "you", ".", ",", "edit", "sql", "in", "on")


def images(counts, classes=62, seed=0):
    """Clients with so many images of 256 shades each, on the white background of TFF's, and labels that they show."""
    rng = np.random.default_rng(seed)
    clients = {}
    for i, count in enumerate(counts):
        labels = rng.integers(0, classes, count).astype(np.int32)
        pixels = np.ones((count, 28, 28), np.float32)
        for image, label in zip(pixels, labels, strict=True):
            image[label // 8 * 3 : label // 8 * 3 + 3, label % 8 * 3 : label % 8 * 3 + 3] = 0.0
        pixels[:, 26:, :] = rng.integers(0, 256, (count, 2, 28)) / np.float32(255)
        clients[f"f{i:04}_{i % 50:02}"] = (pixels, labels)
    return clients


def sentences(counts, words=WORDS, seed=0):
    """Clients with so many sentences of up to 30 words, one in five of which is in no vocabulary."""
    rng = np.random.default_rng(seed)
    known = np.array(words)
    clients = {}
    for i, count in enumerate(counts):
        drawn = [known[rng.integers(0, len(known), size)] for size in rng.integers(1, 31, count)]
        clients[f"{i * 7919 % 100003:08}"] = [
            " ".join("rare" + string.ascii_lowercase[i % 26] if rng.random() < 0.2 else word for word in sentence)
            for sentence in drawn
        ]
    return clients


def fields(examples):
    """A client's examples as its fields: name, values and HDF5's type."""
    if isinstance(examples, tuple):
        return {"pixels": (examples[0], np.float32), "label": (examples[1], np.int32)}
    count = len(examples)
    texts = {
        "tokens": examples,
        "title": ["a title"] * count,
        "tags": ["sql|median"] * count,
        "type": ["answer"] * count,
        "creation_date": ["2010-01-08 09:34:05 UTC"] * count,
    }
    made = {name: (values, h5py.string_dtype()) for name, values in texts.items()}
    return made | {"score": (np.arange(count, dtype=np.int64), np.int64)}


def hdf5(path, clients, **options):
    """Write clients to one of TFF's HDF5 files."""
    with h5py.File(path, "w") as file:
        group = file.create_group("examples")
        for client, examples in clients.items():
            of = group.create_group(client)
            for name, (values, kind) in fields(examples).items():
                of.create_dataset(name, data=values, dtype=kind, **options)
    return path


def sqlite(path, splits):
    """Write clients of each split to one of TFF's SQLite files; clients are mixed, as nothing says they are not."""
    rows, metadata = [], []
    for split, clients in splits.items():
        for client, examples in clients.items():
            protos = serialised(examples)
            metadata.append((client, split, len(protos)))
            rows += [(i, split, client, proto) for i, proto in enumerate(protos)]
    rows.sort(key=lambda row: row[0])
    with sqlite3.connect(path) as database:
        database.execute(METADATA)
        database.execute(EXAMPLES)
        database.executemany("INSERT INTO client_metadata VALUES (?, ?, ?)", metadata[::-1])
        database.executemany("INSERT INTO examples VALUES (?, ?, ?)", (row[1:] for row in rows))
        for index in INDICES:
            database.execute(index)
    database.close()
    return path


def serialised(examples):
    """A client's examples as ``tf.train.Example`` messages."""
    found = {name: values for name, (values, _) in fields(examples).items()}
    count = len(next(iter(found.values())))
    return [example({name: values[i] for name, values in found.items()}) for i in range(count)]


def example(values):
    """A ``tf.train.Example``: text as bytes, floats as packed floats, whole numbers as packed integers."""
    return message(1, b"".join(message(1, message(1, name.encode()) + message(2, feature(values[name])))
                               for name in sorted(values)))  # fmt: skip


def feature(value):
    """A ``tf.train.Feature`` of a text, an array of floats or a whole number."""
    if isinstance(value, str | bytes):
        return message(1, message(1, value.encode() if isinstance(value, str) else value))
    numbers = np.asarray(value)
    if numbers.dtype.kind == "f":
        return message(2, message(1, struct.pack(f"<{numbers.size}f", *numbers.ravel().tolist())))
    return message(3, message(1, b"".join(varint(number % 2**64) for number in numbers.ravel().tolist())))


def message(number, content):
    """A field of bytes in protobuf's wire format."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number):
    """A whole number in protobuf's wire format."""
    digits = []
    while number >= 128:
        digits.append(number % 128 | 128)
        number //= 128
    return bytes([*digits, number])


def emnist(folder, release, train, test, digits=False):
    """Write federated EMNIST in its ``hdf5`` or ``sqlite`` release."""
    folder.mkdir(parents=True, exist_ok=True)
    if release == "hdf5":
        prefix = "fed_emnist_digitsonly" if digits else "fed_emnist"
        hdf5(folder / f"{prefix}_train.h5", train)
        hdf5(folder / f"{prefix}_test.h5", test)
    else:
        # Both are in one file, and here the digits are others.
        few = images([1], 10, seed=99)
        splits = {"all_train": train, "all_test": test, "digits_only_train": few, "digits_only_test": few}
        sqlite(folder / "emnist_all.sqlite", splits)
    return folder


def stackoverflow(folder, release, train, test, words=WORDS):
    """Write StackOverflow in its ``hdf5`` or ``sqlite`` release, with the file of word counts."""
    folder.mkdir(parents=True, exist_ok=True)
    held_out = sentences([3], seed=98)
    if release == "hdf5":
        for part, clients in (("train", train), ("held_out", held_out), ("test", test)):
            hdf5(folder / f"stackoverflow_{part}.h5", clients)
    else:
        sqlite(folder / "stackoverflow.sqlite", {"train": train, "heldout": held_out, "test": test})
    listed = [*words, "seldom", "hapax"]
    counts = "".join(f"{word} {len(listed) - i}\n" for i, word in enumerate(listed))
    (folder / "stackoverflow.word_count").write_text(counts)
    return folder
