import pytest

from canaryproof.verify.output_files import replaced


def test_a_file_takes_the_place_of_another(tmp_path):
    path = tmp_path / "state.json"
    for text in (b"old", b"new"):
        with replaced(path) as file:
            file.write(text)
        assert path.read_bytes() == text
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_inside_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(b"old")

    def interrupted():
        with replaced(path) as file:
            file.write(b"ne")
            raise RuntimeError("half written")

    with pytest.raises(RuntimeError, match="half"):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
