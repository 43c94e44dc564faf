import shutil
import sqlite3
import struct
from contextlib import suppress

import made
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training.data import tff, tff_sqlite

WRITERS, TEST_WRITERS = made.images([2, 1]), made.images([1, 1], seed=1)
USERS, TEST_USERS = made.sentences([3, 1]), made.sentences([2, 1], seed=1)
FIRST = "client 'f0000_00': "
PIXELS = {"pixels": np.ones(784, np.float32), "label": np.int64(5)}


@pytest.fixture
def emnist(tmp_path):
    return made.emnist(tmp_path, "sqlite", WRITERS, TEST_WRITERS) / "emnist_all.sqlite"


def change(path, *commands, values=()):
    with sqlite3.connect(path) as database:
        for command in commands:
            database.execute(command, values)
    database.close()


def everything(folder):
    federation = tff.load(folder, 6, 4)
    return federation, federation.cohort(range(federation.clients), 3)


def put(path, proto):
    change(path, "UPDATE examples SET serialized_example_proto = ? WHERE rowid = 1", values=(proto,))


def test_the_first_row_is_of_the_first_client(emnist):
    put(emnist, made.example(PIXELS))
    _, (inputs, labels, _) = everything(emnist.parent)
    assert labels[0, 0] == 5
    assert (inputs[0, 0] == 1.0).all()


def test_unpacked_numbers_are_read_as_packed_ones(emnist):
    floats = made.message(2, b"".join(b"\x0d" + struct.pack("<f", 0.25) for _ in range(784)))
    whole = made.message(3, b"\x08" + made.varint(7))
    entries = [made.message(1, b"pixels") + made.message(2, floats), made.message(1, b"label") + made.message(2, whole)]
    put(emnist, made.message(1, b"".join(made.message(1, entry) for entry in entries)))
    _, (inputs, labels, _) = everything(emnist.parent)
    assert labels[0, 0] == 7
    assert (inputs[0, 0] == 0.25).all()


@pytest.mark.parametrize(
    ("proto", "said"),
    [
        (b"\xff\xff", "all_train: " + FIRST + "serialized_example_proto must be a tf.train.Example"),
        ("text", "all_train: " + FIRST + "serialized_example_proto must be a tf.train.Example"),
        (b"", "all_train: " + FIRST + "pixels must be a float_list of 784 in every example, not of 0"),
        (
            made.example({**PIXELS, "pixels": np.ones(783, np.float32)}),
            "all_train: " + FIRST + "pixels must be a float_list of 784 in every example, not of 783",
        ),
        (
            made.example({**PIXELS, "pixels": np.ones(784, np.int64)}),
            "all_train: " + FIRST + "pixels must be a float_list of 784 in every example, not of 0",
        ),
        (
            made.example({"pixels": PIXELS["pixels"]}),
            "all_train: " + FIRST + "label must be a int64_list of 1 in every example, not of 0",
        ),
        (
            made.example({**PIXELS, "label": np.array([1, 2])}),
            "all_train: " + FIRST + "label must be a int64_list of 1 in every example, not of 2",
        ),
        (made.example({**PIXELS, "label": np.int64(62)}), FIRST + "label must be from 0 to 61"),
        (made.example({**PIXELS, "label": np.int64(-1)}), FIRST + "label must be from 0 to 61"),
        (made.example({**PIXELS, "pixels": np.full(784, 1.5, np.float32)}), FIRST + "pixels must be between 0 and 1"),
        (
            made.example({**PIXELS, "pixels": np.full(784, np.nan, np.float32)}),
            FIRST + "pixels must be between 0 and 1",
        ),
        (bytes(2**20), "is damaged (string or blob too big)"),
    ],
)
def test_other_examples_are_refused(emnist, refusal, proto, said):
    put(emnist, proto)
    assert refusal(everything, emnist.parent) == f"emnist_all.sqlite: {said}"


