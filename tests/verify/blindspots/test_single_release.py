import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim

CLAIM = Claim(0.8, 1e-5, 1000)
RUNS = 4000


def squares(name, value):
    residual = MECHANISMS[name].residual(value, CLAIM, RUNS, np.random.default_rng(3))
    return residual.grams[:, :, 0, 0]


@given(norm=st.floats(0.05, 4.0), sigma=st.floats(0.3, 3.0), dim=st.integers(2, 3000))
def test_the_distance_bounds_the_total_variation_of_the_norms(norm, sigma, dim):
    bound = MECHANISMS["unclipped"].distance(norm, Claim(sigma, 1e-5, dim))
    with_data = stats.ncx2(dim, (norm / sigma) ** 2)
    reach = 12.0 * math.sqrt(2.0 * dim) + 40.0 + 4.0 * (norm / sigma) ** 2
    x = np.linspace(max(1e-9, dim - reach), dim + reach, 4001)
    # The densities' ratio rises, so that the distance is that of distribution functions.
    distance = float(np.max(stats.chi2(dim).cdf(x) - with_data.cdf(x)))
    assert distance <= bound + 1e-9


def test_the_distance_is_near_the_truth_for_little_data():
    claim = Claim(1.0, 1e-5, 1000)
    x = np.linspace(800.0, 1200.0, 4001)
    distance = float(np.max(stats.chi2(1000).cdf(x) - stats.ncx2(1000, 1.0).cdf(x)))
    assert MECHANISMS["unclipped"].distance(1.0, claim) == pytest.approx(distance, rel=0.02)


@pytest.mark.parametrize(
    ("name", "value", "mean"),
    [
        ("less-noise", 0.5, 0.25 * 0.64 * 1000),
        ("dilution", 4.0, (0.25 + 4.0) * 0.64 * 1000),
        ("low-rank", 0.1, 0.64 * 1000),
        ("unclipped", 10.0, 0.64 * 1000 + 100.0),
        ("memorised", 3.0, 0.64 * 1000 + 16.0),
        ("released-outright", 1e-3, 0.64 * 1000),
        ("other-canaries", 2.0, 0.64 * 1000),
    ],
)
def test_squared_norms_have_their_means(name, value, mean):
    found = squares(name, value).sum(axis=1)
    assert abs(found.mean() - mean) <= 6.0 * found.std() / math.sqrt(RUNS)


@pytest.mark.parametrize(("name", "factor"), [("no-noise-on-a-share", 0.0), ("half-noise-on-a-share", 0.5)])
def test_the_affected_part_comes_first(name, factor):
    found = squares(name, 0.1).mean(axis=0)
    np.testing.assert_allclose(found, [0.64 * 100 * factor**2, 0.64 * 900], rtol=0.02)


def test_an_outright_release_costs_its_probability():
    truth = MECHANISMS["released-outright"].truth
    # δ(ε) = p + (1 − p)·δ_Gauss(ε), by the fast kernel.
    for p in (0.0, 1e-7, 5e-6, 9.9e-6):
        epsilon = truth(p, CLAIM).high
        assert p + (1.0 - p) * gaussian_mechanism.delta(epsilon, 0.8) == pytest.approx(1e-5, rel=1e-9)
    assert truth(1e-5, CLAIM).low == math.inf == truth(0.5, CLAIM).low
