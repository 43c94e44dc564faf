"""IDX files: MNIST, Fashion-MNIST and EMNIST.

The format is LeCun's. It has a magic number, 0x00000803 for images and 0x00000801 for labels. The sizes of the axes
follow in 32 bits each, most significant byte first, then a byte for each pixel or label.

EMNIST's files (Cohen et al., arXiv 1702.05373) hold every image with its rows and columns exchanged, as TensorFlow
Datasets' page on EMNIST says; they are changed back here.
"""

import hashlib
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import read_one_more
from canaryproof.verify.papers.training.data.federation import Federation, equal_lots
from canaryproof.verify.papers.training.data.files import LARGEST, in_folder, inflated

# torchvision leaves the inflated files next to the gzipped ones, and some archives spell "images.idx3".
_NAME = re.compile(
    r"(?:(?P<emnist>emnist-[a-z]+)-)?(?P<part>train|test|t10k)-(?P<kind>images|labels)[-.]idx[13]-ubyte(?:\.gz)?"
)
_AXES = {"images": 3, "labels": 1}
# Letters are numbered from 1, so that class 0 stays empty.
_CLASSES = {
    "emnist-byclass": 62,
    "emnist-bymerge": 47,
    "emnist-balanced": 47,
    "emnist-letters": 27,
}

# Name of a federation of Fashion-MNIST; no folder that ``load`` names one after has such a name by accident.
FASHION = "Fashion-MNIST, files as published"

# MD5 of Fashion-MNIST's files without their compression. Packed anew they are the same data set in other bytes.
_FASHION = {
    ("train", "images"): "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    ("train", "labels"): "9018921c3c673c538a1fc5bad174d6f9",
    ("test", "images"): "8181f5470baa50b63fa0f6fddb340f0a",
    ("test", "labels"): "15d484375f8d13e6eb1aabb0c3f46965",
}


def load(folder: Path, examples_per_client: int, seed: int) -> Federation:
    """Read images and their classes, and deal them out to clients in equal lots of a shuffled order.

    The folder holds the four files of one data set under their usual names, gzipped or not:
    ``train-images-idx3-ubyte.gz``, ``t10k-labels-idx1-ubyte.gz``, and so on, or
    ``emnist-byclass-train-images-idx3-ubyte.gz``. The files don't tell who wrote what; LEAF's FEMNIST does. The
    federation is named ``FASHION`` if its files are Fashion-MNIST's, gzipped or not, else after the folder or EMNIST's
    part.
    """
    name, paths = _files_of(folder)
    classes = _CLASSES.get(name, 10)
    images, labels, is_fashion = _read_part(paths, "train", classes)
    test_images, test_labels, is_fashion_too = _read_part(paths, "test", classes)
    if test_images.shape[1:] != images.shape[1:]:
        raise InputError(
            f"{paths['test', 'images']}: images must be {_size(images)} as those for training, not {_size(test_images)}"
        )
    try:
        order, starts = equal_lots(len(images), examples_per_client, seed)
    except ValueError as error:
        raise InputError(f"{folder}: {error}") from error
    transposed = name.startswith("emnist-")
    return Federation(
        name=FASHION if is_fashion and is_fashion_too else name,
        inputs=_scaled(images[order], transposed),
        labels=labels[order],
        starts=starts,
        test_inputs=_scaled(test_images, transposed),
        test_labels=test_labels,
        classes=classes,
    )


def _files_of(folder: Path) -> tuple[str, dict[tuple[str, str], Path]]:
    """Return the data set's name, and its files by part and kind."""
    paths: dict[tuple[str, str], Path] = {}
    names = set()
    for path in in_folder(folder, "*-ubyte*"):
        if match := _NAME.fullmatch(path.name):
            part = "train" if match["part"] == "train" else "test"
            names.add(match["emnist"] or folder.resolve().name)
            # A name comes before the same name with .gz.
            paths.setdefault((part, match["kind"]), path)
    for part, usual in (("train", "train"), ("test", "t10k")):
        for kind, axes in _AXES.items():
            if (part, kind) not in paths:
                raise InputError(f"{folder}: must hold a file {usual}-{kind}-idx{axes}-ubyte, gzipped or not")
    if len(names) > 1:
        raise InputError(f"{folder}: must hold one data set, not {', '.join(sorted(names))}")
    return names.pop(), paths


def _read_part(
    paths: dict[tuple[str, str], Path], part: str, classes: int
) -> tuple[NDArray[np.uint8], NDArray[np.int32], bool]:
    """Return images, their classes, and whether both are Fashion-MNIST's."""
    images = _read(paths[part, "images"], 3)
    path = paths[part, "labels"]
    labels = _read(path, 1)
    if len(labels) != len(images):
        raise InputError(f"{path}: must have a label for each of {len(images)} images, not {len(labels)}")
    wrong = np.flatnonzero(labels >= classes)
    if len(wrong):
        raise InputError(f"{path}: label {wrong[0]}: must be below {classes}, not {labels[wrong[0]]}")
    digests = {(part, "images"): _digest(images), (part, "labels"): _digest(labels)}
    return images, labels.astype(np.int32), digests.items() <= _FASHION.items()


def _header(shape: Sequence[int]) -> bytes:
    return np.array([0x800 + len(shape), *shape], ">u4").tobytes()


def _digest(array: NDArray[np.uint8]) -> str:
    """Return the MD5 of the uncompressed file that holds an array."""
    hashed = hashlib.md5(_header(array.shape), usedforsecurity=False)
    hashed.update(array.tobytes())
    return hashed.hexdigest()


def _read(path: Path, axes: int) -> NDArray[np.uint8]:
    with inflated(path) as file:
        header = file.read(4 + 4 * axes)
        magic = 0x800 + axes
        if header[:4] != magic.to_bytes(4):
            raise ValueError(f"its magic number must be 0x{magic:08x}, not 0x{header[:4].hex()}")
        if len(header) < 4 + 4 * axes:
            raise ValueError("truncated: its header has no end")
        shape = tuple(int(size) for size in np.frombuffer(header, ">u4")[1:])
        count = math.prod(shape)
        declared = " × ".join(map(str, shape))
        if not 1 <= count <= LARGEST:
            raise ValueError(f"its header must declare 1 to {LARGEST} bytes, not {declared}")
        content = read_one_more(file, count)
        if len(content) != count:
            there = "more" if len(content) > count else str(len(content))
            raise ValueError(
                f"truncated or damaged: its header declares {declared} = {count} bytes, and {there} follow"
            )
    return np.frombuffer(content, np.uint8).reshape(shape)


def _size(images: NDArray[np.uint8]) -> str:
    return f"{images.shape[1]} × {images.shape[2]}"


def _scaled(images: NDArray[np.uint8], transposed: bool) -> NDArray[np.float32]:
    upright = images.swapaxes(1, 2) if transposed else images
    return np.divide(upright, np.float32(255), order="C")[..., np.newaxis]
