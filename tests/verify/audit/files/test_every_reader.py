"""What every reader of users' files must do: a new one needs a line in ``READERS``, with a file that it takes.

Whatever a file holds, a reader reads it or refuses it in one line that names the file; it allocates nothing that is not
there, executes nothing, and leaves the file alone.
"""

import io
import json
import os
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.answer import model_card, report, report_check
from canaryproof.verify.audit.answer.run_audit import audit
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.canaries.round_scores import RoundScores
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.files import checkpoint, stored_release
from canaryproof.verify.audit.files.other_results import read_result
from canaryproof.verify.audit.files.reading import read_json, read_release, read_score_columns, read_scores
from canaryproof.verify.audit.files.stored_release import open_release

# Their digits fit in 16 bits.
SEEN, UNSEEN = np.array([0.25, -0.5, 0.125]), np.array([0.5, 0.0])
BOTH = {"observed": SEEN, "unobserved": UNSEEN}
COLUMNS = pd.DataFrame({name: pd.Series(values) for name, values in BOTH.items()})
LABELLED = pd.DataFrame({"score": [*SEEN, *UNSEEN], "member": [1, 1, 1, 0, 0]})
TENSORS = {"b": np.array([[0.5, -2.0]], np.float32), "a": np.array([1.0, 3.0], np.float32), "n": np.array([7])}
CANARIES = Canaries(3, 4, 40)
CHECKPOINT = {"theta": np.arange(5, dtype=np.float32), "count": np.array(3, np.int32)}


def npy(values: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values, **options)
    return file.getvalue()


def npz(save: Any = np.savez, **arrays: Any) -> bytes:
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def csv(table: pd.DataFrame, **options: Any) -> bytes:
    return str(table.to_csv(index=False, **options)).encode()


def safetensors(tensors: Mapping[str, np.ndarray], **others: Any) -> bytes:
    """Write what the library of this name does: tensors one after another, in the order given."""
    kinds = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "int64": "I64", "bool": "BOOL"}
    header, end = dict(others), 0
    for name, values in tensors.items():
        ends = [end, end := end + values.nbytes]
        header[name] = {"dtype": kinds[values.dtype.name], "shape": list(values.shape), "data_offsets": ends}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(values.tobytes() for values in tensors.values())


def saved(save: Callable[[Path], object], name: str, file: str = "") -> bytes:
    """What the package itself writes to a file, or beside it."""
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / name)
        return (Path(folder) / (file or name)).read_bytes()


def trained() -> CanaryClients:
    clients = CanaryClients(CANARIES, bernoulli(0, 0.5, 3, 1, Insertion(4, 2)), block=2)
    for t, delta in enumerate(np.random.default_rng(0).normal(size=(3, 40))):
        clients.add(delta, t)
    return clients


def loaded(path: Path) -> list[Any]:
    clients = CanaryClients(CANARIES, bernoulli(0, 0.5, 3, 1, Insertion(4, 2)))
    clients.load(path)
    return list(clients.all_rounds())


def reported(path: Path) -> None:
    report.write(audit(Scores([0.1, 0.3, 0.2, 0.25], [0.0, 0.05, -0.1], dim=100), 1e-5), path)


def scores_of(columns: Any) -> list[Any]:
    return [columns.observed, columns.unobserved]


def result_of(path: Path) -> list[Any]:
    result = read_result(path)
    return [*result.counts, *([] if result.scores is None else scores_of(result.scores))]


def released(path: Path) -> list[Any]:
    release = open_release(path)
    return [release.read(0, release.dim).astype(np.float64)]


class Reader(NamedTuple):
    """A reader: its file's name, what the file may hold, all of which is the same, and how its numbers are read."""

    file: str
    make: Callable[[], list[bytes]]
    read: Callable[[Path], list[Any]]
    # Files that are read with it.
    beside: Callable[[], Mapping[str, bytes]] = dict
    # Whether a file that ends too early may be a shorter one.
    is_text: bool = False


@cache
def contents(name: str) -> list[bytes]:
    return READERS[name].make()


@cache
def beside(name: str) -> Mapping[str, bytes]:
    return READERS[name].beside()


