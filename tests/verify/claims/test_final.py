"""The claims of the final version: their verdicts, faults that must change them, numbers by another road."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from canaryproof.kernels import two_gaussians
from canaryproof.verify.claims import (
    final,
    final_bounds,
    final_noise,
    final_quantiles,
    final_setup,
    final_tables,
    final_text,
)
from canaryproof.verify.claims.final_printed import (
    EMNIST_DELTA,
    STACKOVERFLOW_DELTA,
    TABLE_3,
    TABLE_4,
    TABLE_5,
    TABLE_6,
    half_unit,
    rounds_to,
)
from canaryproof.verify.results import Context, Level, Subject, Verdict

CONTEXT = Context(Level.QUICK, 0)
QUALIFIED = {
    "final.abstract.retrainings",
    "final.section6.sha3",
    "final.section5.1.epoch",
    "final.section5.2.1.parameters",
    "final.section5.2.1.rounds",
    "final.table3.row2.noise",
    "final.table3.row3.noise",
    "final.table3.row4.noise",
    "final.section5.1.footnote5",
    "final.table4.row2.noise",
    "final.table4.row3.noise",
    "final.table4.row4.noise",
    "final.table4.delta",
    "final.section5.4.analytical",
    "final.table3.row1.cap",
    "final.table3.row2.cap",
    "final.table4.row1.cap",
    "final.table4.row2.cap",
    "final.section5.1.confidence",
    "final.appendixB.gaussian",
}
REFUTED = {"final.section5.2.1.size", "final.section5.tight"}
NEEDS_DATA = {
    *(f"final.table{table}.row{row}.measured" for table in (3, 4, 5, 6) for row in (1, 2, 3, 4)),
    *(f"final.figure{figure}.measured" for figure in (1, 2, 3, 4)),
    "final.section5.1.accuracy",
    "final.section5.4.canife",
    "final.section5.4.ours",
    "final.section5.4.cost",
}
NOISY_ROWS = (*TABLE_3[1:], *TABLE_4[1:])


def test_ids_are_unique_and_a_document_speaks():
    ids = [check.id for check in final.CHECKS]
    assert len(set(ids)) == len(ids)
    assert set(ids) >= QUALIFIED | REFUTED | NEEDS_DATA
    assert all(check.id.startswith("final.") and check.subject is Subject.DOCUMENT for check in final.CHECKS)


@pytest.mark.parametrize("check", final.CHECKS, ids=lambda check: check.id)
def test_verdict(check):
    if check.id in QUALIFIED:
        expected = Verdict.QUALIFIED
    elif check.id in REFUTED:
        expected = Verdict.REFUTED
    else:
        expected = Verdict.NEEDS_DATA if check.id in NEEDS_DATA else Verdict.CONFIRMED
    outcome = check.judge(CONTEXT)
    assert outcome.verdict is expected, outcome.finding


# What is printed.


def test_printed_precision():
    assert half_unit("0.0496") == Fraction(1, 20000)
    assert half_unit("300") == Fraction(1, 2)
    assert rounds_to("6.24", 6.2351, 6.2449)
    assert not rounds_to("6.24", 6.2351, 6.2451)


# Text.


def test_largest_bound_is_the_closed_form():
    limit = 1.0 - 0.05 ** (1.0 / 500.0)
    low, high = final_text.largest_bound(1000)
    assert low <= math.log((1.0 - limit) / limit) <= high or low == pytest.approx(math.log((1.0 - limit) / limit))


def test_another_posterior_is_refuted():
    assert final_text.judge_posterior(printed="0.95").verdict is Verdict.REFUTED
    assert final_text.judge_posterior(epsilon=4).verdict is Verdict.REFUTED


# Sizes.


def test_epoch():
    assert final_setup.judge_epoch(342).verdict is Verdict.CONFIRMED
    assert final_setup.judge_epoch(340).verdict is Verdict.REFUTED
    assert final_setup.judge_epoch().evidence["places"] == 342_016


def test_rounds_of_emnist():
    assert final_setup.judge_emnist_rounds(510).verdict is Verdict.CONFIRMED
    assert final_setup.judge_emnist_rounds(520).verdict is Verdict.REFUTED


def test_size_of_emnist():
    assert final_setup.judge_emnist_size(3400, 749).verdict is Verdict.CONFIRMED
    assert final_setup.judge_emnist_size(3383, 383).verdict is Verdict.CONFIRMED


def test_parameters_are_those_of_reddi_et_al():
    assert final_setup.lstm_parameters(10_004) == 4_050_748
    assert final_setup.cnn_parameters(10) == 1_199_882
    assert final_setup.judge_parameters("4.2", {"": 4_050_748}, True).verdict is Verdict.REFUTED


def test_another_number_of_trainings_is_refuted():
    assert final_setup.judge_trainings(repetitions=40).verdict is Verdict.REFUTED


# Noise.


@pytest.mark.parametrize("row", NOISY_ROWS, ids=lambda row: row.noise)
def test_calibration_by_another_road(row):
    """The σ that solves εσ² − zσ − 1/2 = 0 prints like the row's."""
    delta = STACKOVERFLOW_DELTA if row in TABLE_3 else EMNIST_DELTA
    epsilon, z = float(row.analytical), float(-special.ndtri(delta))
    sigma = (z + math.sqrt(z * z + 2.0 * epsilon)) / (2.0 * epsilon)
    assert f"{sigma:.4f}" == row.noise


