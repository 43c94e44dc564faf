import gzip
import hashlib
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training.data import idx
from canaryproof.verify.papers.training.data.files import LARGEST

MNIST = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
RNG = np.random.default_rng(8)
IMAGES = {part: RNG.integers(0, 256, (count, 4, 3), np.uint8) for part, count in (("train", 10), ("test", 4))}
LABELS = {part: RNG.integers(0, 10, len(images), np.uint8) for part, images in IMAGES.items()}


def coded(array, magic=None, shape=None):
    axes = [array.ndim + 0x800 if magic is None else magic, *(array.shape if shape is None else shape)]
    return np.array(axes, ">u4").tobytes() + array.tobytes()


def put(folder, packed=True, prefix="", labels=LABELS, test="t10k"):
    for part in MNIST:
        for name, array in zip(MNIST[part], (IMAGES[part], labels[part]), strict=True):
            name = prefix + name.replace("t10k", test)
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(coded(array)))
            else:
                (folder / name).write_bytes(coded(array))
    return folder


def by_label_and_pixels(inputs, labels):
    return sorted(map(tuple, np.column_stack([labels, inputs.reshape(len(labels), -1)])))


@pytest.mark.parametrize("packed", [True, False])
def test_mnist(tmp_path, packed):
    federation = idx.load(put(tmp_path, packed), 3, seed=1)
    assert (federation.clients, federation.classes, federation.vocabulary) == (3, 10, None)
    assert federation.name == tmp_path.name
    np.testing.assert_array_equal(federation.starts, [0, 3, 6, 9])
    np.testing.assert_array_equal(federation.test_inputs[..., 0], (IMAGES["test"] / 255).astype(np.float32))
    np.testing.assert_array_equal(federation.test_labels, LABELS["test"])
    assert (federation.inputs.dtype, federation.labels.dtype) == (np.float32, np.int32)


def test_images_keep_their_labels(tmp_path):
    federation = idx.load(put(tmp_path), 10, seed=1)
    found = by_label_and_pixels(np.rint(federation.inputs * 255), federation.labels)
    assert found == by_label_and_pixels(IMAGES["train"], LABELS["train"])
    assert not np.array_equal(federation.labels, LABELS["train"])


