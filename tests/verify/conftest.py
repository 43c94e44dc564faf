import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DRIVER = """
import os
import fake_suites
from canaryproof.verify.cli import verify
from canaryproof.verify.engine import expected, origin
from canaryproof.verify.cli.command_line import main
verify.SUITES = "fake_suites:SUITES"
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


@pytest.fixture
def make_cluster(tmp_path):
    """Start a scheduler, as a user does; its workers can be started too. A path is where they find modules first."""
    clusters = []

    class Cluster:
        def __init__(self, path=HERE):
            self.path = path
            self.started = []
            clusters.append(self)
            self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", "0")
            while not (found := re.search(r"tcp://127\.0\.0\.1:(\d+)", (tmp_path / "0.log").read_text())):
                assert self.scheduler.poll() is None
                time.sleep(0.05)
            self.address = found[0]
            self.engine = f"dask://{self.address.removeprefix('tcp://')}"

        def start(self, kind, *arguments):
            environment = {**os.environ, "PYTHONPATH": str(self.path), "FAKE_LOG": str(tmp_path / "log")}
            environment |= {
                "FAKE_FLAG": str(tmp_path / "flag"),
                "DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION": "1.0",
            }
            file = tmp_path / f"{len(self.started)}.log"
            with file.open("w") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "distributed.cli.dask_" + kind, "--no-dashboard", *arguments],
                    env=environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=tmp_path,
                    start_new_session=True,
                )
            self.started.append(process)
            return process

        def worker(self, *arguments):
            return self.start("worker", self.address, "--nthreads", "1", *arguments)

        def end(self, process):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    yield Cluster
    for made in clusters:
        for process in made.started:
            if process.poll() is None:
                made.end(process)


@pytest.fixture
def cluster(make_cluster):
    """A scheduler, and a way to start workers."""
    return make_cluster()
