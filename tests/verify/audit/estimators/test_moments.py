import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.audit.estimators.moments import concatenate, from_dimension, from_two_groups, shape_of


def test_moments_against_the_closed_form_are_the_scaled_mean_and_deviation():
    cosines = np.array([0.01, 0.02, -0.01, 0.04])
    moments = from_dimension(cosines, 400)
    assert moments.distance == pytest.approx(20 * 0.015, rel=1e-14)
    assert moments.ratio == pytest.approx(20 * math.sqrt(np.mean((cosines - 0.015) ** 2)), rel=1e-14)
    assert moments.count == 4
    assert moments.null_count == math.inf


def test_moments_against_unobserved_do_not_depend_on_place_and_scale():
    rng = np.random.default_rng(3)
    seen, unseen = rng.normal(1.0, 1.2, 50), rng.normal(0.0, 1.0, 70)
    one, other = from_two_groups(seen, unseen), from_two_groups(5 + 3 * seen, 5 + 3 * unseen)
    assert one.distance == pytest.approx(other.distance, rel=1e-12)
    assert one.ratio == pytest.approx(other.ratio, rel=1e-12)
    assert one.null_count == 70


def test_many_runs_are_reduced_one_by_one():
    runs = np.random.default_rng(4).normal(size=(3, 2, 20))
    moments = from_dimension(runs, 10)
    assert moments.distance.shape == (3, 2)
    assert moments.distance[2, 1] == from_dimension(runs[2, 1], 10).distance


def test_the_shape_is_skewness_and_kurtosis_about_a_trimmed_mean():
    scores = np.random.default_rng(15).gamma(2.0, size=(3, 40))
    found = from_dimension(scores, 10).shape
    for i, row in enumerate(scores):
        # 40/(2√36) is 3.33: three scores are cut on either side.
        middle = np.sort(row)[3:-3].mean()
        assert found.skewness[i] == pytest.approx(stats.skew(row), rel=1e-12)
        assert found.kurtosis[i] == pytest.approx(np.mean((row - middle) ** 4) / row.var() ** 2, rel=1e-12)
    assert from_dimension(scores[:, :7], 10).shape is None
    both = from_two_groups(scores, 5.0 + 3.0 * scores[::-1])
    np.testing.assert_allclose(both.null_shape.kurtosis, found.kurtosis[::-1], rtol=1e-12)


def test_moments_of_lots_are_joined_and_some_are_taken():
    seen, unseen = np.random.default_rng(16).normal(size=(2, 4, 20))
    together = from_two_groups(seen, unseen)
    again = concatenate([from_two_groups(seen[lot], unseen[lot]) for lot in (slice(0, 3), slice(3, 4))])
    some = together.of(np.array([True, False, True, False]))
    for read in (lambda m: m.ratio, lambda m: m.shape.kurtosis, lambda m: m.null_shape.skewness):
        np.testing.assert_allclose(read(again), read(together), rtol=1e-13)
        np.testing.assert_array_equal(read(some), read(together)[[0, 2]])
    assert (again.count, again.null_count, some.null_count) == (20, 20, 20)


def test_the_kurtosis_is_about_bonetts_trimmed_mean():
    found, expected = {}, {}
    for count in range(9, 200):
        scores = np.random.default_rng(count).exponential(size=count)
        cut = int(count / (2.0 * math.sqrt(count - 4)))
        trimmed = np.sort(scores)[cut : count - cut].mean()
        expected[count] = ((scores - trimmed) ** 4).mean() / scores.var() ** 2
        found[count] = shape_of(scores).kurtosis
    assert found == pytest.approx(expected, rel=1e-10)


def test_eight_scores_have_a_shape_and_seven_have_none():
    scores = np.random.default_rng(0).normal(size=8)
    assert shape_of(scores[:7]) is None
    assert shape_of(scores) is not None
