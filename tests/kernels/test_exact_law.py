import functools
import math

import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels import exact_law

# Each statistical test fails a right kernel with this probability over random seeds; the seeds are fixed.
LEVEL = 1e-7
RUNS = 10_000

# d, k, σ, norm of the data. In some all coordinates are drawn, in the others parts of canaries are joined: among them
# corners with the fewest dimensions for that, counts that do not halve, and the degenerate ones without noise.
CASES = [
    (2, 1, 1.0, 0.0),
    (2, 2, 0.5, 0.0),
    (2, 5, 1.0, 0.0),
    (2, 3, 1.0, 0.8),
    (2, 2, 0.0, 0.5),
    (3, 1, 0.0, 1.0),
    (3, 2, 0.7, 0.0),
    (3, 6, 0.5, 2.0),
    (4, 4, 1.0, 0.0),
    (4, 3, 1.0, 0.0),
    (5, 4, 0.3, 1.0),
    (5, 3, 0.0, 0.0),
    (6, 5, 1.0, 1.0),
    (4, 2, 0.2, 0.5),
    (5, 2, 1.0, 0.0),
    (5, 3, 0.2, 1.0),
    (6, 4, 0.3, 0.0),
    (7, 7, 0.2, 0.0),
    (7, 8, 0.2, 0.7),
    (8, 13, 0.1, 0.0),
    (20, 5, 0.3, 0.0),
]


def algorithm_1(dim, count, noise_multiplier, data_norm, runs, rng):
    """Algorithm 1 as printed, lines 2 to 8; a row of cosines a run."""
    canaries = rng.standard_normal((runs, count, dim))
    canaries /= np.linalg.norm(canaries, axis=2, keepdims=True)
    release = canaries.sum(axis=1) + noise_multiplier * rng.standard_normal((runs, dim))
    release[:, 0] += data_norm
    release /= np.linalg.norm(release, axis=1, keepdims=True)
    return np.einsum("rkd,rd->rk", canaries, release)


@functools.cache
def exact_draws(dim, count, noise_multiplier, data_norm, runs=RUNS):
    rng = np.random.default_rng([1, dim, count])
    return exact_law.cosines(count, dim, noise_multiplier, rng, data_norm, runs)


@functools.cache
def plain_draws(*case):
    return algorithm_1(*case, RUNS, np.random.default_rng([2, *case[:2]]))


@functools.cache
def several_draws(noise, dim, count, data_norm):
    """Runs of all noise multipliers from the exact law, and of each as printed."""
    rng = np.random.default_rng(16)
    drawn = exact_law.cosines(count, dim, noise, rng, data_norm, RUNS)
    return drawn, [algorithm_1(dim, count, each, data_norm, RUNS, rng) for each in noise]


STATISTICS = {
    "first": lambda g: g[:, 0],
    "last": lambda g: g[:, -1],
    "mean": lambda g: g.mean(axis=1),
    "second moment": lambda g: (g * g).mean(axis=1),
    "product of two": lambda g: g[:, 0] * g[:, -1],
    "product of the first two": lambda g: g[:, 0] * g[:, min(1, g.shape[1] - 1)],
    "last less first": lambda g: g[:, -1] - g[:, 0],
    "range": lambda g: np.ptp(g, axis=1),
}


def p_value(name, first, second):
    # Where the statistic is constant, rounding is all that is left to compare.
    first, second = (np.round(STATISTICS[name](g), 12) for g in (first, second))
    return stats.ks_2samp(first, second, method="asymp").pvalue


# With 10,000 runs on either side the test rejects where the empirical distribution functions are 0.041 apart. They
# stray as far from the true ones with probability 1e-7, so that a law whose distribution function differs by 0.082
# anywhere is found with probability 1 − 1e-7. `test_comparison_finds_wrong_laws` shows it to find likely mistakes.
@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("case", CASES)
def test_law_is_that_of_algorithm_1(case, name):
    assert p_value(name, exact_draws(*case), plain_draws(*case)) >= LEVEL


