import shutil
import subprocess
import sys
import zlib
from contextlib import suppress

import h5py
import made
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from canaryproof.verify.papers.training.data import tff, tff_hdf5, tff_hdf5_reader
from tests.memory import RESET, held, peak

WRITERS, TEST_WRITERS = made.images([2, 1]), made.images([1, 1], seed=1)
USERS, TEST_USERS = made.sentences([3, 1]), made.sentences([2, 1], seed=1)
FIRST = "client 'f0000_00': "
SHAPE = "pixels must be float32 of shape n × 28 × 28, not "
TEXT = h5py.string_dtype()


@pytest.fixture
def emnist(tmp_path):
    return made.emnist(tmp_path, "hdf5", WRITERS, TEST_WRITERS) / "fed_emnist_train.h5"


@pytest.fixture
def stackoverflow(tmp_path):
    return made.stackoverflow(tmp_path, "hdf5", USERS, TEST_USERS) / "stackoverflow_train.h5"


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Read in this process, which takes no half second to start."""
    monkeypatch.setattr(tff_hdf5, "Child", tff_hdf5_reader.Reader)


def everything(folder):
    federation = tff.load(folder, 6, 4)
    return federation.cohort(range(federation.clients), 3)


def replace(path, name, **options):
    """Put another dataset in a place of the first client's."""
    with h5py.File(path, "r+") as file:
        group = next(iter(file["examples"].values()))
        del group[name]
        if options:
            group.create_dataset(name, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"chunks": (1, 28, 28)},
        {"chunks": True, "compression": "gzip"},
        {"chunks": True, "compression": "gzip", "shuffle": True, "fletcher32": True},
    ],
)
def test_packed_images_are_read(tmp_path, emnist, options):
    expected = everything(tmp_path)
    replace(emnist, "pixels", data=WRITERS["f0000_00"][0], **options)
    for found, before in zip(everything(tmp_path), expected, strict=True):
        np.testing.assert_array_equal(found, before)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("pixels", {}, "must have a dataset pixels, which is no link"),
        ("label", {}, "must have a dataset label, which is no link"),
        ("pixels", {"data": np.ones((2, 28, 28))}, SHAPE + "float64 of shape 2 × 28 × 28"),
        ("pixels", {"data": np.ones((2, 784), np.float32)}, SHAPE + "float32 of shape 2 × 784"),
        ("pixels", {"data": np.float32(1)}, "pixels must have 1 to 268435456 bytes, not float32 of shape ()"),
        (
            "pixels",
            {"data": np.ones((0, 28, 28), np.float32)},
            "pixels must have 1 to 268435456 bytes, not float32 of shape 0 × 28 × 28",
        ),
        (
            "pixels",
            {"shape": (2**40, 28, 28), "dtype": np.float32, "chunks": (1, 28, 28)},
            "pixels must have 1 to 268435456 bytes, not float32 of shape 1099511627776 × 28 × 28",
        ),
        (
            "pixels",
            {"shape": (2, 28, 28), "dtype": np.float32, "chunks": (1, 28, 28)},
            "pixels is truncated: float32 of shape 2 × 28 × 28, of which 0 bytes are there",
        ),
        ("pixels", {"data": np.full((2, 28, 28), 1.01, np.float32)}, "pixels must be between 0 and 1"),
        ("pixels", {"data": np.full((2, 28, 28), np.nan, np.float32)}, "pixels must be between 0 and 1"),
        (
            "pixels",
            {"data": np.ones((2, 28, 28), np.float32), "compression": "lzf"},
            "pixels must be packed by deflate",
        ),
        ("label", {"data": np.ones(2)}, "label must be a whole number for each image, not float64 of shape 2"),
        ("label", {"data": np.ones(3, np.int32)}, "label must be a whole number for each image, not int32 of shape 3"),
        ("label", {"data": np.array([0, 62])}, "label must be from 0 to 61"),
        ("label", {"data": np.array([-1, 0])}, "label must be from 0 to 61"),
        ("label", {"data": np.array([2**64 - 1, 0], np.uint64)}, "label must be from 0 to 61"),
    ],
)
def test_other_datasets_are_refused(tmp_path, emnist, refusal, name, options, said):
    replace(emnist, name, **options)
    assert refusal(everything, tmp_path).startswith(f"fed_emnist_train.h5: {FIRST}{said}")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "must have a dataset tokens, which is no link"),
        ({"data": np.zeros(3)}, "tokens must be n strings, not float64 of shape 3"),
        ({"data": [["a"], ["b"]], "dtype": TEXT}, "tokens must be n strings, not object of shape 2 × 1"),
        ({"data": ["a" * (2**18 + 1)], "dtype": TEXT}, "tokens must be strings of at most 262144 bytes"),
    ],
)
def test_other_tokens_are_refused(tmp_path, stackoverflow, refusal, options, said):
    replace(stackoverflow, "tokens", **options)
    assert refusal(everything, tmp_path) == f"stackoverflow_train.h5: client '00000000': {said}"


