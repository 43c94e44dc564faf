import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.kernels import exact_law
from canaryproof.verify.blindspots import alarms
from canaryproof.verify.blindspots.alarms import Size, by_estimate, ranges
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, AtlasClaim, ReleaseResidual, single
from canaryproof.verify.check.levels import POWER
from canaryproof.verify.estimators import estimators
from canaryproof.verify.estimators.moments import Moments, from_dimension, from_unobserved

CLAIM = AtlasClaim(1.3905934566745368, 1e-5, 10**6)
SIZE = Size(100, 20, 3, 2, True)


def key():
    return np.random.SeedSequence(5)


def test_all_methods_are_measured_and_equal_keys_give_equal_numbers():
    found = alarms.measure(MECHANISMS["less-noise"], 0.25, CLAIM, SIZE, key())
    assert found == alarms.measure(MECHANISMS["less-noise"], 0.25, CLAIM, SIZE, key())
    expected = {*alarms.ESTIMATORS, *alarms.BOUNDS, *alarms.COIN_BOUNDS, alarms.CANIFE}
    assert set(found.methods) == expected
    assert found.rate[0] == found.methods["adaptive"].rate[0] == 1.0
    assert found.methods["adaptive"].runs == 3
    assert found.methods["one-run"].runs == 2
    assert found.truth[0] <= found.truth[1]
    assert found.canife == alarms._of_deviation(0.25 * CLAIM.noise_multiplier, CLAIM)


def test_several_releases_have_unobserved_scores_and_no_bound_that_needs_an_exact_null():
    found = alarms.measure(MECHANISMS["reused-noise"], 2.0, CLAIM, SIZE, key())
    assert {name for name in alarms.BOUNDS if alarms.BOUNDS[name].needs == "null"}.isdisjoint(found.methods)
    assert "fixed-sequence" in found.methods


def test_scores_that_are_no_cosines_are_measured():
    found = alarms.measure(MECHANISMS["laplace-spread"], 1.0, CLAIM, SIZE, key())
    assert found.rate[0] > 0.5
    assert found.canife is None


def test_the_default_estimators_lower_end_is_its_own():
    rng = np.random.default_rng(0)
    # Of some runs the variances differ.
    scores = rng.standard_normal((40, 200)) * rng.choice([1.0, 1.4], (40, 1)) + 0.7
    found = from_dimension(scores / 1000.0, 10**6)
    adaptive = alarms.ESTIMATORS["adaptive"](found, 1e-5, 1.0 - 2.0 * alarms.ALPHA)
    np.testing.assert_array_equal(estimators.adaptive_low(found, 1e-5, 1.0 - 2.0 * alarms.ALPHA), adaptive.low)


def test_lower_ends_are_exceeded_by_chance_in_five_percent():
    """One end of an interval at 90%, as a bound at 95% has all of it at one end."""
    moments = from_dimension((np.random.default_rng(0).standard_normal((3, 200)) + 2.0) / 1000.0, 10**6)
    rows = list(alarms.estimates(moments, 1e-5))
    assert [name for name, *_ in rows] == ["adaptive", "pinned", "fitted", "threshold"]
    for name, values, low in rows:
        estimate = getattr(estimators, name)(moments, 1e-5, 0.9)
        np.testing.assert_array_equal((values, low), (estimate.epsilon, estimate.low))


@pytest.mark.parametrize(("name", "value"), [("less-noise", 0.5), ("other-canaries", 0.5)])
def test_moments_drawn_from_their_laws_are_those_of_scores(name, value):
    """At level 1e-6, differences of 0.1 are noticed."""
    mechanism, count, runs, draws = MECHANISMS[name], 40, 4000, np.random.default_rng(5)
    claim = replace(CLAIM, dim=10**4)
    residual, weights = mechanism.residual(value, claim, runs, draws), mechanism.weights(value)
    scores = from_dimension(alarms.leading(residual, weights, count, 0, draws)[0], claim.dim)
    drawn = alarms.leading_moments(residual, float(weights[0, 0]), count, draws)
    for read in (lambda m: m.distance, lambda m: m.ratio, lambda m: m.distance * m.ratio):
        assert stats.ks_2samp(read(scores), read(drawn)).pvalue > 2e-7
    lows = [estimators.adaptive_low(each, 1e-5, 0.9) for each in (scores, drawn)]
    assert stats.ks_2samp(*lows).pvalue > 2e-7
    # Of those whose variances differ alone the shape is drawn.
    differ = estimators.variance_p_value(drawn) < estimators.TEST_LEVEL
    np.testing.assert_array_equal(drawn.shape.kurtosis != 3.0, differ)


