import faulthandler
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from canaryproof.verify.audit.engine.executors import ONE_THREAD, EngineError, Local, Lost, Waiting
from canaryproof.verify.audit.engine.provenance import code_and_machine
from canaryproof.verify.papers.check.results import Context, Effort, Result, Subject, Verdict
from canaryproof.verify.papers.runs import plan as module
from canaryproof.verify.papers.runs.plan import Plan, load
from canaryproof.verify.papers.runs.run_file import RunFile
from canaryproof.verify.papers.runs.run_plan import run_plan


@pytest.fixture
def judge(fake_suites):
    """Run suites with some processes."""
    assert fake_suites

    def run(*suites, workers=2, path=None, resume=False, seen=None, ended=None):
        plan = Plan("fake_suites:SUITES", suites, Context(Effort.QUICK, 0))
        with RunFile(path, {}, plan.checks, resume=resume) as file:
            return run_plan(plan, file, Local(workers), lambda *state: seen is None or seen.append(state), ended)

    return run


def kept(path):
    """Ids in the file as it is, whether anybody writes to it or not."""
    copy = path.with_name("copy")
    # A copy by another process, as closing a file releases the locks that this one has on it.
    subprocess.run(["cp", path, copy], check=True)
    if path.with_name(path.name + "-journal").exists():
        subprocess.run(["cp", f"{path}-journal", f"{copy}-journal"], check=False)
    database = sqlite3.connect(copy)
    try:
        return [name for (name,) in database.execute("SELECT id FROM results")]
    except sqlite3.OperationalError:
        return []
    finally:
        database.close()


def test_a_plan_of_some_checks_judges_these_alone(fake_suites):
    assert fake_suites
    plan = Plan("fake_suites:SUITES", ("good", "naps"), Context(Effort.QUICK, 0), frozenset(["theirs", "nap2"]))
    assert plan.checks == (("good", "theirs"), ("naps", "nap2"))
    with RunFile(None, {}, plan.checks) as file:
        run = run_plan(plan, file, Local(1), lambda *_: None)
    assert [(result.suite, result.id) for result in run.results] == list(plan.checks)


def test_results_do_not_depend_on_the_number_of_processes(judge):
    seen = []
    one, many = judge("naps", "good", workers=1), judge("naps", "good", workers=3, seen=seen)
    assert one == many
    assert [result.id for result in many.results] == [*(f"nap{i}" for i in range(5)), "own", "theirs"]
    assert [state[:2] for state in seen] == [(i, 7) for i in range(8)]
    assert (seen[0][2], seen[-1][2]) == ("nap0", "")


class AtOnce:
    """An executor that has these results, in an order of its own, of numbers of tasks."""

    limit, begun = 7.0, {}

    def __init__(self, *order):
        self._order = order

    def results(self, function, tasks, kinds=None):
        self.asked = (function, dict(tasks), kinds)
        for number in self._order:
            plan, suite, name, _ = self.asked[1][number]
            yield number, module.judge(plan, suite, name, None)


@pytest.mark.usefixtures("fake_suites")
def test_what_is_done_is_told_with_the_first_that_is_not():
    plan = Plan("fake_suites:SUITES", ("good", "bad"), Context(Effort.QUICK, 0))
    told, ended, executor = [], [], AtOnce(2, 1, 0)
    with RunFile(None, {}, plan.checks) as file:
        run = run_plan(plan, file, executor, lambda *state: told.append(state), ended.append)
    assert told == [(0, 3, "own"), (1, 3, "own"), (2, 3, "own"), (3, 3, "")]
    assert [[result.id for result in part.results] for part in ended] == [["broken"], ["own", "theirs"]]
    assert [result.id for result in run.results] == ["own", "theirs", "broken"]
    assert (run.version, run.level, run.seed) == (version("canaryproof"), Effort.QUICK, 0)
    function, tasks, kinds = executor.asked
    assert load(function) is module.judge
    assert tasks == {i: (plan, suite, name, 7.0) for i, (suite, name) in enumerate(plan.checks)}
    assert kinds == [("good", ""), ("good", ""), ("bad", "")]
    # Two at once are done: the first that is not is the one after both.
    told.clear()
    with RunFile(None, {}, plan.checks) as file:
        for i, answer in AtOnce(0, 1).results("", ((i, (plan, *check, None)) for i, check in enumerate(plan.checks))):
            file.add(i, answer[0])
        run_plan(plan, file, AtOnce(2), lambda *state: told.append(state))
    assert told == [(2, 3, "broken"), (3, 3, "")]


