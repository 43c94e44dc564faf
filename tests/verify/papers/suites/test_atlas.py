import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim, ReleaseResidual, single
from canaryproof.verify.audit.blindspots.ranges import ALPHA, alarm_probability, leading
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import Moments, from_dimension
from canaryproof.verify.papers.suites import atlas
from canaryproof.verify.papers.suites.atlas import Size

CLAIM = AtlasClaim(1.3905934566745368, 1e-5, 10**6)
SIZE = Size(100, 20, 3, 2, True)


def key():
    return np.random.SeedSequence(5)


def test_all_methods_are_measured_and_equal_keys_give_equal_numbers():
    found = atlas.measure(MECHANISMS["less-noise"], 0.25, CLAIM, SIZE, key())
    assert found == atlas.measure(MECHANISMS["less-noise"], 0.25, CLAIM, SIZE, key())
    expected = {*atlas.ESTIMATORS, *atlas.BOUNDS, *atlas.COIN_BOUNDS, atlas.CANIFE}
    assert set(found.methods) == expected
    assert found.rate[0] == found.methods["adaptive"].rate[0] == 1.0
    assert found.methods["adaptive"].runs == 3
    assert found.methods["one-run"].runs == 2
    assert found.truth[0] <= found.truth[1]
    assert found.canife == atlas._of_deviation(0.25 * CLAIM.noise_multiplier, CLAIM)


def test_several_releases_have_unobserved_scores_and_no_bound_that_needs_an_exact_null():
    found = atlas.measure(MECHANISMS["reused-noise"], 2.0, CLAIM, SIZE, key())
    assert {name for name in atlas.BOUNDS if atlas.BOUNDS[name].needs == "null"}.isdisjoint(found.methods)
    assert "fixed-sequence" in found.methods


def test_scores_that_are_no_cosines_are_measured():
    found = atlas.measure(MECHANISMS["laplace-spread"], 1.0, CLAIM, SIZE, key())
    assert found.rate[0] > 0.5
    assert found.canife is None


def test_the_default_estimators_lower_end_is_its_own():
    rng = np.random.default_rng(0)
    # Of some runs the variances differ.
    scores = rng.standard_normal((40, 200)) * rng.choice([1.0, 1.4], (40, 1)) + 0.7
    found = from_dimension(scores / 1000.0, 10**6)
    adaptive = atlas.ESTIMATORS["adaptive"](found, 1e-5, 1.0 - 2.0 * ALPHA)
    np.testing.assert_array_equal(epsilon_estimators.adaptive_low(found, 1e-5, 1.0 - 2.0 * ALPHA), adaptive.low)


def test_lower_ends_are_exceeded_by_chance_in_five_percent():
    """One end of an interval at 90%, as a bound at 95% has all of it at one end."""
    moments = from_dimension((np.random.default_rng(0).standard_normal((3, 200)) + 2.0) / 1000.0, 10**6)
    rows = list(atlas.estimates(moments, 1e-5))
    assert [name for name, *_ in rows] == ["adaptive", "pinned", "fitted", "threshold"]
    for name, values, low in rows:
        estimate = getattr(epsilon_estimators, f"{name}_estimate")(moments, 1e-5, 0.9)
        np.testing.assert_array_equal((values, low), (estimate.epsilon, estimate.low))


