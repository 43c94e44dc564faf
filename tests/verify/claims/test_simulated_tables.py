from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.check.levels import LEVEL
from canaryproof.verify.check.results import Context, Level, Verdict
from canaryproof.verify.claims import simulated_tables
from canaryproof.verify.claims.simulated_tables import CELLS, CHECKS

CONTEXT = Context(Level.QUICK, 20230206)


def verdict(cell):
    return simulated_tables._judge(cell, CONTEXT).verdict


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.id)
def test_printed_cells_agree_with_the_first_versions_estimator_only(cell, quick_run):
    # Level 1e-6 a cell for the agreement.
    result = quick_run.results[cell.id]
    assert result.verdict is Verdict.QUALIFIED
    assert result.evidence["readings"]["pinned"]["p_value"] >= LEVEL


def test_a_cell_with_another_mean_is_refuted():
    # 0.972 misprinted as 0.772: eight standard errors of the printed mean below any reading.
    assert verdict(replace(CELLS[0], mean=0.772)) is Verdict.REFUTED


def test_a_cell_with_another_deviation_is_refuted():
    assert verdict(replace(CELLS[0], deviation=0.0148)) is Verdict.REFUTED


def test_a_cell_that_the_final_algorithm_gives_is_confirmed():
    # What the final version's last line gives at this size, from an independent script.
    assert verdict(replace(CELLS[0], mean=1.377, deviation=0.328)) is Verdict.CONFIRMED


def test_equal_seeds_give_equal_evidence():
    assert simulated_tables._judge(CELLS[3], CONTEXT) == simulated_tables._judge(CELLS[3], CONTEXT)


def test_means_from_one_sample_are_consistent_with_another():
    rng = np.random.default_rng(1)
    cell = replace(CELLS[0], mean=0.0, deviation=1.0)
    assert simulated_tables._consistency(cell, rng.normal(0.0, 1.0, 1000)) > 1e-3
    assert simulated_tables._consistency(cell, rng.normal(2.0, 1.0, 1000)) < 1e-9
    assert simulated_tables._consistency(cell, rng.normal(0.0, 3.0, 1000)) < 1e-9


def test_printed_noise_multipliers_are_confirmed_and_a_misprint_is_not():
    sigma_checks = [check for check in CHECKS if check.id.endswith(".sigma")]
    assert [check.judge(CONTEXT).verdict for check in sigma_checks] == [Verdict.CONFIRMED] * 3
    assert simulated_tables._judge_noise(1.0, "4.23").verdict is Verdict.REFUTED


def test_ids_are_unique():
    assert len({check.id for check in CHECKS}) == len(CHECKS)


def fifty(mean, deviation):
    """Fifty numbers with exactly this mean and deviation."""
    values = stats.norm.ppf((np.arange(50) + 0.5) / 50)
    return mean + deviation * values / values.std(ddof=1)


def joint(mean, deviation):
    """p-value of fifty numbers' mean and deviation being of N(0, 1), for which two tests pay."""
    numbers = fifty(mean, deviation)
    spread = stats.chi2.cdf(np.sum((numbers - numbers.mean()) ** 2), 49)
    return min(1.0, 2.0 * min(stats.ttest_1samp(numbers, 0.0).pvalue, 2.0 * min(spread, 1.0 - spread)))


@pytest.mark.parametrize(
    ("mean", "deviation"), [(0.3, 1.0), (-0.5, 0.9), (0.0, 0.8), (0.05, 1.3), (0.1, 0.7), (0.0, 1.0)]
)
def test_both_tests_of_a_printed_cell_share_its_level(mean, deviation):
    # Of so many numbers the sample's own errors are nothing beside those of fifty.
    sample = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    cell = replace(CELLS[0], mean=mean, deviation=deviation)
    assert simulated_tables._consistency(cell, sample) == pytest.approx(joint(mean, deviation), rel=0.01)


@pytest.mark.parametrize(("mean", "deviation"), [(1.0, 1.0), (0.0, 2.2), (0.0, 0.45)])
def test_a_reading_is_excluded_as_often_as_said(mean, deviation):
    runs, rng = 200, np.random.default_rng(12)
    of_other = {"mean": mean, "deviation": deviation}
    stated = simulated_tables._power(runs, {"mean": 0.0, "deviation": 1.0}, of_other)
    printed = rng.standard_normal((200, 50))
    cells = [replace(CELLS[0], mean=row.mean(), deviation=row.std(ddof=1)) for row in printed]
    samples = mean + deviation * rng.standard_normal((200, runs))
    seen = sum(simulated_tables._consistency(cell, sample) < LEVEL for cell, sample in zip(cells, samples, strict=True))
    assert 0.05 < stated < 0.999
    # What either test notices the other one hardly adds to.
    assert stats.binomtest(seen, 200, stated).pvalue > 1e-6