COUNT = 1000
LEVEL = 1e-6


def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize(("value", "rate"), [(1.0, 0.05), (0.9, 0.81)])
def test_alarms_are_those_of_drawn_moments(value, rate):
    """By the laws of a normal sample's moments: no t-test here, and no canary."""
    runs, draws = 4000, np.random.default_rng(3)
    residual = MECHANISMS["less-noise"].residual(value, CLAIM, runs, draws)
    shift = math.sqrt(CLAIM.dim) / np.sqrt(residual.gram[:, 0, 0] + COUNT)
    mean = shift + draws.standard_normal(runs) / math.sqrt(COUNT)
    moments = Moments(mean, np.sqrt(draws.chisquare(COUNT - 1, runs) / COUNT), COUNT)
    raised = int((estimators.pinned(moments, CLAIM.delta, 0.9).low > CLAIM.epsilon).sum())
    found = alarms.predict(MECHANISMS["less-noise"], value, CLAIM, COUNT, rng()).alarm
    assert found == pytest.approx(rate, abs=0.01)
    assert stats.binomtest(raised, runs, found).pvalue > LEVEL
    assert found == alarms.alarm_probability(MECHANISMS["less-noise"], value, CLAIM, COUNT, rng())


def test_alarms_beside_unobserved_canaries_are_those_of_drawn_scores():
    value, count, null_count, runs, draws = 0.85, 100, 60, 4000, np.random.default_rng(4)
    residual = MECHANISMS["less-noise"].residual(value, CLAIM, runs, draws)
    shift = math.sqrt(CLAIM.dim) / np.sqrt(residual.gram[:, 0, 0] + count)
    unobserved = draws.standard_normal((runs, null_count))
    moments = from_unobserved(shift[:, np.newaxis] + draws.standard_normal((runs, count)), unobserved)
    raised = int((estimators.pinned(moments, CLAIM.delta, 1.0 - 2.0 * alarms.ALPHA).low > CLAIM.epsilon).sum())
    found = alarms.alarm_probability(MECHANISMS["less-noise"], value, CLAIM, count, rng(), null_count)
    # At level 1e-6, a difference of 2.5% of all audits is noticed; the noncentral law is near to that of the scores.
    assert abs(raised / runs - found) < 0.025
    assert 0.1 < found < 0.4
    honest = alarms.alarm_probability(MECHANISMS["less-noise"], 1.0, CLAIM, count, rng(), null_count)
    assert abs(honest - alarms.ALPHA) < 0.01


@pytest.mark.parametrize("value", [1.0, 0.5, 0.25])
def test_unlimited_canaries_tell_the_truth_of_pure_noise(value):
    mechanism = MECHANISMS["less-noise"]
    found = alarms.predict(mechanism, value, CLAIM, COUNT, rng())
    assert found.epsilon == pytest.approx(mechanism.truth(value, CLAIM).low, rel=1e-3)
    assert found.epsilon < found.highest < 1.01 * found.epsilon


def test_unobserved_canaries_cost_power():
    mechanism = MECHANISMS["less-noise"]
    closed, fitted = (alarms.alarm_probability(mechanism, 0.9, CLAIM, COUNT, rng(), null) for null in (None, COUNT))
    assert fitted < closed


def test_what_is_the_same_in_all_releases_is_as_little_seen_as_honest_noise():
    found = alarms.predict(MECHANISMS["reused-noise"], 10.0, CLAIM, COUNT, rng())
    assert found.alarm < 0.1
    assert found.epsilon == pytest.approx(CLAIM.epsilon, rel=0.03)


def test_no_noise_at_all_is_told_with_certainty():
    found = alarms.predict(MECHANISMS["no-noise-on-a-share"], 1.0, CLAIM, 10, rng())
    assert found.alarm == pytest.approx(1.0)
    assert found.epsilon > 1e5


ONE = np.ones((1, 1))


@given(count=st.integers(1, 12), dim=st.integers(4, 12), seed=st.integers(0, 2**32), weight=st.floats(0.1, 3.0))
def test_scores_are_cosines_of_unit_vectors(count, dim, seed, weight):
    rng = np.random.default_rng(seed)
    rows = alarms._directions(count, dim, 2, rng)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    for draw in (alarms.exact, alarms.leading):
        observed, unobserved = draw(single((dim,), np.array([[2.0], [0.5]])), weight * ONE, count, 3, rng)
        assert observed.shape == (2, count)
        assert unobserved.shape == (2, 3)
    exact, _ = alarms.exact(single((dim,), np.array([[2.0]])), weight * ONE, count, 1, rng)
    assert np.abs(exact).max() <= 1.0 + 1e-12


