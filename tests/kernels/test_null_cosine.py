import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import integrate, stats

from canaryproof.kernels import null_cosine
from canaryproof.kernels.reference import null_cosine as reference
from tests.rows import chequered

# The module's own: of the result, or for a logarithm near zero absolute.
BUDGET = 1e-13
LOG_FLOOR = 1e-15
SMALLEST = float(np.finfo(float).smallest_normal)

PROBABILITIES = ["pdf", "cdf", "sf"]
LOGARITHMS = ["logpdf", "logcdf", "logsf"]
FUNCTIONS = PROBABILITIES + LOGARITHMS


def next_to(x, steps):
    for _ in range(abs(steps)):
        x = math.nextafter(x, math.inf if steps > 0 else -math.inf)
    return x


DIMS = st.one_of(
    st.floats(0, 1).map(lambda t: 2 * 5e11**t),
    st.floats(-16, 0).map(lambda t: 2 + 10**t),
    st.floats(-15, 0).map(lambda t: 3 - 10**t),
    st.integers(2, 60).map(float),
    st.sampled_from([2.0, next_to(2.0, 1), 3.0, next_to(3.0, -1), next_to(3.0, 1), 41.5, 1e12]),
)


def at_depth(depth, dim):
    """Cosine whose tail is about e^−depth; small depths lie near 0, where the cosine is about √(2·depth/(d − 1))."""
    return math.sqrt(-math.expm1(-2 * depth / (dim - 1)))


# Tails from 1/2 to 1e-300 in every dimension, and far beyond.
TAILS = st.tuples(st.floats(-40, math.log(690)).map(math.exp), DIMS).map(lambda t: (at_depth(*t), t[1]))
FAR = st.tuples(st.floats(0, 0.5).map(lambda t: 1 - t * t), DIMS)
NEAR_SEAM = st.tuples(st.floats(0.5, 2), DIMS).map(lambda t: (min(t[0] / math.sqrt(t[1]), 1.0), t[1]))
POINTS = st.tuples(st.one_of(TAILS, NEAR_SEAM, FAR), st.sampled_from([-1.0, 1.0])).map(
    lambda t: (t[0][0] * t[1], t[0][1])
)

QUANTILES = st.one_of(
    st.floats(-323, 0).map(lambda t: max(10**t, 5e-324)),
    st.floats(-17, -0.31).map(lambda t: 0.5 - 10**t),
    st.floats(-17, -0.31).map(lambda t: 0.5 + 10**t),
    st.floats(-16, -1).map(lambda t: 1 - 10**t),
    st.floats(0.1, 0.25),
)


def within_budget(name, x, dim):
    value = float(getattr(null_cosine, name)(x, dim))
    expected = getattr(reference, name)(x, dim, digits=18)
    if mp.isinf(expected):
        return value == float(expected)
    error = abs(mpf(value) - expected)
    if name in LOGARITHMS:
        return error <= max(BUDGET * abs(expected), LOG_FLOOR)
    # Below the smallest normal float only the float's own spacing is promised.
    return error <= BUDGET * abs(expected) or (expected < SMALLEST and 0 <= value <= 1.01 * SMALLEST)


@pytest.mark.parametrize("name", FUNCTIONS)
@given(point=POINTS)
def test_budget_over_the_domain(name, point):
    assert within_budget(name, *point)


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(("name", "dim"), chequered(FUNCTIONS, [2, 3, 4, 17, 1000, 10**6, 10**12]))
def test_budget_where_the_series_hands_over_to_the_fraction(name, dim):
    seam = 1 / math.sqrt(dim)
    assert all(within_budget(name, next_to(seam, steps), dim) for steps in (-1, 0, 1))


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("name", "dim"), chequered(FUNCTIONS, [2, next_to(2.0, 1), next_to(3.0, -1), 3, next_to(3.0, 1), 4, 10**12])
)
def test_budget_at_the_ends_and_in_the_middle(name, dim):
    for x in (0.0, 5e-324, next_to(1.0, -1), 1.0):
        assert within_budget(name, x, dim)
        assert within_budget(name, -x, dim)


@pytest.mark.parametrize("dim", [10**3, 10**6, 10**9, 10**12])
def test_density_keeps_its_digits_down_to_the_smallest_normal_float(dim):
    # The power of 1 − x² alone is smaller by the peak, 4e5 at d = 1e12: it must not lose its digits as a subnormal.
    for log_density in np.arange(math.log(3e-308), math.log(1e-300), 1.7):
        depth = float(null_cosine.logpdf(0, dim) - log_density)
        assert within_budget("pdf", math.sqrt(-math.expm1(-2 * depth / (dim - 3))), dim)


