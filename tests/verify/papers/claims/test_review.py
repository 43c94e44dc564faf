from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.results import Context, Effort, Subject, Verdict
from canaryproof.verify.papers.claims import final_tables, review
from canaryproof.verify.papers.claims.review import CHECKS
from canaryproof.verify.papers.claims.simulated_tables import CELLS
from canaryproof.verify.papers.claims.transcripts import Final

SWEEP = [cell for cell in CELLS if cell.id.startswith("review.sweep.")]


def test_ids_are_unique_and_name_the_document():
    ids = [check.id for check in CHECKS]
    assert len(set(ids) | {cell.id for cell in CELLS}) == len(ids) + len(CELLS)
    assert all(check.id.startswith("review.") and check.subject is Subject.DOCUMENT for check in CHECKS)


def test_the_cap_by_another_road():
    # Jeffreys' upper limit without a miss among 1,000, by scipy.
    limit = stats.beta.ppf(0.95, 0.5, 1000.5)
    bounds = review.judge_cap("6.24").evidence["bounds"]
    assert bounds["Jeffreys for FNR, exact FPR"] == pytest.approx(-np.log(limit), abs=1e-8)
    assert review.judge_cap("6.26").verdict is Verdict.CONFIRMED
    assert review.judge_cap("6.24").verdict is Verdict.INCONCLUSIVE
    assert review.judge_cap("6.27").verdict is Verdict.REFUTED
    assert review.judge_cap("5.81").verdict is Verdict.QUALIFIED


def test_an_estimate_below_its_lower_bound_falsifies():
    row = replace(Final.TABLE_3[3], estimate_final="0.3")
    assert review.judge_not_falsified({"altered": (row,)}).verdict is Verdict.REFUTED


def test_the_smallest_analytical_epsilon():
    assert review.judge_smallest(1.0, "30", {"StackOverflow": Final.TABLE_3}).verdict is Verdict.CONFIRMED
    assert review.judge_smallest(0.5, "30", {"StackOverflow": Final.TABLE_3}).verdict is Verdict.REFUTED


def test_altered_numbers_change_the_verdict():
    assert review.judge_times(341_000, 3_500_000, "10").verdict is Verdict.CONFIRMED
    assert review.judge_times(341_000, 1_000_000, "10").verdict is Verdict.REFUTED
    assert final_tables.judge_decrease("0.5", final_tables.ACCURACIES).verdict is Verdict.CONFIRMED
    assert final_tables.judge_decrease("0.01", final_tables.ACCURACIES).verdict is Verdict.REFUTED
    # As few percentage points, but of so little that no rounding explains the relative decrease.
    assert final_tables.judge_decrease("0.1", [("1.00", "0.95")]).verdict is Verdict.REFUTED
    assert review.judge_sizes(10**6, {"small": 10**5}).verdict is Verdict.REFUTED


def test_estimates_that_rise_with_the_noise_are_refuted():
    rows = (Final.TABLE_3[2], replace(Final.TABLE_3[3], estimate_final="1.20"))
    assert review.judge_smaller({"altered": rows}).verdict is Verdict.REFUTED
    assert review.judge_smaller({"as printed": Final.TABLE_3}).verdict is Verdict.QUALIFIED


def test_an_analytical_epsilon_near_the_lower_bound_is_not_vast():
    rows = (replace(Final.TABLE_3[3], analytical="2"),)
    assert review.judge_overstated({"altered": rows}).verdict is Verdict.REFUTED


def test_total_variation_by_integration():
    outcome = review.judge_indistinguishable(Final.TABLE_3[3])
    x = np.linspace(-12.0, 12.0, 200_001)
    densities = stats.norm.pdf(x), stats.norm.pdf(x, outcome.evidence["distance"])
    half = 0.5 * np.trapezoid(np.abs(densities[0] - densities[1]), x)
    assert outcome.evidence["variation"] == pytest.approx(half, rel=1e-6)
    epsilon = gaussian_mechanism.epsilon(Final.STACKOVERFLOW_DELTA, 1.0 / outcome.evidence["unfitted"])
    assert float(epsilon) == pytest.approx(0.569)
    assert review.judge_indistinguishable(Final.TABLE_3[0]).verdict is Verdict.REFUTED


def test_intervals_that_are_not_wider_are_refuted():
    assert review.judge_wide((replace(Final.TABLE_3[3], estimate_all="0.5"),)).verdict is Verdict.REFUTED


def test_a_rerun_of_other_laws_is_refuted():
    assert review.judge_rerun(SWEEP[6:9], SWEEP[6:9]).verdict is Verdict.CONFIRMED
    for fault in ({"mean": 1.2}, {"deviation": 0.35}):
        assert review.judge_rerun([replace(SWEEP[6], **fault)], SWEEP[6:7]).verdict is Verdict.REFUTED


