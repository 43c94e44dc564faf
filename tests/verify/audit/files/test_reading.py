from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from canaryproof.verify.audit.files import reading
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.other_results import read_result
from canaryproof.verify.audit.files.reading import (
    ScoreColumns,
    ScoreKind,
    labelled_scores,
    read_release,
    read_score_columns,
    read_scores,
    table_of,
)
from tests.memory import RESET, held, peak
from tests.verify.audit.files.test_every_reader import npy, npz
from tests.verify.audit.files.test_refusals import COSINES, LABELLED

PROPERTY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


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


def test_labelled_scores_of_any_kind_may_be_infinite(tmp_path: Path) -> None:
    path = written(tmp_path, "c.csv", LABELLED.replace(b"0.125", b"inf"))
    assert read_score_columns(path, "score", "member", ScoreKind.ANY).observed[-1] == np.inf


def test_a_table_of_columns_of_other_kinds_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "c.parquet"
    pandas.DataFrame({"s": [0.25, -0.5, 0.5, 0.125, 0.0], "m": [True, True, False, True, False]}).to_parquet(path)
    np.testing.assert_array_equal(read_score_columns(path, "s", "m").observed, COSINES)


FRAME = {"s": [0.25, -0.5, 0.5, 0.125, 0.0], "m": [True, True, False, True, False]}


def refused(columns: dict[str, object], score: str = "s", member: str = "m") -> str:
    """The rule that a table of columns breaks, which has rows and no lines."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns)
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        labelled_scores(table_of(frame), score, member, ScoreKind.COSINE)
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
    scores = labelled_scores(table_of(frame), "s", "m", ScoreKind.COSINE)
    np.testing.assert_array_equal(scores.observed, cells.to_numpy(np.float64)[[0, 1, 3]])


def ids_table(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "ids.csv"
    path.write_text("\n".join(["canary,s,m", *rows, "x,0.25,0", "y,0.5,0", "z,-0.5,1", ""]))
    return path


@pytest.mark.parametrize(
    ("rows", "observed", "unobserved"),
    [
        # Copies count once, whatever their scores are.
        (["a,0.1,1"] * 7 + ["b,0.1,0"] * 3, [0.1, -0.5], [0.1, 0.25, 0.5]),
        # Several queries of one canary have their mean; equal scores of two canaries are two.
        (["a,1,1", "b,2,0", "a,2,1", "c,1.5,1", "a,6,1"], [3.0, 1.5, -0.5], [2.0, 0.25, 0.5]),
        (["a,inf,1", "a,1,1", " b ,3,1", "b,-1,1"], [np.inf, 1.0, -0.5], [0.25, 0.5]),
    ],
)
def test_an_id_has_one_score(tmp_path: Path, rows: list[str], observed: list[float], unobserved: list[float]) -> None:
    path = ids_table(tmp_path, *rows)
    read = read_score_columns(path, "s", "m", ScoreKind.ANY, "canary")
    np.testing.assert_array_equal(read.observed, observed)
    np.testing.assert_array_equal(read.unobserved, unobserved)
    other = read_result(path, "s", "m", "canary")
    assert other.sizes == (len(observed), len(unobserved))


@pytest.mark.parametrize(
    ("rows", "kind", "rule"),
    [
        (["a,1,1", "a,1,0"], ScoreKind.ANY, "canary, line 3: 'a' must have taken part in all of its lines or in none"),
        ([",1,1"], ScoreKind.ANY, "canary, line 2: must name a canary, not ''"),
        (["a,inf,1", "a,-inf,1"], ScoreKind.ANY, "s, line 2: must be a number, not nan"),
        (
            ["b,0.1,1", "a,0.1,1", "a,0.2,1"],
            ScoreKind.COSINE,
            "canary, line 4: 'a' must have equal cosines in all of its lines; scores that differ are of kind any",
        ),
        (["a,7,1", "a,7,1"], ScoreKind.COSINE, "s, line 2: a cosine must lie in [-1, 1], not 7.0; other scores are of"),
    ],
)
def test_an_id_that_contradicts_itself_is_refused(tmp_path: Path, rows: list[str], kind: ScoreKind, rule: str) -> None:
    path = ids_table(tmp_path, *rows)
    assert refusal(path, lambda path: read_score_columns(path, "s", "m", kind, "canary")).startswith(rule)


def test_a_column_of_ids_must_be_there(tmp_path: Path) -> None:
    rule = "must have one column 'id'; its columns are canary, s, m"
    for read in (
        lambda path: read_score_columns(path, "s", "m", ScoreKind.ANY, "id"),
        lambda path: read_result(path, "s", "m", "id"),
    ):
        assert refusal(ids_table(tmp_path, "a,1,1", "b,2,1"), read) == rule


def test_ids_need_labels(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("m,r,v,canary\n10,4,3,a\n")
    assert refusal(path, lambda path: read_result(path, id_column="canary")) == (
        "canary: must stand next to columns of scores and labels"
    )


@pytest.mark.parametrize("kind", ["words", "numbers", "large", "categories", "optional", "bytes"])
def test_ids_of_any_type_are_read_from_parquet(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    of_kind = {
        "words": [f"client {i}" for i in range(4)],
        "numbers": [0.5, 1.5, 2.5, -0.5],
        "large": np.arange(4, dtype=np.uint64) + np.uint64(2**63),
        "categories": pandas.Categorical(["b", "a", "d", "c"]),
        "optional": pandas.array([3, 1, 2, 0], dtype="Int64"),
        "bytes": [b"a", b"b", b"c", b"d"],
    }
    frame = pandas.DataFrame({"s": [0.1, 0.2, 0.3, 0.4], "m": [True, True, False, False], "id": of_kind[kind]})
    path = tmp_path / "ids.parquet"
    pandas.concat([frame, frame, frame]).to_parquet(path, index=False)
    columns = read_score_columns(path, "s", "m", ScoreKind.ANY, "id")
    # In the order of ids, whatever that is.
    assert columns.unobserved is not None
    assert (sorted(columns.observed), sorted(columns.unobserved)) == ([0.1, 0.2], [0.3, 0.4])


def test_a_column_that_pandas_wrote_as_an_index_is_found(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "c.parquet"
    pandas.DataFrame(FRAME).set_index("s").to_parquet(path)
    np.testing.assert_array_equal(read_score_columns(path, "s", "m").observed, COSINES)


@pytest.mark.skipif(not RESET.exists(), reason="peak memory cannot be set back here")
@pytest.mark.parametrize("columns", [10**6, 10**7])
@pytest.mark.parametrize("read", [lambda path: read_score_columns(path, "s", "m"), read_result])
def test_a_table_of_many_columns_takes_no_memory(columns: int, read: Callable[[Path], object], tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", b"," * columns + b"\n" + b"," * columns)
    before = held()
    assert refusal(path, read) == "line 1: must have at most 10000 characters"
    assert peak() - before < 5_000_000


def test_rows_are_counted_while_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_COUNT", 100)
    lines = [f"0.{i},{i % 2}" for i in range(10, 110)]
    path = written(tmp_path, "t.csv", "\n".join(["s,m", *lines]).encode())
    assert len(read_score_columns(path, "s", "m").observed) == 50
    # What follows is not read, however wrong it is.
    path.write_text("\n".join(["s,m", *lines, "0.5,1", "x" * 20_000]))
    assert refusal(path, lambda path: read_score_columns(path, "s", "m")) == "must have at most 100 lines of numbers"


def test_columns_that_are_not_needed_are_not_looked_at(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", b"s,note,m,s2,s2\n0.5,x,1,,\n0.25,-,0\n-0.5,,1,9,9\n0.125,NaN,0,y,z\n")
    np.testing.assert_array_equal(read_score_columns(path, "s", "m").observed, [0.5, -0.5])


@pytest.fixture(name="parquet")
def _parquet(tmp_path: Path) -> Callable[..., Path]:
    """Write a table as a Parquet file."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def write(columns: dict[str, object], **options: Any) -> Path:
        parquet.write_table(arrow.table(columns), tmp_path / "t.parquet", **options)
        return tmp_path / "t.parquet"

    return write