@pytest.mark.usefixtures("fake_suites")
def test_a_check_that_was_lost_is_in_the_run_and_not_in_its_file(tmp_path):
    class LosesOne(AtOnce):
        def results(self, function, tasks, kinds=()):
            for i, answer in super().results(function, tasks, kinds):
                yield i, Lost("its worker was lost") if i == 1 else answer

    plan, path = Plan("fake_suites:SUITES", ("good", "bad"), Context(Effort.QUICK, 0)), tmp_path / "run.sqlite"
    with RunFile(path, {}, plan.checks) as file:
        run = run_plan(plan, file, LosesOne(2, 1, 0), lambda *_: None)
    assert [result.verdict for result in run.results] == ["confirmed", "inconclusive", "refuted"]
    assert run.results[1].finding == "could not be judged: its worker was lost"
    assert sorted(kept(path)) == ["broken", "own"]


@pytest.mark.usefixtures("fake_suites")
def test_a_time_limit_ends_with_its_check(monkeypatch):
    """It would end the process during a later one."""
    said = []
    monkeypatch.setattr(
        faulthandler,
        "dump_traceback_later",
        lambda seconds, *, file, **options: said.append((seconds, options, file.name)),
    )
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: said.append("cancelled"))
    plan = Plan("fake_suites:SUITES", ("good", "unspeakable"), Context(Effort.QUICK, 0))
    for suite, name in plan.checks:
        said.clear()
        assert module.judge(plan, suite, name, 2.5)[1] == (suite == "good")
        assert said == [(2.5, {"exit": True}, os.devnull), "cancelled"]
        said.clear()
        module.judge(plan, suite, name, None)
        assert said == []


def test_a_check_that_ends_the_process_cannot_be_judged(monkeypatch, fake_suites):
    def act():
        sys.exit("gone\n  away")

    monkeypatch.setitem(fake_suites.SUITES, "leaving", (fake_suites.check("leaves", Subject.DOCUMENT, act=act),))
    plan = Plan("fake_suites:SUITES", ("leaving",), Context(Effort.QUICK, 0))
    answer, is_kept = module.judge(plan, "leaving", "leaves", None)
    assert not is_kept
    assert Result.from_json(json.loads(answer)) == Result(
        "leaves",
        "leaving",
        # Whoever states it: it is this package that failed.
        Subject.IMPLEMENTATION,
        "a source",
        "a statement",
        Verdict.INCONCLUSIVE,
        f"could not be judged: SystemExit: gone away (test_plan.py, line {act.__code__.co_firstlineno + 1})",
        {},
    )


def test_libraries_that_know_threads_get_one():
    libraries = ("NUMBA", "OMP", "OPENBLAS", "MKL")
    assert {f"{name}_NUM_THREADS": "1" for name in libraries} | {"VECLIB_MAXIMUM_THREADS": "1"} == ONE_THREAD


def test_each_suites_part_of_the_run_is_told_once(judge, tmp_path):
    first, again = [], []
    run = judge("naps", "good", path=tmp_path / "run", ended=first.append)
    # What an earlier run has kept is told, too.
    judge("naps", "good", path=tmp_path / "run", resume=True, ended=again.append)
    for parts in (first, again):
        assert {part.results[0].suite for part in parts} == {"naps", "good"}
        parts.sort(key=lambda part: run.results.index(part.results[0]))
        assert [result for part in parts for result in part.results] == [*run.results]


