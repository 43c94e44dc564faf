"""The engine of many machines, and what may happen to them: all on this one, with small checks."""

import importlib.metadata
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from pickle import dumps
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from canaryproof.kernels.canaries import Canaries, noise
from canaryproof.verify.audit.answer.release_sums import SCORED
from canaryproof.verify.audit.engine import provenance
from canaryproof.verify.audit.engine.executors import EngineError, Lost
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.stored_release import open_release
from canaryproof.verify.command_line import main
from canaryproof.verify.papers.cli import verify_command
from canaryproof.verify.papers.runs.run_file import read_unfinished

pytest.importorskip("distributed", reason="needs canaryproof[distributed]")

import dask
import distributed

# Tasks are given up at the second worker that is lost. Dask's own number is 3, and each worker takes seconds to start.
ONE_FAILURE = "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "1"
# Where one at a time is enough.
ONE_WORKER = "NUMBA_NUM_THREADS", "1"


def wait_for(condition):
    while not (found := condition()):
        time.sleep(0.05)
    return found


def run(start, *arguments):
    """Run to the end with the code as it is, which workers have too; return status, output and errors."""
    process = start(*arguments, code=None)
    out, err = process.communicate()
    return process.returncode, out, err


@pytest.fixture(scope="module")
def known():
    """Results of suites by the local engine, as they were found."""
    return {}


@pytest.fixture
def local(start, tmp_path, known):
    """Results of suites by the local engine. What they noted meanwhile is gone."""

    def results(*suites):
        if suites not in known:
            assert run(start, *suites, "--out", tmp_path / "local")[0] == 0
            known[suites] = (tmp_path / "local" / "results.json").read_bytes()
            (tmp_path / "log").unlink()
        return known[suites]

    return results


def begun(tmp_path, name):
    log = tmp_path / "log"
    return [line for line in log.read_text().splitlines() if line.split()[2] == name] if log.exists() else []


def test_results_are_those_of_the_local_engine_though_a_worker_dies(start, local, tmp_path):
    (tmp_path / "flag").touch()
    expected = local("mortal", "naps", "good")
    (tmp_path / "flag").unlink()
    status, _, errors = run(start, "mortal", "naps", "good", "--engine", "dask", "--out", tmp_path / "run")
    assert status == 0
    # On a busy machine the worker that dies may have had another check before, whose result had not left it.
    again = json.loads((tmp_path / "run" / "environment.json").read_text())["given again"]
    assert "mortal (2 times)" in again.split(", ")
    assert "given to 2 workers, as some were lost: mortal\n" in errors
    assert (tmp_path / "run" / "results.json").read_bytes() == expected


@pytest.mark.deep
def test_what_kills_hangs_or_raises_fails_alone_and_is_not_kept(start, tmp_path, monkeypatch):
    monkeypatch.setenv(*ONE_FAILURE)
    monkeypatch.setenv(*ONE_WORKER)
    status, printed, errors = run(start, "faulty", "--engine", "dask", "--time-limit", "1", "--out", tmp_path / "run")
    assert status == 1
    printed = " ".join(printed.split())
    for name in ("deadly", "hanging"):
        assert f"failed {name}: could not be judged: 2 workers that had it were lost: killed" in printed
        assert f"given to 2 workers, as some were lost: {name}" in errors
    assert "failed raising: could not be judged: ZeroDivisionError" in printed
    assert "Traceback" not in errors
    results = json.loads((tmp_path / "run" / "results.json").read_text())["results"]
    assert [result["verdict"] for result in results] == ["inconclusive"] * 3 + ["confirmed"] * 6
    # What a run with --resume would not judge again.
    _, rows = read_unfinished(tmp_path / "run" / "run.sqlite")
    assert {json.loads(row)["id"] for row in rows} == {f"sound{i}" for i in range(6)}