@pytest.mark.parametrize("dim", [20, 1000, 10**6, 166714304585.0, 10**12])
def test_log_density_keeps_its_absolute_budget_where_it_crosses_zero(dim):
    # Two terms of up to 13 cancel here.
    peak = float(null_cosine.logpdf(0, dim))
    for wanted in np.linspace(-0.012, 0.012, 25):
        assert within_budget("logpdf", math.sqrt(-math.expm1(2 * (wanted - peak) / (dim - 3))), dim)


def holds_quantile(x, q, dim):
    """Whether the true quantile lies within the budget of x: the tail function decides, without a root finder."""
    # Where q is 1/2 ± 1e-17, a step of the budget's size shows in the thirtieth digit of the tail.
    with mp.workdps(34):
        low, high = sorted((mpf(x) * (1 - mpf(BUDGET)), mpf(x) * (1 + mpf(BUDGET))))
        low, high = max(low, mpf(-1)), min(high, mpf(1))
    return reference.sf(low, dim, digits=34) >= q >= reference.sf(high, dim, digits=34)


@given(q=QUANTILES, dim=DIMS)
def test_budget_of_isf(q, dim):
    assert holds_quantile(float(null_cosine.isf(q, dim)), q, dim)


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("dim", "q"),
    chequered(
        [2, next_to(2.0, 1), 3, 4, 1000, 10**12],
        [5e-324, 1e-300, next_to(0.17, -1), 0.17, next_to(0.17, 1), next_to(0.5, -1), 0.5 + 1e-16],
    ),
)
def test_quantiles_agree_with_the_twin(q, dim):
    expected = reference.isf(q, dim, digits=18)
    assert abs(mpf(float(null_cosine.isf(q, dim))) - expected) <= BUDGET * abs(expected)


@pytest.mark.parametrize("dim", [2, 2.5, 3, 1000, 10**12])
def test_quantiles_at_the_ends_and_in_the_middle(dim):
    assert [float(null_cosine.ppf(q, dim)) for q in (0, 0.5, 1)] == [-1, 0, 1]
    assert [float(null_cosine.isf(q, dim)) for q in (0, 0.5, 1)] == [1, 0, -1]


def test_far_tail_at_dimension_1000_is_not_gaussian():
    # Eight standard deviations out, implementations that take the normal approximation miss a factor of e^1.04.
    x = 8 / math.sqrt(1000)
    value = float(null_cosine.logsf(x, 1000))
    assert abs(value - reference.logsf(x, 1000)) <= 1e-13 * abs(value)
    assert value - stats.norm.logsf(8) == pytest.approx(-1.04, abs=0.01)


@pytest.mark.parametrize("dim", [1000, 1001, 5000, 10**6, 10**9, 10**12])
def test_high_dimensions_are_accepted(dim):
    # Some implementations stop at d = 1000, where Γ(d/2) overflows.
    assert null_cosine.pdf(0, dim) == pytest.approx(math.sqrt((dim - 1.5) / (2 * math.pi)), rel=1e-6)


@given(point=POINTS)
def test_null_is_symmetric(point):
    x, dim = point
    assert null_cosine.pdf(x, dim) == null_cosine.pdf(-x, dim)
    assert null_cosine.cdf(x, dim) == null_cosine.sf(-x, dim)
    assert null_cosine.logcdf(x, dim) == null_cosine.logsf(-x, dim)


@given(q=QUANTILES, dim=DIMS)
def test_quantiles_are_symmetric(q, dim):
    assert null_cosine.ppf(q, dim) == -null_cosine.isf(q, dim)


@given(point=POINTS)
def test_cdf_and_sf_add_up_to_one(point):
    assert null_cosine.cdf(*point) + null_cosine.sf(*point) == pytest.approx(1, rel=4e-16)


@given(point=POINTS)
def test_logarithms_are_those_of_the_functions(point):
    for name in PROBABILITIES:
        value = float(getattr(null_cosine, name)(*point))
        if SMALLEST * 1e6 < value < math.inf:
            assert getattr(null_cosine, "log" + name)(*point) == pytest.approx(math.log(value), rel=2e-13, abs=2e-13)


@given(depths=st.tuples(st.floats(1e-3, 690), st.floats(1e-3, 690)), dim=DIMS)
def test_tail_falls(depths, dim):
    near, far = (at_depth(depth, dim) for depth in sorted(depths))
    assert null_cosine.sf(near, dim) >= null_cosine.sf(far, dim) * (1 - 2 * BUDGET)


@given(depth=st.floats(0.7, 690), dim=st.floats(0, 1).map(lambda t: 10 * 1e11**t))
def test_isf_inverts_sf(depth, dim):
    # Deeper than e^−0.7 the tail determines x better than x determines the tail.
    x = at_depth(depth, dim)
    assert null_cosine.isf(null_cosine.sf(x, dim), dim) == pytest.approx(x, rel=5e-13)


