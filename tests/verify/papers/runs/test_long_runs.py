"""Memory of a process that judges run after run, as a worker of a cluster may for weeks."""

import sys
from functools import partial
from pathlib import Path

import pytest

from canaryproof.verify.audit.engine.executors import processes_of_a_run, settings_for_children
from canaryproof.verify.papers.check.results import Context, Effort
from canaryproof.verify.papers.runs.plan import Plan, judge

# The cheapest suites of hundreds of checks and of many bounds, for some fifteen minutes.
SUITES, RUNS = ("bounds", "claims"), 30


@pytest.mark.deep
@pytest.mark.timeout(5400)
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_process_that_judges_run_after_run_does_not_grow():
    held = []
    with processes_of_a_run(1) as pool:
        for seed in range(RUNS):
            plan = Plan("canaryproof.verify.papers.suites.catalogue:SUITES", SUITES, Context(Effort.QUICK, seed))
            with settings_for_children():
                answers = pool.map(partial(judge, plan, limit=None), *zip(*plan.checks, strict=True))
            assert all(judged for _, judged in answers)
            # Pages of the other process, not of this one.
            held.append(int(pool.submit(Path("/proc/self/statm").read_text).result().split()[1]))
    # Caches fill in the first third. Without a leak the last third's least is below the second's most.
    third = RUNS // 3
    assert min(held[-third:]) <= 1.01 * max(held[third:-third])
