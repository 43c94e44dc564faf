import re
import string

import numpy as np
from made_images import glove, leaf_part, sent140, tweet

from canaryproof.verify.training.data import leaf

TWEETS = {
    "ann": ([tweet("@bob I don't... LOVE it!"), tweet("so so bad")], [1, 0]),
    "bob": ([tweet("")], [0]),
}
OTHER = {"cyd": ([tweet("naïve it :-( #so")], [0])}


def written(folder):
    leaf_part(folder, "train", TWEETS)
    leaf_part(folder, "test", OTHER)
    return folder


def test_without_vectors_tokens_are_the_words_characters(tmp_path):
    federation = leaf.load(written(tmp_path), 12)
    assert (federation.name, federation.clients, federation.classes) == ("sent140", 2, 2)
    assert (federation.vocabulary, federation.vectors) == (101, None)
    alphabet = string.printable + "_"

    def spelt(row):
        return "".join(alphabet[token] for token in row)

    assert [spelt(row) for row in federation.inputs] == ["bobIdon't...", "sosobad_____", "_" * 12]
    # The ï is not printable ASCII; of ":-(" and "#" nothing is left.
    assert [spelt(row) for row in federation.test_inputs] == ["na_veitso___"]
    np.testing.assert_array_equal(federation.labels, [1, 0, 0])
    np.testing.assert_array_equal(federation.test_starts, [0, 1])
    assert (federation.inputs.dtype, federation.labels.dtype) == (np.int32, np.int32)


def test_with_vectors_tokens_are_words(tmp_path):
    glove(tmp_path / "glove.6B.50d.txt", ["the", "it", "bad", "!", "naïve", "love", "so"], 50)
    federation = leaf.load(written(tmp_path), 6)
    # The words that occur among the first six of a tweet, in the file's order.
    assert (federation.name, federation.classes, federation.vocabulary) == ("sent140", 2, 5)
    assert (federation.vectors.shape, federation.vectors.dtype) == ((5, 50), np.float32)
    assert (federation.vectors[0] == 0).all()
    assert (federation.vectors[1:] != 0).any(axis=1).all()
    # "bob", "I", "don't", ".", ".", "." and no more.
    np.testing.assert_array_equal(federation.inputs, [[0] * 6, [4, 4, 2, 0, 0, 0], [0] * 6])
    np.testing.assert_array_equal(federation.test_inputs, [[3, 1, 4, 0, 0, 0]])
    longer = leaf.load(tmp_path, 25)
    # "LOVE" has no vector, as in LEAF.
    tokens = {"it": 1, "bad": 2, "!": 3, "naïve": 4, "so": 5}
    words = re.findall(r"[\w']+|[.,!?;]", TWEETS["ann"][0][0][4])
    np.testing.assert_array_equal(longer.inputs[0, : len(words)], [tokens.get(word, 0) for word in words])
    np.testing.assert_array_equal(longer.inputs[0, len(words) :], 0)


def test_vectors_make_a_difference_to_the_digest(tmp_path):
    sent140(tmp_path, dimensions=50)
    digest = leaf.load(tmp_path, 25).digest
    path = tmp_path / "glove.6B.50d.txt"
    text = path.read_text()
    word = text.split("\n")[1]
    path.write_text(text.replace(word, word[:-1] + ("1" if word[-1] != "1" else "2")))
    assert leaf.load(tmp_path, 25).digest != digest
