"""What has left goes on by its successor's name, with a warning; or the error says what to do instead."""

import copy
import json
import re
from dataclasses import dataclass

import pytest
from click.testing import CliRunner

import canaryproof
from canaryproof import typing
from canaryproof.kernels.public import set_module
from canaryproof.kernels.successors import SUCCESSORS
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.command_line import main


@dataclass(frozen=True)
class Entry:
    width: int

    @property
    def depth(self):
        return self.nothing


ROWS = {scope: dict(rows) for scope, rows in SUCCESSORS.items()}


@pytest.fixture(autouse=True)
def made_up_rows(monkeypatch):
    made_up = {
        "canaryproof": {"cut": ("split", "0.9"), "inspect": ("watch(training)", "0.9")},
        "canaryproof plan": {"--dimension": ("--dim", "0.9"), "--steps": ("--rounds and --rate", "0.9")},
        "Entry": {"breadth": ("width", "0.9"), "size": ("width and height", "0.9")},
        "canaryproof.accounting": {"laplacian": ("gaussian", "0.9")},
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


def test_a_name_of_a_module():
    with pytest.warns(DeprecationWarning, match=r"^laplacian has left canaryproof\.accounting in 0\.9: use gaussian$"):
        assert canaryproof.accounting.laplacian is canaryproof.accounting.gaussian
    with pytest.raises(AttributeError, match=r"has no attribute 'poison'$"):
        _ = canaryproof.accounting.poison


def test_an_attribute():
    entry = set_module("canaryproof")(Entry)(3)
    with pytest.warns(DeprecationWarning, match=r"^breadth has left Entry in 0\.9: use width$") as warned:
        assert entry.breadth == 3
    assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match=r"^size has left Entry in 0\.9: use width and height$"):
        _ = entry.size
    # Also where a property fails, the error is that of Python.
    for name in ("other", "depth"):
        with pytest.raises(AttributeError, match=r"^'Entry' object has no attribute '(other|nothing)'$"):
            getattr(entry, name)
    assert copy.deepcopy(entry) == entry
    assert not hasattr(entry, "height")


def test_what_stands_in_for_public_names_is_there():
    rows = {scope: rows for scope, rows in ROWS.items() if not scope.startswith("canaryproof ")}
    for scope, left in rows.items():
        owner = canaryproof if scope == "canaryproof" else public(scope.rpartition(".")[2])
        for successor, _ in left.values():
            # A longer one says what to do.
            if not re.fullmatch(r"[\w.-]+", successor):
                continue
            assert owner is None or hasattr(owner, successor), f"{scope}.{successor}"


def public(name):
    """A public class or module; of a record of a file, None."""
    return next((getattr(module, name) for module in (canaryproof, typing) if name in module.__all__), None)


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
