import base64
import io
import json
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.answer.run_audit import audit_release
from canaryproof.verify.audit.canaries.shapes import flatten
from canaryproof.verify.audit.files import stored_release
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.stored_release import open_release, stored_tensors, write_sum
from tests.verify.audit.files.test_every_reader import safetensors


def model(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "b.weight": rng.normal(size=(7, 3)).astype(np.float32),
        "a.weight": rng.normal(size=(2, 5, 3)).astype(ml_dtypes.bfloat16),
        "steps": np.array([3, 4]),
        "c": np.array(rng.normal(), np.float16),
        "B": rng.normal(size=(0, 4)).astype(np.float32),
    }


def floats(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values for name, values in tensors.items() if values.dtype.kind != "i"}


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    file = tmp_path / "model.safetensors"
    file.write_bytes(safetensors(model(), __metadata__={"format": "pt"}))
    return file


def test_coordinates_stand_in_the_order_of_flatten(path: Path) -> None:
    release, expected = open_release(path), flatten(floats(model()))
    assert release.dim == len(expected) == 52
    assert [tensor.name for tensor in release.tensors] == ["B", "a.weight", "b.weight", "c"]
    assert release.left_out == ("steps",)
    np.testing.assert_array_equal(release.read(0, 52), expected)
    assert release.read(0, 52).dtype == np.float32
    assert release.record()["tensors"] == [["B", [0, 4]], ["a.weight", [2, 5, 3]], ["b.weight", [7, 3]], ["c", []]]


def test_any_slice_is_that_of_the_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_release, "_AT_ONCE", 4)
    release, expected = open_release(path), flatten(floats(model()))
    for start in range(52):
        for stop in range(start + 1, 53):
            np.testing.assert_array_equal(release.read(start, stop), expected[start:stop])


def test_shards_with_an_index_are_one_checkpoint(path: Path, tmp_path: Path) -> None:
    tensors = model()
    shards = {"x-1.safetensors": ["b.weight", "steps"], "x-2.safetensors": ["c", "a.weight", "B"]}
    for shard, names in shards.items():
        (tmp_path / shard).write_bytes(safetensors({name: tensors[name] for name in names}))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: shard for shard, names in shards.items() for name in names}}))
    assert open_release(index).record() == open_release(path).record()
    np.testing.assert_array_equal(open_release(index).read(0, 52), open_release(path).read(0, 52))


def test_names_are_filtered(path: Path) -> None:
    release = open_release(path, only=["*.weight", "c"], skip=["b*"])
    assert [tensor.name for tensor in release.tensors] == ["a.weight", "c"]
    assert release.left_out == ("B", "b.weight", "steps")
    # Integers are no part of a release, whoever asks for them.
    with pytest.raises(InputError, match="at least 2 coordinates, and at most 2\\^40, not 0"):
        open_release(path, only=["steps"])
    with pytest.raises(InputError, match="has no tensor with a name like 'lora_\\*'"):
        open_release(path, skip=["lora_*"])


def test_the_difference_of_two_checkpoints_is_a_release(path: Path, tmp_path: Path) -> None:
    base = tmp_path / "base.safetensors"
    base.write_bytes(safetensors(model(1)))
    difference = open_release(path, base=base).read(0, 52)
    np.testing.assert_array_equal(difference, flatten(floats(model())) - flatten(floats(model(1))))
    fewer = {name: values for name, values in model().items() if name != "c"}
    base.write_bytes(safetensors(fewer))
    with pytest.raises(InputError, match=r"must have the tensors of .*, 4, not 3"):
        open_release(path, base=base)
    base.write_bytes(safetensors(model() | {"a.weight": np.zeros(30, np.float32)}))
    with pytest.raises(InputError, match=r"it has 'a\.weight' of shape \(30,\) for 'a\.weight' of"):
        open_release(path, base=base)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f8", "longdouble"])
def test_npy_files_keep_their_precision(dtype: str, tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=11).astype(dtype)
    np.save(tmp_path / "r.npy", values)
    release = open_release(tmp_path / "r.npy")
    read = release.read(2, 11)
    assert read.dtype == (np.float32 if values.itemsize <= 4 else np.float64)
    np.testing.assert_array_equal(read, values[2:].astype(read.dtype))
    assert release.tensors[0].name == ""


# Written by the library safetensors 0.8: "b" of float32, "a" of float64 and "n" of int8.
LIBRARY = (
    "yAAAAAAAAAB7Il9fbWV0YWRhdGFfXyI6eyJmb3JtYXQiOiJucCJ9LCJhIjp7ImR0eXBlIjoiRjY0Iiwic2hhcGUiOlsxLDFdLCJkYXRhX29mZnNl"
    "dHMiOlswLDhdfSwiYiI6eyJkdHlwZSI6IkYzMiIsInNoYXBlIjpbMl0sImRhdGFfb2Zmc2V0cyI6WzgsMTZdfSwibiI6eyJkdHlwZSI6Ikk4Iiwi"
    "c2hhcGUiOlsxXSwiZGF0YV9vZmZzZXRzIjpbMTYsMTddfX0gICAgIAAAAAAAAAhAAAAAPwAAwL8H"
)