def test_links_and_what_lies_in_other_files_are_refused(tmp_path, emnist, refusal):
    other = made.hdf5(tmp_path / "other.h5", WRITERS)

    def said(change):
        # An open file would be read again by its name.
        folder = tmp_path / change.__name__
        folder.mkdir()
        for path in tmp_path.glob("fed_emnist_*.h5"):
            shutil.copy(path, folder)
        with h5py.File(folder / emnist.name, "r+") as file:
            change(file, file["examples/f0000_00"])
        return refusal(everything, folder).removeprefix("fed_emnist_train.h5: ")

    def external(_, group):
        del group["pixels"]
        group["pixels"] = h5py.ExternalLink(str(other), "/examples/f0000_00/pixels")

    def soft(_, group):
        del group["pixels"]
        group["pixels"] = h5py.SoftLink("/examples/f0001_01/pixels")

    def client(file, _):
        del file["examples/f0000_00"]
        file["examples/f0000_00"] = h5py.ExternalLink(str(other), "/examples/f0000_00")

    def top(file, _):
        del file["examples"]
        file["examples"] = h5py.ExternalLink(str(other), "/examples")

    def stored(_, group):
        del group["pixels"]
        group.create_dataset("pixels", (2, 28, 28), np.float32, external=[(str(other), 0, h5py.h5f.UNLIMITED)])

    def virtual(_, group):
        del group["pixels"]
        layout = h5py.VirtualLayout((2, 28, 28), np.float32)
        layout[:] = h5py.VirtualSource(str(other), "/examples/f0000_00/pixels", (2, 28, 28))
        group.create_virtual_dataset("pixels", layout)

    def empty(file, _):
        del file["examples"]
        file.create_group("examples")

    def dataset(file, _):
        del file["examples/f0000_00"]
        file["examples/f0000_00"] = np.zeros(3)

    assert said(external) == said(soft) == FIRST + "must have a dataset pixels, which is no link"
    assert said(client) == said(dataset) == FIRST + "must be a group, and no link"
    assert said(top) == "must have a group examples, which is no link"
    assert said(stored) == said(virtual) == FIRST + "pixels must be in this file, not in another"
    assert said(empty) == "examples must have 1 to 10000000 clients, not 0"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"no HDF5" * 100, "is not a readable HDF5 file ("),
        (None, "is not a readable HDF5 file (Unable to synchronously open file (truncated file"),
    ],
)
def test_what_is_not_hdf5_is_refused(tmp_path, emnist, refusal, content, said):
    emnist.write_bytes(emnist.read_bytes()[:-1000] if content is None else content)
    assert refusal(everything, tmp_path).startswith(f"fed_emnist_train.h5: {said}")


@pytest.mark.deep
@pytest.mark.skipif(not RESET.exists(), reason="peak memory cannot be set back here")
def test_a_bomb_is_not_inflated(tmp_path, emnist, refusal):
    deflate = zlib.compressobj(9)
    bomb = b"".join(deflate.compress(bytes(2**20)) for _ in range(260)) + deflate.flush()
    with h5py.File(emnist, "r+") as file:
        group = file["examples/f0000_00"]
        del group["pixels"]
        pixels = group.create_dataset("pixels", (2, 28, 28), np.float32, chunks=(2, 28, 28), compression="gzip")
        pixels.id.write_direct_chunk((0, 0, 0), bomb)
    before = held()
    assert refusal(everything, tmp_path) == (
        f"fed_emnist_train.h5: {FIRST}pixels must have chunks of at most 262144 bytes packed"
    )
    # There are 260 MB in it.
    assert peak() - before < 2**27