def of_columns(path: Path) -> ScoreColumns:
    return read_score_columns(path, "s", "m")


@pytest.mark.skipif(not RESET.exists(), reason="peak memory cannot be set back here")
def test_a_small_parquet_file_of_many_rows_takes_no_memory(parquet: Callable[..., Path]) -> None:
    ones = np.ones(reading.LARGEST_COUNT + 1, np.int8)
    path = parquet({"s": ones, "m": ones}, compression="zstd")
    before = held()
    assert refusal(path, of_columns) == "must have at most 10000000 lines of numbers"
    assert peak() - before < 20_000_000


@pytest.mark.skipif(not RESET.exists(), reason="peak memory cannot be set back here")
def test_a_long_word_that_a_parquet_file_says_often_takes_no_memory(parquet: Callable[..., Path]) -> None:
    arrow = pytest.importorskip("pyarrow")
    for length, rule in ((10**6, "s: must have at most 10000 characters"), (9_999, "s, row 0: must be a number, not")):
        words = arrow.DictionaryArray.from_arrays(np.zeros(10**6, np.int32), ["x" * length])
        path = parquet({"s": words, "m": np.ones(10**6, np.int8)})
        before = held()
        assert refusal(path, of_columns).startswith(rule)
        assert peak() - before < 200_000_000


def test_columns_of_a_parquet_file_that_are_not_needed_are_not_read(parquet: Callable[..., Path]) -> None:
    columns = {"s": [0.5, 0.25, -0.5, 0.125], "m": [True, False, True, False], "notes": [["x"], [], None, ["y", "z"]]}
    np.testing.assert_array_equal(of_columns(parquet(columns)).observed, [0.5, -0.5])
    # Words and numbers of any precision are read as a table in memory has them.
    for cells in (["0.5", "0.25", "-0.5", "0.125"], np.array([0.5, 0.25, -0.5, 0.125], np.float16)):
        np.testing.assert_array_equal(of_columns(parquet(columns | {"s": cells})).observed, [0.5, -0.5])
    assert refusal(parquet(columns | {"s": columns["notes"]}), of_columns) == (
        "s: must have a number, a word or a truth value in each row"
    )
    many = {f"c{i}": [0.5] for i in range(10_001)}
    assert refusal(parquet(many), of_columns) == "must have at most 10000 columns"


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1" + b"\xff" * 4 + b"PAR1", b"PAR1" + b"\x00\x00\x00\x01PAR1"])
def test_a_damaged_parquet_file_is_refused(tmp_path: Path, damage: bytes) -> None:
    pytest.importorskip("pyarrow")
    message = refusal(written(tmp_path, "t.parquet", damage or b"x"), of_columns)
    rules = "is no table that can be read (", "its list of columns must have at most 16777216 bytes"
    assert message.startswith(rules)