def test_a_sentence_must_be_there(tmp_path, refusal):
    path = made.stackoverflow(tmp_path, "sqlite", USERS, TEST_USERS) / "stackoverflow.sqlite"
    put(path, made.example({"title": "no tokens"}))
    assert refusal(everything, tmp_path) == (
        "stackoverflow.sqlite: train: client '00000000': tokens must be a bytes_list of 1 in every example, not of 0"
    )


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        (["DROP TABLE examples"], "must have a table examples, which is no view and not virtual"),
        (["DROP TABLE client_metadata"], "must have a table client_metadata, which is no view and not virtual"),
        (
            ["ALTER TABLE client_metadata RENAME TO m", "CREATE VIEW client_metadata AS SELECT * FROM m"],
            "must have a table client_metadata, which is no view and not virtual",
        ),
        (
            ["DROP TABLE client_metadata", "CREATE VIRTUAL TABLE client_metadata USING fts5(client_id, split_name)"],
            "must have a table client_metadata, which is no view and not virtual",
        ),
        (
            ["ALTER TABLE client_metadata RENAME COLUMN num_examples TO n"],
            "table client_metadata must have a column num_examples, which is not generated",
        ),
        (
            [
                "ALTER TABLE client_metadata RENAME COLUMN num_examples TO n",
                "ALTER TABLE client_metadata ADD COLUMN num_examples INTEGER AS (n + 1)",
            ],
            "table client_metadata must have a column num_examples, which is not generated",
        ),
        (
            ["DROP INDEX idx_examples_client_id", "DROP INDEX idx_examples_client_id_split"],
            "table examples must have an index of split_name and client_id, as TFF's have",
        ),
        (
            ["DELETE FROM client_metadata WHERE split_name = 'all_test'"],
            "client_metadata must have 1 to MOST clients of all_test, not none",
        ),
        (
            ["UPDATE client_metadata SET num_examples = 0 WHERE client_id = 'f0001_01'"],
            "client_metadata: client 'f0001_01': num_examples must be a whole number from 1 to 2147483647, not 0",
        ),
        (
            ["UPDATE client_metadata SET num_examples = 'two' WHERE client_id = 'f0001_01'"],
            "client_metadata: client 'f0001_01': num_examples must be a whole number from 1 to 2147483647, not two",
        ),
        (
            ["UPDATE client_metadata SET client_id = x'ff'"],
            "client_metadata: client_id must be text, not \"b'\\\\xff'\"",
        ),
        (
            ["UPDATE client_metadata SET client_id = 'f0000_00'"],
            "client_metadata: client 'f0000_00': must be there once in all_train",
        ),
        (
            ["UPDATE client_metadata SET num_examples = 3 WHERE split_name = 'all_train' AND num_examples = 2"],
            "all_train: client 'f0000_00': num_examples must be the number of its examples: it is 3, not 2",
        ),
        (
            ["UPDATE client_metadata SET num_examples = 1 WHERE split_name = 'all_train'"],
            "all_train: client 'f0000_00': num_examples must be the number of its examples: it is 1, not more",
        ),
        (
            ["DELETE FROM examples WHERE split_name = 'all_test' AND client_id = 'f0001_01'"],
            "all_test: client 'f0001_01': num_examples must be the number of its examples: it is 1, not 0",
        ),
    ],
)
def test_other_databases_are_refused(emnist, refusal, commands, said):
    change(emnist, *commands)
    said = said.replace("MOST", str(emnist.stat().st_size // 8))
    assert refusal(everything, emnist.parent) == f"emnist_all.sqlite: {said}"


def test_no_more_clients_are_read_than_a_file_can_hold(emnist, monkeypatch, refusal):
    size = emnist.stat().st_size
    monkeypatch.setattr(tff_sqlite, "_SHORTEST_ROW", size)
    said = "client_metadata must have 1 to 1 clients of all_train, not more"
    assert refusal(everything, emnist.parent) == f"emnist_all.sqlite: {said}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"SQLite format 2\0" + bytes(4096), "is not an SQLite database"),
        (b"SQLite format 3\0" + bytes(4096), "is damaged ("),
    ],
)
def test_what_is_no_database_is_refused(emnist, refusal, content, said):
    emnist.write_bytes(content)
    assert refusal(everything, emnist.parent).startswith(f"emnist_all.sqlite: {said}")


def test_half_a_database_is_refused(emnist, refusal):
    content = emnist.read_bytes()
    emnist.write_bytes(content[: len(content) // 2])
    assert refusal(everything, emnist.parent) == "emnist_all.sqlite: is damaged (database disk image is malformed)"


def test_nothing_is_written_and_no_journal_is_rolled_back(emnist):
    journal = emnist.with_name("emnist_all.sqlite-journal")
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(504))
    before = emnist.read_bytes()
    everything(emnist.parent)
    assert emnist.read_bytes() == before
    assert journal.exists()
    assert sorted(path.name for path in emnist.parent.iterdir()) == [emnist.name, journal.name]


def test_quotes_in_names_are_names(tmp_path):
    users = {"o'neil\" --": ["the a"], "%_": ["is"]}
    folder = made.stackoverflow(tmp_path / "a ?#%20'b", "sqlite", users, users)
    federation, (inputs, _, _) = everything(folder)
    assert federation.source.split.ids == ("%_", "o'neil\" --")
    np.testing.assert_array_equal(inputs[:, 0, 1], [3, 1])


def test_the_message_is_that_of_tensorflow():
    # Spelt by hand from example.proto and feature.proto: features { feature { key: "a" value { int64_list: 300 } } }.
    example = tff_sqlite._EXAMPLE.FromString(bytes.fromhex("0a0d0a0b0a016112061a040a02ac02"))
    assert list(example.features.feature["a"].int64_list.value) == [300]


@given(st.data())
def test_flipped_bytes_are_read_or_refused(tmp_path_factory, data):
    # Of its own, as an example that hypothesis gives up while it draws leaves its file.
    folder = tmp_path_factory.mktemp("flipped")
    path = made.stackoverflow(folder, "sqlite", USERS, TEST_USERS) / "stackoverflow.sqlite"
    content = bytearray(path.read_bytes())
    used = [i for i, byte in enumerate(content) if byte]
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.sampled_from(used))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with suppress(InputError):
        everything(folder)
    shutil.rmtree(folder)
