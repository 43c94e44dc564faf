import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.blindspots import mechanisms
from canaryproof.verify.audit.blindspots.mechanisms import (
    MECHANISMS,
    AtlasClaim,
    ReleaseResidual,
    gaussian_truth,
    single,
)
from canaryproof.verify.papers.accounting.analytical import pld


@given(
    vector=hnp.arrays(np.float64, 5, elements=st.floats(-50.0, 50.0)),
    bits=st.integers(1, 24),
    sigma=st.floats(0.05, 20.0),
    seed=st.integers(0, 2**32),
)
def test_the_attack_accuses_nobody_who_was_there(vector, bits, sigma, seed):
    releases = mechanisms.coarse_release(vector, bits, sigma, np.random.default_rng(seed), 20)
    assert releases.dtype == np.float32
    assert mechanisms.are_possible(releases, vector, bits, sigma).all()


@pytest.mark.parametrize("bits", [4, 12, 16])
def test_all_values_of_the_noise_are_possible_and_the_next_number_is_not(bits):
    quantiles = special.ndtri((np.arange(2**bits) + 0.5) / 2**bits)
    values = (np.float32(0.8) * quantiles.astype(np.float32))[:, np.newaxis]
    assert mechanisms.are_possible(values, np.zeros(1), bits, 0.8).all()
    next_one = np.nextafter(values, np.float32(np.inf))
    apart = ~np.isin(next_one, values)
    assert apart.any()
    assert (mechanisms.are_possible(next_one, np.zeros(1), bits, 0.8) == ~apart).all()


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_the_attack_wins_at_the_granularity_of_single_precision(sigma):
    rng = np.random.default_rng(4)
    client = np.array([1.0])
    told = mechanisms.are_impossible_alone(
        mechanisms.coarse_release(client, 24, sigma, rng, 20_000), np.zeros(1), 24, sigma
    )
    # The claim allows δ = 1e-5 where nobody is accused wrongly.
    assert told.mean() > 0.75
    spread, others = np.full(1000, 1.0 / math.sqrt(1000.0)), rng.standard_normal(1000)
    assert mechanisms.are_impossible_alone(
        mechanisms.coarse_release(spread + others, 24, sigma, rng, 50), others, 24, sigma
    ).all()
    assert not mechanisms.are_impossible_alone(
        mechanisms.coarse_release(others, 24, sigma, rng, 50), others, 24, sigma
    ).any()


def test_coarse_noise_has_the_drawn_norms():
    claim = AtlasClaim(0.7, 1e-5, 300)
    drawn = MECHANISMS["coarse-noise"].residual(4.0, claim, 4000, np.random.default_rng(1)).gram.ravel()
    real = (mechanisms.coarse_release(np.zeros(300), 4, 0.7, np.random.default_rng(2), 4000).astype(float) ** 2).sum(
        axis=1
    )
    error = math.hypot(drawn.std(), real.std()) / math.sqrt(4000)
    assert abs(drawn.mean() - real.mean()) <= 6.0 * error
    assert drawn.std() == pytest.approx(real.std(), rel=0.08)


def test_fine_uniforms_give_the_normal_laws_moments():
    mean, variance = mechanisms._square_moments(16)
    assert mean == pytest.approx(1.0, abs=1e-4)
    assert variance == pytest.approx(2.0, abs=5e-3)
    assert mechanisms._square_moments(1) == pytest.approx((0.6744897501960817**2, 0.0))


@given(sigma=st.floats(0.3, 5.0), delta=st.floats(1e-8, 1e-2))
def test_the_claimed_scale_has_the_claimed_epsilon(sigma, delta):
    claim = AtlasClaim(sigma, delta, 100)
    truth = MECHANISMS["laplace"].truth(1.0, claim)
    assert truth.high == pytest.approx(claim.epsilon, rel=1e-9, abs=1e-12)
    # δ(ε) = 1 − exp((ε − 1/b)/2).
    assert 1.0 - math.exp(0.5 * (truth.high - 1.0 / mechanisms.claimed_scale(claim))) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("spread", [1, 10, 100, 101, 1000])
def test_a_canary_stands_out_by_the_root_of_its_spread(spread):
    observed, unobserved = mechanisms.laplace_scores(spread, 0.1, 10**6, 50, 400, np.random.default_rng(5))
    error = 0.1 * math.sqrt(2.0 / 20_000.0)
    assert abs(unobserved.mean()) <= 6.0 * error
    assert observed.mean() == pytest.approx(math.sqrt(2.0 / (spread + 1)), rel=0.02, abs=6.0 * error)
    assert unobserved.std() == pytest.approx(0.1 * math.sqrt(2.0), rel=0.06)


def test_other_canaries_are_noise():
    _, few = mechanisms.laplace_scores(1000, 1e-9, 1000, 1, 2000, np.random.default_rng(6))
    _, many = mechanisms.laplace_scores(1000, 1e-9, 1000, 500, 4, np.random.default_rng(6))
    assert few.std() < 1e-8
    assert many.std() == pytest.approx(math.sqrt(499 * 2.0 / (1001 * 1000)), rel=0.1)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("rounds", [3, pytest.param(10, marks=pytest.mark.deep), 30])
