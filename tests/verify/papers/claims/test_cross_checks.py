"""Findings of ours on the documents' numbers, and what changes them."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.results import Context, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.claims import cross_checks, distributions, final_tables
from canaryproof.verify.papers.claims.transcripts import Final, FirstVersion, Row, Submission

DELTA = FirstVersion.DELTA
ROW = Row("0.1836", "100", "2.44", "92.0", "0.802", "0.865")
WITHOUT_NOISE = Submission.TABLE_2[0]


def test_all_are_statements_of_ours_and_hold(quick_run):
    assert {check.subject for check in cross_checks.CHECKS} == {Subject.IMPLEMENTATION}
    assert all(quick_run.results[check.id].verdict is Verdict.CONFIRMED for check in cross_checks.CHECKS)


@pytest.mark.parametrize(
    ("judge", "verdict"),
    [
        (partial(cross_checks.judge_repeated, {"batch": ("16", "16")}), Verdict.CONFIRMED),
        (partial(cross_checks.judge_repeated, {"batch": ("16", "20")}), Verdict.REFUTED),
        (partial(cross_checks.judge_without_noise, WITHOUT_NOISE, WITHOUT_NOISE), Verdict.REFUTED),
        (
            partial(cross_checks.judge_without_noise, WITHOUT_NOISE, replace(WITHOUT_NOISE, estimate_final="12")),
            Verdict.REFUTED,
        ),
        (partial(cross_checks.judge_lower_bounds), Verdict.CONFIRMED),
        (partial(cross_checks.judge_lower_bounds, {"like": [replace(ROW, lower_final="0.866")]}), Verdict.REFUTED),
        (partial(cross_checks.judge_falling, {"like": [ROW, replace(ROW, lower_final="0.9")]}), Verdict.REFUTED),
        (partial(cross_checks.judge_emnist, Final.EMNIST), Verdict.REFUTED),
        (partial(cross_checks.judge_between, Submission.TABLE_3, Final.TABLE_3), Verdict.REFUTED),
        (partial(cross_checks.judge_above_analytical, {"like": (ROW, ROW)}), Verdict.REFUTED),
        (
            partial(cross_checks.judge_above_analytical, {"like": (ROW, replace(ROW, analytical="91"))}),
            Verdict.CONFIRMED,
        ),
        (partial(cross_checks.judge_noise_alone, (ROW,), DELTA, 2048), Verdict.CONFIRMED),
        (partial(cross_checks.judge_noise_alone, (replace(ROW, estimate_final="4.0"),), DELTA, 2048), Verdict.REFUTED),
        (partial(cross_checks.judge_floor, Final.TABLE_3[-2]), Verdict.REFUTED),
        (partial(final_tables.judge_decrease, "0.48"), Verdict.QUALIFIED),
        (partial(final_tables.judge_less_separable, [*reversed(Final.TABLE_3)], DELTA), Verdict.REFUTED),
    ],
)
def test_another_number_changes_the_verdict(judge: partial[Outcome], verdict: Verdict) -> None:
    assert judge().verdict is verdict


def test_noise_alone_by_simulating_rounds() -> None:
    # 400 models, each a sum of 2048 rounds' noise and one canary: its cosine, in the null's units, has mean 1/(σ√T).
    rng, sigma, rounds, dim = np.random.default_rng(5), 0.2344, 2048, 5000
    model = sigma * math.sqrt(rounds) * rng.standard_normal((400, dim))
    model[:, 0] += 1.0
    scores = math.sqrt(dim) * model[:, 0] / np.linalg.norm(model, axis=1)
    assert scores.mean() == pytest.approx(1 / (sigma * math.sqrt(rounds)), abs=5 / math.sqrt(400))


def test_presented_twice_at_twice_the_noise_a_canary_tells_as_much() -> None:
    assert cross_checks.noise_mean(0.2, 2048, 2) == pytest.approx(cross_checks.noise_mean(0.1, 2048))


def plain_epsilon(delta: float, mean: float, ratio: float) -> float:
    """ε of N(0, 1) and N(mean, ratio²) in both directions: hockey-stick divergences on a grid, and bisection."""
    x = np.linspace(-9.0, 9.0, 9_001)
    one = stats.norm.pdf(x)
    other = stats.norm.pdf(x, mean, ratio)

    def divergence(epsilon: float) -> float:
        return max(
            float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), x)) for p, q in ((one, other), (other, one))
        )

    low, high = 0.0, 4.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if divergence(middle) <= delta else (middle, high)
    return high


def test_the_floor_by_drawing_cosines_and_integrating_densities() -> None:
    # 120 sets of 1,000 cosines of unobserved canaries; the law says 0.248 for 0.569 or more.
    rng = np.random.default_rng(20231122)
    sets = rng.standard_normal((120, 1000))
    values = [plain_epsilon(DELTA, float(one.mean()), float(one.std())) for one in sets]
    found = cross_checks.judge_floor().evidence
    hits = sum(value >= 0.569 for value in values)
    assert stats.binom.cdf(hits, 120, found["chance"]) > 5e-7
    assert stats.binom.sf(hits - 1, 120, found["chance"]) > 5e-7
    above = sum(value > found["median"] for value in values)
    assert min(stats.binom.cdf(above, 120, 0.5), stats.binom.sf(above - 1, 120, 0.5)) > 5e-7


def plain_threshold(delta: float, mean: float, ratio: float) -> float:
    """Largest ε of Equation (1) over a grid of thresholds between N(0, 1) and N(mean, ratio²)."""
    x = np.linspace(-9.0, 9.0, 9_001)
    spared, missed = stats.norm.cdf(x), stats.norm.cdf(x, mean, ratio)
    alarms = stats.norm.sf(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [
            np.log(np.maximum(one, 0.0) / other)
            for one, other in ((spared - delta, missed), (1.0 - delta - missed, alarms))
        ]
    return float(np.nanmax(terms))


@pytest.mark.parametrize(
    ("law", "estimate", "row"),
    [
        (distributions.fitted, plain_epsilon, Final.TABLE_3[3]),
        (distributions.fitted, plain_epsilon, Final.TABLE_3[1]),
        (distributions.thresholded, plain_threshold, FirstVersion.TABLE_3[1]),
    ],
)
def test_a_printed_estimate_is_the_median_at_its_distance(law, estimate, row) -> None:
    rng, printed = np.random.default_rng(20230208), float(row.estimate_final)
    sets = final_tables.cosine_distance(row, DELTA, law) + rng.standard_normal((100, 1000))
    above = sum(estimate(DELTA, float(one.mean()), float(one.std())) > printed for one in sets)
    assert min(stats.binom.cdf(above, 100, 0.5), stats.binom.sf(above - 1, 100, 0.5)) > 5e-7


def test_a_canary_in_every_round_tells_more_by_the_sum_than_by_the_largest() -> None:
    # Of T shifted normals the mean is √T shifts away, the largest one shift; a null's largest deviates by less than 1.
    final, everywhere = cross_checks.both_estimates(8, 1.0, 8, np.random.default_rng(3))
    assert final > everywhere > 1.0
    assert cross_checks.judge_above(Context(Effort.QUICK, 7)).verdict is Verdict.CONFIRMED


def test_more_rounds_hide_one_presentation_from_the_sum(monkeypatch) -> None:
    monkeypatch.setattr(cross_checks, "_TRAININGS", ((8, 1.0, 8, 0.5), (100, 0.2, 1, 0.1)))
    assert cross_checks.judge_above(Context(Effort.QUICK, 0)).verdict is Verdict.REFUTED


@pytest.mark.parametrize(("share", "verdict"), [(0.9, Verdict.CONFIRMED), (1.1, Verdict.REFUTED)])
def test_both_trainings_share_the_level(monkeypatch, share, verdict) -> None:
    monkeypatch.setattr(cross_checks, "both_estimates", lambda *_: (2.0, 1.0))
    monkeypatch.setattr(cross_checks, "share_above", lambda *_: share * LEVEL / 2)
    assert cross_checks.judge_above(Context(Effort.QUICK, 0)).verdict is verdict


def test_noise_that_is_noticed_beside_others_has_the_judges_level() -> None:
    """The design's noise is noticed in nine of ten runs: a run's lower tenth has the level as its joint p-value."""
    rows, rounds = [ROW] * 30, 2048
    design = cross_checks.judge_noise_alone(rows, DELTA, rounds).design
    assert design is not None
    share = 0.01 * float(design.alternative.removeprefix("in one row the noise is ").partition("%")[0])

    def joint(share: float) -> float:
        mean = 1.0 / (share * float(ROW.noise) * math.sqrt(rounds))
        printed = f"{distributions.quantile(distributions.fitted, 0.1, mean, DELTA):.9g}"
        off = replace(ROW, estimate_final=printed)
        return float(cross_checks.judge_noise_alone([*rows[1:], off], DELTA, rounds).evidence["p_value"])

    # The share is rounded to a hundredth.
    assert joint(share - 0.005) <= LEVEL <= joint(share + 0.005)


def test_each_of_both_trainings_must_show_it(monkeypatch) -> None:
    monkeypatch.setattr(cross_checks, "both_estimates", lambda *_: (2.0, 1.0))
    p_values = iter([0.0, 1.0])
    monkeypatch.setattr(cross_checks, "share_above", lambda *_: next(p_values))
    found = cross_checks.judge_above(Context(Effort.QUICK, 0))
    assert found.verdict is Verdict.REFUTED
    assert found.finding == (
        "in 200 of 200 trainings of 8 rounds at noise 1 and 8 presentations (medians 2.00 from the final model, 1.00 "
        "from all rounds); in 200 of 200 trainings of 100 rounds at noise 2 and 1 presentations (medians 2.00 from the "
        "final model, 1.00 from all rounds)"
    )


def test_tables_are_judged_at_their_own_rounds_and_delta() -> None:
    # 15 epochs of 3,383 users by 101 are printed as 500 rounds, and 5 by 34 are 497.5.
    expected = {
        "final.table3": (Final.TABLE_3, 2048, 341_000**-1.1),
        "final.table4": (Final.TABLE_4, 500, (3383 * 15) ** -1.1),
        "submission.table2": (Submission.TABLE_2, 2048, 341_000**-1.1),
        "submission.table3": (Submission.TABLE_3, 498, 3383**-1.1),
        "v1.table3": (FirstVersion.TABLE_3, 2048, 341_000**-1.1),
    }
    assert {name: table[:3] for name, table in cross_checks._BESIDE.items()} == expected
    laws = {name: table[3] for name, table in cross_checks._BESIDE.items()}
    assert laws.pop("v1.table3") is distributions.thresholded
    assert set(laws.values()) == {distributions.fitted}
    rules = {check.id: check.judge for check in cross_checks.CHECKS}
    for name, (rows, rounds, delta) in expected.items():
        erring = [row for row in rows if float(row.lower_all) < 6.0]
        assert rules[f"findings.estimates.lower-all.{name}"].args[:3] == (erring, rounds, delta)
        assert rules[f"findings.estimates.lower-final.{name}"].args[:2] == (rows, delta)
        # The first version's bounds are of other cosines than its estimates.
        assert rules[f"findings.estimates.lower-all.{name}"].args[4] is (name == "v1.table3")


@pytest.mark.parametrize(("apart", "verdict"), [(True, Verdict.CONFIRMED), (False, Verdict.REFUTED)])
def test_bounds_of_other_cosines_are_what_is_refuted(monkeypatch, apart, verdict) -> None:
    for judged, found in (
        (Verdict.REFUTED, verdict),
        (Verdict.CONFIRMED, Verdict.REFUTED if apart else Verdict.CONFIRMED),
    ):
        monkeypatch.setattr(cross_checks.final_bounds, "judge_lower_all", lambda *_, v=judged: Outcome(v, "", {}))
        assert cross_checks._lower_all((), 1, 1e-6, "", apart, Context(Effort.QUICK, 0)).verdict is found
