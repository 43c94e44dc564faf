import math
from collections import namedtuple
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from canaryproof.kernels import _tails

BUDGET = 1e-19


def number(pair):
    return mpf(pair[0]) + mpf(pair[1])


def mills(x):
    """√(π/2)·exp(x²/2)·erfc(x/√2)."""
    if x > 1e6:
        # mpmath's erfc would need the square of x in digits; the asymptotic series does not.
        return (1 - 1 / x**2 + 3 / x**4 - 15 / x**6) / x
    return mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2))


def relative_error(x):
    with mp.workdps(60):
        expected = mills(number(x))
        return float(abs(number(_tails.mills_ratio(*x)) / expected - 1))


def largest_error(low, high, seed):
    """Over floats and over pairs whose low part is all that it may be, on either side."""
    x = np.random.default_rng(seed).uniform(low, high, 200)
    part = np.resize([0.0, -0.499, 0.499], x.size)
    return max(map(relative_error, zip(x, part * np.spacing(x), strict=True)))


def chebyshev_coefficients(nodes):
    """Coefficients of (x + 5/4)·M(x) in t = (x − 4)/(x + 4), by the discrete cosine transform."""
    angles = [mp.pi * (k + mpf(1) / 2) / nodes for k in range(nodes)]
    values = []
    for angle in angles:
        x = 4 * (1 + mp.cos(angle)) / (1 - mp.cos(angle))
        values.append((x + mpf(5) / 4) * mills(x))
    sums = [mp.fsum(v * mp.cos(n * a) for v, a in zip(values, angles, strict=True)) for n in range(nodes // 2)]
    return [sums[0] / nodes, *(2 * s / nodes for s in sums[1:])]


def test_chebyshev_coefficients_are_those_of_the_function():
    used, corrected = _tails.CHEBYSHEV.size, _tails.CHEBYSHEV_LOW.size
    with mp.workdps(60):
        coefficients = chebyshev_coefficients(120)
        rest = [c - mpf(float(c)) for c in coefficients[:used]]
        assert [float(c) for c in coefficients[:used]] == _tails.CHEBYSHEV.tolist()
        assert [float(r) for r in rest[:corrected]] == _tails.CHEBYSHEV_LOW.tolist()
        # What is left out of the coefficients, and of the series.
        assert sum(map(abs, rest[corrected:])) < 3e-21
        assert sum(map(abs, coefficients[used:])) < 1e-22


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0.1), (0.1, 1), (1, 3), (3, 5), (5, 10), (10, 40), (40, 1e3), (1e3, 1e6), (1e6, 1e9)]
)
def test_error_on_the_right(low, high):
    assert largest_error(low, high, 1) <= BUDGET


@pytest.mark.parametrize(
    ("low", "high"), [(-0.1, 0), (-1, -0.1), (-3, -1), (-6, -3), (-12, -6), (-24, -12), (-36.9999, -24)]
)
def test_error_on_the_left(low, high):
    assert largest_error(low, high, 2) <= BUDGET


@pytest.mark.parametrize(
    "x",
    [
        *((x, 0.0) for x in (-36.9999, -30.1, -5e-324, 0.0, 5e-324, 1e-20, 4.0, 37.0, 1e8, 1e16, 1e150, 1e300)),
        # Next to the seams at 0 and at t = 0, and where h + l is a tie.
        (1e-20, -4e-37),
        (-1e-20, 4e-37),
        (4.0, -(2.0**-52)),
        (4.0, 2.0**-51),
        (-1.0, 2.0**-54),
        (1e16, -1.0),
    ],
)
def test_error_at_single_points(x):
    assert relative_error(x) <= BUDGET


def test_both_sides_add_up():
    # M(x) + M(−x) = √(2π)·exp(x²/2).
    for high in np.linspace(0, 6, 61):
        low = 0.3 * math.ulp(high)
        with mp.workdps(40):
            total = number(_tails.mills_ratio(high, low)) + number(_tails.mills_ratio(-high, -low))
            expected = mp.sqrt(2 * mp.pi) * mp.exp(number((high, low)) ** 2 / 2)
            assert abs(total / expected - 1) <= 2 * BUDGET


