"""Federated EMNIST and StackOverflow as TensorFlow Federated releases them, in HDF5 or SQLite.

Federated EMNIST (tensorflow_federated's ``simulation/datasets/emnist.py``) is that of LEAF's writers. 3,400 have
671,585 images for training and 77,483 for testing in 62 classes. For the digits alone there are 3,383 writers with
341,873 and 40,832 in 10 classes. Every writer has images in both parts. Pixels are between 0 and 1, with 1 for the
background. Andrew et al. print 3,383 users; the task ``emnist_character`` of their code (google-research/federated,
``one_shot_epe/train.py``) has the 62 classes and 3,400 users by default.

StackOverflow (``simulation/datasets/stackoverflow.py`` there) has 342,477 users with 135,818,730 sentences of before
2018 for training, and 204,088 users with 16,586,035 of later for testing. A third part of held-out users is not read,
as in Reddi et al.'s code.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.audit.files import checkpoint
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training.data import tokens
from canaryproof.verify.papers.training.data.federation import Examples, StreamedFederation
from canaryproof.verify.papers.training.data.files import inside
from canaryproof.verify.papers.training.data.tokens import Words

WORD_COUNTS = "stackoverflow.word_count"
# Andrew et al.'s code validates on so many of StackOverflow's test examples (google-research/federated,
# one_shot_epe/train.py, num_validation_examples).
VALIDATION = 10_000
# Some more images than EMNIST has for testing.
_MOST_HELD_OUT = 100_000


class Split(Protocol):
    """Examples of clients as they are in a file."""

    @property
    def path(self) -> Path: ...  # noqa: D102
    @property
    def ids(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def digest(self) -> str: ...  # noqa: D102
    def images(self, client: int, most: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...  # noqa: D102
    def sentences(self, client: int, most: int) -> Iterable[bytes]: ...  # noqa: D102


@dataclass(frozen=True)
class _Release:
    """Names of a release's files for training and testing, and of the splits in them if it is SQLite."""

    files: tuple[str, str]
    classes: int | None
    splits: tuple[str, str] | None = None


_RELEASES = (
    _Release(("fed_emnist_train.h5", "fed_emnist_test.h5"), 62),
    _Release(("fed_emnist_digitsonly_train.h5", "fed_emnist_digitsonly_test.h5"), 10),
    _Release(("emnist_all.sqlite", "emnist_all.sqlite"), 62, ("all_train", "all_test")),
    _Release(("stackoverflow_train.h5", "stackoverflow_test.h5"), None),
    _Release(("stackoverflow.sqlite", "stackoverflow.sqlite"), None, ("train", "test")),
)
_PACKED = re.compile(r"(?:(?:fed_)?emnist|stackoverflow).*\.(?P<suffix>lzma|tar\.bz2)")
_UNPACK = {"lzma": "unlzma", "tar.bz2": "tar -xjf"}


@dataclass(frozen=True)
class Images:
    """Images of clients."""

    split: Split
    classes: int

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.split.ids)

    @property
    def digest(self) -> str:
        """A text that only equal images have."""
        return self.split.digest

    def read(self, client: int, most: int) -> Examples:
        """Return a client's first images, shape (images, 28, 28, 1), and labels."""
        pixels, labels = self.split.images(client, most)
        path = f"{self.split.path}: client {self.split.ids[client][:60]!r}"
        # NaN is not between either.
        if not ((pixels >= 0.0) & (pixels <= 1.0)).all():
            raise InputError(f"{path}: pixels must be between 0 and 1")
        if not ((labels >= 0) & (labels < self.classes)).all():
            raise InputError(f"{path}: label must be from 0 to {self.classes - 1}")
        return pixels[..., np.newaxis], labels.astype(np.int32)


@dataclass(frozen=True)
class Sentences:
    """Sentences of clients; ``length`` is that of ``Words.examples``."""

    split: Split
    words: Words
    length: int

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.split.ids)

    @property
    def digest(self) -> str:
        """A text that only equal sentences have."""
        return f"{self.split.digest} {self.length} {checkpoint.digest(tokens.as_array(self.words))}"

    def read(self, client: int, most: int) -> Examples:
        """Return a client's first sentences as inputs and labels, shape (sentences, length)."""
        return self.words.examples(self.split.sentences(client, most), self.length)


