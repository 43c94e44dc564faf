import math
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from canaryproof.kernels import _double_double as dd

MANY = settings(max_examples=5 * settings().max_examples)
# The module states 4e-32 for sums, 1e-30 for logarithms and 1e-20 for exponentials; the bounds of products, quotients
# and roots are those of Joldes, Muller and Popescu (ACM TOMS 44, 2017) for these sequences of operations, in units of
# 2⁻¹⁰⁶.
SUM, PRODUCT, QUOTIENT, ROOT, LOGARITHM = 4e-32, 8 * 2.0**-106, 16 * 2.0**-106, 8 * 2.0**-106, 1e-30
EXPONENTIAL = 1e-20

SIGNS = st.sampled_from([-1.0, 1.0])
POWERS = st.floats(-140, 140)
MAGNITUDES = st.one_of(POWERS.map(lambda t: 10**t), st.floats(0.25, 4), st.integers(1, 2**53).map(float))
FLOATS = st.tuples(MAGNITUDES, SIGNS).map(lambda t: t[0] * t[1])


def as_pair(high, part):
    """A pair whose low part is the given part, in −1 … 1, of half an ulp of the high one."""
    low = 0.5 * math.ulp(high) * part
    # At the far end of a binade, or by a tie, the sum may round to the neighbour.
    return (high, low) if high + low == high else (high, 0.0)


PARTS = st.one_of(st.floats(1e-9, 1), st.floats(-1, -1e-9), st.sampled_from([0.0, -1.0, 1.0]))
PAIRS = st.builds(as_pair, FLOATS, PARTS)
POSITIVE = st.builds(as_pair, MAGNITUDES, PARTS)


def fraction(pair):
    return Fraction(pair[0]) + Fraction(pair[1])


def is_normalised(pair):
    return pair[0] + pair[1] == pair[0]


def relative_error(pair, expected):
    return float(abs(fraction(pair) / expected - 1)) if expected else float(fraction(pair) != 0)


@MANY
@given(FLOATS, FLOATS)
@example(1.0, -math.nextafter(1.0, 0))
@example(1e16, 1.0)
@example(5e-324, 1.0)
@example(5e-324, -5e-324)
@example(1e308, -1e308)
@example(math.ulp(1.0), -(2.0**53))
def test_two_sum_is_exact(a, b):
    pair = dd.two_sum(a, b)
    assert fraction(pair) == Fraction(a) + Fraction(b)
    assert is_normalised(pair)


@MANY
@given(FLOATS, FLOATS)
@example(134217729.0, 134217729.0)
@example(9.99e299, 1e-290)
@example(math.nextafter(1.0, 2), math.nextafter(1.0, 0))
def test_two_product_is_exact(a, b):
    pair = dd.two_product(a, b)
    assert fraction(pair) == Fraction(a) * Fraction(b)
    assert is_normalised(pair)


@MANY
@given(PAIRS, PAIRS)
def test_sum(a, b):
    total = dd.add(*a, *b)
    error = abs(fraction(total) - (fraction(a) + fraction(b)))
    assert error <= Fraction(SUM) * max(abs(fraction(a)), abs(fraction(b)))
    assert is_normalised(total)


@MANY
@given(FLOATS, PARTS, PARTS, st.integers(-4, 4))
def test_sum_of_nearly_opposite_pairs(high, part, other, steps):
    a = as_pair(high, part)
    neighbour = -high
    for _ in range(abs(steps)):
        neighbour = math.nextafter(neighbour, math.copysign(math.inf, steps))
    b = as_pair(neighbour, other)
    # All but the last bits cancel, and none of the rest may be lost.
    assert relative_error(dd.add(*a, *b), fraction(a) + fraction(b)) <= SUM


@given(PAIRS, PAIRS)
def test_difference_is_the_sum_with_the_opposite(a, b):
    assert dd.subtract(*a, *b) == dd.add(*a, -b[0], -b[1])
    assert dd.subtract(*a, *a) == (0.0, 0.0)


@MANY
@given(PAIRS, PAIRS)
def test_product(a, b):
    product = dd.multiply(*a, *b)
    assert relative_error(product, fraction(a) * fraction(b)) <= PRODUCT
    assert is_normalised(product)


@MANY
@given(PAIRS, PAIRS)
def test_quotient(a, b):
    quotient = dd.divide(*a, *b)
    assert relative_error(quotient, fraction(a) / fraction(b)) <= QUOTIENT
    assert is_normalised(quotient)


@MANY
@given(POSITIVE)
@example((1.0, -(2.0**-54)))
@example((4.0, 2.0**-52))
def test_square_root(a):
    root = dd.square_root(*a)
    # (1 + e)² = 1 + 2e to all digits that count.
    assert float(abs(fraction(root) ** 2 / fraction(a) - 1)) <= 2 * ROOT
    assert is_normalised(root)


def test_square_root_of_nothing():
    assert dd.square_root(0.0, 0.0) == (0.0, 0.0)


