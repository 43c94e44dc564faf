import numpy as np
import pytest

from canaryproof.verify.check.results import Context, Level, Verdict
from canaryproof.verify.suites import canife, canife_trainings
from canaryproof.verify.suites.canife_trainings import Numbers

QUICK = Context(Level.QUICK, 0)


def trained(monkeypatch, cosine=0.01, deviation=1.01):
    rng = np.random.default_rng(0)

    def numbers(runs):
        spread = np.exp(0.01 * rng.standard_normal((2, runs, 4)))
        return Numbers({}, np.ones((runs, 4)), cosine * spread[0], deviation * spread[1])

    monkeypatch.setattr(canife_trainings, "pairs", lambda _, __, runs: (numbers(runs), numbers(runs)))
    monkeypatch.setattr(canife_trainings, "dimension", lambda: 10_000)


@pytest.mark.parametrize(
    ("cosine", "verdict"), [(0.02, Verdict.CONFIRMED), (0.005, Verdict.REFUTED), (0.01, Verdict.INCONCLUSIVE)]
)
def test_orthogonality(monkeypatch, cosine, verdict):
    trained(monkeypatch, cosine=cosine)
    found = canife.orthogonality(QUICK)
    assert found.verdict is verdict
    assert found.evidence["random"] == 0.01


@pytest.mark.parametrize(
    ("deviation", "verdict"), [(1.01, Verdict.CONFIRMED), (1.2, Verdict.REFUTED), (1.05, Verdict.INCONCLUSIVE)]
)
def test_disturbance(monkeypatch, deviation, verdict):
    trained(monkeypatch, deviation=deviation)
    assert canife.disturbance(QUICK).verdict is verdict


def test_the_cap_is_most_of_the_gap(quick_run):
    found = quick_run.results["comparison.cap"]
    rows = found.evidence["rows"]
    assert [row["trials"] for row in rows] == [100, 1000, 10_000]
    assert rows[0]["cap"] < rows[1]["cap"] < rows[2]["cap"] < 0.05 * found.evidence["unlimited"]
    for row in rows:
        low, high = row["limits"]
        assert 0.95 < low <= row["share"] <= high == pytest.approx(1.0)