@pytest.mark.parametrize(
    ("case", "wrong"),
    [
        ((2, 2, 0.5, 0.0), (3, 2, 0.5, 0.0)),
        ((2, 3, 1.0, 0.8), (3, 3, 1.0, 0.8)),
        ((3, 6, 0.5, 2.0), (4, 6, 0.5, 2.0)),
        ((4, 4, 1.0, 0.0), (5, 4, 1.0, 0.0)),
        ((6, 5, 1.0, 1.0), (5, 5, 1.0, 1.0)),
        ((5, 4, 0.3, 1.0), (5, 4, 0.3, 0.0)),
        ((6, 5, 1.0, 1.0), (6, 5, 1.2, 1.0)),
        ((3, 6, 0.5, 2.0), (3, 5, 0.5, 2.0)),
    ],
)
def test_comparison_finds_wrong_laws(case, wrong):
    # One dimension or canary more or less, the data forgotten, the noise a fifth larger.
    plain = algorithm_1(*wrong, RUNS, np.random.default_rng([3, *case[:2]]))
    assert min(p_value(name, exact_draws(*case), plain) for name in STATISTICS) < LEVEL


@pytest.mark.parametrize(("dim", "noise_multiplier"), [(2, 0.5), (3, 1.0), (10, 0.3), (1000, 2.0)])
def test_a_single_cosine_is_a_noncentral_t_variable(dim, noise_multiplier):
    # g = (1 + σz)/√((1 + σz)² + σ²χ²) with d − 1 degrees of freedom, so that g/√(1 − g²)·√(d − 1) is noncentral t.
    g = exact_draws(dim, 1, noise_multiplier, 0.0)[:, 0]
    t = g / np.sqrt((1 - g) * (1 + g)) * math.sqrt(dim - 1)
    assert stats.kstest(t, stats.nct(dim - 1, 1 / noise_multiplier).cdf).pvalue >= LEVEL


def test_two_canaries_in_the_plane_bisect_their_angle():
    # Without noise and data both cosines are |cos(θ/2)|, θ uniform.
    g = exact_draws(2, 2, 0.0, 0.0)
    # Where the canaries nearly cancel, their sum has lost digits.
    np.testing.assert_allclose(g[:, 0], g[:, 1], rtol=0, atol=1e-10)
    assert stats.kstest(g[:, 0], lambda x: 1 - 2 / math.pi * np.arccos(np.clip(x, 0, 1))).pvalue >= LEVEL


def is_mean(sample, expected):
    """Test of a mean at the level; 5.33 standard errors."""
    return abs(sample.mean() - expected) <= stats.norm.isf(LEVEL / 2) * sample.std() / math.sqrt(sample.size)


@pytest.mark.parametrize("dim", [2, 3, 10, 50, 1000, 10**12])
def test_sum_of_cosines_without_noise_is_the_norm_of_the_canaries(dim):
    # Σ⟨c_j, ρ⟩/‖ρ‖ = ‖ρ‖ for ρ = Σc_j, and E‖ρ‖² = k.
    assert is_mean(exact_draws(dim, 7, 0.0, 0.0, 5000).sum(axis=1) ** 2, 7)


@pytest.mark.parametrize(("dim", "count"), [(2, 3), (5, 2), (5, 7), (1000, 3)])
def test_cosines_under_much_noise_have_the_moments_of_the_null(dim, count):
    g = exact_draws(dim, count, 1e9, 0.0)
    assert is_mean(g[:, 0], 0)
    assert is_mean(g[:, -1] ** 2, 1 / dim)
    assert is_mean(g[:, 0] ** 4, 3 / (dim * (dim + 2)))
    # Given the release they are independent.
    assert is_mean(g[:, 0] * g[:, -1], 0)


def test_cosines_beside_much_data_have_the_moments_of_the_null():
    g = exact_draws(6, 3, 1.0, 1e9)
    assert is_mean(g[:, 0], 0)
    assert is_mean(g[:, 1] ** 2, 1 / 6)
    assert is_mean(g[:, 0] * g[:, 1], 0)


@pytest.mark.parametrize("dim", [10**9, 10**12])
@pytest.mark.parametrize("data_norm", [0.0, 1e4])
def test_high_dimensions_have_the_normal_limit(dim, data_norm):
    # ⟨c_j, ρ⟩√d tends to N(0, ‖ρ‖²) about √d, and ‖ρ‖ to √(k + σ²d + ‖Σx‖²).
    noise_multiplier, count = 0.02, 200
    rng = np.random.default_rng(4)
    g = exact_law.cosines(count, dim, noise_multiplier, rng, data_norm, 50).ravel()
    norm = math.sqrt(count + noise_multiplier**2 * dim + data_norm**2)
    assert stats.kstest(g * math.sqrt(dim) - math.sqrt(dim) / norm, "norm").pvalue >= LEVEL


