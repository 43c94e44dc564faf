"""A report of 10⁴ claims; run with ``pytest tests/benchmarks --benchmark-enable`` it says how long that takes."""

import subprocess
import sys

import pytest

from canaryproof.reports.formats import report
from canaryproof.verify.papers.check.results import Design, Effort, Result, Run, Subject, Verdict
from canaryproof.verify.papers.records.report_input import Material
from tests.memory import RESET, peak

COUNT = 10_000


def material(count):
    def result(i):
        ours = i % 4 == 0
        return Result(
            f"{'ours' if ours else ('final', 'v1', 'canife')[i % 3]}.section{i % 50}.{i}",
            "claims",
            Subject.IMPLEMENTATION if ours else Subject.DOCUMENT,
            f"Andrew et al., Section {i % 50}",
            f"the estimate at d = {i} is {i / 7:.3f} by `pinned`",
            Verdict.CONFIRMED if ours else list(Verdict)[i % 5],
            f"found {i / 7:.4f}, within the printed precision",
            {"rows": [{"x": 1.5 * j, "in": [1.0, 1.0000001]} for j in range(10)], "level": 1e-6},
            Design("none", 1e-9, "one", 0.9, 100) if i % 9 == 0 else None,
        )

    return Material(Run("0", Effort.QUICK, 0, tuple(map(result, range(count)))))


def test_report(benchmark):
    count = COUNT if benchmark.enabled else COUNT // 5
    files = benchmark.pedantic(report, (material(count),), rounds=1).files
    assert files["report.html"].count(b"<li data-suite") == count
    # Evidence has no room with so many, so that the page does not grow with it.
    assert len(files["report.html"]) < 1000 * count


@pytest.mark.deep
@pytest.mark.skipif(not RESET.exists(), reason="the system does not say how much memory a process had")
def test_memory_of_a_report():
    # In a process of its own, as others have needed memory in this one.
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.test_report"], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 500e6


if __name__ == "__main__":
    report(material(COUNT))
    sys.stdout.write(str(peak()))
