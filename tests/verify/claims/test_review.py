from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.claims import review, review_bounds
from canaryproof.verify.claims.final_printed import TABLE_3
from canaryproof.verify.claims.review import CHECKS
from canaryproof.verify.results import Context, Level, Subject, Verdict
from canaryproof.verify.suites.tables import CELLS

CONTEXT = Context(Level.QUICK, 20230206)

# All others are confirmed.
NOT_CONFIRMED = {
    "review.epsilon-lo.cap": Verdict.REFUTED,
    "review.canife.analytical": Verdict.QUALIFIED,
    "review.canife.maximum": Verdict.QUALIFIED,
    "review.canife.lower-bound": Verdict.QUALIFIED,
    "review.canife.bound": Verdict.NEEDS_DATA,
    "review.users.ratio": Verdict.QUALIFIED,
    "review.accuracy.decrease": Verdict.QUALIFIED,
    "review.accuracy.measured": Verdict.NEEDS_DATA,
    "review.epsilon-final.smallest": Verdict.QUALIFIED,
}


def test_ids_are_unique_and_name_the_document():
    ids = [check.id for check in CHECKS]
    assert len(set(ids) | {cell.id for cell in CELLS}) == len(ids) + len(CELLS)
    assert all(check.id.startswith("review.") and check.subject is Subject.DOCUMENT for check in CHECKS)
    assert set(NOT_CONFIRMED) <= set(ids)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_verdict(check):
    outcome = check.judge(CONTEXT)
    assert outcome.verdict is NOT_CONFIRMED.get(check.id, Verdict.CONFIRMED)
    assert outcome.finding


def test_the_cap_by_another_road():
    # Jeffreys' upper limit without a miss among 1,000, by scipy.
    limit = stats.beta.ppf(0.95, 0.5, 1000.5)
    bounds = review_bounds.judge_cap("6.24").evidence["bounds"]
    assert bounds["Jeffreys for FNR, exact FPR"] == pytest.approx(-np.log(limit), abs=1e-8)
    assert review_bounds.judge_cap("6.26").verdict is Verdict.CONFIRMED
    assert review_bounds.judge_cap("5.81").verdict is Verdict.QUALIFIED


def test_an_estimate_below_its_lower_bound_falsifies():
    row = replace(TABLE_3[3], estimate_final="0.3")
    assert review_bounds.judge_not_falsified({"altered": (row,)}).verdict is Verdict.REFUTED


def test_the_smallest_analytical_epsilon():
    assert review_bounds.judge_smallest(1.0, "30", {"StackOverflow": TABLE_3}).verdict is Verdict.CONFIRMED
    assert review_bounds.judge_smallest(0.5, "30", {"StackOverflow": TABLE_3}).verdict is Verdict.REFUTED


def test_altered_numbers_change_the_verdict():
    assert review.judge_share(1000, 3_000_000, "0.33").verdict is Verdict.REFUTED
    assert review.judge_times(341_000, 3_500_000, 10).verdict is Verdict.CONFIRMED
    assert review.judge_times(341_000, 1_000_000, 10).verdict is Verdict.REFUTED
    assert review.judge_decrease("0.5", review.ACCURACIES).verdict is Verdict.CONFIRMED
    assert review.judge_decrease("0.01", review.ACCURACIES).verdict is Verdict.REFUTED
    assert review.judge_sizes(10**6, {"small": 10**5}).verdict is Verdict.REFUTED


def test_a_biased_or_rising_sweep_is_refuted():
    cells = [cell for cell in CELLS if cell.id.startswith("review.sweep.")]
    assert review.judge_sweep(cells).verdict is Verdict.CONFIRMED
    assert review.judge_sweep([replace(cells[0], mean=1.98), *cells[1:]]).verdict is Verdict.REFUTED
    assert review.judge_sweep([replace(cells[0], deviation=0.041), *cells[1:]]).verdict is Verdict.REFUTED


def test_an_estimate_within_canifes_reach_leaves_its_maximum_open():
    assert review_bounds.judge_ceiling(469, 128 / 60_000, 3.0).verdict is Verdict.INCONCLUSIVE
