import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.check import declared_tests
from canaryproof.verify.check.declared_tests import POWER

LEVEL = 1e-6


def reach(level, sides=2):
    return stats.norm.isf(level / sides) + stats.norm.ppf(POWER)


def test_looks_end_with_all_runs():
    assert declared_tests.looks(1600) == (100, 400, 1600)
    assert declared_tests.looks(10) == (1, 2, 10)
    assert len(declared_tests.looks(7)) == declared_tests.LOOKS


@pytest.mark.parametrize("runs", [50, 20_000])
def test_visible_means_and_spreads_are_those_of_normal_tests(runs):
    assert declared_tests.visible_mean(runs, LEVEL) == pytest.approx(reach(LEVEL) / math.sqrt(runs), rel=1e-3)
    spread = math.exp(reach(LEVEL) / math.sqrt(2 * (runs - 1)))
    assert declared_tests.visible_spread(runs, LEVEL) == pytest.approx(spread, rel=1e-3)


def test_runs_for_a_share_give_the_power():
    runs = declared_tests.runs_for_share(0.94, 0.8, LEVEL)
    rejected = stats.binom.ppf(LEVEL, runs, 0.94)
    # The normal law that the size rests on is rough at this level; the exact power is near.
    assert stats.binom.cdf(rejected, runs, 0.8) == pytest.approx(POWER, abs=0.1)


@pytest.mark.parametrize("samples", [1, 2])
def test_visible_distances_are_noticed_and_level_is_kept(samples):
    runs, level = 400, 0.01
    distance = declared_tests.visible_distance(runs, level, samples)
    rng = np.random.default_rng(7)
    # Uniform numbers of which a share is moved to an end: the distribution functions differ by it there.
    noticed = 0
    for _ in range(100):
        moved = np.where(rng.random(runs) < distance, 0.0, rng.random(runs))
        test = stats.kstest(moved, "uniform") if samples == 1 else stats.ks_2samp(moved, rng.random(runs))
        noticed += test.pvalue < level
    # Level of this test: binomial, 100 trials at 0.9; 70 or fewer have probability 1e-8.
    assert noticed > 70


@pytest.mark.parametrize(("power", "expected"), [(2, 1.0), (4, 3.0), (1, 0.0)])
def test_p_values_of_means_are_uniform(power, expected):
    values = np.random.default_rng(3).standard_normal((4000, 2000)) ** power
    found = np.array([declared_tests.mean_p_value(row, expected) for row in values])
    for level in (0.5, 0.05, 0.005):
        # Fourth powers are the farthest from a gamma law: 1.6 times the level in simulations, at 0.005.
        allowed = stats.binom.isf(LEVEL / 3, len(found), min(1.0, (1.25 if level > 0.01 else 2.0) * level))
        assert (found < level).sum() <= allowed
        assert (found < level).sum() >= stats.binom.ppf(LEVEL / 3, len(found), 0.6 * level)


def test_a_mean_that_is_off_has_a_small_p_value():
    values = np.random.default_rng(5).standard_normal(20_000) ** 2
    assert declared_tests.mean_p_value(values, 1.1) < 1e-9
    assert declared_tests.mean_p_value(values, 0.9) < 1e-9
    assert declared_tests.mean_p_value(values - 1.0, 0.1) < 1e-9
