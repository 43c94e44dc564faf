"""CelebA (Liu et al. 2015) as LEAF has it: who smiles, a celebrity being a client.

LEAF's files name the images, which stay in a folder ``img_align_celeba`` (data/celeba/README.md of TalwalkarLab/leaf).
They are read when they are asked for. CANIFE's code (FLSim/examples/canary_example.py of facebookresearch/canife)
scales an image until its shorter side has 32 pixels and cuts the middle out, and so is it done here; LEAF's own
squeezes it into 84 × 84.
"""

import hashlib
import io
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.federated import checkpoint
from canaryproof.verify.federated.data.federation import Examples, first_examples
from canaryproof.verify.federated.data.files import read_one_more
from canaryproof.verify.input_files import InputError, opened, parsing

_FOLDER = "img_align_celeba"
# No path leads out of the folder by such a name.
NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,99}\.(?:jpg|jpeg|png)", re.IGNORECASE)
# CelebA's aligned images are 178 × 218, of a hundredth of these bytes; bounds what a hostile one can cost.
_LARGEST_FILE = 2**20
_SHORTEST, _LONGEST = 16, 1024
# Bytes of held-out images: a tenth of CelebA's at 84 × 84 has 1.7 GB.
_LARGEST_TEST = 2**31

_Users = list[tuple[list[str], list[int]]]


@dataclass(frozen=True)
class ImageFolder:
    """Images that are read from their files when a cohort is asked for; attributes are those of ``Federation``.

    Attributes
    ----------
    folder
        Where the images are.
    images
        Names of their files, one client's after another's.
    side
        Width and height to which they are brought.
    """

    folder: Path
    images: list[str]
    labels: NDArray[np.int32]
    starts: NDArray[np.int64]
    test_inputs: NDArray[np.float32]
    test_labels: NDArray[np.int32]
    test_starts: NDArray[np.int64]
    side: int
    name: str = field(default="celeba", init=False)
    classes: int = field(default=2, init=False)
    vocabulary: None = field(default=None, init=False)
    unscored: tuple[int, ...] = field(default=(), init=False)
    vectors: None = field(default=None, init=False)

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.starts) - 1

    @property
    def template(self) -> Examples:
        """One example's inputs and labels, of which shape and type alone count."""
        return self.test_inputs[:1], self.test_labels[:1]

    @cached_property
    def digest(self) -> str:
        """A text that only equal data has; every image's file is read for it."""
        found = hashlib.sha256()
        for name in self.images:
            found.update(_content(self.folder / name))
        tables = checkpoint.digest(self.labels, self.starts, self.test_inputs, self.test_labels)
        return f"{tables} {found.hexdigest()}"

    def cohort(
        self, clients: ArrayLike, examples: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float32]]:
        """Return the same number of examples of each of some clients, as ``Federation.cohort``.

        Raises
        ------
        InputError
            If an image cannot be read or breaks a rule.
        """
        chosen, there = first_examples(self.starts, clients, examples)
        needed, places = np.unique(chosen, return_inverse=True)
        images = _read(self.folder, [self.images[i] for i in needed], self.side)
        return _scaled(images[places.reshape(chosen.shape)]), self.labels[chosen], there


def federation(folder: Path, training: _Users, test: _Users, side: int) -> ImageFolder:
    """Find the images of LEAF's users.

    Parameters
    ----------
    folder
        Where the data set is; the images are there in ``img_align_celeba``, or in ``raw/img_align_celeba``.
    training, test
        Images' names and labels of each client, and of each that holds some out.
    side
        Width and height to which images are brought.

    Returns
    -------
    The federation, named ``celeba``. Held-out images are in memory: those of the first clients, as many as have
    2 GB, and of one client at least.

    Raises
    ------
    InputError
        If an image is missing, or one that is held out cannot be read or breaks a rule.
    """
    place = next((found for inner in ("", "raw") if (found := folder / inner / _FOLDER).is_dir()), None)
    if place is None:
        raise InputError(f"{folder}: must hold a folder {_FOLDER}, or raw/{_FOLDER}, with the images")
    _check_present(place, training + test)
    counts = np.cumsum([len(labels) for _, labels in test])
    held = max(1, int(np.searchsorted(counts, _LARGEST_TEST // (12 * side**2), side="right")))
    images, labels, starts = _joined(training)
    test_images, test_labels, test_starts = _joined(test[:held])
    test_inputs = _scaled(_read(place, test_images, side))
    return ImageFolder(place, images, labels, starts, test_inputs, test_labels, test_starts, side)


def _check_present(place: Path, users: _Users) -> None:
    root = place.resolve()
    entries = {entry.name: entry for entry in place.iterdir()}
    for names, _ in users:
        for name in names:
            if name not in entries:
                raise InputError(f"{place}: must hold the image {name}, which a user of the JSON files has")
            if entries[name].is_symlink() and entries[name].resolve().parent != root:
                raise InputError(f"{entries[name]}: must be a file in this folder, not a link out of it")


def _joined(users: _Users) -> tuple[list[str], NDArray[np.int32], NDArray[np.int64]]:
    names = [name for images, _ in users for name in images]
    labels = np.array([label for _, classes in users for label in classes], dtype=np.int32)
    return names, labels, np.cumsum([0, *(len(classes) for _, classes in users)])


def _read(place: Path, names: list[str], side: int) -> NDArray[np.uint8]:
    images = np.empty((len(names), side, side, 3), dtype=np.uint8)
    for i, name in enumerate(names):
        images[i] = _decoded(place / name, side)
    return images


def _scaled(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.divide(images, np.float32(255))


def _content(path: Path) -> bytes:
    with opened(path) as file:
        content = read_one_more(file, _LARGEST_FILE)
        if len(content) > _LARGEST_FILE:
            raise ValueError(f"must have at most {_LARGEST_FILE} bytes")
        return bytes(content)


def _decoded(path: Path, side: int) -> NDArray[np.uint8]:
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("celeba: needs pillow, of the extra canaryproof[federated]") from error
    content = io.BytesIO(_content(path))
    try:
        with parsing("JPEG or PNG"):
            # Pillow has decoders for dozens of other formats.
            image = Image.open(content, formats=("JPEG", "PNG"))
        width, height = image.size
        if not _SHORTEST <= min(width, height) <= max(width, height) <= _LONGEST:
            raise ValueError(f"its sides must have {_SHORTEST} to {_LONGEST} pixels, not {width} × {height}")
        # torchvision's sizes, whose resize and centre crop CANIFE's code takes.
        shorter = min(width, height)
        width, height = side * width // shorter, side * height // shorter
        left, top = round((width - side) / 2), round((height - side) / 2)
        with parsing("JPEG or PNG"):
            scaled = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
            return np.asarray(scaled.crop((left, top, left + side, top + side)))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    except MemoryError as error:
        raise InputError(f"{path}: does not fit in memory") from error
