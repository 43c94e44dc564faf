from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_images import BATCHES, cifar10_batches, cifar10_binary

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training.data import cifar10


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


def test_the_archive_s_own_folder_may_be_inside(tmp_path):
    inner = tmp_path / "cifar-10-batches-bin"
    inner.mkdir()
    cifar10_binary(inner)
    assert cifar10.load(tmp_path, 2, 0).digest == cifar10.load(inner, 2, 0).digest


def test_the_python_distribution_is_refused_and_never_read(tmp_path, refusal):
    said = (
        ": holds CIFAR-10's Python distribution; the binary one is needed, data_batch_1.bin to data_batch_5.bin "
        "(docs/data.md says where it is)"
    )
    inner = tmp_path / "cifar-10-batches-py"
    inner.mkdir()
    (inner / "data_batch_1").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    assert refusal(cifar10.load, tmp_path, 1, 0) == refusal(cifar10.load, inner, 1, 0) == said
    # Of both, the binary one is read.
    cifar10_binary(tmp_path)
    assert cifar10.load(tmp_path, 1, 0).clients == 20


def test_folders_without_the_files_are_refused(tmp_path, refusal):
    assert refusal(cifar10.load, tmp_path / "none", 1, 0) == ": must be a folder"
    assert refusal(cifar10.load, tmp_path, 1, 0) == ": must hold data_batch_1.bin to data_batch_5.bin"
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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_bytes_are_read_or_refused(tmp_path, data):
    cifar10_binary(tmp_path, images=1)
    path = tmp_path / "data_batch_2.bin"
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(content)
    with suppress(InputError):
        cifar10.load(tmp_path, 1, 0)
    for each in tmp_path.iterdir():
        each.unlink()