def test_a_process_keeps_to_a_suite_and_then_helps():
    kinds = [(kind, "") for kind in "aabccccdd"]
    waiting = Waiting([(i, ()) for i in range(9) if i != 3], kinds)
    assert waiting.count == 8
    # The second process is at its last suite while the first one does two; then both are at the one that is left.
    turns = [(0, 0), (1, 7), (0, 1), (0, 2), (0, 4), (1, 8), (1, 6), (0, 5), (1, None), (0, None)]
    for process, expected in turns:
        task = waiting.take(process)
        assert (task and task[0]) == expected


def test_one_process_does_what_tasks_share():
    kinds = [("a", ""), ("a", "dear"), ("a", ""), ("a", "dear"), ("b", "dear")]
    waiting = Waiting([(i, ()) for i in range(5)], kinds)
    assert waiting.count == 5
    # Task 3 waits for the process that has done task 1, whoever helps.
    turns = [(0, 0), (1, 4), (0, 1), (1, 2), (1, None), (0, 3), (0, None)]
    for process, expected in turns:
        task = waiting.take(process)
        assert (task and task[0]) == expected


def test_tasks_of_no_kind_are_taken_in_their_order():
    waiting = Waiting([(i, ()) for i in range(3)])
    assert [waiting.take(process) for process in (1, 0, 1, 0)] == [(0, ()), (1, ()), (2, ()), None]


