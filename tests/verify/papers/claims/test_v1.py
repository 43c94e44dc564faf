import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.threshold_attack import threshold_epsilon
from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.accounting import analytical
from canaryproof.verify.papers.check.results import Context, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.claims import final_setting, table_judges, v1
from canaryproof.verify.papers.claims.transcripts import FirstVersion, Row
from tests.verify.papers.claims.test_simulated_tables import joint

QUICK = Context(Effort.QUICK, 0)
DELTA = FirstVersion.DELTA
LIKE_ROW_4 = Row("0.1836", "100", "2.44", "92.0", "0.802", "0.865")


def test_ids_are_unique_and_all_are_statements_of_the_document() -> None:
    ids = [check.id for check in v1.CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("v1.") for name in ids)
    assert {check.subject for check in v1.CHECKS} == {Subject.DOCUMENT}


def test_another_seed_changes_no_verdict(quick_run):
    names = ("v1.table1.row1", "v1.section4.advantage", "v1.footnote5")
    for name in names:
        check = next(check for check in v1.CHECKS if check.id == name)
        assert check.judge(Context(Effort.QUICK, 7)).verdict is quick_run.results[name].verdict


@pytest.mark.parametrize(
    ("judge", "verdict"),
    [
        (partial(v1.judge_users, "342k"), Verdict.CONFIRMED),
        (partial(v1.judge_quotient, "0.082"), Verdict.CONFIRMED),
        (partial(v1.judge_rate, "4.90e-4"), Verdict.CONFIRMED),
        (partial(v1.judge_epochs, epochs=(1, 4096)), Verdict.REFUTED),
        (partial(v1.judge_epsilon, "0.1836", "105"), Verdict.REFUTED),
        (partial(v1.judge_clipping, "4.3"), Verdict.REFUTED),
        (partial(v1.judge_cell, ("4.22", "1.0", "0.80", "0.148"), "pinned", QUICK), Verdict.REFUTED),
        (partial(v1.judge_cell, ("4.22", "1.0", "1.00", "0.310"), "pinned", QUICK), Verdict.REFUTED),
        (partial(v1.judge_cell, ("4.22", "1.0", "1.37", "0.326"), "pinned", QUICK), Verdict.QUALIFIED),
        (partial(v1.judge_cell, ("4.22", "1.0", "1.37", "0.326"), "fitted", QUICK), Verdict.CONFIRMED),
        (partial(table_judges.judge_threat_models, (LIKE_ROW_4,)), Verdict.CONFIRMED),
        (partial(table_judges.judge_threat_models, (replace(LIKE_ROW_4, estimate_final="60"),)), Verdict.QUALIFIED),
        (partial(table_judges.judge_threat_models, (replace(LIKE_ROW_4, estimate_final="93"),)), Verdict.REFUTED),
        (partial(table_judges.judge_separation, (LIKE_ROW_4,)), Verdict.CONFIRMED),
        (partial(table_judges.judge_separation, (replace(LIKE_ROW_4, lower_all="9.3"),)), Verdict.REFUTED),
        (
            partial(v1.judge_high, (LIKE_ROW_4, replace(LIKE_ROW_4, estimate_all="4.39")), v1.FirstVersion.DELTA),
            Verdict.QUALIFIED,
        ),
        (partial(v1.judge_high, (replace(LIKE_ROW_4, estimate_all="4.39"),), v1.FirstVersion.DELTA), Verdict.REFUTED),
        (partial(table_judges.judge_regime, (LIKE_ROW_4,)), Verdict.CONFIRMED),
        (partial(table_judges.judge_regime, (LIKE_ROW_4,), stated=False), Verdict.QUALIFIED),
        (partial(table_judges.judge_regime, (replace(LIKE_ROW_4, estimate_final="2.1"),)), Verdict.REFUTED),
    ],
)
def test_another_number_changes_the_verdict(judge: partial[Outcome], verdict: Verdict) -> None:
    assert judge().verdict is verdict


def test_poisson_sampling_lies_between_its_own_counts() -> None:
    # The participations are Poisson with mean 1, nearly: nine or more have probability 1.1e-6, eight or more 1.0e-5.
    # Hence PLD's ε at δ = 8.2e-7 is about that of nine known rounds, and RDP's 100,000 is slack.
    delta, sigma = FirstVersion.DELTA, 0.0644
    assert stats.poisson.sf(8, 1.0) == pytest.approx(1.1e-6, rel=0.05)
    loss = analytical.pld(sigma, delta, 2048, 1 / 2048)
    assert gaussian_mechanism.epsilon(1e-4, sigma / 7**0.5) < loss < gaussian_mechanism.epsilon(delta, sigma / 10**0.5)


