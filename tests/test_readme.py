"""Numbers in the README are typed; these must be those of the code and of the published run."""

import json
from collections import Counter
from pathlib import Path

from canaryproof.verify.check.results import Run, Verdict
from tests.faults import FAULTS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RUN = Run.from_json(json.loads((ROOT / "reports/published/results.json").read_text(encoding="utf-8")))


def test_faults_are_counted():
    assert f"seeds {len(FAULTS)} faults" in README
    assert f"notices {len(FAULTS)} seeded faults" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_own_checks_and_false_alarms_are_those_of_the_published_run():
    own = sum(result.subject == "implementation" for result in RUN.results)
    assert f"{own - len(RUN.failures)} of {own} own checks hold" in README
    assert f"run add up to {RUN.false_alarm_probability:.1g}," in README


def test_verdicts_are_counted_as_in_the_published_run():
    counts = Counter(result.verdict for result in RUN.results if result.subject == "document")
    assert ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict) in README
