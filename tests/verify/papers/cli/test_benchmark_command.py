import json

import pytest
from click.testing import CliRunner

from canaryproof.reports import canife as canife_page
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.audit.markup.markdown import Section
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.claims.canife import rules as canife_rules
from canaryproof.verify.papers.cli import benchmark_command
from canaryproof.verify.papers.comparison import canife
from canaryproof.verify.papers.records.benchmark_record import DataRecord

# Any record serves where the page is another.
RECORD = DataRecord("digits", clients=2, held_out=1)


def test_the_group_is_listed_and_help_is_plain():
    assert "benchmark" in CliRunner().invoke(main, ["--help"]).stdout
    assert call_canife("--help").stdout.isascii()


@pytest.fixture
def told(monkeypatch):
    """What the benchmark of CANIFE was told, in place of its running."""
    arguments = []
    monkeypatch.setattr(canife, "measure", lambda *told, **_: arguments.append(told[:4]) or RECORD)
    monkeypatch.setattr(canife_rules, "with_printed", lambda document, _: document)
    monkeypatch.setattr(canife_page, "about", lambda found: f"clients {found.clients}")
    monkeypatch.setattr(canife_page, "sections", lambda _: [Section("A title", ("one",), (("[cell]",),), "a note")])
    monkeypatch.setattr(canife_page, "render", lambda found: {"canife.md": str(found)})
    return arguments


def call_canife(*arguments):
    return CliRunner().invoke(main, ["benchmark", "canife", *map(str, arguments)])


def test_canife_prints_its_tables(told):
    result = call_canife()
    assert (result.exit_code, result.stderr) == (0, "")
    for words in ("clients 2", "A title", "[cell]", "a note"):
        assert words in result.stdout
    ((federation, setting, level, repeat),) = told
    assert (federation.name, setting, level, repeat) == ("digits", canife.DIGITS, "quick", None)


def test_canife_writes_the_document_and_its_page(told, tmp_path):
    result = call_canife("--level", "full", "--repeat", 2, "--out", tmp_path / "out", "--json")
    assert (result.exit_code, result.stderr, json.loads(result.stdout)) == (0, "", to_document(RECORD))
    files = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").glob("[!.]*")}
    assert files == {"canife.json": result.stdout, "canife.md": str(RECORD)}
    assert told[0][2:] == ("full", 2)


def test_canife_refuses_in_one_line(told, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("precious")
    wrong = {"--out": tmp_path / "file", "--data": tmp_path, "--repeat": 0, "--level": "huge", "--engine": "slurm"}
    for arguments in wrong.items():
        result = call_canife(*arguments)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), arguments
    monkeypatch.setattr(benchmark_command, "find_spec", lambda _: None)
    assert "pip install '.[federated]' in canaryproof's folder" in call_canife().stderr
    assert told == []
