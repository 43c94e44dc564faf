import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.verify.blindspots import alarms
from canaryproof.verify.blindspots.mechanisms import Residual, single

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
    residual = Residual((10_000,), np.full((200, 1, 2, 2), 1e4))
    _, unobserved = draw(residual, np.zeros((1, 2)), 1, 50, np.random.default_rng(2))
    # Of independent ones the mean would be 1/√π deviations.
    assert abs(100.0 * unobserved.mean()) <= 6.0 / math.sqrt(10_000.0)