@pytest.mark.parametrize("cells", [SWEEP[:1], SWEEP[6:9], SWEEP, SWEEP * 10])
def test_two_means_that_are_noticed_are_by_the_level_of_one_test(cells):
    # A mean and a deviation of each cell share the level, and each is two-sided; 50 runs and 50 others.
    critical = stats.t.isf(0.5e-6 / (2 * len(cells)), 98)
    visible = optimize.brentq(lambda shift: stats.nct.sf(critical, 98, 5.0 * shift) - 0.9, 0.1, 3.0)
    design = review.judge_rerun(cells, cells).design
    assert design.alternative == f"two means are {visible:.2g} standard deviations apart"


def test_means_that_depend_on_the_dimension_are_refuted():
    moved = [cell if cell.dim > 10**4 else replace(cell, mean=cell.mean * 1.5) for cell in SWEEP]
    assert review.judge_dimension(SWEEP).verdict is Verdict.CONFIRMED
    assert review.judge_dimension(moved).verdict is Verdict.REFUTED


def test_a_sweep_without_bias_as_stated_is_confirmed(monkeypatch):
    monkeypatch.setattr(review.final_tables, "as_stated", lambda cell: (cell.epsilon, 0.0))
    assert review.judge_sweep(SWEEP).verdict is review.judge_dimension(SWEEP).verdict is Verdict.CONFIRMED


def test_other_numbers_of_canaries_are_refuted():
    # 1,000 at every d, and d/1,000.
    assert review.judge_growth(SWEEP, 0.0).verdict is Verdict.REFUTED
    assert review.judge_growth(SWEEP, 1.0).verdict is Verdict.REFUTED
    exact = [replace(cell, deviation=cell.epsilon * cell.dim**-0.3) for cell in SWEEP]
    assert review.judge_growth(exact, 0.6).evidence["exponent"] == pytest.approx(0.6)


def test_a_biased_or_rising_sweep_is_refuted():
    assert review.judge_sweep(SWEEP).verdict is Verdict.QUALIFIED
    assert review.judge_sweep([replace(SWEEP[0], mean=1.98), *SWEEP[1:]]).verdict is Verdict.REFUTED
    assert review.judge_sweep([replace(SWEEP[0], deviation=0.041), *SWEEP[1:]]).verdict is Verdict.REFUTED


@pytest.mark.parametrize(("shift", "verdict"), [(-4.0, Verdict.CONFIRMED), (4.0, Verdict.REFUTED)])
def test_a_bias_follows_the_estimates(monkeypatch, shift, verdict):
    def estimates(noise, runs, rng, delta):
        return gaussian_mechanism.epsilon(delta, noise) + shift + rng.standard_normal(runs), None

    monkeypatch.setattr(review.canife_composition, "perfect_estimates", estimates)
    assert review.judge_bias(Context(Effort.QUICK, 0)).verdict is verdict


def test_an_estimate_within_canifes_reach_leaves_its_maximum_open():
    assert review.judge_ceiling(469, 128 / 60_000, 3.0).verdict is Verdict.INCONCLUSIVE


def test_the_error_of_a_power_of_d_is_that_of_drawn_deviations(monkeypatch):
    """Deviations of fifty normal estimates, which fall as the root of the canaries, whose power is then fitted."""
    # What the test notices is no part of this, and takes longest.
    monkeypatch.setattr(review, "visible_mean", lambda *_: 1.0)
    rng, drawn = np.random.default_rng(16), []
    for _ in range(400):
        spreads = rng.standard_normal((len(SWEEP), 50)).std(axis=1, ddof=1)
        cells = [
            replace(cell, deviation=cell.epsilon * cell.dim**-0.25 * spread)
            for cell, spread in zip(SWEEP, spreads, strict=True)
        ]
        drawn.append(review.judge_growth(cells, 0.5).evidence)
    powers = [found["exponent"] for found in drawn]
    # A deviation of 400 numbers is known to 3.5%; five of these.
    assert np.std(powers) == pytest.approx(drawn[0]["error"], rel=0.18)
    assert np.mean(powers) == pytest.approx(0.5, abs=5.0 * drawn[0]["error"] / 20.0)
    # Where the number is right, p-values are uniform.
    assert stats.kstest([found["p_value"] for found in drawn], "uniform").pvalue > 1e-6


@pytest.mark.parametrize(("share", "verdict"), [(0.9, Verdict.CONFIRMED), (1.1, Verdict.REFUTED)])
def test_both_sides_of_each_of_five_epsilons_share_the_level(monkeypatch, share, verdict):
    monkeypatch.setattr(review, "below", lambda *_: share * LEVEL / 10)
    monkeypatch.setattr(review, "above", lambda *_: 1.0)
    assert review.judge_bias(Context(Effort.QUICK, 0)).verdict is verdict