def test_the_seed_deals(tmp_path):
    put(tmp_path)
    first, again, other = (idx.load(tmp_path, 5, seed).labels for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(("name", "classes"), [("byclass", 62), ("balanced", 47), ("letters", 27), ("digits", 10)])
def test_emnist_is_transposed(tmp_path, name, classes):
    labels = {part: values + np.uint8(classes - 10) for part, values in LABELS.items()}
    federation = idx.load(put(tmp_path, True, f"emnist-{name}-", labels, test="test"), 3, seed=1)
    assert (federation.name, federation.classes) == (f"emnist-{name}", classes)
    assert federation.inputs.shape == (9, 3, 4, 1)
    turned = (IMAGES["test"].transpose(0, 2, 1) / 255).astype(np.float32)
    np.testing.assert_array_equal(federation.test_inputs[..., 0], turned)


def test_inflated_files_beside_the_packed_ones_and_names_with_a_dot(tmp_path):
    put(tmp_path)
    (tmp_path / "train-images.idx3-ubyte").write_bytes(coded(IMAGES["train"]))
    (tmp_path / "train-images-idx3-ubyte").write_bytes(coded(IMAGES["train"] // 2))
    (tmp_path / "readme.txt").write_text("no data")
    federation = idx.load(tmp_path, 10, seed=1)
    assert np.rint(federation.inputs.max() * 255) == IMAGES["train"].max() // 2


def test_missing_files_and_two_data_sets_are_refused(tmp_path, refusal):
    assert refusal(idx.load, tmp_path, 3, 0) == ": must hold a file train-images-idx3-ubyte, gzipped or not"
    put(tmp_path)
    assert refusal(idx.load, tmp_path, 0, 0) == ": examples_per_client must be between 1 and 10, not 0"
    (tmp_path / "t10k-labels-idx1-ubyte.gz").rename(tmp_path / "labels.gz")
    assert refusal(idx.load, tmp_path, 3, 0) == ": must hold a file t10k-labels-idx1-ubyte, gzipped or not"
    put(tmp_path, prefix="emnist-mnist-")
    put(tmp_path, prefix="emnist-digits-")
    assert ": must hold one data set, not emnist-digits, emnist-mnist, " in refusal(idx.load, tmp_path, 3, 0)
    assert refusal(idx.load, tmp_path / "none", 3, 0) == ": must be a folder"


TRAIN_IMAGES, TRAIN_LABELS = coded(IMAGES["train"]), coded(LABELS["train"])
TEST_IMAGES = IMAGES["test"]
HUGE = 10**4


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("train-images-idx3-ubyte", b"", ": the file is empty"),
        ("train-images-idx3-ubyte", b"\0\0", ": its magic number must be 0x00000803, not 0x0000"),
        ("train-images-idx3-ubyte", TRAIN_LABELS, ": its magic number must be 0x00000803, not 0x00000801"),
        ("train-labels-idx1-ubyte", TRAIN_IMAGES, ": its magic number must be 0x00000801, not 0x00000803"),
        ("train-images-idx3-ubyte", coded(IMAGES["train"], 0x903), ": its magic number must be 0x00000803, not 0x0000"),
        (
            "train-images-idx3-ubyte",
            gzip.compress(TRAIN_IMAGES, mtime=0),
            ": its magic number must be 0x00000803, not 0x1f8b",
        ),
        ("train-images-idx3-ubyte", TRAIN_IMAGES[:15], ": truncated: its header has no end"),
        (
            "train-images-idx3-ubyte",
            TRAIN_IMAGES[:-1],
            ": truncated or damaged: its header declares 10 × 4 × 3 = 120 bytes, and 119 follow",
        ),
        (
            "train-images-idx3-ubyte",
            TRAIN_IMAGES + b"\0",
            ": truncated or damaged: its header declares 10 × 4 × 3 = 120 bytes, and more follow",
        ),
        (
            "train-images-idx3-ubyte",
            coded(IMAGES["train"], shape=(HUGE, HUGE, HUGE)),
            f": its header must declare 1 to {LARGEST} bytes, not 10000 × 10000 × 10000",
        ),
        ("train-images-idx3-ubyte", coded(IMAGES["train"], shape=(0, 4, 3)), ": its header must declare 1 to"),
        (
            "train-labels-idx1-ubyte",
            coded(LABELS["train"][:-1]),
            ": must have a label for each of 10 images, not 9",
        ),
        (
            "t10k-labels-idx1-ubyte",
            coded(np.array([1, 2, 10, 11], np.uint8)),
            ": label 2: must be below 10, not 10",
        ),
        (
            "t10k-images-idx3-ubyte",
            coded(TEST_IMAGES[:, :, :2]),
            ": images must be 4 × 3 as those for training, not 4 × 2",
        ),
    ],
)
def test_damaged_files_are_refused(tmp_path, refusal, name, content, said):
    (put(tmp_path, packed=False) / name).write_bytes(content)
    assert refusal(idx.load, tmp_path, 3, 0).startswith(name + said)


def test_a_damaged_gzip_is_refused(tmp_path, refusal):
    name = "train-images-idx3-ubyte.gz"
    (put(tmp_path) / name).write_bytes(gzip.compress(TRAIN_IMAGES)[:-9])
    assert refusal(idx.load, tmp_path, 3, 0) == f"{name}: truncated: its gzip stream has no end"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (TRAIN_IMAGES[:16], "truncated or damaged: its header declares 10 × 4 × 3 = 120 bytes, and more follow"),
        (np.array([0x803, 2**10, 2**10, 2**10], ">u4").tobytes(), "must not inflate to more than 16777216 bytes"),
        (np.array([0x803, *[2**32 - 1] * 3], ">u4").tobytes(), "its header must declare 1 to"),
    ],
)
def test_bombs_are_not_inflated(tmp_path, refusal, header, said):
    name = "train-images-idx3-ubyte.gz"
    with gzip.open(put(tmp_path) / name, "wb", 9) as file:
        file.write(header)
        file.write(bytes(2**24))
    assert (tmp_path / name).stat().st_size < 2**15
    tracemalloc.start()
    try:
        message = refusal(idx.load, tmp_path, 3, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert message.startswith(f"{name}: {said}")
    # What is there, 16 MB, only where the header promises more; a growing array holds itself twice at times.
    assert peak < (2**26 if "inflate" in said else 2**21)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_flipped_bytes_are_read_or_refused(tmp_path, data):
    part, kind = data.draw(st.sampled_from(["train", "test"])), data.draw(st.sampled_from([0, 1]))
    content = bytearray(coded((IMAGES, LABELS)[kind][part]))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (put(tmp_path, packed=False) / MNIST[part][kind]).write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(InputError):
        assert idx.load(tmp_path, 3, seed=0).labels.max() < 10


def test_real_mnist(real_data):
    place = real_data("mnist")
    federation = idx.load(place, 20, seed=1)
    assert (federation.clients, federation.inputs.shape) == (3000, (60_000, 28, 28, 1))
    assert len(federation.test_labels) == 10_000
    for kind, found in (("images", federation.inputs), ("labels", federation.labels)):
        [path] = place.glob(f"train-{kind}*")
        content = gzip.decompress(path.read_bytes())
        expected = np.frombuffer(content, np.uint8, offset=16 if kind == "images" else 8).sum(dtype=np.int64)
        assert np.rint(found * np.float32(255 if kind == "images" else 1)).sum(dtype=np.float64) == expected


def test_fashion_mnist_is_known_by_what_is_inside_its_files(tmp_path, monkeypatch):
    put(tmp_path)
    assert idx.load(tmp_path, 1, seed=0).name == tmp_path.name
    arrays = {(part, kind): values[part] for part in MNIST for kind, values in (("images", IMAGES), ("labels", LABELS))}
    inside = {key: hashlib.md5(coded(array)).hexdigest() for key, array in arrays.items()}
    assert set(inside) == set(idx._FASHION)
    monkeypatch.setattr(idx, "_FASHION", inside)
    assert idx.load(tmp_path, 1, seed=0).name == idx.FASHION
    # Packed anew, a file has other bytes.
    images = tmp_path / "train-images-idx3-ubyte.gz"
    images.write_bytes(gzip.compress(coded(IMAGES["train"]), 1, mtime=5))
    assert idx.load(tmp_path, 1, seed=0).name == idx.FASHION
    # An inflated file is read in the place of the packed one.
    other = tmp_path / "train-labels-idx1-ubyte"
    other.write_bytes(coded(LABELS["train"]))
    assert idx.load(tmp_path, 1, seed=0).name == idx.FASHION


@pytest.mark.parametrize(("part", "kind"), idx._FASHION)
def test_one_other_byte_is_another_data_set(tmp_path, monkeypatch, part, kind):
    arrays = {(part, kind): values[part] for part in MNIST for kind, values in (("images", IMAGES), ("labels", LABELS))}
    monkeypatch.setattr(idx, "_FASHION", {key: hashlib.md5(coded(array)).hexdigest() for key, array in arrays.items()})
    changed = arrays[part, kind].copy()
    changed.flat[0] ^= 1
    put(tmp_path, packed=False)
    (tmp_path / MNIST[part][["images", "labels"].index(kind)]).write_bytes(coded(changed))
    assert idx.load(tmp_path, 1, seed=0).name == tmp_path.name


def test_real_fashion_mnist(real_data):
    federation = idx.load(real_data("fashion-mnist"), 1, seed=1)
    assert (federation.name, federation.clients) == (idx.FASHION, 60_000)
