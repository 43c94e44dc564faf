import itertools
import math
from fnmatch import fnmatchcase

import numba
import numpy as np
import pytest
from scipy import special, stats

from canaryproof.kernels.canaries import noise
from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.suites import streams as plain
from canaryproof.verify.papers.suites.stream_quality import quality
from canaryproof.verify.papers.suites.stream_quality.quality import (
    BINS,
    INTERLEAVINGS,
    LAGS,
    LENGTH,
    ORDERS,
    THRESHOLDS,
    Counts,
    Quality,
    judge,
    neighbours,
    read_stretch,
    start_of_stretch,
    visible_moment,
)
from tests.faults import streams as faults
from tests.faults.fault import seeded

SLAB = quality._SLAB


@pytest.fixture(scope="module")
def stretch():
    words = np.random.default_rng(4).integers(0, 2**32, LENGTH, dtype=np.uint32)
    return words, special.ndtri((words.astype(np.float64) + 0.5) * 2.0**-32).astype(np.float32)


@pytest.fixture(scope="module")
def found(stretch):
    result = Counts()
    result.add(*stretch)
    return result


def test_sums_of_powers(stretch, found):
    values = stretch[1].astype(np.longdouble)
    power, exact = np.ones_like(values), []
    for _ in range(ORDERS):
        power *= values
        exact.append(float(power.sum()))
    assert found.powers == pytest.approx(np.array(exact), rel=1e-9)
    assert found.coordinates == LENGTH


def test_tails(stretch, found):
    assert found.tails[0].tolist() == [int(np.sum(stretch[1] > t)) for t in THRESHOLDS]
    assert found.tails[1].tolist() == [int(np.sum(stretch[1] < -t)) for t in THRESHOLDS]


def test_thresholds_are_the_quantiles_of_powers_of_two():
    assert special.ndtr(-THRESHOLDS.astype(float)) == pytest.approx(0.5 ** np.arange(1, 30), rel=1e-5)


def test_bins_and_bits(stretch, found):
    words = stretch[0]
    assert np.array_equal(found.bins[0], np.bincount(words >> 20, minlength=BINS))
    assert np.array_equal(found.bins[1], np.bincount(words & 4095, minlength=BINS))
    assert found.bits.tolist() == [int(np.sum(words >> bit & 1)) for bit in range(32)]


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("lag", LAGS)
def test_pairs(stretch, found, lag, late):
    k = LAGS.index(lag)
    # Within a slab, blocks of 2·lag: those of the first half with those of the second.
    blocks = (SLAB - late * lag) // (2 * lag)
    both = []
    for array in stretch:
        slabs = array.reshape(-1, SLAB)[:, late * lag : late * lag + blocks * 2 * lag].reshape(-1, 2, lag)
        both.append((slabs[:, 0].ravel(), slabs[:, 1].ravel()))
    (word, other), (a, b) = both
    a, b, centre = a.astype(float), b.astype(float), quality.moment(2)
    assert found.pairs[k, late] == len(word)
    assert found.products[k, late] == pytest.approx(
        [np.sum(a * b), np.sum((a**2 - centre) * (b**2 - centre))], rel=1e-9
    )
    assert np.array_equal(found.cells[k, late], np.bincount((word >> 26) << 6 | other >> 26, minlength=BINS))
    assert found.differing[k, late].tolist() == [int(np.sum((word ^ other) >> bit & 1)) for bit in range(32)]


def test_one_thread_finds_the_same_to_the_last_bit(stretch, found):
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        alone = Counts()
        alone.add(*stretch)
    finally:
        numba.set_num_threads(before)
    assert np.array_equal(alone.powers, found.powers)
    assert np.array_equal(alone.products, found.products)


def test_counts_add_up(stretch, found):
    twice, sum_of_two = Counts(), Counts()
    for _ in range(2):
        twice.add(*stretch)
        sum_of_two += found
    for name in ("powers", "tails", "bins", "bits", "pairs", "products", "cells", "differing"):
        assert np.array_equal(getattr(twice, name), getattr(sum_of_two, name))
        assert np.array_equal(getattr(twice, name), 2 * getattr(found, name))
    assert twice.coordinates == sum_of_two.coordinates == 2 * LENGTH


def values(bits):
    return -special.ndtri((2 * np.arange(2 ** (bits - 2)) + 1) * 2.0**-bits)


@pytest.mark.parametrize("order", [0, 2, 4, 6, 8, 16])
@pytest.mark.parametrize("bits", [3, 10, 19, 22])
def test_moments_are_those_of_all_values(order, bits):
    # From 19 bits on, the inner cells are integrated.
    assert quality.moment(order, bits) == pytest.approx(math.fsum(values(bits) ** order) / 2 ** (bits - 2), rel=3e-14)


