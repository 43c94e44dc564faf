"""Tweets of LEAF's Sent140 as tokens: words with GloVe's vectors, or characters."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.federated.data import glove
from canaryproof.verify.federated.data.characters import TWEETS, Vocabulary
from canaryproof.verify.federated.data.federation import Examples, Federation

# LEAF's words, and CANIFE's: models/utils/language_utils.py of TalwalkarLab/leaf, canife/utils.py of
# facebookresearch/canife. Upper case counts in both, although GloVe's words have none.
_WORD = re.compile(r"[\w']+|[.,!?;]")
_CLASSES = 2

_Users = list[tuple[list[str], list[int]]]


def federation(folder: Path, training: _Users, test: _Users, length: int) -> Federation:
    """Make tweets into tokens.

    Parameters
    ----------
    folder
        Where the data set is. If there, or in the folder above, is a file of GloVe's vectors, tokens are words with
        these, as in LEAF. Otherwise they are the words' characters, as in CANIFE's code; what is between the words is
        left out.
    training, test
        Tweets and labels of each client, and of each that holds some out.
    length
        Number of tokens of a tweet: the first ones, and padding behind, as in both. LEAF takes 25 words, CANIFE's
        configuration 25 characters.

    Returns
    -------
    The federation, named ``sent140``. Words are those with a vector; token 0 is any other and the padding. The 101
    tokens of characters are those of ``characters.TWEETS``.

    Raises
    ------
    InputError
        If the file of vectors cannot be read or breaks a rule.
    """
    path = glove.found(folder)
    if path is None:
        vocabulary = Vocabulary(TWEETS)

        def spelt(texts: list[str]) -> NDArray[np.int32]:
            rows = ("".join(_WORD.findall(text))[:length].ljust(length, "\0") for text in texts)
            return vocabulary.tokens("".join(rows)).reshape(-1, length)

        return _of(training, test, spelt, len(vocabulary))

    tweets = chain.from_iterable(texts for texts, _ in chain(training, test))
    tokens, vectors = glove.read(path, {word for tweet in tweets for word in _words(tweet, length)})

    def read(texts: list[str]) -> NDArray[np.int32]:
        rows = np.zeros((len(texts), length), dtype=np.int32)
        for row, text in zip(rows, texts, strict=True):
            known = [tokens.get(word, 0) for word in _words(text, length)]
            row[: len(known)] = known
        return rows

    return replace(_of(training, test, read, len(vectors)), vectors=vectors)


def _words(tweet: str, length: int) -> list[str]:
    return [match.group() for match in islice(_WORD.finditer(tweet), length)]


def _of(training: _Users, test: _Users, read: Callable[[list[str]], NDArray[np.int32]], tokens: int) -> Federation:
    def examples(user: tuple[list[str], list[int]]) -> Examples:
        texts, labels = user
        return read(texts), np.array(labels, dtype=np.int32)

    return Federation.of("sent140", map(examples, training), map(examples, test), _CLASSES, tokens)
