import math

import numpy as np
import pytest
from scipy import special, stats

from canaryproof.verify.suites.stream import quality


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
    assert quality.largest_law(10) == values(10)[0]
    assert quality.tail(quality.largest_law() * (1 + 1e-12)) == 0.0
    assert quality.tail(quality.largest_law() * (1 - 1e-12)) == 2.0**-31


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