def test_a_check_over_the_time_limit_ends_a_local_run_in_one_line(start, tmp_path):
    status, _, errors = run(start, "faulty", "--time-limit", "1", "--out", tmp_path / "run")
    assert status == 69
    assert errors.splitlines() == [
        "Error: a process of the run was killed, perhaps for want of memory; or a check took longer than 1 s; --resume "
        "goes on with a run in --out"
    ]


# All workers in place of one.
@pytest.mark.deep
def test_all_workers_may_be_lost_and_others_go_on(start, local, cluster, tmp_path):
    expected = local("brisk")
    workers = [cluster.worker("--no-nanny") for _ in range(2)]
    process = start("brisk", "--engine", cluster.engine, "--out", tmp_path / "run", code=None)
    wait_for(lambda: begun(tmp_path, "brisk9") or process.poll() is not None)
    for worker in workers:
        cluster.end(worker)
    cluster.worker("--no-nanny")
    assert process.wait() == 0
    assert (tmp_path / "run" / "results.json").read_bytes() == expected


# Another end of workers that get a task and are lost.
@pytest.mark.deep
def test_a_worker_without_memory_is_given_up(start, make_cluster, monkeypatch):
    monkeypatch.setenv(*ONE_FAILURE)
    cluster = make_cluster()
    cluster.worker("--memory-limit", "700MB")
    status, printed, _ = run(start, "hungry", "--engine", cluster.engine)
    assert status == 1
    assert "failed hungry: could not be judged: 2 workers" in " ".join(printed.split())
    assert "failed modest" not in printed


@pytest.mark.deep
def test_a_run_whose_scheduler_is_lost_says_so_and_goes_on_elsewhere(start, local, cluster, tmp_path):
    expected = local("brisk")
    cluster.worker("--no-nanny")
    out = tmp_path / "run"
    process = start("brisk", "--engine", cluster.engine, "--out", out, code=None)
    wait_for(lambda: begun(tmp_path, "brisk9") or process.poll() is not None)
    cluster.end(cluster.scheduler)
    printed, errors = process.communicate()
    assert (process.returncode, printed) == (3, "")
    assert errors.splitlines() == [
        f"Warning: --engine {cluster.engine} is not tls://: whoever reaches it can run code as you.",
        "Error: the scheduler is lost; --resume goes on with a run in --out",
    ]
    (tmp_path / "log").write_text("")
    assert run(start, "brisk", "--resume", "--out", out)[0] == 0
    assert not begun(tmp_path, "brisk2")
    assert (out / "results.json").read_bytes() == expected


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.deep), signal.SIGINT])
def test_a_killed_or_interrupted_driver_leaves_no_worker_and_can_go_on(start, tmp_path, number, monkeypatch):
    monkeypatch.setenv(*ONE_WORKER)
    out = tmp_path / "run"
    process = start("brisk", "--engine", "dask", "--out", out, code=None)
    wait_for(lambda: begun(tmp_path, "brisk29") or process.poll() is not None)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    _, errors = process.communicate()
    # Python's resource tracker tells of the kill.
    assert (process.returncode, errors) == (
        (130, "Interrupted; the same command with --resume goes on.\n")
        if number == signal.SIGINT
        else (-number, errors)
    )
    assert "Traceback" not in errors
    workers = {int(line.split()[1]) for line in (tmp_path / "log").read_text().splitlines()}
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    _, rows = read_unfinished(out / "run.sqlite")
    done = {json.loads(row)["id"] for row in rows}
    assert done
    (tmp_path / "log").write_text("")
    assert run(start, "brisk", "--resume", "--out", out)[0] == 0
    assert not any(begun(tmp_path, name) for name in done)


WITHOUT_PACKAGE = """
import importlib.metadata, sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "canaryproof":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Without())
known = importlib.metadata.version
def version(name):
    if name == "canaryproof":
        raise importlib.metadata.PackageNotFoundError(name)
    return known(name)
importlib.metadata.version = version
"""


