import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.verify.federated.data.characters import Vocabulary


def test_tokens_follow_code_points():
    vocabulary = Vocabulary(["cab", "", "é a"])
    assert len(vocabulary) == 6
    np.testing.assert_array_equal(vocabulary.tokens(" abcé"), [1, 2, 3, 4, 5])
    assert vocabulary.tokens("").shape == (0,)
    assert vocabulary.tokens("a").dtype == np.int32


def test_unknown_characters_and_padding_are_0():
    vocabulary = Vocabulary(["b\0"])
    assert len(vocabulary) == 2
    # Below, between, just above and far above the known ones.
    np.testing.assert_array_equal(vocabulary.tokens("\0abc\U0010ffff"), [0, 0, 1, 0, 0])


def test_no_text_leaves_one_token():
    vocabulary = Vocabulary([])
    assert len(vocabulary) == 1
    np.testing.assert_array_equal(vocabulary.tokens("\0\1"), [0, 0])


@given(st.lists(st.text(st.characters(exclude_categories=()))), st.text(st.characters(exclude_categories=())))
def test_known_characters_have_tokens_of_their_own(texts, other):
    vocabulary = Vocabulary(texts)
    known = sorted(set("".join(texts)) - {"\0"})
    np.testing.assert_array_equal(vocabulary.tokens("".join(known)), np.arange(1, len(vocabulary)))
    expected = [known.index(character) + 1 if character in known else 0 for character in other]
    np.testing.assert_array_equal(vocabulary.tokens(other), expected)
