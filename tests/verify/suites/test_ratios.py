import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.check.declared_tests import FACTOR, Ratio, capped_ratio, mean_limits, ratio, seen_ratio


@pytest.mark.parametrize(
    ("low", "high", "moves"),
    [(1.3, 2.0, "rises"), (0.1, 0.7, "falls"), (0.81, 1.24, "unmoved"), (0.79, 1.1, "open"), (1.1, 1.3, "open")],
)
def test_what_is_certain_of_a_factor(low, high, moves):
    assert Ratio(1.0, low, high).moves == moves


def test_limits_of_a_factor_are_those_of_a_paired_test():
    rng = np.random.default_rng(1)
    without = rng.lognormal(0.0, 1.0, 30)
    with_fault = without * rng.lognormal(0.5, 0.1, 30)
    found = ratio(without, with_fault)
    # A paired test against a limit has as p-value the level of one side.
    for end, side in ((found.low, "greater"), (found.high, "less")):
        test = stats.ttest_rel(np.log(with_fault), np.log(without * end), alternative=side)
        assert test.pvalue == pytest.approx(5e-7, rel=1e-6)
    assert found.low < found.value < found.high


def test_nothing_is_certain_where_a_number_is_not_positive():
    found = ratio(np.array([1.0, 0.0]), np.array([2.0, 1.0]))
    assert (found.value, found.low, found.high) == (3.0, 0.0, math.inf)
    assert found.moves == "open"


@pytest.mark.parametrize("law", [stats.beta(8.0, 0.2), stats.bernoulli(0.9), stats.uniform()])
def test_limits_of_means_keep_their_level(law):
    values = law.rvs((4000, 40), random_state=np.random.default_rng(2))
    level = 0.05
    limits = [mean_limits(row, level) for row in values]
    for missed in (sum(low > law.mean() for low, _ in limits), sum(high < law.mean() for _, high in limits)):
        assert missed <= stats.binom.isf(1e-6, len(values), level)


def test_limits_of_a_mean_at_its_end():
    assert mean_limits(np.ones(50), 1e-3) == (pytest.approx(1e-3 ** (1 / 50)), 1.0)
    assert mean_limits(np.zeros(50), 1e-3) == (0.0, pytest.approx(1.0 - 1e-3 ** (1 / 50)))
    found = capped_ratio(np.ones(96), np.ones(96))
    assert found.value == 1.0
    assert 1.0 / FACTOR < found.low < found.high < FACTOR


def test_visible_factors_are_seen_as_often_as_said():
    runs, power = 24, 0.9
    shift = seen_ratio(runs, power)
    rng = np.random.default_rng(3)
    seen = sum(
        ratio(np.ones(runs), FACTOR * np.exp(0.1 * (shift + rng.standard_normal(runs)))).moves == "rises"
        for _ in range(2000)
    )
    assert stats.binomtest(seen, 2000, power).pvalue > 1e-6
