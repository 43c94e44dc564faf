import math
from fractions import Fraction

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from canaryproof.kernels.certified import null_cosine
from canaryproof.kernels.certified._ball import Enclosure, at_precision, exact
from canaryproof.kernels.reference import null_cosine as reference
from tests.rows import chequered

MANY = settings(max_examples=2 * settings().max_examples)
BELOW_1 = math.nextafter(1.0, 0.0)
DIMS = st.one_of(
    st.floats(math.log10(2), 12).map(lambda t: min(10**t, 1e12)),
    st.integers(2, 40),
    st.sampled_from([2, 2.25, 3, math.nextafter(3.0, 2.0), math.nextafter(3.0, 4.0), 10**12, Fraction(22, 7)]),
)
DEVIATIONS = st.one_of(st.floats(-40, 40), st.floats(-300, 1).map(lambda t: 10**t), st.sampled_from([0.0, 5e-324]))
POINTS = st.one_of(
    st.tuples(DIMS, DEVIATIONS).map(lambda t: (max(-1.0, min(1.0, t[1] / math.sqrt(t[0]))), t[0])),
    st.tuples(st.floats(-1, 1), DIMS),
    st.tuples(st.sampled_from([1.0, -1.0, BELOW_1, -BELOW_1]), DIMS),
)
PROBABILITIES = st.one_of(
    st.floats(0, 1),
    st.floats(-300, -0.31).map(lambda t: 10**t),
    st.sampled_from([0.0, 1.0, 0.5, BELOW_1, 0.5 - 2**-54, 0.5 + 2**-53, 5e-324, 2**-60, 1 - 2**-40]),
)
NAMES = ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"]


def twin(name, x, dim, digits):
    """The twin's value; a Fraction to 1000 digits."""
    with mp.workdps(1000):
        d = mpf(dim.numerator) / dim.denominator if isinstance(dim, Fraction) else mpf(dim)
    return getattr(reference, name)(x, d, digits=digits)


@pytest.mark.parametrize("name", NAMES)
@given(point=POINTS)
def test_functions_hold_their_twins(holds, name, point):
    x, dim = point
    enclosure = getattr(null_cosine, name)(x, dim)
    assert enclosure.is_tight
    # The integrals of the twin cost more the more digits they have.
    assert holds(enclosure, twin(name, x, dim, 60 if "pdf" in name else 30), 55 if "pdf" in name else 27)


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("point", "name"),
    chequered(
        [
            (3.7e-5, 10**12),
            (-9e-7, 10**12),
            (4e-6, 10**12),
            (0.3, 2),
            (0.72, 2),
            (-0.9, 4),
            (0.7, 33),
            (0.01, Fraction(7, 3)),
        ],
        ["sf", "logsf", "cdf", "logcdf"],
    ),
)
def test_integrals_hold_their_twins_to_60_digits(holds, name, point):
    assert holds(getattr(null_cosine, name)(*point), twin(name, *point, 60))


@MANY
@given(PROBABILITIES, DIMS)
def test_quantiles_bracket_the_passage(q, dim):
    enclosure = null_cosine.isf(q, dim)
    assert enclosure.is_tight
    probability = Fraction(q)
    low, high = null_cosine.sf(enclosure.lo, dim), null_cosine.sf(enclosure.hi, dim)
    assert low.hi >= probability >= high.lo
    mirrored = null_cosine.ppf(q, dim)
    assert (mirrored.lo, mirrored.hi) == (-enclosure.hi, -enclosure.lo)


@pytest.mark.parametrize(
    ("q", "dim"),
    [
        pytest.param(q, dim, marks=pytest.mark.deep if (i + j) % 3 else ())
        for i, q in enumerate([1e-300, 1e-6, 0.05, 0.4999, 0.7, 1 - 1e-9])
        for j, dim in enumerate([2, 2.5, 7, 1000, 10**12])
    ],
)
def test_quantiles_hold_their_twins(holds, q, dim):
    assert holds(null_cosine.isf(q, dim), reference.isf(q, dim, digits=30), 27)