def test_moments_are_a_little_smaller_than_the_normal_s():
    for order in (2, 4, 6, 8):
        assert 0.0 < 1.0 - quality.moment(order) / stats.norm.moment(order) < 1e-4


@pytest.mark.parametrize("threshold", [0.0, 0.01, 0.6744, 1.0, 2.5, 3.3, 9.0])
@pytest.mark.parametrize("bits", [4, 12, 20])
def test_tails_are_counts_of_values(threshold, bits):
    assert quality.tail(threshold, bits) == np.sum(values(bits) > threshold) * 2.0 ** (1 - bits)


def test_largest_value():
    assert quality.largest_value(10) == values(10)[0]
    assert quality.tail(quality.largest_value() * (1 + 1e-12)) == 0.0
    assert quality.tail(quality.largest_value() * (1 - 1e-12)) == 2.0**-31


def test_a_scan_finds_the_kernel_s_values_within_its_error():
    scan = quality.scan(100_003)
    assert scan.words == -(-(2**30) // 100_003)
    assert 1e-8 < scan.largest_error <= quality.QUANTILE_ERROR
    assert 0.0 < scan.square_error <= quality.QUANTILE_ERROR**2
    assert scan.symmetric


def test_a_scan_notices_one_wrong_value_and_a_lost_sign(monkeypatch):
    right = quality.quantiles
    monkeypatch.setattr(quality, "quantiles", lambda words: np.where(words == 1, np.float32(-6.3), right(words)))
    assert quality.scan(100_003).largest_error > 1e-2
    monkeypatch.setattr(quality, "quantiles", lambda words: -np.abs(right(words)))
    scan = quality.scan(100_003)
    assert scan.largest_error <= quality.QUANTILE_ERROR
    assert not scan.symmetric


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
    for found_at_length in (480, 500, 561):
        expected = 2 * min(stats.binom.sf(found_at_length - 1, 1000, 0.5), stats.binom.cdf(found_at_length, 1000, 0.5))
        assert quality._binomial(np.array([found_at_length, 500]), 1000, 0.5, 0.5) == pytest.approx(
            min(1.0, 2 * expected)
        )


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
    assert largest >= quality.largest_value() ** order
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
def found_at_length():
    return judge(1, 5)


def test_the_stream_passes(found_at_length):
    assert found_at_length.passed, found_at_length.smallest
    assert found_at_length.linked
    assert found_at_length.coordinates == 5 * LENGTH
    assert len(found_at_length.p_values) == 8 + 29 + 4 + 5 * 6 * 2 * 4
    assert all(0.0 <= p <= 1.0 for p in found_at_length.p_values.values())


def test_equal_seeds_find_the_same_and_progress_is_told(found_at_length):
    told = []
    again = judge(1, 5, told.append)
    assert again.p_values == found_at_length.p_values
    assert told == [LENGTH * n for n in range(1, 6)]
    assert judge(1, 6).p_values != found_at_length.p_values


def test_one_small_p_value_fails(found_at_length):
    share = LEVEL / len(found_at_length.p_values)
    assert Quality(1, {**found_at_length.p_values, "all: moment 2": 1.01 * share}, True).passed
    assert not Quality(1, {**found_at_length.p_values, "all: moment 2": 0.99 * share}, True).passed
    assert not Quality(1, found_at_length.p_values, False).passed


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("shared", "canaries: lag 1[, ]*products"),
        ("high-key", "high bits of seeds: lag 1, equal bits"),
        ("high-counter", "all: repeated counters"),
        ("lowest-counter-bit", "one canary: lag 1, highest bits"),
        ("24-bits", "all: 12 lowest bits"),
        *(
            pytest.param(*row, marks=pytest.mark.deep)
            for row in (
                ("canary-16-bits", "all: repeated counters"),
                ("purpose", "canary and noise: lag 1, squares"),
                ("24-bits", "all: balance of bits"),
                ("rounds", "canary and noise: lag 1, equal bits"),
            )
        ),
    ],
)
def test_faults_are_seen_where_they_are(name, test):
    with seeded(FAULTS[name]):
        found_at_length = judge(1, 5)
    assert found_at_length.linked
    # Which of a lag's two sets of pairs has the fault depends on where the reading begins.
    assert min(p for label, p in found_at_length.p_values.items() if fnmatchcase(label, test)) < LEVEL / len(
        found_at_length.p_values
    )


@pytest.mark.parametrize("name", ["truncated", "coefficient"])
def test_wrong_quantiles_are_seen_by_a_scan(name):
    assert quality.scan(1_000_003).largest_error <= quality.QUANTILE_ERROR
    with seeded(FAULTS[name]):
        assert quality.scan(1_000_003).largest_error > 5e-6


