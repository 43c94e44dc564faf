import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim, Residual, gaussian_truth, single

CLAIM = Claim(1.0, 1e-5, 10_000)
# Where the first value is what is claimed; the others are broken, or better, throughout.
HARMLESS = set(MECHANISMS) - {"dilution", "laplace-spread"}


@given(sigma=st.floats(0.2, 20.0), factor=st.floats(0.05, 1.0))
def test_the_truth_of_normal_noise_encloses_the_fast_kernels(sigma, factor):
    found = gaussian_truth(Claim(sigma, 1e-6, 100), factor)
    plain = float(gaussian_mechanism.epsilon(1e-6, sigma * factor))
    assert found.low <= found.high
    assert found.low * (1 - 1e-12) <= plain <= found.high * (1 + 1e-12)


def test_no_noise_leaves_no_epsilon():
    found = gaussian_truth(CLAIM, 0.0, "none")
    assert (found.low, found.high, found.reason) == (math.inf, math.inf, "none")


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_starts_harmless(name):
    mechanism = MECHANISMS[name]
    first = mechanism.truth(mechanism.values[0], CLAIM)
    assert (first.low <= CLAIM.epsilon * (1 + 1e-12)) == (name in HARMLESS)
    assert first.reason


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_gets_no_better_the_farther_it_goes(name):
    mechanism = MECHANISMS[name]
    highs = [mechanism.truth(value, CLAIM).high for value in mechanism.values]
    if name == "final-iterate":
        # The harmless one, whose noise adds up.
        highs.reverse()
    assert all(one <= other for one, other in pairwise(highs))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_distance_is_a_probability(name):
    mechanism = MECHANISMS[name]
    assert all(0.0 <= mechanism.distance(value, CLAIM) <= 1.0 for value in mechanism.values)


@pytest.mark.parametrize("name", MECHANISMS)
def test_residuals_have_the_claimed_shape(name):
    mechanism = MECHANISMS[name]
    for value in mechanism.values:
        releases = mechanism.weights(value).shape[1]
        if mechanism.scores is not None:
            observed, unobserved = mechanism.scores(value, CLAIM, 5, 3, np.random.default_rng(0))
            assert observed.shape == unobserved.shape == (3, 5)
            with pytest.raises(ValueError, match="no uniform directions"):
                mechanism.residual(value, CLAIM, 1, np.random.default_rng(0))
            continue
        found = mechanism.residual(value, CLAIM, 3, np.random.default_rng(0))
        assert found.dim == CLAIM.dim
        assert found.gram.shape == (3, releases, releases)
        assert np.linalg.eigvalsh(found.gram).min() >= -1e-6


def test_a_part_of_a_residual_is_one():
    residual = single((2, 3), np.array([[1.0, 4.0], [9.0, 16.0]]))
    assert residual.dim == 5
    assert residual.gram.ravel().tolist() == [5.0, 25.0]
    part = residual.part(1)
    assert part.dims == (3,)
    assert part.gram.ravel().tolist() == [4.0, 16.0]
    assert isinstance(part, Residual)
