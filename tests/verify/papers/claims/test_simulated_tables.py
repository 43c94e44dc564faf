from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.claims import simulated_tables
from canaryproof.verify.papers.claims.simulated_tables import CELLS, CHECKS

CONTEXT = Context(Effort.QUICK, 20230206)


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


def test_each_reading_lies_in_its_own_enclosure():
    rng = np.random.default_rng(3)
    moments = simulated_tables.Moments(np.append(rng.normal(0.5, 0.5, 5), -0.3), rng.uniform(0.8, 1.3, 6), 1000)
    values = {}
    for name, (estimator, enclose) in simulated_tables.READINGS.items():
        values[name] = estimator(moments, 1e-6)
        found = enclose(moments, 1e-6)
        assert np.all((found.lo <= values[name] * (1 + 1e-9)) & (values[name] <= found.hi * (1 + 1e-9))), name
    both, *ways, pinned = values.values()
    np.testing.assert_array_equal(both, np.maximum(*ways))
    # A deviation of the null, and no mean below it.
    assert pinned[-1] == 0.0
    assert next(iter(values)) == "fitted, both directions"


@pytest.mark.parametrize(
    ("agreeing", "verdict", "begins", "says"),
    [
        (("pinned",), Verdict.QUALIFIED, "only with another estimator: the first", (True, False)),
        ((), Verdict.REFUTED, "the first version's estimator (pinned) gives", (False, False)),
        (("pinned", "fitted, fit against null"), Verdict.CONFIRMED, "the first version's", (True, False)),
        (("fitted, both directions",), Verdict.CONFIRMED, "the first version's", (False, True)),
    ],
)
def test_a_cell_is_judged_by_the_readings_that_agree(monkeypatch, agreeing, verdict, begins, says):
    order = iter(simulated_tables.READINGS)
    monkeypatch.setattr(simulated_tables, "_consistency", lambda *_: LEVEL * (1.0 if next(order) in agreeing else 0.99))
    found = simulated_tables._judge(CELLS[0], CONTEXT)
    assert found.verdict is verdict
    assert found.finding.startswith(begins)
    own, fit = (found.evidence["readings"][name] for name in ("pinned", "fitted, both directions"))
    no = f"does not (p = {0.99 * LEVEL:.0e})"
    sentence = (
        f"the first version's estimator (pinned) gives {own['mean']:.3f} ± {own['deviation']:.3f} and "
        f"{'agrees' if says[0] else no}; Algorithm 1 (fitted) gives {fit['mean']:.3f} ± {fit['deviation']:.3f} and "
        f"{'agrees' if says[1] else no}"
    )
    assert sentence in found.finding
    power = simulated_tables._power(200, own, fit)
    assert found.design.power == found.evidence["power_against"]["fitted, both directions"] == power
    assert found.evidence["power_against"].keys() == simulated_tables.READINGS.keys() - {"pinned"}
