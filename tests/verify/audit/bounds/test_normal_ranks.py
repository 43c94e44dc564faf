import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import integrate, special, stats

from canaryproof.verify.audit.bounds import normal_ranks
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.bounds.normal_ranks import (
    block_length,
    critical_sum,
    declared_ranks,
    largest_rejected_mu,
    most_reaching,
    sums_of,
)


def sum_of(labels):
    """The observed scores' normal scores, by their ranks from the highest on; labels are true for observed."""
    total = len(labels) + 1.0
    return sum(stats.norm.isf(rank / total) for rank, observed in enumerate(labels, 1) if observed)


def orders_of_shift(count, null_count, mu):
    """Probabilities of all orders of normal variables' labels, those of one kind higher by μ, by integrals in turn."""
    z = np.linspace(-9.0, 9.0 + mu, 3001)
    densities = [stats.norm.pdf(z), stats.norm.pdf(z - mu)]
    ways = math.factorial(count) * math.factorial(null_count)
    orders = {}
    for places in combinations(range(count + null_count), count):
        labels = tuple(i in places for i in range(count + null_count))
        below = np.ones_like(z)
        for observed in reversed(labels):
            below = integrate.cumulative_trapezoid(densities[observed] * below, z, initial=0.0)
        orders[labels] = ways * below[-1]
    assert sum(orders.values()) == pytest.approx(1.0, abs=1e-5)
    return orders


def orders_of_atoms(seen, unseen, count, null_count):
    """The same of scores with laws on 0, 1, …, enumerated; unobserved ones come first among equals."""
    orders = dict.fromkeys(orders_of_shift(count, null_count, 0.0), 0.0)
    for scores in product(range(len(seen)), repeat=count + null_count):
        chance = math.prod(seen[x] for x in scores[:count]) * math.prod(unseen[x] for x in scores[count:])
        ordered = sorted([(-x, True) for x in scores[:count]] + [(-x, False) for x in scores[count:]])
        orders[tuple(observed for _, observed in ordered)] += chance
    return orders


def least_mu(seen, unseen):
    """The least μ whose curve all half-lines of two laws on 0, 1, … obey."""
    hits, alarms = np.cumsum(seen[::-1])[:-1], np.cumsum(unseen[::-1])[:-1]
    return max(0.0, float(np.max(special.ndtri(hits) - special.ndtri(alarms))))


def can_rise_to(low, high):
    """Whether moves of an observed score before an unobserved one make one order the other."""
    return all(a <= b for a, b in zip(np.cumsum(low), np.cumsum(high), strict=True))


@pytest.mark.parametrize(("count", "null_count"), [(1, 3), (2, 2), pytest.param(3, 2, marks=pytest.mark.deep)])
def test_no_pair_with_the_curve_has_a_higher_order_than_the_shift(count, null_count):
    """The lemma of the proof, for every rising set of orders: enumerated pairs of laws against the shift by its μ."""
    rng = np.random.default_rng(86)
    for _ in range(6):
        seen, unseen = rng.dirichlet(np.full(3, 0.7), 2)
        at_most = orders_of_shift(count, null_count, least_mu(seen, unseen))
        found = orders_of_atoms(seen, unseen, count, null_count)
        for size in (1, 2):
            for lows in combinations(at_most, size):
                rising = [order for order in at_most if any(can_rise_to(low, order) for low in lows)]
                assert sum(found[each] for each in rising) <= sum(at_most[each] for each in rising) + 1e-4


def test_the_draws_have_the_law_of_the_sum():
    """All sums of two observed and two unobserved scores against the integrals; level 1e-6 of all six tests."""
    mu = 40 * block_length(2, 2)
    x, y = normal_ranks._normal_draws(2, 2)
    drawn = normal_ranks._sums_of_draws(x, y, mu, normal_ranks._weights(2, 2))
    orders = orders_of_shift(2, 2, mu)
    for labels in orders:
        # Two of the orders have the same sum.
        chance = sum(orders[other] for other in orders if abs(sum_of(other) - sum_of(labels)) < 1e-5)
        count = int(np.sum(np.abs(drawn - sum_of(labels)) < 1e-5))
        assert stats.binomtest(count, len(drawn), chance).pvalue > 1e-6 / 6


def test_few_ranks_of_many_scores_have_the_law_of_order_statistics():
    x, _ = normal_ranks._normal_draws(1000, 3)
    ranks = declared_ranks(1000)
    assert (len(ranks) <= 100, ranks[0], ranks[-1]) == (True, 1, 1000)
    for i in (0, 7, 32, len(ranks) - 1):
        law = stats.beta(ranks[i], 1001 - ranks[i])
        # Level 1e-7 each; 64,000 draws show a shift of 2% of its spread.
        assert stats.kstest(special.ndtr(-x[:, i]), law.cdf).pvalue > 1e-7


def test_a_sum_of_declared_ranks_is_that_of_all_where_there_are_few():
    rng = np.random.default_rng(3)
    for count, null_count in ((1, 1), (5, 2), (40, 100)):
        seen, unseen = np.rint(2.0 * rng.normal(0.7, 1.0, count)), np.rint(2.0 * rng.normal(size=null_count))
        ordered = sorted([(-x, True) for x in seen] + [(-x, False) for x in unseen])
        found = sums_of(prepare(seen, unseen))
        assert found[0] == pytest.approx(sum_of([observed for _, observed in ordered]), abs=1e-4)


def test_the_critical_count_is_clopper_and_pearsons():
    for level in (0.0499, 0.01, 0.6):
        most = most_reaching(level)
        assert stats.beta.ppf(0.99, most + 1, 64_000 - most) <= level
        assert stats.beta.ppf(0.99, most + 2, 64_000 - most - 1) > level
    # Of so small a level no sum of a table says anything; near 1, one draw more is never too many.
    assert most_reaching(1e-5) == -1
    assert critical_sum(10, 10, 1, 1e-5) == math.inf
    assert [(most_reaching(level) + 1) / 64_001 <= level for level in (1e-4, 0.999, 1.0 - 1e-6)] == [True] * 3


@pytest.mark.usefixtures("few_draws")
def test_a_bound_is_the_end_of_the_last_rejected_block():
    rng = np.random.default_rng(5)
    seen, unseen = rng.normal(1.0, 1.0, (4, 30)), rng.normal(size=(4, 40))
    seen[0] -= 2.0
    sums = sums_of(prepare(seen, unseen))
    critical = [critical_sum(30, 40, index, 0.0495) for index in range(1, 500)]
    assert critical == sorted(critical)
    last = [sum(value > c for c in critical) for value in sums]
    assert largest_rejected_mu(prepare(seen, unseen), 0.0495).tolist() == [n * block_length(30, 40) for n in last]
    assert last[0] == 0 < min(last[1:]) < max(last) < 499


@pytest.mark.deep
@pytest.mark.parametrize(("count", "null_count", "mu"), [(100, 100, 1.0), (30, 200, 0.5), (1000, 300, 2.0)])
def test_the_shift_itself_is_rejected_at_the_level(count, null_count, mu):
    """Normal scores: at least 4.3% and at most 5% of 20,000 audits, as chance allows at 1e-6."""
    rng, audits = np.random.default_rng((86, count)), 20_000
    seen, unseen = rng.normal(mu, 1.0, (audits, count)), rng.normal(size=(audits, null_count))
    above = int(np.sum(largest_rejected_mu(prepare(seen, unseen), 0.05) >= mu))
    assert stats.binom.sf(above - 1, audits, 0.05) > 1e-6
    assert stats.binom.cdf(above, audits, 0.043) > 1e-6