def test_a_file_of_the_library_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "l.safetensors"
    file.write_bytes(base64.b64decode(LIBRARY))
    release = open_release(file)
    np.testing.assert_array_equal(release.read(0, 3), [3.0, 0.5, -1.5])
    assert release.read(0, 3).dtype == np.float64
    assert release.left_out == ("n",)


def test_a_file_that_shrinks_meanwhile_is_named(path: Path) -> None:
    release = open_release(path)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(InputError, match=r"model\.safetensors: truncated while it was read"):
        release.read(0, release.dim)


@pytest.mark.parametrize(
    ("name", "index", "value", "coordinate"),
    [
        ("b.weight", (4, 1), np.inf, r"b\.weight\[4, 1\]"),
        ("a.weight", (1, 0, 2), np.nan, r"a\.weight\[1, 0, 2\]"),
        ("c", (), -np.inf, "c"),
    ],
)
def test_a_coordinate_that_is_not_finite_is_named_with_its_file(
    name: str, index: tuple[int, ...], value: float, coordinate: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_release, "_AT_ONCE", 4)
    tensors = model()
    tensors[name][index] = value
    path.write_bytes(safetensors(tensors))
    with pytest.raises(InputError, match=rf"{path}: {coordinate}: must be finite, not {value}$"):
        audit_release(open_release(path), Canaries(7, 10, 52), 1e-5)


def test_a_release_is_opened_again_as_its_record_says(path: Path) -> None:
    base = path.with_name("base.safetensors")
    base.write_bytes(safetensors(model(1)))
    for options in ({}, {"only": ["*weight", "c"], "skip": ["a.*"], "base": base, "canary_norm": 0.25}):
        release = open_release(path, **options)
        again = stored_release.reopen(path, release.record())
        assert again == release
        assert again.record() == release.record()
        assert again.canary_norm == (options or {"canary_norm": 1.0})["canary_norm"]
    assert [name for name, _ in release.record()["tensors"]] == ["b.weight", "c"]


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("name", ["model.safetensors", "r.npy"])
def test_what_is_added_is_added_in_float32_and_the_rest_is_copied(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_release, "_AT_ONCE", 4)
    np.save(tmp_path / "r.npy", np.random.default_rng(3).normal(size=52).astype(np.float16))
    source = tmp_path / name
    release = open_release(source, skip=[] if name == "r.npy" else ["b.*"])
    more = np.random.default_rng(2).normal(size=release.dim)
    written = io.BytesIO()
    write_sum(written, source, release, lambda start, stop: more[start:stop])
    target = tmp_path / f"new-{name}"
    target.write_bytes(written.getvalue())
    again = open_release(target, skip=[] if name == "r.npy" else ["b.*"])
    assert again.read(0, again.dim).dtype == np.float32
    expected = (release.read(0, release.dim) + more).astype(np.float32)
    np.testing.assert_allclose(again.read(0, again.dim), expected, rtol=1e-7)
    if name != "r.npy":
        assert again.record() == release.record()
        # Names sort, so that the copied tensors stand between the others.
        copied = {tensor.name: tensor for tensor in stored_tensors(target)}
        for name_of in ("b.weight", "steps"):
            tensor = copied[name_of]
            raw = written.getvalue()[tensor.offset : tensor.offset + tensor.nbytes]
            assert raw == model()[name_of].tobytes()


@pytest.mark.parametrize(("kind", "size"), [("F8_E4M3", 6), ("F8_E5M2", 6), ("F4", 3), ("C64", 48)])
def test_numbers_that_are_not_read_may_be_left_out(tmp_path: Path, kind: str, size: int) -> None:
    header = json.dumps(
        {
            "a.scale": {"dtype": kind, "shape": [2, 3], "data_offsets": [0, size]},
            "b.lora": {"dtype": "F32", "shape": [3], "data_offsets": [size, size + 12]},
        }
    ).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(size) + np.arange(3, dtype="<f4").tobytes())
    for options in ({"only": ["*lora"]}, {"skip": ["*scale"]}):
        release = open_release(path, **options)
        np.testing.assert_array_equal(release.read(0, 3), [0.0, 1.0, 2.0])
        assert release.left_out == ("a.scale",)
    with pytest.raises(
        InputError, match=rf"'a\.scale' has numbers of type {kind}, which are not read: leave it out by"
    ):
        open_release(path)


def test_a_long_header_is_said_to_be_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_release, "LARGEST_DOCUMENT", 100)
    path = tmp_path / "m.safetensors"
    path.write_bytes((200).to_bytes(8, "little") + b"{}" + b" " * 198)
    with pytest.raises(InputError, match=r"its header must have at most 100 bytes, not 200$"):
        open_release(path)
