"""The page on how an audit runs through the code names the files and functions that an audit calls, in their order."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from canaryproof.kernels import exact_law

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "code.md"
PROGRAM = """
import json
import re
import sys
from canaryproof.verify.command_line import main

called = {}

def note(frame, event, _):
    code = frame.f_code
    place = re.search(r"(?:kernels|verify)/[^/].*[.]py$", code.co_filename)
    if event == "call" and place and not code.co_name.startswith("<"):
        called[place[0], code.co_name] = None

def audit(scores):
    try:
        main([scores if argument == "scores.npz" else argument for argument in sys.argv[3:]])
    except SystemExit as end:
        assert not end.code

# The first audit imports and compiles; it is of another size, so that the second finds no table of its own ready.
audit(sys.argv[1])
sys.setprofile(note)
audit(sys.argv[2])
sys.setprofile(None)
print(json.dumps(list(called)), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Files and functions of an audit, in the order of their first calls."""
    folder = tmp_path_factory.mktemp("audit")
    files = [folder / f"{count}.npz" for count in (290, 300)]
    for file in files:
        np.savez(file, observed=exact_law.cosines(int(file.stem), 10**6, 1.54, np.random.default_rng(0)))
    (command,) = re.findall(r"^canaryproof (audit .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    program = [sys.executable, "-c", PROGRAM, *files, *command.split()]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    return [tuple(call) for call in json.loads(done.stderr.splitlines()[-1])]


@pytest.fixture(scope="module")
def named():
    return re.findall(r"^\|[^|]*\| `([\w/]+\.py)` \| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_its_functions_are_called_in_its_order(calls, named):
    order = {call: place for place, call in enumerate(calls)}
    assert [call for call in named if call not in order] == []
    assert named == sorted(named, key=order.__getitem__)


def test_it_has_every_file_that_an_audit_calls(calls, named):
    # Private kernels compile and load the others; which of them are called depends on what is compiled already.
    used = {file for file, _ in calls if not file.rpartition("/")[2].startswith("_")}
    assert used == {file for file, _ in named}
