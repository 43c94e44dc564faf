from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims.canife import attack as canife_attack


def test_largest_estimate_is_the_largest_over_all_counts():
    for delta in (Fraction(1, 100), Fraction(1, 10**5)):
        for least in (0, 1):
            ratios = [
                (1 - delta - Fraction(one, 50)) / Fraction(other, 50)
                for one in range(least, 51)
                for other in range(max(least, 1), 51)
            ]
            assert canife_attack.largest(delta, least) == pytest.approx(np.log(float(max(ratios))), rel=1e-14)


def test_a_cap_at_the_texts_delta_is_confirmed_and_another_refuted():
    assert canife_attack.judge_cap("3.88").verdict is Verdict.CONFIRMED
    assert canife_attack.judge_cap("3.98").verdict is Verdict.REFUTED


def test_lower_limit_at_perfect_separation():
    # The limit of a rate with no errors in 50 trials solves (1 − p)^50 = 1/40.
    rate = 1.0 - 0.025 ** (1 / 50)
    assert canife_attack.lower_limit(0, 0) == pytest.approx(np.log((0.99 - rate) / rate), rel=1e-12)


def test_coverage_agrees_with_simulation():
    rng = np.random.default_rng(7)
    exact = canife_attack.coverage(0.01, [0.1])["lower"]
    false_positives, false_negatives = rng.binomial(50, 0.1, (2, 20000))
    high = stats.beta.ppf(0.975, np.arange(51) + 1, np.maximum(50 - np.arange(51), 1e-9))
    one, other = high[false_positives], high[false_negatives]
    lower = np.log(np.maximum((0.99 - one) / other, (0.99 - other) / one))
    covered = np.count_nonzero(lower <= np.log(0.89 / 0.1))
    # Level 1e-6.
    assert stats.binomtest(int(covered), 20000, exact).pvalue > 1e-6


def test_half_of_the_trials_is_confirmed_and_another_part_refuted():
    assert canife_attack.judge_insertion(50).verdict is Verdict.CONFIRMED
    assert canife_attack.judge_insertion(55).verdict is Verdict.REFUTED


def test_the_largest_estimate_of_split_trials_is_that_over_all_counts():
    for inserted, others in ((50, 50), (55, 45), (90, 10)):
        ratios = [
            (1 - 0.01 - one / inserted) / (other / others)
            for one in range(1, inserted + 1)
            for other in range(1, others + 1)
        ] + [
            (1 - 0.01 - one / others) / (other / inserted)
            for one in range(1, others + 1)
            for other in range(1, inserted + 1)
        ]
        assert canife_attack.split_cap(inserted, others) == pytest.approx(np.log(max(ratios)), rel=1e-12)
    assert canife_attack.split_cap(50, 50) == pytest.approx(canife_attack.largest(Fraction(1, 100), 1), rel=1e-14)


@pytest.mark.parametrize("half", [1, 2, 4])
def test_the_law_at_the_chosen_threshold_is_that_of_all_orders(half):
    values = canife_attack.estimates(0.01, half)
    largest = []
    for chosen in combinations(range(2 * half), half):
        with_canary = np.isin(np.arange(2 * half), chosen)
        fn = np.concatenate([[0], np.cumsum(with_canary)])
        fp = half - np.concatenate([[0], np.cumsum(~with_canary)])
        met = values[fp, fn]
        largest.append(met[np.isfinite(met)].max())
    law = canife_attack.selected(values)
    expected = [np.mean(np.isclose(largest, value, rtol=0, atol=1e-12)) for value in law.values]
    np.testing.assert_allclose(law.probabilities, expected, atol=1e-14)


def test_a_threshold_that_does_not_err_upwards_is_not_conservative():
    law = canife_attack.selected(canife_attack.estimates(0.01))
    assert canife_attack.judge_conservative(law).verdict is Verdict.CONFIRMED
    lower = law._replace(values=law.values - 1.0)
    assert canife_attack.judge_conservative(lower).verdict is Verdict.REFUTED


def test_the_choice_among_equal_estimates_bounds_how_often_limits_miss():
    least, most = canife_attack.selected_miss(0.01)
    assert 0.0 < least <= most
    # Simulated, at level 1e-6 each.
    rng, runs = np.random.default_rng(5), 20000
    with_canary = rng.permuted(np.tile(np.arange(100) < 50, (runs, 1)), axis=1)
    fn, fp = np.cumsum(with_canary, axis=1), 50 - np.cumsum(~with_canary, axis=1)
    values = canife_attack.estimates(0.01)[fp, fn]
    values[~np.isfinite(values)] = -np.inf
    best = values == values.max(axis=1, keepdims=True)
    high = stats.beta.ppf(0.975, np.arange(51) + 1, np.maximum(50 - np.arange(51), 1e-9))
    above = canife_attack.estimate(high[fp], high[fn], 0.01) > 0.0
    missed_by_one = np.any(best & above, axis=1)
    missed_by_all = missed_by_one & ~np.any(best & ~above, axis=1)
    assert stats.binomtest(int(missed_by_one.sum()), runs, most).pvalue > 1e-6
    assert stats.binomtest(int(missed_by_all.sum()), runs, least).pvalue > 1e-6


def test_algorithm_1_has_the_loss_of_equation_1_at_the_c_that_the_text_fixes():
    one, two = Fraction(1), Fraction(2)
    assert canife_attack.judge_loss(one, two).verdict is Verdict.CONFIRMED
    assert canife_attack.judge_loss(two, one).verdict is Verdict.REFUTED
    assert canife_attack.judge_loss(one, two).evidence["ratios"] == {"1": 1.0, "2": 4.0}


def test_equal_estimates_of_several_counts_are_equal_by_exact_fractions(monkeypatch):
    found, finite = canife_attack.selected_miss(0.01), np.isfinite(canife_attack.estimates(0.01))
    ratios = [
        max((Fraction(99, 2) - count) / other for count, other in ((fp, fn), (fn, fp))) if fp and fn else Fraction(-1)
        for fp in range(51)
        for fn in range(51)
    ]
    place = {ratio: float(i) for i, ratio in enumerate(sorted(set(ratios)))}
    ranks = np.where(finite, np.reshape([place[ratio] for ratio in ratios], (51, 51)), np.inf)
    monkeypatch.setattr(canife_attack, "estimates", lambda _: ranks)
    assert canife_attack.selected_miss(0.01) == pytest.approx(found, rel=1e-12)
