import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.verify.files.reading import InputError
from canaryproof.verify.training.data import tokens
from canaryproof.verify.training.data.tokens import Words

THREE = Words((b"the", b"a", b"."))
UNKNOWN, BEGIN, END = 4, 5, 6


def test_a_sentence_is_its_beginning_its_words_and_its_end():
    inputs, labels = THREE.examples([b"the rare .", b"a", b"the a . the a", b"a a a a"], 4)
    np.testing.assert_array_equal(inputs, [[BEGIN, 1, 4, 3], [BEGIN, 2, END, 0], [BEGIN, 1, 2, 3], [BEGIN, 2, 2, 2]])
    # Four words leave no place for the end, as in TFF.
    np.testing.assert_array_equal(labels, [[1, 4, 3, END], [2, END, -1, -1], [1, 2, 3, 1], [2, 2, 2, 2]])
    assert (inputs.dtype, labels.dtype) == (np.int32, np.int32)


def test_tokens_are_those_of_reddi_et_al():
    many = Words(tuple(b"%d" % i for i in range(10_000)))
    assert len(many) == 10_004
    assert many.unscored == (10_001, 10_003)
    inputs, labels = many.examples([b"0 9999 none"], 5)
    np.testing.assert_array_equal(inputs, [[10_002, 1, 10_000, 10_001, 10_003]])
    np.testing.assert_array_equal(labels, [[1, 10_000, 10_001, 10_003, -1]])


def test_spaces_separate_and_nothing_else():
    inputs, _ = THREE.examples([b"", b"the  a", b"the\ta"], 4)
    np.testing.assert_array_equal(inputs, [[BEGIN, UNKNOWN, END, 0], [BEGIN, 1, UNKNOWN, 2], [BEGIN, UNKNOWN, END, 0]])


@given(st.lists(st.lists(st.sampled_from(["the", "a", ".", "b", "c"]), min_size=1, max_size=9), min_size=1), st.data())
def test_examples_agree_with_a_plain_spelling(sentences, data):
    length = data.draw(st.integers(1, 10))
    inputs, labels = THREE.examples([" ".join(sentence).encode() for sentence in sentences], length)
    for sentence, row, following in zip(sentences, inputs.tolist(), labels.tolist(), strict=True):
        whole = ["BEGIN", *sentence, "END"][: length + 1]
        names = {0: "", 1: "the", 2: "a", 3: ".", UNKNOWN: "?", BEGIN: "BEGIN", END: "END", -1: ""}
        expected = [word if word in names.values() else "?" for word in whole] + [""] * (length + 1 - len(whole))
        assert [names[token] for token in row] == expected[:-1]
        assert [names[token] for token in following] == expected[1:]
        assert [token == 0 for token in row[1:]] == [token == -1 for token in following[:-1]]


def test_words_are_the_first_of_the_file(tmp_path):
    path = tmp_path / "stackoverflow.word_count"
    path.write_text("the 9\na 7\nthe 6\n. 5\nis 1\nnot counted\n")
    assert tokens.read(path, 3).words == (b"the", b"a", b".")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", ": the file is empty"),
        (b"the 3\na 2", ": must have the 3 words of data.words, not 2"),
        (b"the 3\na\n", ": line 2: must be a word and the number of its users"),
        (b"the 3\na 2 1\n", ": line 2: must be a word and the number of its users"),
        (b"the 3\na -2\n", ": line 2: must be a word and the number of its users"),
        (b"x" * 10**6, ": line 1: must be a word and the number of its users"),
        (b"x 1" + b" " * 10**6, ": line 1: must be a word and the number of its users"),
    ],
)
def test_other_files_are_refused(tmp_path, refusal, text, said):
    path = tmp_path / "stackoverflow.word_count"
    path.write_bytes(text)
    assert refusal(tokens.read, path, 3) == said


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        tokens.read(tmp_path / "none", 3)
