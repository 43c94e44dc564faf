"""Where a word has a border that no printed number is near, the verdict changes there and nowhere else."""

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, special, stats

from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.claims import (
    costs,
    cross_checks,
    final_bounds,
    final_setting,
    final_tables,
    review,
    sentences,
    submission,
    table_judges,
    v1,
)
from canaryproof.verify.papers.claims.canife import attack, composition, experiments
from canaryproof.verify.papers.claims.simulated_tables import CELLS
from canaryproof.verify.papers.claims.transcripts import FirstVersion, Row, Task

CONFIRMED, QUALIFIED, REFUTED, INCONCLUSIVE, _ = Verdict
QUICK = Context(Effort.QUICK, 0)
ROW = Row("0.1", "30", "2.0", "20.0", "0.5", "1.0")
# A best attack is right in 99% where two unit Gaussians are so far apart.
EASY = 2.0 * special.ndtri(0.99)


@pytest.mark.parametrize(
    ("shift", "separable", "indistinguishable"),
    [
        (EASY + 0.01, CONFIRMED, REFUTED),
        (EASY - 0.01, QUALIFIED, REFUTED),
        # Five standard errors of a thousand, and a total variation of a tenth.
        (5.01 / math.sqrt(1000), QUALIFIED, QUALIFIED),
        (4.99 / math.sqrt(1000), REFUTED, QUALIFIED),
        (2.0 * special.ndtri(0.55) + 1e-3, QUALIFIED, REFUTED),
        (2.0 * special.ndtri(0.55) - 1e-3, QUALIFIED, QUALIFIED),
    ],
)
def test_cosines_that_tell(monkeypatch, shift, separable, indistinguishable):
    monkeypatch.setattr(final_tables, "cosine_distance", lambda *_: shift)
    monkeypatch.setattr(final_tables, "pinned_distance", lambda *_: shift)
    assert final_tables.judge_separable(ROW, 1e-6).verdict is separable
    assert review.judge_indistinguishable(ROW).verdict is indistinguishable


@pytest.mark.parametrize(
    ("mean", "deviation", "verdict"),
    [
        (1.099, 0.199, CONFIRMED),
        (1.101, 0.199, REFUTED),
        (0.901, 0.199, CONFIRMED),
        (0.899, 0.199, REFUTED),
        (1.0, 0.201, REFUTED),
    ],
)
def test_very_close_is_a_tenth_and_little_a_fifth(mean, deviation, verdict):
    cell = replace(CELLS[0], epsilon=1.0, mean=mean, deviation=deviation)
    # Of fifty, a tenth off is no chance: alone, its bias is not what is judged here.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(final_tables, "unbiased", lambda _: ("", LEVEL, None))
        assert final_tables.judge_very_close([cell], "pinned").verdict is verdict
        # As stated, with the deviation fitted, it must be close too.
        for stated, judged in ((1.099, verdict), (1.101, QUALIFIED if verdict is CONFIRMED else REFUTED)):
            patch.setattr(final_tables, "as_stated", lambda *_, stated=stated: (stated, 0.0))
            assert final_tables.judge_very_close([cell]).verdict is judged
        patch.setattr(final_tables, "unbiased", lambda _: ("", 0.99 * LEVEL, None))
        assert final_tables.judge_very_close([cell], "pinned").verdict is REFUTED


@pytest.mark.parametrize(
    ("smallest", "final", "submitted"),
    [
        (0.0101, CONFIRMED, CONFIRMED),
        (0.0099, QUALIFIED, CONFIRMED),
        # 1 − (1 − p)^15 is 5% at p = 0.00341, and with sixteen at 0.0032.
        (0.0033, QUALIFIED, REFUTED),
        (0.0031, REFUTED, REFUTED),
    ],
)
def test_levels_of_andersons_test(monkeypatch, smallest, final, submitted):
    monkeypatch.setattr(final_tables.anderson_darling, "limit_law", lambda _: SimpleNamespace(sf=lambda p: p))
    rows = [(noise, (0.9, 0.5, 0.6, 0.7)) for noise in "abc"]
    assert final_tables.judge_gaussianity([*rows, ("1", (0.9, 0.8, smallest, 0.5))]).verdict is final
    table = {"0": ("0.9",) * 5, "1": ("0.8",) * 5, "2": ("0.7", "0.6", str(smallest), "0.5", "0.4")}
    monkeypatch.setattr(submission.Submission, "TABLE_4", table)
    joint = 1.0 - (1.0 - smallest) ** 15
    assert submission.judge_gaussian().evidence["joint"] == pytest.approx(joint)
    # The submission takes its fifteen together.
    assert submission.judge_gaussian().verdict is submitted


