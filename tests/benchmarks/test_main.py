import json
from functools import cache

import pytest
from click.testing import CliRunner

from tests.benchmarks import kernels, performance, processes, releases
from tests.benchmarks.__main__ import main
from tests.benchmarks.kernels import Size
from tests.benchmarks.processes import Bits
from tests.benchmarks.releases import Releases
from tests.benchmarks.timing import Skipped

# Once for all tests: what is written and printed is theirs.
measure = cache(kernels.measure)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    size = Size("small", 1, 300, 4, 3, 2, 300, 4, (32, 64), 16, ((300, 2), (300, 4), (600, 2), (600, 4)), 0, (4,))
    monkeypatch.setattr(kernels, "SIZES", {"small": size})
    monkeypatch.setattr(kernels, "find_spec", lambda _: None)
    monkeypatch.setattr(kernels, "measure", lambda size, _: measure(size))
    monkeypatch.setattr(processes, "memory", lambda *_: (Skipped("memory", "no reason"),))
    monkeypatch.setattr(processes, "bits", lambda *_: (Bits("coordinates", True, True),))


def call(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


def test_tables_are_printed_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("--size", "small")
    assert (result.exit_code, result.stderr) == (0, "")
    for title in ("What was aimed at", "Algorithm 1", "Algorithm 3", "Cost against k·d", "Bits", "Instructions"):
        assert title in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_files_are_those_of_the_printed_document(tmp_path):
    out = tmp_path / "a" / "b"
    result = call("--size", "small", "--out", out, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    files = {path.name: path.read_text(encoding="utf-8") for path in out.glob("[!.]*")}
    assert files == {"performance.json": result.stdout, **performance.render(json.loads(result.stdout))}


def test_other_files_of_the_folder_stay(tmp_path, monkeypatch):
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "convergence.md").write_text("precious")
    assert call("--size", "small", "--out", tmp_path).exit_code == 0
    assert (tmp_path / "convergence.md").read_text() == "precious"
    (tmp_path / ".canaryproof").unlink()
    monkeypatch.setattr(kernels, "measure", None)
    result = call("--size", "small", "--out", tmp_path)
    message = "performance.json: was not written by canaryproof, and is not replaced"
    assert (result.exit_code, str(result.exception)) == (1, f"{tmp_path}/{message}")


def test_a_folder_that_cannot_be_made_is_refused_before_measuring(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "measure", None)
    (tmp_path / "file").write_text("precious")
    result = call("--size", "small", "--out", tmp_path / "file")
    assert (result.exit_code, result.stdout) == (1, "")
    assert str(result.exception) == f"{tmp_path}/file: File exists"


def test_an_unknown_size_is_refused():
    result = call("--size", "huge")
    assert result.exit_code == 2
    assert "'huge' is not one of 'full', 'small'" in result.stderr


def test_the_page_of_releases_is_made_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "measure", None)
    asked = []

    def measure(dims, _part):
        asked.append(dims)
        return Releases({}, 2, ())

    monkeypatch.setattr(releases, "measure", measure)
    assert call("--page", "releases", "--largest", "--out", tmp_path).exit_code == 0
    assert asked == [(*releases.DIMS["full"], 2**30)]
    assert {path.name for path in tmp_path.glob("[!.]*")} == {"releases.json", "releases.md"}
    result = call("--largest")
    assert (result.exit_code, "--largest must be given with --page releases" in result.stderr) == (2, True)
