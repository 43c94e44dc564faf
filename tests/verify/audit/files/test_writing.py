import os
import resource
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.writing import lock_folder, replace_file, write_output


def test_a_file_takes_the_place_of_another(tmp_path):
    path = tmp_path / "state.json"
    for text in (b"old", b"new"):
        with replace_file(path) as file:
            file.write(text)
        assert path.read_bytes() == text
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_inside_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(b"old")

    def interrupted():
        with replace_file(path) as file:
            file.write(b"ne")
            raise RuntimeError("half written")

    with pytest.raises(RuntimeError, match="half"):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "state.npy"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        for write in (lambda file: file.write(bytes(2000)), lambda file: np.save(file, np.zeros(2000))):
            with pytest.raises(OSError, match=r"requested|large") as caught, replace_file(path) as file:
                write(file)
            assert caught.value.filename == str(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_links_are_replaced_and_not_followed(tmp_path):
    theirs, out = tmp_path / "theirs", tmp_path / "out"
    theirs.write_text("precious")
    out.mkdir()
    (out / "state.json").symlink_to(theirs)
    with replace_file(out / "state.json") as file:
        file.write(b"new")
    assert theirs.read_text() == "precious"
    (path,) = out.iterdir()
    assert (path.name, path.read_text(), path.is_symlink()) == ("state.json", "new", False)


@pytest.mark.parametrize("private", [True, False])
def test_only_the_user_reads_what_is_private(tmp_path, private):
    path, new = tmp_path / "state.json", tmp_path / "new.json"
    path.touch(0o644)
    before = os.umask(0o022)
    try:
        with replace_file(path, private) as file:
            # Nobody may read it meanwhile either.
            assert os.fstat(file.fileno()).st_mode & 0o777 == (0o600 if private else 0o644)
        write_output(new, lambda file: file.write(b"new"), private=private)
    finally:
        os.umask(before)
    assert {each.stat().st_mode & 0o777 for each in (path, new)} == {0o600 if private else 0o644}


def test_of_several_writers_one_leaves_its_file(tmp_path):
    """As ranks of a training do that save the same scores: none fails, and no two contents are mixed."""
    path, number, times = tmp_path / "state.json", 4, 50
    contents = [str(writer).encode() * 100_000 for writer in range(number)]
    start = Barrier(number)

    def write(content):
        start.wait()
        for _ in range(times):
            with replace_file(path) as file:
                file.write(content[:50_000])
                file.write(content[50_000:])
            assert path.read_bytes() in contents

    with ThreadPoolExecutor(number) as pool:
        list(pool.map(write, contents))
    assert list(tmp_path.iterdir()) == [path]


def test_of_several_writers_of_a_new_file_one_succeeds(tmp_path):
    path, number = tmp_path / "plan.json", 8
    start = Barrier(number)

    def write(writer):
        start.wait()
        try:
            write_output(path, lambda file: file.write(str(writer).encode()))
        except InputError:
            return None
        return writer

    with ThreadPoolExecutor(number) as pool:
        written = [writer for writer in pool.map(write, range(number)) if writer is not None]
    assert [str(writer) for writer in written] == [path.read_text()]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_has_one_run(tmp_path):
    with lock_folder(tmp_path), pytest.raises(InputError, match="another run is writing to it"), lock_folder(tmp_path):
        pass
    with lock_folder(tmp_path):
        pass
    (tmp_path / ".lock").unlink()
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), lock_folder(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()