@pytest.mark.parametrize(
    ("both", "most", "verdict"), [(0.951, 0.049, CONFIRMED), (0.949, 0.049, REFUTED), (0.951, 0.051, REFUTED)]
)
def test_limits_of_95_percent(monkeypatch, both, most, verdict):
    monkeypatch.setattr(attack, "coverage", lambda *_: {"both": both})
    monkeypatch.setattr(attack, "selected_miss", lambda _: (0.0, most))
    assert attack._judge_limits().verdict is verdict


@pytest.mark.parametrize(("upwards", "verdict"), [(0.951, CONFIRMED), (0.949, REFUTED)])
def test_conservative_is_19_of_20(upwards, verdict):
    law = attack.Selected(np.array([-1.0, 0.0, 1.0, 2.0]), np.array([0.0, 1.0 - upwards, upwards, 0.0]))
    assert attack.judge_conservative(law).verdict is verdict


def test_a_complete_success_errs_in_a_millionth():
    # A hundred trials at half the distance of centres at 0 and 1.
    border = 0.5 / special.ndtri((1.0 - 1e-6) ** 0.01)
    assert composition.judge_success(0.999 * border).verdict is CONFIRMED
    assert composition.judge_success(1.001 * border).verdict is REFUTED


@pytest.mark.parametrize(("theory", "verdict"), [(1.049, CONFIRMED), (1.051, QUALIFIED)])
def test_comparable_is_a_twentieth(monkeypatch, theory, verdict):
    law = SimpleNamespace(epsilon=lambda delta, _: 2.0 if delta == 0.01 else 2.0 * theory)
    monkeypatch.setattr(composition, "gaussian_mechanism", law)
    assert composition.judge_comparable(0.01, 1e-5).verdict is verdict


def test_deviations_of_histograms_are_close_within_a_tenth_or_by_chance():
    assert composition.judge_deviation(0.11, 0.1001).verdict is CONFIRMED
    assert composition.judge_deviation(0.11, 0.0999).verdict is QUALIFIED
    # Ninety-eight degrees of freedom, two-sided at the level.
    ratio = math.sqrt(stats.chi2.isf(0.5 * LEVEL, 98) / 98)
    assert composition.judge_deviation(0.999 * ratio, 1.0).verdict is QUALIFIED
    assert composition.judge_deviation(1.001 * ratio, 1.0).verdict is REFUTED
    lower = math.sqrt(stats.chi2.ppf(0.5 * LEVEL, 98) / 98)
    assert composition.judge_deviation(1.001 * lower, 1.0).verdict is QUALIFIED
    assert composition.judge_deviation(0.999 * lower, 1.0).verdict is REFUTED


@pytest.mark.parametrize(
    ("small", "large", "canife", "verdict"),
    [
        (0.09, 0.09, 0.51, CONFIRMED),
        (0.11, 0.09, 0.51, QUALIFIED),
        (0.09, 0.11, 0.51, QUALIFIED),
        (0.11, 0.11, 0.51, REFUTED),
        (0.09, 0.09, 0.49, REFUTED),
        (0.09, 0.11, 0.49, REFUTED),
    ],
)
def test_negligible_is_a_tenth_and_much_a_half(monkeypatch, small, large, canife, verdict):
    monkeypatch.setattr(costs, "_fashion", lambda: {"Algorithm 3": small, "CANIFE": canife})
    monkeypatch.setattr(costs, "shares", lambda *_: {"Algorithm 3": large, "CANIFE": 0.0})
    assert costs.judge_negligible().verdict is verdict
    assert costs.judge_crafting().verdict is (CONFIRMED if canife > 0.5 else REFUTED)