ARRAYS = [npy(SEEN), *(npy(SEEN.astype(dtype)) for dtype in ("<f4", ">f4", "<f2", ">f2", ">f8", "longdouble"))]
READERS = {
    "scores in npy": Reader("s.npy", lambda: ARRAYS, lambda path: scores_of(read_scores(path))),
    "scores in npz": Reader(
        "s.npz",
        lambda: [
            npz(**BOTH),
            npz(np.savez_compressed, **BOTH),
            npz(unobserved=UNSEEN.astype(np.float32), observed=SEEN.astype(">f2")),
        ],
        lambda path: scores_of(read_scores(path)),
    ),
    "scores in a column": Reader(
        "s.csv",
        lambda: [
            b"0.25\n-0.5\n0.125\n",
            b"0.25\r\n-5e-1\r\n.125",
            "\ufeff0.25\n -0.5 \n0.125\n\n\n".encode(),
            b"observed\n0.25\n-0.5\n0.125\n",
            '\ufeff"observed"\r\n0.25\r\n"-0.5"\r\n0.125\r\n'.encode(),
            csv(COLUMNS[["observed"]]),
        ],
        lambda path: scores_of(read_scores(path)),
        is_text=True,
    ),
    "scores in two columns": Reader(
        "s.csv",
        lambda: [
            b"observed,unobserved\n0.25,0.5\n-0.5,0\n0.125,\n",
            b"unobserved, observed\n0.5,0.25\n0,-0.5\n,0.125\n,\n\n",
            b"observed,unobserved\n0.25,0.5\n-0.5,0\n0.125\n",
            '\ufeff"observed",unobserved\r\n0.25,0.5\r\n-0.5,0\r\n0.125,\r\n'.encode(),
            csv(COLUMNS),
            csv(COLUMNS[["unobserved", "observed"]], lineterminator="\r\n"),
        ],
        lambda path: scores_of(read_scores(path)),
        is_text=True,
    ),
    "labelled scores": Reader(
        "s.csv",
        lambda: [
            csv(LABELLED),
            csv(LABELLED.astype({"member": bool})),
            csv(LABELLED.astype({"member": float}), lineterminator="\r\n"),
            csv(LABELLED.assign(id=range(5))[["id", "member", "score"]]),
            "\ufeffscore,member\n0.25,1\n-0.5,true\n0.5,0\n0.125,TRUE\n0.0,False\n".encode(),
        ],
        lambda path: scores_of(read_score_columns(path, "score", "member")),
        is_text=True,
    ),
    "saved scores": Reader(
        "s.json", lambda: [saved(Scores(SEEN, UNSEEN).save, "s.json")], lambda path: scores_of(Scores.load(path))
    ),
    "a result in csv": Reader(
        "r.csv",
        lambda: [csv(LABELLED), csv(LABELLED.rename(columns={"member": "is_member"}))],
        result_of,
        is_text=True,
    ),
    "a result in json": Reader(
        "r.json",
        lambda: [
            json.dumps(table.to_dict(orient)).encode()
            for table in (LABELLED, LABELLED.rename(columns={"member": "included", "score": "scores"}))
            for orient in ("list", "records")
        ],
        result_of,
    ),
    "counts of guesses": Reader(
        "r.json",
        lambda: [
            b'{"m": 10, "r": 5, "v": 4}',
            b'[{"canaries": 10, "guesses": 5, "right": 4}]',
            b'{"m": [10], "r": [5], "v": [4]}',
        ],
        result_of,
    ),
    "a release": Reader("r.npy", lambda: ARRAYS, lambda path: [read_release(path).astype(np.float64)]),
    "a release in its file": Reader("r.npy", lambda: ARRAYS, released),
    "tensors": Reader(
        "m.safetensors",
        lambda: [
            safetensors(TENSORS),
            safetensors(TENSORS, __metadata__={"format": "pt"}),
            safetensors(dict(reversed(TENSORS.items()))),
            safetensors({name: values.astype(ml_dtypes.bfloat16) for name, values in TENSORS.items() if name != "n"}),
            safetensors({name: values.astype(np.float64) for name, values in TENSORS.items() if name != "n"}),
        ],
        released,
    ),
    "tensors of an index": Reader(
        "m.safetensors.index.json",
        lambda: [b'{"weight_map": {"a": "m-1.safetensors", "b": "m-1.safetensors"}}'],
        released,
        lambda: {"m-1.safetensors": safetensors(TENSORS)},
    ),
    "a checkpoint": Reader(
        "c.npz",
        lambda: [saved(lambda path: checkpoint.write(path, {"rate": 0.5}, CHECKPOINT), "c.npz")],
        lambda path: list(checkpoint.read(path, {"rate": 0.5}, CHECKPOINT).values()),
    ),
    "scores of rounds": Reader(
        "rounds.npz",
        lambda: [saved(trained()._scores.save, "rounds.npz")],
        lambda path: [RoundScores.load(path).maxima],
    ),
    "clients": Reader(
        "state",
        lambda: [saved(trained().save, "state")],
        loaded,
        lambda: {"state.canaryproof-3": saved(trained().save, "state", "state.canaryproof-3")},
    ),
    "a report": Reader("a.json", lambda: [saved(reported, "a.json")], lambda path: [report_check.read(path).document]),
    "a model card's report": Reader(
        "a.json", lambda: [saved(reported, "a.json")], lambda path: [model_card.model_card(path)]
    ),
    "JSON": Reader(
        "d.json", lambda: [b'{"a": [1, 2.5]}', b'\xef\xbb\xbf{"a":[1,2.5]}\n'], lambda path: [read_json(path)]
    ),
}

every_reader = pytest.mark.parametrize("name", READERS)
PROPERTY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def put(folder: Path, name: str, content: bytes | None = None) -> Path:
    """Put a reader's file, and what belongs to it, into a folder."""
    reader = READERS[name]
    for other, held in beside(name).items():
        (folder / other).write_bytes(held)
    path = folder / reader.file
    path.write_bytes(contents(name)[0] if content is None else content)
    return path


