import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.verify.claims.canife_models import characters as parameters
from canaryproof.verify.claims.canife_models import sentiment
from canaryproof.verify.training.data.tokens import SHAKESPEARE, TWEETS, Vocabulary


def test_tokens_follow_the_alphabet():
    vocabulary = Vocabulary("caé ")
    assert len(vocabulary) == 4
    np.testing.assert_array_equal(vocabulary.tokens(" éac"), [3, 2, 1, 0])
    assert vocabulary.tokens("").shape == (0,)
    assert vocabulary.tokens("a").dtype == np.int32


def test_other_characters_and_padding_have_the_last_token():
    vocabulary = Vocabulary("bd\0")
    # Below, between, just above and far above the known ones.
    np.testing.assert_array_equal(vocabulary.tokens("\0abcde\U0010ffff"), [2, 2, 0, 2, 1, 2, 2])


def test_the_alphabets_give_the_printed_numbers_of_parameters():
    assert len(set(SHAKESPEARE)) == len(SHAKESPEARE) == len(Vocabulary(SHAKESPEARE)) == 80
    assert parameters(80, 80) == 819_920
    assert len(set(TWEETS)) == len(TWEETS) == len(Vocabulary(TWEETS)) == 101
    assert sentiment(101, 300) == 272_102


def test_in_shakespeare_another_character_is_taken_for_a_brace():
    # LEAF's find gives −1, with which Python counts from the end.
    vocabulary = Vocabulary(SHAKESPEARE)
    text = "Fie, é\t}\0\n"
    np.testing.assert_array_equal(vocabulary.tokens(text), [SHAKESPEARE.find(c) % 80 for c in text])


ANY = st.characters(exclude_categories=())


@given(st.lists(ANY, min_size=1, unique=True), st.text(ANY))
def test_known_characters_have_tokens_of_their_own(alphabet, other):
    vocabulary = Vocabulary("".join(alphabet))
    np.testing.assert_array_equal(vocabulary.tokens("".join(alphabet)), np.arange(len(vocabulary)))
    expected = [alphabet.index(character) if character in alphabet else len(alphabet) - 1 for character in other]
    np.testing.assert_array_equal(vocabulary.tokens(other), expected)