@pytest.mark.parametrize(
    ("clients", "parameters", "loss", "verdict"),
    [
        (10**5, 10**6, "0.1", QUALIFIED),
        (10**5 - 1, 10**6, "0.1", REFUTED),
        (10**5, 10**6 - 1, "0.1", REFUTED),
        (10**5, 10**6, "0.11", REFUTED),
    ],
)
def test_natural_problems_are_large_and_lose_a_tenth_of_a_point(clients, parameters, loss, verdict):
    found = final_setting.judge_scale({"X": (clients, parameters)}, {"a table": Fraction(loss)})
    assert found.verdict is verdict
    assert found.evidence["large"] == (["X"] if clients == 10**5 and parameters == 10**6 else [])


def test_near_certainty_is_nine_tenths_from_one():
    # From odds of 1 to 9, e^ε = 81 makes them 9 to 1.
    border = math.log(81.0)
    for epsilon, verdict in ((f"{border + 0.001:.4f}", CONFIRMED), (f"{border - 0.001:.4f}", REFUTED)):
        assert final_setting.judge_clipping(epsilon).verdict is verdict
        assert final_tables.judge_high([replace(ROW, estimate_all=epsilon)], 1e-6).verdict is verdict


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.0, CONFIRMED), (0.801, CONFIRMED), (0.799, REFUTED), (1.001, REFUTED)]
)
def test_tight_is_a_fifth_below(monkeypatch, ratio, verdict):
    row = replace(ROW, analytical="1000", estimate_all=f"{1000 * ratio:g}")
    monkeypatch.setattr(final_bounds.Final, "RESULTS", {3: ((row, row), 10, 1e-6)})
    assert final_bounds.judge_tight().verdict is verdict


@pytest.mark.parametrize(("chance", "verdict"), [(0.051, CONFIRMED), (0.049, REFUTED)])
def test_within_noise_of_no_leakage_is_one_in_twenty(monkeypatch, chance, verdict):
    monkeypatch.setattr(cross_checks.distributions, "fitted", lambda *_: np.array([[1.0 - chance]]))
    monkeypatch.setattr(cross_checks.distributions, "quantile", lambda *_: 0.1)
    assert cross_checks.judge_floor().verdict is verdict


def test_a_printed_estimate_without_leakage_is_none_of_less_noise():
    assert review.judge_overstated({"x": [replace(ROW, analytical="4.99")]}).verdict is REFUTED
    assert review.judge_overstated({"x": [replace(ROW, analytical="5.01")]}).verdict is INCONCLUSIVE
    assert review.judge_overstated({"x": [replace(ROW, analytical="inf"), ROW]}).verdict is INCONCLUSIVE
    assert review.judge_plausible("6.26").verdict is CONFIRMED
    assert review.judge_plausible("6.25").verdict is REFUTED
    assert review.judge_plausible("34.5").verdict is REFUTED
    # 10 to 5 times all rounds' bound, and twice the final model's.
    assert review.judge_wide([ROW, replace(ROW, estimate_all="4.01")]).verdict is CONFIRMED
    assert review.judge_wide([ROW, replace(ROW, estimate_all="3.99")]).verdict is REFUTED
    assert review.judge_smallest(1.01, "30", {"x": [ROW]}).verdict is CONFIRMED
    assert review.judge_smallest(1.0, "30", {"x": [ROW]}).verdict is REFUTED
    assert review.judge_smallest(1.01, "20", {"x": [ROW]}).verdict is QUALIFIED
    assert review.judge_sizes(10**6, {"x": 10**6 + 1}).verdict is CONFIRMED
    assert review.judge_sizes(10**6, {"x": 10**6 + 1, "y": 10**6}).verdict is REFUTED


@pytest.mark.parametrize(("factor", "verdict"), [(2.01, CONFIRMED), (1.99, QUALIFIED), (0.99, REFUTED)])
def test_far_lower_is_half(factor, verdict):
    rows = [ROW, replace(ROW, estimate_all=f"{factor:g}", estimate_final="1")]
    assert table_judges.judge_threat_models(rows).verdict is verdict
    assert table_judges.judge_threat_models(rows).evidence["estimates"] == [True, factor > 1.0]


