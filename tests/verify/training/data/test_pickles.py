import contextlib
import os
import pickle
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_images import pickled_by_python_2

from canaryproof.verify.training.data import pickles

DATA = np.arange(6, dtype=np.uint8).reshape(2, 3)
BATCH = {b"data": DATA, b"labels": [7, 300], b"batch_label": b"one of 5", b"filenames": [b"a.png", b"b.png"]}
DUMPS = [pickled_by_python_2, *(lambda content, p=p: pickle.dumps(content, p) for p in (2, 3, 4))]


@pytest.mark.parametrize("dump", DUMPS)
def test_what_a_batch_holds_is_read(dump):
    batch = pickles.load(dump(BATCH))
    np.testing.assert_array_equal(batch.pop("data"), DATA)
    assert batch == {"labels": [7, 300], "batch_label": b"one of 5", "filenames": [b"a.png", b"b.png"]}


@pytest.mark.parametrize("dump", DUMPS)
@pytest.mark.parametrize(
    "values",
    [
        np.arange(5, dtype=">i4"),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((2, 0), np.float32),
        np.array([True]),
    ],
)
def test_arrays_are_what_numpy_wrote(dump, values):
    # An empty array's bytes are written as a call in protocol 2 that no batch has.
    if values.size == 0 and dump is DUMPS[1]:
        with pytest.raises(ValueError, match=r"'__builtin__.bytes' has no place"):
            pickles.load(dump({"a": values}))
        return
    read = pickles.load(dump({"a": values}))["a"]
    assert (read.dtype, read.shape) == (values.dtype, values.shape)
    np.testing.assert_array_equal(read, values)


class Call:
    """Pickled as a call of anything."""

    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


HEAD = b"\x80\x02"
TYPE = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
EMPTY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
SET = b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"


def array(shape, kind=TYPE + SET, content=b"U\x02ab"):
    """A dictionary whose one array has a shape, given by instructions."""
    return HEAD + b"}U\x01a" + EMPTY + b"(K\x01" + shape + kind + b"\x89" + content + b"tbs."


