import re

import numpy as np
import pytest

from canaryproof.verify.papers.training.data import plays
from canaryproof.verify.papers.training.data.tokens import SHAKESPEARE

SPEECHES = "ANNA:\nabc\nde\n\nBERT:\nzz\n\n\nANNA:\nfg\n"
ANNA = "abc\nde\nfg\n"
LONG = "CARL:\n" + "".join(chr(ord("a") + i % 26) for i in range(40)) + "\n"


def written(folder, text, name="play.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_role_is_a_client_and_labels_are_the_next_characters(tmp_path):
    federation = plays.load(written(tmp_path, SPEECHES + "\n" + LONG), length=3)
    anna = federation.inputs[: federation.starts[1]]
    token = {character: i for i, character in enumerate(SHAKESPEARE)}
    np.testing.assert_array_equal(anna, [[token[c] for c in ANNA[i : i + 3]] for i in (0, 3, 6)])
    labels = federation.labels[: federation.starts[1]]
    np.testing.assert_array_equal(labels, [[token[c] for c in ANNA[i : i + 3]] for i in (1, 4, 7)])
    # BERT says three characters, of which no example is followed by one.
    assert federation.clients == 2
    # CARL says 41: 13 examples, of which one is held out.
    np.testing.assert_array_equal(federation.starts, [0, 3, 15])
    np.testing.assert_array_equal(federation.test_inputs, [[token[c] for c in LONG[6 + 36 : 6 + 39]]])
    np.testing.assert_array_equal(federation.test_labels, [[token[c] for c in LONG[6 + 37 : 6 + 40]]])
    assert federation.classes == federation.vocabulary == 80
    assert (federation.inputs.dtype, federation.labels.dtype) == (np.int32, np.int32)


def test_the_alphabet_does_not_depend_on_the_text(tmp_path):
    federation = plays.load(written(tmp_path, "A:\n" + "ab" * 10 + "cé"), length=2)
    assert federation.vocabulary == 80
    # Of 11 examples the last is "cé" and a new line; é is not of the alphabet.
    np.testing.assert_array_equal(federation.test_inputs, [[SHAKESPEARE.index("c"), 79]])
    np.testing.assert_array_equal(federation.test_labels, [[79, 0]])


def test_line_ends_and_byte_order_marks_make_no_difference(tmp_path):
    text = SPEECHES + "\n" + LONG
    plain = plays.load(written(tmp_path, text), length=3)
    other = plays.load(written(tmp_path, "\ufeff" + text.replace("\n", "\r\n"), "other.txt"), length=3)
    np.testing.assert_array_equal(plain.inputs, other.inputs)
    np.testing.assert_array_equal(plain.test_labels, other.test_labels)


def test_roles_of_two_files_are_two_clients(tmp_path):
    written(tmp_path, LONG, "a.txt")
    written(tmp_path, LONG, "b.txt")
    written(tmp_path, "not a play", "README")
    federation = plays.load(tmp_path, length=3)
    np.testing.assert_array_equal(federation.starts, [0, 12, 24])
    assert len(federation.test_labels) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Once upon a time\n", ": line 1: a speech must begin with a line ROLE:"),
        ("A:\nx\n\n:\ny\n", ": line 4: a speech must begin with a line ROLE:"),
        ("A:\nx\n \nB\ny\n", ": line 4: a speech must begin with a line ROLE:"),
        (SPEECHES, ": some role must have ten examples, more than 30 characters"),
        ("A:\n\nB:\n", ": some role must have ten examples"),
        ("\n\n", ": some role must have ten examples"),
        (b"A:\n\xff\n", ": must be text in UTF-8"),
        (b"", ": the file is empty"),
    ],
)
def test_other_text_is_refused(tmp_path, refusal, text, said):
    assert refusal(plays.load, written(tmp_path, text), 3).startswith(said)


def test_folders_without_plays_and_missing_files_are_refused(tmp_path, refusal):
    assert refusal(plays.load, tmp_path, 3).startswith(": some role must have ten examples")
    assert refusal(plays.load, tmp_path / "none.txt", 3) == ": No such file or directory"
    assert refusal(plays.load, written(tmp_path, LONG), 0) == ": length must be at least 1, not 0"


def test_shakespeare(real_data):
    place = real_data("shakespeare")
    federation = plays.load(place)
    [path] = place.glob("*.txt")
    # A second road: paragraphs instead of lines.
    said = {}
    for speech in re.split("\n\n+", path.read_text().strip()):
        role, _, words = speech.partition("\n")
        said[role] = said.get(role, "") + words + "\n" * bool(words)
    counts = np.array([(len(words) - 1) // 80 for words in said.values() if len(words) > 80])
    assert federation.clients == len(counts)
    np.testing.assert_array_equal(np.diff(federation.starts), counts - counts // 10)
    assert len(federation.test_inputs) == np.sum(counts // 10)
    assert 60 < len(np.unique(federation.inputs)) < 70
    assert set(path.read_text()) - set(SHAKESPEARE) <= set("$")
    np.testing.assert_array_equal(federation.inputs[:, 1:], federation.labels[:, :-1])


def test_all_files_together_have_a_limit(tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(plays, "_LARGEST", 100)
    written(tmp_path, LONG, "a.txt")
    assert plays.load(tmp_path, length=3).clients == 1
    written(tmp_path, LONG, "b.txt")
    written(tmp_path, LONG, "c.txt")
    assert refusal(plays.load, tmp_path, 3) == ": plays must have at most 100 bytes in all"
