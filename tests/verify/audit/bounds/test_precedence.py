import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.bounds.precedence import (
    EPSILONS,
    count_tail,
    counts_beyond,
    declared_ranks,
    last_rejected_index,
    least_counts,
    order_statistic,
    precedence,
    worst_tail,
)


@pytest.mark.parametrize(("total", "ranks"), [(1, [1]), (2, [1]), (3, [1]), (4, [1, 2]), (50, [1, 2, 4, 8, 16])])
def test_ranks_are_powers_of_two_up_to_half(total, ranks):
    assert declared_ranks(total).tolist() == ranks


@pytest.mark.parametrize(("rank", "total"), [(1, 1), (1, 50), (16, 50), (400, 1000)])
def test_the_discrete_law_lies_above_and_is_close(rank, total):
    places, weights, rest = order_statistic(rank, total)
    assert weights.sum() + rest == pytest.approx(1.0, abs=1e-12)
    # Up to each place, never more than there is; and before it less, where the exact law is not.
    exact = special.betainc(rank, total - rank + 1, places)
    assert np.cumsum(weights) == pytest.approx(exact, abs=1e-9)
    assert float(weights @ places) == pytest.approx(rank / (total + 1), rel=0.06)
    assert float(weights @ places) >= rank / (total + 1)


def by_sums(rates, weights, rest, trials, level):
    tails = [float(weights @ stats.binom.sf(c - 1, trials, rates)) + rest for c in range(trials + 2)]
    return next((c for c, tail in enumerate(tails) if tail <= level), trials + 1)


@pytest.mark.parametrize("trials", [1, 7, 60])
@pytest.mark.parametrize("level", [0.3, 0.04, 1e-6])
@pytest.mark.parametrize("rest", [0.0, 0.01])
def test_least_count_is_the_least(trials, level, rest):
    rates, weights = np.array([1e-9, 0.02, 0.4, 1.0]), np.array([0.5, 0.3, 0.15, 0.04])
    tail = count_tail(rates, weights, rest, trials)
    assert least_counts((0, tail), level) == by_sums(rates, weights, rest, trials, level)


def test_counts_are_of_scores_strictly_beyond():
    scores = prepare([0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0], [0.0, 0.0, 1.0, 3.0])
    above, below = counts_beyond(scores)
    # Above 3 and 1, the highest and the second of four; below 0, 1 and 2, the lowest, second and fourth of eight.
    assert above.tolist() == [[2, 5]]
    assert below.tolist() == [[0, 2, 3]]


def worst_scores(rng, shape, epsilon, delta):
    """Places u of null scores, such that the observed tail is the largest that is allowed."""
    w = rng.random(shape)
    middle = math.exp(epsilon) * (1.0 - delta) / (1.0 + math.exp(epsilon))
    high = (w - delta) * math.exp(-epsilon)
    return np.where(w < delta, 0.0, np.where(w < delta + middle, high, 1.0 - delta - (1.0 - w) * math.exp(epsilon)))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.05)])
def test_worst_scores_reach_the_worst_tail(epsilon, delta):
    u = worst_scores(np.random.default_rng(1), 100_000, epsilon, delta)
    for place in (0.01, 0.2, 0.5, 0.9):
        expected = float(worst_tail(epsilon, np.log(place), delta))
        assert stats.binomtest(int(np.sum(u <= place)), 100_000, min(expected, 1.0)).pvalue > 1e-7


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 0.0), (0.5, 0.05)])
def test_the_worst_case_is_rejected_as_often_as_allowed(epsilon, delta):
    """The bound is above ε in at most α of audits of the worst mechanism, and not in far fewer."""
    runs, count, null_count = 10_000, 60, 90
    rng = np.random.default_rng(4)
    seen = worst_scores(rng, (runs, count), epsilon, delta)
    values = precedence(prepare(-seen, -rng.random((runs, null_count))), delta, 0.2)
    above = int(np.sum(values > epsilon))
    assert stats.binom.sf(above - 1, runs, 0.2) > 1e-6
    assert above > 0.03 * runs


def test_one_pair_of_scores_shows_nothing():
    # The observed one is above with probability 1/2 or more: at halves of α neither test rejects even ε = 0.
    assert precedence(prepare([1.0], [0.0]), 0.0, 0.9)[0] == 0.0


@given(st.lists(st.integers(-1, len(EPSILONS) - 1), min_size=1, max_size=9))
def test_the_last_rejected_is_found(last):
    expected = np.array(last)
    assert last_rejected_index(len(last), lambda audits, index: index <= expected[audits]).tolist() == last