@pytest.mark.parametrize(
    ("private", "free", "verdict"),
    [
        (("60.0", "40.0"), ("60.1", "40.0"), CONFIRMED),
        (("60.0", "40.0"), ("60.0", "39.9"), REFUTED),
        (("60.0", "40.0"), ("60.1", "40.1"), REFUTED),
    ],
)
def test_utility_without_privacy_is_higher_on_the_first_task_alone(monkeypatch, private, free, verdict):
    tasks = ("sent140", "shakespeare")
    monkeypatch.setattr(experiments.Canife, "ACCURACIES", dict(zip(tasks, private, strict=True)))
    monkeypatch.setattr(experiments.Canife, "FREE_ACCURACIES", dict(zip(tasks, free, strict=True)))
    assert experiments.judge_utility().verdict is verdict


def test_counts_of_canife_at_their_ends():
    assert experiments.judge_pool(512, 512).verdict is CONFIRMED
    assert experiments.judge_pool(513, 512).verdict is REFUTED
    # An iteration of 0.05 to 0.07 s: 100 of them are 5 to 7 s.
    times = {"5": CONFIRMED, "7": CONFIRMED, "8": CONFIRMED, "4": REFUTED}
    assert {total: experiments.judge_times("0.06", 100, total).verdict for total in times} == times
    every = Task("x", "X", 10, 100, 3, 10, 30, 1, 30)
    assert experiments.judge_covered([every]).verdict is CONFIRMED
    assert experiments.judge_covered([every, replace(every, every=2)]).verdict is QUALIFIED
    assert experiments.judge_rounds(every).verdict is CONFIRMED
    assert experiments.judge_rounds(replace(every, users=101)).verdict is REFUTED
    assert experiments.judge_clients(10, [every, replace(every, cohort=11)]).verdict is REFUTED


def test_norms_of_updates_at_a_rate_of_one():
    assert attack.judge_norm({"x": "1", "y": "3"}).verdict is CONFIRMED
    assert attack.judge_norm({"x": "0.999", "y": "3"}).verdict is QUALIFIED
    assert attack.judge_norm({"x": "0.5"}).verdict is REFUTED
    assert attack.judge_norm({"x": "0.5"}).evidence["least_norms"] == {"x": 0.5}


@pytest.mark.parametrize(("losses", "verdict"), [(("0.1", "0.0"), CONFIRMED), (("0.0", "0.2"), REFUTED)])
def test_almost_negligible_is_a_tenth_of_a_point(monkeypatch, losses, verdict):
    rows = tuple(("0", "1", "20.0", str(Fraction("20.0") - Fraction(loss))) for loss in losses)
    monkeypatch.setattr(v1.FirstVersion, "TABLE_2", tuple((*row[:3], f"{float(Fraction(row[3])):.1f}") for row in rows))
    assert v1.judge_accuracy().verdict is verdict


def test_sentences_at_their_borders():
    limit = math.log(np.finfo(float).max)
    assert sentences.judge_log_domain(f"{limit + 0.01:.4f}").verdict is CONFIRMED
    assert sentences.judge_log_domain(f"{limit - 0.01:.4f}").verdict is REFUTED


