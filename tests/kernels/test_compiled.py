import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import canaryproof.kernels
from canaryproof.kernels import _code_folder
from canaryproof.kernels._code_folder import opened_folder
from canaryproof.kernels._compiled import njit
from tests.windows import NUMBA, as_on_windows

ROOT = Path(canaryproof.kernels.__file__).parents[1]
DECORATED = "from canaryproof.kernels._compiled import njit\n"
HELPER = DECORATED + "@njit()\ndef helper(x):\n    return x + {}\n"
CALLER = (
    DECORATED
    + """from canaryproof.kernels.helper import helper
@njit(cache=True)
def caller(x):
    return 2 * helper(x)
"""
)
PROGRAM = "from canaryproof.kernels import caller as c; print(c.caller(1), sum(c.caller.stats.cache_hits.values()))"


@pytest.fixture
def said(tmp_path):
    """Write a package whose function calls a helper that adds a constant; run it, and return its output and errors."""
    room = tmp_path / "package" / "canaryproof" / "kernels"
    room.mkdir(parents=True)
    # A package, so that it is not taken for a part of the installed one.
    (room.parent / "__init__.py").touch()
    for name in ("__init__.py", "_code_folder.py", "_compiled.py", "_kept_code.py"):
        shutil.copy(ROOT / "kernels" / name, room)

    def run(constant, program=PROGRAM, /, **environment):
        for name, text in (("helper", HELPER.format(constant)), ("caller", CALLER)):
            (room / f"{name}.py").write_text(text)
            os.utime(room / f"{name}.py", (1e9, 1e9))
        added = {"PYTHONPATH": str(room.parents[1]), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": ""}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=os.environ | added | environment, capture_output=True, text=True, check=True)
        return done.stdout.split(), done.stderr

    return run


@pytest.mark.deep
@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", pytest.param("XDG_CACHE_HOME", marks=pytest.mark.deep)])
def test_compiled_code_of_another_version_is_not_used(tmp_path, said, variable):
    """A helper changes in its length's and date's room, as in another version of a package with equal dates."""
    place = {variable: str(tmp_path / "cache")}
    assert said(1, **place) == (["4", "0"], "")
    assert said(5, **place) == (["12", "0"], "")
    assert said(1, **place) == (["4", "1"], "")


def test_code_of_versions_that_nothing_uses_is_removed_after_a_month(tmp_path, monkeypatch):
    """Of the package's own folders alone, and not through a link."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    linked = tmp_path / f"compiled-{'c' * 16}"
    days = {"compiled-" + "a" * 16: 31, "compiled-" + "b" * 16: 29, "compiled-by-hand": 400, "elsewhere": 400}
    for name in days:
        (tmp_path / name / "kernels").mkdir(parents=True)
        (tmp_path / name / "kernels" / "code.nbi").touch()
    linked.symlink_to(elsewhere)
    for path, age in [*((tmp_path / name, age) for name, age in days.items()), (linked, 400)]:
        when = time.time() - 86400 * age
        os.utime(path, (when, when), follow_symlinks=False)
    own = _code_folder.folder.__wrapped__()
    left = days.keys() - {"compiled-" + "a" * 16} | {own.name, linked.name}
    assert {path.name for path in tmp_path.iterdir()} == left
    assert (elsewhere / "kernels" / "code.nbi").exists()
    assert time.time() - own.stat().st_mtime < 60


@pytest.mark.deep
def test_without_a_users_folder_the_packages_own_is_taken(tmp_path, said):
    (tmp_path / "file").touch()
    assert said(1, XDG_CACHE_HOME=str(tmp_path / "file")) == (["4", "0"], "")
    assert said(1, XDG_CACHE_HOME=str(tmp_path / "file")) == (["4", "1"], "")


@pytest.mark.deep
def test_a_user_whom_the_system_does_not_know_gets_no_folder_where_he_stands(tmp_path, said, monkeypatch):
    monkeypatch.chdir(tmp_path)
    unknown = "import os, pwd\ndef unknown(_): raise KeyError\npwd.getpwuid = unknown\ndel os.environ['HOME']\n"
    assert said(1, unknown + PROGRAM, HOME="gone", XDG_CACHE_HOME="") == (["4", "0"], "")
    assert [path.name for path in tmp_path.iterdir()] == ["package"]


@pytest.mark.deep
def test_where_no_folder_can_be_written_functions_are_compiled_in_memory(tmp_path, said):
    (tmp_path / "file").touch()
    # The second function says it no more.
    program = PROGRAM.replace("import caller as c;", "import caller as c; c.caller(1.0);")
    printed, errors = said(1, program, NUMBA_CACHE_DIR=str(tmp_path / "file"))
    assert printed == ["4", "0"]
    lines = r"cannot keep compiled code in .*compiled-\w+ \([\w ]+\): compiling each time, in memory\n"
    assert re.fullmatch(lines, errors)


def test_on_windows_functions_are_compiled_in_memory(tmp_path, said):
    program = as_on_windows(PROGRAM, NUMBA)
    printed, errors = said(1, program, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert printed == ["4", "0"]
    reason = "Windows does not say who can write there"
    assert re.fullmatch(rf"cannot keep compiled code in .* \({reason}\): compiling each time, in memory\n", errors)
    assert not (tmp_path / "cache").exists()


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("mode", [0o720, pytest.param(0o702, marks=pytest.mark.deep), 0o1702])
def test_a_folder_that_others_can_write_is_not_read(tmp_path, said, mode):
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said(1, **place)
    (folder,) = (tmp_path / "cache").iterdir()
    folder.chmod(mode)
    line = f"cannot keep compiled code in {folder} (others can write there): compiling each time, in memory\n"
    assert said(1, **place) == (["4", "0"], line)
    folder.chmod(0o700)
    assert said(1, **place) == (["4", "1"], "")


@pytest.mark.parametrize(
    ("variable", "mode"),
    [
        ("NUMBA_CACHE_DIR", 0o770),
        pytest.param("NUMBA_CACHE_DIR", 0o707, marks=pytest.mark.deep),
        pytest.param("XDG_CACHE_HOME", 0o777, marks=pytest.mark.deep),
    ],
)
def test_a_folder_in_one_that_others_can_write_is_not_read(tmp_path, said, variable, mode):
    """They could put one of theirs in its place."""
    place = {variable: str(tmp_path / "cache")}
    # Where the user's folder is not trusted, the package's own is taken.
    (tmp_path / "package" / "canaryproof" / "__pycache__").touch()
    said(1, **place)
    assert said(1, **place) == (["4", "1"], "")
    (tmp_path / "cache").chmod(mode)
    printed, line = said(1, **place)
    assert printed == ["4", "0"]
    assert "(others can write there): compiling each time, in memory" in line
    # A sticky folder's entries can be replaced by their owner alone.
    (tmp_path / "cache").chmod(mode | 0o1000)
    assert said(1, **place) == (["4", "1"], "")


def chain(path):
    """Make folders in one another, and return them from the outer to the inner one."""
    folders = [path / Path(*"abcd"[:depth]) for depth in range(1, 5)]
    for each in folders:
        each.mkdir(mode=0o700)
    return folders


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1720, 0o1702, 0o2770, 0o755])
def test_at_every_depth_a_folder_is_closed_to_others(tmp_path, depth, mode):
    folders = chain(tmp_path)
    folders[depth].chmod(mode)
    # In a sticky folder, the entries of others can be replaced by nobody else.
    if mode == 0o755 or (mode & 0o1000 and depth < 3):
        with opened_folder(folders[-1]):
            pass
    else:
        with pytest.raises(PermissionError, match="others can write there"), opened_folder(folders[-1]):
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("depth", range(4))
def test_at_every_depth_a_folder_is_the_users_own(tmp_path, depth):
    folders = chain(tmp_path)
    os.chown(folders[depth], 65534, -1)
    with pytest.raises(PermissionError, match="others can write there"), opened_folder(folders[-1]):
        pass


@pytest.mark.parametrize("make", [False, True])
@pytest.mark.parametrize("depth", range(4))
def test_a_link_that_takes_a_folders_place_is_not_followed(tmp_path, monkeypatch, depth, make):
    """Whoever changes names between two calls gets neither another folder opened nor made."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "theirs").mkdir()
    folders, theirs = chain(tmp_path / "mine"), chain(tmp_path / "theirs")
    opened = os.open

    def swapped(name, *arguments, **options):
        if name == folders[depth].name and not folders[depth].is_symlink():
            folders[depth].rename(tmp_path / "away")
            folders[depth].symlink_to(theirs[depth])
        return opened(name, *arguments, **options)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(NotADirectoryError), opened_folder(folders[-1], make):
        pass


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("planted", ["link", "writable", "other's"])
def test_a_file_of_others_in_an_own_folder_is_not_read(tmp_path, said, planted):
    if planted == "other's" and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said(1, **place)
    for file in (*(tmp_path / "cache").rglob("*.nbi"), *(tmp_path / "cache").rglob("*.nbc")):
        if planted == "link":
            file.rename(tmp_path / file.name)
            file.symlink_to(tmp_path / file.name)
        elif planted == "writable":
            file.chmod(0o620)
        else:
            os.chown(file, 65534, -1)
    assert said(1, **place) == (["4", "0"], "")
    assert said(1, **place) == (["4", "1"], "")


@pytest.mark.deep
def test_a_link_to_the_cache_is_followed_once(tmp_path, said):
    """In a folder of others it may lead elsewhere afterwards, and code of theirs is not run."""
    (tmp_path / "others").mkdir()
    (tmp_path / "others").chmod(0o777)
    link = tmp_path / "others" / "cache"
    link.symlink_to(tmp_path / "mine")
    place = {"NUMBA_CACHE_DIR": str(link)}
    assert said(1, **place) == (["4", "0"], "")
    shutil.copytree(tmp_path / "mine", tmp_path / "theirs")
    (tmp_path / "theirs").chmod(0o777)
    for file in (tmp_path / "mine").rglob("*.nb*"):
        file.unlink()
    swap = f"import os; os.unlink({str(link)!r}); os.symlink({str(tmp_path / 'theirs')!r}, {str(link)!r});"
    program = f"from canaryproof.kernels import _code_folder; _code_folder.folder(); {swap}\n" + PROGRAM
    assert said(1, program, **place) == (["4", "0"], "")
    assert list((tmp_path / "mine").rglob("*.nbc"))


@pytest.mark.deep
def test_a_folder_of_another_user_is_not_read(tmp_path, said):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said(1, **place)
    (folder,) = (tmp_path / "cache").iterdir()
    for path in (folder, tmp_path / "cache"):
        os.chown(path, 65534, -1)
        printed, line = said(1, **place)
        assert printed == ["4", "0"]
        assert "(others can write there)" in line
        os.chown(path, 0, -1)
    assert said(1, **place) == (["4", "1"], "")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        *(pytest.param("nbi", damage, marks=pytest.mark.deep) for damage in (b"", b"damaged")),
        pytest.param("nbc", b"", marks=pytest.mark.deep),
        ("nbc", b"damaged"),
    ],
)
def test_damaged_code_is_compiled_anew(tmp_path, said, ending, damage):
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said(1, **place)
    (file,) = (tmp_path / "cache").rglob(f"*.{ending}")
    file.write_bytes(damage)
    assert said(1, **place) == (["4", "0"], "")
    assert said(1, **place) == (["4", "1"], "")


