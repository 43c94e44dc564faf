import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DRIVER = """
import os
import fake_suites
from canaryproof.verify import expected, origin, verify_command
from canaryproof.verify.command_line import main
verify_command.SUITES = "fake_suites:SUITES"
expected.read = lambda: fake_suites.EXPECTED
# A run is not to stop because somebody edits the code that these suites do not use; workers of a cluster look for it.
if "FAKE_CODE" in os.environ:
    origin._digest_of_code = lambda: os.environ["FAKE_CODE"]
main(prog_name="canaryproof")
"""


@pytest.fixture
def fake_suites(monkeypatch):
    """The module of fake suites, importable by the processes that a test starts."""
    monkeypatch.syspath_prepend(HERE)
    import fake_suites

    return fake_suites


@pytest.fixture
def start(tmp_path):
    """Start ``canaryproof verify`` with the fake suites, as a process group of its own."""
    started = []

    def begin(*arguments, code="unchanged", path=(), **options):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (HERE, *path))),
            "FAKE_LOG": str(tmp_path / "log"),
            "FAKE_FLAG": str(tmp_path / "flag"),
            **({"FAKE_CODE": code} if code else {}),
        }
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, "verify", *map(str, arguments)],
            env=environment,
            text=True,
            start_new_session=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()
