import pickle
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_images import BATCHES, cifar10_batches, cifar10_binary, cifar10_python, pickled_by_python_2

from canaryproof.verify.files.reading import InputError
from canaryproof.verify.training.data import cifar10


def test_images_are_dealt_out_with_their_labels(tmp_path):
    cifar10_binary(tmp_path)
    federation = cifar10.load(tmp_path, 3, 0)
    assert (federation.name, federation.clients, federation.classes, federation.vocabulary) == ("cifar10", 6, 10, None)
    assert (federation.inputs.shape, federation.inputs.dtype) == ((18, 32, 32, 3), np.float32)
    assert (federation.labels.dtype, federation.test_labels.dtype) == (np.int32, np.int32)
    batches = cifar10_batches()
    labels, pixels = (np.concatenate(part) for part in zip(*(batches[name] for name in BATCHES[:5]), strict=True))
    # Planes of red, green and blue, each by rows, written out.
    images = np.array(
        [[[[row[1024 * c + 32 * y + x] for c in range(3)] for x in range(32)] for y in range(32)] for row in pixels]
    )
    # Every image is another, so that one of them tells which it is.
    order = [
        int(np.flatnonzero((images == np.round(image * 255)).all(axis=(1, 2, 3)))[0]) for image in federation.inputs
    ]
    assert len(set(order)) == 18
    np.testing.assert_array_equal(federation.labels, labels[order])
    np.testing.assert_array_equal(federation.inputs, images[order].astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(federation.test_labels, batches["test_batch"][0])
    np.testing.assert_array_equal(
        np.round(federation.test_inputs[1, 2, 3] * 255), batches["test_batch"][1][1, [67, 1091, 2115]]
    )
    np.testing.assert_array_equal(federation.starts, np.arange(0, 19, 3))
    assert cifar10.load(tmp_path, 3, 1).digest != federation.digest


@pytest.mark.parametrize(
    "dump", [pickled_by_python_2, *(lambda content, p=p: pickle.dumps(content, p) for p in (2, 3, 4))]
)
def test_both_distributions_are_of_the_same_images(tmp_path, dump):
    for name in ("cifar-10-batches-bin", "cifar-10-batches-py"):
        (tmp_path / name).mkdir()
    cifar10_python(tmp_path / "cifar-10-batches-py", dump=dump)
    python = cifar10.load(tmp_path, 2, 0)
    assert python.digest == cifar10.load(tmp_path / "cifar-10-batches-py", 2, 0).digest
    cifar10_binary(tmp_path / "cifar-10-batches-bin")
    assert python.digest == cifar10.load(tmp_path / "cifar-10-batches-bin", 2, 0).digest
    assert python.digest == cifar10.load(tmp_path, 2, 0).digest


def test_keys_may_be_text(tmp_path):
    cifar10_python(tmp_path)
    digest = cifar10.load(tmp_path, 2, 0).digest
    cifar10_python(tmp_path, dump=lambda batch: pickle.dumps({key.decode(): value for key, value in batch.items()}, 4))
    assert cifar10.load(tmp_path, 2, 0).digest == digest


def test_folders_without_the_files_are_refused(tmp_path, refusal):
    assert refusal(cifar10.load, tmp_path / "none", 1, 0) == ": must be a folder"
    needed = ": must hold data_batch_1.bin to data_batch_5.bin, or data_batch_1 to data_batch_5"
    assert refusal(cifar10.load, tmp_path, 1, 0) == needed
    cifar10_binary(tmp_path)
    assert refusal(cifar10.load, tmp_path, 21, 0) == ": examples_per_client must be between 1 and 20, not 21"
    (tmp_path / "data_batch_4.bin").unlink()
    assert refusal(cifar10.load, tmp_path, 1, 0) == "data_batch_4.bin: No such file or directory"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (bytes(3072), "truncated or damaged: must have 3073 bytes an image, not 3072 bytes"),
        (bytes(3074), "truncated or damaged: must have 3073 bytes an image, not 3074 bytes"),
        (bytes(3073) + b"\x0a" + bytes(3072), "label 1: must be a whole number from 0 to 9, not 10"),
        (bytes(2**26 + 1), "must have at most 67108864 bytes"),
    ],
)
def test_damaged_binary_batches_are_refused(tmp_path, refusal, content, said):
    cifar10_binary(tmp_path)
    (tmp_path / "data_batch_3.bin").write_bytes(content)
    assert refusal(cifar10.load, tmp_path, 1, 0) == f"data_batch_3.bin: {said}"


IMAGES = np.zeros((2, 3072), np.uint8)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ([], "must be a pickled dictionary"),
        ({}, "data: must be an array of bytes, 3072 an image"),
        ({"data": [1], "labels": [1]}, "data: must be an array of bytes"),
        ({"data": IMAGES[:, 1:], "labels": [1, 2]}, "data: must be an array of bytes"),
        ({"data": IMAGES[0], "labels": [1, 2]}, "data: must be an array of bytes"),
        ({"data": IMAGES.astype(np.int8), "labels": [1, 2]}, "data: must be an array of bytes"),
        ({"data": IMAGES}, "labels: must be a list with one for each of 2 images, not 0"),
        ({"data": IMAGES, "labels": [1]}, "labels: must be a list with one for each of 2 images"),
        ({"data": IMAGES[:0], "labels": []}, "labels: must be a list with one for each of 0 images, not 0"),
        ({"data": IMAGES, "labels": IMAGES[:, 0]}, "labels: must be a list"),
        ({"data": IMAGES, "labels": [1, -1]}, "label 1: must be a whole number from 0 to 9, not -1"),
        ({"data": IMAGES, "labels": [True, 1]}, "label 0: must be a whole number from 0 to 9, not bool"),
        ({"data": IMAGES, "labels": [b"1", 1]}, "label 0: must be a whole number from 0 to 9, not bytes"),
        ({"data": IMAGES, "labels": [1, [1]]}, "label 1: must be a whole number from 0 to 9, not list"),
        ({"data": IMAGES, "labels": [np.int64(1), 1]}, "byte "),
        ({"data": IMAGES, "labels": [1.0, 1]}, "byte "),
    ],
)
def test_damaged_python_batches_are_refused(tmp_path, refusal, batch, said):
    cifar10_python(tmp_path)
    (tmp_path / "test_batch").write_bytes(pickle.dumps(batch, 4))
    assert refusal(cifar10.load, tmp_path, 1, 0).startswith(f"test_batch: {said}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_bytes_are_read_or_refused(tmp_path, data):
    suffix = data.draw(st.sampled_from(["", ".bin"]))
    (cifar10_binary if suffix else cifar10_python)(tmp_path, images=1)
    path = tmp_path / f"data_batch_2{suffix}"
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(content)
    with suppress(InputError):
        cifar10.load(tmp_path, 1, 0)
    for each in tmp_path.iterdir():
        each.unlink()
