"""Data sets of LEAF (Caldas et al., arXiv 1812.01097) in JSON: FEMNIST, Shakespeare, Sent140 and CelebA.

A file is an object with a list ``users``, a list ``num_samples`` and an object ``user_data`` that has two lists for
each user, ``x`` and ``y``: what LEAF's repository, TalwalkarLab/leaf, says and writes. Its split by sample leaves users
in ``user_data`` whom it took from ``users``; they don't count. Of Shakespeare it leaves out the 79 examples for testing
that overlap with the last one for training, and counts them in ``num_samples`` all the same (data/utils/split_data.py).
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from canaryproof.verify.federated.data import celeba, tweets
from canaryproof.verify.federated.data.characters import SHAKESPEARE, Vocabulary
from canaryproof.verify.federated.data.federation import Examples, FederatedData, Federation, held_out
from canaryproof.verify.federated.data.files import in_folder, read_text
from canaryproof.verify.input_files import InputError

_SIDE = 28
_WRITTEN_CLASSES = 62
_TEXT_OF_TWEET = 4
_OVERLAPPING = 79


def load(folder: Path, length: int = 80, side: int = 84) -> FederatedData:
    """Read one of LEAF's data sets; what an example looks like tells which.

    Parameters
    ----------
    folder
        Holds the folders ``train`` and ``test`` with ``.json`` files, the test users being the same (LEAF's split by
        sample) or others (by user); or else such files, themselves or in a folder ``all_data``. Then the last tenth of
        each user's examples, rounded down, is held out. In Shakespeare examples overlap, and these have nearly been
        seen. Sent140's may be accompanied by a file of GloVe's, CelebA's must be by the images.
    length
        Number of tokens that an example of text has, ≥ 1. Of Shakespeare the last characters, or all after padding;
        LEAF cuts it into 80. Of Sent140 as ``tweets.federation`` says.
    side
        Width and height to which CelebA's images are brought.

    Returns
    -------
    The federation, named ``femnist``, ``shakespeare``, ``sent140`` or ``celeba``; every user of the training part is a
    client. FEMNIST has 62 classes. In Shakespeare the label is the one character that follows, of 80; in Sent140 it is
    1 for a positive tweet and 0 for another, in CelebA 1 for a smile.

    Raises
    ------
    InputError
        If a file cannot be read or breaks a rule.
    """
    if length < 1:
        raise InputError(f"{folder}: length must be at least 1, not {length}")
    if (folder / "train").is_dir():
        name, training = _read(folder / "train")
        test_name, test = _read(folder / "test")
        if test_name != name:
            raise InputError(f"{folder}: train and test must be of one data set, not {name} and {test_name}")
    else:
        name, users = _read(folder / "all_data" if (folder / "all_data").is_dir() else folder)
        training, test = held_out(users)
        if not test:
            raise InputError(f"{folder}: must have a folder test, or a user with ten examples")
    if name == "celeba":
        return celeba.federation(folder, training, test, side)
    if name == "sent140":
        return tweets.federation(folder, training, test, length)
    if name == "femnist":
        return Federation.of(name, training, test, _WRITTEN_CLASSES)

    vocabulary = Vocabulary(SHAKESPEARE)

    def as_tokens(user: tuple[list[str], list[str]]) -> Examples:
        texts, labels = user
        tokens = vocabulary.tokens("".join(text[-length:].rjust(length, "\0") for text in texts))
        return tokens.reshape(-1, length), vocabulary.tokens("".join(labels))

    return Federation.of(name, map(as_tokens, training), map(as_tokens, test), len(vocabulary), len(vocabulary))


def _read(folder: Path) -> tuple[str, list[tuple[Any, Any]]]:
    """Return the data set's name, and its users' examples as a list of inputs and a list of labels."""
    paths = in_folder(folder, "*.json")
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
    content = _parsed(path)
    users, counts, data = (content.get(key) for key in ("users", "num_samples", "user_data"))
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
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a number")

    try:
        content = json.loads(read_text(path), parse_constant=refuse)
    except ValueError as error:
        raise InputError(f"{path}: is not readable JSON ({error})") from error
    except RecursionError as error:
        raise InputError(f"{path}: is nested too deeply") from error
    except MemoryError as error:
        raise InputError(f"{path}: does not fit in memory") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: must be an object")
    return content


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
        if not isinstance(image, str) or not celeba.NAME.fullmatch(image):
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