@pytest.mark.parametrize(
    ("content", "said"),
    [
        # What would run.
        (pickle.dumps(Call(os.system, "touch ran"), 2), r"byte 2: 'posix.system' has no place .* and is not called"),
        (pickle.dumps(Call(os.system, "touch ran"), 4), "'posix.system' has no place"),
        (pickle.dumps({"a": Call(eval, "open('ran', 'w')")}, 2), "'__builtin__.eval' has no place"),
        (pickle.dumps({"a": Call(eval, "open('ran', 'w')")}, 0), "instruction DICT has no place"),
        (HEAD + b"cnumpy\nload\nU\x03ran\x85R.", "'numpy.load' has no place"),
        (HEAD + b"cnumpy.core.multiarray\nscalar\n.", "'numpy.core.multiarray.scalar' has no place"),
        (HEAD + b"ibuiltins\neval\n.", "instruction INST has no place"),
        (HEAD + b"(cos\nsystem\nU\x02lso.", "'os.system' has no place"),
        (HEAD + b"(U\x02lso.", "instruction OBJ has no place"),
        (HEAD + b"cnumpy\nndarray\n)\x81.", "instruction NEWOBJ has no place"),
        (HEAD + b"\x82\x01.", "instruction EXT1 has no place"),
        (HEAD + b"\x84\x01\x00\x00\x00.", "instruction EXT4 has no place"),
        (HEAD + b"Prun\n.", "instruction PERSID has no place"),
        (HEAD + b"U\x03runQ.", "instruction BINPERSID has no place"),
        (HEAD + b"}}b.", "must set what an array or its type holds"),
        (HEAD + b"cnumpy\ndtype\n}b.", "must set what an array or its type holds"),
        (HEAD + b"U\x02osU\x06system\x93.", "'os.system' has no place"),
        (HEAD + b"cnumpy\nndarray\ncnumpy\nndarray\n\x93.", "a key or name must be text"),
        (HEAD + b"cnumpy\nndarray\nK\x05\x85R.", "calls ndarray with other arguments"),
        (HEAD + b"U\x01aK\x05\x85R.", "must call a function"),
        (HEAD + EMPTY.replace(b"K\x00\x85", b"J\xff\xff\xff\x7f\x85") + b".", "calls array with other arguments"),
        (HEAD + b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R.", "type of numbers 'O8' is not known"),
        (HEAD + b"cnumpy\ndtype\nU\x05(9,)O\x85R.", "type of numbers"),
        (HEAD + b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00hex\x86R.", "calls encode with other arguments"),
        # Arrays that don't fit.
        (array(b"K\x03\x85"), "shape must have at most 4 axes and fit its bytes"),
        (array(b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86"), "shape must have at most 4 axes and fit its bytes"),
        (array(b"J\xff\xff\xff\xffJ\xfe\xff\xff\xff\x86"), "shape must be whole numbers"),
        (array(b"(" + b"K\x02" * 9 + b"t"), "shape must have at most 4 axes"),
        (array(b"U\x01a\x85"), "shape must be whole numbers"),
        (array(b"K\x02"), "shape must be whole numbers"),
        (array(b"K\x02\x85", content=b"]"), "an array must be of numbers"),
        (array(b"K\x02\x85", kind=b"N"), "an array must be of numbers"),
        (array(b"K\x02\x85", kind=TYPE + SET.replace(b"|", b"?")), "must set what an array or its type holds"),
        (array(b"K\x02\x85", kind=TYPE + SET.replace(b"NNN", b"N}N")), "must set what an array or its type holds"),
        # No pickles, or no program for this machine.
        (b"", "is not a readable pickle"),
        (b"words", "is not a readable pickle"),
        (pickle.dumps(BATCH, 2)[:-5], "is not a readable pickle"),
        (pickle.dumps(BATCH, 5), "protocol must be one of 2, 3 and 4, not 5"),
        (HEAD + b"T\xff\xff\xff\x7fab.", "is not a readable pickle"),
        (HEAD + b"X\xff\xff\xff\xffab.", "is not a readable pickle"),
        (HEAD + b"\x8b\xff\xff\xff\x7f1.", "is not a readable pickle"),
        (b"\x80\x04\x8e" + b"\xff" * 8 + b"a.", "is not a readable pickle"),
        (HEAD + b"X\x01\x00\x00\x00\xff.", "is not a readable pickle"),
        (HEAD + b".", "must be a pickled dictionary"),
        (HEAD + b"}}.", "must be a pickled dictionary"),
        (HEAD + b"].", "must be a pickled dictionary"),
        (HEAD + b"}0.", "instruction POP has no place"),
        (HEAD + b"u.", "needs a mark"),
        (HEAD + b"]K\x05K\x01a.", "must find a list"),
        (HEAD + b"](K\x01a.", "takes from an empty stack"),
        (HEAD + b"K\x01(e.", "must find a list"),
        (HEAD + b"](a.", "takes from an empty stack"),
        (HEAD + b"}(K\x01u.", "needs a value for each key"),
        (HEAD + b"}K\x01K\x02s.", "a key or name must be text"),
        (HEAD + b"}]K\x02s.", "a key or name must be text"),
        (HEAD + b"]U\x01aK\x02s.", "must find a dict"),
        (HEAD + b"h\x05.", "reads a place of the memo that is empty"),
        (HEAD + b"q\x05.", "takes from an empty stack"),
        (HEAD + b"\x87.", "takes from an empty stack"),
    ],
)
def test_anything_else_is_refused_and_nothing_runs(tmp_path, monkeypatch, content, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=said) as caught:
        pickles.load(content)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_same_array_is_not_set_twice():
    twice = EMPTY + b"q\x01(K\x01K\x02\x85" + TYPE + SET + b"\x89U\x02abtb"
    again = b"h\x01(K\x01K\x02\x85" + TYPE + SET + b"\x89U\x02abtb"
    assert list(pickles.load(HEAD + b"}U\x01a" + twice + b"s.")["a"]) == [97, 98]
    with pytest.raises(ValueError, match="and once"):
        pickles.load(HEAD + b"}U\x01a" + twice + b"sU\x01b" + again + b"s.")


def bombs():
    megabyte = b"X" + struct.pack("<I", 2**20) + b"a" * 2**20
    lists = b"".join(b"](" + b"h%c" % i * 100 + b"eq%c" % (i + 1) for i in range(100))
    return {
        "deep tuples": HEAD + b")" + b"\x85" * 100_000 + b".",
        "deep lists": HEAD + b"]q\x00" + b"](h\x00eq\x00" * 20_000 + b".",
        "lists of lists of lists": HEAD + b"]q\x00" + lists + b".",
        "itself": HEAD + b"]q\x00(" + b"h\x00" * 100_000 + b"e.",
        "memo far out": HEAD + b"]r\xff\xff\xff\xff.",
        "many marks": HEAD + b"(" * 100_000 + b".",
        "encoded again and again": HEAD
        + b"c_codecs\nencode\nq\x00"
        + megabyte
        + b"q\x01X\x06\x00\x00\x00latin1q\x02"
        + b"h\x00h\x01h\x02\x86R" * 100
        + b".",
    }


@pytest.mark.parametrize("name", bombs())
def test_bombs_take_no_more_than_a_multiple_of_their_size(name):
    content = bombs()[name]
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"must be a pickled dictionary|must have at most|makes more than"):
            pickles.load(content)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(content) + 2 * pickles.LARGEST
    finally:
        tracemalloc.stop()


def test_many_instructions_are_refused(monkeypatch):
    monkeypatch.setattr(pickles, "_MOST_INSTRUCTIONS", 1000)
    with pytest.raises(ValueError, match="byte 1001: must have at most 1000 instructions"):
        pickles.load(HEAD + b"N" * 2000 + b".")


def test_large_files_are_refused():
    with pytest.raises(ValueError, match="must have at most"):
        pickles.load(bytes(pickles.LARGEST + 1))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**31 - 1) | st.binary(min_size=1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES), st.sampled_from([2, 3, 4]))
def test_it_reads_what_python_reads(content, protocol):
    assert pickles.load(pickle.dumps(content, protocol)) == content


@given(st.sampled_from([dump(BATCH) for dump in DUMPS]), st.data())
def test_damaged_batches_are_read_or_refused(content, data):
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        pickles.load(bytes(damaged))
