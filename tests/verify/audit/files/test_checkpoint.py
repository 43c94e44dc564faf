import io
import json
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from canaryproof.verify.audit.files import checkpoint

DESCRIPTION = {"model": "tiny", "rate": 0.1, "sizes": [1, 2], "clip": None}
ARRAYS = {"theta": np.arange(5, dtype=np.float32), "count": np.array(3, dtype=np.int32), "none": np.zeros((0, 4))}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "training.npz"
    checkpoint.write(path, DESCRIPTION, ARRAYS)
    return path


def refused(path, description=DESCRIPTION, like=ARRAYS):
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: ") as caught:
        checkpoint.read(path, description, like)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_what_is_read_is_what_was_written(path):
    found = checkpoint.read(path, DESCRIPTION, {name: np.zeros_like(array) for name, array in ARRAYS.items()})

    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace")])
def test_a_crash_while_writing_leaves_the_old_file(path, monkeypatch, owner, name):
    before = path.read_bytes()

    def crash(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(owner, name, crash)
    with pytest.raises(OSError, match="full"):
        checkpoint.write(path, DESCRIPTION, {"theta": np.zeros(9)})

    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_seed_is_neither_shown_nor_readable_by_others(path):
    checkpoint.write(path, DESCRIPTION | {"seed": 123456}, ARRAYS)

    assert path.stat().st_mode & 0o777 == 0o600
    assert refused(path, DESCRIPTION | {"seed": 654321}) == "seed: must be the same as here"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0.2}, "rate: must be 0.2 here, not 0.1"),
        ({"sizes": (1, 3)}, "sizes: must be [1, 3] here, not [1, 2]"),
        ({"other": "x"}, "other: must be 'x' here, not None"),
    ],
)
def test_another_trainings_checkpoint_is_refused(path, change, message):
    assert refused(path, DESCRIPTION | change) == message


def test_a_later_format_is_refused(path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_FORMAT", 3)

    assert refused(path) == "format: must be 3 here, not 2"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta": np.zeros(5)}, "theta: must be float64 of shape (5,), not float32 of (5,)"),
        ({"theta": np.zeros(6, np.float32)}, "theta: must be float32 of shape (6,), not float32 of (5,)"),
        ({"more": np.zeros(1)}, "its arrays must be description, theta, count, none, more, seal, not description"),
    ],
)
def test_arrays_of_other_shapes_are_refused(path, change, message):
    assert refused(path, like=ARRAYS | change).startswith(message)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(path, value):
    checkpoint.write(path, DESCRIPTION, ARRAYS | {"theta": np.full(5, value, np.float32)})

    assert refused(path) == "theta: must be finite"


def test_an_array_is_not_read_that_is_larger_than_it_may_be(path):
    checkpoint.write(path, DESCRIPTION, ARRAYS | {"theta": np.zeros(100_000, np.float32)})

    assert refused(path) == "theta: must be float32 of shape (5,), not float32 of (100000,)"


def test_damage_is_seen_wherever_it_is(path):
    """Each bit of the file's arrays and of its directory counts; what zip has twice, or dates, may go unread."""
    whole, found = path.read_bytes(), 0
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            arrays = checkpoint.read(path, DESCRIPTION, ARRAYS)
        except ValueError:
            found += 1
        else:
            assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    assert found > 0.5 * len(range(0, len(whole), 7))


def test_other_files_are_refused(path):
    np.save(io.BytesIO(), ARRAYS["theta"])
    with path.open("wb") as file:
        np.save(file, ARRAYS["theta"])
    assert refused(path).startswith("is not a checkpoint, or a damaged one (")

    np.savez(path, description=np.array([{}], dtype=object), **ARRAYS)
    assert refused(path) == "description: must be uint8 of shape (1,), not object of (1,)"

    text = io.BytesIO()
    np.save(text, np.frombuffer(json.dumps([1]).encode(), np.uint8))
    checkpoint.write(path, DESCRIPTION, ARRAYS)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (members | {"description.npy": text.getvalue()}).items():
            archive.writestr(name, content)
    assert refused(path) == "description: must be an object"


def test_only_equal_arrays_have_one_digest():
    one, two = np.arange(4.0), np.arange(6.0)
    others = [(one,), (one, two), (two, one), (one.astype(np.float32),), (one.reshape(2, 2),), (one + 1e-300, two)]

    assert checkpoint.digest(one, two) == checkpoint.digest(one.copy(), two[::-1][::-1])
    assert len({checkpoint.digest(*arrays) for arrays in others}) == len(others)