def test_with_fixed_batches_the_noise_is_what_poisson_sampling_needs(rounds):
    """At the atlas's ε = 3, whose noise the shares are rounded up to."""
    sigma = mechanisms.sampled_share(rounds) * float(gaussian_mechanism.noise_multiplier(3.0, 1e-5))
    assert 2.98 < pld(sigma, 1e-5, rounds, 1.0 / rounds) <= 3.0
    assert mechanisms.sampled_share(rounds + 0.5) != mechanisms.sampled_share(rounds - 0.5)


CLAIM = AtlasClaim(1.0, 1e-5, 10_000)
# Where the first value is what is claimed; the others are broken, or better, throughout.
HARMLESS = set(MECHANISMS) - {"dilution", "laplace-spread"}


@given(sigma=st.floats(0.2, 20.0), factor=st.floats(0.05, 1.0))
def test_the_truth_of_normal_noise_encloses_the_fast_kernels(sigma, factor):
    found = gaussian_truth(AtlasClaim(sigma, 1e-6, 100), factor)
    plain = float(gaussian_mechanism.epsilon(1e-6, sigma * factor))
    assert found.low <= found.high
    assert found.low * (1 - 1e-12) <= plain <= found.high * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "value", "variance"),
    [
        ("less-noise", 0.3, 0.09),
        ("dilution", 4.0, 0.25),
        ("no-noise-on-a-share", 0.1, 0.9),
        ("half-noise-on-a-share", 0.1, 0.9 + 0.1 * 0.25),
        ("low-rank", 0.1, 1.0),
    ],
)
def test_canife_measures_the_mean_variance_of_the_coordinates(name, value, variance):
    claim = AtlasClaim(1.5, 1e-5, 10**6)
    assert MECHANISMS[name].canife(value, claim) == pytest.approx(1.5 * math.sqrt(variance))


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
    assert isinstance(part, ReleaseResidual)


ROUNDS_CLAIM = AtlasClaim(0.8, 1e-5, 500)


def grams(name, value, runs=3000):
    return MECHANISMS[name].residual(value, ROUNDS_CLAIM, runs, np.random.default_rng(8)).gram


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
    assert mechanism.truth(0.0, ROUNDS_CLAIM).high == ROUNDS_CLAIM.epsilon
    assert mechanism.truth(1.0, ROUNDS_CLAIM).high == pytest.approx(
        AtlasClaim(0.8 * math.sqrt(10.0), 1e-5, 500).epsilon, rel=1e-9
    )
    assert mechanism.weights(0.5).ravel()[-2:].tolist() == [0.5, 1.0]
    assert grams("final-iterate", 0.5).mean() == pytest.approx(0.64 * 500 * (4.0 / 3.0), rel=0.01)


@pytest.mark.parametrize("dim", [1, 3, 10, 40])
def test_gram_matrices_of_fewer_dimensions_than_rounds_have_their_rank(dim):
    grams = mechanisms._wishart(np.eye(10), dim, 4000, np.random.default_rng(dim))
    assert np.linalg.matrix_rank(grams[0]) == min(dim, 10)
    # A squared norm's mean is d; its error has the deviation √(2d/40,000).
    assert np.trace(grams, axis1=1, axis2=2).mean() / 10 == pytest.approx(dim, abs=6.0 * (2.0 * dim / 40_000) ** 0.5)


RELEASE_CLAIM = AtlasClaim(0.8, 1e-5, 1000)
RUNS = 4000


def squares(name, value):
    residual = MECHANISMS[name].residual(value, RELEASE_CLAIM, RUNS, np.random.default_rng(3))
    return residual.grams[:, :, 0, 0]


@given(norm=st.floats(0.05, 4.0), sigma=st.floats(0.3, 3.0), dim=st.integers(2, 3000))
def test_the_distance_bounds_the_total_variation_of_the_norms(norm, sigma, dim):
    bound = MECHANISMS["unclipped"].distance(norm, AtlasClaim(sigma, 1e-5, dim))
    with_data = stats.ncx2(dim, (norm / sigma) ** 2)
    reach = 12.0 * math.sqrt(2.0 * dim) + 40.0 + 4.0 * (norm / sigma) ** 2
    x = np.linspace(max(1e-9, dim - reach), dim + reach, 4001)
    # The densities' ratio rises, so that the distance is that of distribution functions.
    distance = float(np.max(stats.chi2(dim).cdf(x) - with_data.cdf(x)))
    assert distance <= bound + 1e-9


def test_the_distance_is_near_the_truth_for_little_data():
    claim = AtlasClaim(1.0, 1e-5, 1000)
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
        epsilon = truth(p, RELEASE_CLAIM).high
        assert p + (1.0 - p) * gaussian_mechanism.delta(epsilon, 0.8) == pytest.approx(1e-5, rel=1e-9)
    assert truth(1e-5, RELEASE_CLAIM).low == math.inf == truth(0.5, RELEASE_CLAIM).low
