"""The command ``canaryproof benchmark canife``: by laws on a plain install, and by trainings."""

import json
import re
import shlex

import pytest
from click.testing import CliRunner

from canaryproof.reports import canife as canife_page
from canaryproof.reports.canife_comparison import NAME
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.claims.canife import rules as canife_rules
from canaryproof.verify.papers.cli import benchmark_command
from canaryproof.verify.papers.comparison import canife
from canaryproof.verify.papers.comparison.canife_laws import benchmark_canife
from canaryproof.verify.papers.records.benchmark_record import DataRecord

# Any record serves where the page is another.
RECORD = DataRecord("digits", clients=2, held_out=1)
ONE_ROUND = ["--dim", "1e4", "--canaries", "50", "--epsilon", "3", "--rounds", "1"]


def test_the_group_is_listed_and_help_is_plain():
    assert "benchmark" in CliRunner().invoke(main, ["--help"]).stdout
    assert call_canife("--help").stdout.isascii()


@pytest.fixture
def told(monkeypatch):
    """What the benchmark of CANIFE was told, in place of its running."""
    arguments = []
    monkeypatch.setattr(canife, "measure", lambda *told, **_: arguments.append(told[:4]) or RECORD)
    monkeypatch.setattr(canife_rules, "with_printed", lambda document, _: document)
    monkeypatch.setattr(benchmark_command, "from_trainings", lambda found, _: f"clients {found.clients}")
    monkeypatch.setattr(canife_page, "render", lambda found: {"canife.md": str(found)})
    return arguments


def call_canife(*arguments):
    return CliRunner().invoke(main, ["benchmark", "canife", *map(str, arguments)])


def test_laws_need_no_extra_and_say_the_same_in_all_forms(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark_command, "find_spec", lambda _: None)
    found = benchmark_canife(1e4, 50, epsilon=3.0, rounds=1)
    result = call_canife(*ONE_ROUND, "--out", tmp_path / "out")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{found}\n", "")
    # The command that its page prints makes it again.
    (command,) = re.findall(r"`(canaryproof benchmark canife .*?)`", (tmp_path / "out" / f"{NAME}.md").read_text())
    again = shlex.split(command.replace("RESULTS", str(tmp_path / "again")))[3:]
    assert json.loads(call_canife(*again, "--json").stdout) == found.to_json()
    assert json.loads((tmp_path / "out" / "canife_comparison.json").read_text(encoding="utf-8")) == found.to_json()
    refused = call_canife(*ONE_ROUND, "--out", tmp_path / "out")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "must not exist already, unless with --overwrite" in refused.stderr
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "canife_comparison.md").write_text("mine")
    refused = call_canife(*ONE_ROUND, "--out", tmp_path / "mine")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_trainings_answer_and_name_the_rest(told):
    result = call_canife("--data", "digits")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "clients 2",
        "All designs, bounds and costs are on the page, which --out DIR writes.",
    ]
    ((federation, setting, level, repeat),) = told
    assert (federation.name, setting, level, repeat) == ("digits", canife.DIGITS, "quick", None)


def test_trainings_write_the_document_and_its_page(told, tmp_path):
    result = call_canife("--data", "digits", "--level", "full", "--repeat", 2, "--out", tmp_path / "out", "--json")
    assert (result.exit_code, result.stderr, json.loads(result.stdout)) == (0, "", to_document(RECORD))
    files = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").glob("[!.]*")}
    assert call_canife("--data", "digits", "--out", tmp_path / "out").exit_code == 2
    assert call_canife("--data", "digits", "--out", tmp_path / "out", "--overwrite").exit_code == 0
    assert files == {"canife.json": result.stdout, "canife.md": str(RECORD)}
    assert told[0][2:] == ("full", 2)


def test_what_is_wrong_is_one_line_and_status_2(told, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("precious")
    trained = {"--out": tmp_path / "file", "--repeat": 0, "--level": "huge", "--engine": "slurm", "--dim": 2000}
    for arguments in (
        *(("--data", "digits", *each) for each in trained.items()),
        *(("--data", tmp_path), ("--level", "full"), ("--repeat", 2), ("--engine", "dask"), ("--dim", 10)),
        *(("--canaries", 1), ("--delta", 0), ("--rounds", "x"), ("--out", tmp_path / "file")),
    ):
        result = call_canife(*arguments)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), arguments
    monkeypatch.setattr(benchmark_command, "find_spec", lambda _: None)
    assert "pip install '.[federated]' in canaryproof's folder" in call_canife("--data", "digits").stderr
    assert told == []
