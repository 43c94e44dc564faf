import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_images import glove as write

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.claims.canife.experiments import characters as parameters
from canaryproof.verify.papers.claims.canife.experiments import sentiment
from canaryproof.verify.papers.training.data import tokens
from canaryproof.verify.papers.training.data.tokens import SHAKESPEARE, TWEETS, Vocabulary, Words, read_glove


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


NAME = "glove.twitter.27B.25d.txt"


def test_vectors_of_the_words_asked_for(tmp_path):
    path = tmp_path / NAME
    write(path, ["the", "naïve", "", "so", "\x85"], 25, 7)
    tokens, vectors = read_glove(path, {"so", "naïve", "absent"})
    # In the file's order.
    assert tokens == {"naïve": 1, "so": 2}
    assert (vectors.shape, vectors.dtype) == ((3, 25), np.float32)
    rows = [[float(x) for x in line.split(" ")[1:]] for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    np.testing.assert_array_equal(vectors, np.float32([[0.0] * 25, rows[1], rows[3]]))


def test_files_are_found_by_their_names(tmp_path, refusal):
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "glove.6B.300d.txt.part").touch()
    (tmp_path / "glove.7B.300d.txt").touch()
    assert tokens.glove_file(folder) is None
    above, inside = tmp_path / "glove.6B.300d.txt", folder / NAME
    above.touch()
    assert tokens.glove_file(folder).resolve() == above.resolve()
    inside.touch()
    assert tokens.glove_file(folder) == inside
    (folder / "glove.6B.50d.txt").touch()
    assert refusal(tokens.glove_file, folder) == f": must hold one file of GloVe's, not glove.6B.50d.txt, {NAME}"


NUMBERS = " ".join(["0.5"] * 24)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"so 0.5\n", "line 1: must be a word and 25 numbers, and end there"),
        (f"so {NUMBERS}\n", "line 1: must be a word and 25 numbers"),
        (f"so {NUMBERS} 1 2\n", "line 1: must be a word and 25 numbers"),
        (f"so {NUMBERS} 1\nbad {NUMBERS} 0.", "line 2: must be a word and 25 numbers, and end there"),
        (f"so {NUMBERS} 1\n\n", "line 2: must be a word and 25 numbers"),
        (f"so  {NUMBERS}\n", "line 1: must have finite numbers after its word, not b''"),
        (f"so {NUMBERS} nan\n", "line 1: must have finite numbers after its word, not b'nan'"),
        (f"so {NUMBERS} 1e999\n", "line 1: must have finite numbers after its word, not b'1e999'"),
        (f"so {NUMBERS} 1_0\n", "line 1: must have finite numbers after its word, not b'1_0'"),
        (f"so {NUMBERS} \xa01\n", "line 1: must have finite numbers after its word"),
        (f"so {NUMBERS} 1\nbad {NUMBERS} x\nso {NUMBERS} 2\n", "line 3: 'so' must have one line"),
        (b"a" * 30_000 + b"\n", "line 1: must be a word and 25 numbers"),
    ],
)
def test_damaged_files_are_refused(tmp_path, refusal, content, said):
    path = tmp_path / NAME
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert refusal(read_glove, path, {"so"}).startswith(f": {said}")


def test_memory_is_that_of_the_words(tmp_path):
    path = tmp_path / "glove.6B.300d.txt"
    line = " 0.12345" * 300
    path.write_text("".join(f"word{i}{line}\n" for i in range(5000)))
    assert path.stat().st_size > 10**7
    tracemalloc.start()
    try:
        tokens, vectors = read_glove(path, {"word7", "word4999"})
        assert tracemalloc.get_traced_memory()[1] < 2 * 10**5
    finally:
        tracemalloc.stop()
    assert tokens == {"word7": 1, "word4999": 2}
    assert vectors.shape == (3, 300)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 400), st.binary(max_size=5))
def test_damaged_lines_are_read_or_refused(tmp_path, place, content):
    path = tmp_path / NAME
    write(path, ["so", "bad"], 25)
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + content + whole[place + len(content) :])
    try:
        _, vectors = read_glove(path, {"so", "bad"})
    except InputError:
        return
    assert np.isfinite(vectors).all()


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
    assert tokens.read_words(path, 3).words == (b"the", b"a", b".")


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
    assert refusal(tokens.read_words, path, 3) == said


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        tokens.read_words(tmp_path / "none", 3)