@pytest.mark.parametrize(("name", "value"), [("less-noise", 0.5), ("other-canaries", 0.5)])
def test_moments_drawn_from_their_laws_are_those_of_scores(name, value):
    """At level 1e-6, differences of 0.1 are noticed."""
    mechanism, count, runs, draws = MECHANISMS[name], 40, 4000, np.random.default_rng(5)
    claim = replace(CLAIM, dim=10**4)
    residual, weights = mechanism.residual(value, claim, runs, draws), mechanism.weights(value)
    scores = from_dimension(leading(residual, weights, count, 0, draws)[0], claim.dim)
    drawn = atlas.leading_moments(residual, float(weights[0, 0]), count, draws)
    for read in (lambda m: m.distance, lambda m: m.ratio, lambda m: m.distance * m.ratio):
        assert stats.ks_2samp(read(scores), read(drawn)).pvalue > 2e-7
    lows = [epsilon_estimators.adaptive_low(each, 1e-5, 0.9) for each in (scores, drawn)]
    assert stats.ks_2samp(*lows).pvalue > 2e-7
    # Of those whose variances differ alone the shape is drawn.
    differ = epsilon_estimators.variance_p_value(drawn) < epsilon_estimators.TEST_LEVEL
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
    raised = int((epsilon_estimators.pinned_estimate(moments, CLAIM.delta, 0.9).low > CLAIM.epsilon).sum())
    found = atlas.predict(MECHANISMS["less-noise"], value, CLAIM, COUNT, rng()).alarm
    assert found == pytest.approx(rate, abs=0.01)
    assert stats.binomtest(raised, runs, found).pvalue > LEVEL
    assert found == alarm_probability(MECHANISMS["less-noise"], value, CLAIM, COUNT, rng())


@pytest.mark.parametrize("value", [1.0, 0.5, 0.25])
def test_unlimited_canaries_tell_the_truth_of_pure_noise(value):
    mechanism = MECHANISMS["less-noise"]
    found = atlas.predict(mechanism, value, CLAIM, COUNT, rng())
    assert found.epsilon == pytest.approx(mechanism.truth(value, CLAIM).low, rel=1e-3)
    assert found.epsilon < found.highest < 1.01 * found.epsilon


def test_what_is_the_same_in_all_releases_is_as_little_seen_as_honest_noise():
    found = atlas.predict(MECHANISMS["reused-noise"], 10.0, CLAIM, COUNT, rng())
    assert found.alarm < 0.1
    assert found.epsilon == pytest.approx(CLAIM.epsilon, rel=0.03)


def test_no_noise_at_all_is_told_with_certainty():
    found = atlas.predict(MECHANISMS["no-noise-on-a-share"], 1.0, CLAIM, 10, rng())
    assert found.alarm == pytest.approx(1.0)
    assert found.epsilon > 1e5


ONE = np.ones((1, 1))


@given(count=st.integers(1, 12), dim=st.integers(4, 12), seed=st.integers(0, 2**32), weight=st.floats(0.1, 3.0))
def test_scores_are_cosines_of_unit_vectors(count, dim, seed, weight):
    rng = np.random.default_rng(seed)
    rows = atlas._directions(count, dim, 2, rng)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    for draw in (atlas.exact, leading):
        observed, unobserved = draw(single((dim,), np.array([[2.0], [0.5]])), weight * ONE, count, 3, rng)
        assert observed.shape == (2, count)
        assert unobserved.shape == (2, 3)
    exact, _ = atlas.exact(single((dim,), np.array([[2.0]])), weight * ONE, count, 1, rng)
    assert np.abs(exact).max() <= 1.0 + 1e-12


def test_a_single_canary_alone_is_the_release():
    observed, _ = atlas.exact(single((50,), np.zeros((3, 1))), ONE, 1, 1, np.random.default_rng(0))
    np.testing.assert_allclose(observed, 1.0)


def test_several_canaries_without_noise_share_the_release():
    # Inner products with their own sum have the sum's square for their sum.
    observed, _ = atlas.exact(single((40,), np.zeros((200, 1))), ONE, 10, 1, np.random.default_rng(0))
    np.testing.assert_allclose((observed.sum(axis=1) ** 2).mean(), 10.0, rtol=0.1)


@pytest.mark.parametrize("draw", [atlas.exact, leading])
def test_the_mean_score_tells_the_weight_and_the_norm(draw):
    residual = single((100_000,), np.full((200, 1), 4.0 * 100_000))
    observed, unobserved = draw(residual, 3.0 * ONE, 20, 20, np.random.default_rng(1))
    error = 1.0 / math.sqrt(4000.0)
    assert abs(math.sqrt(1e5) * observed.mean() - 1.5) <= 6.0 * error
    assert abs(math.sqrt(1e5) * unobserved.mean()) <= 6.0 * error


