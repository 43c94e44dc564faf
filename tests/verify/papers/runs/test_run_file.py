import os
import random
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.runs import run_file as module
from canaryproof.verify.papers.runs.run_file import RunFile, read_unfinished

ORIGIN = {"version": "1", "seed": "0"}
CHECKS = tuple(("suite", f"check{i}") for i in range(4))
RESULTS = {0: '{"σ": 1.25}', 2: "x" * 5000}


def opened(path, *, resume=False, overwrite=False, origin=ORIGIN, checks=CHECKS):
    return RunFile(path, origin, checks, command="a command", resume=resume, overwrite=overwrite)


@pytest.fixture
def path(tmp_path):
    """An unfinished run."""
    path = tmp_path / "run.sqlite"
    with opened(path) as file:
        for i, result in RESULTS.items():
            file.add(i, result)
    return path


def refusal(path, **options):
    """Try to open a file that must be refused, and be left with the files beside it as it was."""
    before = {p.name: p.read_bytes() for p in path.parent.iterdir() if p.is_file()}
    with pytest.raises(InputError) as caught, opened(path, **options):
        pass
    assert {p.name: p.read_bytes() for p in path.parent.iterdir() if p.is_file()} == before
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    return caught.value.message.removeprefix(f"{path}: ")


def test_a_resumed_run_has_all_that_was_added(path):
    with opened(path, resume=True) as file:
        assert file.results() == RESULTS
        file.add(1, "one")
    with opened(path, resume=True) as file:
        assert file.results() == {**RESULTS, 1: "one"}


def test_results_are_committed_one_by_one(path):
    # What a process that is killed right after add() leaves: the file as it is, without any closing.
    copy = path.with_name("copy")
    with opened(path, resume=True) as file:
        file.add(3, "three")
        subprocess.run(["cp", path, copy], check=True)
    with sqlite3.connect(f"file:{copy}?mode=ro", uri=True) as database:
        assert database.execute("SELECT id, result FROM results WHERE position = 3").fetchall() == [("check3", "three")]


def test_the_file_says_whose_it_is_and_what_the_run_depends_on(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        assert database.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"cnry", "big"),)
        assert database.execute("PRAGMA user_version").fetchone() == (2,)
        meta = dict(database.execute("SELECT * FROM meta"))
    assert meta == {**ORIGIN, "command": "a command", "state": "running"}
    assert [p.name for p in path.parent.iterdir()] == ["run.sqlite"]


def test_writes_reach_the_disk_before_they_count(path):
    with opened(path, resume=True) as file:
        assert file._all("PRAGMA synchronous") == [(2,)]
        assert file._all("PRAGMA journal_mode") == [("delete",)]


def test_without_a_path_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(None) as file:
        file.add(0, "zero")
        file.finish()
        assert file.results() == {0: "zero"}
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_run_is_not_replaced(path):
    assert refusal(path).startswith("holds an unfinished run with 2 results: go on with --resume")


def test_a_finished_run_is_replaced_or_resumed(path):
    whole = {**RESULTS, 1: "one", 3: "three"}
    with opened(path, resume=True) as file:
        file.add(1, "one")
        file.add(3, "three")
        file.finish()
    with opened(path, resume=True) as file:
        assert file.results() == whole
        file.finish()
    with pytest.raises(InputError, match="holds a finished run with 4 results: write its pages again with --resume"):
        opened(path)
    with opened(path, origin={**ORIGIN, "seed": "1"}, overwrite=True) as file:
        assert file.results() == {}
        file.add(0, "new")
    with opened(path, origin={**ORIGIN, "seed": "1"}, resume=True) as file:
        assert file.results() == {0: "new"}


def test_an_unfinished_run_without_results_is_replaced(tmp_path):
    with opened(tmp_path / "run"):
        pass
    with opened(tmp_path / "run", origin={"seed": "7"}) as file:
        assert file.results() == {}


