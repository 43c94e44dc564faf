"""The engine of many machines, and what may happen to them: all on this one, with small checks."""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from canaryproof.verify.files.reading import InputError

pytest.importorskip("distributed", reason="needs canaryproof[distributed]")

PATIENCE = 240.0


def wait_for(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def run(start, *arguments):
    """Run to the end with the code as it is, which workers have too; return status, output and errors."""
    process = start(*arguments, code=None)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.fixture
def local(start, tmp_path):
    """Results of suites by the local engine."""

    def results(*suites):
        assert run(start, *suites, "--out", tmp_path / "local")[0] == 0
        return (tmp_path / "local" / "results.json").read_bytes()

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
    assert "given to 2 workers, as some were lost: mortal\n" in errors
    assert (tmp_path / "run" / "results.json").read_bytes() == expected
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["given again"].startswith("mortal (2 times)")


def test_what_kills_hangs_or_raises_fails_alone_and_is_not_kept(start, tmp_path, monkeypatch):
    # Dask's own number is 3, and each worker takes seconds to start.
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "1")
    arguments = ("faulty", "--engine", "dask", "--time-limit", "1", "--out", tmp_path / "run")
    status, printed, errors = run(start, *arguments)
    assert status == 1
    printed = " ".join(printed.split())
    for name in ("deadly", "hanging"):
        assert f"failed {name}: could not be judged: 2 workers that had it were lost: killed" in printed
        assert f"given to 2 workers, as some were lost: {name}" in errors
    assert "failed raising: could not be judged: ZeroDivisionError" in printed
    assert "Traceback" not in errors
    results = json.loads((tmp_path / "run" / "results.json").read_text())["results"]
    assert [result["verdict"] for result in results] == ["inconclusive"] * 3 + ["confirmed"] * 6
    (tmp_path / "log").write_text("")
    run(start, *arguments, "--resume")
    assert {line.split()[2] for line in (tmp_path / "log").read_text().splitlines()} == {"deadly", "hanging", "raising"}


def test_a_check_over_the_time_limit_ends_a_local_run_in_one_line(start, tmp_path):
    status, _, errors = run(start, "faulty", "--time-limit", "1", "--out", tmp_path / "run")
    assert status == 1
    assert errors.splitlines() == [
        "Error: a process of the run was killed, perhaps for want of memory; or a check took longer than 1 s; --resume "
        "goes on with a run in --out"
    ]


def test_all_workers_may_be_lost_and_others_go_on(start, local, cluster, tmp_path):
    expected = local("brisk")
    (tmp_path / "log").unlink()
    workers = [cluster.worker() for _ in range(2)]
    process = start("brisk", "--engine", cluster.engine, "--out", tmp_path / "run", code=None)
    wait_for(lambda: begun(tmp_path, "brisk9") or process.poll() is not None)
    for worker in workers:
        cluster.end(worker)
    cluster.worker()
    assert process.wait(PATIENCE) == 0
    assert (tmp_path / "run" / "results.json").read_bytes() == expected


def test_a_worker_without_memory_is_given_up(start, cluster):
    cluster.worker("--memory-limit", "700MB")
    status, printed, _ = run(start, "hungry", "--engine", cluster.engine)
    assert status == 1
    assert "failed hungry: could not be judged: 4 workers" in " ".join(printed.split())
    assert "failed modest" not in printed


def test_a_run_whose_scheduler_is_lost_says_so_and_goes_on_elsewhere(start, local, cluster, tmp_path):
    expected = local("brisk")
    (tmp_path / "log").unlink()
    cluster.worker()
    out = tmp_path / "run"
    process = start("brisk", "--engine", cluster.engine, "--out", out, code=None)
    wait_for(lambda: begun(tmp_path, "brisk9") or process.poll() is not None)
    cluster.end(cluster.scheduler)
    printed = process.communicate(timeout=PATIENCE)
    assert (process.returncode, printed) == (
        1,
        ("", "Error: the scheduler is lost; --resume goes on with a run in --out\n"),
    )
    (tmp_path / "log").write_text("")
    assert run(start, "brisk", "--resume", "--out", out)[0] == 0
    assert not begun(tmp_path, "brisk2")
    assert (out / "results.json").read_bytes() == expected


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.deep), signal.SIGINT])
def test_a_killed_or_interrupted_driver_leaves_no_worker_and_can_go_on(start, tmp_path, number):
    out = tmp_path / "run"
    process = start("brisk", "--engine", "dask", "--out", out, code=None)
    wait_for(lambda: begun(tmp_path, "brisk9") or process.poll() is not None)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    _, errors = process.communicate(timeout=PATIENCE)
    # Python's resource tracker tells of the kill.
    assert (process.returncode, errors) == ((130, "\n") if number == signal.SIGINT else (-number, errors))
    assert "Traceback" not in errors
    workers = {int(line.split()[1]) for line in (tmp_path / "log").read_text().splitlines()}
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    (tmp_path / "log").write_text("")
    assert run(start, "brisk", "--engine", "dask", "--resume", "--out", out)[0] == 0
    assert not begun(tmp_path, "brisk2")


def test_a_worker_of_another_version_is_refused(start, cluster):
    cluster.worker()
    process = start("good", "--engine", cluster.engine)  # this driver takes its code for another
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert re.fullmatch(r"Error: --engine: worker tcp://127\.0\.0\.1:\d+ has source code \w+, not unchanged\n", errors)


@pytest.mark.parametrize(
    ("engine", "said"),
    [("slurm", "must be local, dask or dask://HOST:PORT"), ("dask://127.0.0.1:9", "no scheduler answers at tcp://")],
)
def test_an_engine_that_is_not_there_is_named(start, monkeypatch, engine, said):
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    status, _, errors = run(start, "good", "--engine", engine)
    assert status == 2
    assert said in errors
    assert "Traceback" not in errors


def test_what_goes_wrong_on_a_worker_names_it(cluster, tmp_path):
    from canaryproof.verify.engine.cluster import Cluster

    cluster.worker()
    tasks = [(7, (tmp_path / "none.npy",))]
    with pytest.raises(InputError) as error:
        list(Cluster(cluster.address, 1, None).results("canaryproof.verify.files.reading:read_release", tasks))
    lines = rf"--engine: worker tcp://127\.0\.0\.1:\d+: {re.escape(str(tmp_path))}/none\.npy: No such file or directory"
    assert re.fullmatch(lines, error.value.message)


def test_tasks_beyond_those_that_a_scheduler_holds_are_done(cluster, monkeypatch):
    from canaryproof.verify.engine import cluster as module

    cluster.worker()
    # Two at a time: each that is done makes room for another.
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    tasks = [(i, (i, i)) for i in range(7)]
    found = module.Cluster(cluster.address, 1, None).results("operator:mul", tasks)
    assert sorted(found) == [(i, i * i) for i in range(7)]
