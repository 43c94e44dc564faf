import gzip
import json
import os
import tracemalloc

import pytest

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training.data import cifar10, idx, leaf, plays, tff
from canaryproof.verify.papers.training.data.files import in_folder, inflated

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


def test_a_gzip_bomb_is_refused_before_it_is_inflated(tmp_path, refusal):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(2**24 + 1)))
    tracemalloc.start()
    try:
        assert refusal(inflate, path) == ": must not inflate to more than 16777216 bytes"
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    path.write_bytes(gzip.compress(bytes(2**24)))
    assert len(inflate(path)) == 2**24


# What each loader reads first, in its folder.
LOADERS = {
    "idx": (lambda place: idx.load(place, 1, 0), "train-images-idx3-ubyte"),
    "leaf": (leaf.load, "all_data/a.json"),
    "leaf/train": (leaf.load, "train/a.json"),
    "plays": (plays.load, "a.txt"),
    "glove": (leaf.load, "glove.6B.50d.txt"),
    "cifar10": (lambda place: cifar10.load(place, 1, 0), "data_batch_1.bin"),
    "cifar10/bin": (lambda place: cifar10.load(place, 1, 0), "cifar-10-batches-bin/data_batch_1.bin"),
    "tff": (lambda place: tff.load(place, 4, 4), "emnist_all.sqlite"),
    "words": (lambda place: tff.load(place, 4, 4), "stackoverflow.word_count"),
}
TWEETS = {"users": ["u"], "num_samples": [10], "user_data": {"u": {"x": [["", "", "", "", "t"]] * 10, "y": [1] * 10}}}
ASIDE = {
    "idx": dict.fromkeys(("train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"), ""),
    "glove": {"a.json": json.dumps(TWEETS)},
    "words": {"stackoverflow.sqlite": ""},
}


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("of_folder", [False, True])
def test_no_loader_follows_a_link_out_of_its_folder(tmp_path, loader, of_folder):
    load, name = LOADERS[loader]
    data, other = tmp_path / "data", tmp_path / "other"
    for place in (data, other):
        (place / name).parent.mkdir(parents=True)
    (other / name).write_text("secret")
    for file, text in ASIDE.get(loader, {}).items():
        (data / file).write_text(text)
    link = data / name
    if of_folder:
        if link.parent == data:
            pytest.skip("the file is in the folder itself, which may be a link")
        link.parent.rmdir()
        link.parent.symlink_to((other / name).parent)
    else:
        link.symlink_to(other / name)
    with pytest.raises(InputError) as caught:
        load(data)
    assert caught.value.message == f"{link}: must not be a link that leads out of {data}"


def test_links_inside_the_folder_and_to_it_are_followed(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("A:\n" + "words " * 40)
    (tmp_path / "data" / "b.txt").symlink_to("a.txt")
    (tmp_path / "link").symlink_to("data")
    assert plays.load(tmp_path / "link", 4).clients == 2


def test_a_link_to_itself_is_refused(tmp_path, refusal):
    (tmp_path / "a.txt").symlink_to("a.txt")
    assert refusal(plays.load, tmp_path / "a.txt", 4) == ": Too many levels of symbolic links"