def test_an_empty_file_is_a_run_that_was_killed_at_once(tmp_path):
    (tmp_path / "run").touch()
    with opened(tmp_path / "run", resume=True) as file:
        file.add(0, "zero")
        assert file.results() == {0: "zero"}


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ({**ORIGIN, "seed": "1"}, "was begun with seed 0, not 1; a run can only go on as it was begun"),
        ({"version": "1"}, "was begun with seed 0, not None; a run can only go on as it was begun"),
        ({**ORIGIN, "numpy": "2"}, "was begun with numpy None, not 2; a run can only go on as it was begun"),
    ],
)
def test_another_run_is_not_resumed(path, origin, message):
    assert refusal(path, origin=origin, resume=True) == message


def test_a_run_is_resumed_by_another_command(path):
    with RunFile(path, ORIGIN, CHECKS, command="another", resume=True) as file:
        assert file.results() == RESULTS
    assert read_unfinished(path) == ({**ORIGIN, "command": "another"}, list(RESULTS.values()))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("SQLITE_BUSY", "another run is writing to it"),
        ("SQLITE_FULL", "the disk is full; make room and go on with --resume"),
        ("SQLITE_IOERR_WRITE", "cannot be read or written; once the disk serves again, go on with --resume"),
        ("SQLITE_READONLY_DIRECTORY", "cannot be written"),
        ("SQLITE_CANTOPEN_ISDIR", "cannot be opened"),
        ("SQLITE_CORRUPT_INDEX", "is damaged"),
        ("SQLITE_NOTADB", "is damaged"),
        ("SQLITE_TOOBIG", "cannot be used"),
    ],
)
def test_an_error_of_sqlite_is_told_in_plain_words(tmp_path, name, reason):
    error = sqlite3.OperationalError("its own words")
    error.sqlite_errorname = name
    for path, where in ((tmp_path / "run", f"{tmp_path}/run"), (None, "results in memory")):
        with pytest.raises(InputError) as caught, module._named_errors(path):
            raise error
        assert caught.value.message == f"{where}: {reason} (its own words)"


@pytest.mark.parametrize("checks", [CHECKS[:2], (*CHECKS[1:], CHECKS[0])])
def test_a_run_of_other_checks_is_not_resumed(path, checks):
    assert refusal(path, checks=checks, resume=True) == "has results of other checks"


def test_a_second_writer_is_refused(path):
    program = "import sys; from canaryproof.verify.papers.runs.run_file import RunFile; from pathlib import Path\n"
    program += f"RunFile(Path(sys.argv[1]), {ORIGIN!r}, {CHECKS!r}, resume=True)"
    with opened(path, resume=True) as file:
        second = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
        assert "run.sqlite: another run is writing to it" in second.stderr
        file.add(1, "one")
    with opened(path, resume=True) as file:
        assert file.results() == {**RESULTS, 1: "one"}


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("content", [b"precious", b"SQLite format 3\0", b"\0" * 4096])
def test_a_foreign_file_is_refused(tmp_path, content, resume):
    (tmp_path / "run").write_bytes(content)
    assert refusal(tmp_path / "run", resume=resume) == "is not a run of canaryproof"


def test_a_foreign_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "run") as database:
        database.execute("CREATE TABLE meta (key, value)")
    database.close()
    assert refusal(tmp_path / "run", resume=True) == "is not a run of canaryproof"


def test_another_format_is_refused(path):
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 3")
    database.close()
    assert "another version of canaryproof" in refusal(path, resume=True)


def test_a_run_that_lacks_results_is_not_finished(path):
    with opened(path, resume=True) as file:
        file.finish()
    assert refusal(path).startswith("holds an unfinished run with 2 results")


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_what_lies_beside_a_file_that_is_not_there_is_left(tmp_path, suffix):
    (tmp_path / f"run{suffix}").write_text("somebody's")
    with pytest.raises(InputError, match="belongs to a file that is not there"):
        opened(tmp_path / "run")
    assert (tmp_path / f"run{suffix}").read_text() == "somebody's"


