"""Canaries with unequal numbers of rounds are each held against the claim at their own number."""

import math

import numpy as np
import pytest
from scipy import special, stats

from canaryproof.kernels import null_cosine
from canaryproof.verify.audit.accounting.accountant import gaussian
from canaryproof.verify.audit.bounds.participations import Crowd, largest_noise, least_count
from canaryproof.verify.audit.levels import LEVEL

ROUNDS, RATE = 64, 0.125


def drawn(count: int, seed: int) -> np.ndarray:
    """Numbers of rounds of canaries that take part at all."""
    numbers = np.random.default_rng(seed).binomial(ROUNDS, RATE, count)
    return numbers[numbers > 0]


def limits(participations: np.ndarray, noise: float, level: float, runs: int, seed: int) -> np.ndarray:
    z = np.random.default_rng(seed).standard_normal((runs, len(participations))) + np.sqrt(participations) / noise
    return np.array([largest_noise(row, participations, level) for row in special.log_ndtr(-z)])


@pytest.mark.parametrize(("total", "level"), [(1, 0.5), (5, 0.025), (6, 0.025), (200, 0.05), (10**6, 1e-9)])
def test_the_least_count_is_the_binomial_quantile(total: int, level: float) -> None:
    least = least_count(total, level)
    assert stats.binom.sf(least - 1, total, 0.5) <= level < stats.binom.sf(least - 2, total, 0.5)


def test_it_is_the_pooled_q_values_inverted_over_the_multiplier() -> None:
    numbers, level = drawn(200, 0), 0.05
    cosines = np.random.default_rng(1).normal(np.sqrt(numbers), 1.0) / math.sqrt(5000)
    limit = largest_noise(null_cosine.logsf(cosines, 5000), numbers, level)
    p_values = np.exp(null_cosine.logsf(cosines, 5000))
    for multiplier, rejected in ((0.999 * limit, False), (1.001 * limit, True), (2.0 * limit, True)):
        q_values = [
            float(gaussian(multiplier, participations=int(n)).power(p)) for n, p in zip(numbers, p_values, strict=True)
        ]
        small = sum(q <= 0.5 for q in q_values)
        assert (stats.binom.sf(small - 1, len(numbers), 0.5) <= level) == rejected


@pytest.mark.parametrize("level", [0.05, 0.3])
def test_the_limit_is_below_the_noise_at_most_at_its_level(level: float) -> None:
    # The power to see 1.5 times the level of 0.05 is above 99.9%.
    numbers, runs = drawn(101, 2), 2000
    below = int((limits(numbers, 1.3, level, runs, 3) < 1.3).sum())
    assert stats.binom.sf(below - 1, runs, level) > LEVEL
    exact = Crowd.of(numbers, ROUNDS).power(1.0 / 1.3, 1.3, level)
    assert exact == pytest.approx(stats.binom.sf(least_count(len(numbers), level) - 1, len(numbers), 0.5), rel=1e-9)


def test_of_a_thousand_canaries_five_percent_less_noise_is_noticed() -> None:
    numbers, runs = drawn(1000, 4), 300
    power = Crowd.of(numbers, ROUNDS).power(1.0 / 0.95, 1.0, 0.05)
    assert power > 0.97
    below = int((limits(numbers, 0.95, 0.05, runs, 5) < 1.0).sum())
    assert stats.binom.cdf(below, runs, power) > LEVEL


def test_the_noticed_share_has_the_stated_power() -> None:
    crowd = Crowd.of(drawn(300, 6), ROUNDS)
    share = crowd.noticed_share(0.8, 10**9, 0.025)
    assert crowd.power(1.0 / (0.8 * share), 0.8, 0.025) == pytest.approx(0.9, abs=1e-4)
    # Canaries that share a round are noise to each other.
    assert crowd.noticed_share(0.8, 1000, 0.025) < share


def test_few_canaries_and_no_trace_limit_nothing() -> None:
    numbers = np.array([1, 2, 3, 4])
    assert largest_noise(np.full(4, -100.0), numbers, 0.05) == math.inf
    assert Crowd.of(numbers, 4).noticed_share(1.0, 1000, 0.05) == 0.0
    assert largest_noise(np.zeros(100), np.tile(numbers, 25), 0.05) == math.inf
