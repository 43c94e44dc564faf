"""Data sets of LEAF (Caldas et al., arXiv 1812.01097) in JSON: FEMNIST, Shakespeare and Sent140.

A file is an object with a list ``users``, a list ``num_samples`` and an object ``user_data`` that has two lists for
each user, ``x`` and ``y``: what LEAF's repository, TalwalkarLab/leaf, says and writes. Its split by sample leaves users
in ``user_data`` whom it took from ``users``; they don't count.
"""

import json
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from canaryproof.verify.federated.data.characters import Vocabulary
from canaryproof.verify.federated.data.federation import Examples, Federation, held_out
from canaryproof.verify.federated.data.files import in_folder, read_text
from canaryproof.verify.input_files import InputError

_SIDE = 28
_WRITTEN_CLASSES = 62
_TEXT_OF_TWEET = 4


def load(folder: Path, length: int = 80) -> Federation:
    """Read one of LEAF's data sets; what an example looks like tells which.

    Parameters
    ----------
    folder
        Holds the folders ``train`` and ``test`` with ``.json`` files, the test users being the same or others; or else
        such files, themselves or in a folder ``all_data``. Then the last tenth of each user's examples, rounded down,
        is held out. In Shakespeare examples overlap, and these have nearly been seen.
    length
        Number of characters that an example of text has, ≥ 1: the last ones, or all after padding. LEAF cuts
        Shakespeare into 80; a tweet may have more.

    Returns
    -------
    The federation, named ``femnist``, ``shakespeare`` or ``sent140``; every user of the training part is a client.
    FEMNIST has 62 classes. In Shakespeare the label is the one character that follows, in Sent140 it is 1 for a
    positive tweet and 0 for another.

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
    if name == "femnist":
        return Federation.of(name, training, test, _WRITTEN_CLASSES)

    characters = name == "shakespeare"
    vocabulary = Vocabulary(chain.from_iterable(chain(x, y) if characters else x for x, y in training))

    def as_tokens(user: tuple[list[str], list[Any]]) -> Examples:
        texts, labels = user
        tokens = vocabulary.tokens("".join(text[-length:].rjust(length, "\0") for text in texts))
        classes = vocabulary.tokens("".join(labels)) if characters else np.array(labels, dtype=np.int32)
        return tokens.reshape(-1, length), classes

    classes = len(vocabulary) if characters else 2
    return Federation.of(name, map(as_tokens, training), map(as_tokens, test), classes, len(vocabulary))


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
        if not len(x) == len(y) == count or not x:
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
        return "shakespeare"
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


def _classes(y: list[Any], classes: int) -> list[int]:
    for label in y:
        if type(label) is not int or not 0 <= label < classes:
            raise ValueError(f"y must be whole numbers from 0 to {classes - 1}, not {str(label)[:20]}")
    return y


_FORMS: dict[str, Callable[[list[Any], list[Any]], tuple[Any, Any]]] = {
    "femnist": _images,
    "shakespeare": _texts,
    "sent140": _tweets,
}