def test_a_file_that_is_removed_is_missed_at_once(path):
    with opened(path, resume=True) as file:
        path.unlink()
        with pytest.raises(InputError, match="was removed during the run"):
            file.add(1, "one")


def test_a_state_that_is_none_is_damage(path):
    with sqlite3.connect(path) as database:
        database.execute("UPDATE meta SET value = 'runninh' WHERE key = 'state'")
    database.close()
    assert refusal(path, resume=True) == "is damaged"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON results (id)",
        "DROP TABLE results",
        "UPDATE results SET checksum = checksum + 1 WHERE position = 2",
        "UPDATE results SET id = 'check1' WHERE position = 2",
        "DELETE FROM meta WHERE key = 'state'",
    ],
)
def test_what_no_run_writes_is_damage(path, statement):
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()
    assert refusal(path, resume=True) == "is damaged"
    with pytest.raises(InputError, match=r"is damaged$"):
        read_unfinished(path)


def test_pages_that_are_counted_wrong_are_damage(path):
    content = bytearray(path.read_bytes())
    # The header's number of free pages, which no result depends on.
    content[36:40] = (1).to_bytes(4, "big")
    path.write_bytes(content)
    assert refusal(path, resume=True) == "is damaged"


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(InputError, match="must be a regular file"):
            opened(tmp_path / name)
    with pytest.raises(InputError, match="cannot be opened"):
        opened(tmp_path / "no such folder" / "run")


def is_refused(path):
    """Whether a damaged file is refused, and left alone; one that is not must give the right results."""
    damaged = path.read_bytes()
    try:
        file = opened(path, resume=True)
    except InputError:
        assert path.read_bytes() == damaged
        return True
    with file:
        assert file.results() == RESULTS
    return False


def test_no_changed_bit_changes_a_result(path):
    content = path.read_bytes()
    draw = random.Random(0)
    used = [i for i, byte in enumerate(content) if byte]
    refused = 0
    for i in [*range(100), *draw.sample(used, 200)]:
        damaged = bytearray(content)
        damaged[i] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        refused += is_refused(path)
        for rest in ("-wal", "-journal"):
            path.with_name(path.name + rest).unlink(missing_ok=True)
    assert refused > 150


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_file_is_refused(path, share):
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert "damaged" in refusal(path, resume=True)


def fill(file, path):
    with pytest.raises(InputError) as caught:
        file.add(1, "x" * 2_000_000)
    assert "go on with --resume" in caught.value.message
    assert caught.value.message.startswith(f"{path}: ")
    return caught.value.message


def test_a_write_that_fails_harms_nothing(path):
    file = opened(path, resume=True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    try:
        with file:
            fill(file, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with opened(path, resume=True) as file:
        assert file.results() == RESULTS
        file.add(1, "one")


def fill_a_disk(folder):
    """Check what happens on a disk that gets full; called in a mount namespace of its own."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    with opened(folder / "run") as file:
        file.add(0, "zero")
        assert "the disk is full" in fill(file, folder / "run")
    with opened(folder / "run", resume=True) as file:
        assert file.results() == {0: "zero"}
        file.add(1, "one")
    with pytest.raises(OSError, match="No space"):
        (folder / "rest").write_bytes(b"x" * 2_000_000)
    with pytest.raises(InputError, match="the disk is full"):
        opened(folder / "other")


def may_mount():
    """Whether a process of ours may have mounts of its own, as root may outside of most containers."""
    try:
        return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not may_mount(), reason="needs the right to mount a small disk")
def test_a_full_disk_harms_nothing(tmp_path):
    program = (
        f"from pathlib import Path; from {Path(__file__).stem} import fill_a_disk; fill_a_disk(Path({str(tmp_path)!r}))"
    )
    subprocess.run(["unshare", "--mount", sys.executable, "-c", program], cwd=Path(__file__).parent, check=True)
