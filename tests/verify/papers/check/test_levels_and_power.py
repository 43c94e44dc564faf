import math

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import rel_entr

from canaryproof.verify.audit import levels
from canaryproof.verify.audit.levels import POWER
from canaryproof.verify.papers.check import p_values, power
from canaryproof.verify.papers.check.p_values import mean_limits
from canaryproof.verify.papers.check.power import visible_factor
from canaryproof.verify.papers.suites.canife.ratios import FACTOR, Ratio, capped_ratio, ratio


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


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    "law", [stats.beta(8.0, 0.2), stats.bernoulli(0.9), pytest.param(stats.uniform(), marks=pytest.mark.deep)]
)
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


def test_four_limits_of_a_factor_share_its_level():
    rng = np.random.default_rng(8)
    without, with_fault = rng.random((2, 60))
    found = capped_ratio(without, with_fault)

    def tail(mean, expectation):
        """Hoeffding's bound of a mean so far from its expectation."""
        return math.exp(-60 * (rel_entr(mean, expectation) + rel_entr(1.0 - mean, 1.0 - expectation)))

    def limit(mean, end):
        return optimize.brentq(lambda p: tail(mean, p) - 2.5e-7, mean, end)

    ends = {
        (name, end): limit(float(values.mean()), end)
        for name, values in (("without", without), ("with", with_fault))
        for end in (1e-9, 1.0 - 1e-9)
    }
    assert found.low == pytest.approx(ends["with", 1e-9] / ends["without", 1.0 - 1e-9], rel=1e-6)
    assert found.high == pytest.approx(ends["with", 1.0 - 1e-9] / ends["without", 1e-9], rel=1e-6)


def test_visible_factors_are_seen_as_often_as_said():
    runs, power = 24, 0.9
    shift = visible_factor(runs, power)
    rng = np.random.default_rng(3)
    seen = sum(
        ratio(np.ones(runs), FACTOR * np.exp(0.1 * (shift + rng.standard_normal(runs)))).moves == "rises"
        for _ in range(2000)
    )
    assert stats.binomtest(seen, 2000, power).pvalue > 1e-6


LEVEL = 1e-6


def reach(level, sides=2):
    return stats.norm.isf(level / sides) + stats.norm.ppf(POWER)


def test_looks_end_with_all_runs():
    assert levels.looks(1600) == (100, 400, 1600)
    assert levels.looks(10) == (1, 2, 10)
    assert len(levels.looks(7)) == levels.LOOKS


@pytest.mark.parametrize("runs", [50, 20_000])
def test_visible_means_and_spreads_are_those_of_normal_tests(runs):
    assert power.visible_mean(runs, LEVEL) == pytest.approx(reach(LEVEL) / math.sqrt(runs), rel=1e-3)
    spread = math.exp(reach(LEVEL) / math.sqrt(2 * (runs - 1)))
    assert power.visible_spread(runs, LEVEL) == pytest.approx(spread, rel=1e-3)


def test_runs_for_a_share_give_the_power():
    runs = power.runs_for_share(0.94, 0.8, LEVEL)
    rejected = stats.binom.ppf(LEVEL, runs, 0.94)
    # The normal law that the size rests on is rough at this level; the exact power is near.
    assert stats.binom.cdf(rejected, runs, 0.8) == pytest.approx(POWER, abs=0.1)


@pytest.mark.parametrize("samples", [1, 2])
def test_visible_distances_are_noticed_and_level_is_kept(samples):
    runs, level = 400, 0.01
    distance = power.visible_distance(runs, level, samples)
    rng = np.random.default_rng(7)
    # Uniform numbers of which a share is moved to an end: the distribution functions differ by it there.
    noticed = 0
    for _ in range(100):
        moved = np.where(rng.random(runs) < distance, 0.0, rng.random(runs))
        test = stats.kstest(moved, "uniform") if samples == 1 else stats.ks_2samp(moved, rng.random(runs))
        noticed += test.pvalue < level
    # Level of this test: binomial, 100 trials at 0.9; 70 or fewer have probability 1e-8.
    assert noticed > 70


