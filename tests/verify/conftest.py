import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DRIVER = """
import os
import fake_suites
from canaryproof.verify.papers.cli import verify_command
from canaryproof.verify.papers.runs import expected
from canaryproof.verify.audit.cli import progress
from canaryproof.verify.audit.engine import provenance
from canaryproof.verify.command_line import main
# Not a word of progress, however busy the machine is.
progress._LINE_EVERY = 3600.0
verify_command.SUITES = "fake_suites:SUITES"
expected.read, expected.read_findings = lambda: fake_suites.EXPECTED, dict
# A run is not to stop because somebody edits the code that these suites do not use; workers of a cluster look for it.
if "FAKE_CODE" in os.environ:
    provenance._digest_of_code = lambda: os.environ["FAKE_CODE"]
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


@contextmanager
def clusters(folder):
    """Start a scheduler, as a user does; its workers can be started too. A path is where they find modules first."""
    made = []

    class Cluster:
        def __init__(self, path=HERE):
            self.path = path
            self.started = []
            made.append(self)
            self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", "0")
            while not (found := re.search(r"tcp://127\.0\.0\.1:(\d+)", (folder / "0.log").read_text())):
                assert self.scheduler.poll() is None
                time.sleep(0.05)
            self.address = found[0]
            self.engine = f"dask://{self.address.removeprefix('tcp://')}"

        def start(self, kind, *arguments):
            environment = {**os.environ, "PYTHONPATH": str(self.path), "FAKE_LOG": str(folder / "log")}
            environment |= {
                "FAKE_FLAG": str(folder / "flag"),
                "DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION": "1.0",
            }
            file = folder / f"{len(self.started)}.log"
            with file.open("w") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "distributed.cli.dask_" + kind, "--no-dashboard", *arguments],
                    env=environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
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
    for cluster in made:
        for process in cluster.started:
            if process.poll() is None:
                cluster.end(process)


@pytest.fixture
def make_cluster(tmp_path):
    with clusters(tmp_path) as make:
        yield make


@pytest.fixture
def cluster(make_cluster):
    """A scheduler, and a way to start workers."""
    return make_cluster()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A scheduler and a worker that no test harms."""
    folder = tmp_path_factory.mktemp("cluster")
    with clusters(folder) as make:
        made = make()
        made.worker("--no-nanny")
        made.log = folder / "1.log"
        yield made
