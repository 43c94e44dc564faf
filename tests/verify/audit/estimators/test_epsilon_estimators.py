import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.kernels import exact_law, gaussian_mechanism, threshold_attack, two_gaussians
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import Moments, Shape, from_dimension, from_two_groups, shape_of

DELTA = 1e-6


def moments(distance, ratio=1.0, count=1000, null_count=math.inf):
    return Moments(np.asarray(distance, float), np.asarray(ratio, float), count, null_count)


def test_pinned_inverts_the_gaussian_mechanism_at_the_estimated_noise():
    estimate = epsilon_estimators.pinned_estimate(moments(1 / 4.22), DELTA)
    assert estimate.epsilon == pytest.approx(float(gaussian_mechanism.epsilon(DELTA, 4.22)), rel=1e-14)


@pytest.mark.parametrize("distance", [0.0, -1e-300, -2.0])
def test_pinned_gives_zero_where_the_mean_is_not_positive(distance):
    estimate = epsilon_estimators.pinned_estimate(moments(distance), DELTA)
    assert estimate.epsilon == 0.0
    assert estimate.low == 0.0


def test_fitted_is_the_larger_direction_of_the_fitted_pair():
    estimate = epsilon_estimators.fitted_estimate(moments(0.5, 1.1), DELTA)
    directions = [float(two_gaussians.epsilon(DELTA, 0.0, 1.0, 0.5, 1.1, way)) for way in ("forward", "reverse")]
    assert estimate.epsilon == pytest.approx(max(directions), rel=1e-13)


def test_adaptive_is_pinned_until_the_variance_test_rejects():
    near, far = moments(0.5, 1.03), moments(0.5, 1.1)
    assert (
        epsilon_estimators.variance_p_value(near)
        > epsilon_estimators.TEST_LEVEL
        > epsilon_estimators.variance_p_value(far)
    )
    assert f"equal variances at level {epsilon_estimators.TEST_LEVEL:g} " in str(
        epsilon_estimators.adaptive_estimate.__doc__
    )
    assert (
        epsilon_estimators.adaptive_estimate(near, DELTA).epsilon
        == epsilon_estimators.pinned_estimate(near, DELTA).epsilon
    )
    assert (
        epsilon_estimators.adaptive_estimate(far, DELTA).epsilon
        == epsilon_estimators.fitted_estimate(far, DELTA).epsilon
    )


def test_of_few_scores_equal_variances_are_rejected_as_often_as_the_level_says():
    rng = np.random.default_rng(5)
    found = from_two_groups(rng.normal(size=(20_000, 10)), rng.normal(size=(20_000, 5)))
    # Within 5.2 standard deviations, a level of 2e-7 each.
    for tail in (0.05, 0.5):
        low, high = epsilon_estimators._ratio_limits(found, tail)
        for share in (np.mean(found.ratio < low), np.mean(found.ratio > high)):
            assert abs(share - tail) < 5.2 * math.sqrt(tail * (1.0 - tail) / 20_000)


def test_adaptive_interval_reaches_from_pinned_to_fitted_when_variances_pass():
    near = moments(0.5, 1.03)
    interval = epsilon_estimators.adaptive_estimate(near, DELTA)
    assert interval.low == epsilon_estimators.pinned_estimate(near, DELTA).low
    assert interval.high == epsilon_estimators.fitted_estimate(near, DELTA).high


@pytest.mark.parametrize("ratio", [0.1, 1.0, 40.0])
def test_distances_that_no_sample_tells_from_zero_are_zero(ratio):
    minute = [
        epsilon_estimators.both_directions(DELTA, np.asarray(d), np.asarray(ratio)) for d in (0.0, 1e-290, -3e-289)
    ]
    assert len(set(map(float, minute))) == 1


