from dataclasses import replace

import numpy as np
import pytest

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
