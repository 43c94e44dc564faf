import itertools
from fractions import Fraction

import pytest

from canaryproof.proofs_check.finite_bounds import mean_deviates, variance_deviates


@pytest.mark.parametrize("bound", [mean_deviates, variance_deviates])
def test_bounds_fall_with_distance_and_with_canaries(bound):
    at = [bound(10**6, 1000, Fraction(1), Fraction(t, 20)) for t in (2, 4, 8, 16)]
    assert all(a > b for a, b in itertools.pairwise(at))
    growing = [bound(k**2, k, Fraction(1), Fraction(1, 4)) for k in (100, 1000, 10000)]
    assert all(a > b for a, b in itertools.pairwise(growing))


def test_bounds_are_near_what_the_limit_law_lets_chebyshev_say():
    # 1/(kt²) and 2/(kt²), the variances of N(0, 1/k) and N(0, 2/k) over t².
    t = Fraction(1, 2)
    assert 1 < mean_deviates(10**10, 10**4, Fraction(1), t) * 10**4 * t**2 < Fraction(13, 10)
    assert 2 < variance_deviates(10**10, 10**4, Fraction(1), t) * 10**4 * t**2 < 3


def test_nothing_is_promised_where_the_centre_is_too_far_off():
    # k/d = 1 displaces the centre beyond the distance.
    assert mean_deviates(100, 100, Fraction(1), Fraction(1, 10)) == 1


@pytest.mark.parametrize("arguments", [(1, 10, 1, 1), (10, 1, 1, 1), (10, 10, 0, 1), (10, 10, 1, 0)])
@pytest.mark.parametrize("bound", [mean_deviates, variance_deviates])
def test_arguments_are_checked(bound, arguments):
    dim, count, sigma, distance = arguments
    with pytest.raises(ValueError, match="must be"):
        bound(dim, count, Fraction(sigma), Fraction(distance))