@pytest.fixture
def refusal(fake_suites, monkeypatch):
    """What a run on a cluster says, in this process, that ends in one line of bad input."""
    monkeypatch.setattr(verify_command, "SUITES", f"{fake_suites.__name__}:SUITES")

    def said(engine):
        result = CliRunner().invoke(main, ["verify", "good", "--engine", engine])
        return refused(result.exit_code, result.stdout, result.stderr)

    return said


def refused(status, printed, errors):
    assert (status, printed) == (2, ""), errors
    lines = [line for line in errors.splitlines() if not line.startswith("Warning: --engine dask://127")]
    assert len(lines) == 1, errors
    assert lines[0].startswith("Error: --engine: ")
    return lines[0].removeprefix("Error: --engine: ")


class Ended:
    """A task's future that has this result, or raises this."""

    def __init__(self, result):
        self._result = result

    def result(self):
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


@pytest.mark.parametrize(("limit", "slow"), [(None, ""), (1.0, " or over the time limit")])
def test_a_tasks_end_is_told_by_what_it_was(limit, slow):
    from distributed import CancelledError, KilledWorker

    from canaryproof.verify.audit.engine.cluster import Cluster

    result = Cluster("tcp://a:1", 1, limit)._result
    # Dask allows so many failures: one more worker than that was lost.
    lost = result(Ended(KilledWorker("task", None, 3)))
    assert lost == Lost(f"4 workers that had it were lost: killed, perhaps for want of memory{slow}")
    assert result(Ended(("tcp://a:2", "", 7))) == 7
    with pytest.raises(InputError, match=r"^--engine: worker tcp://a:2 has numpy 1, not 2$"):
        result(Ended(("tcp://a:2", "numpy 1, not 2", None)))
    with pytest.raises(EngineError, match=r"^the scheduler is lost$"):
        result(Ended(CancelledError("task")))


def test_a_worker_says_what_it_has_that_the_driver_has_not(monkeypatch):
    from canaryproof.verify.audit.engine import cluster as module

    monkeypatch.setattr(module, "_code_and_machine_here", lambda: {"python": "3", "numpy": "1"})

    def done(**made_by):
        return module._run_task("tcp://a:2", made_by, "operator:sub", dumps((7, 2)))

    assert done(python="3", numpy="2") == ("numpy 1, not 2", None)
    assert done(python="3", jax="4") == ("jax not installed, not 4", None)
    assert done(python="3") == ("", 5)

    # What a worker is asked first is the package's version.
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(address="tcp://a:2"))
    asked = {"python": "3"}, "operator:sub", dumps((7, 2))
    assert module._run_on_worker(version("canaryproof"), *asked) == ("tcp://a:2", "", 5)
    assert module._run_on_worker("0.0", *asked) == ("tcp://a:2", f"canaryproof {version('canaryproof')}, not 0.0", None)

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert module._run_on_worker("0.0", *asked) == ("tcp://a:2", "canaryproof not installed, not 0.0", None)


def test_the_driver_hears_of_its_own_tasks_that_a_worker_gets(monkeypatch):
    from canaryproof.verify.audit.engine.cluster import _Begun

    heard = []
    begun = _Begun("run")
    monkeypatch.setattr(
        begun, "_scheduler", SimpleNamespace(log_event=lambda *event: heard.append(event)), raising=False
    )
    for key, finish in (
        (("run", 3), "processing"),
        (("run", 4), "memory"),
        (("other", 5), "processing"),
        ("run", "processing"),
    ):
        begun.transition(key, "waiting", finish)
    assert heard == [("run", 3)]


def test_what_dask_says_is_heard_again_afterwards():
    from canaryproof.verify.audit.engine.cluster import _quiet

    names = ("distributed", "distributed.worker")
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    with _quiet():
        assert not any(logger.isEnabledFor(logging.CRITICAL) for logger in loggers)
    assert [logger.level for logger in loggers] == before


def test_a_worker_of_another_version_is_refused(served, refusal, monkeypatch):
    monkeypatch.setattr(provenance, "_digest_of_code", lambda: "another")
    said = refusal(served.engine)
    assert re.fullmatch(r"worker tcp://127\.0\.0\.1:\d+ has source code \w+, not another", said)


