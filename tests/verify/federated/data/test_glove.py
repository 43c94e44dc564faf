import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_images import glove as write

from canaryproof.verify.files.reading import InputError
from canaryproof.verify.training.data import tokens as glove

NAME = "glove.twitter.27B.25d.txt"


def test_vectors_of_the_words_asked_for(tmp_path):
    path = tmp_path / NAME
    write(path, ["the", "naïve", "", "so", "\x85"], 25, 7)
    tokens, vectors = glove.read_glove(path, {"so", "naïve", "absent"})
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
    assert glove.found(folder) is None
    above, inside = tmp_path / "glove.6B.300d.txt", folder / NAME
    above.touch()
    assert glove.found(folder).resolve() == above.resolve()
    inside.touch()
    assert glove.found(folder) == inside
    (folder / "glove.6B.50d.txt").touch()
    assert refusal(glove.found, folder) == f": must hold one file of GloVe's, not glove.6B.50d.txt, {NAME}"


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
    assert refusal(glove.read_glove, path, {"so"}).startswith(f": {said}")


def test_memory_is_that_of_the_words(tmp_path):
    path = tmp_path / "glove.6B.300d.txt"
    line = " 0.12345" * 300
    path.write_text("".join(f"word{i}{line}\n" for i in range(5000)))
    assert path.stat().st_size > 10**7
    tracemalloc.start()
    try:
        tokens, vectors = glove.read_glove(path, {"word7", "word4999"})
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
        _, vectors = glove.read_glove(path, {"so", "bad"})
    except InputError:
        return
    assert np.isfinite(vectors).all()
