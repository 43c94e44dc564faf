"""GloVe's vectors of words (Pennington et al. 2014), as nlp.stanford.edu/projects/glove has them.

A file is text in UTF-8 with a line for each word: the word, a space, and its numbers with spaces between them. The
files' names say how many numbers.
"""

import math
import re
from collections.abc import Set
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.federated.data.files import in_folder
from canaryproof.verify.input_files import InputError, opened

_NAME = re.compile(r"glove\.(?:6B\.(?:50|100|200|300)|twitter\.27B\.(?:25|50|100|200))d\.txt")
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?")
# Of 300 numbers and a word, more than five times as long as any.
_LONGEST_LINE = 20_000


def found(folder: Path) -> Path | None:
    """Return the file of vectors that is in a folder or, if none is, in the one above it.

    Parameters
    ----------
    folder
        The folder.

    Returns
    -------
    The file; None if there is none.

    Raises
    ------
    InputError
        If there are several, as the published archives hold.
    """
    for place in (folder, folder.resolve().parent):
        paths = [path for path in in_folder(place, "glove.*.txt") if _NAME.fullmatch(path.name)]
        if len(paths) > 1:
            raise InputError(f"{place}: must hold one file of GloVe's, not {', '.join(path.name for path in paths)}")
        if paths:
            return paths[0]
    return None


def read(path: Path, words: Set[str]) -> tuple[dict[str, int], NDArray[np.float32]]:
    """Read the vectors of some words.

    Parameters
    ----------
    path
        The file. It is read line by line; memory is that of the words asked for.
    words
        The words.

    Returns
    -------
    Tokens of those that the file has, 1, 2, and so on in its order; and all vectors, shape (tokens + 1, dimensions).
    Row 0 is of zeros, for a word that it doesn't have.

    Raises
    ------
    InputError
        If the file cannot be read or breaks a rule.
    """
    dimensions = int(path.name.split(".")[-2].removesuffix("d"))
    tokens: dict[str, int] = {}
    vectors = [np.zeros(dimensions, dtype=np.float32)]
    wanted = {word.encode("utf-8", "surrogatepass"): word for word in words}
    with opened(path) as file:
        number = 0
        while line := file.readline(_LONGEST_LINE):
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
