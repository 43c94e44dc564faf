import io
import os
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from canaryproof.verify.audit.files import reading
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import (
    LARGEST_COUNT,
    LabelledTable,
    ScoreColumns,
    ScoreKind,
    labelled_scores,
    read_labelled,
    read_release,
    read_scores,
)
from tests.memory import RESET, held, peak

COSINES = np.array([0.25, -0.5, 0.125])
OTHERS = np.array([0.5, 0.0])
PROPERTY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def npy(values: object, **options: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(values), **options)  # type: ignore[call-overload]
    return file.getvalue()


def npz(save: Callable[..., None] = np.savez, **arrays: object) -> bytes:
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as output:
        for name, content in members:
            output.writestr(name, content)
    return file.getvalue()


def header(descr: object = "<f8", shape: object = (3,), version: int = 1) -> bytes:
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text


def refusal(path: Path, read: Callable[[Path], object] = read_scores) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    message = caught.value.message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", ">f4", "<f2", ">f2", "longdouble"])
def test_npy_of_any_float(tmp_path: Path, dtype: str) -> None:
    scores = read_scores(written(tmp_path, "c.npy", npy(COSINES.astype(dtype))))
    np.testing.assert_array_equal(scores.observed, COSINES)
    assert scores.observed.dtype == np.float64
    assert scores.observed.dtype.isnative
    assert scores.unobserved is None


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, save: Callable[..., None]) -> None:
    alone = read_scores(written(tmp_path, "a.npz", npz(save, observed=COSINES)))
    both = read_scores(written(tmp_path, "b.NPZ", npz(save, unobserved=OTHERS, observed=COSINES)))
    assert alone.unobserved is None
    for scores in (alone, both):
        np.testing.assert_array_equal(scores.observed, COSINES)
    np.testing.assert_array_equal(both.unobserved, OTHERS)


@pytest.mark.parametrize(
    "text",
    [
        "0.25\n-0.5\n0.125\n",
        "0.25\r\n-5e-1\r\n.125",
        "\ufeff0.25\n -0.5 \n0.125\n\n\n",
        "observed\n0.25\n-0.5\n0.125\n",
        '\ufeff"observed"\r\n0.25\r\n"-0.5"\r\n0.125\r\n',
    ],
)
def test_csv_with_one_column(tmp_path: Path, text: str) -> None:
    scores = read_scores(written(tmp_path, "c.csv", text.encode()))
    np.testing.assert_array_equal(scores.observed, COSINES)
    assert scores.unobserved is None


@pytest.mark.parametrize(
    "text",
    [
        "observed,unobserved\n0.25,0.5\n-0.5,0\n0.125,\n",
        "unobserved, observed\n0.5,0.25\n0,-0.5\n,0.125\n,\n\n",
        "observed,unobserved\n0.25,0.5\n-0.5,0\n0.125\n",
    ],
)
def test_csv_with_two_columns(tmp_path: Path, text: str) -> None:
    scores = read_scores(written(tmp_path, "c.csv", text.encode()))
    np.testing.assert_array_equal(scores.observed, COSINES)
    np.testing.assert_array_equal(scores.unobserved, OTHERS)


# The directory has another name than the member itself, which is all of it.
LONG_NAME = archive(("observed.npy", bytes(20_000)))
LONG_NAME = LONG_NAME[:26] + (9000).to_bytes(2, "little") + LONG_NAME[28:]

