"""The command ``canaryproof convergence``: text, JSON, a folder, and how it stops and goes on."""

import json
import re
import shlex

import pytest
from click.testing import CliRunner

from canaryproof.verify.command_line import main
from canaryproof.verify.papers.cli import convergence_command as module
from canaryproof.verify.papers.convergence import report
from canaryproof.verify.papers.convergence.errors import ESTIMATORS

FEW = ["--dim", "1e4", "--canaries", "20", "--epsilon", "10", "--estimator", "pinned", "--replicates", "100"]


def run(*arguments):
    return CliRunner(env={"COLUMNS": "80"}).invoke(main, ["convergence", *FEW, *arguments], prog_name="canaryproof")


@pytest.fixture(scope="module")
def text():
    return run().stdout


def test_text_and_json_say_the_same(text):
    document = json.loads(run("--json").stdout)
    assert " ".join(text.split()).startswith(document["answer"])
    assert document["settings"][0]["count"] == 20


def test_the_estimators_of_the_options_are_those_that_there_are():
    assert tuple(ESTIMATORS) == module._ESTIMATORS


def test_a_folder_gets_the_page_and_nothing_of_others_is_replaced(tmp_path):
    (tmp_path / "convergence_report.md").write_text("mine")
    refused = run("--out", str(tmp_path))
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1
    assert (tmp_path / "convergence_report.md").read_text() == "mine"
    assert not (tmp_path / "convergence_report.sqlite").exists()


def test_an_interrupted_report_says_how_it_goes_on(tmp_path, monkeypatch, text):
    folder = tmp_path / "new"

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(report, "_orders_in_k", stop)
        stopped = run("--out", str(folder))
    assert stopped.exit_code == 130
    assert "--resume" in stopped.stderr
    monkeypatch.setattr(report, "_predicted_errors", stop)  # it is kept
    resumed = run("--out", str(folder), "--resume")
    assert resumed.exit_code == 0
    assert resumed.stdout == text
    assert (folder / "convergence_report.html").exists()
    monkeypatch.undo()
    # The command that its page prints makes it again.
    (command,) = re.findall("`(canaryproof convergence .*?)`", (folder / "convergence_report.md").read_text())
    again = shlex.split(command.replace("RESULTS", str(tmp_path / "again")))[1:]
    assert CliRunner(env={"COLUMNS": "80"}).invoke(main, again).stdout == text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--canaries", "1"], "--canaries: must be a whole number from 2 to 1e7, as one cosine has no variance, not 1"),
        (["--delta", "0"], "--delta: must lie strictly between 0 and 1"),
        (["--noise-multiplier", "1"], "--noise-multiplier: must not be given with epsilon"),
        (["--resume"], "--resume: needs --out"),
    ],
)
def test_what_is_out_of_range_is_one_line_and_status_2(options, message):
    refused = run(*options)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"Error: {message}")
    assert refused.stderr.count("\n") == 1
