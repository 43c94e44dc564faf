"""Words as tokens."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.federated.data.federation import Examples
from canaryproof.verify.input_files import InputError, opened

_LONGEST_LINE = 10_000
_PAD = 0


class Words:
    """A vocabulary of words, and sentences as its tokens.

    Tokens are those of Reddi et al. (arXiv 2003.00295) in their code: 0 pads, n words are 1 to n, and n + 1 is a word
    out of the vocabulary, n + 2 the beginning and n + 3 the end of a sentence (google-research/federated,
    ``utils/datasets/stackoverflow_word_prediction.py``, ``get_special_tokens``, with one bucket). Differential privacy
    does not cover the vocabulary: it is taken for public.

    Parameters
    ----------
    words
        The words, none twice.

    Attributes
    ----------
    words
        The words.
    """

    def __init__(self, words: Sequence[bytes]) -> None:
        self.words = tuple(words)
        self._tokens = {word: token for token, word in enumerate(self.words, 1)}
        self._unknown, self._begin, self._end = (len(self.words) + i for i in (1, 2, 3))

    def __len__(self) -> int:
        """Return the number of tokens, n + 4."""
        return len(self.words) + 4

    @property
    def unscored(self) -> tuple[int, int]:
        """Labels left out of an accuracy: those of an unknown word and of a sentence's end.

        TFF's baseline task has three accuracies, of which this is ``accuracy_without_out_of_vocab_or_end_of_sentence``
        (``simulation/baselines/stackoverflow/word_prediction_tasks.py``). A sentence's beginning is no label.
        """
        return self._unknown, self._end

    def examples(self, sentences: Iterable[bytes], length: int) -> Examples:
        """Return sentences as inputs, and as labels the words that follow.

        Parameters
        ----------
        sentences
            Words with single spaces in between; at least one sentence.
        length
            Number of inputs. A sentence is its beginning, its words and, where they are fewer than this number, its end
            (``to_ids`` in the place above); longer ones are cut.

        Returns
        -------
        Inputs and labels, shape (sentences, length); labels of padding are −1.
        """
        known, unknown = self._tokens.get, self._unknown
        rows = []
        for sentence in sentences:
            words = sentence.split(b" ", length)[:length]
            tokens = [self._begin, *(known(word, unknown) for word in words), self._end][: length + 1]
            rows.append(tokens + [_PAD] * (length + 1 - len(tokens)))
        made = np.array(rows, np.int32)
        labels = made[:, 1:]
        return made[:, :-1], np.where(labels == _PAD, np.int32(-1), labels)


def read(path: Path, count: int) -> Words:
    """Read the most frequent words from TFF's file of word counts.

    It has a line for each word, the word and the number of users of it, the most frequent first; the first ``count``
    different words are the vocabulary (``load_word_counts`` in tensorflow_federated's
    ``simulation/datasets/stackoverflow.py``).

    Parameters
    ----------
    path
        The file.
    count
        Number of words.

    Raises
    ------
    InputError
        If the file cannot be read or breaks a rule.
    """
    words: dict[bytes, None] = {}
    with opened(path) as file:
        number = 0
        while len(words) < count and (line := file.readline(_LONGEST_LINE)):
            number += 1
            fields = line.split()
            if len(fields) != 2 or not fields[1].isdigit() or len(line) == _LONGEST_LINE:
                raise ValueError(f"line {number}: must be a word and the number of its users")
            words[fields[0]] = None
    if len(words) < count:
        raise InputError(f"{path}: must have the {count} words of data.words, not {len(words)}")
    return Words(tuple(words))


def as_array(words: Words) -> NDArray[np.uint8]:
    """Return the words as bytes, of which a digest can be made."""
    return np.frombuffer(b" ".join(words.words), np.uint8)