BAD_SCORES = [
    ("c.npy", npy([0.5, 1.5]), "observed[1]: a cosine must lie in [-1, 1], not 1.5; other scores are of kind any"),
    ("c.npy", npy([0.5, np.nan]), "observed[1]: must be finite, not nan"),
    ("c.npy", npy([-np.inf, 0.5]), "observed[0]: must be finite, not -inf"),
    ("c.npy", npy(np.array(["1e4000", "0"], dtype=np.longdouble)), "observed[0]: must be finite, not inf"),
    ("c.npy", npy([0.5]), "observed: must have at least 2 values, not 1"),
    ("c.npy", npy(np.empty(0)), "observed: must have at least 2 values, not 0"),
    ("c.npy", npy([0.5, 0.5]), "observed: all 2 values are equal; their variance must not be zero"),
    ("c.npy", npy([0.0, -0.0]), "observed: all 2 values are equal"),
    ("c.npy", npy([[0.5, 0.1]]), "the array must have one axis, not 2"),
    ("c.npy", npy(0.5), "the array must have one axis, not 0"),
    ("c.npy", npy([0.5, 0.1j]), "values must be floating-point, not complex128"),
    ("c.npy", npy([0, 1]), "values must be floating-point, not int64"),
    ("c.npy", npy([True, False]), "values must be floating-point, not bool"),
    ("c.npy", npy(["0.5", "0.1"]), "values must be floating-point, not <U3"),
    ("c.npy", npy(np.zeros(2, dtype=[("a" * 500, "f8")])), "values must be floating-point, not [("),
    ("c.npy", npy(np.array([{}, 0.5], dtype=object), allow_pickle=True), "values must be floating-point, not object"),
    ("c.npy", b"", "the file is empty"),
    ("c.npy", b"0.5\n0.25\n", "is not a readable .npy file"),
    ("c.npy", npz(observed=COSINES), "is not a readable .npy file"),
    ("c.npy", npy(COSINES) + b"\0", "truncated or damaged: the header declares 3 values of float64 (24 bytes), and 25"),
    ("c.npy", header(shape=(10**6,)), "truncated or damaged: the header declares 1000000 values"),
    ("c.npy", header(shape=(10**18,)), f"the array must have 0 to {LARGEST_COUNT} values, not {10**18}"),
    ("c.npy", header(shape=(-3,)) + bytes(24), "the array must have 0 to"),
    ("c.npy", header(shape=(3.0,)), "is not a readable .npy file"),
    ("c.npy", header(shape=3), "is not a readable .npy file"),
    ("c.npy", header(descr="<f9"), "is not a readable .npy file"),
    ("c.npy", header(descr="f8," * 100), "values must be floating-point, not ["),
    ("c.npy", header(version=2) + bytes(24), "is not a readable .npy file (format version 2.0; plain arrays have 1.0)"),
    ("c.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "is not a readable .npy file"),
    ("c.npy", b"\x93NUMPY\x01\x00\x00\x20" + b"(" * 0x2000, "is not a readable .npy file"),
    ("c.npy", b"\x93NUMPY\x01\x00\x00\x20" + b"-" * 0x2000, "is not a readable .npy file"),
    ("c.npy", b"\x93NUMPY\x01\x00\x00\x20" + b"\xff" * 0x2000, "is not a readable .npy file"),
    ("c.npz", npz(seen=COSINES), "arrays must be named observed and, optionally, unobserved, not 'seen'"),
    ("c.npz", npz(observed=COSINES, unobservd=OTHERS), "not 'unobservd'"),
    ("c.npz", npz(unobserved=OTHERS), "must have an array named observed"),
    ("c.npz", archive(), "must have an array named observed"),
    ("c.npz", npz(observed=COSINES, unobserved=[0.5, 0.5]), "unobserved: all 2 values are equal"),
    (
        "c.npz",
        npz(observed=COSINES, unobserved=[0.5, 2.0]),
        "unobserved[1]: a cosine must lie in [-1, 1], not 2.0; other scores are of kind any",
    ),
    ("c.npz", npz(observed=COSINES, unobserved=[0.5]), "unobserved: must have at least 2 values, not 1"),
    ("c.npz", npz(observed=COSINES, unobserved=[1, 0]), "unobserved: values must be floating-point, not int64"),
    ("c.npz", npz(observed=[[0.5, 0.1]]), "observed: the array must have one axis, not 2"),
    ("c.npz", npy(COSINES), "is not a readable .npz file"),
    ("c.npz", LONG_NAME, "is not a readable .npz file (File name in directory"),
    ("c.npz", archive(("observed.npy", b"")), "observed: is not a readable .npy file"),
    ("c.npz", archive(("observed.npy", header(shape=(10**9,)))), "observed: the array must have 0 to"),
    ("c.npz", archive(("observed.npy", header(shape=(10**6,)))), "observed: truncated or damaged"),
    ("c.npz", archive(("observed.npy", npy(COSINES)), ("observed", npy(COSINES))), "every array must have a name"),
    ("c.npz", archive(("observed.npy", npy(COSINES)), compression=zipfile.ZIP_LZMA), "observed: must be stored or def"),
    ("c.csv", b"", "the file is empty"),
    ("c.csv", b"\n\n", "observed: must have at least 2 values, not 0"),
    ("c.csv", b"observed\n", "observed: must have at least 2 values, not 0"),
    ("c.csv", b"0.5\n0.1x\n", "observed, line 2: must be a number, not '0.1x'"),
    (
        "c.csv",
        b"cosine\n0.1\n",
        "observed, line 1: must be a number or a header that names the column observed, not 'c",
    ),
    ("c.csv", b"observed,unobserved\n0.5,0.1\n0.2,-\n", "unobserved, line 3: must be a number, not '-'"),
    (
        "c.csv",
        b"observed,unobserved\n0.5,0.1\n0.2,2\n",
        "unobserved, line 3: a cosine must lie in [-1, 1], not 2.0; other scores are of kind any",
    ),
    ("c.csv", b"observed,round\n0.5,1\n", "columns must be named observed and, optionally, unobserved, not 'round'"),
    ("c.csv", b"observed,observed\n0.5,1\n", "every column must have a name of its own"),
    ("c.csv", b"0.5\nnan\n", "observed, line 2: must be finite, not nan"),
    ("c.csv", b"0.5\n1e999\n", "observed, line 2: must be finite, not inf"),
    ("c.csv", b"0.5\n\n0.1\n", "observed, line 3: no number may stand below an empty cell"),
    ("c.csv", b"0,5\n0,1\n", "line 1: must have at most 1 cell, not 2"),
    ("c.csv", b"0.5\n0.1,0.2\n", "line 2: must have at most 1 cell, not 2"),
    ("c.csv", b"0.5\n0_1\n", "observed, line 2: must be a number, not '0_1'"),
    ("c.csv", "0.5\n٠\n".encode(), "observed, line 2: must be a number, not '٠'"),
    ("c.csv", b'0.5\n"0.1\n"\n', "line 2: a quoted cell must end on its line"),
    ("c.csv", b'0.5\n"0.1\n', "line 2: is not comma-separated text"),
    ("c.csv", b"0.5\n\x00\n", "line 2: "),
    ("c.csv", b"0.5\n" + b"1" * 20_000, "line 2: must have at most 10000 characters"),
    ("c.csv", b"0.5\n" + b"x" * 9_000, "line 2: must be a number, not 'xxx"),
    ("c.csv", "0.5\n0.1\n".encode("utf-16"), "must be text in UTF-8"),
    ("c.csv", npy(COSINES), "must be text in UTF-8"),
    ("c.txt", b"0.5\n0.1\n", "the file's name must end in .npy or .npz or .csv"),
    ("c", b"0.5\n0.1\n", "the file's name must end in .npy or .npz or .csv"),
]


@pytest.mark.parametrize(("name", "content", "rule"), BAD_SCORES)
def test_a_bad_file_of_cosines_is_refused_by_rule(tmp_path: Path, name: str, content: bytes, rule: str) -> None:
    message = refusal(written(tmp_path, name, content))
    assert rule in message
    assert len(message) < 300
    assert "\n" not in message


def test_a_damaged_member_is_refused(tmp_path: Path) -> None:
    values = np.linspace(-0.5, 0.5, 100)
    whole = npz(np.savez_compressed, observed=values)
    flipped = bytearray(whole)
    flipped[200] ^= 0xFF
    assert "observed: " in refusal(written(tmp_path, "flipped.npz", bytes(flipped)))
    # Cut inside the member's data, the directory at the end kept.
    directory = whole.index(b"PK\x01\x02")
    assert "observed: " in refusal(
        written(tmp_path, "cut.npz", whole[:150] + bytes(directory - 150) + whole[directory:])
    )


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    content = bytearray(npz(observed=COSINES))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in refusal(written(tmp_path, "c.npz", bytes(content)))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
            return os.mkdir, (str(tmp_path / "hit"),)

    content = npy(np.array([Bomb(), 0.5], dtype=object), allow_pickle=True)
    refusal(written(tmp_path, "c.npy", content))
    refusal(written(tmp_path, "c.npz", archive(("observed.npy", content))))
    refusal(written(tmp_path, "r.npy", content), read_release)
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("claimed", [LARGEST_COUNT + 1, 10**15])
def test_a_bomb_allocates_nothing(tmp_path: Path, claimed: int) -> None:
    zeros = io.BytesIO()
    with zipfile.ZipFile(zeros, "w", zipfile.ZIP_DEFLATED) as output, output.open("observed.npy", "w") as member:
        member.write(header(shape=(claimed,)))
        for _ in range(85):
            member.write(bytes(2**20))
    path = written(tmp_path, "bomb.npz", zeros.getvalue())
    tracemalloc.start()
    refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**21


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "loop.npy").symlink_to(tmp_path / "loop.npy")
    assert refusal(tmp_path / "folder.npy") == "must be a regular file"
    assert refusal(tmp_path / "pipe.npy") == "must be a regular file"
    assert refusal(tmp_path / "missing.npy") == "No such file or directory"
    assert "symbolic links" in refusal(tmp_path / "loop.npy")
    assert refusal(tmp_path / ("x" * 300 + ".npy")) == "File name too long"