@pytest.mark.parametrize("draw", [atlas.exact, leading])
def test_the_largest_of_two_equal_releases_is_either(draw):
    residual = ReleaseResidual((10_000,), np.full((200, 1, 2, 2), 1e4))
    _, unobserved = draw(residual, np.zeros((1, 2)), 1, 50, np.random.default_rng(2))
    # Of independent ones the mean would be 1/√π deviations.
    assert abs(100.0 * unobserved.mean()) <= 6.0 / math.sqrt(10_000.0)


# Diagnostics other than cosines.

LAYERS = AtlasClaim(1.0, 1e-5, 10**6)


@pytest.mark.parametrize(
    ("name", "value", "test", "sees"),
    [
        ("less-noise", 0.9, "norm", True),
        ("dilution", 0.25, "norm", True),
        ("dilution", 1.0, "norm", False),
        ("half-noise-on-a-share", 0.001, "norm", False),
        ("half-noise-on-a-share", 0.001, "part-norms", True),
        ("no-noise-on-a-share", 0.001, "part-norms", True),
        ("unclipped", 10.0, "norm", False),
        ("released-outright", 1e-3, "part-norms", False),
        ("other-canaries", 2.0, "norm", False),
        ("few-states", 0.0, "norm", False),
        ("coarse-noise", 16.0, "norm", False),
        ("correlated-noise", 0.5, "norm", False),
        ("correlated-noise", 0.5, "rounds", True),
        ("reused-noise", 2.0, "rounds", True),
        ("low-rank-rounds", 0.1, "rounds", True),
        ("low-rank-rounds", 1.0, "rounds", False),
    ],
)
def test_what_is_seen(name, value, test, sees):
    low, high = atlas.diagnose(MECHANISMS[name], value, LAYERS, 200, np.random.SeedSequence(1))[test].rate[1:]
    assert low > 0.9 if sees else high < 0.3


def test_one_release_has_no_rounds_to_compare():
    found = atlas.diagnose(MECHANISMS["less-noise"], 1.0, LAYERS, 10, np.random.SeedSequence(1))
    assert set(found) == {"norm", "part-norms"}


def test_canaries_of_one_part_see_that_part_alone():
    layer = atlas.confined(MECHANISMS["half-noise-on-a-share"], LAYERS)
    found = layer.residual(0.01, replace(LAYERS, dim=10_000), 50, np.random.default_rng(0))
    assert found.dims == (10_000,)
    assert found.gram.mean() == pytest.approx(0.25 * 10_000, rel=0.02)
    assert layer.canife is None


def test_a_few_canaries_of_a_layer_see_what_many_elsewhere_do_not():
    mechanism, runs = MECHANISMS["half-noise-on-a-share"], 100
    layer, part = atlas.confined(mechanism, LAYERS), replace(LAYERS, dim=1000)
    few = atlas.measure(layer, 0.001, part, atlas.Size(30, runs, 5, 1, exact=True), np.random.SeedSequence(2))
    everywhere = atlas.measure(
        mechanism, 0.001, LAYERS, atlas.Size(1000, runs, 5, 1, exact=False), np.random.SeedSequence(2)
    )
    assert few.rate[1] > 0.8
    assert everywhere.rate[2] < 0.3


def test_noise_that_is_less_because_of_sampling_is_as_stated():
    found = atlas.diagnose(MECHANISMS["fixed-batches"], 30.0, LAYERS, 400, np.random.SeedSequence(3))
    critical = stats.binom.isf(1e-6, 400, ALPHA)
    assert {"norm", "rounds"} <= set(found)
    assert all(one.alarms <= critical for one in found.values())
