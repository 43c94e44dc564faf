"""CIFAR-10 (Krizhevsky 2009) in its binary distribution.

Its home page, cs.toronto.edu/~kriz/cifar.html, describes it: six batches, five of them for training. An image is a byte
of label, 0 to 9, and 3,072 bytes: the red plane, the green and the blue, each by rows. The Python distribution holds
the same images in pickles, which are not read.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import content, open_file
from canaryproof.verify.papers.training.data.federation import Federation, equal_lots
from canaryproof.verify.papers.training.data.files import inside

_SIDE, _CHANNELS, _CLASSES = 32, 3, 10
_IMAGE = _CHANNELS * _SIDE**2
_TRAINING = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
_TEST = "test_batch.bin"
# Twice a batch of 10,000 images.
_LARGEST = 2**26


def load(folder: Path, examples_per_client: int, seed: int) -> Federation:
    """Read the images and their classes, and deal them out to clients in equal lots of an order that ``seed`` shuffles.

    The folder holds the batches, or the archive's folder ``cifar-10-batches-bin`` with them; another is refused by an
    ``InputError``, as is a damaged file. Images that remain are left out.
    """
    batches = _folder_of(folder)
    *training, (test_images, test_labels) = (_read(inside(folder, batches / name)) for name in (*_TRAINING, _TEST))
    images, labels = (np.concatenate(part) for part in zip(*training, strict=True))
    try:
        order, starts = equal_lots(len(images), examples_per_client, seed)
    except ValueError as error:
        raise InputError(f"{folder}: {error}") from error
    return Federation(
        name="cifar10",
        inputs=_scaled(images[order]),
        labels=labels[order],
        starts=starts,
        test_inputs=_scaled(test_images),
        test_labels=test_labels,
        classes=_CLASSES,
    )


def _folder_of(folder: Path) -> Path:
    """Return where the batches are."""
    if not folder.is_dir():
        raise InputError(f"{folder}: must be a folder")
    for inner in (folder, folder / "cifar-10-batches-bin"):
        if (inner / _TRAINING[0]).exists():
            return inner
    if any((inner / "data_batch_1").exists() for inner in (folder, folder / "cifar-10-batches-py")):
        raise InputError(
            f"{folder}: holds CIFAR-10's Python distribution; the binary one is needed, data_batch_1.bin to "
            "data_batch_5.bin (docs/data.md says where it is)"
        )
    raise InputError(f"{folder}: must hold data_batch_1.bin to data_batch_5.bin")


def _read(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    with open_file(path) as file:
        contents = content(file, _LARGEST)
    if len(contents) % (1 + _IMAGE):
        raise InputError(
            f"{path}: truncated or damaged: must have {1 + _IMAGE} bytes an image, not {len(contents)} bytes"
        )
    records = np.frombuffer(contents, np.uint8).reshape(-1, 1 + _IMAGE)
    labels = records[:, 0].astype(np.int32)
    for i in np.flatnonzero(labels >= _CLASSES)[:1]:
        raise InputError(f"{path}: label {i}: must be a whole number from 0 to {_CLASSES - 1}, not {labels[i]}")
    return records[:, 1:], labels


def _scaled(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    planes = images.reshape(-1, _CHANNELS, _SIDE, _SIDE)
    return np.divide(planes.transpose(0, 2, 3, 1), np.float32(255), order="C")