def load(folder: Path, length: int, count: int) -> StreamedFederation:
    """Open a release; clients' examples stay in its files until they are asked for.

    The folder holds one release, unpacked: two files ``…_train.h5`` and ``…_test.h5``, or ``emnist_all.sqlite``, of
    which the 62 classes are read, or ``stackoverflow.sqlite``; for StackOverflow also ``stackoverflow.word_count``. A
    sentence has ``length`` words, of a vocabulary of ``count``.

    Clients are in the order of their names. All of EMNIST's test images are held out. Of StackOverflow's test sentences
    10,000 are held out, by the rule of the authors' code. It takes the users in the order in which numpy's
    ``RandomState(0)`` shuffles the sorted names, each with all sentences (google-research/federated,
    ``one_shot_epe/train.py``; ``create_tf_dataset_from_all_clients`` in TFF's ``client_data.py``).
    """
    release = _release_of(folder)
    if release.classes is None:
        # Before the clients, whose reading takes longer.
        vocabulary = tokens.read_words(_there(folder, WORD_COUNTS), count)
        train, test = (Sentences(_split(folder, release, i), vocabulary, length) for i in (0, 1))
        order = list(range(test.clients))
        np.random.RandomState(0).shuffle(order)
        held_out = _held_out(test, order, VALIDATION)
        return StreamedFederation(
            "stackoverflow",
            train,
            (held_out[0][:1], held_out[1][:1]),
            *held_out[:2],
            classes=len(vocabulary),
            vocabulary=len(vocabulary),
            test_starts=held_out[2],
            unscored=vocabulary.unscored,
        )
    images, test_images = (Images(_split(folder, release, i), release.classes) for i in (0, 1))
    inputs, labels, starts = _held_out(test_images, range(test_images.clients), _MOST_HELD_OUT + 1)
    if len(labels) > _MOST_HELD_OUT:
        raise InputError(f"{test_images.split.path}: must have at most {_MOST_HELD_OUT} images")
    return StreamedFederation(
        "federated_emnist", images, (inputs[:1], labels[:1]), inputs, labels, release.classes, test_starts=starts
    )


def _release_of(folder: Path) -> _Release:
    if not folder.is_dir():
        raise InputError(f"{folder}: must be a folder")
    names = {path.name for path in folder.iterdir()}
    releases = [release for release in _RELEASES if names & set(release.files)]
    if len(releases) == 1:
        for name in releases[0].files:
            _there(folder, name)
        return releases[0]
    if releases:
        raise InputError(f"{folder}: must hold one release, not {', '.join(release.files[0] for release in releases)}")
    for name in sorted(names):
        if match := _PACKED.fullmatch(name):
            raise InputError(
                f"{folder / name}: must be unpacked by {_UNPACK[match['suffix']]}, to be read at any place"
            )
    known = sorted({name for release in _RELEASES for name in release.files})
    raise InputError(f"{folder}: must hold a release of TFF's, of files {', '.join(known)}")


def _there(folder: Path, name: str) -> Path:
    if (folder / name).is_file():
        return inside(folder, folder / name)
    packed = f", unpacked from {name}.tar.bz2 by tar -xjf" if (folder / f"{name}.tar.bz2").exists() else ""
    raise InputError(f"{folder}: must hold a file {name}{packed}")


def _split(folder: Path, release: _Release, part: int) -> Split:
    path = folder / release.files[part]
    module, library = ("tff_hdf5", "h5py") if release.splits is None else ("tff_sqlite", "protobuf")
    try:
        reader = import_module(f"canaryproof.verify.papers.training.data.{module}")
    except ImportError as error:
        raise InputError(f"{path}: needs {library}, of the extra federated") from error
    opened: Split = reader.split(path, *(() if release.splits is None else (release.splits[part],)))
    return opened


def _held_out(
    source: Images | Sentences, order: Iterable[int], most: int
) -> tuple[NDArray[np.float32] | NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Read the first examples of clients in some order: inputs, labels and where each client's begin."""
    parts: list[Examples] = []
    starts = [0]
    for client in order:
        parts.append(source.read(client, most - starts[-1]))
        starts.append(starts[-1] + len(parts[-1][1]))
        if starts[-1] >= most:
            break
    inputs, labels = (np.concatenate(kind) for kind in zip(*parts, strict=True))
    return inputs, labels, np.array(starts, np.int64)