def test_philox_in_plain_numpy_with_all_rounds_is_the_stream(found_at_length):
    fault = faults._streams("none", "", faults._rounds(10))
    with seeded(fault):
        assert judge(1, 5).p_values == found_at_length.p_values


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
        found_at_length = judge(1, 5)
    assert not found_at_length.linked
    assert found_at_length.p_values[test] < LEVEL / len(found_at_length.p_values)


def one(seed, index, purpose, tile):
    return quality.streams(np.array([[seed, index, purpose, tile]], np.uint64), quality.TILE)


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("canaries", (6, 8, 0, 2)),
        ("seeds", (7, 7, 0, 2)),
        ("high bits of seeds", (6 + 2**56, 7, 0, 2)),
        ("canary and noise", (6, 7, 1, 2)),
    ],
)
def test_streams_are_interleaved(name, second):
    words, coordinates = read_stretch(name, (6, 7, 0, 2))
    count = INTERLEAVINGS[name].count
    assert len(words) == len(coordinates) == LENGTH
    for number, chosen in enumerate(((6, 7, 0, 2), second)):
        expected = one(*chosen)
        assert np.array_equal(words[number::count][: quality.TILE], expected[0][0])
        assert np.array_equal(coordinates[number::count][: quality.TILE], expected[1][0])


def test_along_a_canary():
    words, _ = read_stretch("one canary", (6, 7, 0, 2))
    assert np.array_equal(words[: quality.TILE], one(6, 7, 0, 2)[0][0])
    assert np.array_equal(words[quality.TILE : 2 * quality.TILE], one(6, 7, 0, 3)[0][0])


def test_the_last_stream_of_high_bits_has_the_highest_seed():
    words, _ = read_stretch("high bits of seeds", (6, 7, 0, 2))
    assert np.array_equal(words[255::256], one(6 + (255 << 56), 7, 0, 2)[0][0])


def test_places_share_no_seed_and_stay_in_range():
    rng = np.random.default_rng(1)
    places = [start_of_stretch(number, rng) for number in range(2000)]
    assert all(second[0] - first[0] == INTERLEAVINGS["seeds"].count for first, second in itertools.pairwise(places))
    indices, tiles = [p[1] for p in places], [p[3] for p in places]
    assert min(indices) == min(tiles) == 0
    assert 2**31 < max(indices) <= 2**32 - INTERLEAVINGS["canaries"].count
    assert 2**27 < max(tiles) <= 2**28 - LENGTH // quality.TILE
    assert {p[2] for p in places} == {0}


def test_neighbours_differ_from_the_first_in_one_bit():
    rows = neighbours()
    assert len(np.unique(rows, axis=0)) == len(rows) == 1 + sum(quality._BITS)
    assert (np.bitwise_count(rows[1:] ^ rows[0]).sum(axis=1) == 1).all()
    assert (np.bitwise_or.reduce(rows) == [2**bits - 1 for bits in quality._BITS]).all()


# Seed, canary, purpose and first tile; the last one's counters are beyond 2³².
CHOSEN = np.array([[0, 0, 0, 0], [2**64 - 1, 2**32 - 1, 0, 7], [5 + 2**40, 3, 1, 1], [1, 2, 0, 2**22 + 1]], np.uint64)


def test_words_are_those_of_philox_in_plain_integers():
    words, _ = quality.streams(CHOSEN, 2 * quality.TILE)
    for row, (seed, index, purpose, tile) in zip(words, CHOSEN.tolist(), strict=True):
        for spot in (0, 1, 1023, 1024, 2500, 4095, 4096, 8191):
            beyond, inside = divmod(spot, quality.TILE)
            run, rest = divmod(inside, quality.RUN)
            counter = quality.RUN * (tile + beyond) + rest
            key = seed % 2**32, seed // 2**32
            assert row[spot] == plain._philox((counter % 2**32, counter // 2**32, index, purpose), key)[run]


def test_coordinates_are_the_quantiles_of_their_words_and_those_of_the_kernel():
    words, coordinates = quality.streams(CHOSEN, quality.TILE)
    for row, of in zip(words, coordinates, strict=True):
        assert np.array_equal(quality.quantiles(row), of)
    made = quality.streams(np.array([[9, 0, 1, 0]], np.uint64), 2 * quality.TILE)[1][0]
    assert np.array_equal(made[:5000], noise(9, 5000))


@pytest.mark.parametrize("count", [1, 4095, 5000])
def test_quantiles_of_any_number_of_words(count):
    words = np.arange(count, dtype=np.uint32) * np.uint32(858_993)
    found = quality.quantiles(words)
    assert found.shape == (count,)
    assert np.array_equal(quality.quantiles(words[-1:]), found[-1:])