@pytest.mark.deep
def test_a_worker_that_compiles_for_another_processor_is_refused(cluster, refusal, monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    cluster.worker("--no-nanny")
    monkeypatch.delenv("NUMBA_CPU_NAME")
    said = refusal(cluster.engine)
    assert re.fullmatch(r"worker tcp://127\.0\.0\.1:\d+ has cpu target generic \w{8}, not [\w-]+ \w{8}", said)


@pytest.mark.deep
def test_a_worker_without_the_package_is_refused(cluster, refusal, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_PACKAGE)
    cluster.path = tmp_path
    cluster.worker("--no-nanny")
    said = refusal(cluster.engine)
    assert re.fullmatch(
        rf"worker tcp://127\.0\.0\.1:\d+ has canaryproof not installed, not {version('canaryproof')}", said
    )


def test_a_scheduler_without_the_package_is_refused(refusal, tmp_path, make_cluster):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_PACKAGE)
    cluster = make_cluster(tmp_path)
    said = refusal(cluster.engine)
    assert said == f"the scheduler at {cluster.address} has canaryproof not installed, not {version('canaryproof')}"


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("slurm", "must be local, dask or dask://HOST:PORT, not 'slurm'"),
        ("dask://", "must be local, dask or dask://HOST:PORT, not 'dask://'"),
        ("dask://127.0.0.1:9", "no scheduler answers at tcp://127.0.0.1:9"),
        (
            "dask://tls://127.0.0.1:9",
            "tls:// needs certificates: dask's setting distributed.comm.tls names their files",
        ),
    ],
)
def test_an_engine_that_is_not_there_is_named(refusal, engine, said):
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        assert refusal(engine).startswith(said)


def test_certificates_that_cannot_be_read_are_named(refusal, tmp_path):
    files = {name: str(tmp_path / name) for name in ("ca-file", "client.cert", "client.key")}
    with dask.config.set({f"distributed.comm.tls.{name}": file for name, file in files.items()}):
        assert refusal("dask://tls://127.0.0.1:9") == "TLS: No such file or directory"


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    "word", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2p1\r\n", b"\1" + bytes(15)]
)
def test_what_is_no_scheduler_is_named_and_not_waited_for(word, monkeypatch):
    """A socket that listens and says nothing, or what belongs to another protocol."""
    from canaryproof.verify.audit.engine import cluster as module

    monkeypatch.setattr(module, "_ANSWER", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with suppress(OSError):
                while True:
                    callers.append(server.accept()[0])
                    callers[-1].sendall(word)

        callers = []
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(InputError) as error:
            list(module.Cluster(address, 1, None).results("operator:mul", []))
        assert error.value.message == f"--engine: no scheduler answers at {address}"
        assert time.monotonic() - start < 60.0
        for caller in callers:
            caller.close()


def test_a_worker_is_no_scheduler(served):
    from canaryproof.verify.audit.engine import cluster as module

    found = wait_for(lambda: re.search(r"Start worker at: +(tcp://\S+)", served.log.read_text()))
    with pytest.raises(InputError, match="is no scheduler but a Worker"):
        list(module.Cluster(found[1], 1, None).results("operator:mul", []))


def test_nobody_without_the_key_speaks_to_a_cluster_of_our_own():
    """Other users reach its ports: those of TLS have a key that a second client has not, those of HTTP no pages."""
    from distributed import Client
    from distributed.security import Security

    from canaryproof.verify.audit.engine import cluster as module

    with module.Cluster("", 1, None)._client() as client:
        found = client.scheduler_info()
        addresses = [found["address"], *found["workers"], *(worker["nanny"] for worker in found["workers"].values())]
        assert len(addresses) == 3
        for address in addresses:
            assert address.startswith("tls://127.0.0.1:")
            for security in (Security.temporary(), None):
                plain = address if security else address.replace("tls", "tcp")
                # A closed connection has many words.
                with pytest.raises(OSError), Client(plain, security=security, timeout=2):  # noqa: PT011
                    pass
        assert client.submit(int, "7").result() == 7
        ports = [found["services"]["dashboard"], *(w["services"]["dashboard"] for w in found["workers"].values())]
        assert 8787 not in ports
        for port in ports:
            for page in ("", "status", "info/main/workers.html", "json/identity.json", "metrics"):
                with pytest.raises(urllib.error.HTTPError, match="404") as caught:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10)
                caught.value.close()