def test_an_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, _mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    path = written(tmp_path, "c.npy", npy(COSINES))
    monkeypatch.setattr(Path, "open", refuse)
    assert refusal(path) == "Permission denied"


def test_too_large_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*_: object) -> None:
        raise MemoryError

    path = written(tmp_path, "r.npy", npy(COSINES))
    monkeypatch.setattr(np, "zeros", exhaust)
    assert refusal(path, read_release) == "does not fit in memory"


def accepted(path: Path) -> ScoreColumns | None:
    """Read, where the only permitted exception is the one-line refusal."""
    try:
        return read_scores(path)
    except InputError as error:
        message = error.message
    assert "\n" not in message
    return None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.npy", npy(COSINES)),
        ("c.npz", npz(observed=COSINES, unobserved=OTHERS)),
        ("d.npz", npz(np.savez_compressed, observed=COSINES)),
    ],
)
def test_a_file_cut_at_any_byte_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    for length in range(len(content)):
        path.write_bytes(content[:length])
        refusal(path)


def test_a_csv_cut_at_any_byte_is_read_or_refused(tmp_path: Path) -> None:
    content = '\ufeff"observed",unobserved\r\n0.25,0.5\r\n-0.5,0\r\n0.125,\r\n'.encode()
    for length in range(len(content)):
        scores = accepted(written(tmp_path, "c.csv", content[:length]))
        assert scores is None or len(scores.observed) >= 2


