import math
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf

from canaryproof.kernels import _mills

BUDGET = 1e-19


def number(pair):
    return mpf(pair[0]) + mpf(pair[1])


def exact(x):
    """√(π/2)·exp(x²/2)·erfc(x/√2)."""
    if x > 1e6:
        # mpmath's erfc would need the square of x in digits; the asymptotic series does not.
        return (1 - 1 / x**2 + 3 / x**4 - 15 / x**6) / x
    return mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2))


def relative_error(x):
    with mp.workdps(60):
        expected = exact(number(x))
        return float(abs(number(_mills.mills_ratio(*x)) / expected - 1))


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
        values.append((x + mpf(5) / 4) * exact(x))
    sums = [mp.fsum(v * mp.cos(n * a) for v, a in zip(values, angles, strict=True)) for n in range(nodes // 2)]
    return [sums[0] / nodes, *(2 * s / nodes for s in sums[1:])]


def test_chebyshev_coefficients_are_those_of_the_function():
    used, corrected = _mills.CHEBYSHEV.size, _mills.CHEBYSHEV_LOW.size
    with mp.workdps(60):
        coefficients = chebyshev_coefficients(120)
        rest = [c - mpf(float(c)) for c in coefficients[:used]]
        assert [float(c) for c in coefficients[:used]] == _mills.CHEBYSHEV.tolist()
        assert [float(r) for r in rest[:corrected]] == _mills.CHEBYSHEV_LOW.tolist()
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
            total = number(_mills.mills_ratio(high, low)) + number(_mills.mills_ratio(-high, -low))
            expected = mp.sqrt(2 * mp.pi) * mp.exp(number((high, low)) ** 2 / 2)
            assert abs(total / expected - 1) <= 2 * BUDGET


def test_ratio_falls():
    values = [_mills.mills_ratio(x, 0.0) for x in np.linspace(-36.9, 100, 2001)]
    assert all(first > second for first, second in pairwise(values))


@pytest.mark.parametrize("x", [-36.0, -3.0, -0.1, 0.01, 1.0, 4.0, 11.0, 400.0])
def test_ratio_falls_from_one_pair_to_the_next(x):
    # By a hundredth of an ulp of x, which in one float would hardly ever show.
    values = [_mills.mills_ratio(x, 0.01 * k * math.ulp(x)) for k in range(-25, 50)]
    assert all(first > second for first, second in pairwise(values))
