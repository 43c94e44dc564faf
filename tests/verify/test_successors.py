"""What has left goes on by its successor's name, with a warning; or the error says what to do instead."""

import json
from dataclasses import dataclass

import pytest
from click.testing import CliRunner

import canaryproof
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.successors import SUCCESSORS
from canaryproof.verify.command_line import main


@dataclass(frozen=True)
class Entry:
    width: int


@pytest.fixture(autouse=True)
def made_up_rows(monkeypatch):
    made_up = {
        "canaryproof": {"cut": ("split", "0.9"), "inspect": ("watch(training)", "0.9")},
        "canaryproof plan": {"--dimension": ("--dim", "0.9"), "--steps": ("--rounds and --rate", "0.9")},
        "Entry": {"breadth": ("width", "0.9"), "size": ("width and height", "0.9")},
    }
    for scope, rows in made_up.items():
        monkeypatch.setitem(SUCCESSORS, scope, rows)


def test_a_name():
    with pytest.warns(DeprecationWarning, match=r"^cut has left canaryproof in 0\.9: use split$") as warned:
        assert canaryproof.cut is canaryproof.split
    assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match=r"^inspect has left canaryproof in 0\.9: use watch\(training\)$"):
        _ = canaryproof.inspect
    assert "cut" not in dir(canaryproof)


@pytest.mark.parametrize("written", [["--dimension", "100000"], ["--dimension=100000"]])
def test_an_option(written):
    plan = ["plan", "--json", "--noise-multiplier", "1.5"]
    before = CliRunner().invoke(main, [*plan, *written])
    assert json.loads(before.stdout)["dim"] == 100000
    assert before.stderr == "canaryproof: --dimension has left canaryproof plan in 0.9: use --dim\n"
    refused = CliRunner().invoke(main, [*plan, "--steps", "3"])
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Error: --steps has left canaryproof plan in 0.9: use --rounds and --rate")


def test_a_key(caplog):
    assert json_records.read(Entry, {"breadth": 3}, exact=True) == Entry(3)
    assert caplog.messages == ["breadth has left Entry in 0.9: use width"]
    with pytest.raises(ValueError, match=r"size has left Entry in 0\.9: use width and height$"):
        json_records.read(Entry, {"size": 3})