def test_what_goes_wrong_on_a_worker_names_it(served, tmp_path):
    from canaryproof.verify.audit.engine.cluster import Cluster

    tasks = [(7, (tmp_path / "none.npy",))]
    with pytest.raises(InputError) as error:
        list(Cluster(served.address, 1, None).results("canaryproof.verify.audit.files.reading:read_release", tasks))
    lines = rf"--engine: worker tcp://127\.0\.0\.1:\d+: {re.escape(str(tmp_path))}/none\.npy: No such file or directory"
    assert re.fullmatch(lines, error.value.message)


def test_tasks_beyond_those_that_a_scheduler_holds_are_done(served, monkeypatch):
    from canaryproof.verify.audit.engine import cluster as module

    # Two at a time: each that is done makes room for another.
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    tasks = [(i, (i, i)) for i in range(7)]
    found = module.Cluster(served.address, 1, None).results("operator:mul", tasks)
    assert sorted(found) == [(i, i * i) for i in range(7)]


def in_shards(folder, dim):
    """Write a release of bfloat16 in two files with an index, cut in the middle of a block."""
    release = noise(3, dim)
    cut, raw = dim // 3 + 1, release.view(np.uint32) >> 16
    for name, part in (("1", raw[:cut]), ("2", raw[cut:])):
        header = {name: {"dtype": "BF16", "shape": [len(part)], "data_offsets": [0, 2 * len(part)]}}
        text = json.dumps(header).encode()
        with (folder / f"{name}.safetensors").open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.write(part.astype("<u2").data)
    index = folder / "release.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: f"{name}.safetensors" for name in ("1", "2")}}))
    return index


def audited(index, directions, *options):
    asked = ("--canaries", "8", "--canary-seed", "1", "--directions", directions, "--delta", "1e-6", "--json")
    shown = CliRunner().invoke(main, ["audit", str(index), *asked, "--noise-multiplier", "1", "--force", *options])
    assert shown.exit_code == 0, shown.output
    return shown.stdout


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("directions", ["independent", "orthonormal"])
def test_a_release_is_audited_by_a_cluster_to_the_last_bit(served, directions, tmp_path):
    index = in_shards(tmp_path, 10_000)
    assert audited(index, directions, "--engine", served.engine) == audited(index, directions)


@pytest.mark.deep
@pytest.mark.parametrize("directions", ["independent", "orthonormal"])
def test_blocks_are_scored_by_two_workers_to_the_last_bit(cluster, directions, tmp_path):
    index = in_shards(tmp_path, 2**27 + 5)
    for _ in range(2):
        cluster.worker("--no-nanny")
    here = audited(index, directions, "--state", str(tmp_path / "state.npz"))
    assert audited(index, directions, "--engine", cluster.engine) == here
    # Another process goes on from the sums of all blocks.
    assert audited(index, directions, "--state", str(tmp_path / "state.npz")) == here


def test_a_file_that_a_worker_cannot_read_is_named(served, tmp_path):
    from canaryproof.verify.audit.engine.cluster import Cluster

    index = in_shards(tmp_path, 10_000)
    release = open_release(index)
    (tmp_path / "2.safetensors").unlink()
    with pytest.raises(InputError, match=r"--engine: worker tcp://.*2\.safetensors: No such file"):
        list(Cluster(served.address, 1, None).results(SCORED, [(0, (release, Canaries(1, 2, 10_000), 0))]))