@pytest.mark.parametrize(
    "options",
    [{}, {"chunks": (7,)}, {"chunks": True, "compression": "gzip", "shuffle": True}, {"maxshape": (None,)}],
)
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_strings_are_those_that_hdf5_itself_reads(tmp_path, options, libver):
    rng = np.random.default_rng(0)
    strings = [bytes(rng.integers(32, 127, size).astype(np.uint8)) for size in rng.integers(0, 300, 500)]
    strings += [b"x" * 70_000, b"", "Grüße".encode()]
    with h5py.File(tmp_path / "s.h5", "w", libver=libver) as file:
        file.create_dataset("tokens", data=strings, dtype=TEXT, **options)
    with h5py.File(tmp_path / "s.h5", "r") as file:
        assert list(tff_hdf5_reader.strings(file["tokens"], 10**6)) == file["tokens"][:].tolist() == strings
        assert list(tff_hdf5_reader.strings(file["tokens"], 11)) == strings[:11]


def test_strings_of_fixed_length_are_read(tmp_path, stackoverflow):
    replace(stackoverflow, "tokens", data=np.array([b"the a", b"is"]))
    inputs, _, mask = everything(tmp_path)
    np.testing.assert_array_equal(inputs[0, :2, :3], [[6, 1, 2], [6, 3, 7]])
    assert mask[0].tolist() == [1, 1, 0]


def heap(content, change):
    """Change the first heap of strings in a file: its size, or its first object's number or size."""
    place = content.index(b"GCOL")
    where, value = {
        "version": (4, b"\2"),
        "size": (8, b"\0" * 8),
        "huge": (8, b"\xff" * 8),
        "object": (24, b"\xff" * 8),
    }[change]
    return content[: place + where] + value + content[place + where + len(value) :]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("version", "a heap of strings has no header"),
        ("size", "a heap of strings has no header"),
        ("huge", "a heap of strings has no header"),
        ("object", "an object is longer than its heap"),
    ],
)
def test_damaged_heaps_are_refused(tmp_path, stackoverflow, refusal, change, said):
    # Of one client, whose strings are all in one heap.
    made.hdf5(stackoverflow, {"u": ["the a", "is"]})
    stackoverflow.write_bytes(heap(stackoverflow.read_bytes(), change))
    assert refusal(everything, tmp_path) == (
        f"stackoverflow_train.h5: client 'u': is not a readable HDF5 file ({said})"
    )


# Each in a process of its own: the HDF5 library, which reads the rest, is not known to survive every damage.
FLIP = """
import pathlib, random, sys
from canaryproof.verify.papers.training.data import tff, tff_hdf5, tff_hdf5_reader
from canaryproof.verify.audit.files.reading import InputError
tff_hdf5.Child = tff_hdf5_reader.Reader
folder, name, rng = pathlib.Path(sys.argv[1]), sys.argv[2], random.Random(int(sys.argv[3]))
content = (folder / name).read_bytes()
used = [i for i, byte in enumerate(content) if byte]
refused = 0
for _ in range(int(sys.argv[4])):
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        changed[rng.choice(used)] = rng.randrange(256)
    (folder / name).write_bytes(changed)
    try:
        federation = tff.load(folder, 6, 4)
        federation.cohort(range(federation.clients), 3)
    except InputError as error:
        refused += 1
        assert "\\n" not in error.message
    # What is open would be read again.
    federation = None
print(refused)
"""