@PROPERTY
@given(st.data())
def test_any_damage_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    name, content = data.draw(
        st.sampled_from(
            [
                ("c.npy", npy(COSINES)),
                ("c.npz", npz(observed=COSINES, unobserved=OTHERS)),
                ("c.npz", npz(np.savez_compressed, observed=COSINES)),
                ("c.csv", b'"observed",unobserved\r\n0.25,0.5\r\n-0.5,0\r\n0.125,\r\n'),
            ]
        )
    )
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    accepted(written(tmp_path, name, bytes(damaged)))


@PROPERTY
@given(st.sampled_from(["c.npy", "c.npz", "c.csv"]), st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(tmp_path: Path, name: str, content: bytes) -> None:
    accepted(written(tmp_path, name, content))
    accepted(written(tmp_path, "h.npy", b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content))


@PROPERTY
@given(st.text(alphabet='observedun,"\r\n -+.019ex\ufeff', max_size=60))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    accepted(written(tmp_path, "c.csv", text.encode()))


@pytest.mark.parametrize(
    ("stored", "read"),
    [("<f4", "f4"), (">f4", "f4"), ("<f2", "f4"), ("<f8", "f8"), (">f8", "f8"), ("longdouble", "f8")],
)
def test_a_release_keeps_its_precision(tmp_path: Path, stored: str, read: str) -> None:
    vector = np.array([3.0, -400.5, 0.0])
    release = read_release(written(tmp_path, "r.npy", npy(vector.astype(stored))))
    np.testing.assert_array_equal(release, vector)
    assert release.dtype == np.dtype(read)
    assert release.dtype.isnative


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("r.npy", npy(np.zeros(5)), "the release must not be the zero vector"),
        ("r.npy", npy([0.5]), "the release must have at least 2 coordinates, not 1"),
        ("r.npy", npy([0.5, np.nan]), "release[1]: must be finite, not nan"),
        ("r.npy", npy([[0.5, 0.1]]), "the array must have one axis, not 2"),
        ("r.npy", npy([3, 4]), "values must be floating-point, not int64"),
        ("r.npy", npy(COSINES)[:-1], "truncated or damaged"),
        ("r.npy", header(shape=(2**39,)), "truncated or damaged"),
        ("r.npz", npz(observed=COSINES), "the file's name must end in .npy"),
        ("r.csv", b"0.5\n0.1\n", "the file's name must end in .npy"),
    ],
)
def test_a_bad_release_is_refused_by_rule(tmp_path: Path, name: str, content: bytes, rule: str) -> None:
    assert refusal(written(tmp_path, name, content), read_release).startswith(rule)


