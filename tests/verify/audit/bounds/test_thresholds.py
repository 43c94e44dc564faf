import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.bounds.catalogue import MEASURED
from canaryproof.verify.audit.bounds.lower_bound import discrete_null, normal_null, prepare
from canaryproof.verify.audit.bounds.thresholds import (
    band,
    band_ranks,
    best_of_thresholds,
    bonferroni,
    fixed_threshold,
    local_level,
    rates,
    simultaneous,
    skipped_ranks,
    split_counts,
    staying_above,
    sweep,
)


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
    ranks = band_ranks(count)
    assert ranks[0] == 1
    assert ranks[-1] == count
    local = local_level(count, alpha)
    # Less by a rung of the ladder at most.
    assert alpha / len(ranks) * (1.0 - 1.1e-3) <= local <= alpha * (1.0 + 1e-12)
    assert 1.0 - staying_above(levels[ranks], ranks, count) <= alpha + 1e-12


@pytest.mark.parametrize("skipped", [0, 9, 150])
def test_the_level_is_not_wasted(skipped):
    ranks = band_ranks(200, skipped)
    assert 0.05 * 0.999 <= 1.0 - staying_above(band(200, 0.05, skipped)[ranks], ranks, 200) <= 0.05 + 1e-12


@given(st.integers(1, 3000), st.floats(0.0, 1.0, exclude_max=True))
def test_a_larger_delta_has_all_bands_of_smaller_ones(count, delta):
    bands = skipped_ranks(count, delta)
    assert bands[-1][1] == delta
    smaller = skipped_ranks(count, 0.9 * delta)
    assert [skipped for skipped, _ in smaller] == [skipped for skipped, _ in bands][: len(smaller)]
    assert all(one <= other for (_, one), (_, other) in zip(smaller, bands, strict=False))
    for skipped, at in bands:
        # What is skipped says nothing: its lower limit is not above any δ that the band serves.
        assert skipped == 0 or stats.beta.ppf(0.003, skipped, count - skipped + 1) <= at
        assert len(band_ranks(count, skipped))


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize(("share", "delta"), [(0.02, 0.003), (0.02, 0.005), (0.02, 0.01), (0.05, 0.02), (0.05, 0.03)])
def test_rare_outliers_have_three_quarters_of_the_best_bound_at_a_large_delta(share, delta):
    rng = np.random.default_rng(11)
    seen = rng.standard_normal((300, 1000)) + 5.0 * (rng.random((300, 1000)) < share)
    scores = prepare(seen, null=normal_null())
    means = [MEASURED[name].values(scores, delta, 0.05)[0].mean() for name in ("fixed-sequence", "band", "bonferroni")]
    assert means[0] >= 0.75 * max(means) > 0.5


@pytest.mark.deep
@pytest.mark.parametrize("epsilon", [2.0, 4.0, 6.0, 10.0])
def test_the_default_has_eighty_five_percent_of_an_oracle_s_threshold(epsilon):
    """1,000 Gaussian scores with an exact null; the oracle's threshold is the best on average, which nobody knows."""
    shift = 1.0 / float(gaussian_mechanism.noise_multiplier(epsilon, 1e-5))
    seen = shift + np.random.default_rng(12).standard_normal((40, 1000))
    counts = np.arange(1000)
    limits = stats.beta.ppf(0.95, counts + 1, 1000 - counts)
    means = []
    for t in np.arange(0.0, shift + 3.0, 0.1):
        bounds = [equation_1(limit, stats.norm.sf(t), 1e-5) for limit in limits]
        means.append(float(stats.binom.pmf(counts, 1000, stats.norm.cdf(t - shift)) @ bounds))
    own = MEASURED["fixed-sequence"].values(prepare(seen, null=normal_null()), 1e-5, 0.05)[0].mean()
    assert own >= 0.85 * max(means) > 0.5


def miss_limit(missed, count, alpha):
    return 1.0 if missed == count else stats.beta.ppf(1.0 - alpha, missed + 1, count - missed)


def equation_1(fnr, fpr, delta):
    terms = [(1.0 - delta - fnr) / fpr, (1.0 - delta - fpr) / fnr]
    return max(0.0, *(math.log(term) if term > 0.0 else -math.inf for term in terms))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-5, 0.2]), st.sampled_from([0.01, 0.3]))
