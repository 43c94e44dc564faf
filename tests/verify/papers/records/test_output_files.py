import json
from pathlib import Path

import pytest

from canaryproof.verify.audit.files.writing import own_folder
from canaryproof.verify.papers.check.results import Effort, Run
from canaryproof.verify.papers.records.output_files import write_files


def visible(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("[!.]*") if path.is_file()}


def test_our_files_are_replaced_and_removed_and_theirs_stay(tmp_path):
    (tmp_path / "notes.md").write_text("theirs")
    write_files({"a.md": b"1", "b.md": b"1", "tables/a.csv": b"1"}, tmp_path)
    (tmp_path / "tables" / "mine.csv").write_text("theirs")
    write_files({"a.md": b"2"}, tmp_path, ("*.md", "tables/*.csv"))
    assert visible(tmp_path) == {"a.md": "2", "notes.md": "theirs", "tables/mine.csv": "theirs"}
    # What was removed is ours no longer.
    (tmp_path / "b.md").write_text("theirs")
    write_files({"a.md": b"3"}, tmp_path, ("*.md",))
    assert visible(tmp_path) == {"a.md": "3", "b.md": "theirs", "notes.md": "theirs", "tables/mine.csv": "theirs"}


@pytest.mark.parametrize("name", ["a.md", "results.json", "tables/a.csv"])
def test_what_is_not_known_to_be_ours_stops_all(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    for kind in (Path.touch, Path.mkdir, lambda path: path.symlink_to("nowhere")):
        kind(tmp_path / name)
        with pytest.raises(FileExistsError, match="was not written by canaryproof") as caught:
            write_files({"first.md": b"1", name: b"2"}, tmp_path)
        assert caught.value.filename == str(tmp_path / name)
        assert [path for path in tmp_path.rglob("*") if not path.is_dir() and path != tmp_path / name] == []
        (tmp_path / name).rmdir() if (tmp_path / name).is_dir() else (tmp_path / name).unlink()


def test_beside_a_run_the_pages_are_ours(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(Run("0", Effort.QUICK, 0, ()).to_json()))
    (tmp_path / "summary.md").write_text("old")
    write_files({"summary.md": b"new"}, tmp_path)
    assert (tmp_path / "summary.md").read_text() == "new"


@pytest.mark.parametrize("name", ["tables/a.csv", "tables/b.csv"])
def test_a_folder_that_leads_elsewhere_is_left_alone(tmp_path, name):
    theirs, out = tmp_path / "theirs", tmp_path / "out"
    out.mkdir()
    write_files({"tables/a.csv": b"1"}, out)
    (out / "tables").rename(theirs)
    (out / "tables").symlink_to(theirs)
    with pytest.raises(NotADirectoryError, match="must be a folder, not a symbolic link"):
        write_files({name: b"2"}, out)
    with pytest.raises(NotADirectoryError, match="must be a folder, not a symbolic link"):
        own_folder(out / "tables")
    write_files({"a.md": b"2"}, out, ("tables/*.csv",))
    assert visible(theirs) == {"a.csv": "1"}


@pytest.mark.parametrize("content", [b"", b"\xff\0\n../theirs\n/\n", b"a" * 3_000_000])
def test_a_damaged_list_removes_nothing(tmp_path, content):
    out = tmp_path / "out"
    out.mkdir()
    for path in (tmp_path / "theirs", out / "mine.md"):
        path.write_text("theirs")
    (out / ".canaryproof").write_bytes(content)
    write_files({"a.md": b"1"}, out, ("*.md",))
    assert visible(tmp_path) == {"theirs": "theirs", "out/mine.md": "theirs", "out/a.md": "1"}
