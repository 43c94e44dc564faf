"""Text as tokens: characters of an alphabet, words of a vocabulary, and GloVe's vectors of words."""

import math
import re
import string
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import open_file
from canaryproof.verify.papers.training.data.federation import Examples
from canaryproof.verify.papers.training.data.files import in_folder

# LEAF's alphabet for Shakespeare, in its order (ALL_LETTERS in models/utils/language_utils.py of TalwalkarLab/leaf).
SHAKESPEARE = "\n !\"&'(),-." + string.digits + ":;>?" + string.ascii_uppercase + "[]" + string.ascii_lowercase + "}"
# CANIFE's for Sent140 (canife/utils.py of facebookresearch/canife): Python's printable characters, and one for others.
TWEETS = string.printable + "\0"


class Vocabulary:
    """A public alphabet: the training text decides nothing of it, so that differential privacy need not cover it.

    Character i of the alphabet is token i. Any other character has the last one's token, and so has U+0000, with which
    text is padded. The 80 characters of ``SHAKESPEARE`` leave no token to spare: there another character is taken for
    ``}``. LEAF does the same with what is predicted, as its ``find`` gives −1, the last index. As an input, −1 has no
    embedding, which matters to nobody because LEAF's text has these 80 characters alone. Of ``TWEETS`` the last token
    is no character's own.
    """

    def __init__(self, alphabet: str):
        codes = _codes(alphabet)
        self._count = len(codes)
        # The table ends in an unknown character.
        self._tokens: NDArray[np.int32] = np.full(int(codes.max()) + 2, self._count - 1, dtype=np.int32)
        self._tokens[codes] = np.arange(self._count)

    def __len__(self) -> int:
        """Return the number of tokens."""
        return self._count

    def tokens(self, text: str) -> NDArray[np.int32]:
        """Return a token for each character of a text."""
        return self._tokens.take(_codes(text), mode="clip")


def _codes(text: str) -> NDArray[np.uint32]:
    # JSON can spell half of a surrogate pair; it is a character like others.
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


_LONGEST_LINE = 10_000
_PAD = 0


class Words:
    """A vocabulary of different words, and sentences as its tokens.

    Tokens are those of Reddi et al. (arXiv 2003.00295) in their code. 0 pads, n words are 1 to n, and n + 1 is a word
    out of the vocabulary. Token n + 2 is the beginning and n + 3 the end of a sentence (google-research/federated,
    ``utils/datasets/stackoverflow_word_prediction.py``, ``get_special_tokens``, with one bucket). Differential privacy
    does not cover the vocabulary: it is taken for public.
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
        """Return sentences of words with single spaces in between as inputs, and as labels the words that follow.

        Both have the shape (sentences, length). A sentence is its beginning, its words and, where they are fewer than
        ``length``, its end (``to_ids`` in the place above); longer ones are cut. Labels of padding are −1.
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


def read_words(path: Path, count: int) -> Words:
    """Read the ``count`` most frequent words from TFF's file of word counts.

    It has a line for each word, the word and the number of users of it, the most frequent first (``load_word_counts``
    in tensorflow_federated's ``simulation/datasets/stackoverflow.py``).
    """
    words: dict[bytes, None] = {}
    with open_file(path) as file:
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


# GloVe (Pennington et al. 2014), as nlp.stanford.edu/projects/glove has it: text in UTF-8 with a line for each word:
# the word and its numbers, with spaces between them. The files' names say how many numbers.
_GLOVE_NAME = re.compile(r"glove\.(?:6B\.(?:50|100|200|300)|twitter\.27B\.(?:25|50|100|200))d\.txt")
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?")
# A line has 300 numbers and a word; this is more than five times as long as any.
_LONGEST_VECTOR = 20_000


def glove_file(folder: Path) -> Path | None:
    """Return the file of vectors that is in a folder or, if none is, in the one above it; several are refused."""
    for directory in (folder, folder.resolve().parent):
        paths = [path for path in in_folder(directory, "glove.*.txt") if _GLOVE_NAME.fullmatch(path.name)]
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise InputError(f"{directory}: must hold one file of GloVe's, not {names}")
        if paths:
            return paths[0]
    return None


def read_glove(path: Path, words: Set[str]) -> tuple[dict[str, int], NDArray[np.float32]]:
    """Read the vectors of some words line by line: tokens of those that the file has, and all vectors.

    Tokens are 1, 2, and so on in the file's order. Row 0 of the vectors is of zeros, for a word that it doesn't have.
    """
    dimensions = int(path.name.split(".")[-2].removesuffix("d"))
    tokens: dict[str, int] = {}
    vectors = [np.zeros(dimensions, dtype=np.float32)]
    wanted = {word.encode("utf-8", "surrogatepass"): word for word in words}
    with open_file(path) as file:
        number = 0
        while line := file.readline(_LONGEST_VECTOR):
            number += 1
            # A file's last line may be cut anywhere.
            if line.count(b" ") != dimensions or not line.endswith(b"\n"):
                raise ValueError(f"line {number}: must be a word and {dimensions} numbers, and end there")
            word, _, numbers = line.partition(b" ")
            if word not in wanted:
                continue
            if wanted[word] in tokens:
                raise ValueError(f"line {number}: {wanted[word][:60]!r} must have one line")
            tokens[wanted[word]] = len(vectors)
            vectors.append(_vector(number, numbers))
    return tokens, np.array(vectors)


def _vector(line: int, numbers: bytes) -> NDArray[np.float32]:
    values = numbers.removesuffix(b"\n").split(b" ")
    for value in values:
        if not _NUMBER.fullmatch(value) or not math.isfinite(float(value)) or abs(float(value)) > 1e30:
            raise ValueError(f"line {line}: must have finite numbers after its word, not {value[:20]!r}")
    return np.array(values, dtype=np.float32)
