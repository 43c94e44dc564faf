import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.audit.blindspots import diagnostics
from canaryproof.verify.audit.blindspots.mechanisms import AtlasClaim

CLAIM = AtlasClaim(1.0, 1e-5, 10**6)


@given(square=st.floats(1.0, 400.0), sigma=st.floats(0.2, 5.0), dim=st.integers(1, 300))
def test_the_norms_p_value_is_the_chi_square_laws(square, sigma, dim):
    found = float(diagnostics.norm_p_value(square, sigma, dim))
    assert found == pytest.approx(float(stats.chi2(dim).cdf(square / sigma**2)), rel=1e-9, abs=1e-300)
    # A part that is everything is nothing else.
    assert float(diagnostics.part_norms_p_value([square], sigma, (dim,))) == found


@given(shares=st.lists(st.floats(0.5, 1.5), min_size=1, max_size=5))
def test_bonferronis_factor_is_the_number_of_parts(shares):
    dims = (50,) * len(shares)
    squares = 50.0 * np.array(shares)
    each = min(float(diagnostics.norm_p_value(square, 1.0, 50)) for square in squares)
    assert float(diagnostics.part_norms_p_value(squares, 1.0, dims)) == pytest.approx(min(1.0, len(shares) * each))


@given(rounds=st.integers(2, 6), seed=st.integers(0, 2**32), scale=st.floats(0.1, 10.0))
def test_the_rounds_test_without_data_knows_directions_only(rounds, seed, scale):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((rounds, 30))
    lengths = scale * rng.uniform(0.5, 2.0, (rounds, 1))
    first, second = (float(diagnostics.rounds_p_value(r @ r.T, 1.0, 30)) for r in (rows, lengths * rows))
    assert first == pytest.approx(second, rel=1e-6)
    assert 0.0 <= first <= 1.0


def test_two_rounds_have_the_cosines_own_p_value():
    gram = np.array([[1.0, 0.3], [0.3, 1.0]])
    expected = float(stats.beta(0.5, 0.5 * 39).sf(0.09))
    assert float(diagnostics.rounds_p_value(gram, 1.0, 40)) == pytest.approx(expected, rel=1e-9)


@given(small=st.floats(0.0, 5.0), more=st.floats(0.1, 5.0))
def test_more_data_explain_more(small, more):
    gram = np.array([[50.0, 20.0], [20.0, 60.0]])
    low, high = (float(diagnostics.rounds_p_value(gram, 1.0, 40, norm)) for norm in (small, small + more))
    assert low <= high


def test_noise_that_is_the_same_is_seen_beside_little_data():
    same = np.full((2, 2), 1e6)
    assert float(diagnostics.rounds_p_value(same, 1.0, 10**6, 300.0)) <= 1e-12
