import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.diagnostic import normal_ad

from canaryproof.verify.audit.answer.misuse import misuse
from canaryproof.verify.audit.answer.shape import (
    LEVEL,
    fit,
    has_many_ties,
    missing_share,
    normality,
    shape,
    some_missing,
)
from canaryproof.verify.audit.answer.shape import two_clusters as two_clusters_law
from canaryproof.verify.audit.levels import LEVEL as TEST_LEVEL


def draws(law, seed=0, count=400):
    rng = np.random.default_rng(seed)
    return rng, law(rng, count)


@pytest.mark.parametrize("distance", [0.0, 0.01])
@pytest.mark.parametrize("power", [1.05, 1.2, 1.4])
def test_a_fit_is_kolmogorov_and_smirnov_s(distance, power):
    values = np.sort(np.random.default_rng(0).random(500) ** power)
    exact = stats.kstest(values, "uniform")
    expected = stats.kstwo.sf(max(0.0, exact.statistic - distance), 500)
    # Above a fortieth, Stephens' approximation serves.
    assert fit(values, distance) == (expected if expected < 0.024 else pytest.approx(expected, rel=0.02))
    assert distance or expected == pytest.approx(exact.pvalue, rel=1e-6)


def geary(groups):
    """Two-sided p-value of the sum of mean absolute deviations over deviations, by the moments of normal samples."""
    total, mean, variance = 0.0, 0.0, 0.0
    for scores in groups:
        n = len(scores)
        total += np.abs(scores - scores.mean()).sum() / scores.std()
        # The distribution of z₁/s does not depend on s: z₁²/(n·s²) is a beta variable, and so is the sum of two.
        one = stats.beta(0.5, 0.5 * (n - 2))
        ratio = math.sqrt(n - 1) * one.expect(math.sqrt)
        angles = np.linspace(0.0, 2.0 * math.pi, 200_000, endpoint=False)
        # Two residuals have the correlation −1/(n − 1); their direction in the plane is independent of their length.
        other = -np.cos(angles) / (n - 1) + math.sqrt(1.0 - 1.0 / (n - 1) ** 2) * np.sin(angles)
        product = np.abs(np.cos(angles) * other).mean() * 2.0
        mean += n * ratio
        variance += n + n * (n - 1) * product - (n * ratio) ** 2
    return 2.0 * stats.norm.sf(abs(total - mean) / math.sqrt(variance))


@pytest.mark.parametrize(("count", "null_count"), [(200, 0), (200, 40), (40, 7)])
@pytest.mark.parametrize("law", ["laplace", "exponential", "normal"])
def test_the_p_value_of_a_shape_is_the_smallest_of_its_tests_times_their_number(count, null_count, law):
    rng = np.random.default_rng([count, null_count])
    groups = [getattr(rng, law)(size=size) for size in (count, null_count) if size]
    # Anderson and Darling's of each kind from 8 scores on, and Geary's of all unless there are fewer of a kind.
    p_values = [normal_ad(scores)[1] for scores in groups if len(scores) >= 8]
    p_values.append(geary(groups) if null_count != 7 else 1.0)
    expected = min(1.0, len(p_values) * min(p_values))
    assert shape(*groups).p_value == pytest.approx(expected, rel=2e-3, abs=0.0)


@pytest.mark.parametrize(("share", "low", "apart"), [(0.3, -1.0, 4.0), (0.8, 2.0, 3.0)])
def test_two_clusters_have_the_moments_of_the_sample(share, low, apart):
    # Quantiles of the mixture, whose moments are its own.
    x = np.linspace(low - 9.0, low + apart + 9.0, 40_001)
    law = (1.0 - share) * stats.norm.cdf(x, low) + share * stats.norm.cdf(x, low + apart)
    z = np.interp((np.arange(20_000) + 0.5) / 20_000, law, x)
    truth = (1.0 - share) * stats.norm.cdf(z, low) + share * stats.norm.cdf(z, low + apart)
    assert two_clusters_law(z) == pytest.approx(truth, abs=2e-3)


@pytest.mark.parametrize(("share", "trace"), [(0.6, 8.0), (0.25, 3.0)])
def test_the_share_of_canaries_with_a_trace_is_told_by_mean_and_variance(share, trace):
    z = np.random.default_rng(0).standard_normal(1000)
    # A part of the sample has the trace, and nothing else of it depends on that.
    z = (z - z.mean()) / z.std()
    mean, variance = share * trace, 1.0 + share * (1.0 - share) * trace**2
    assert missing_share(mean + math.sqrt(variance) * z) == pytest.approx((share, trace))
    found = some_missing(np.sort(mean + math.sqrt(variance) * z))
    at = np.sort(mean + math.sqrt(variance) * z)
    assert found == pytest.approx((1.0 - share) * stats.norm.cdf(at) + share * stats.norm.cdf(at - trace))
    # Less variance than the null's says that none is missing; a mean below 0, that the trace is that.
    assert missing_share(2.0 + 0.9 * z) == pytest.approx((1.0, 2.0))
    assert missing_share(-0.5 + 2.0 * z) == pytest.approx((1.0, -0.5))


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(("count", "null_count"), [(100, 100), (1000, 0), (30, 1000)])
def test_normal_scores_of_any_mean_and_variance_fit_at_the_level(count, null_count):
    rng, runs = np.random.default_rng([count, null_count]), 1500
    refused = sum(
        bool(shape(3.0 + 2.0 * rng.normal(size=count), rng.normal(size=null_count) if null_count else None).reason)
        for _ in range(runs)
    )
    # The p-values are a corrected minimum, and may be too large. Twice the level allows for their formulas.
    assert stats.binom.sf(refused - 1, runs, 2.0 * LEVEL) > TEST_LEVEL