@given(q=QUANTILES.filter(lambda q: q > SMALLEST), dim=st.floats(0, 1).map(lambda t: 10 * 1e11**t))
def test_cdf_inverts_ppf(q, dim):
    x = float(null_cosine.ppf(q, dim))
    # An ulp of x moves the tail by d·x²/(1 − x²) ulps.
    sensitivity = 1 + dim * x * x / max((1 - x) * (1 + x), SMALLEST)
    assert null_cosine.cdf(x, dim) == pytest.approx(q, rel=2 * BUDGET * sensitivity)


@pytest.mark.parametrize("dim", [3, 4.5, 10, 50])
@pytest.mark.parametrize("x", [-0.7, -0.1, 0.3, 0.9])
def test_density_integrates_to_cdf(x, dim):
    area, error = integrate.quad(null_cosine.pdf, -1, x, args=(dim,), epsabs=1e-12, epsrel=1e-12)
    assert null_cosine.cdf(x, dim) == pytest.approx(area, abs=max(error, 1e-13))


@pytest.mark.parametrize("dim", [2, 3, 7.5, 100, 1000])
def test_square_is_beta_distributed(dim):
    x = np.linspace(0.01, min(0.99, 12 / math.sqrt(dim)), 40)
    tail = stats.beta.sf(x * x, 0.5, 0.5 * (dim - 1)) / 2
    np.testing.assert_allclose(null_cosine.sf(x, dim), tail, rtol=1e-11)


def test_closed_forms_of_low_dimensions():
    x = np.linspace(-0.99, 0.99, 67)
    np.testing.assert_allclose(null_cosine.sf(x, 2), np.arccos(x) / math.pi, rtol=2e-14)
    np.testing.assert_allclose(null_cosine.sf(x, 3), (1 - x) / 2, rtol=2e-14)
    np.testing.assert_allclose(null_cosine.pdf(x, 2), 1 / (math.pi * np.sqrt((1 - x) * (1 + x))), rtol=2e-15)
    np.testing.assert_array_equal(null_cosine.pdf(x, 3), 0.5)


@pytest.mark.parametrize("dim", [2, 3, 100, 10**12])
@pytest.mark.parametrize("x", [next_to(1.0, 1), 2.0, math.inf])
def test_nothing_lies_beyond_one(x, dim):
    assert [float(getattr(null_cosine, name)(x, dim)) for name in PROBABILITIES] == [0, 1, 0]
    assert [float(getattr(null_cosine, name)(-x, dim)) for name in PROBABILITIES] == [0, 0, 1]
    assert [float(getattr(null_cosine, name)(x, dim)) for name in LOGARITHMS] == [-math.inf, 0, -math.inf]


@pytest.mark.parametrize("name", [*FUNCTIONS, "ppf", "isf"])
def test_arguments_broadcast_as_scipys_do(name):
    f = getattr(null_cosine, name)
    table = f([[0.25], [0.5]], [2, 3, 10**12])
    assert table.shape == (2, 3)
    assert table[1, 2] == f(0.5, 1e12)
    assert isinstance(f(0, 3), float)
    assert f(0, 3) == f(0.0, 3.0)
    assert f(np.array([1], dtype=np.int8), np.array([4], dtype=np.uint16)).dtype == np.float64
    assert f([], 3).shape == (0,)
    assert f(np.zeros((2, 0)), [[2], [3]]).shape == (2, 0)


@pytest.mark.parametrize("name", [*FUNCTIONS, "ppf", "isf"])
@pytest.mark.parametrize("dim", [1, next_to(2.0, -1), -5, next_to(1e12, 1), math.inf, math.nan, [3, 1]])
def test_dimensions_outside_the_domain_are_refused(name, dim):
    with pytest.raises(ValueError, match="dim"):
        getattr(null_cosine, name)(0.5, dim)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_cosines_are_refused(name):
    with pytest.raises(ValueError, match=r"^x "):
        getattr(null_cosine, name)([0.5, math.nan], 3)


@pytest.mark.parametrize("name", ["ppf", "isf"])
@pytest.mark.parametrize("q", [-5e-324, next_to(1.0, 1), math.inf])
def test_probabilities_outside_the_unit_interval_are_refused(name, q):
    with pytest.raises(ValueError, match=r"^q "):
        getattr(null_cosine, name)(q, 3)


@pytest.mark.parametrize("name", ["ppf", "isf"])
def test_nan_probabilities_are_refused_by_their_name(name):
    with pytest.raises(ValueError, match=r"^q "):
        getattr(null_cosine, name)(math.nan, 3)