@pytest.mark.parametrize("case", [*CASES, (10**12, 30, 1.0, 0.0), (200, 1000, 0.0, 0.0), (10**6, 999, 0.0, 0.0)])
def test_products_with_the_sum_are_those_of_unit_vectors(case):
    dim, count, noise_multiplier, _ = case
    products, norm = exact_law.inner_products(count, dim, [noise_multiplier, 0.0], np.random.default_rng(5))
    # Without noise they sum to the release's squared norm, and beside it, in the mean, to the same.
    assert products[1].sum() == pytest.approx(norm[1] ** 2, rel=1e-12)
    if count == 1:
        assert products[1] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("bit_generator", [np.random.PCG64, np.random.Philox, np.random.SFC64, np.random.MT19937])
def test_any_generator_serves(bit_generator):
    g = np.array([exact_law.cosines(30, 10**12, 1.0, np.random.Generator(bit_generator(5))) for _ in range(2)])
    assert np.all(np.isfinite(g))
    assert g[0].tobytes() == g[1].tobytes()


def test_the_norm_of_a_sum_has_its_mean_and_variance():
    """‖Σc_j‖² of 2 to 64 canaries has its exact mean and variance, k and 2k(k − 1)/d, in few and in many dimensions."""
    for dim in (12, 100):
        for count in (2, 3, 17, 64):
            rng = np.random.default_rng([17, dim, count])
            squares = exact_law.inner_products(count, dim, 0.0, rng, runs=4000)[1] ** 2
            assert is_mean(squares, count)
            assert is_mean((squares - count) ** 2, 2.0 * count * (count - 1) / dim)


def test_products_have_the_variance_of_other_canaries():
    """⟨c_j, ρ⟩ is 1 and k − 1 independent products of variance 1/d; noise adds σ²; so for each place j."""
    dim, count, rng = 30, 11, np.random.default_rng(18)
    drawn = exact_law.inner_products(count, dim, [0.0, 0.7], rng, runs=4000)[0] - 1.0
    for place in range(count):
        assert is_mean(drawn[:, 0, place], 0.0)
        assert is_mean(drawn[:, 0, place] ** 2, (count - 1) / dim)
        assert is_mean(drawn[:, 1, place] ** 2, (count - 1) / dim + 0.49)
        # Any two share ⟨c_i, c_j⟩, and all three canaries' products.
        other = (place + 1) % count
        assert is_mean(drawn[:, 0, place] * drawn[:, 0, other], 1.0 / dim)
        assert is_mean((drawn[:, 1, place] - drawn[:, 0, place]) * (drawn[:, 1, other] - drawn[:, 0, other]), 0.0)


def test_runs_that_share_canaries_are_independent_given_these():
    # Without noise they are one run; with much of it they have nothing in common.
    rng = np.random.default_rng(15)
    products, norms = exact_law.inner_products(5, 50, [0.0, 0.0, 1.0], rng, [0.0, 0.0, 3.0])
    assert products.shape == (3, 5)
    np.testing.assert_array_equal(products[0], products[1])
    assert norms[0] == norms[1] != norms[2]
    g = exact_law.cosines(4, 6, [1e6, 1e6], rng, runs=RUNS)[:, :, 0]
    assert stats.pearsonr(*g.T).pvalue >= LEVEL
    assert np.ptp(g, axis=1).min() > 0


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize(("dim", "count", "data_norm"), [(20, 5, 0.0), (3, 6, 2.0)])
def test_each_run_of_several_has_the_law_of_its_own_noise(dim, count, data_norm, name):
    drawn, plain = several_draws((0.3, 1.5), dim, count, data_norm)
    for each, printed in enumerate(plain):
        assert p_value(name, drawn[:, each], printed) >= LEVEL


def test_equal_seeds_give_equal_bytes():
    for dim, data_norm in ((3, 0.0), (3, 1.0), (10**12, 0.0)):
        first, second = (exact_law.cosines(20, dim, 1.0, np.random.default_rng(6), data_norm) for _ in range(2))
        assert first.tobytes() == second.tobytes()


