"""The final version's noise multipliers by another road, and faults in them that must change the verdicts."""

import math
from dataclasses import replace

import pytest
from scipy import special

import canaryproof as cp
from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims import final_noise
from canaryproof.verify.papers.claims.transcripts import Final

NOISY_ROWS = (*Final.TABLE_3[1:], *Final.TABLE_4[1:])
ONE_EPOCH = final_noise.AccountedTraining(2048, 167 / 341_000, 1)
EMNIST = {"users": 3383, "users × epochs": 3383 * 15}


@pytest.mark.parametrize("row", NOISY_ROWS, ids=lambda row: row.noise)
def test_calibration_by_another_road(row):
    """The σ that solves εσ² − zσ − 1/2 = 0 prints like the row's."""
    delta = Final.STACKOVERFLOW_DELTA if row in Final.TABLE_3 else Final.EMNIST_DELTA
    epsilon, z = float(row.analytical), float(-special.ndtri(delta))
    sigma = (z + math.sqrt(z * z + 2.0 * epsilon)) / (2.0 * epsilon)
    assert f"{sigma:.4f}" == row.noise


def test_proven_calibration_rejects_a_neighbour():
    row = Final.TABLE_3[3]
    assert final_noise.calibrated_by_tail(row, 341_000)
    assert not final_noise.calibrated_by_tail(replace(row, noise="0.2318"), 341_000)
    assert not final_noise.calibrated_by_tail(row, 3383)


@pytest.mark.parametrize(("noise", "verdict"), [("0.2278", Verdict.CONFIRMED), ("0.2", Verdict.REFUTED)])
def test_another_noise_has_another_verdict(noise, verdict):
    # 0.2278 is the exact calibration; 0.2000 is none.
    row = replace(Final.TABLE_3[3], noise="0.2000" if noise == "0.2" else noise)
    assert final_noise.judge_noise(row, [row], {"clients": 341_000}, ONE_EPOCH).verdict is verdict


def test_a_reading_is_of_the_whole_table():
    # The first row alone also fits as many clients as all rounds have places.
    sizes = {"clients": 3383 * 15, "places": 500 * 101}
    row, training = Final.TABLE_4[1], final_noise.AccountedTraining(500, 101 / 3383, 15)
    alone, together = (final_noise.judge_noise(row, rows, sizes, training) for rows in ([row], Final.TABLE_4[1:]))
    assert "m = places" in alone.finding
    assert "m = places" not in together.finding
    assert together.verdict is Verdict.QUALIFIED


def test_delta_of_emnist():
    fitting = final_noise.judge_size(Final.TABLE_4[1:], EMNIST).evidence["fitting"]
    assert fitting[0] <= 3383 * 15 <= fitting[1]
    assert not fitting[0] <= 101 * 500 <= fitting[1]
    exchanged = (replace(Final.TABLE_4[1], noise="0.0473"), *Final.TABLE_4[2:])
    assert final_noise.judge_size(exchanged, EMNIST).verdict is Verdict.REFUTED
    assert final_noise.judge_emnist_size(exchanged).verdict is Verdict.REFUTED


def test_a_size_with_the_exact_calibration_is_confirmed():
    # What the mechanism's own ε takes at δ = 341,000^(−1.1).
    rows = [replace(Final.TABLE_3[i], noise=noise) for i, noise in ((1, "0.0495"), (2, "0.0981"), (3, "0.2278"))]
    assert final_noise.judge_size(rows, {"clients": 341_000}).verdict is Verdict.CONFIRMED
    assert final_noise.judge_size(rows, {"clients": 300_000}).verdict is Verdict.REFUTED


def test_ends_of_the_fitting_sizes_are_where_the_calibration_fails():
    low, high = final_noise.judge_size(Final.TABLE_3[1:], {"clients": 341_000}).evidence["fitting"]
    for inside, outside in ((math.ceil(low), math.floor(low)), (math.floor(high), math.ceil(high))):
        assert all(final_noise.calibrated_by_tail(row, inside) for row in Final.TABLE_3[1:])
        assert not all(final_noise.calibrated_by_tail(row, outside) for row in Final.TABLE_3[1:])


def test_a_finite_epsilon_without_noise_is_refuted():
    assert final_noise.judge_no_noise(replace(Final.TABLE_3[0], analytical="300")).verdict is Verdict.REFUTED
    assert final_noise.judge_no_noise(replace(Final.TABLE_3[0], noise="0.01")).verdict is Verdict.REFUTED


def test_epochs():
    # √15 rounds' noise has the tail's ε; the exact one is below it.
    delta, sigma = Final.EMNIST_DELTA, 0.2207 / math.sqrt(15)
    tail = 0.5 / sigma**2 - special.ndtri(delta) / sigma
    composed = final_noise.judge_epochs(Final.TABLE_4[3:]).evidence["rows"][0]["composed"]
    assert 0.95 * tail < composed < tail
    wide = [replace(row, analytical="4000") for row in Final.TABLE_4[1:]]
    assert final_noise.judge_epochs(wide).verdict is Verdict.CONFIRMED
    assert final_noise.judge_epochs(Final.TABLE_4[3:], 1).verdict is Verdict.CONFIRMED


def test_no_bound_is_known_without_noise_only():
    assert final_noise.judge_no_bound(Final.TABLE_3[:1]).verdict is Verdict.CONFIRMED
    outcome = final_noise.judge_no_bound(Final.TABLE_3)
    assert outcome.verdict is Verdict.QUALIFIED
    bounds = outcome.evidence["bounds"]
    assert set(bounds) == {"0.0496", "0.0986", "0.2317"}
    assert all(sorted(row) == row and len(set(row)) == 4 for row in bounds.values())


@pytest.mark.parametrize(("sigma", "verdict"), [(0.19996, Verdict.CONFIRMED), (0.19994, Verdict.REFUTED)])
def test_the_least_noise_that_prints_so_has_the_most_epsilon(monkeypatch, sigma, verdict):
    # What prints as 0.2000 is from 0.19995 on.
    exact = float(gaussian_mechanism.epsilon(Final.STACKOVERFLOW_DELTA, sigma))
    rows = (Final.TABLE_3[0], replace(Final.TABLE_3[1], noise="0.2000", analytical=f"{exact:.9f}"))
    monkeypatch.setattr(final_noise.Final, "TABLE_3", rows)
    assert final_noise._judge_footnote_5().verdict is verdict


@pytest.mark.deep
@pytest.mark.parametrize(("row", "poisson"), list(zip(Final.TABLE_4[1:], (7009, 1734, 252), strict=True)))
def test_who_does_not_know_the_rounds_has_no_smaller_epsilon(row, poisson):
    """Of Table 4's fifteen epochs, shuffled, and of Poisson samples in their place: both are above the printed ε."""
    sigma, delta = float(row.noise), Final.EMNIST_DELTA
    shuffled = cp.accounting.shuffled(sigma, batches=33, epochs=15, neighbours="add-or-remove")
    known = cp.accounting.gaussian(sigma, participations=15).epsilon(delta)
    assert known - 0.05 < shuffled.attained_epsilon(delta) <= known
    sampled = cp.accounting.poisson(sigma, rate=101 / 3383, rounds=500)
    assert math.floor(sampled.attained_epsilon(delta)) == poisson
    assert min(known, poisson) > 7.0 * float(row.analytical)
