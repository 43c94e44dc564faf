import pytest
import sympy

from canaryproof.proofs_check import release_moments
from canaryproof.verify.check.results import Context, Level, Verdict
from canaryproof.verify.suites import theorems

CONTEXT = Context(Level.QUICK, 11)
SAMPLES = {}


def drawn(name, setting, runs, key, *, draw=theorems._sample):
    """Draw once what all faults in the moments are held against."""
    if (name, setting, runs) not in SAMPLES:
        SAMPLES[name, setting, runs] = draw(name, setting, runs, key)
    return SAMPLES[name, setting, runs]


@pytest.mark.parametrize("check", theorems.CHECKS, ids=lambda check: check.id)
def test_simulations_have_the_exact_moments(check, quick_run):
    assert quick_run.results[check.id].verdict is Verdict.CONFIRMED


@pytest.mark.parametrize("name", "ABTW")
@pytest.mark.parametrize("order", [1, 2])
def test_a_moment_off_by_a_sixth_is_found(monkeypatch, name, order):
    # In 20,000 runs a variance is known to √((κ − 1)/20,000) of itself, 1/100 for a normal kurtosis κ = 3 and 1/60 for
    # κ = 6: a sixth is 10 standard errors or more, where about 6 are allowed. A mean is known better still.
    for which, orders in theorems._ORDERS_WITNESSES.items():
        for power in orders:
            # It is remembered, and one that follows from a wrong one must not be.
            release_moments.central_moment(which, power)
    road = "raw_moment" if order == 1 else "central_moment"
    right = getattr(release_moments, road)

    def wrong(which, power):
        exact = right(which, power)
        return exact * sympy.Rational(7, 6) if (which, power) == (name, order) else exact

    monkeypatch.setattr(release_moments, road, wrong)
    monkeypatch.setattr(theorems, "_sample", drawn)
    assert theorems.CHECKS[1].judge(CONTEXT).verdict is Verdict.REFUTED


def test_the_printed_variances_are_excluded(quick_run):
    evidence = quick_run.results[theorems.CHECKS[0].id].evidence
    printed = [row["p_value_of_printed"] for row in evidence["rows"] if "p_value_of_printed" in row]
    assert len(printed) == 4
    assert max(printed) < evidence["level"]
