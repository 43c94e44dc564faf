import resource

import numpy as np
import pytest

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.writing import lock_folder, replace_file


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
    for name in ("state.json", ".state.json.canaryproof"):
        (out / name).symlink_to(theirs)
    with replace_file(out / "state.json") as file:
        file.write(b"new")
    assert theirs.read_text() == "precious"
    (path,) = out.iterdir()
    assert (path.name, path.read_text(), path.is_symlink()) == ("state.json", "new", False)


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
