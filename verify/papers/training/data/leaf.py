"""Data sets of LEAF (Caldas et al., arXiv 1812.01097) in JSON: FEMNIST, Shakespeare, Sent140 and CelebA.

A file is an object with a list ``users``, a list ``num_samples`` and an object ``user_data`` that has two lists for
each user, ``x`` and ``y``. So LEAF's repository, TalwalkarLab/leaf, says and writes it. Its split by sample leaves
users in ``user_data`` whom it took from ``users``; they don't count. Of Shakespeare it leaves out the 79 examples
for testing that overlap with the last one for training, and counts them in ``num_samples`` all the same
(data/utils/split_data.py).

CelebA's files (Liu et al. 2015) name images, which stay in a folder ``img_align_celeba`` (data/celeba/README.md there)
and are read when they are asked for. CANIFE's code (FLSim/examples/canary_example.py of facebookresearch/canife) scales
an image until its shorter side has 32 pixels and cuts the middle out. So does this module. LEAF's own code squeezes
it into 84 × 84.
"""

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.audit.files import checkpoint
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import content, open_file, parsing, read_json
from canaryproof.verify.papers.training.data.federation import (
    Examples,
    FederatedData,
    Federation,
    first_examples,
    held_out,
)
from canaryproof.verify.papers.training.data.files import LARGEST, in_folder, inside
from canaryproof.verify.papers.training.data.tokens import SHAKESPEARE, TWEETS, Vocabulary, glove_file, read_glove

_Users = list[tuple[list[str], list[int]]]

_SIDE = 28
_WRITTEN_CLASSES = 62
_TEXT_OF_TWEET = 4
_OVERLAPPING = 79


def load(folder: Path, length: int = 80, side: int = 84) -> FederatedData:
    """Read one of LEAF's data sets; what an example looks like tells which.

    The folder holds the folders ``train`` and ``test`` with ``.json`` files, the test users being the same (LEAF's
    split by sample) or others (by user). Or it holds such files, themselves or in a folder ``all_data``. Then the last
    tenth of each user's examples, rounded down, is held out. In Shakespeare examples overlap, and these have nearly
    been seen. Sent140's may be accompanied by a file of GloVe's, CelebA's must be by the images.

    An example of text has ``length`` tokens: of Shakespeare the last characters, or all after padding; LEAF cuts it
    into 80. CelebA's images are brought to ``side`` pixels.

    Every user of the training part is a client. FEMNIST has 62 classes. In Shakespeare the label is the one character
    that follows, of 80. In Sent140 it is 1 for a positive tweet and 0 for another, in CelebA 1 for a smile.
    """
    if length < 1:
        raise InputError(f"{folder}: length must be at least 1, not {length}")
    if (folder / "train").is_dir():
        name, training = _read_leaf(folder, "train")
        test_name, test = _read_leaf(folder, "test")
        if test_name != name:
            raise InputError(f"{folder}: train and test must be of one data set, not {name} and {test_name}")
    else:
        name, users = _read_leaf(folder, "all_data" if (folder / "all_data").is_dir() else "")
        training, test = held_out(users)
        if not test:
            raise InputError(f"{folder}: must have a folder test, or a user with ten examples")
    if name == "celeba":
        return celeba(folder, training, test, side)
    if name == "sent140":
        return sent140(folder, training, test, length)
    if name == "femnist":
        return Federation.of(name, training, test, _WRITTEN_CLASSES)

    vocabulary = Vocabulary(SHAKESPEARE)

    def as_tokens(user: tuple[list[str], list[str]]) -> Examples:
        texts, labels = user
        tokens = vocabulary.tokens("".join(text[-length:].rjust(length, "\0") for text in texts))
        return tokens.reshape(-1, length), vocabulary.tokens("".join(labels))

    return Federation.of(name, map(as_tokens, training), map(as_tokens, test), len(vocabulary), len(vocabulary))