@given(distance=st.floats(0.01, 30), delta=st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_epsilon_is_least_at_equal_deviations_and_rises_on_both_sides(distance, delta):
    # Both interval ends of ``fitted`` and the lower one of ``adaptive`` rest on this.
    ratios = np.exp(np.linspace(-1.0, 1.0, 41))
    for pair in (epsilon_estimators.both_directions, threshold_attack.threshold_epsilon):
        epsilon = pair(delta, np.full(41, distance), ratios)
        slack = 1e-10 * (1 + epsilon.max())
        assert np.all(np.diff(epsilon[:21]) <= slack)
        assert np.all(np.diff(epsilon[20:]) >= -slack)


@given(distance=st.floats(0.01, 30), ratio=st.floats(0.5, 2), delta=st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_a_threshold_never_beats_the_optimal_attack(distance, ratio, delta):
    best = float(epsilon_estimators.both_directions(delta, np.asarray(distance), np.asarray(ratio)))
    assert float(threshold_attack.threshold_epsilon(delta, distance, ratio)) <= best + 1e-10 * (1 + best)


def test_pinned_standard_error_is_the_deviation_of_its_estimates():
    rng = np.random.default_rng(11)
    sigma = float(gaussian_mechanism.noise_multiplier(3.0, DELTA))
    runs = np.array([exact_law.cosines(300, 10**6, sigma, rng) for _ in range(2000)])
    estimate = epsilon_estimators.pinned_estimate(from_dimension(runs, 10**6), DELTA)
    # A deviation from 2000 runs has a relative error of 1.6%: five of them have a level below 1e-6.
    assert estimate.standard_error.mean() == pytest.approx(estimate.epsilon.std(), rel=0.08)


@pytest.mark.parametrize("epsilon", [0.5, pytest.param(3.0, marks=pytest.mark.deep), 10.0])
def test_pinned_interval_covers_its_nominal_share(epsilon):
    rng = np.random.default_rng(12)
    sigma = float(gaussian_mechanism.noise_multiplier(epsilon, DELTA))
    runs = np.array([exact_law.cosines(100, 10**6, sigma, rng) for _ in range(4000)])
    estimate = epsilon_estimators.pinned_estimate(from_dimension(runs, 10**6), DELTA)
    covered = np.mean((estimate.low <= epsilon) & (epsilon <= estimate.high))
    # Standard error 0.34 points; five on either side: level 6e-7. An interval of 92% or 98% would be seen.
    assert abs(covered - 0.95) < 0.0173


@pytest.mark.parametrize(
    ("ratio", "null_count"),
    [
        (1.3, 400),
        # Equal variances are those of the check epsilon_estimators.inference.unobserved.
        pytest.param(1.0, 400, marks=pytest.mark.deep),
        pytest.param(0.8, 400, marks=pytest.mark.deep),
    ],
)
def test_intervals_against_unobserved_canaries_cover(ratio, null_count, monkeypatch):
    rng = np.random.default_rng(13)
    distance, runs, count = 2.0, 3000, 300
    seen = distance + ratio * rng.standard_normal((runs, count))
    unseen = rng.standard_normal((runs, null_count))
    truth = float(two_gaussians.epsilon(DELTA, distance, ratio, 0.0, 1.0))
    found = from_two_groups(seen, unseen)
    fitted = epsilon_estimators.fitted_estimate(found, DELTA)
    # Which is the costly part of adaptive.
    monkeypatch.setattr(epsilon_estimators, "fitted_estimate", lambda *_: fitted)
    for estimate in (fitted, epsilon_estimators.adaptive_estimate(found, DELTA)):
        covered = np.mean((estimate.low <= truth) & (truth <= estimate.high))
        # At least 95% nominally; five standard errors below that.
        assert covered > 0.95 - 5 * math.sqrt(0.95 * 0.05 / runs)


def test_norm_recovers_the_noise_of_a_release_without_signal():
    release = 2.0 * np.random.default_rng(14).standard_normal(10**5)
    estimate = epsilon_estimators.norm_estimate(release, DELTA)
    exact = float(gaussian_mechanism.epsilon(DELTA, 2.0))
    # ‖ρ‖/√d has relative standard error 1/√(2d): five of them.
    assert float(estimate.epsilon) == pytest.approx(exact, rel=2.5 * 5 / math.sqrt(2e5))
    assert estimate.low < estimate.epsilon < estimate.high


def test_the_standard_error_of_norm_is_the_deviation_of_its_estimates():
    releases = 2.0 * np.random.default_rng(24).standard_normal((4000, 100))
    estimate = epsilon_estimators.norm_estimate(releases, DELTA)
    # A deviation from 4000 runs has a relative error of 1.1%: five of them have a level below 1e-6.
    assert estimate.standard_error.mean() == pytest.approx(estimate.epsilon.std(), rel=0.06)


def test_norms_of_long_releases_are_summed_in_pieces(monkeypatch):
    releases = np.random.default_rng(9).standard_normal((2, 10))
    whole = epsilon_estimators.norm_distance(releases)
    assert whole == pytest.approx(math.sqrt(10.0) / np.linalg.norm(releases, axis=1), rel=1e-15)
    # The last piece is not full.
    monkeypatch.setattr(epsilon_estimators, "_COORDINATES", 4)
    assert epsilon_estimators.norm_distance(releases.astype(np.float32)) == pytest.approx(whole, rel=1e-6)
    assert epsilon_estimators.norm_distance(releases) == pytest.approx(whole, rel=1e-15)


@pytest.mark.parametrize("ratio", [1.0, pytest.param(1.15, marks=pytest.mark.deep)])
def test_adaptive_covers_with_heavy_tails(ratio):
    rng, distance, runs = np.random.default_rng(18), 0.25, 1500
    scores = distance + ratio * math.sqrt(0.6) * rng.standard_t(5.0, (runs, 200))
    truth = float(two_gaussians.epsilon(DELTA, distance, ratio, 0.0, 1.0))
    moments = from_dimension(scores, 1.0)

    def covered(some):
        found = epsilon_estimators.adaptive_estimate(some, DELTA)
        return np.mean((found.low <= truth) & (truth <= found.high))

    # Five standard errors below 94%; by the normal law it is 90% at equal variances.
    assert covered(moments) > 0.94 - 5 * math.sqrt(0.94 * 0.06 / runs)
    if ratio == 1.0:
        assert covered(moments.as_normal) < 0.94 - 3 * math.sqrt(0.94 * 0.06 / runs)


@pytest.mark.deep
@pytest.mark.parametrize("distance", [0.25, 2.0])
def test_near_its_switch_adaptive_states_the_deviation_that_it_has(distance):
    rng = np.random.default_rng(19)
    found = epsilon_estimators.adaptive_estimate(
        from_dimension(distance + 1.15 * rng.standard_normal((2000, 50)), 1.0), DELTA
    )
    # It was half of it. Moments that are estimated leave the standard error itself uncertain.
    assert 0.9 < found.standard_error.mean() / found.epsilon.std() < 1.25


def test_the_pooled_distance_errs_as_skewed_scores_make_it():
    runs, count, rng = 4000, 200, np.random.default_rng(0)
    # Standardised gamma variables of shape 4 have skewness 1 and kurtosis 4.5.
    observed = (rng.gamma(4.0, size=(runs, count)) - 4.0) / 2.0 + 2.0
    found = from_two_groups(observed, rng.standard_normal((runs, count)))
    shape = Shape(np.asarray(1.0), np.asarray(4.5))
    claimed = epsilon_estimators.pinned_error(
        Moments(np.asarray(2.0), np.asarray(1.0), count, float(count), shape, None)
    )
    # A deviation of 4,000 errs by 1.1%, and 5.3 times that at a level of 1e-7; the rest is for the leading terms.
    assert epsilon_estimators.pinned_distance(found).std() == pytest.approx(claimed, rel=0.07)


def test_the_pooled_distance_errs_as_is_known_of_normal_scores():
    # Hedges and Olkin (1985), for a distance at which its square is not its double.
    expected = math.sqrt(1.0 / 400.0 + 1.0 / 300.0 + 0.5 * 3.0**2 / 700.0)
    assert epsilon_estimators.pinned_error(moments(3.0, 1.0, 400, 300.0)) == pytest.approx(expected, rel=1e-12)


def test_skewed_unobserved_scores_may_lower_the_error_of_the_distance():
    runs, count, null_count, rng = 4000, 1000, 100, np.random.default_rng(25)
    unobserved = 1.0 - rng.exponential(size=(runs, null_count))
    found = from_two_groups(0.5 + rng.standard_normal((runs, count)), unobserved)
    shape = Shape(np.asarray(-2.0), np.asarray(9.0))
    claimed = epsilon_estimators._distance_error(
        Moments(np.asarray(0.5), np.asarray(1.0), count, null_count, None, shape)
    )
    # As above; without that it would be 0.105 for 0.077.
    assert found.distance.std() == pytest.approx(claimed, rel=0.1)


@pytest.mark.parametrize("tail", [0.005, 0.3])
def test_limits_of_the_ratio_are_those_of_the_chi_squared_and_f_laws(tail):
    low, high = epsilon_estimators._ratio_limits(moments(0.0, 1.0, 4), tail)
    assert stats.chi2.cdf(4.0 * low**2, 3) == pytest.approx(tail, rel=1e-9)
    assert stats.chi2.sf(4.0 * high**2, 3) == pytest.approx(tail, rel=1e-9)
    # Both deviations have the number of their scores as divisor.
    low, high = (
        limit**2 * (4 / 3) / (6 / 5) for limit in epsilon_estimators._ratio_limits(moments(0.0, 1.0, 4, 6.0), tail)
    )
    assert stats.f.cdf(low, 3, 5) == pytest.approx(tail, rel=1e-9)
    assert stats.f.sf(high, 3, 5) == pytest.approx(tail, rel=1e-9)


def test_the_lower_end_alone_is_that_of_adaptive_with_heavy_tails():
    ratio = np.linspace(0.8, 1.25, 19)
    for null_count in (math.inf, 100.0):
        tails = Shape(np.zeros(19), np.full(19, 9.0))
        moments = Moments(np.full(19, 2.0), ratio, 100, null_count, tails)
        np.testing.assert_array_equal(
            epsilon_estimators.adaptive_low(moments, 1e-6), epsilon_estimators.adaptive_estimate(moments, 1e-6).low
        )


# Errors of the moments, against the delta method on the four means of which they are made.


def by_delta_method(found):
    """Standard errors of distance and log ratio, and their correlation, for many scores."""
    ratio, distance = float(found.ratio), float(found.distance)
    # Scores with these moments: the null's deviation is 1 and its mean 0.
    gradient = np.array([[1.0, 0.0, -1.0, -0.5 * distance], [0.0, 0.5 / ratio**2, 0.0, -0.5]])
    covariance = np.zeros((4, 4))
    for first, deviation, count, shape in (
        (0, ratio, found.count, found.shape),
        (2, 1.0, found.null_count, found.null_shape),
    ):
        skewness, kurtosis = float(shape.skewness), float(shape.kurtosis)
        mixed = skewness * deviation**3
        covariance[first : first + 2, first : first + 2] = [
            [deviation**2, mixed],
            [mixed, (kurtosis - 1.0) * deviation**4],
        ]
        covariance[first : first + 2, first : first + 2] /= count
    both = gradient @ covariance @ gradient.T
    errors = np.sqrt(np.diag(both))
    return *errors, both[0, 1] / errors.prod()


@pytest.mark.parametrize("ratio", [0.8, 1.6])
def test_errors_of_the_moments_are_those_of_the_delta_method(ratio):
    shapes = (Shape(np.asarray(skewness), np.asarray(kurtosis)) for skewness, kurtosis in ((0.7, 5.0), (-0.4, 4.0)))
    found = Moments(np.asarray(1.5), np.asarray(ratio), 10**7, 2e7, *shapes)
    errors = (
        epsilon_estimators._distance_error(found),
        epsilon_estimators.log_ratio_error(found),
        epsilon_estimators._correlation(found),
    )
    assert errors == pytest.approx(by_delta_method(found), rel=1e-6)


def test_the_log_deviation_of_few_normal_scores_errs_by_the_degrees_of_freedom():
    assert epsilon_estimators.log_ratio_error(moments(0.0, 1.0, 8, 6.0)) == pytest.approx(
        math.sqrt(0.5 / 7 + 0.5 / 5), rel=1e-12
    )


def bonett(count, kurtosis, tail):
    """Limits of a deviation in units of that with divisor n − 1 (Bonett 2006, Formula 6)."""
    quantile = stats.norm.isf(tail)
    factor = count / (count - quantile)
    error = factor * math.sqrt((kurtosis - (count - 3) / count) / (count - 1))
    return [math.sqrt(factor * math.exp(sign * quantile * error)) for sign in (-1.0, 1.0)]


def test_limits_of_a_ratio_by_the_scores_shape_are_bonetts():
    shape = Shape(np.asarray(0.0), np.asarray(5.0))
    alone = Moments(np.asarray(0.0), np.asarray(1.0), 20, math.inf, shape)
    corrected = [math.sqrt(20 / 19) * limit for limit in bonett(20, 5.0, 0.025)]
    assert epsilon_estimators._bonett(alone, 0.025) == pytest.approx(corrected, rel=1e-12)
    # Of two samples either may come first.
    other = Shape(np.asarray(0.0), np.asarray(3.5))
    low, high = epsilon_estimators._bonett(Moments(np.asarray(0.0), np.asarray(1.7), 20, 50.0, shape, other), 0.025)
    swapped = epsilon_estimators._bonett(Moments(np.asarray(0.0), np.asarray(1 / 1.7), 50, 20.0, other, shape), 0.025)
    assert swapped == pytest.approx((1.0 / high, 1.0 / low), rel=1e-12)


def test_the_wary_kurtosis_is_the_upper_limit_of_a_normal_samples():
    shape = Shape(np.asarray(0.0), np.asarray(3.0))
    wary = epsilon_estimators._heavier(Moments(np.asarray(0.0), np.asarray(1.0), 60, 40.0, shape, shape))
    for one in (wary.shape, wary.null_shape):
        assert one.kurtosis == pytest.approx(3.0 + stats.norm.isf(0.01) * math.sqrt(24.0 / 100.0), rel=1e-3)


def test_heavy_tails_alone_do_not_tell_variances_apart():
    shape = Shape(np.asarray(0.0), np.asarray(12.0))
    heavy = Moments(np.asarray(0.5), np.asarray(1.1), 1000, 1000.0, shape, shape)
    assert epsilon_estimators.variance_p_value(heavy) < epsilon_estimators.TEST_LEVEL
    assert (
        epsilon_estimators.adaptive_estimate(heavy, DELTA).low
        == epsilon_estimators.pinned_estimate(epsilon_estimators._heavier(heavy), DELTA).low
    )
    told = Moments(np.asarray(0.5), np.asarray(2.5), 1000, 1000.0, shape, shape)
    assert epsilon_estimators.adaptive_estimate(told, DELTA).low == epsilon_estimators.fitted_estimate(told, DELTA).low


@pytest.mark.parametrize("p_value", [0.004, 0.3])
def test_the_variances_p_value_has_both_sides(p_value):
    for quantile in (stats.chi2.ppf(0.5 * p_value, 9), stats.chi2.isf(0.5 * p_value, 9)):
        found = moments(0.0, math.sqrt(quantile / 10.0), 10)
        assert epsilon_estimators.variance_p_value(found) == pytest.approx(p_value, rel=1e-9)


def test_the_variances_p_value_beside_unobserved_scores_is_that_of_f():
    rng = np.random.default_rng(22)
    observed, unobserved = 1.4 * rng.standard_normal(10), rng.standard_normal(5)
    found = moments(0.0, observed.std() / unobserved.std(), 10, 5)
    below = stats.f.cdf(observed.var(ddof=1) / unobserved.var(ddof=1), 9, 4)
    assert epsilon_estimators.variance_p_value(found) == pytest.approx(2.0 * min(below, 1.0 - below), rel=1e-9)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_errors_of_mean_and_deviation_are_propagated_with_their_correlation(sign):
    shape = shape_of(sign * np.random.default_rng(23).exponential(size=200))
    found = Moments(np.asarray(1.0), np.asarray(2.0), 200, 300.0, shape, shape_of(np.arange(300.0)))
    turned = epsilon_estimators._correlation(found)
    assert 0.3 < sign * turned < 0.8
    errors = epsilon_estimators._distance_error(found), epsilon_estimators.log_ratio_error(found)

    def spread(of_distance, of_ratio):
        return epsilon_estimators.propagate(
            lambda _, distance, ratio: of_distance * distance + of_ratio * np.log(ratio), found, 0.1
        )[1]

    assert spread(1.0, 0.0) == pytest.approx(errors[0], rel=1e-3)
    assert spread(0.0, 1.0) == pytest.approx(errors[1], rel=1e-3)
    both = errors[0] ** 2 + errors[1] ** 2 + 2.0 * turned * errors[0] * errors[1]
    assert spread(1.0, 1.0) == pytest.approx(np.sqrt(both), rel=1e-3)


def test_the_error_of_adaptive_counts_the_jump_between_its_estimators():
    found = moments(2.0, 1.05, 1000)
    rng, runs = np.random.default_rng(21), 20_000
    # A sample's mean and variance are independent.
    deviations = np.sqrt(rng.chisquare(999, runs) / 999.0)
    drawn = Moments(2.0 + 1.05 * rng.standard_normal(runs) / math.sqrt(999.0), 1.05 * deviations, 1000)
    spread = epsilon_estimators.adaptive_estimate(drawn, DELTA).epsilon.std()
    # The quadrature is right to 2%, the deviation of 20,000 runs to 0.5%; without the jump it is much less.
    assert epsilon_estimators.adaptive_estimate(found, DELTA).standard_error == pytest.approx(spread, rel=0.05)
    assert abs(epsilon_estimators.fitted_estimate(found, DELTA).standard_error / spread - 1.0) > 0.1


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("known", [True, False])
def test_limits_of_distance_and_ratio_hold_together(known, confidence):
    """Mean and variance of a normal sample are independent, so that the probabilities of their limits multiply."""
    rng = np.random.default_rng(2)
    observed, unobserved = 3.0 + 1.5 * rng.normal(size=60), rng.normal(size=60)
    moments = from_dimension(observed / 40.0, 1600) if known else from_two_groups(observed, unobserved)
    moments = dataclasses.replace(moments, shape=None, null_shape=None)
    nearest, farthest, smallest, largest = epsilon_estimators._rectangle(moments, confidence)
    error = (farthest - nearest) / 2.0 / epsilon_estimators._distance_error(moments)
    mean = 1.0 - 2.0 * stats.t.sf(float(error), 59.0)
    # Quotients of the limits, so that how the ratio is made unbiased does not matter.
    law = stats.chi2(59) if known else stats.f(59, 59)
    least, most = (law.ppf(at) for at in (0.5 - 0.5 * mean, 0.5 + 0.5 * mean))
    assert (largest / smallest) ** 2 == pytest.approx(most / least)
    assert mean**2 == pytest.approx(confidence)