def test_a_table_in_blocks_is_the_table_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    observed, unobserved = rng.uniform(-1.0, 1.0, (2, 500))
    rows = [
        f"{a!r},{b!r}" if i < 300 else f"{a!r},"
        for i, (a, b) in enumerate(zip(*(values.tolist() for values in (observed, unobserved)), strict=True))
    ]
    for size in (60, 100, 2**20):
        monkeypatch.setattr(reading, "_BLOCK", size)
        for end in ("\n", "\r\n", "\r"):
            text = end.join(["observed,unobserved", *rows[:200], rows[200].replace(",", ',"') + '"', *rows[201:]])
            scores = read_scores(written(tmp_path, "c.csv", text.encode() + end.encode() * (size % 3)))
            np.testing.assert_array_equal(scores.observed, observed)
            np.testing.assert_array_equal(scores.unobserved, unobserved[:300])


@pytest.mark.parametrize("cell", ["1_0", "nan", "0x1", "٣", "0.5,0.5", '"0.5', "0.5 0.5", "1e5"])
def test_a_bad_line_is_named_wherever_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str) -> None:
    lines = [repr(0.5 + i / 1000) for i in range(40)]
    lines[30] = cell
    path = written(tmp_path, "c.csv", "\n".join(lines).encode())
    said = refusal(path)
    monkeypatch.setattr(reading, "_BLOCK", 16)
    assert refusal(path) == said
    assert "line 31:" in said


def test_lines_without_end_and_without_numbers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_COUNT", 100)
    path = written(tmp_path, "c.csv", b"0.25\n0.5\n" + b"\n" * 200)
    assert refusal(path) == "must have at most 100 lines of numbers"
    path.write_bytes(b"".join(b"0.%d\n" % i for i in range(10, 111)))
    assert refusal(path) == "must have at most 100 lines of numbers"
    path.write_bytes(b"0.25\n" + b"0" * 3 * 2**20)
    assert refusal(path) == "line 2: must have at most 10000 characters"


@pytest.mark.deep(beyond=1)
@pytest.mark.skipif(not RESET.exists(), reason="peak memory cannot be set back here")
@pytest.mark.parametrize(("place", "value"), [(None, 0.0), (10**7, 0.5), (10**7, np.nan)])
def test_holes_in_a_release_take_no_memory(tmp_path: Path, place: int | None, value: float) -> None:
    path = tmp_path / "r.npy"
    count = 2**26
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (count,)})
        start = file.tell()
        file.truncate(start + 4 * count)
        if place is not None:
            file.seek(start + 4 * place)
            file.write(np.float32(value).tobytes())
    before = held()
    if place is None:
        assert refusal(path, read_release) == "the release must not be the zero vector"
    elif np.isnan(value):
        assert refusal(path, read_release) == f"release[{place}]: must be finite, not nan"
    else:
        release = read_release(path)
        assert np.flatnonzero(release).tolist() == [place]
    # The file says 268 MB.
    assert peak() - before < 130_000_000


