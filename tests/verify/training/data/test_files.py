import gzip
import io
import os
import tracemalloc

import pytest

from canaryproof.verify.files.reading import InputError
from canaryproof.verify.training.data import files
from canaryproof.verify.training.data.files import in_folder, inflated, read_one_more, read_text

TEXT = b"some bytes that can be deflated " * 100


def inflate(path):
    with inflated(path) as file:
        return file.read()


def test_files_come_in_the_order_of_their_names(tmp_path):
    for name in ("b.txt", "a.txt", "c.json"):
        (tmp_path / name).touch()
    (tmp_path / "d.txt").mkdir()
    assert [path.name for path in in_folder(tmp_path, "*.txt")] == ["a.txt", "b.txt"]


def test_what_is_no_folder_is_refused(tmp_path, refusal):
    assert refusal(lambda place: in_folder(place, "*"), tmp_path / "none") == ": must be a folder"


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_inflated_only_by_its_name(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(TEXT) if name == "a.gz" else TEXT)
    assert inflate(tmp_path / name) == TEXT


WRONG = gzip.compress(TEXT, mtime=0)
WRONG_CRC = WRONG[:-8] + bytes([WRONG[-8] ^ 1]) + WRONG[-7:]
WRONG_BLOCK = WRONG[:10] + b"\xff" + WRONG[11:]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (TEXT, ": is not a readable gzip file (Not a gzipped file"),
        (WRONG[:-9], ": truncated: its gzip stream has no end"),
        (WRONG[:4], ": truncated: its gzip stream has no end"),
        (WRONG_CRC, ": is not a readable gzip file (CRC check failed"),
        (WRONG_BLOCK, ": is not a readable gzip file (Error -3 while decompressing data"),
        (WRONG + b"rubbish", ": is not a readable gzip file (Not a gzipped file"),
        (b"", ": the file is empty"),
    ],
)
def test_damaged_gzip_is_refused(tmp_path, refusal, content, said):
    (tmp_path / "a.gz").write_bytes(content)
    assert refusal(inflate, tmp_path / "a.gz").startswith(said)


def test_a_rule_of_the_callers_is_not_taken_for_damage(tmp_path):
    (tmp_path / "a.gz").write_bytes(WRONG)
    with pytest.raises(InputError) as caught, inflated(tmp_path / "a.gz"):
        raise ValueError("must be otherwise")
    assert caught.value.message == f"{tmp_path / 'a.gz'}: must be otherwise"


def test_pipes_are_refused(tmp_path, refusal):
    os.mkfifo(tmp_path / "a.gz")
    assert refusal(inflate, tmp_path / "a.gz") == ": must be a regular file"


@pytest.mark.parametrize("size", [0, 9, 10, 11, 2**40])
def test_one_more_is_read_and_no_more_is_held(size):
    file = io.BytesIO(b"0123456789")
    tracemalloc.start()
    try:
        assert read_one_more(file, size) == b"0123456789"[: size + 1]
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()


def test_text(tmp_path, refusal, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes("\ufeffÆ\n".encode())
    assert read_text(path) == "Æ\n"
    monkeypatch.setattr(files, "LARGEST", 5)
    assert refusal(read_text, path) == ": must have at most 5 bytes"
    path.write_bytes(b"\xc6\n")
    assert refusal(read_text, path) == ": must be text in UTF-8"