@pytest.mark.parametrize(("release", "seed"), [pytest.param("emnist", 1, marks=pytest.mark.deep), ("stackoverflow", 2)])
def test_flipped_bytes_are_read_or_refused(tmp_path, release, seed, request):
    path = request.getfixturevalue(release)
    if release == "emnist":
        # Black images: most bytes that are not 0 are structure.
        made.hdf5(path, {name: (np.zeros_like(pixels), labels) for name, (pixels, labels) in WRITERS.items()})
    command = [sys.executable, "-c", FLIP, str(tmp_path), path.name, str(seed), "300"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert 30 < int(done.stdout) < 300


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_flipped_bytes_of_strings_are_read_or_refused(tmp_path, stackoverflow, data):
    content = bytearray(stackoverflow.read_bytes())
    place = content.index(b"GCOL") + data.draw(st.integers(0, 400))
    content[place] = data.draw(st.integers(0, 255))
    changed = tmp_path / "changed.h5"
    changed.write_bytes(content)
    with h5py.File(changed, "r") as file, suppress(ValueError):
        for client in file["examples"].values():
            assert len(list(tff_hdf5_reader.strings(client["tokens"], 9))) == len(client["tokens"])


def circle(path, kind, field):
    """Make a B-tree of some kind into a circle, by its nodes' children or by its sibling on the right."""
    content = bytearray(path.read_bytes())
    places = [i for i in range(len(content)) if content[i : i + 4] == b"TREE" and content[i + 4] == kind]
    count = {i: int.from_bytes(content[i + 6 : i + 8], "little") for i in places}
    node = max(places, key=count.__getitem__)
    if field == "sibling":
        content[node + 16 : node + 24] = node.to_bytes(8, "little")
    else:
        content[node + 5] = 1
        # Keys of a group's nodes have 8 bytes, those of chunks in three dimensions 40.
        key = 8 if kind == 0 else 40
        for i in range(count[node]):
            child = node + 24 + key + (key + 8) * i
            content[child : child + 8] = node.to_bytes(8, "little")
    path.write_bytes(content)


@pytest.fixture
def child(monkeypatch):
    """Read in a process of its own after all."""
    monkeypatch.setattr(tff_hdf5, "Child", CHILD)


CHILD = tff_hdf5.Child
# Whose B-tree has several nodes; HDF5 notices some circles of one.
MANY = made.images([2, 1] * 20)


@pytest.mark.usefixtures("child")
def test_a_process_of_its_own_reads_the_same(tmp_path, emnist):
    found = everything(tmp_path)
    for one, expected in zip(found[:1], [WRITERS["f0000_00"][0][:2]], strict=True):
        np.testing.assert_array_equal(one[0, :2, ..., 0], expected)
    with suppress(FileNotFoundError):
        emnist.with_name("fed_emnist_test.h5").unlink()
    emnist.unlink()
    users = made.stackoverflow(tmp_path, "hdf5", USERS, TEST_USERS)
    own = everything(users)
    federation = tff.load(users, 6, 4)
    np.testing.assert_array_equal(federation.cohort(range(federation.clients), 3)[0], own[0])


@pytest.mark.usefixtures("child")
def test_what_the_process_refuses_is_refused(tmp_path, emnist, refusal):
    replace(emnist, "label")
    assert refusal(everything, tmp_path) == f"{emnist.name}: {FIRST}must have a dataset label, which is no link"


@pytest.mark.usefixtures("child")
@pytest.mark.parametrize(("kind", "chunks"), [(0, None), (1, (1, 28, 28))])
def test_a_b_tree_that_crashes_the_library_gets_a_line(tmp_path, emnist, refusal, kind, chunks):
    made.hdf5(emnist, MANY)
    replace(emnist, "pixels", data=WRITERS["f0000_00"][0], chunks=chunks)
    circle(emnist, kind, "child")
    assert refusal(everything, tmp_path) == f"{emnist.name}: damaged: HDF5's library crashes on it (signal 11)"


# Ends at a limit of seconds.
@pytest.mark.deep
@pytest.mark.usefixtures("child")
def test_a_b_tree_without_an_end_gets_a_line(tmp_path, emnist, refusal):
    made.hdf5(emnist, MANY)
    circle(emnist, 0, "sibling")
    assert refusal(everything, tmp_path) == f"{emnist.name}: damaged: HDF5's library does not come to an end with it"


def test_what_a_crash_writes_is_not_believed(tmp_path, emnist, refusal, monkeypatch):
    for said in ("[]", "{}", '{"sizes": [5]}', '{"sizes": ["x"]}', '{"sizes": [1e30]}', "\\xff", "7", "[" * 10_000):
        script = tmp_path / "python"
        script.write_text(f"#!/bin/sh\nprintf '%s\\n' '{said}'\n")
        script.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(script))
        assert refusal(lambda path: CHILD(path).answer("ids"), emnist) == ": cannot be read by HDF5's library"