def test_proven_calibration_rejects_a_neighbour():
    row = TABLE_3[3]
    assert final_noise.calibrated_by_tail(row, 341_000)
    assert not final_noise.calibrated_by_tail(replace(row, noise="0.2318"), 341_000)
    assert not final_noise.calibrated_by_tail(row, 3383)


@pytest.mark.parametrize(("noise", "verdict"), [("0.2278", Verdict.CONFIRMED), ("0.2", Verdict.REFUTED)])
def test_another_noise_has_another_verdict(noise, verdict):
    # 0.2278 is the exact calibration; 0.2000 is none.
    row = replace(TABLE_3[3], noise="0.2000" if noise == "0.2" else noise)
    assert final_noise.judge_noise(row, {"clients": 341_000}, 2048, 167 / 341_000, 1).verdict is verdict


def test_delta_of_emnist():
    fitting = final_noise.judge_emnist_size().evidence["fitting"]
    assert fitting[0] <= 3383 * 15 <= fitting[1]
    assert not fitting[0] <= 101 * 500 <= fitting[1]
    exchanged = (replace(TABLE_4[1], noise="0.0473"), *TABLE_4[2:])
    assert final_noise.judge_emnist_size(exchanged).verdict is Verdict.REFUTED


def test_another_analytical_epsilon_is_refuted():
    assert final_noise.judge_canife_epsilon("30.0").verdict is Verdict.REFUTED


# Bounds.


def test_largest_bounds_are_quantiles_of_beta_distributions():
    bounds = final_bounds.largest_bounds(1000)
    jeffreys = stats.beta.ppf(0.95, 0.5, 1000.5)
    assert bounds["Jeffreys for FNR, exact FPR"] == pytest.approx(-math.log(jeffreys), rel=1e-9)
    assert bounds["Jeffreys for FNR and FPR"] == pytest.approx(math.log((1.0 - jeffreys) / jeffreys), rel=1e-9)
    exact = 1.0 - 0.05**0.001
    assert bounds["Clopper–Pearson for FNR, exact FPR"] == pytest.approx(-math.log(exact), rel=1e-12)


@pytest.mark.parametrize(("printed", "verdict"), [("6.26", Verdict.CONFIRMED), ("6.27", Verdict.REFUTED)])
def test_another_cap_has_another_verdict(printed, verdict):
    assert final_bounds.judge_cap(replace(TABLE_4[0], lower_all=printed)).verdict is verdict


def test_lower_bounds_by_a_loop_over_thresholds():
    sample = np.random.default_rng(0).standard_normal(1000) + 1.0
    best = -math.inf
    for threshold in sample:
        misses = int(np.sum(sample < threshold))
        miss = stats.beta.ppf(0.95, misses + 0.5, 1000 - misses + 0.5)
        alarm = stats.norm.sf(threshold)
        if 1.0 - 1e-6 - miss > 0.0:
            best = max(best, math.log((1.0 - 1e-6 - miss) / alarm), math.log((1.0 - 1e-6 - alarm) / miss))
    assert final_bounds.lower_bounds(sample[np.newaxis], 1e-6)[0] == pytest.approx(best, rel=1e-8)