def _read_leaf(data: Path, inner: str) -> tuple[str, list[tuple[Any, Any]]]:
    """Return the name of the data set in an inner folder, and its users' examples as lists of inputs and labels."""
    folder = data / inner
    paths = in_folder(folder, "*.json", data)
    if not paths:
        raise InputError(f"{folder}: must hold .json files")
    names, users, examples = set(), set(), []
    for path in paths:
        for user, x, y in _users(path):
            try:
                name = _form(x[0])
                examples.append(_FORMS[name](x, y))
            except ValueError as error:
                raise InputError(f"{path}: user {user[:60]!r}: {error}") from error
            if user in users:
                raise InputError(f"{path}: user {user[:60]!r}: must be named once")
            names.add(name)
            users.add(user)
    if len(names) > 1:
        raise InputError(f"{folder}: must hold one data set, not {', '.join(sorted(names))}")
    return names.pop(), examples


def _users(path: Path) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Yield each user of a file with the lists x and y, which have one length, not 0."""
    document = _parsed(path)
    users, counts, data = (document.get(key) for key in ("users", "num_samples", "user_data"))
    if not isinstance(users, list) or not isinstance(counts, list) or not isinstance(data, dict):
        raise InputError(f"{path}: must be an object with lists users and num_samples and an object user_data")
    if len(users) != len(counts) or not users:
        raise InputError(f"{path}: users and num_samples must have one length, not 0: {len(users)} and {len(counts)}")
    for user, count in zip(users, counts, strict=True):
        if not isinstance(user, str) or not isinstance(data.get(user), dict):
            raise InputError(f"{path}: user {str(user)[:60]!r}: user_data must have an object for each user")
        x, y = data[user].get("x"), data[user].get("y")
        if not isinstance(x, list) or not isinstance(y, list):
            raise InputError(f"{path}: user {user[:60]!r}: must have lists x and y")
        counted = (len(y), len(y) + _OVERLAPPING) if x and _form(x[0]) == "shakespeare" else (len(y),)
        if len(x) != len(y) or count not in counted or not x:
            raise InputError(
                f"{path}: user {user[:60]!r}: x, y and num_samples must be of one length, not 0: "
                f"{len(x)}, {len(y)} and {str(count)[:20]}"
            )
        yield user, x, y


def _parsed(path: Path) -> dict[str, Any]:
    document = read_json(path, LARGEST, LARGEST)
    if not isinstance(document, dict):
        raise InputError(f"{path}: must be an object")
    return document


def _form(example: Any) -> str:
    """Tell by an example what data set it is from."""
    if isinstance(example, str):
        return "celeba" if example.lower().endswith((".jpg", ".jpeg", ".png")) else "shakespeare"
    return "sent140" if isinstance(example, list) and example and isinstance(example[0], str) else "femnist"


def _images(x: list[Any], y: list[Any]) -> Examples:
    rule = f"x must be lists of {_SIDE**2} numbers between 0 and 1"
    try:
        pixels = np.array(x)
    except ValueError as error:
        raise ValueError(rule) from error
    if pixels.dtype.kind not in "fi" or pixels.shape != (len(x), _SIDE**2):
        raise ValueError(rule)
    if not ((pixels >= 0.0) & (pixels <= 1.0)).all():
        raise ValueError(rule)
    images = pixels.astype(np.float32).reshape(-1, _SIDE, _SIDE, 1)
    return images, np.array(_classes(y, _WRITTEN_CLASSES), dtype=np.int32)


def _texts(x: list[Any], y: list[Any]) -> tuple[list[str], list[str]]:
    if not all(isinstance(text, str) for text in x):
        raise ValueError("x must be strings")
    if not all(isinstance(character, str) and len(character) == 1 for character in y):
        raise ValueError("y must be single characters")
    return x, y


def _tweets(x: list[Any], y: list[Any]) -> tuple[list[str], list[int]]:
    for fields in x:
        if not isinstance(fields, list) or len(fields) <= _TEXT_OF_TWEET or not isinstance(fields[_TEXT_OF_TWEET], str):
            raise ValueError("x must be lists of strings: id, date, query, user and text")
    return [fields[_TEXT_OF_TWEET] for fields in x], _classes(y, 2)


def _faces(x: list[Any], y: list[Any]) -> tuple[list[str], list[int]]:
    for image in x:
        if not isinstance(image, str) or not NAME.fullmatch(image):
            raise ValueError(f"x must be names of images such as 000001.jpg, not {str(image)[:60]!r}")
    # LEAF halves them, so that they are 0.0 and 1.0.
    return x, _classes([int(label) if label in (0.0, 1.0) and type(label) is float else label for label in y], 2)


def _classes(y: list[Any], classes: int) -> list[int]:
    for label in y:
        if type(label) is not int or not 0 <= label < classes:
            raise ValueError(f"y must be whole numbers from 0 to {classes - 1}, not {str(label)[:20]}")
    return y


_FORMS: dict[str, Callable[[list[Any], list[Any]], tuple[Any, Any]]] = {
    "femnist": _images,
    "shakespeare": _texts,
    "sent140": _tweets,
    "celeba": _faces,
}


# LEAF's words, and CANIFE's: models/utils/language_utils.py of TalwalkarLab/leaf, canife/utils.py of
# facebookresearch/canife. Upper case counts in both, although GloVe's words have none.
_WORD = re.compile(r"[\w']+|[.,!?;]")


def sent140(folder: Path, training: _Users, test: _Users, length: int) -> Federation:
    """Make tweets into tokens: words with a vector, or characters.

    If the folder or the one above has a file of GloVe's vectors, tokens are words with these, as in LEAF. Token 0 is
    any other word and the padding. Otherwise they are the 101 of ``TWEETS``, of the words' characters, as in CANIFE's
    code; what is between the words is left out. The first ``length`` tokens are taken, with padding behind, as in both:
    LEAF takes 25 words, CANIFE's configuration 25 characters.
    """
    path = glove_file(folder)
    if path is None:
        vocabulary = Vocabulary(TWEETS)

        def spelt(texts: list[str]) -> NDArray[np.int32]:
            rows = ("".join(_WORD.findall(text))[:length].ljust(length, "\0") for text in texts)
            return vocabulary.tokens("".join(rows)).reshape(-1, length)

        return _tweeted(training, test, spelt, len(vocabulary))

    tweets = chain.from_iterable(texts for texts, _ in chain(training, test))
    tokens, vectors = read_glove(path, {word for tweet in tweets for word in _words(tweet, length)})

    def read(texts: list[str]) -> NDArray[np.int32]:
        rows = np.zeros((len(texts), length), dtype=np.int32)
        for row, text in zip(rows, texts, strict=True):
            known = [tokens.get(word, 0) for word in _words(text, length)]
            row[: len(known)] = known
        return rows

    return replace(_tweeted(training, test, read, len(vectors)), vectors=vectors)


def _words(tweet: str, length: int) -> list[str]:
    return [match.group() for match in islice(_WORD.finditer(tweet), length)]


def _tweeted(training: _Users, test: _Users, read: Callable[[list[str]], NDArray[np.int32]], tokens: int) -> Federation:
    def examples(user: tuple[list[str], list[int]]) -> Examples:
        texts, labels = user
        return read(texts), np.array(labels, dtype=np.int32)

    return Federation.of("sent140", map(examples, training), map(examples, test), 2, tokens)


_FOLDER = "img_align_celeba"
# No path leads out of the folder by such a name.
NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,99}\.(?:jpg|jpeg|png)", re.IGNORECASE)
# CelebA's aligned images are 178 × 218, of a hundredth of these bytes; bounds what a hostile one can cost.
_LARGEST_FILE = 2**20
_SHORTEST, _LONGEST = 16, 1024
# Bytes of held-out images: a tenth of CelebA's at 84 × 84 has 1.7 GB.
_LARGEST_TEST = 2**31


@dataclass(frozen=True)
class ImageFolder:
    """Images that are read from their files when a cohort is asked for; attributes are those of ``Federation``."""

    folder: Path
    images: list[str]  # names of their files, one client's after another's
    labels: NDArray[np.int32]
    starts: NDArray[np.int64]
    test_inputs: NDArray[np.float32]
    test_labels: NDArray[np.int32]
    test_starts: NDArray[np.int64]
    side: int  # width and height to which they are brought
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
        hashed = hashlib.sha256()
        for name in self.images:
            hashed.update(_content(self.folder / name))
        tables = checkpoint.digest(self.labels, self.starts, self.test_inputs, self.test_labels)
        return f"{tables} {hashed.hexdigest()}"

    def cohort(
        self, clients: ArrayLike, examples: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float32]]:
        """Return the same number of examples of each of some clients, as ``Federation.cohort``."""
        chosen, there = first_examples(self.starts, clients, examples)
        needed, positions = np.unique(chosen, return_inverse=True)
        images = _read(self.folder, [self.images[i] for i in needed], self.side)
        return _scaled(images[positions.reshape(chosen.shape)]), self.labels[chosen], there


def celeba(folder: Path, training: _Users, test: _Users, side: int) -> ImageFolder:
    """Find the images of LEAF's users in ``img_align_celeba`` or ``raw/img_align_celeba``.

    Held-out images are in memory: those of the first clients, as many as have 2 GB, and of one client at least.
    """
    source = next((candidate for inner in ("", "raw") if (candidate := folder / inner / _FOLDER).is_dir()), None)
    if source is None:
        raise InputError(f"{folder}: must hold a folder {_FOLDER}, or raw/{_FOLDER}, with the images")
    _check_present(folder, inside(folder, source), training + test)
    counts = np.cumsum([len(labels) for _, labels in test])
    held = max(1, int(np.searchsorted(counts, _LARGEST_TEST // (12 * side**2), side="right")))
    images, labels, starts = _joined(training)
    test_images, test_labels, test_starts = _joined(test[:held])
    test_inputs = _scaled(_read(source, test_images, side))
    return ImageFolder(source, images, labels, starts, test_inputs, test_labels, test_starts, side)


def _check_present(folder: Path, images: Path, users: _Users) -> None:
    with os.scandir(images) as listing:
        entries = {entry.name: entry for entry in listing}
    for names, _ in users:
        for name in names:
            if name not in entries:
                raise InputError(f"{images}: must hold the image {name}, which a user of the JSON files has")
            if entries[name].is_symlink():
                inside(folder, images / name)


def _joined(users: _Users) -> tuple[list[str], NDArray[np.int32], NDArray[np.int64]]:
    names = [name for images, _ in users for name in images]
    labels = np.array([label for _, classes in users for label in classes], dtype=np.int32)
    return names, labels, np.cumsum([0, *(len(classes) for _, classes in users)])


def _read(source: Path, names: list[str], side: int) -> NDArray[np.uint8]:
    images = np.empty((len(names), side, side, 3), dtype=np.uint8)
    for i, name in enumerate(names):
        images[i] = _decoded(source / name, side)
    return images


def _scaled(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.divide(images, np.float32(255))


def _content(path: Path) -> bytes:
    with open_file(path) as file:
        return bytes(content(file, _LARGEST_FILE))


def _decoded(path: Path, side: int) -> NDArray[np.uint8]:
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("celeba: needs pillow, of the extra federated") from error
    file = io.BytesIO(_content(path))
    try:
        with parsing("JPEG or PNG"):
            # Pillow has decoders for dozens of other formats.
            image = Image.open(file, formats=("JPEG", "PNG"))
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