def test_ratio_falls():
    values = [_tails.mills_ratio(x, 0.0) for x in np.linspace(-36.9, 100, 2001)]
    assert all(first > second for first, second in pairwise(values))


@pytest.mark.parametrize("x", [-36.0, -3.0, -0.1, 0.01, 1.0, 4.0, 11.0, 400.0])
def test_ratio_falls_from_one_pair_to_the_next(x):
    # By a hundredth of an ulp of x, which in one float would hardly ever show.
    values = [_tails.mills_ratio(x, 0.01 * k * math.ulp(x)) for k in range(-25, 50)]
    assert all(first > second for first, second in pairwise(values))


# What one float's worth of digits needs: of the quadrature rule, of what is made of Mills ratios, and of their pairs.
QUADRATURE, DIFFERENCE, PAIR = 1e-15, 1e-16, 1e-18
CLOSE, SHORT = 0.999, 1
DIGITS = 100

MANY = settings(max_examples=5 * settings().max_examples)
SIGNS = st.sampled_from([-1.0, 1.0])


def as_pair(x):
    high = float(x)
    return high, float(x - mpf(high))


def pair_error(pair, expected):
    return float(abs(number(pair) / expected - 1)) if expected else float(number(pair) != 0)


def above(x):
    """P(X > x) of a standard normal X."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def between(x, y):
    """P(x < X < y), which is a difference of upper tails where these are the small ones."""
    return above(x) - above(y) if x + y > 0 else above(-y) - above(-x)


def density(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


# Exact: the near root, the slope of the loss there, α, and P₁ = N(m, s²).
Point = namedtuple("Point", "u q alpha m s")


def at_root(u, g, m):
    """The point of a root u, for s = 1 + g."""
    s = 1 + mpf(g)
    alpha = (s * s - 1) / 2
    return Point(u, 2 * alpha * u + mpf(m) * s, alpha, mpf(m), s)


def with_slope(u, q, g):
    """The point of a root u at which the loss has slope q; the distance of the Gaussians follows."""
    s = 1 + mpf(g)
    alpha = (s * s - 1) / 2
    return Point(mpf(u), mpf(q), alpha, (mpf(q) - 2 * alpha * mpf(u)) / s, s)


def arguments(point):
    return tuple(map(as_pair, point))


# Of P₁(Z > ε), e^ε·P₂(Z > ε) and P₁(Z ≤ ε), all over φ(u); and whether the quadrature rule serves.
Expected = namedtuple("Expected", "excess rest outside by_quadrature")


def exact_point(point):
    u, q, alpha, m, s = point
    # e^ε is the ratio of the densities at the root.
    x, factor = m + s * u, density(u) / (s * density(m + s * u))
    if alpha == 0:
        near = far = (above(u), factor * above(x))
        far, outside, short = (mpf(0), mpf(0)), above(-u), False
    elif alpha > 0:
        v = u + m * s / alpha
        near, far = (above(u), factor * above(x)), (above(v), factor * above(s * v - m))
        outside, short = between(-u, v), False
    else:
        v = u - q / alpha
        near, far = (between(u, v), factor * between(x, m + s * v)), (mpf(0), mpf(0))
        outside, short = above(-u) + above(v), v - u <= SHORT
    first, second = near[0] + far[0], near[1] + far[1]
    close = any(part[1] > CLOSE * part[0] for part in (near, far))
    phi = density(u)
    return Expected((first - second) / phi, second / phi, outside / phi, short or close)


def tails_are_right(point):
    excess, rest = _tails.tails(*arguments(point))
    with mp.workdps(DIGITS):
        expected = exact_point(point)
        budget = QUADRATURE if expected.by_quadrature else DIFFERENCE
        errors = pair_error(excess, expected.excess), pair_error(rest, expected.rest)
    assert max(errors) <= budget, (errors, expected.by_quadrature, arguments(point))


def outside_is_right(point):
    with mp.workdps(DIGITS):
        error = pair_error(_tails.outside(*arguments(point)), exact_point(point).outside)
    assert error <= PAIR, (error, arguments(point))


def legendre_rule(n):
    """The first half of the Gauss–Legendre nodes and weights on (0, 1)."""
    rule = []
    for k in range(n // 2):
        x = mp.cos(mp.pi * (k + mpf(3) / 4) / (n + mpf(1) / 2))
        for _ in range(8):
            before, last = mpf(1), x
            for j in range(2, n + 1):
                before, last = last, ((2 * j - 1) * x * last - (j - 1) * before) / j
            slope = n * (x * last - before) / (x * x - 1)
            x -= last / slope
        rule.append(((1 - x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return rule


def test_nodes_and_weights_are_those_of_gauss_and_legendre():
    with mp.workdps(50):
        rule = legendre_rule(32)
        nodes, weights = ([float(a) for a in column] for column in zip(*rule, strict=True))
        mirrored = [float(1 - node) for node, _ in reversed(rule)]
    assert _tails.NODES[:16].tolist() == nodes
    assert _tails.WEIGHTS.tolist() == weights + weights[::-1]
    # These are subtracted from 1, and rounded twice.
    assert _tails.NODES[16:] == pytest.approx(mirrored, rel=0, abs=2.0**-53)


@st.composite
def points(draw, kind):
    """Roots of Z = ε for pairs of Gaussians spread over the domain, where φ(u) does not underflow."""
    m = draw(st.one_of(st.just(0.0), st.floats(-20, 4).map(lambda t: 10**t), st.floats(0.01, 10)))
    close = st.floats(-16, -0.31).map(lambda t: 10**t)
    if kind == 0:
        g = 0.0
    elif kind > 0:
        g = draw(st.one_of(close, st.floats(-0.3, 4).map(lambda t: 10**t)))
    else:
        g = -draw(st.one_of(close, st.floats(-4, -0.31).map(lambda t: 1 - 10**t)))
    with mp.workdps(DIGITS):
        if kind < 0:
            # A share of the largest loss.
            s = 1 + mpf(g)
            largest = mpf(m) ** 2 / (2 * (1 - s * s)) - mp.log(s)
            epsilon = largest * (1 - mpf(10) ** draw(st.floats(-9, 0)))
        else:
            epsilon = mpf(draw(st.one_of(st.just(0.0), st.floats(-10, 4).map(lambda t: 10**t))))
        assume(kind or m)
        s = 1 + mpf(g)
        alpha = (s * s - 1) / 2
        q = mp.sqrt(mpf(m) ** 2 + 4 * alpha * (epsilon + mp.log(s)))
        u = 2 * (epsilon + mp.log(s) - mpf(m) ** 2 / 2) / (m * s + q)
        assume(-36.9 < u < 1e4)
        point = at_root(number(as_pair(u)), g, m)
        # Rounding the root may carry it past the maximum.
        assume(point.q > 0)
    return point


@MANY
@given(points(kind=0))
def test_tails_of_equal_deviations(point):
    tails_are_right(point)


@MANY
@given(points(kind=1))
def test_tails_of_a_wider_first_gaussian(point):
    tails_are_right(point)


@MANY
@given(points(kind=-1))
def test_tails_of_a_narrower_first_gaussian(point):
    tails_are_right(point)


@MANY
@given(st.one_of(points(kind=0), points(kind=1), points(kind=-1)))
def test_outside(point):
    assume(point.u < 36.9)
    outside_is_right(point)


# Each by name: the branch that it takes, or the seam that it lies on.
BRANCHES = {
    "equal, difference": (0.3, 2.0, 0.0),
    "equal, quadrature": (0.3, 1e-4, 0.0),
    "equal, all but nothing": (5.0, 1e-18, 0.0),
    "equal, far in": (-36.9, 80.0, 0.0),
    "equal, far out": (1e4, 3.0, 0.0),
    "wider, difference": (1.0, 3.0, 0.5),
    "wider, quadrature": (2.0, 1e-5, 1e-6),
    "wider, means all but equal": (1.5, 1.5000001, math.sqrt(2.0) - 1.0),
    "wider, far root out of sight": (-1.0, 30.0, 0.5),
    "wider, damping below 50": (-1.0, 8.6, 0.5),
    "wider, damping above 50": (-1.0, 8.7, 0.5),
    "wider, by far": (1e-3, 1.1e5, 1e4),
    "narrower, difference": (0.5, 1.0, -0.3),
    "narrower, quadrature": (0.5, 2e-4, -1e-5),
    "narrower, short interval": (0.5, 0.1, -0.3),
    "narrower, minute interval": (2.0, 1e-12, -0.3),
    "narrower, interval just short": (0.5, 0.2549, -0.3),
    "narrower, interval just long": (0.5, 0.2551, -0.3),
    "narrower, the second interval short": (-0.5, 0.00999, -0.01),
    "narrower, far end out of sight": (0.5, 30.0, -0.3),
    "narrower, by far": (0.1, 0.6, -0.9999),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_every_branch(name):
    with mp.workdps(DIGITS):
        point = with_slope(*BRANCHES[name])
        # Otherwise no pair of Gaussians has this root at an ε ≥ 0, and the rule need not hold.
        assert point.m >= 0
        assert point.alpha * point.u**2 + point.m * point.s * point.u + point.m**2 / 2 >= mp.log(point.s)
    tails_are_right(point)
    if point.u < 37:
        outside_is_right(point)


@pytest.mark.parametrize("share", [0.9985, 0.99899, 0.998999, 0.999001, 0.99901, 0.9995])
@pytest.mark.parametrize("u", [0.0, 1.0, 20.0, 300.0])
def test_seam_where_subtraction_hands_over_to_quadrature(u, share):
    # The slope at which the halves stand in this proportion.
    with mp.workdps(30):
        first = above(u) / density(u)
        q = mp.findroot(lambda q: above(u + q) / density(u + q) / first - share, (1 - share) * max(u, 1))
    tails_are_right(with_slope(u, float(q), 0.0))


YS = st.one_of(st.floats(-36.9, 36.9), st.floats(-1, 1), st.floats(0, 4).map(lambda t: 10**t))
LENGTHS = st.one_of(st.floats(-20, 3).map(lambda t: 10**t), st.floats(0.5, 1.5))


def with_low_part(high, part):
    return (high, 0.5 * part * math.ulp(high)) if high + 0.5 * part * math.ulp(high) == high else (high, 0.0)


@MANY
@given(y=st.builds(with_low_part, YS, st.floats(-1, 1)), length=st.builds(with_low_part, LENGTHS, st.floats(-1, 1)))
@example(y=(0.5, 0.0), length=(1.0, 0.0))
@example(y=(0.5, 0.0), length=(1.0, 2.0**-54))
@example(y=(-1.5, 0.0), length=(1.0, 0.0))
@example(y=(-0.5, -(2.0**-56)), length=(1.0000000000000002, 0.0))
@example(y=(0.0, 0.0), length=(14.14, 0.0))
@example(y=(0.0, 0.0), length=(14.15, 0.0))
@example(y=(-36.9, 0.0), length=(73.7, 0.0))
@example(y=(-36.9, 0.0), length=(74.0, 0.0))
def test_truncated(y, length):
    with mp.workdps(DIGITS):
        low = number(y)
        expected = between(low, low + number(length)) / density(low)
        error = pair_error(_tails._truncated_integral(y, length), expected)
    assert error <= PAIR


@given(st.floats(-36.9, 300), st.floats(-1, 1), st.floats(-300, 300).map(lambda t: 10**t))
def test_scaled_density(u, part, value):
    u = with_low_part(u, part)
    h, low, n = _tails.scaled_density(u, (value, 0.0))
    with mp.workdps(60):
        assert pair_error((h, low), value * density(number(u)) / mpf(2) ** n) <= PAIR
