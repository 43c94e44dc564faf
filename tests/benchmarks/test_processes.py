import subprocess
import sys

import pytest

from tests.benchmarks import processes
from tests.benchmarks.processes import Bits, Instructions, Memory
from tests.benchmarks.timing import Skipped

PERF = "\n1234567,,instructions:u,98765432,100.00,,\n"
NO_COUNTER = "<not supported>,,instructions:u,0,100.00,,\n"
CALLGRIND = "==7== \n==7== Events    : Ir\n==7== Collected : 126649\n==7== \n==7== I   refs:      126,649\n"


def test_counts_are_read():
    assert processes.perf_count(PERF) == 1234567
    assert processes.callgrind_count(CALLGRIND) == 126649


@pytest.mark.parametrize(
    ("read", "text", "reason"),
    [
        (processes.perf_count, NO_COUNTER, "instructions are not supported"),
        (processes.perf_count, "", "no count"),
        (processes.callgrind_count, "valgrind: no such tool", "no count"),
    ],
)
def test_what_is_no_count_is_not_read_as_one(read, text, reason):
    with pytest.raises(processes.FailedError, match=reason):
        read(text)


def done(stdout="", stderr=""):
    return subprocess.CompletedProcess([], 0, stdout, stderr)


def counts(nothing, ours, numpy):
    return {"nothing": nothing, "canaryproof": ours, "numpy": numpy}


def test_perf_counts_what_the_work_adds(monkeypatch):
    found = counts(1000, 1000 + 16 * 200, 1000 + 66 * 200)

    def run(command, _environment):
        return done(stderr=f"{found[command[-3]]},,instructions:u,1,100.00,,\n")

    monkeypatch.setattr(processes.shutil, "which", lambda tool: tool)
    monkeypatch.setattr(processes, "_run", run)
    assert processes.instructions(10, 10) == (
        Instructions("canaryproof", "perf", 16.0),
        Instructions("numpy, PCG64", "perf", 66.0),
    )


def test_callgrind_counts_where_perf_cannot(monkeypatch):
    found = counts(1000, 1000 + 16 * 200, 1000 + 66 * 200)
    prepared = []

    def run(command, environment):
        if command[0] == "perf":
            return done(stderr=NO_COUNTER)
        if command[0] == sys.executable:
            prepared.append(environment["NUMBA_CACHE_DIR"])
            return done()
        assert prepared == [environment["NUMBA_CACHE_DIR"]]
        return done(stderr=f"==7== Collected : {found[command[-3]]}\n")

    monkeypatch.setattr(processes.shutil, "which", lambda tool: tool)
    monkeypatch.setattr(processes, "_run", run)
    ours, numpy = processes.instructions(10, 10)
    assert (ours.instructions, numpy.instructions) == (16.0, 66.0)
    assert ours.tool.startswith("callgrind, ")


def test_without_tools_instructions_are_skipped(monkeypatch):
    assert processes.instructions(10, 0) == (Skipped("instructions", "only at the full size"),)
    monkeypatch.setattr(processes.shutil, "which", lambda _: None)
    assert processes.instructions(10, 10) == (Skipped("instructions", "neither perf nor valgrind is there"),)


def test_a_tool_that_fails_is_named(monkeypatch):
    monkeypatch.setattr(processes.shutil, "which", lambda tool: tool if tool == "perf" else None)
    monkeypatch.setattr(processes, "_run", lambda *_: done(stderr=NO_COUNTER))
    assert processes.instructions(10, 10) == (Skipped("instructions", "perf: instructions are not supported"),)


@pytest.mark.deep
def test_memory_of_two_operations():
    found = processes.memory((("Canaries.sum", 8192, 2), ("no such operation", 8192, 2)), 2)
    if isinstance(found[0], Memory):
        assert (found[0].vectors, found[0].extra < 64e6) == (8 * 8192, True)
        assert found[1] == Skipped("no such operation", "KeyError: 'no such operation'")


def test_memory_is_skipped_where_it_cannot_be_set_back(monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "RESET", tmp_path / "none")
    assert processes.memory((("Canaries.sum", 8192, 2),), 2) == (
        Skipped("Canaries.sum", f"this platform has no {tmp_path / 'none'}"),
    )


# Three processes; that the kernels' bits depend on no number of threads is tested with the kernels.
@pytest.mark.deep
def test_bits_of_fresh_processes_agree():
    for row in processes.bits(5000, 20):
        assert row.runs_agree
        assert row.threads_agree


def test_bits_that_differ_are_seen(monkeypatch):
    answers = iter([{"a": "1", "b": "1"}, {"a": "1", "b": "2"}, {"a": "2", "b": "2"}])
    monkeypatch.setattr(processes, "answer", lambda *_, **__: next(answers))
    assert processes.bits(1, 1) == (Bits("a", True, False), Bits("b", False, True))
