"""What the readers of users' files refuse, beside what every reader refuses: a line names the place and the rule."""

import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from canaryproof.verify.audit.files.reading import LARGEST_COUNT, read_release, read_score_columns, read_scores
from canaryproof.verify.audit.files.stored_release import open_release
from tests.refusals import Row, refusals
from tests.verify.audit.files.test_every_reader import npy, npz, safetensors

COSINES, OTHERS = np.array([0.25, -0.5, 0.125]), np.array([0.5, 0.0])
LABELLED = b"id,score,member\n1,0.25,1\n2,-0.5,true\n3,0.5,0\n4,0.125,TRUE\n5,0.0,False\n"


def file(name: str, good: bytes, read: Callable[[Path], object] = read_scores) -> Callable[..., None]:
    """Return a call that reads a file, with a good content by default."""

    def call(content: bytes = good, name: str = name) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "m.safetensors").write_bytes(damaged())
            (Path(folder) / name).write_bytes(content)
            read(Path(folder) / name)

    call.__name__ = name
    return call


def with_norm(canary_norm: float = 0.5) -> None:
    file("r.npy", npy(COSINES), partial(open_release, canary_norm=canary_norm))()


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as output:
        for name, content in members:
            output.writestr(name, content)
    return made.getvalue()


def header(descr: object = "<f8", shape: object = (3,), version: int = 1) -> bytes:
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text


def damaged(entry: Any = None, data: bytes = b"\0" * 8, **others: Any) -> bytes:
    made = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} if entry is None else entry, **others}
    text = json.dumps(made).encode()
    return len(text).to_bytes(8, "little") + text + data


# The directory has another name than the member itself, which is all of it.
LONG_NAME = archive(("observed.npy", bytes(20_000)))
LONG_NAME = LONG_NAME[:26] + (9000).to_bytes(2, "little") + LONG_NAME[28:]