LABELLED = b"id,score,member\n1,0.25,1\n2,-0.5,true\n3,0.5,0\n4,0.125,TRUE\n5,0.0,False\n"


@pytest.mark.parametrize("content", [LABELLED, b"\xef\xbb\xbf" + LABELLED, LABELLED.replace(b"\n", b"\r\n")])
def test_a_table_with_a_line_for_each_canary_is_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(content)
    scores = read_labelled(path, "score", "member")
    np.testing.assert_array_equal(scores.observed, COSINES)
    np.testing.assert_array_equal(scores.unobserved, OTHERS)
    path.write_bytes(content.replace(b"0.125", b"inf"))
    assert read_labelled(path, "score", "member", ScoreKind.ANY).observed[-1] == np.inf


def test_a_table_of_columns_of_other_kinds_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "c.parquet"
    pandas.DataFrame({"s": [0.25, -0.5, 0.5, 0.125, 0.0], "m": [True, True, False, True, False]}).to_parquet(path)
    np.testing.assert_array_equal(read_labelled(path, "s", "m").observed, COSINES)


FRAME = {"s": [0.25, -0.5, 0.5, 0.125, 0.0], "m": [True, True, False, True, False]}


def refused(columns: dict[str, object], score: str = "s", member: str = "m") -> str:
    """The rule that a table of columns breaks, which has rows and no lines."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns)
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        labelled_scores(LabelledTable(list(frame.columns), frame, 0), score, member, ScoreKind.COSINE)
    return str(caught.value)


def test_a_wrong_cell_of_a_table_without_lines_is_named_by_its_row() -> None:
    assert refused(FRAME | {"s": [0.25, -0.5, np.nan, 0.125, 0.0]}) == "s, row 2: must be finite, not nan"
    assert (
        refused(FRAME | {"s": [0.25, -0.5, 0.5, 7.0, 0.0]})
        == "s, row 3: a cosine must lie in [-1, 1], not 7.0; other scores are of kind any"
    )
    assert refused(FRAME | {"s": [True] * 5}) == "s, row 0: must be a number, not 'True'"
    assert refused(FRAME | {"s": [[0.25]] * 5}) == "s, row 0: must be a number, not '[0.25]'"
    assert refused(FRAME | {"m": [1, 1, None, 1, 0]}).startswith("m, row 2: must be 1 or true if the canary took part")
    assert refused(FRAME | {"m": [1, 1, 0, 2, 0]}).endswith("else 0 or false, not '2'")
    assert refused(FRAME, score="loss") == "must have one column 'loss'; its columns are s, m"
    assert refused({}) == "must have one column 's'; it has none"


@pytest.mark.parametrize("dtype", ["float16", "float32", "Float32"])
def test_numbers_of_a_table_are_read_exactly(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    cells = pandas.Series([0.1, -0.3, 0.7, 0.2, 0.6]).astype(dtype)
    frame = pandas.DataFrame(FRAME | {"s": cells, "m": np.array([1, 1, 0, 1, 0], np.int8)})
    scores = labelled_scores(LabelledTable(["s", "m"], frame, 0), "s", "m", ScoreKind.COSINE)
    np.testing.assert_array_equal(scores.observed, cells.to_numpy(np.float64)[[0, 1, 3]])


def test_a_column_that_pandas_wrote_as_an_index_is_found(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "c.parquet"
    pandas.DataFrame(FRAME).set_index("s").to_parquet(path)
    np.testing.assert_array_equal(read_labelled(path, "s", "m").observed, COSINES)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (LABELLED.replace(b"score", b"loss"), "must have one column 'score'; its columns are id, loss, member"),
        (LABELLED.replace(b"id,", b"score,"), "must have one column 'score'; its columns are score, score, member"),
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
        (b"\xff" + LABELLED, "is no table that can be read ("),
        (LABELLED.replace(b",1\n", b",1,9,9,9\n"), "is no table that can be read ("),
        (b"", "the file is empty"),
    ],
)
def test_another_table_is_refused_in_one_line(tmp_path: Path, content: bytes, rule: str) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(content)
    message = refusal(path, lambda file: read_labelled(file, "score", "member"))
    assert message.startswith(rule)
    assert "\n" not in message
