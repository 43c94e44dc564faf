"""A JUnit file shows the checks of a run, and fails where the command does."""

from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from canaryproof.verify.command_line import main
from canaryproof.verify.papers.cli import verify_command
from canaryproof.verify.papers.runs import expected
from tests.junit import shape


@pytest.fixture
def run(fake_suites, monkeypatch, tmp_path):
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setattr(verify_command, "SUITES", "fake_suites:SUITES")
    monkeypatch.setattr(expected, "read", lambda: fake_suites.EXPECTED)
    monkeypatch.setattr(verify_command, "threads", lambda: 1)
    return lambda *arguments: CliRunner().invoke(main, ["verify", *map(str, arguments)])


def test_a_run_fails_in_the_checks_that_fail(run, tmp_path):
    assert run("good", "--junit", tmp_path / "good.xml").exit_code == 0
    assert run("good", "bad", "--junit", tmp_path / "bad.xml").exit_code == 1
    assert shape(tmp_path / "good.xml")[1:] == [set(), set()]
    assert shape(tmp_path / "bad.xml")[1] == {"broken"}


def test_an_unexpected_verdict_fails_its_check(run, tmp_path, monkeypatch):
    monkeypatch.setattr(expected, "read", dict)
    assert run("good", "--junit", tmp_path / "run.xml").exit_code == 1
    failing = next(ET.parse(tmp_path / "run.xml").iter("failure"))
    assert "not in expected_verdicts.csv" in failing.get("message")


@pytest.mark.parametrize(
    ("name", "rule"),
    [("a.txt", "must end in .xml"), ("old.xml", "must not exist already"), ("none/a.xml", "No such file")],
)
def test_a_file_that_cannot_be_written_costs_no_work(run, tmp_path, name, rule):
    (tmp_path / "old.xml").write_text("precious")
    shown = run("good", "--junit", tmp_path / name)
    assert shown.exit_code == 2
    assert rule in shown.stderr
    assert not (tmp_path / "log").exists()
    assert (tmp_path / "old.xml").read_text() == "precious"
