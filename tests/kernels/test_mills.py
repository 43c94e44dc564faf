import math
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf

from canaryproof.kernels import _mills

BUDGET = 1e-15


def exact(x):
    """√(π/2)·exp(x²/2)·erfc(x/√2)."""
    with mp.workdps(60):
        x = mpf(x)
        if x > 1e6:
            # mpmath's erfc would need the square of x in digits; the asymptotic series does not.
            return (1 - 1 / x**2 + 3 / x**4 - 15 / x**6) / x
        return mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2))


def relative_error(x):
    expected = exact(x)
    return float(abs(mpf(_mills.mills_ratio(x)) - expected) / expected)


def chebyshev_coefficients(nodes):
    """Coefficients of (x + 5/4)·M(x) in t = (x − 4)/(x + 4), by the discrete cosine transform."""
    with mp.workdps(40):
        angles = [mp.pi * (k + mpf(1) / 2) / nodes for k in range(nodes)]
        values = []
        for angle in angles:
            x = 4 * (1 + mp.cos(angle)) / (1 - mp.cos(angle))
            values.append((x + mpf(5) / 4) * exact(x))
        sums = [mp.fsum(v * mp.cos(n * a) for v, a in zip(values, angles, strict=True)) for n in range(nodes // 2)]
        return [sums[0] / nodes, *(2 * s / nodes for s in sums[1:])]


def test_chebyshev_coefficients_are_those_of_the_function():
    coefficients = chebyshev_coefficients(120)
    used = _mills.CHEBYSHEV.size
    np.testing.assert_allclose(_mills.CHEBYSHEV, [float(c) for c in coefficients[:used]], rtol=2e-16, atol=1e-26)
    # What is left out.
    assert sum(abs(c) for c in coefficients[used:]) < 4e-18


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0.1), (0.1, 1), (1, 3), (3, 5), (5, 10), (10, 40), (40, 1e3), (1e3, 1e6), (1e6, 1e9)]
)
def test_error_on_the_right(low, high):
    assert max(relative_error(float(x)) for x in np.random.default_rng(1).uniform(low, high, 200)) <= BUDGET


@pytest.mark.parametrize(
    ("low", "high"), [(-0.1, 0), (-1, -0.1), (-3, -1), (-6, -3), (-12, -6), (-24, -12), (-37, -24)]
)
def test_error_on_the_left(low, high):
    assert max(relative_error(float(x)) for x in np.random.default_rng(2).uniform(low, high, 200)) <= BUDGET


@pytest.mark.parametrize(
    "x", [-37.0, -36.9, -30.1, -5e-324, 0.0, 5e-324, 1e-20, 4.0, 36.9, 37.0, 1e8, 1e16, 1e150, 1e300]
)
def test_error_at_single_points(x):
    assert relative_error(x) <= BUDGET


def test_both_sides_add_up():
    # M(x) + M(−x) = √(2π)·exp(x²/2).
    for x in np.linspace(0, 6, 61):
        total = _mills.mills_ratio(x) + _mills.mills_ratio(-x)
        assert total == pytest.approx(math.sqrt(2 * math.pi) * math.exp(0.5 * x * x), rel=5e-15)


def test_ratio_falls():
    values = [_mills.mills_ratio(x) for x in np.linspace(-37, 100, 2001)]
    assert all(first > second for first, second in pairwise(values))