def test_printed_tables_have_their_shape() -> None:
    assert [len(row) for row in FirstVersion.TABLE_4.values()] == [len(FirstVersion.REPETITIONS)] * 3
    assert len(FirstVersion.TABLE_2) == len(FirstVersion.TABLE_3) == 5


def test_a_repeated_claim_is_the_final_versions() -> None:
    here = {check.id: check for check in v1.CHECKS}["v1.section5.rounds"]
    there = {check.id: check for check in final_setting.CHECKS}["final.section5.1.epoch"]
    assert here.judge(QUICK) == there.judge(QUICK)
    assert (here.statement, here.subject) == (there.statement, there.subject)


def test_a_calibration_is_judged_within_the_rounding_of_the_noise() -> None:
    def readings(sigma: float) -> dict[str, float]:
        return {"inverse": 1.0 / sigma, "far": 100.0 / sigma}

    def judge(epsilon: str, stated: str = "inverse") -> Verdict:
        return table_judges.calibrated("0.50", epsilon, readings, 1e-6, frozenset({stated})).verdict

    # σ is between 0.495 and 0.505, so that 1/σ is between 1.980 and 2.020.
    assert (judge("2.0"), judge("2.03"), judge("1.97")) == (Verdict.CONFIRMED, Verdict.REFUTED, Verdict.REFUTED)
    assert judge("2.02", stated="far") is Verdict.QUALIFIED
    # A whole number is what the noise was calibrated to, to a thousandth: 100/σ is between 198.0 and 202.0.
    whole = {"202": Verdict.CONFIRMED, "203": Verdict.REFUTED, "198": Verdict.CONFIRMED, "197": Verdict.REFUTED}
    assert {epsilon: judge(epsilon, stated="far") for epsilon in whole} == whole


@pytest.mark.parametrize("row", FirstVersion.TABLE_1, ids=lambda row: row[1])
def test_a_cell_has_the_p_value_of_the_fifty_that_were_printed(row: tuple[str, str, str, str]) -> None:
    found = v1.judge_cell(row, "pinned", QUICK).evidence["readings"]["pinned"]
    mean, deviation = ((float(row[2]) - found["mean"]) / found["deviation"], float(row[3]) / found["deviation"])
    # Ours are 4,000, whose own errors move it a little.
    assert found["p_value"] == pytest.approx(joint(mean, deviation), rel=0.15)


@pytest.mark.parametrize(("share", "told"), [(0.9, True), (1.1, False)])
def test_two_tests_at_each_of_three_epsilons_share_the_level(monkeypatch, share: float, told: bool) -> None:
    monkeypatch.setattr(v1, "mean_p_value", lambda *_: share * LEVEL / 6)
    assert (v1.judge_advantage(QUICK).verdict is not Verdict.INCONCLUSIVE) is told


def test_errors_of_the_first_versions_estimates_are_those_of_their_means() -> None:
    rng = np.random.default_rng(17)
    for row in v1.judge_advantage(QUICK).evidence["rows"]:
        distance = 1.0 / gaussian_mechanism.noise_multiplier(row["epsilon"], DELTA)
        cosines = distance + rng.standard_normal((400, 1000))
        estimates = threshold_epsilon(DELTA, cosines.mean(axis=1), cosines.std(axis=1))
        # Deviations of 400 are known to 3.5%, of two such; a mean of 400 has a twentieth of the deviation.
        assert row["error"] == pytest.approx(estimates.std() / 20.0, rel=0.25)


def test_the_gain_that_is_noticed_is_noticed_as_often_as_said() -> None:
    found = v1.judge_threshold_choice(QUICK)
    visible = float(found.design.alternative.removeprefix("it is by ")) / found.evidence["error"]
    noticed = stats.nct.sf(stats.t.isf(LEVEL, 199), 199, visible)
    # Two digits are printed.
    assert noticed == pytest.approx(0.9, abs=0.05)