def test_a_run_alone_is_that_of_one():
    for count, dim, data_norm in ((5, 3, 2.0), (20, 10**6, [0.0, 1.0])):
        one, other = (np.random.default_rng(19) for _ in range(2))
        products, norms = exact_law.inner_products(count, dim, 1.0, one, data_norm)
        again, lengths = exact_law.inner_products(count, dim, 1.0, other, data_norm, 1)
        np.testing.assert_array_equal(products, again[0])
        np.testing.assert_array_equal(norms, lengths[0])


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("at_once", [False, True])
def test_consecutive_runs_are_independent(at_once):
    rng = np.random.default_rng(7)
    if at_once:
        g = exact_law.cosines(1, 3, 1.0, rng, runs=RUNS)[:, 0]
    else:
        g = np.array([exact_law.cosines(1, 3, 1.0, rng)[0] for _ in range(RUNS)])
    assert stats.pearsonr(g[:-1], g[1:]).pvalue >= LEVEL


@pytest.mark.parametrize("dim", [2, 10, 10**3, 10**6, 10**9, 10**12])
def test_any_dimension_is_served(dim):
    g = exact_law.cosines(100, dim, 1.0, np.random.default_rng(8), 2.0)
    assert g.shape == (100,)
    assert g.dtype == np.float64
    assert np.all(np.abs(g) <= 1)


@pytest.mark.parametrize("dim", [2, 3, 5, 100])
def test_cosines_stay_within_one(dim):
    # A single canary without noise and data is parallel to its release.
    rng = np.random.default_rng(9)
    g = exact_law.cosines(1, dim, 0.0, rng, runs=300)
    assert np.all(g > 1 - 1e-15)
    assert np.all(g <= 1)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150, 1e160, 1e300])
def test_minute_and_huge_data_are_served_or_refused(scale):
    try:
        g = exact_law.cosines(3, 100, 1.0, np.random.default_rng(10), scale)
    except ValueError:
        return
    # Beyond 1e150 the release is the data but for nothing, and the cosines are the null's.
    expected = exact_law.cosines(3, 100, 1.0, np.random.default_rng(10), min(max(scale, 1e-100), 1e100))
    np.testing.assert_allclose(g, expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150, 1e160, 1e308])
def test_minute_and_huge_noise_is_served_or_refused(scale):
    try:
        g = exact_law.cosines(3, 100, scale, np.random.default_rng(11))
    except ValueError:
        return
    expected = exact_law.cosines(3, 100, min(max(scale, 1e-100), 1e100), np.random.default_rng(11))
    np.testing.assert_allclose(g, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("count", value) for value in (0, -1)),
        *(("runs", value) for value in (0, -1, 1.5)),
        *(("dim", value) for value in (1, 0, -3, 10**12 + 1, math.inf, math.nan, 10.5)),
        *(("noise_multiplier", value) for value in (-1.0, -1e-300, math.inf, math.nan)),
        *(("data_norm", value) for value in (-1.0, math.inf, math.nan)),
    ],
)
def test_arguments_outside_the_domain_are_refused(name, value):
    arguments = {"count": 3, "dim": 10, "noise_multiplier": 1.0, "data_norm": 1.0, name: value}
    with pytest.raises(ValueError, match=name):
        exact_law.cosines(**arguments, rng=np.random.default_rng(12))


def test_a_refusal_draws_nothing():
    rng = np.random.default_rng(13)
    with pytest.raises(ValueError, match="dim"):
        exact_law.cosines(3, 1, 1.0, rng)
    assert rng.random() == np.random.default_rng(13).random()


def test_numpy_integers_are_numbers():
    expected = exact_law.cosines(3, 10, 1.0, np.random.default_rng(14), 2.0)
    g = exact_law.cosines(np.int64(3), np.uint32(10), np.float32(1), np.random.default_rng(14), 2)
    np.testing.assert_array_equal(g, expected)


def test_runs_with_data_and_without_may_be_drawn_together():
    _, norms = exact_law.inner_products(3, 100, 1.0, np.random.default_rng(0), data_norm=[0.0, 1e6])
    assert norms[0] < 100.0 < 9e5 < norms[1]