@given(st.fractions(-1, 1))
def test_dimension_3_is_exact(x):
    tail = (1 - x) / 2
    enclosure = null_cosine.sf(x, 3)
    assert tail in enclosure
    assert enclosure.width_in_ulps <= 1
    assert null_cosine.sf(0.25, 3) == Enclosure(0.375, 0.375, None)
    assert x in null_cosine.isf(tail, 3)
    assert null_cosine.isf(tail, 3).width_in_ulps <= 1
    assert null_cosine.pdf(x, 3) == Enclosure(0.5, 0.5, None)


@MANY
@given(st.floats(-1, 1))
def test_dimensions_2_4_and_5(x):
    exact_x = exact("x", x)
    half = flint.fmpq(1, 2)

    def tails():
        y = flint.arb(exact_x)
        angle, area = y.acos(), y * flint.arb(1 - exact_x * exact_x).sqrt()
        return angle / flint.arb.pi(), (angle - area) / flint.arb.pi()

    second, fourth = at_precision(500, tails)
    fifth = at_precision(8192, lambda: flint.arb(half * half * (1 - exact_x) * (1 - exact_x) * (2 + exact_x)))
    for dim, expected in ((2, second), (4, fourth), (5, fifth)):
        enclosure = null_cosine.sf(x, dim)
        assert enclosure.is_tight
        assert enclosure.ball.overlaps(expected)
        assert not expected < enclosure.lo
        assert not expected > enclosure.hi


@given(DIMS, st.floats(0.001, 0.999), st.integers(42, 90))
def test_the_fraction_encloses_from_few_terms(dim, x, prec):
    """At 42 bits and a little more it stops after a few terms, so that the remainder is all of the ball."""
    x, dim = exact("x", x), exact("dim", dim)
    coarse = at_precision(prec, lambda: null_cosine.tail_fraction(x, dim))
    if dim * x * x > 4:
        fine = at_precision(400, lambda: null_cosine.tail_fraction(x, dim))
    else:
        # From the series, which shares nothing with the fraction.
        fine = at_precision(
            400,
            lambda: (
                (flint.fmpq(1, 2) - null_cosine._central(x, dim))
                / (null_cosine._log_peak(dim) + null_cosine._log_power(x, (dim - 1) / 2)).exp()
                * ((dim - 1) * x)
            ),
        )
    assert coarse.overlaps(fine)
    assert at_precision(400, lambda: coarse.lower() <= fine.upper() and coarse.upper() >= fine.lower())


@given(DIMS, st.floats(1.5, 6))
def test_the_series_and_the_fraction_overlap(dim, deviations):
    x, dim = exact("x", min(deviations / math.sqrt(dim), 0.9)), exact("dim", dim)
    fraction = at_precision(200, lambda: null_cosine._log_tail(x, dim).exp())
    series = at_precision(300, lambda: flint.fmpq(1, 2) - null_cosine._central(x, dim))
    assert fraction.overlaps(series)
    assert fraction.rel_accuracy_bits() > 100
    assert series.rel_accuracy_bits() > 100


@given(POINTS)
def test_reflection(point):
    x, dim = point
    assert null_cosine.cdf(x, dim) == null_cosine.sf(-x, dim)
    assert null_cosine.logcdf(x, dim) == null_cosine.logsf(-x, dim)
    assert null_cosine.pdf(x, dim) == null_cosine.pdf(-x, dim)
    total = at_precision(300, lambda: null_cosine.cdf(x, dim).ball + null_cosine.sf(x, dim).ball)
    assert total.contains(1)