def test_each_process_has_one_thread_and_this_one_what_it_had(judge, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    found = judge("threads").results
    assert [(result.evidence["numba"], result.evidence["blas"]) for result in found] == [(1, "1")] * 2
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "NUMBA_NUM_THREADS" not in os.environ
    assert os.getpid() not in {result.evidence["process"] for result in found}


def test_a_check_that_raises_fails_alone_and_is_tried_again(judge, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_FLAG", str(tmp_path / "flag"))
    run = judge("luckless", path=tmp_path / "run")
    assert [result.failed for result in run.results] == [False, True, False]
    luckless = run.results[1]
    assert (luckless.subject, luckless.verdict) == (Subject.IMPLEMENTATION, Verdict.INCONCLUSIVE)
    assert luckless.finding.startswith("could not be judged: ValueError: no luck at first (fake_suites.py, line ")
    assert sorted(kept(tmp_path / "run")) == ["after", "before"]
    again = judge("luckless", path=tmp_path / "run", resume=True)
    assert not again.failures
    assert again.results[1].subject is Subject.DOCUMENT


def test_evidence_that_json_cannot_say_fails(judge):
    assert "not JSON serializable" in judge("unspeakable").failures[0].finding


def test_a_process_that_is_killed_stops_the_run_and_loses_no_result(judge, tmp_path):
    with pytest.raises(EngineError, match="a process of the run was killed"):
        judge("killed", path=tmp_path / "run")
    assert kept(tmp_path / "run") == ["alive"]


def test_what_is_kept_is_not_judged_again(judge, tmp_path, monkeypatch):
    run = judge("good", path=tmp_path / "run")
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    assert judge("good", path=tmp_path / "run", resume=True) == run
    assert not (tmp_path / "log").exists()


def test_ids_are_unique():
    ids = [
        check.id for checks in load("canaryproof.verify.papers.suites.catalogue:SUITES").values() for check in checks
    ]
    assert len(ids) == len(set(ids))


def processes(log):
    """Processes that have begun a check."""
    return {int(line.split()[1]) for line in log.read_text().splitlines()} if log.exists() else set()


def wait_for(condition, run=None):
    """Wait for what a run is to do; one that ends instead says why."""
    while not condition():
        assert run is None or run.poll() is None, run.communicate()
        time.sleep(0.02)


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def has_begun(log, count):
    return lambda: log.exists() and len(log.read_text().splitlines()) >= count


def assert_interrupted(run):
    assert run.communicate() == ("", "Interrupted; the same command with --resume goes on.\n")
    assert run.returncode == 130


@pytest.mark.deep(beyond=1)
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_no_process(start, tmp_path, signal_number):
    run, log = start("slow", "--out", tmp_path / "run"), tmp_path / "log"
    wait_for(has_begun(log, 4))
    wait_for(lambda: len(kept(tmp_path / "run" / "run.sqlite")) == 2)
    run.send_signal(signal_number)
    # It answers a request to end as an interrupt, and leaves nothing behind that it shared with its processes.
    asked = signal_number == signal.SIGTERM
    assert run.wait() == (143 if asked else -signal_number)
    assert not asked or "leaked" not in run.stderr.read()
    wait_for(lambda: not any(is_alive(process) for process in processes(log)))
    assert sorted(kept(tmp_path / "run" / "run.sqlite")) == ["slow0", "slow1"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_an_interrupt_is_quiet_and_quick_and_keeps_results(start, tmp_path):
    run, log = start("slow", "--out", tmp_path / "run"), tmp_path / "log"
    wait_for(has_begun(log, 4))
    wait_for(lambda: len(kept(tmp_path / "run" / "run.sqlite")) == 2)
    begun = time.monotonic()
    # As a terminal does, which interrupts all of them.
    os.killpg(run.pid, signal.SIGINT)
    assert_interrupted(run)
    # Its checks would have taken as long.
    assert time.monotonic() - begun < 60.0
    assert not any(is_alive(process) for process in processes(log))
    assert sorted(kept(tmp_path / "run" / "run.sqlite")) == ["slow0", "slow1"]


@pytest.mark.deep
@pytest.mark.parametrize(
    "share", [pytest.param(0.1, marks=pytest.mark.deep), 0.4, pytest.param(0.7, marks=pytest.mark.deep)]
)
def test_an_interrupt_while_processes_start_is_quiet(start, tmp_path, share):
    run = start("slow", "--out", tmp_path / "run")
    # The file is there as soon as the command has imported what it needs, and processes take about as long to start.
    wait_for((tmp_path / "run" / "run.sqlite").exists)
    time.sleep(share)
    os.killpg(run.pid, signal.SIGINT)
    assert_interrupted(run)


@pytest.mark.deep
def test_a_run_killed_again_and_again_ends_as_an_undisturbed_one(start, fake_suites, tmp_path):
    log, out = tmp_path / "log", tmp_path / "run"
    assert start("many", "good", "--out", tmp_path / "calm").wait() == 0
    log.write_text("")
    draw, done, sizes = random.Random(0), [], set()
    times = 50 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 2
    for i in range(times):
        before = log.read_text().splitlines()
        run = start("many", "good", "--out", out, "--resume")
        if i % 5:
            # While it judges: after a few checks, and a part of the next one.
            wait_for(has_begun(log, len(before) + draw.randint(1, 4)), run)
            time.sleep(draw.uniform(0.0, 0.05))
        else:
            time.sleep(draw.uniform(0.2, 1.5))
        run.kill()
        run.wait()
        judged = {line.split()[2] for line in log.read_text().splitlines()[len(before) :]}
        # Nothing that was kept is judged again or lost.
        assert not judged & set(done)
        now = kept(out / "run.sqlite") if (out / "run.sqlite").exists() else []
        assert set(done) <= set(now)
        done = now
        sizes.add(len(done))
    assert len(sizes) >= min(times - 1, 4)
    last = start("many", "good", "--out", out, "--resume")
    assert last.communicate()[1] == ""
    assert last.returncode == 0
    assert len(kept(out / "run.sqlite")) == fake_suites.MANY + 2
    for name in ("results.json", "summary.md"):
        assert (out / name).read_bytes() == (tmp_path / "calm" / name).read_bytes()


def test_the_origin_is_of_the_plan_and_of_code_and_machine():
    plan = Plan("fake_suites:SUITES", ("a", "b"), Context(Effort.FULL, 3))
    expected = {"version": version("canaryproof"), "level": "full", "seed": "3", "suites": "a b"}
    assert plan.origin == {**expected, **code_and_machine()}
    measured = replace(plan, context=replace(plan.context, measurements=SimpleNamespace(digest="a digest")))
    assert measured.origin == {**plan.origin, "measurements": "a digest"}
