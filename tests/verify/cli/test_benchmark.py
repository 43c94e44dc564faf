import json

import pytest
from click.testing import CliRunner

from canaryproof.reports import canife as canife_page
from canaryproof.reports.markdown import Section
from canaryproof.verify.cli import benchmark
from canaryproof.verify.cli.command_line import main
from canaryproof.verify.comparison import canife
from tests.benchmarks import kernels, performance, processes
from tests.benchmarks.kernels import Size
from tests.benchmarks.processes import Bits
from tests.benchmarks.timing import Skipped


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
    assert (result.exit_code, result.stderr) == (2, f"Error: {tmp_path}/{message}\n")


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


@pytest.fixture
def told(monkeypatch):
    """What the benchmark of CANIFE was told, in place of its running."""
    arguments = []
    monkeypatch.setattr(canife, "measure", lambda *told, **_: arguments.append(told[:4]) or {"repeat": 2})
    monkeypatch.setattr(canife_page, "about", lambda found: f"repeat {found['repeat']}")
    monkeypatch.setattr(canife_page, "sections", lambda _: [Section("A title", ("one",), (("[cell]",),), "a note")])
    monkeypatch.setattr(canife_page, "render", lambda found: {"canife.md": str(found)})
    return arguments


def call_canife(*arguments):
    return CliRunner().invoke(main, ["benchmark", "canife", *map(str, arguments)])


def test_canife_prints_its_tables(told):
    result = call_canife()
    assert (result.exit_code, result.stderr) == (0, "")
    for words in ("repeat 2", "A title", "[cell]", "a note"):
        assert words in result.stdout
    ((federation, setting, level, repeat),) = told
    assert (federation.name, setting, level, repeat) == ("digits", canife.DIGITS, "quick", None)


def test_canife_writes_the_document_and_its_page(told, tmp_path):
    result = call_canife("--level", "full", "--repeat", 2, "--out", tmp_path / "out", "--json")
    assert (result.exit_code, result.stderr, json.loads(result.stdout)) == (0, "", {"repeat": 2})
    files = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").glob("[!.]*")}
    assert files == {"canife.json": result.stdout, "canife.md": "{'repeat': 2}"}
    assert told[0][2:] == ("full", 2)


def test_canife_refuses_in_one_line(told, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("precious")
    wrong = {"--out": tmp_path / "file", "--data": tmp_path, "--repeat": 0, "--level": "huge", "--engine": "slurm"}
    for arguments in wrong.items():
        result = call_canife(*arguments)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), arguments
    monkeypatch.setattr(benchmark, "find_spec", lambda _: None)
    assert "pip install canaryproof[federated]" in call_canife().stderr
    assert told == []