@pytest.mark.parametrize("dim", [2, 2.5, 3, 4, 10**12])
def test_ends_and_middle(dim):
    for x in (1.0, 1, 7.5):
        assert null_cosine.sf(x, dim) == null_cosine.cdf(-x, dim) == Enclosure(0.0, 0.0, None)
        assert null_cosine.cdf(x, dim) == null_cosine.sf(-x, dim) == Enclosure(1.0, 1.0, None)
        assert null_cosine.logsf(x, dim) == null_cosine.logcdf(-x, dim) == Enclosure(-math.inf, -math.inf, None)
        assert null_cosine.logcdf(x, dim) == null_cosine.logsf(-x, dim) == Enclosure(0.0, 0.0, None)
    assert null_cosine.sf(0.0, dim) == null_cosine.cdf(-0.0, dim) == Enclosure(0.5, 0.5, None)
    assert null_cosine.pdf(1.5, dim) == Enclosure(0.0, 0.0, None)
    assert null_cosine.logpdf(-1.5, dim).hi == -math.inf
    for q, x in ((0, 1.0), (0.5, 0.0), (1, -1.0)):
        assert null_cosine.isf(q, dim) == Enclosure(x, x, None)
        assert null_cosine.ppf(q, dim) == Enclosure(0.0 - x, 0.0 - x, None)


@pytest.mark.parametrize(("dim", "density"), [(2, math.inf), (2.9, math.inf), (3, 0.5), (3.1, 0.0), (10**12, 0.0)])
def test_density_at_the_ends(dim, density):
    assert null_cosine.pdf(1, dim) == null_cosine.pdf(-1, dim) == Enclosure(density, density, None)
    logarithm = null_cosine.logpdf(1, dim)
    expected = math.log(density) if density else -math.inf
    assert logarithm.lo <= expected <= logarithm.hi


def test_a_quantile_that_is_a_float():
    """In five dimensions P(cosine > 1/2) = 5/32, which no precision tells from a value nearby."""
    assert null_cosine.isf(0.15625, 5) == Enclosure(math.nextafter(0.5, 0), math.nextafter(0.5, 1), None)


def test_extreme_fractions():
    nearly_one = 1 - Fraction(1, 10**300)
    assert null_cosine.sf(nearly_one, 5).is_tight
    assert null_cosine.isf(Fraction(1, 10**400), 10**12).is_tight
    assert null_cosine.isf(1 - Fraction(1, 10**400), 10**12).is_tight
    assert null_cosine.ppf(Fraction(1, 2) - Fraction(1, 10**300), 7).is_tight


def test_precision_left_behind_does_not_matter():
    def values():
        return [
            (e, e.ball.mid().man_exp(), e.ball.rad().man_exp())
            for e in (
                null_cosine.isf(0.05, 10**12),
                null_cosine.ppf(0.05, 7),
                null_cosine.sf(4e-6, 10**12),
                null_cosine.logsf(-0.3, 9),
            )
        ]

    expected = values()
    for prec in (2, 53, 5000):
        with flint.ctx.workprec(prec):
            assert values() == expected


@pytest.mark.parametrize("name", [*NAMES, "ppf", "isf"])
def test_result_types(name):
    enclosure = getattr(null_cosine, name)(Fraction(1, 3), 7)
    assert type(enclosure.lo) is float
    assert type(enclosure.hi) is float
    assert isinstance(enclosure.ball, flint.arb)


@pytest.mark.parametrize("name", [*NAMES, "ppf", "isf"])
@pytest.mark.parametrize("dim", [math.nan, 1.99, math.inf, 1.1e12, 0, -3])
def test_dimensions_outside_the_domain(name, dim):
    with pytest.raises(ValueError, match="dim"):
        getattr(null_cosine, name)(0.5, dim)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("x", [math.nan, math.inf])
def test_cosines_outside_the_domain(name, x):
    with pytest.raises(ValueError, match="x must"):
        getattr(null_cosine, name)(x, 7)


@pytest.mark.parametrize("name", ["ppf", "isf"])
@pytest.mark.parametrize("q", [math.nan, -5e-324, math.nextafter(1.0, 2.0), math.inf])
def test_probabilities_outside_the_domain(name, q):
    with pytest.raises(ValueError, match="q must"):
        getattr(null_cosine, name)(q, 7)