def test_three_of_fifteen_and_the_largest_two_by_exact_fractions() -> None:
    def at_least(least: int, share: Fraction) -> float:
        return float(sum(math.comb(15, n) * share**n * (1 - share) ** (15 - n) for n in range(least, 16)))

    found = v1.judge_three("3")
    assert found.evidence["chance"] == pytest.approx(at_least(3, Fraction(3, 20)), rel=1e-12)
    largest, second = found.evidence["p_values"][:2]
    chances = f"with probability {at_least(1, Fraction(largest)):.2f} and {at_least(2, Fraction(second)):.3f}"
    assert found.finding.endswith(chances)


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.3), (0.0, 0.75), (0.45, 1.0)])
def test_either_test_of_a_cell_pays_for_two(mean: float, deviation: float) -> None:
    _, epsilon, *_ = row = FirstVersion.TABLE_1[0]
    found = v1.judge_cell(row, "pinned", QUICK).evidence["readings"]["pinned"]
    printed = (found["mean"] + mean * found["deviation"], deviation * found["deviation"])
    moved = v1.judge_cell(("", epsilon, *map(repr, printed)), "pinned", QUICK).evidence["readings"]["pinned"]
    assert moved["p_value"] == pytest.approx(joint(mean, deviation), rel=0.15)


@pytest.mark.parametrize(
    ("excesses", "verdict", "small"),
    [
        ((0.09, 0.09, 0.09), Verdict.CONFIRMED, ""),
        ((0.09, 0.11, 0.09), Verdict.QUALIFIED, "1, 10"),
        ((0.11, 0.11, 0.11), Verdict.QUALIFIED, "none"),
        ((0.09, 0.09, -0.01), Verdict.REFUTED, ""),
        ((0.09, 0.0, 0.11), Verdict.INCONCLUSIVE, ""),
        ((0.09, 0.09, 0.1), Verdict.INCONCLUSIVE, ""),
    ],
)
def test_slightly_is_a_tenth_at_each_epsilon(monkeypatch, excesses, verdict, small) -> None:
    # Deviations so small that every excess is seen, and none where there is none.
    spread = 1e-6 * stats.norm.ppf((np.arange(400) + 0.5) / 400)
    pairs = list(zip((1, 3, 10), excesses, strict=True))
    drawn = iter([epsilon * (1.0 + excess) + spread for epsilon, excess in pairs])
    monkeypatch.setattr(v1, "threshold_epsilon", lambda *_: next(drawn))
    found = v1.judge_advantage(QUICK)
    assert found.verdict is verdict
    begins = f"higher, but slightly (by 10%) only at ε = {small}: mean" if small else "mean excess"
    assert found.finding.startswith(begins)
    listed = (f"{epsilon * excess:+.3f} ± 0.000 ({excess:+.0%}) at ε = {epsilon}" for epsilon, excess in pairs)
    assert verdict is not Verdict.CONFIRMED or found.finding.endswith(", ".join(listed))


def test_a_gain_in_the_mean_is_seen_by_students_test(monkeypatch) -> None:
    found = v1.judge_threshold_choice(QUICK)
    gain, error, above = (found.evidence[name] for name in ("gain", "error", "above"))
    # "Somewhat" is less than a quarter of ε.
    assert gain > 0.75
    assert found.verdict is Verdict.QUALIFIED
    assert found.finding == (
        f"higher, but by {gain / 3.0:.0%} of ε: at ε = 3 the bound rises by {gain:.3f} ± {error:.3f} in the mean over "
        f"one with a threshold from another run, and lies above the true ε in {above} of 200 runs"
    )
    p_value = stats.t.sf(gain / error, 199)
    for share, verdict in ((2.0, Verdict.QUALIFIED), (0.5, Verdict.INCONCLUSIVE)):
        monkeypatch.setattr(v1, "LEVEL", share * p_value)
        assert v1.judge_threshold_choice(QUICK).verdict is verdict
    # Bounds by another road: a loop over thresholds, of other draws. They are above ε as often.
    rng, distance = np.random.default_rng(55), 1.0 / gaussian_mechanism.noise_multiplier(3.0, DELTA)
    limits = stats.beta.isf(0.05, np.arange(1000) + 0.5, 1000.5 - np.arange(1000))
    wrong = 0
    for _ in range(400):
        cosines = np.sort(distance + rng.standard_normal(1000))
        alarms = stats.norm.sf(cosines)
        bound = np.log(np.maximum(1 - DELTA - alarms, 1e-300) / limits), np.log((1 - DELTA - limits) / alarms)
        wrong += np.max(bound) > 3.0
    assert stats.fisher_exact([[wrong, 400 - wrong], [above, 200 - above]]).pvalue > 1e-6
