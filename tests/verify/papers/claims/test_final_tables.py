"""Faults in the final version's tables that must change the verdicts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims import final_tables
from canaryproof.verify.papers.claims.simulated_tables import CELLS
from canaryproof.verify.papers.claims.transcripts import QUANTILES, Final, read_quantiles, read_rows

TABLE_2 = [cell for cell in CELLS if cell.id.startswith("final.table2.")]


def test_tables_are_read_row_by_row():
    (row,) = read_rows("\n 0.1 30 1.0 2.0 0.5 0.6 \n")
    assert (row.noise, row.analytical, row.lower_all, row.estimate_all) == ("0.1", "30", "1.0", "2.0")
    assert (row.lower_final, row.estimate_final) == ("0.5", "0.6")
    assert read_quantiles("0.1 10 100 1.0 2.0") == (("0.1", 10, 100, ("1.0", "2.0")),)


def test_estimates_of_table_2_that_are_not_close_are_refuted():
    assert final_tables.judge_very_close([*TABLE_2[:2], replace(TABLE_2[2], mean=9.4)]).verdict is Verdict.REFUTED
    # Close, but 7 standard errors off.
    assert final_tables.judge_very_close([*TABLE_2[:2], replace(TABLE_2[2], mean=9.81)]).verdict is Verdict.REFUTED
    assert final_tables.judge_very_close([replace(TABLE_2[0], deviation=0.25)]).verdict is Verdict.REFUTED


def test_bias_by_another_road():
    _, p_value, _ = final_tables.unbiased(TABLE_2[1:2])
    error = 0.137 / math.sqrt(50)
    assert p_value == pytest.approx(2.0 * stats.t.cdf(-0.04 / error, 49), rel=1e-9)


def test_orders_find_faults():
    assert final_tables.judge_order((Final.TABLE_3[1], Final.TABLE_3[0])).verdict is Verdict.REFUTED
    assert final_tables.judge_order((replace(Final.TABLE_3[1], lower_final="1.98"),)).verdict is Verdict.REFUTED


def test_an_estimate_far_off_is_not_close():
    assert final_tables.judge_close(Final.TABLE_3[3:]).verdict is Verdict.REFUTED


def test_the_ballpark_holds_for_the_rows_where_it_does():
    assert final_tables.judge_ballpark(Final.TABLE_3[1:3]).verdict is Verdict.CONFIRMED
    assert final_tables.judge_ballpark(Final.TABLE_3[1:]).verdict is Verdict.QUALIFIED
    assert final_tables.judge_ballpark(Final.TABLE_3[3:]).verdict is Verdict.REFUTED
    # Where the text says which noise is low or medium, that alone counts.
    assert final_tables.judge_ballpark(Final.TABLE_3[1:], moderate=("0.0496",)).verdict is Verdict.CONFIRMED
    assert final_tables.judge_ballpark(Final.TABLE_3[1:], moderate=("0.2317",)).verdict is Verdict.REFUTED


def test_gaussianity():
    assert final_tables.judge_gaussianity((("0", (0.3, 0.4)),)).verdict is Verdict.CONFIRMED
    assert (
        final_tables.judge_gaussianity((*Final.TABLE_6[:3], ("0.2317", (3.0, 0.6, 0.5, 0.3)))).verdict
        is Verdict.REFUTED
    )


def test_the_other_estimate_is_not_closer():
    assert final_tables.judge_much_closer("0.879", "6.76").verdict is Verdict.REFUTED
    assert final_tables.judge_much_closer("1.20", "0.879").verdict is Verdict.REFUTED
    assert final_tables.judge_much_closer("20.0", "0.879").verdict is Verdict.CONFIRMED


def test_tables_of_another_order_are_not_similar():
    assert final_tables.judge_similar(Final.TABLE_3, Final.TABLE_4[::-1]).verdict is Verdict.REFUTED


# Figures.


def test_separation():
    far, near = (replace(Final.TABLE_3[0], estimate_final=value) for value in ("60", "0.01"))
    with pytest.raises(ValueError, match="must be of a mean below"):
        final_tables.judge_separable(far, Final.STACKOVERFLOW_DELTA)
    assert final_tables.judge_separable(near, Final.STACKOVERFLOW_DELTA).verdict is Verdict.REFUTED
    assert final_tables.accuracy(2.0) == pytest.approx(stats.norm.cdf(1.0))


def test_the_distance_of_a_deviation_that_is_not_fitted_has_the_estimate_as_its_epsilon():
    # δ(ε) of two unit Gaussians at the distance found.
    shift = final_tables.pinned_distance(Final.TABLE_4[0].estimate_final, Final.EMNIST_DELTA)
    a, b = stats.norm.cdf(shift / 2 - 8.87 / shift), stats.norm.cdf(-shift / 2 - 8.87 / shift)
    assert a - math.exp(8.87) * b == pytest.approx(Final.EMNIST_DELTA, rel=1e-6)


def test_membership_inference_is_easy_where_a_suspicion_may_become_near_certainty():
    judged = final_tables.judge_high(Final.TABLE_4, Final.EMNIST_DELTA)
    assert (judged.verdict, judged.evidence["low"]) == (Verdict.CONFIRMED, [])
    # From one in ten, e^5.97-fold odds.
    odds = math.exp(5.97) / 9.0
    assert judged.evidence["certain"][3] == pytest.approx(odds / (1.0 + odds))
    # δ(5.97) of two unit Gaussians, at the distance of that share of right guesses.
    shift = 2.0 * stats.norm.ppf(judged.evidence["accuracies"][3])
    a, b = stats.norm.cdf(shift / 2 - 5.97 / shift), stats.norm.cdf(-shift / 2 - 5.97 / shift)
    assert a - math.exp(5.97) * b == pytest.approx(Final.EMNIST_DELTA, rel=1e-6)
    weaker = replace(Final.TABLE_4[3], estimate_all="4.39")
    assert final_tables.judge_high((*Final.TABLE_4, weaker), Final.EMNIST_DELTA).verdict is Verdict.QUALIFIED
    assert final_tables.judge_high((weaker,), Final.EMNIST_DELTA).verdict is Verdict.REFUTED


def test_figures_in_another_order_are_refuted():
    assert final_tables.judge_less_separable(Final.TABLE_3[::-1], Final.STACKOVERFLOW_DELTA).verdict is Verdict.REFUTED


# Quantiles.


def test_a_pinned_variance_would_not_spread_so():
    # The quantiles of the pinned estimate with this median.
    pinned = final_tables.judge_spread(Final.TABLE_5[0]).evidence["estimators"]["pinned"]["quantiles"]
    assert (pinned[4] - pinned[0]) / (2.46 - 1.59) == pytest.approx(0.456, abs=0.04)
    narrow = final_tables.judge_spread((*Final.TABLE_5[0][:3], ("1.92", "1.95", "1.97", "1.99", "2.02")))
    assert narrow.verdict is Verdict.REFUTED


def test_rows_far_apart_are_not_close():
    noise, runs, canaries, _ = Final.TABLE_5[1]
    moved = (Final.TABLE_5[0], (noise, runs, canaries, ("2.65", "2.80", "2.92", "3.16", "3.32")))
    assert final_tables.judge_one_run_and_ten(moved).verdict is Verdict.REFUTED


def test_p_values_of_quantiles_by_simulation():
    # Of fifty uniform draws, for which any law can be exchanged: no p-value is too small, and none much too large.
    draws = np.random.default_rng(4).random((40_000, 50))
    quantiles = np.quantile(draws, QUANTILES, axis=1).T
    shares = (final_tables.quantile_p_values(quantiles) < 0.01).mean(axis=0)
    assert np.all(shares < 0.01 + 5.0 * math.sqrt(0.01 / 40_000))
    assert np.all(shares > 0.002)


def test_other_medians_are_refuted():
    rows = (*Final.TABLE_3[:1], replace(Final.TABLE_3[1], estimate_final="1.98"), *Final.TABLE_3[2:])
    assert final_tables.judge_medians(rows).verdict is Verdict.REFUTED


@pytest.mark.parametrize("times", [1, 4, 40])
def test_a_bias_that_is_noticed_is_by_the_level_of_one_mean(times):
    cells = TABLE_2 * times
    *_, design = final_tables.unbiased(cells)
    # Student's test of 50 runs, two-sided, at the level that a mean has among all.
    critical = stats.t.isf(0.5e-6 / len(cells), 49)
    visible = optimize.brentq(lambda bias: stats.nct.sf(critical, 49, bias * math.sqrt(50)) - 0.9, 0.1, 3.0)
    assert design.alternative == f"one has a bias of {visible:.2g} standard deviations"


def test_quantiles_of_a_pair_rise_and_are_close_or_within_error():
    noise, *_, quantiles = Final.TABLE_5[0]
    first, second, *rest = quantiles

    def judged(*others):
        return final_tables.judge_one_run_and_ten((Final.TABLE_5[0], (noise, 10, 100, others)))

    same = judged(*quantiles)
    assert same.verdict is Verdict.CONFIRMED
    assert same.evidence["differences"] == [0.0] * 5
    assert same.finding.startswith(
        "quantiles differ by +0% to +0%; that both are of fifty estimates with one law has p"
    )
    # A tenth and a bit off, in one quantile alone.
    off = judged(f"{1.11 * float(first):.3f}", f"{1.05 * float(second):.3f}", *rest)
    assert off.verdict is Verdict.QUALIFIED
    assert off.finding.startswith("only within the error of 50 experiments, where close is within 10%")
    swapped = judged(second, first, *rest)
    assert swapped.evidence["p_value"] >= 1e-6
    assert swapped.verdict is Verdict.REFUTED
