"""CIFAR-10 (Krizhevsky 2009) in its binary and its Python distribution.

Both are as its home page, cs.toronto.edu/~kriz/cifar.html, describes them: six batches, five of them for training. An
image is 3,072 bytes, the red plane, the green and the blue, each by rows; its label is a number from 0 to 9. A binary
batch has a byte of label before each image. A Python batch is a pickled dictionary with the images as ``data`` and the
labels as ``labels``, which ``pickles`` reads and Python's unpickler never sees.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.files.reading import InputError, opened
from canaryproof.verify.training.data import pickles
from canaryproof.verify.training.data.federation import Federation, equal_lots
from canaryproof.verify.training.data.files import read_one_more

_SIDE, _CHANNELS, _CLASSES = 32, 3, 10
_IMAGE = _CHANNELS * _SIDE**2
_TRAINING = tuple(f"data_batch_{i}" for i in range(1, 6))
_TEST = "test_batch"

_Batch = tuple[NDArray[np.uint8], NDArray[np.int32]]


def load(folder: Path, examples_per_client: int, seed: int) -> Federation:
    """Read the images and their classes, and deal them out to clients.

    Parameters
    ----------
    folder
        Holds ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``, or else, of the Python distribution,
        ``data_batch_1`` to ``data_batch_5`` and ``test_batch``; or the folder ``cifar-10-batches-bin`` or
        ``cifar-10-batches-py`` with them, as the archives do.
    examples_per_client
        Number of examples of each client, ≥ 1.
    seed
        Decides which client gets which examples: equal lots of a shuffled order, so that all clients' examples have
        one law. What remains is left out.

    Returns
    -------
    The federation, named ``cifar10``.

    Raises
    ------
    InputError
        If a file is missing, cannot be read or breaks a rule.
    """
    place, suffix, read = _found(folder)
    images, labels = (
        np.concatenate(part) for part in zip(*(read(place / f"{name}{suffix}") for name in _TRAINING), strict=True)
    )
    test_images, test_labels = read(place / f"{_TEST}{suffix}")
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


def _found(folder: Path) -> tuple[Path, str, Callable[[Path], _Batch]]:
    """Return where the batches are, how their names end, and who reads them."""
    if not folder.is_dir():
        raise InputError(f"{folder}: must be a folder")
    readers: tuple[tuple[str, str, Callable[[Path], _Batch]], ...] = (
        ("cifar-10-batches-bin", ".bin", _read_binary),
        ("cifar-10-batches-py", "", _read_pickled),
    )
    for inner, suffix, read in readers:
        for place in (folder, folder / inner):
            if (place / f"{_TRAINING[0]}{suffix}").exists():
                return place, suffix, read
    raise InputError(f"{folder}: must hold data_batch_1.bin to data_batch_5.bin, or data_batch_1 to data_batch_5")


def _content(path: Path) -> bytes:
    with opened(path) as file:
        content = read_one_more(file, pickles.LARGEST)
        if len(content) > pickles.LARGEST:
            raise ValueError(f"must have at most {pickles.LARGEST} bytes")
        return bytes(content)


def _read_binary(path: Path) -> _Batch:
    content = _content(path)
    if len(content) % (1 + _IMAGE):
        raise InputError(
            f"{path}: truncated or damaged: must have {1 + _IMAGE} bytes an image, not {len(content)} bytes"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, 1 + _IMAGE)
    return records[:, 1:], _checked(path, records[:, 0].tolist())


def _read_pickled(path: Path) -> _Batch:
    try:
        batch = pickles.load(_content(path))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    data, labels = batch.get("data"), batch.get("labels")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != _IMAGE:
        raise InputError(f"{path}: data: must be an array of bytes, {_IMAGE} an image")
    if not isinstance(labels, list) or len(labels) != len(data) or not labels:
        raise InputError(f"{path}: labels: must be a list with one for each of {len(data)} images, not 0")
    return data, _checked(path, labels)


def _checked(path: Path, labels: list[Any]) -> NDArray[np.int32]:
    for i, label in enumerate(labels):
        if type(label) is not int or not 0 <= label < _CLASSES:
            said = str(label) if type(label) is int else type(label).__name__
            raise InputError(f"{path}: label {i}: must be a whole number from 0 to {_CLASSES - 1}, not {said}")
    return np.array(labels, dtype=np.int32)


def _scaled(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    planes = images.reshape(-1, _CHANNELS, _SIDE, _SIDE)
    return np.divide(planes.transpose(0, 2, 3, 1), np.float32(255), order="C")