# Fourth powers are the farthest from what the test supposes.
@pytest.mark.parametrize(
    ("power", "expected"), [(4, 3.0), *(pytest.param(*row, marks=pytest.mark.deep) for row in ((2, 1.0), (1, 0.0)))]
)
def test_p_values_of_means_are_uniform(power, expected):
    values = np.random.default_rng(3).standard_normal((4000, 2000)) ** power
    found = np.array([p_values.mean_p_value(row, expected) for row in values])
    for level in (0.5, 0.05, 0.005):
        # Fourth powers are the farthest from a gamma law: 1.6 times the level in simulations, at 0.005.
        allowed = stats.binom.isf(LEVEL / 3, len(found), min(1.0, (1.25 if level > 0.01 else 2.0) * level))
        assert (found < level).sum() <= allowed
        assert (found < level).sum() >= stats.binom.ppf(LEVEL / 3, len(found), 0.6 * level)


def test_a_mean_that_is_off_has_a_small_p_value():
    values = np.random.default_rng(5).standard_normal(20_000) ** 2
    assert p_values.mean_p_value(values, 1.1) < 1e-9
    assert p_values.mean_p_value(values, 0.9) < 1e-9
    assert p_values.mean_p_value(values - 1.0, 0.1) < 1e-9


def test_shares_count_what_was_hit_too():
    assert p_values.share_above(3, 3, 0.5) == p_values.share_below(0, 3, 0.5) == 0.125
    assert p_values.share_above(0, 3, 0.5) == p_values.share_below(3, 3, 0.5) == 1.0


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_p_values_of_shares_are_sums_of_binomial_terms(share):
    terms = [math.comb(7, hits) * share**hits * (1.0 - share) ** (7 - hits) for hits in range(8)]
    for hits in range(8):
        assert p_values.share_above(hits, 7, share) == pytest.approx(sum(terms[hits:]))
        assert p_values.share_below(hits, 7, share) == pytest.approx(sum(terms[: hits + 1]))


def test_p_values_of_signed_means_are_two_sided():
    values = np.random.default_rng(6).standard_normal(50)
    for expected in (0.3, -0.3):
        assert p_values.mean_p_value(values, expected) == pytest.approx(stats.ttest_1samp(values, expected).pvalue)


@pytest.mark.parametrize("values", [(0.0, 0.5, 4.0, 1.5), (2.0, 3.0, 7.0)])
@pytest.mark.parametrize("expected", [1.0, 1.6, 9.0])
def test_p_values_of_positive_means_are_those_of_a_gamma_law(values, expected):
    """Of the expected mean, and of the coefficient of variation that a mean of the sample has."""
    variation = stats.variation(values, ddof=1) / math.sqrt(len(values))
    law = stats.gamma(variation**-2, scale=expected * variation**2)
    assert (law.mean(), law.std() / law.mean()) == pytest.approx((expected, variation))
    side = min(law.cdf(np.mean(values)), law.sf(np.mean(values)))
    assert p_values.mean_p_value(np.array(values), expected) == pytest.approx(2.0 * side)


def test_p_values_beyond_a_bound_are_students_and_of_one_side():
    values = np.array([0.1, 0.4, 0.2, 0.9])
    for bound in (0.0, 0.3, 0.7):
        ratio = (values.mean() - bound) / (values.std(ddof=1) / 2.0)
        assert p_values.above(values, bound) == pytest.approx(stats.t.sf(ratio, 3))
        assert p_values.below(values, bound) == pytest.approx(stats.t.cdf(ratio, 3))
    assert (p_values.above(values), p_values.below(values)) == (
        p_values.above(values, 0.0),
        p_values.below(values, 0.0),
    )


def test_equal_values_at_a_bound_are_no_sign_of_more():
    values = np.full(10, 0.5)
    assert p_values.above(values, 0.5) == p_values.below(values, 0.5) == 1.0
    assert p_values.above(values, 0.4) == p_values.below(values, 0.6) == 0.5**10


@pytest.mark.parametrize("samples", [1, 2])
def test_visible_distances_are_by_massarts_inequality_for_every_sample(samples):
    def distance(probability):
        """Return how far some sample is from its law with at most this probability."""
        return optimize.brentq(lambda x: samples * 2.0 * math.exp(-2.0 * 400 * x**2) - probability, 1e-9, 1.0)

    rejected, missed = map(distance, (LEVEL, 1.0 - POWER))
    assert power.visible_distance(400, LEVEL, samples) == pytest.approx(samples * (rejected + missed), rel=1e-6)


