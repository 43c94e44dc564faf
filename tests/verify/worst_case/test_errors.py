import math

import pytest
from flint import arb

from canaryproof.kernels.certified import Enclosure, at_precision
from canaryproof.verify.suites.worst_case.search import error_bound, in_ulps, share_of_budget

UP = math.nextafter


def around(low, high):
    return Enclosure(low, high, at_precision(128, lambda: arb(low).union(arb(high))))


def test_error_is_that_of_the_farther_end():
    enclosure = around(1.0, UP(1.0, 2))
    assert error_bound(1.0, enclosure) == pytest.approx(2.0**-52)
    assert error_bound(1.0, enclosure) >= 2.0**-52
    assert in_ulps(error_bound(UP(1.0, 0), enclosure), enclosure) == pytest.approx(1.5)


def test_ulps_below_a_power_of_two_are_the_finer_ones():
    assert in_ulps(2.0**-52, around(UP(1.0, 0), 1.0)) == 2.0


@pytest.mark.parametrize("value", [math.inf, -math.inf, 0.0])
def test_exact_results_have_no_error(value):
    ball = {math.inf: arb.pos_inf(), -math.inf: arb.neg_inf(), 0.0: arb(0)}[value]
    assert error_bound(value, Enclosure(value, value, ball)) == 0.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_errs_without_bound(value):
    assert error_bound(value, around(1.0, 1.0)) == math.inf
    assert share_of_budget(math.inf, around(1.0, 1.0), 8.0, absolute=True) == math.inf


def test_small_results_may_err_absolutely_where_that_is_allowed():
    enclosure = around(1e-12, 1e-12)
    assert share_of_budget(1e-15, enclosure, 8.0, absolute=True) == pytest.approx(1.0)
    assert share_of_budget(1e-15, enclosure, 8.0, absolute=False) > 1e10
    assert share_of_budget(1e-15, around(0.2, 0.2), 8.0, absolute=True) > 4.0
