import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.bounds.band import band, chosen_ranks, local_level, staying_above


def by_enumeration(levels):
    """P(U₍ⱼ₎ ≥ Lⱼ for all j), a sum over how many points lie between consecutive levels, in rational arithmetic."""
    edges = [Fraction(0), *levels, Fraction(1)]
    count = len(levels)

    def ways(cell, below):
        if cell == count:
            return (edges[-1] - edges[-2]) ** (count - below) / math.factorial(count - below)
        width = edges[cell + 1] - edges[cell]
        # At the end of a cell no more than its index may lie below.
        return sum(width**n / math.factorial(n) * ways(cell + 1, below + n) for n in range(cell - below + 1) if n >= 0)

    return math.factorial(count) * ways(0, 0)


@pytest.mark.parametrize(
    "levels",
    [
        [Fraction(1, 5)],
        [Fraction(1, 10), Fraction(1, 3)],
        [Fraction(1, 20), Fraction(1, 20), Fraction(1, 4)],
        [Fraction(1, 50), Fraction(1, 12), Fraction(1, 5), Fraction(2, 5), Fraction(3, 5)],
        [Fraction(0), Fraction(0), Fraction(1, 2)],
    ],
)
def test_probability_is_the_exact_one_for_few_variables(levels):
    expected = by_enumeration(levels)
    ranks = np.arange(1, len(levels) + 1)
    assert staying_above(np.array(levels, dtype=float), ranks, len(levels)) == pytest.approx(float(expected), rel=1e-12)


def test_one_variable_and_one_rank_are_binomial():
    assert staying_above(np.array([0.3]), np.array([1]), 1) == pytest.approx(0.7, rel=1e-14)
    # Only the third of ten is bounded: fewer than three below.
    expected = stats.binom.cdf(2, 10, 0.2)
    assert staying_above(np.array([0.2]), np.array([3]), 10) == pytest.approx(expected, rel=1e-12)


def test_a_level_that_no_variable_keeps():
    assert staying_above(np.array([0.0, 0.999999]), np.array([1, 2]), 2) == pytest.approx(1e-6 * 2 - 1e-12, rel=1e-6)


def test_a_thousand_variables_cross_as_often_as_they_should():
    count, runs = 1000, 40_000
    levels = band(count, 0.05)[1:]
    rng = np.random.default_rng(7)
    crossed = sum(
        int(np.any(np.sort(rng.random((100, count)), axis=1) < levels, axis=1).sum()) for _ in range(runs // 100)
    )
    # Exact to 1e-5 of α by construction; the test's level is 1e-6, and 5.8% would be seen with probability 0.99.
    assert 1e-6 < stats.binom.cdf(crossed, runs, 0.05) < 1.0 - 1e-6
    assert stats.binom.cdf(stats.binom.isf(1e-6, runs, 0.05), runs, 0.058) < 0.01


@pytest.mark.parametrize("count", [1, 2, 3, 10, 63, 64, 65, 129, 1000])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
def test_bands_rise_and_keep_their_level(count, alpha):
    levels = band(count, alpha)
    assert levels[0] == 0.0
    assert len(levels) == count + 1
    assert np.all(np.diff(levels) >= 0.0)
    assert levels[-1] < 1.0
    ranks = chosen_ranks(count)
    assert ranks[0] == 1
    assert ranks[-1] == count
    local = local_level(count, alpha)
    assert alpha / len(ranks) * (1.0 - 1e-9) <= local <= alpha * (1.0 + 1e-12)
    assert 1.0 - staying_above(levels[ranks], ranks, count) <= alpha + 1e-12


def test_the_level_is_not_wasted():
    ranks = chosen_ranks(200)
    assert 1.0 - staying_above(band(200, 0.05)[ranks], ranks, 200) >= 0.05 * 0.999