def test_one_process_compiles_and_another_waits_for_it(tmp_path, said):
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    with ThreadPoolExecutor(2) as threads:
        outputs = [printed for printed, _ in threads.map(lambda _: said(1, **place), range(2))]
    assert sorted(outputs) == [["4", "0"], ["4", "1"]]


@pytest.mark.deep
def test_nobody_waits_forever(tmp_path, said):
    """Another signature finds the lock of somebody who does not end."""
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said(1, **place)
    (path,) = (tmp_path / "cache").rglob("*.lock")
    hurried = "from canaryproof.kernels import _kept_code; _kept_code._LONGEST = 0.1\n"
    hurried += PROGRAM.replace("(1)", "(1.0)")
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert said(1, hurried, **place) == (["4.0", "0"], "")


def test_every_compiled_function_has_the_decorator_that_keeps_it():
    rooms = ("kernels", "proofs_check", "reports", "verify")
    paths = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in paths}
    made = [str(path) for path, text in texts.items() if re.search(r"numba\.n?jit|from numba import.*jit", text)]
    assert made == ["kernels/_compiled.py"]
    decorated = {path.parts[0] for path, text in texts.items() if "njit(" in text}
    assert decorated == set(_code_folder._ROOMS)


def test_sums_in_any_order_are_part_of_their_caller():
    """So that code just compiled and code kept have the same bits; descents' own test compares them."""

    def total(x):
        return x.sum()

    assert njit(fastmath={"reassoc"})(total).targetoptions["forceinline"]
    assert "forceinline" not in njit()(total).targetoptions
    assert "forceinline" not in njit(fastmath={"reassoc"}, cache=True)(total).targetoptions


def test_a_property_that_fails_says_so_and_is_not_asked_for_without_an_end(monkeypatch):
    function = njit(cache=True)(lambda x: x)

    def broken(**_):
        raise AttributeError("numba is half there")

    monkeypatch.setattr("numba.njit", broken)
    with pytest.raises(AttributeError, match="numba is half there"):
        function(1.0)
