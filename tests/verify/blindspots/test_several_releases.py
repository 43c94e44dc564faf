import math

import numpy as np
import pytest

from canaryproof.verify.blindspots import mechanisms
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim

CLAIM = Claim(0.8, 1e-5, 500)


def grams(name, value, runs=3000):
    return MECHANISMS[name].residual(value, CLAIM, runs, np.random.default_rng(8)).gram


def test_gram_matrices_have_their_mean_and_spread():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    found = mechanisms._wishart(covariance, 30, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(found.mean(axis=0), 30.0 * covariance, rtol=0.02)
    # Var of an off-diagonal entry: d(C₁₁C₂₂ + C₁₂²).
    assert found[:, 0, 1].var() == pytest.approx(30.0 * 2.25, rel=0.05)


def test_reused_noise_has_one_direction():
    found = grams("reused-noise", 10.0)
    assert found.shape[1:] == (10, 10)
    assert np.ptp(found, axis=(1, 2)).max() == 0.0


@pytest.mark.parametrize("value", [0.0, 0.5, 0.99])
def test_correlation_falls_from_round_to_round(value):
    mean = grams("correlated-noise", value).mean(axis=0)
    np.testing.assert_allclose(mean[0] / mean[0, 0], value ** np.arange(10), atol=0.02)


def test_cosines_of_low_rank_noise_are_as_of_few_dimensions():
    found = grams("low-rank-rounds", 0.1)
    cosine = found[:, 0, 1] / np.sqrt(found[:, 0, 0] * found[:, 1, 1])
    assert cosine.var() == pytest.approx(1.0 / 50.0, rel=0.15)
    assert found[:, 0, 0].mean() == pytest.approx(0.64 * 500, rel=0.02)


def test_an_iterate_that_contracts_hides_its_noise():
    mechanism = MECHANISMS["final-iterate"]
    assert mechanism.truth(0.0, CLAIM).high == CLAIM.epsilon
    assert mechanism.truth(1.0, CLAIM).high == pytest.approx(Claim(0.8 * math.sqrt(10.0), 1e-5, 500).epsilon, rel=1e-9)
    assert mechanism.weights(0.5).ravel()[-2:].tolist() == [0.5, 1.0]
    assert grams("final-iterate", 0.5).mean() == pytest.approx(0.64 * 500 * (4.0 / 3.0), rel=0.01)


@pytest.mark.parametrize("dim", [1, 3, 10, 40])
def test_gram_matrices_of_fewer_dimensions_than_rounds_have_their_rank(dim):
    grams = mechanisms._wishart(np.eye(10), dim, 4000, np.random.default_rng(dim))
    assert np.linalg.matrix_rank(grams[0]) == min(dim, 10)
    # A squared norm's mean is d; its error has the deviation √(2d/40,000).
    assert np.trace(grams, axis1=1, axis2=2).mean() / 10 == pytest.approx(dim, abs=6.0 * (2.0 * dim / 40_000) ** 0.5)
