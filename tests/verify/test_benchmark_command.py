import json

import pytest
from click.testing import CliRunner

from canaryproof.reports import performance
from canaryproof.verify.benchmark import kernels, processes
from canaryproof.verify.benchmark.kernels import Size
from canaryproof.verify.benchmark.processes import Bits
from canaryproof.verify.benchmark.timing import Skipped
from canaryproof.verify.command_line import main


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    size = Size("small", 1, 300, 4, 3, 2, 300, 4, (32, 64), 16, ((300, 2), (300, 4), (600, 2), (600, 4)), 0)
    monkeypatch.setattr(kernels, "SIZES", {"small": size})
    monkeypatch.setattr(kernels, "find_spec", lambda _: None)
    monkeypatch.setattr(processes, "memory", lambda *_: (Skipped("memory", "no reason"),))
    monkeypatch.setattr(processes, "bits", lambda *_: (Bits("coordinates", True, True),))


def call(*arguments):
    return CliRunner().invoke(main, ["benchmark", "kernels", *map(str, arguments)])


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
    files = {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}
    assert files == {"performance.json": result.stdout, **performance.render(json.loads(result.stdout))}


def test_other_files_of_the_folder_stay(tmp_path):
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "convergence.md").write_text("precious")
    assert call("--size", "small", "--out", tmp_path).exit_code == 0
    assert (tmp_path / "convergence.md").read_text() == "precious"


def test_a_folder_that_cannot_be_made_is_refused_before_measuring(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "measure", None)
    (tmp_path / "file").write_text("precious")
    result = call("--size", "small", "--out", tmp_path / "file")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {tmp_path}/file: File exists\n"


def test_an_unknown_size_is_refused():
    result = call("--size", "huge")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_the_group_is_listed_and_help_is_plain():
    assert "benchmark" in CliRunner().invoke(main, ["--help"]).stdout
    assert call("--help").stdout.isascii()