# What a file holds, and the rule that it breaks.
FILES = {
    file("c.npy", npy(COSINES)): [
        (
            npy([0.5, 1.5]),
            "observed[1]: a cosine must lie in [-1, 1], not 1.5; other scores are of kind any",
        ),
        (npy([0.5, np.nan]), "observed[1]: must be finite, not nan"),
        (npy([-np.inf, 0.5]), "observed[0]: must be finite, not -inf"),
        (npy(np.array(["1e4000", "0"], dtype=np.longdouble)), "observed[0]: must be finite, not inf"),
        (npy([0.5]), "observed: must have at least 2 values, not 1"),
        (npy(np.empty(0)), "observed: must have at least 2 values, not 0"),
        (npy([0.5, 0.5]), "observed: all 2 values are equal; their variance must not be zero"),
        (npy([0.0, -0.0]), "observed: all 2 values are equal"),
        (npy([[0.5, 0.1]]), "the array must have one axis, not 2"),
        (npy(0.5), "the array must have one axis, not 0"),
        (npy([0.5, 0.1j]), "values must be floating-point, not complex128"),
        (npy([0, 1]), "values must be floating-point, not int64"),
        (npy([True, False]), "values must be floating-point, not bool"),
        (npy(["0.5", "0.1"]), "values must be floating-point, not <U3"),
        (npy(np.zeros(2, dtype=[("a" * 500, "f8")])), "values must be floating-point, not [("),
        (
            npy(np.array([{}, 0.5], dtype=object), allow_pickle=True),
            "values must be floating-point, not object",
        ),
        (b"", "the file is empty"),
        (b"0.5\n0.25\n", "is not a readable .npy file"),
        (npz(observed=COSINES), "is not a readable .npy file"),
        (
            npy(COSINES) + b"\0",
            "truncated or damaged: the header declares 3 values of float64 (24 bytes), and 25",
        ),
        (header(shape=(10**6,)), "truncated or damaged: the header declares 1000000 values"),
        (header(shape=(10**18,)), f"the array must have 0 to {LARGEST_COUNT} values, not {10**18}"),
        (header(shape=(-3,)) + bytes(24), "the array must have 0 to"),
        (header(shape=(3.0,)), "is not a readable .npy file"),
        (header(shape=3), "is not a readable .npy file"),
        (header(descr="<f9"), "is not a readable .npy file"),
        (header(descr="f8," * 100), "values must be floating-point, not ["),
        (
            header(version=2) + bytes(24),
            "is not a readable .npy file (format version 2.0; plain arrays have 1.0)",
        ),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "is not a readable .npy file"),
        (b"\x93NUMPY\x01\x00\x00\x20" + b"(" * 0x2000, "is not a readable .npy file"),
        (b"\x93NUMPY\x01\x00\x00\x20" + b"-" * 0x2000, "is not a readable .npy file"),
        (b"\x93NUMPY\x01\x00\x00\x20" + b"\xff" * 0x2000, "is not a readable .npy file"),
    ],
    file("c.npz", npz(observed=COSINES)): [
        (npz(seen=COSINES), "arrays must be named observed and, optionally, unobserved, not 'seen'"),
        (npz(observed=COSINES, unobservd=OTHERS), "not 'unobservd'"),
        (npz(unobserved=OTHERS), "must have an array named observed"),
        (archive(), "must have an array named observed"),
        (npz(observed=COSINES, unobserved=[0.5, 0.5]), "unobserved: all 2 values are equal"),
        (
            npz(observed=COSINES, unobserved=[0.5, 2.0]),
            "unobserved[1]: a cosine must lie in [-1, 1], not 2.0; other scores are of kind any",
        ),
        (npz(observed=COSINES, unobserved=[0.5]), "unobserved: must have at least 2 values, not 1"),
        (npz(observed=COSINES, unobserved=[1, 0]), "unobserved: values must be floating-point, not int64"),
        (npz(observed=[[0.5, 0.1]]), "observed: the array must have one axis, not 2"),
        (npy(COSINES), "is not a readable .npz file"),
        (LONG_NAME, "is not a readable .npz file (File name in directory"),
        (archive(("observed.npy", b"")), "observed: is not a readable .npy file"),
        (archive(("observed.npy", header(shape=(10**9,)))), "observed: the array must have 0 to"),
        (archive(("observed.npy", header(shape=(10**6,)))), "observed: truncated or damaged"),
        (
            archive(("observed.npy", npy(COSINES)), ("observed", npy(COSINES))),
            "every array must have a name",
        ),
        (
            archive(("observed.npy", npy(COSINES)), compression=zipfile.ZIP_LZMA),
            "observed: must be stored or def",
        ),
    ],
    file("c.csv", b"0.5\n0.1\n"): [
        (b"", "the file is empty"),
        (b"\n\n", "observed: must have at least 2 values, not 0"),
        (b"observed\n", "observed: must have at least 2 values, not 0"),
        (b"0.5\n0.1x\n", "observed, line 2: must be a number, not '0.1x'"),
        (
            b"cosine\n0.1\n",
            "observed, line 1: must be a number or a header that names the column observed, not 'c",
        ),
        (b"observed,unobserved\n0.5,0.1\n0.2,-\n", "unobserved, line 3: must be a number, not '-'"),
        (
            b"observed,unobserved\n0.5,0.1\n0.2,2\n",
            "unobserved, line 3: a cosine must lie in [-1, 1], not 2.0; other scores are of kind any",
        ),
        (
            b"observed,round\n0.5,1\n",
            "columns must be named observed and, optionally, unobserved, not 'round'",
        ),
        (b"observed,observed\n0.5,1\n", "every column must have a name of its own"),
        (b"0.5\nnan\n", "observed, line 2: must be finite, not nan"),
        (b"0.5\n1e999\n", "observed, line 2: must be finite, not inf"),
        (b"0.5\n\n0.1\n", "observed, line 3: no number may stand below an empty cell"),
        (b"0,5\n0,1\n", "line 1: must have at most 1 cell, not 2"),
        (b"0.5\n0.1,0.2\n", "line 2: must have at most 1 cell, not 2"),
        (b"0.5\n0_1\n", "observed, line 2: must be a number, not '0_1'"),
        ("0.5\n٠\n".encode(), "observed, line 2: must be a number, not '٠'"),
        (b'0.5\n"0.1\n"\n', "line 2: a quoted cell must end on its line"),
        (b'0.5\n"0.1\n', "line 2: is not comma-separated text"),
        (b"0.5\n\x00\n", "line 2: "),
        (b"0.5\n" + b"1" * 20_000, "line 2: must have at most 10000 characters"),
        (b"0.5\n" + b"x" * 9_000, "line 2: must be a number, not 'xxx"),
        ("0.5\n0.1\n".encode("utf-16"), "must be text in UTF-8"),
        (npy(COSINES), "must be text in UTF-8"),
    ],
    file("r.npy", npy(COSINES), read_release): [
        (npy(np.zeros(5)), "the release must not be the zero vector"),
        (npy([0.5]), "the release must have at least 2 coordinates, not 1"),
        (npy([0.5, np.nan]), "release[1]: must be finite, not nan"),
        (npy([[0.5, 0.1]]), "the array must have one axis, not 2"),
        (npy([3, 4]), "values must be floating-point, not int64"),
        (npy(COSINES)[:-1], "truncated or damaged"),
        (header(shape=(2**39,)), "truncated or damaged"),
    ],
    file("l.csv", LABELLED, partial(read_score_columns, score="score", member="member")): [
        (
            LABELLED.replace(b"score", b"loss"),
            "must have one column 'score'; its columns are id, loss, member",
        ),
        (
            LABELLED.replace(b"id,", b"score,"),
            "must have one column 'score'; its columns are score, score, member",
        ),
        (
            LABELLED.replace(b"TRUE", b"2"),
            "member, line 5: must be 1 or true if the canary took part, else 0 or false,",
        ),
        (LABELLED.replace(b"-0.5", b"x"), "score, line 3: must be a number, not 'x'"),
        (LABELLED.replace(b"-0.5", b""), "score, line 3: must be a number, not ''"),
        (
            LABELLED.replace(b"-0.5", b"7"),
            "score, line 3: a cosine must lie in [-1, 1], not 7.0; other scores are of kind any",
        ),
        (LABELLED.replace(b"\n2,", b"\n\n2,"), "score, line 3: must be a number, not ''"),
        (LABELLED[:24], "observed: must have at least 2 values, not 1"),
        (b"\xff" + LABELLED, "must be text in UTF-8"),
        (LABELLED.replace(b",1\n", b",1,9,9,9\n"), "line 2: must have at most 3 cells, not 6"),
        (LABELLED + b"," * 10_001, "must have at most 10000 characters"),
        (b"," * 10_001 + b"\n" + LABELLED, "line 1: must have at most 10000 characters"),
        (LABELLED.replace(b"TRUE", b'"1\n"'), "a quoted cell must end on its line"),
        (b"", "the file is empty"),
    ],
    file("n.safetensors", damaged(), open_release): [
        (b"", "the file is empty"),
        (b"1234567", "is not a .safetensors file, or truncated"),
        ((2**62).to_bytes(8, "little") + b"{}", "is not a .safetensors file, or truncated"),
        ((2).to_bytes(8, "little") + b"[]", "its header must be an object"),
        ((2).to_bytes(8, "little") + b"{]", "line 1, column 2: truncated or damaged, as it is not JSON"),
        (damaged(data=b"\0" * 7), "truncated or damaged: its tensors have 8 bytes, and 7 follow the header"),
        (damaged(data=b"\0" * 9), "truncated or damaged: its tensors have 8 bytes, and 9 follow the header"),
        (
            damaged({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}),
            "'a': must have 8 bytes, as its shape says",
        ),
        (
            damaged({"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}),
            "'a': its bytes must begin where the others",
        ),
        (
            damaged({"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}),
            "'a': shape and data_offsets must be whole",
        ),
        (
            damaged({"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}),
            "'a': shape and data_offsets must be",
        ),
        (
            damaged({"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}),
            "'a': shape and data_offsets must be",
        ),
        (
            damaged({"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 8]}),
            "'a': must have 8507059",
        ),
        (
            damaged({"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}),
            "'a' has numbers of type F8_E4M3, which are not read",
        ),
        (
            damaged({"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]}),
            "'a': must have dtype, shape and",
        ),
        (damaged({"shape": [2], "data_offsets": [0, 8]}), "'a': must have dtype, shape and data_offsets"),
        (damaged([1, 2]), "'a': must have dtype, shape and data_offsets"),
        (
            damaged(b={"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}),
            "'b': its bytes must begin where the others",
        ),
        (
            damaged(b={"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}),
            "'b': its bytes must begin where",
        ),
        (safetensors({"a": np.zeros(1, np.float32)}), "the release must have at least 2 coordinates"),
        (safetensors({}), "the release must have at least 2 coordinates"),
    ],
    file("m.safetensors.index.json", b'{"weight_map": {"a": "m.safetensors"}}', open_release): [
        (json.dumps({}).encode(), 'must be an index of checkpoints, an object with a "weight_map"'),
        (json.dumps([]).encode(), "must be an index of checkpoints"),
        (json.dumps({"weight_map": {}}).encode(), "must be an index of checkpoints"),
        (
            json.dumps({"weight_map": {"a": "../m.safetensors"}}).encode(),
            "weight_map: must name .safetensors files of its folder",
        ),
        (
            json.dumps({"weight_map": {"a": "/etc/passwd"}}).encode(),
            "weight_map: must name .safetensors files of its folder",
        ),
        (
            json.dumps({"weight_map": {"a": 3}}).encode(),
            "weight_map: must name .safetensors files of its folder, not '3'",
        ),
        (
            json.dumps({"weight_map": {"z": "m.safetensors"}}).encode(),
            "weight_map: 'z' is not in m.safetensors",
        ),
        (json.dumps({"weight_map": {"a": "n.safetensors"}}).encode(), "No such file or directory"),
    ],
}


TABLE = {call: [("content", *row) for row in rows] for call, rows in FILES.items()} | {
    file("c.npy", npy(COSINES)): [
        ("name", "c.txt", "the file's name must end in .npy or .npz or .csv"),
        ("name", "c", "the file's name must end in .npy or .npz or .csv"),
    ],
    file("r.npy", npy(COSINES), read_release): [
        ("name", "r.npz", "the file's name must end in .npy"),
        ("name", "r.csv", "the file's name must end in .npy"),
    ],
    with_norm: [
        ("canary_norm", norm, f"canary_norm: must be positive and finite, not {norm}")
        for norm in (0.0, -1.0, np.inf, np.nan)
    ],
    file("n.safetensors", damaged(), open_release): [("name", "n.csv", "the file's name must end in .npy or .safete")],
}


@refusals(TABLE)
def test_refusals(row: Row) -> None:
    row.check()