def log_error(pair, argument):
    """Relative error of a pair as the logarithm of an exact fraction."""
    with mp.workdps(60):
        near = argument - 1
        z = mpf(near.numerator) / near.denominator
        expected = mp.log1p(z) if abs(near) < 0.5 else mp.log(mpf(argument.numerator) / argument.denominator)
        error = abs(mpf(pair[0]) + mpf(pair[1]) - expected)
        return float(error / abs(expected)) if expected else float(error)


# On both sides of 1, of √½ and √2 where the exponent is split off, and far out.
NEAR_ONE = st.tuples(st.floats(-16, -0.5), SIGNS).map(lambda t: 1 + t[1] * 10 ** t[0])
NEAR_FOLD = st.tuples(st.sampled_from([0.5, 0.25, 8.0]), st.floats(-1e-3, 1e-3)).map(lambda t: math.sqrt(t[0]) + t[1])
# Around f² = 1e-3, f = z/(2 + z) for 1 + z, where the series of the logarithm takes twice the terms.
SWITCH = math.sqrt(1e-3)
NEAR_SWITCH = st.tuples(st.floats(0.99, 1.01), SIGNS).map(lambda t: t[1] * t[0] * SWITCH).map(lambda f: 2 * f / (1 - f))


@MANY
@given(
    st.builds(
        as_pair,
        st.one_of(
            MAGNITUDES,
            NEAR_ONE,
            NEAR_FOLD,
            NEAR_SWITCH.map(lambda z: 1 + z),
            # Where f² and the number of terms are largest.
            st.floats(-1e-9, 1e-9).map(lambda t: math.sqrt(0.5) + t),
            st.floats(-290, 308).map(lambda t: 10**t),
        ),
        PARTS,
    )
)
@example((1.0, 0.0))
@example((1.0, 1e-30))
@example((1.0, -(2.0**-54)))
@example((math.sqrt(0.5), 0.0))
@example((math.nextafter(math.sqrt(0.5), 0), 0.0))
@example((math.sqrt(2.0), 0.0))
@example((1.7976931348623157e308, 0.0))
@example((2.2250738585072014e-308, 0.0))
@example((5e-324, 0.0))
def test_log(a):
    assert log_error(dd.log(*a), fraction(a)) <= LOGARITHM


SMALL = st.tuples(st.floats(-290, 0), SIGNS).map(lambda t: t[1] * 10 ** t[0]).filter(lambda x: x > -1)


@MANY
@given(
    st.builds(as_pair, st.one_of(SMALL, NEAR_SWITCH, st.floats(0.01, 4), st.floats(0, 300).map(lambda t: 10**t)), PARTS)
)
@example((0.25, 0.0))
@example((math.nextafter(0.25, 0), 0.0))
@example((-0.25, 0.0))
@example((math.nextafter(-0.25, 0), 0.0))
@example((-1.0, 1e-17))
@example((-1.0, 5e-324))
@example((1e-290, 0.0))
@example((1e-290, 7e-307))
@example((-1e-20, 6e-37))
@example((math.sqrt(2.0) - 1, 0.0))
def test_log1p(a):
    assume(fraction(a) > -1)
    assert log_error(dd.log1p(*a), 1 + fraction(a)) <= LOGARITHM


@pytest.mark.parametrize("f", [dd.log, dd.log1p])
def test_logarithms_agree_with_the_floats(f):
    for x in (1e-10, 0.3, 1.0, 2.5, 1e10):
        name = "log" if f is dd.log else "log1p"
        assert f(x, 0.0)[0] == pytest.approx(getattr(math, name)(x), rel=4e-16, abs=1e-300)


def exp_error(h, low, n, argument):
    """Relative error of (h + low)·2ⁿ as the exponential of a pair."""
    with mp.workdps(60):
        return float(abs((mpf(h) + low) * mpf(2) ** n / mp.exp(mpf(argument[0]) + argument[1]) - 1))


# Tiny arguments, all sizes, and halfway between the multiples of log 2, where the series has most to do.
EXPONENTS = st.one_of(
    st.tuples(st.floats(-300, 8.99), SIGNS).map(lambda t: t[1] * 10 ** t[0]),
    st.floats(-650, 650),
    st.tuples(st.integers(-900, 900), st.floats(0.49, 0.51)).map(lambda t: (t[0] + t[1]) * math.log(2)),
)


@MANY
@given(st.builds(as_pair, EXPONENTS, PARTS))
@example((0.0, 0.0))
@example((1e9, 0.0))
@example((-1e9, 5e-8))
@example((0.5 * math.log(2), 0.0))
@example((-0.5 * math.log(2), 0.0))
def test_exp_parts(a):
    h, low, n = dd.exp_parts(*a)
    assert is_normalised((h, low))
    assert 0.7 < h < 1.42
    assert exp_error(h, low, n, a) <= EXPONENTIAL


@MANY
@given(st.builds(as_pair, EXPONENTS.filter(lambda a: abs(a) < 650), PARTS))
@example((math.nextafter(650.0, 0), 5e-14))
@example((-math.nextafter(650.0, 0), 5e-14))
def test_exp(a):
    assert exp_error(*dd.exp(*a), 0, a) <= EXPONENTIAL