def test_runs_for_a_share_have_each_law_its_own_deviation():
    claimed, alternative = 0.94, 0.8
    runs = power.runs_for_share(claimed, alternative, LEVEL)

    def gap(size):
        """How far the alternative's best tenth is below the critical value."""
        critical = stats.norm.ppf(LEVEL, claimed, math.sqrt(claimed * (1.0 - claimed) / size))
        return critical - stats.norm.ppf(POWER, alternative, math.sqrt(alternative * (1.0 - alternative) / size))

    assert gap(runs - 1) < 0.0 <= gap(runs)


def test_visible_shares_reject_at_the_level_and_with_the_power():
    least = power.visible_share(200, 0.05, 3, LEVEL)
    # The fewest hits that half of the level allows to reject.
    fewest = next(hits for hits in range(200) if stats.binom.sf(hits - 1, 200, 0.05) <= 0.5 * LEVEL)
    assert stats.binom.sf(fewest - 1, 200, least) == pytest.approx(1.0 - 0.1 / 3.0)


def test_the_least_share_has_the_wanted_power_and_none_below_has():
    for wanted in (1.0 / 3.0, 0.9):
        least = power.least_share(lambda share: share**2, wanted)
        assert least**2 >= wanted
        assert (least - 1e-14) ** 2 < wanted
    assert power.least_share(lambda _: 0.0, 0.9) == 1.0


def test_tests_are_at_a_checks_level_unless_another_is_given():
    assert power.visible_shift(20, 2) == power.visible_shift(20, 2, LEVEL)
    # A difference is looked for on one side.
    assert power.visible_difference(20) == power.visible_difference(20, 1, 0.5 * LEVEL)
    assert power.visible_share(20, 0.1, 2) == power.visible_share(20, 0.1, 2, LEVEL)
    assert power.visible_distance(20, LEVEL) == power.visible_distance(20, LEVEL, 1)
    # A factor's limits have half of the level each.
    assert visible_factor(20, 0.95) == power.visible_shift(20, 2)


def test_the_test_of_two_means_is_welchs():
    low, high = np.array([0.0, 1.0, 5.0, 9.0]), np.array([6.0, 6.5, 7.5, 7.0, 6.2, 6.9, 7.1])
    parts = [values.var(ddof=1) / len(values) for values in (low, high)]
    # Welch and Satterthwaite's degrees of freedom; those of equal variances would be 9.
    degrees = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (low, high), strict=True)
    )
    ratio = (low.mean() - high.mean()) / math.sqrt(sum(parts))
    assert p_values.less(low, high) == pytest.approx(stats.t.cdf(ratio, degrees))
    assert p_values.less(high, low) == pytest.approx(stats.t.sf(ratio, degrees))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("size", [5, 14, 40, 400])
def test_visible_shifts_and_differences_are_those_of_students_tests(size, parts):
    """A shift is tested at half of the level, as it may be to either side; a difference at the level that is given."""
    for shift, level, freedom, root in (
        (power.visible_shift(size, parts, LEVEL), 0.5 * LEVEL, size - 1, math.sqrt(size)),
        (power.visible_difference(size, parts, LEVEL), LEVEL, 2 * size - 2, math.sqrt(size / 2.0)),
    ):
        # A sample's deviation has a root of a χ² law, and its mean is normal given that.
        limits = stats.t.isf(level, freedom) * np.sqrt(
            stats.chi2.ppf((np.arange(2000) + 0.5) / 2000, freedom) / freedom
        )
        assert stats.norm.sf(limits - shift * root).mean() == pytest.approx(1.0 - 0.1 / parts, abs=1e-3)


def test_a_part_has_a_tenth_of_a_checks_level():
    """Its p-values may be off tenfold."""
    assert levels.LEVEL == LEVEL
    assert math.isclose(levels.PART_LEVEL, 0.1 * LEVEL)
    assert levels.POWER == 0.9
