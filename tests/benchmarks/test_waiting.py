import sys

import pytest

from tests.benchmarks import waiting
from tests.benchmarks.timing import Skipped
from tests.benchmarks.waiting import Wait

ROWS = (
    Wait("audit of a release, first in a fresh cache", 6.04, 6.51, 12.2, 20.3, 21.0),
    Wait("audit of a release", 2.51, 2.36, 4.71, 2.74, 2.43),
    Skipped("a step with torch, alone", "No module named 'torch'"),
)


def text(rows):
    rows = [vars(row) for row in rows]
    return waiting.render({"environment": {"processor": "A Processor"}, "turns": 7, "waits": rows})["waiting.md"]


def test_the_first_audit_stands_first_beside_that_of_an_earlier_version():
    page = text(ROWS)
    assert "takes 6.5 s where nothing is compiled yet, and 2.4 s later" in page
    assert "| audit of a release | 2.5 | 2.4 | 4.7 | 2.7 | 2.4 |" in page
    assert "| a step with torch, alone | skipped: No module named 'torch' |" in page


def test_an_earlier_version_has_no_columns_where_none_took_turns():
    page = text([Wait("audit of a release", 2.51, 2.36, 4.71, None, None)])
    assert "| audit of a release | 2.5 | 2.4 | 4.7 |\n" in page
    assert "Audits could not be measured" in page


@pytest.fixture
def _scripts(monkeypatch):
    """Short processes in place of commands, and no load."""
    monkeypatch.setattr(waiting, "_LOAD", 0)

    def works(_):
        for label, code, is_loop in (
            ("works", "sum(range(10**6))", False),
            ("fails", "raise SystemExit('no torch')", False),
            ("loop", "print(0.25, 0.5)", True),
        ):
            yield waiting._Work(label, (sys.executable, "-c", code), is_loop=is_loop)

    monkeypatch.setattr(waiting, "_works", works)


@pytest.mark.usefixtures("_scripts")
def test_processes_take_turns_and_one_that_fails_is_skipped():
    begun = []
    works, fails, loop = waiting.measure(2, None, begun.append).waits
    assert min(works.cpu, works.wall) > 0.0
    assert works.earlier_cpu is None
    assert fails == Skipped("fails", "no torch")
    assert loop == Wait("loop", 0.25, 0.5, 0.5, None, None)
    assert begun == [
        f"turn {turn} of 2, {name}"
        for turn in range(3)
        for name in ("works", "fails", "loop")
        if turn == 0 or name != "fails"
    ]


def test_every_command_is_one_that_this_version_has():
    names = {work.command[1] for work in waiting._works(None) if work.command[1] != "-c"}
    assert names == {"audit", "check-report", "plan", "claims"}
