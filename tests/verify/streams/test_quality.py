import math
from fnmatch import fnmatchcase

import numpy as np
import pytest
from scipy import stats

from canaryproof.verify.suites.stream import quality
from canaryproof.verify.suites.stream.quality import LENGTH, LEVEL, Quality, judge, visible_moment
from tests.faults import streams as faults
from tests.faults.fault import seeded

FAULTS = {fault.name.removeprefix("stream."): fault for fault in faults.FAULTS}


def test_bennett_s_bound_holds_for_sums_of_bounded_terms():
    """Sums of centred Bernoulli terms: their binomial tails are known."""
    count, p = 1000, 0.02
    for excess in (1.0, 5.0, 20.0, 60.0):
        exact = stats.binom.sf(count * p + excess - 1e-9, count, p) + stats.binom.cdf(count * p - excess, count, p)
        bound = quality._bennett(excess, count, p * (1 - p), 1 - p)
        assert exact <= bound
        assert bound == 1.0 or math.log(bound) < 0.55 * math.log(exact)
    assert quality._bennett(0.0, count, 1.0, 1.0) == 1.0


def test_binomial_p_values_are_those_of_scipy_times_their_number():
    for found in (480, 500, 561):
        expected = 2 * min(stats.binom.sf(found - 1, 1000, 0.5), stats.binom.cdf(found, 1000, 0.5))
        assert quality._binomial(np.array([found, 500]), 1000, 0.5, 0.5) == pytest.approx(min(1.0, 2 * expected))


def test_binomial_p_values_take_the_worst_probability():
    p = quality._binomial(np.array([560]), 1000, 0.5, 0.52)
    assert p == pytest.approx(2 * stats.binom.sf(559, 1000, 0.52))
    assert quality._binomial(np.array([510]), 1000, 0.5, 0.52) > 0.5


def test_bins_notice_too_much_and_too_little():
    even = np.full(4096, 1000)
    assert quality._bins(even) < 1e-100
    uneven = even + np.where(np.arange(4096) % 2, 60, -60)
    assert quality._bins(uneven) < 1e-100
    usual = np.random.default_rng(1).poisson(1000, 4096)
    assert 1e-4 < quality._bins(usual) <= 1.0


@pytest.mark.parametrize("order", range(1, 9))
def test_variances_of_powers_are_those_of_the_normal_nearly(order):
    mean, slack, variance, largest = quality._power_terms(order)
    exact = stats.norm.moment(2 * order) - stats.norm.moment(order) ** 2
    assert variance == pytest.approx(exact, rel=2e-3)
    assert mean == pytest.approx(stats.norm.moment(order), rel=1e-4, abs=1e-12)
    assert largest >= quality.largest_law() ** order
    assert 0.0 <= slack <= 5e-6 * max(mean, 1e-300)


def test_a_deviation_that_is_said_to_be_visible_is_seen_as_often():
    """The smallest deviation's sum lies beyond the level with probability 0.99, by the normal law."""
    count, tests = 10**8, 281
    for order in (2, 4, 6, 8):
        mean, slack, variance, largest = quality._power_terms(order)
        shift = visible_moment(order, count, tests) * mean * count
        unlucky = shift - slack * count - 2.3263 * math.sqrt(count * variance)
        assert quality._bennett(unlucky, count, variance, largest) == pytest.approx(LEVEL / tests, rel=1e-2)
    assert visible_moment(2, 10**10, tests) < 1.5e-4


@pytest.fixture(scope="module")
def found():
    return judge(1, 5)


def test_the_stream_passes(found):
    assert found.passed, found.smallest
    assert found.linked
    assert found.coordinates == 5 * LENGTH
    assert len(found.p_values) == 8 + 29 + 4 + 5 * 6 * 2 * 4
    assert all(0.0 <= p <= 1.0 for p in found.p_values.values())


def test_equal_seeds_find_the_same_and_progress_is_told(found):
    told = []
    again = judge(1, 5, told.append)
    assert again.p_values == found.p_values
    assert told == [LENGTH * n for n in range(1, 6)]
    assert judge(1, 6).p_values != found.p_values


def test_one_small_p_value_fails(found):
    share = LEVEL / len(found.p_values)
    assert Quality(1, {**found.p_values, "all: moment 2": 1.01 * share}, True).passed
    assert not Quality(1, {**found.p_values, "all: moment 2": 0.99 * share}, True).passed
    assert not Quality(1, found.p_values, False).passed


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("shared", "canaries: lag 1[, ]*products"),
        ("canary-16-bits", "all: repeated counters"),
        ("high-key", "high bits of seeds: lag 1, equal bits"),
        ("purpose", "canary and noise: lag 1, squares"),
        ("high-counter", "all: repeated counters"),
        ("lowest-counter-bit", "one canary: lag 1, highest bits"),
        ("24-bits", "all: 12 lowest bits"),
        ("24-bits", "all: balance of bits"),
        ("rounds", "canary and noise: lag 1, equal bits"),
    ],
)
def test_faults_are_seen_where_they_are(name, test):
    with seeded(FAULTS[name]):
        found = judge(1, 5)
    assert found.linked
    # Which of a lag's two sets of pairs has the fault depends on where the reading begins.
    assert min(p for label, p in found.p_values.items() if fnmatchcase(label, test)) < LEVEL / len(found.p_values)


@pytest.mark.parametrize("name", ["truncated", "coefficient"])
def test_wrong_quantiles_are_seen_by_a_scan(name):
    assert quality.scan(1_000_003).largest_error <= quality.QUANTILE_ERROR
    with seeded(FAULTS[name]):
        assert quality.scan(1_000_003).largest_error > 5e-6


def test_philox_in_plain_numpy_with_all_rounds_is_the_stream(found):
    fault = faults._streams("none", "", faults._rounds(10))
    with seeded(fault):
        assert judge(1, 5).p_values == found.p_values


def cut(streams):
    def faulty(chosen, length):
        words, coordinates = streams(chosen, length)
        return words, np.clip(coordinates, np.float32(-4), np.float32(4))

    return faulty


def widened(streams):
    def faulty(chosen, length):
        words, coordinates = streams(chosen, length)
        return words, coordinates * np.float32(1.01)

    return faulty


@pytest.mark.parametrize(("make", "test"), [(cut, "all: tails 2^-16"), (widened, "all: moment 2")])
def test_wrong_coordinates_are_seen_by_their_counts(make, test):
    with seeded(faults._streams("wrong", "", make)):
        found = judge(1, 5)
    assert not found.linked
    assert found.p_values[test] < LEVEL / len(found.p_values)
