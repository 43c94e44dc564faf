import dataclasses

import pytest

from canaryproof.verify.check.results import Context, Level, Verdict
from canaryproof.verify.suites import streams
from canaryproof.verify.suites.stream import quality
from tests.faults import FAULTS
from tests.faults.fault import seeded

CONTEXT = Context(Level.QUICK, 3)
(CHECK,) = streams.CHECKS


def test_the_stream_passes(quick_run):
    result = quick_run.results[CHECK.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding
    assert result.evidence["coordinates"] >= 20_000_000
    assert result.evidence["scan"]["largest_error"] <= quality.QUANTILE_ERROR


@pytest.mark.parametrize("name", ["stream.coefficient", "stream.shared"])
def test_faults_are_caught(name):
    with seeded(FAULTS[name]):
        assert CHECK.judge(CONTEXT).verdict is Verdict.REFUTED


def exact_scan(**changes):
    moments = tuple(quality.moment(order) for order in (2, 4, 6, 8))
    return dataclasses.replace(quality.Scan(2**30, 4e-7, 1e-14, moments, True), **changes)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, Verdict.CONFIRMED),
        ({"largest_error": 4.7e-7}, Verdict.REFUTED),
        ({"symmetric": False}, Verdict.REFUTED),
        ({"moments": (1.0 + 1e-6, 3.0, 15.0, 105.0)}, Verdict.REFUTED),
    ],
)
def test_the_full_level_takes_all_words_and_their_moments(monkeypatch, changes, verdict):
    asked = []
    monkeypatch.setattr(quality, "scan", lambda stride: asked.append(stride) or exact_scan(**changes))
    judge = quality.judge
    monkeypatch.setattr(quality, "judge", lambda count, seed: asked.append(count) or judge(1, seed))
    assert CHECK.judge(Context(Level.FULL, 0)).verdict is verdict
    assert asked == [1, 10**9]
