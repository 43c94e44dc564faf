from collections import Counter
from math import comb
from types import SimpleNamespace

import pytest

from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import instruments


@pytest.mark.parametrize(("small", "verdict"), [(5, Verdict.CONFIRMED), (20, Verdict.REFUTED)])
def test_as_many_small_p_values_or_more_are_as_rare_as_the_binomial_law_says(monkeypatch, small, verdict):
    asked = Counter()

    def by_round(*_):
        asked["runs"] += 1
        p_values = {"one": 0.05 if asked["runs"] <= small else 0.051, "other": None}
        tests = [SimpleNamespace(name=name, p_value=p_value, has_failed=False) for name, p_value in p_values.items()]
        return [None, [SimpleNamespace(tests=lambda: tests)]]

    monkeypatch.setattr(instruments, "_by_round", by_round)
    monkeypatch.setattr(instruments, "replayed", lambda *_: False)
    monkeypatch.setattr(instruments, "round_of_failure", lambda *_: None)
    outcome = instruments._level(Context(Effort.QUICK, 0))
    p_value = sum(comb(40, n) * 0.05**n * 0.95 ** (40 - n) for n in range(small, 41))
    assert outcome.finding == (
        f"smallest of 2 p-values {p_value:.2g} (one; 40 runs); 0 tests, 0 of 1 replay and 0 of 1 watches refute an "
        "honest training"
    )
    assert outcome.verdict is verdict
    assert outcome.evidence == {"runs": 40, "refuted": 0, "small": {"one": small, "other": 0}}


def test_a_watch_that_stops_an_honest_training_is_refuted(monkeypatch):
    test = SimpleNamespace(name="one", p_value=1.0, has_failed=False)
    monkeypatch.setattr(instruments, "_by_round", lambda *_: [[SimpleNamespace(tests=lambda: [test])]])
    monkeypatch.setattr(instruments, "replayed", lambda *_: False)
    for stopped, verdict in ((None, Verdict.CONFIRMED), (4, Verdict.REFUTED)):
        monkeypatch.setattr(instruments, "round_of_failure", lambda *_, stopped=stopped: stopped)
        assert instruments._level(Context(Effort.QUICK, 0)).verdict is verdict


def test_the_quick_run_sees_every_fault(quick_run):
    for name in ("level", "power"):
        result = quick_run.results[f"blindspots.instruments.{name}"]
        assert result.verdict is Verdict.CONFIRMED, result.finding
    faults = quick_run.results["blindspots.instruments.power"].evidence["faults"]
    assert all(bool(fault["sees"]) != bool(fault["reason"]) for fault in faults.values())


def test_a_fault_that_no_instrument_sees_is_told(monkeypatch):
    monkeypatch.setattr(instruments, "FAULTS", {"less-noise": instruments.SimulatedTraining("residual", 1)})
    outcome = instruments._power(Context(Effort.QUICK, 0))
    assert outcome.verdict is Verdict.REFUTED


def test_an_audit_sees_missing_noise_and_no_fault_of_the_clipping():
    """Evidence is a p-value of level 1e-6; at half of the noise 100 canaries pass it by far after 16 rounds."""
    for name, seen in (("noise-per-microbatch", True), ("clip-after-average", False), ("fixed-size", False)):
        p_values = instruments.audited(instruments.FAULTS[name], 100, (1, 16), 3)
        assert (p_values[16] <= LEVEL) == seen, name
        assert p_values[16] <= p_values[1] <= 1.0