def test_bounds_that_do_not_fit_are_refuted():
    rows = (replace(TABLE_3[0], lower_final="0.50"), *TABLE_3[1:])
    fault = final_bounds.judge_fit(CONTEXT, rows, STACKOVERFLOW_DELTA, "fault")
    assert fault.verdict is Verdict.REFUTED


# Tables.


def test_orders_find_faults():
    assert final_tables.judge_order((TABLE_3[1], TABLE_3[0])).verdict is Verdict.REFUTED
    assert final_tables.judge_order((replace(TABLE_3[1], lower_final="1.98"),)).verdict is Verdict.REFUTED


def test_an_estimate_far_off_is_not_close():
    assert final_tables.judge_close(TABLE_3[3:], 1.3).verdict is Verdict.REFUTED


@pytest.mark.parametrize("distance", [0.0, 4.0])
def test_moments_of_the_largest_cosine_by_simulation(distance):
    rng = np.random.default_rng(1)
    rounds, count = 2048, 400_000
    # The largest of n normals by its quantile function.
    largest = special.ndtri(rng.random(count) ** (1.0 / (rounds - 1)))
    sample = np.maximum(largest, distance + rng.standard_normal(count))
    mean, deviation, skewness = final_tables.largest_cosine(rounds, distance)
    assert mean == pytest.approx(sample.mean(), abs=6.0 * deviation / math.sqrt(count))
    assert deviation == pytest.approx(sample.std(), rel=0.01)
    assert skewness == pytest.approx(stats.skew(sample), abs=0.05)


def test_algorithm_3_without_data_by_simulation():
    rng = np.random.default_rng(2)
    rounds, sigma, count = 500, 0.2207, 400_000
    null, other = (special.ndtri(rng.random(count) ** (1.0 / n)) for n in (rounds, rounds - 1))
    seen = np.maximum(other, 1.0 / sigma + rng.standard_normal(count))
    simulated = two_gaussians.epsilon(EMNIST_DELTA, null.mean(), null.std(), seen.mean(), seen.std(), "both")
    assert final_tables.algorithm_3(rounds, sigma, EMNIST_DELTA) == pytest.approx(float(simulated), rel=0.02)


def test_gaussianity():
    assert final_tables.judge_gaussianity((("0", (0.3, 0.4)),)).verdict is Verdict.CONFIRMED
    assert final_tables.judge_gaussianity((*TABLE_6[:3], ("0.2317", (3.0, 0.6, 0.5, 0.3)))).verdict is Verdict.REFUTED


def test_the_other_estimate_is_not_closer():
    assert final_tables.judge_much_closer("0.879", "6.76").verdict is Verdict.REFUTED


# Quantiles.


def test_a_pinned_variance_would_not_spread_so():
    # The quantiles of the pinned estimate with this median.
    pinned = final_quantiles.judge_spread(CONTEXT, TABLE_5[0][3]).evidence["estimators"]["pinned"]["quantiles"]
    assert (pinned[4] - pinned[0]) / (2.46 - 1.59) == pytest.approx(0.456, abs=0.04)
    narrow = final_quantiles.judge_spread(CONTEXT, ("1.92", "1.95", "1.97", "1.99", "2.02"))
    assert narrow.verdict is Verdict.REFUTED


def test_rows_far_apart_are_not_close():
    noise, runs, canaries, _ = TABLE_5[1]
    moved = (TABLE_5[0], (noise, runs, canaries, ("2.65", "2.80", "2.92", "3.16", "3.32")))
    assert final_quantiles.judge_close(CONTEXT, moved).verdict is Verdict.REFUTED


def test_other_medians_are_refuted():
    rows = (*TABLE_3[:1], replace(TABLE_3[1], estimate_final="1.98"), *TABLE_3[2:])
    assert final_quantiles.judge_medians(rows).verdict is Verdict.REFUTED
