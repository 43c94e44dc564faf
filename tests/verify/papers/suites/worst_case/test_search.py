import math
from dataclasses import replace

import numpy as np
import pytest
from flint import arb

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.certified import Enclosure, at_precision
from canaryproof.verify.papers.suites.worst_case.search import (
    Domain,
    error_bound,
    in_ulps,
    measure,
    search,
    share_of_budget,
)
from canaryproof.verify.papers.suites.worst_case.targets import TARGETS

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


BY_NAME = {target.name: target for target in TARGETS}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_draws_fill_both_domains(target):
    rng = np.random.default_rng(0)
    draws = [target.draw(rng) for _ in range(400)]
    assert sum(target.inside(*draw) for draw in draws) >= 300
    assert sum(measure(target, Domain.PRACTICE, draw) is not None for draw in draws[:100]) >= 3


def test_climbing_finds_a_narrow_fault():
    def wrong(epsilon, sigma):
        value = float(gaussian_mechanism.epsilon(epsilon, sigma))
        # A bump a tenth wide in log σ, that a climb feels from a distance.
        return value * (1.0 + 1e-15 + 1e-9 * np.exp(-((np.log(sigma / 37.0) / 0.1) ** 2)))

    target = replace(BY_NAME["gaussian-mechanism.epsilon"], kernel=wrong)
    case, judged = search(target, Domain.WHOLE, 1000, np.random.default_rng(0))
    assert judged > 1000
    assert case.arguments[1] == pytest.approx(37.0, rel=0.1)


def test_known_inputs_are_where_a_search_begins():
    target = BY_NAME["gaussian-mechanism.epsilon"]
    known = (0.25, 3.0)

    def wrong(delta, sigma):
        return np.nan if (delta, sigma) == known else gaussian_mechanism.epsilon(delta, sigma)

    case, _ = search(replace(target, kernel=wrong), Domain.WHOLE, 1, np.random.default_rng(0), [known])
    assert case.arguments == known


def test_few_draws_go_on_until_one_is_inside():
    target = BY_NAME["null-cosine.pdf"]
    draws = iter([(0.5, 1.5)] * 3 + [(0.5, 100.0)])
    case, judged = search(
        replace(target, draw=lambda _: next(draws), seams=()), Domain.PRACTICE, 1, np.random.default_rng(0)
    )
    assert judged >= 1
    assert case.arguments[1] >= 100.0


def test_inputs_outside_are_not_judged():
    target = BY_NAME["null-cosine.pdf"]
    assert measure(target, Domain.WHOLE, (0.5, 1.5)) is None
    assert measure(target, Domain.PRACTICE, (0.5, 99.0)) is None
    assert measure(target, Domain.PRACTICE, (0.5, 100.0)) is not None
    # e^−5000: no normal float.
    assert measure(target, Domain.WHOLE, (0.1, 1e6)) is None
