from collections import Counter

import pytest
import sympy

from canaryproof.proofs_check import release_moments, theorem_3_3
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.suites import theorems

CONTEXT = Context(Effort.QUICK, 0)


def test_ids_are_unique():
    names = Counter(check.id for check in theorems.CHECKS)
    assert [name for name, times in names.items() if times > 1] == []


def test_every_displayed_line_has_a_check_and_a_missing_one_is_found(monkeypatch):
    assert theorems.missing_rows() == []
    monkeypatch.setitem(theorem_3_3.DISPLAYS, "mean of ‖ρ‖²/d", 5)
    assert theorems.missing_rows() == ["canaryproof.proofs_check.theorem_3_3: mean of ‖ρ‖²/d, row 5"]
    assert theorems._displayed(CONTEXT).verdict is Verdict.REFUTED


# Rows of the displays of the final version's Appendix A and Section 3.2, counted by hand.
@pytest.mark.parametrize(
    ("modules", "rows"),
    [
        (("theorem_3_1",), 8),
        (("lemma_a_1",), 0),
        (("theorem_3_2",), 4),
        (("theorem_3_3",), 13 + 22),
        (("section_3_2",), 12),
    ],
)
def test_counts_of_displayed_lines(modules, rows):
    chosen = [module for module in theorems.MODULES if module.__name__.rpartition(".")[2] in modules]
    assert len(chosen) == len(modules)
    assert sum(sum(module.DISPLAYS.values()) for module in chosen) == rows


@pytest.mark.parametrize("check", theorems._EXACT, ids=lambda check: check.id)
def test_exact_results_are_found_plainly(check, quick_run):
    result = quick_run.results[check.id]
    assert result.verdict is Verdict.CONFIRMED, result.finding


SAMPLES = {}


def drawn(name, setting, runs, key, *, draw=theorems._sample):
    """Draw once what all faults in the moments are held against."""
    if (name, setting, runs) not in SAMPLES:
        SAMPLES[name, setting, runs] = draw(name, setting, runs, key)
    return SAMPLES[name, setting, runs]


@pytest.mark.parametrize("check", theorems._SIMULATED, ids=lambda check: check.id)
def test_simulations_have_the_exact_moments(check, quick_run):
    assert quick_run.results[check.id].verdict is Verdict.CONFIRMED


@pytest.mark.deep
@pytest.mark.parametrize("name", "ABTW")
@pytest.mark.parametrize("order", [1, 2])
def test_a_moment_off_by_a_sixth_is_found(monkeypatch, name, order):
    # In 20,000 runs a variance is known to √((κ − 1)/20,000) of itself, 1/100 for a normal kurtosis κ = 3 and 1/60 for
    # κ = 6: a sixth is 10 standard errors or more, where about 6 are allowed. A mean is known better still.
    for which, orders in theorems._CENTRAL_ORDERS.items():
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
    assert theorems._SIMULATED[1].judge(Context(Effort.QUICK, 11)).verdict is Verdict.REFUTED


def test_the_printed_variances_are_excluded(quick_run):
    evidence = quick_run.results[theorems._SIMULATED[0].id].evidence
    printed = [row["p_value_of_printed"] for row in evidence["rows"] if "p_value_of_printed" in row]
    assert len(printed) == 4
    assert max(printed) < evidence["level"]