def test_a_hundred_scores_show_laplace_s_law():
    rng, runs = np.random.default_rng(1), 300
    seen = sum(bool(shape(rng.laplace(0.7, 1.0, 100), rng.laplace(0.0, 1.0, 100)).reason) for _ in range(runs))
    # Geary's ratio of 200 scores has the mean .707 with the deviation .024; .752 and less is refused.
    assert stats.binom.cdf(seen, runs, 0.9) > TEST_LEVEL


def two_clusters(rng, count):
    return rng.normal(size=count) + 8.0 * rng.integers(0, 2, count)


def largest(rng, count):
    return rng.normal(size=(count, 30)).max(axis=1)


def label_only(rng, count):
    return (rng.random(count) < 0.7).astype(float)


@pytest.mark.parametrize(
    ("law", "reason"),
    [
        (two_clusters, "left a trace; the others score like unobserved ones"),
        (largest, "not normal"),
        (label_only, "400 of 400 observed scores are tied"),
        (lambda rng, count: rng.standard_cauchy(count), "not normal"),
    ],
)
def test_another_shape_is_named(law, reason):
    rng, observed = draws(law)
    unobserved = rng.normal(size=400) if law is two_clusters else law(rng, 400)
    assert reason in shape(observed, unobserved).reason


def test_a_deviation_that_the_dimension_does_not_explain_is_named():
    observed = 1.6 * np.random.default_rng(3).normal(0.6, 1.0, 500)
    assert "deviation is 1.6 times the null's" in shape(observed, scale=1.0).reason
    assert shape(observed, np.random.default_rng(4).normal(size=500)).reason == ""


@pytest.mark.parametrize(("rate", "rounds", "noise"), [(0.125, 64, 0.5), (0.05, 20, 0.3), (0.5, 4, 0.2)])
@pytest.mark.parametrize("closed", [False, True])
def test_unequal_participation_is_no_misuse(rate, rounds, noise, closed):
    rng, dim = np.random.default_rng(5), 10**6
    trace = rng.binomial(rounds, rate, 2000) / (noise * math.sqrt(rounds))
    observed = (trace + rng.normal(size=2000)) / math.sqrt(dim)
    assert misuse(observed, None if closed else rng.normal(size=2000) / math.sqrt(dim), dim, inserted=1) == ()


@pytest.mark.parametrize("scale", [1e-300, 1e-60, 1.0, 1e300])
@pytest.mark.parametrize("law", [label_only, lambda rng, count: rng.beta(0.3, 0.3, count), two_clusters])
@pytest.mark.parametrize("digits", [None, 2])
def test_scores_of_any_shape_and_scale_are_no_misuse(law, scale, digits):
    rng = np.random.default_rng(6)
    both = law(rng, 1500)
    both = both if digits is None else both.round(digits)
    assert misuse(scale * both[:1000], scale * both[1000:], kind="any") == ()


def test_a_few_scores_that_differ_are_not_tied():
    assert not has_many_ties(np.arange(5.0))
    assert has_many_ties(np.array([0.0, 0.0, 1.0, 2.0, 3.0]))
    assert (
        shape(np.arange(5.0), np.arange(7.0) - 0.5, None).reason == "5 observed scores are too few to show their shape."
    )


@pytest.mark.parametrize(
    ("law", "count", "share"),
    [
        (lambda rng, size: rng.standard_t(5, size), 50, 0.17),
        (lambda rng, size: rng.standard_t(5, size), 200, 0.53),
        (lambda rng, size: rng.standard_t(5, size), 500, 0.95),
        (lambda rng, size: rng.gamma(2.0, size=size), 50, 0.73),
    ],
)
def test_so_many_samples_of_another_law_are_recognised(law, count, share):
    """Of 500 samples, within 1e-6 of chance about a share that is printed to one percent."""
    rng = np.random.default_rng(0)
    seen = sum(normality(law(rng, count)).p_value < 0.01 for _ in range(500))
    assert stats.binom.cdf(seen, 500, share - 0.01) > TEST_LEVEL / 2
    assert stats.binom.sf(seen - 1, 500, share + 0.01) > TEST_LEVEL / 2
