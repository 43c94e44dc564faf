"""Characters as tokens."""

import string

import numpy as np
from numpy.typing import NDArray

# LEAF's alphabet for Shakespeare, in its order (ALL_LETTERS in models/utils/language_utils.py of TalwalkarLab/leaf).
SHAKESPEARE = "\n !\"&'(),-." + string.digits + ":;>?" + string.ascii_uppercase + "[]" + string.ascii_lowercase + "}"
# CANIFE's for Sent140 (canife/utils.py of facebookresearch/canife): Python's printable characters, and one for others.
TWEETS = string.printable + "\0"


class Vocabulary:
    """A public alphabet: the training text decides nothing of it, so that differential privacy need not cover it.

    Character i of the alphabet is token i. Any other character has the last one's token, and so has U+0000, with which
    text is padded. The 80 characters of ``SHAKESPEARE`` leave no token to spare: there another character is taken for
    ``}``. LEAF does the same with what is predicted, as its ``find`` gives −1, the last place; as an input, −1 has no
    embedding, which matters to nobody because LEAF's text has these 80 characters alone. Of ``TWEETS`` the last token
    is no character's own.

    Parameters
    ----------
    alphabet
        Different characters, at least one.
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
        """Return a text as tokens.

        Parameters
        ----------
        text
            Any text.

        Returns
        -------
        A token for each character, shape (len(text),).
        """
        return self._tokens.take(_codes(text), mode="clip")


def _codes(text: str) -> NDArray[np.uint32]:
    # JSON can spell half of a surrogate pair; it is a character like others.
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