@pytest.mark.parametrize(
    ("judge", "finding"),
    [
        (lambda: final_setting.judge_assumptions({}), "in the wrong order none; without an order none"),
        (
            lambda: final_setting.judge_assumptions({"x": [("a", ("noise",), ("final",)), ("b", (), ("final",))]}),
            "in the wrong order a before b; without an order none",
        ),
        (
            lambda: final_setting.judge_assumptions(
                {"x": [("a", ("noise",), ("final",)), ("b", ("data",), ("final",))]}
            ),
            "only if control of noise and minibatches counts for more than all else: in the wrong order none; without "
            "an order a and b",
        ),
        (
            lambda: final_setting.judge_scale({"X": (5, 7)}, {"T": Fraction(1, 10), "U": Fraction(0)}),
            "only on none, and by printed accuracies: 1,000 canaries cost at most 0.1 percentage points in T, 0 "
            "percentage points in U. No document says which estimates are reasonable",
        ),
        (lambda: attack.judge_norm({"x": "3", "y": "1"}), "a step with rate 1 or more reaches C = 1: x, y"),
        (
            lambda: attack.judge_norm({"x": "0.5"}),
            "only if the update is the gradient, clipped, or where the rate is at least 1 (nowhere): as rate times "
            "gradient not on x (rate 0.5: ‖u_c‖ may be 0.5, C takes a gradient "
            "of 2)",
        ),
        (lambda: review.judge_smallest(2.0, "9", {"x": [ROW]}), "9 is the smallest on no table only: x 1.0 at ε = 30"),
        (lambda: review.judge_smallest(2.0, "30", {"x": [ROW]}), "x 1.0 at ε = 30"),
        (lambda: cross_checks.judge_repeated({"a": (1, 1), "b": (1, 2)}), "1 of 2 agree; not: b"),
        (lambda: cross_checks.judge_repeated({"a": (1, 1)}), "1 of 1 agree"),
        (
            lambda: final_tables.judge_order([ROW, replace(ROW, noise="0.2", lower_all="2.1", estimate_final="0.4")]),
            "lower_all: 2 then 2.1; lower_final above estimate_final at noise 0.2",
        ),
        (
            lambda: final_tables.judge_order([replace(ROW, lower_final="2.5", estimate_final="2.6")]),
            "ε falls with the noise, bounds are below estimates, and the final model's estimates below all iterates'; "
            "at noise 0.1 the final model has the larger lower bound, as its FPR is exact",
        ),
        (
            lambda: final_tables.judge_close([replace(ROW, estimate_all="29"), replace(ROW, estimate_all="31")]),
            'ε̂/ε = 0.97 at noise 0.1, 1.03 at noise 0.1, where close is within 10%, as "about", "close" and "slightly" '
            "allow; but above 1 an estimate exceeds what is proven to be an upper bound",
        ),
        (
            lambda: review.judge_not_falsified({"x": [ROW, replace(ROW, lower_final="1.1")]}),
            "3 of 4 estimates are above their lower bounds, the closest 1 above 1.1",
        ),
        (
            lambda: experiments.judge_reduced("0.990", "99"),
            "health is the share by which the loss is improved: 0.990 of it, and 99% are printed",
        ),
    ],
)
def test_what_is_said_of_made_up_numbers(judge, finding):
    assert judge().finding == finding


# Effects that designs state, by the law of the test.


def test_a_bias_of_a_round_is_noticed_as_often_as_said():
    design = review.judge_bias(QUICK).design
    # Five ε, below and above: a one-sided test at a tenth of the level.
    critical = stats.t.isf(LEVEL / 10, design.runs - 1)
    visible = optimize.brentq(
        lambda shift: stats.nct.sf(critical, design.runs - 1, shift * math.sqrt(design.runs)) - 0.9, 0.01, 1.0
    )
    assert f"off by {visible:.2g} standard deviations" in design.alternative


def test_an_excess_is_noticed_as_often_as_said():
    design = v1.judge_advantage(QUICK).design
    # Two two-sided tests at each of three ε.
    visible = (stats.norm.isf(LEVEL / 12) + stats.norm.ppf(0.9)) / math.sqrt(design.runs)
    assert f"above that by {visible:.2g} deviations of an estimate" in design.alternative


def test_another_estimator_of_a_cell_is_noticed_as_often_as_said(monkeypatch):
    pinned = v1.epsilon_estimators.pinned_epsilon
    # One that is off by less than a deviation, so that it is noticed now and then.
    other = SimpleNamespace(pinned_epsilon=pinned, both_directions=lambda delta, means, _: pinned(delta, means) + 0.13)
    monkeypatch.setattr(v1, "epsilon_estimators", other)
    found = v1.judge_cell(FirstVersion.TABLE_1[0], "pinned", QUICK)
    own, fit = (found.evidence["readings"][name] for name in ("pinned", "fitted"))
    error = math.hypot(own["deviation"] / math.sqrt(50), fit["deviation"] / math.sqrt(found.evidence["runs"]))
    # Two tests, each of two sides; the means' has no fewer degrees of freedom than 49.
    power = stats.nct.sf(stats.t.isf(LEVEL / 4, 49), 49, 0.13 / error)
    assert 0.1 < power < 0.9
    assert found.design.power == pytest.approx(power, rel=1e-6)