def refusal(reader: Reader, path: Path) -> str:
    """Read, where the only exception is the refusal in a line, which is returned; empty if there is none."""
    try:
        reader.read(path)
    except (ValueError, OSError) as error:
        message = str(error)
    else:
        return ""
    assert "\n" not in message
    assert len(message) < 500 + 2 * len(str(path))
    # An index may name other files of its folder.
    assert path.name in message or str(path.parent) in message
    return message


def test_every_suffix_is_in_the_list() -> None:
    suffixes = {".npy", ".npz", ".csv", ".json", *stored_release.SUFFIXES}
    assert all(any(reader.file.endswith(suffix) for reader in READERS.values()) for suffix in suffixes)


@every_reader
def test_the_same_numbers_are_read_however_they_were_written(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    first = reader.read(put(tmp_path, name))
    for content in contents(name):
        for one, other in zip(reader.read(put(tmp_path, name, content)), first, strict=True):
            np.testing.assert_array_equal(one, other)
            assert np.asarray(one).dtype == np.asarray(other).dtype


@every_reader
def test_a_file_that_may_only_be_read_is_left_as_it_was(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    path = put(tmp_path, name)
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in tmp_path.iterdir()}
    for file in tmp_path.iterdir():
        file.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        reader.read(path)
        assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in tmp_path.iterdir()} == before
    finally:
        tmp_path.chmod(0o700)


@every_reader
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    path = put(tmp_path, name)
    path.unlink()
    assert "No such file" in refusal(reader, path)
    path.mkdir()
    assert "regular file" in refusal(reader, path)
    path.rmdir()
    os.mkfifo(path)
    assert "regular file" in refusal(reader, path)
    path.unlink()
    path.symlink_to(path)
    assert "symbolic links" in refusal(reader, path)
    assert "too long" in refusal(reader, path.with_name("x" * 300 + reader.file))


@every_reader
def test_an_empty_file_is_refused(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    assert refusal(reader, put(tmp_path, name, b""))


@every_reader
def test_a_file_that_ends_too_early_is_refused(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    content = contents(name)[0].rstrip(b"\n")
    for length in range(1, len(content), 1 + len(content) // 300):
        assert refusal(reader, put(tmp_path, name, content[:length])) or reader.is_text


@every_reader
@PROPERTY
@given(data=st.data())
def test_any_damage_is_read_or_refused(name: str, tmp_path: Path, data: st.DataObject) -> None:
    reader = READERS[name]
    damaged = bytearray(data.draw(st.sampled_from(contents(name))))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    refusal(reader, put(tmp_path, name, bytes(damaged)))


@every_reader
@PROPERTY
@given(content=st.binary(min_size=1, max_size=300))
def test_any_bytes_are_read_or_refused(name: str, tmp_path: Path, content: bytes) -> None:
    reader = READERS[name]
    for junk in (content, b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content, b"[" + content):
        refusal(reader, put(tmp_path, name, junk))


@every_reader
def test_another_readers_file_is_read_or_refused(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    for other in READERS:
        for content in contents(other):
            refusal(reader, put(tmp_path, name, content))


def header(count: int) -> bytes:
    """The header of a ``.npy`` file that claims so many numbers."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({count},)}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def archive(member: bytes, method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive in which the arrays that a reader may ask for first are the same."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as output:
        for name in ("observed", "description", *CHECKPOINT, "format", "seed", "maxima"):
            output.writestr(f"{name}.npy", member)
    return file.getvalue()


# Files that claim more than they hold, or hold little for their size.
HUGE = {
    "numbers in npy": header(10**7),
    "more numbers in npy": header(10**15),
    "numbers in npz": archive(header(10**7)),
    "more numbers in npz": archive(header(10**15)),
    "packed zeros": archive(header(10**7) + bytes(2**24), zipfile.ZIP_DEFLATED),
    "a header of tensors": (2**62).to_bytes(8, "little") + b"{}",
    "tensors": safetensors({}, a={"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}),
    "nested lists": b"[" * 10**5,
    "blanks": b" " * 2**21 + b"1",
    "a long line": b"1" * 2**21,
}


@pytest.mark.parametrize("huge", HUGE)
@every_reader
def test_what_a_file_claims_takes_no_memory(name: str, huge: str, tmp_path: Path) -> None:
    reader = READERS[name]
    path = put(tmp_path, name, HUGE[huge])
    # What is imported at the first use is held once.
    refusal(reader, path)
    tracemalloc.start()
    assert refusal(reader, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22 + 4 * len(HUGE[huge])


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@every_reader
def test_nothing_is_unpickled(name: str, tmp_path: Path) -> None:
    reader, hit = READERS[name], tmp_path / "hit"
    pickled = npy(np.array([Bomb(hit), 0.5], dtype=object), allow_pickle=True)
    for content in (pickled, archive(pickled), pickled[pickled.index(b"\n") + 1 :]):
        assert refusal(reader, put(tmp_path, name, content))
    assert not hit.exists()
