import numba
import numpy as np
import pytest
from scipy import special

from canaryproof.verify.suites.stream import quality
from canaryproof.verify.suites.stream.quality import BINS, LAGS, LENGTH, ORDERS, THRESHOLDS, Counts

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
    exact = [np.sum(stretch[1].astype(np.longdouble) ** order) for order in range(1, ORDERS + 1)]
    assert found.powers == pytest.approx(np.array(exact, float), rel=1e-9)
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