def test_a_single_canary_alone_is_the_release():
    observed, _ = alarms.exact(single((50,), np.zeros((3, 1))), ONE, 1, 1, np.random.default_rng(0))
    np.testing.assert_allclose(observed, 1.0)


def test_several_canaries_without_noise_share_the_release():
    # Inner products with their own sum have the sum's square for their sum.
    observed, _ = alarms.exact(single((40,), np.zeros((200, 1))), ONE, 10, 1, np.random.default_rng(0))
    np.testing.assert_allclose((observed.sum(axis=1) ** 2).mean(), 10.0, rtol=0.1)


@pytest.mark.parametrize("draw", [alarms.exact, alarms.leading])
def test_the_mean_score_tells_the_weight_and_the_norm(draw):
    residual = single((100_000,), np.full((200, 1), 4.0 * 100_000))
    observed, unobserved = draw(residual, 3.0 * ONE, 20, 20, np.random.default_rng(1))
    error = 1.0 / math.sqrt(4000.0)
    assert abs(math.sqrt(1e5) * observed.mean() - 1.5) <= 6.0 * error
    assert abs(math.sqrt(1e5) * unobserved.mean()) <= 6.0 * error


@pytest.mark.parametrize("draw", [alarms.exact, alarms.leading])
def test_the_largest_of_two_equal_releases_is_either(draw):
    residual = ReleaseResidual((10_000,), np.full((200, 1, 2, 2), 1e4))
    _, unobserved = draw(residual, np.zeros((1, 2)), 1, 50, np.random.default_rng(2))
    # Of independent ones the mean would be 1/√π deviations.
    assert abs(100.0 * unobserved.mean()) <= 6.0 / math.sqrt(10_000.0)


NEVER = {"low-rank", "unclipped", "memorised", "released-outright", "normalised-after-noise", "few-states"}


def by_name(parts):
    return {part.mechanism: part for part in parts}


def test_what_nobody_sees_is_never_noticed_and_what_all_see_has_an_edge():
    noticed, missed = map(by_name, ranges(CLAIM, by_estimate(CLAIM, 1000)))
    assert set(missed) >= NEVER
    assert NEVER.isdisjoint(noticed)
    for name in ("less-noise", "dilution", "no-noise-on-a-share", "half-noise-on-a-share"):
        assert noticed[name].alarm >= POWER > missed[name].alarm
    assert noticed["less-noise"].high <= missed["less-noise"].low <= 1.002 * noticed["less-noise"].high
    assert noticed["coarse-noise"].high + 1.0 == missed["coarse-noise"].low
    assert math.isinf(missed["no-noise-on-a-share"].epsilon)
    # Their ε is what is claimed: alarms are the auditor's, and where there is none nothing is missed.
    assert "other-canaries" in noticed
    assert {"other-canaries", "final-iterate", "laplace", "reused-noise"}.isdisjoint(missed)


def test_more_canaries_notice_more():
    few, many = (by_name(ranges(CLAIM, by_estimate(CLAIM, count))[0])["less-noise"].high for count in (100, 10_000))
    assert few < 0.75 < many < 1.0


def test_the_edge_is_where_nine_of_ten_audits_raise_an_alarm():
    """Cosines by their exact joint law, from another module than the atlas's."""
    count, dim, runs = 60, 10**5, 400
    claim = AtlasClaim(1.39, 1e-5, dim)
    edge = by_name(ranges(claim, by_estimate(claim, count))[0])["less-noise"].high
    rng = np.random.default_rng(2)
    cosines = np.array([exact_law.cosines(count, dim, edge * 1.39, rng) for _ in range(runs)])
    low = estimators.adaptive_low(from_dimension(cosines, dim), 1e-5, 1.0 - 2.0 * alarms.ALPHA)
    raised = int((low > AtlasClaim(1.39, 1e-5, dim).epsilon).sum())
    # A hundredth for the test of variances.
    assert stats.binom.cdf(raised, runs, POWER - 0.01) > 1e-6
    assert stats.binom.sf(raised - 1, runs, POWER + 0.01) > 1e-6


def test_several_rounds_are_listed_beside_unobserved_canaries():
    noticed, missed = ranges(CLAIM, by_estimate(CLAIM, 200, 200), several=True)
    assert {"reused-noise", "correlated-noise", "low-rank-rounds", "fixed-batches"} <= set(by_name(missed))
    assert "final-iterate" not in by_name((*noticed, *missed))