def test_one_threshold_is_clopper_and_pearson(seed, delta, alpha):
    seen = 1.0 + np.random.default_rng(seed).normal(size=60)
    value, threshold = fixed_threshold(prepare(seen, null=normal_null()), delta, alpha)
    t = stats.norm.isf(1.0 / math.sqrt(61.0))
    expected = equation_1(miss_limit(np.sum(seen < t), 60, alpha), 1.0 / math.sqrt(61.0), delta)
    assert value[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert math.isnan(threshold[0]) if value[0] == 0.0 else threshold[0] == pytest.approx(t)


@given(st.integers(0, 2**32 - 1))
def test_a_rank_among_unobserved_scores_has_half_of_alpha(seed):
    rng = np.random.default_rng(seed)
    seen, unseen = 2.0 + rng.normal(size=50), rng.normal(size=80)
    value, _ = best_of_thresholds(prepare(seen, unseen), np.array([0.1]), 1e-3, 0.1)
    eighth = np.sort(unseen)[-8]
    fpr = stats.beta.ppf(0.95, 8, 73)
    expected = equation_1(miss_limit(np.sum(seen <= eighth), 50, 0.05), fpr, 1e-3)
    assert value[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_scores_equal_to_a_rank_are_no_hits():
    # All unobserved at 0: above them the false alarm rate is limited, at them it may be 1.
    value, _ = best_of_thresholds(prepare(np.zeros(100), np.zeros(100)), np.array([0.1]), 0.0, 0.05)
    assert value[0] == 0.0


def test_bonferroni_is_the_best_of_its_thresholds_at_their_share():
    seen = 2.0 + np.random.default_rng(1).normal(size=200)
    scores = prepare(seen, null=normal_null())
    single = [best_of_thresholds(scores, np.array([0.5**j]), 1e-5, 0.05 / 20)[0][0] for j in range(1, 21)]
    assert bonferroni(scores, 1e-5, 0.05)[0][0] == pytest.approx(max(single), rel=1e-12)


@pytest.mark.parametrize("unobserved", [None, 400])
def test_split_counts_on_the_other_half(unobserved):
    rng = np.random.default_rng(2)
    seen = 2.5 + rng.normal(size=300)
    unseen = None if unobserved is None else rng.normal(size=unobserved)
    scores = prepare(seen, unseen, None if unobserved else normal_null())
    counts = split_counts(scores, 1e-5, 0.05)
    second, threshold = scores.shuffled()[0][0, 150:], counts.thresholds[0]
    # The threshold is one of the first half's.
    assert threshold in scores.shuffled()[0][0, :150]
    assert counts.hits[0] == np.sum(second >= threshold)
    if unobserved is None:
        assert math.exp(counts.log_tails[0]) == pytest.approx(stats.norm.sf(threshold))
    else:
        assert counts.alarms[0] == np.sum(scores.shuffled()[1][0, 200:] >= threshold)


@pytest.mark.parametrize(("count", "delta", "bands"), [(90, 1e-4, 1), (300, 0.2, 2), (2000, 0.2, 3)])
def test_the_bound_is_that_of_the_least_band_at_its_best_threshold(count, delta, bands):
    seen = 1.5 + np.random.default_rng(3).normal(size=count)
    best = []
    for skipped, at in skipped_ranks(count, delta):
        levels = band(count, 0.05, skipped)
        best.append(max(equation_1(1.0 - levels[np.sum(seen >= t)], stats.norm.sf(t), at) for t in seen))
    assert len(set(best)) == bands
    assert simultaneous(prepare(seen, null=normal_null()), delta, 0.05)[0][0] == pytest.approx(min(best), rel=1e-9)


@pytest.mark.parametrize("atoms", [None, 12])
def test_the_declared_ranks_are_enough_of_the_thresholds(atoms):
    rng = np.random.default_rng(4)
    values = np.arange(atoms or 0, dtype=float)
    null = normal_null() if atoms is None else discrete_null(values, stats.binom.pmf(values, atoms - 1, 0.3))
    for count in (1, 2, 30, 300):
        shape = (40, count)
        seen = rng.normal(1.0, 1.5, shape) if atoms is None else rng.binomial(atoms - 1, 0.6, shape).astype(float)
        scores, hits = prepare(seen, null=null), band(count, 0.05)
        every = sweep(scores, rates(1.0 - hits, hits, 1e-3), None, 1e-3)
        np.testing.assert_array_equal(simultaneous(scores, 1e-3, 0.05), every)


def test_a_million_variables_cross_as_often_as_they_should():
    """At the declared ranks only, where order statistics are sums of exponential variables."""
    count, runs = 1_000_000, 20_000
    ranks = band_ranks(count)
    rng = np.random.default_rng(8)
    sums = np.cumsum(rng.standard_gamma(np.diff(ranks, prepend=0), (runs, len(ranks))), axis=1)
    uniform = sums / (sums[:, -1:] + rng.standard_gamma(count + 1 - ranks[-1], (runs, 1)))
    crossed = int(np.any(uniform < band(count, 0.05)[ranks], axis=1).sum())
    assert 1e-6 < stats.binom.cdf(crossed, runs, 0.05) < 1.0 - 1e-6
    assert stats.binom.cdf(stats.binom.isf(1e-6, runs, 0.05), runs, 0.062) < 0.01


@given(st.integers(1, 300), st.floats(1e-9, 0.999), st.floats(0.5, 1.0))
def test_a_smaller_level_never_has_a_larger_local_one(count, alpha, factor):
    assert local_level(count, factor * alpha) <= local_level(count, alpha)


def test_one_unobserved_score_is_not_split_and_two_are():
    seen = [0.5, 1.5, 2.5, 3.5]
    assert np.isnan(split_counts(prepare(seen, [0.0]), 1e-5, 0.05).thresholds).all()
    assert split_counts(prepare(seen, [0.0]), 1e-5, 0.05).half.null_count == 1
    assert split_counts(prepare(seen, [0.0, 0.2]), 1e-5, 0.05).half.null_count == 1
    assert split_counts(prepare(seen, [0.0, 0.2, 0.3]), 1e-5, 0.05).half.null_count == 2
