"""Characters as tokens."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class Vocabulary:
    """The characters of a training text, in the order of their code points: tokens 1, 2, and so on.

    Token 0 stands for any other character, and for U+0000, with which text is padded. Differential privacy does not
    cover the vocabulary: it is taken for public.

    Parameters
    ----------
    texts
        The training text, in parts.
    """

    def __init__(self, texts: Iterable[str]):
        characters: set[str] = set()
        for text in texts:
            characters.update(text)
        found = np.array(sorted(map(ord, characters - {"\0"})), dtype=np.int64)
        self._tokens: NDArray[np.int32] = np.zeros(found.max(initial=0) + 2, dtype=np.int32)
        self._tokens[found] = np.arange(1, len(found) + 1)

    def __len__(self) -> int:
        """Return the number of tokens, 0 among them."""
        return int(self._tokens.max()) + 1

    def tokens(self, text: str) -> NDArray[np.int32]:
        """Return a text as tokens.

        Parameters
        ----------
        text
            Any text.

        Returns
        -------
        A token for each character, shape (len(text),).
        """
        # JSON can spell half of a surrogate pair; it is a character like others.
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        # The table ends in an unknown character.
        return self._tokens.take(codes, mode="clip")
