import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import integrate, special, stats

from canaryproof.verify.audit.bounds import normal_ranks
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.bounds.normal_ranks import (
    declared_ranks,
    deviation,
    draw_count,
    largest_rejected_mu,
    least_level,
    sums_of,
)

UNIT = 2.0**-16


def sum_of(labels):
    """The observed scores' normal scores, by their ranks from the highest on; labels are true for observed."""
    total = len(labels) + 1.0
    return sum(stats.norm.isf(rank / total) for rank, observed in enumerate(labels, 1) if observed)


def orders_of_shift(count, null_count, mu):
    """Probabilities of all orders of normal variables' labels, those of one kind higher by μ, by integrals in turn."""
    z = np.linspace(-9.0, 9.0 + mu, 6001)
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


def chances_to_reach(count, null_count, total, mu):
    """The probability of this sum, or more, given each draw."""
    draws = normal_ranks._draws(count, null_count)
    least = normal_ranks._least_reaching(draws, normal_ranks._weights(count, null_count), total)
    step, s = draws.step * 2.0**-24, deviation(count, null_count)
    # By the law of every 128th number, without the package's table.
    near = np.arange(-12, 13) * 128 + least[:, np.newaxis] + 128 * np.rint((mu / step - least) / 128)[:, np.newaxis]
    parts = special.ndtr((near * step - mu) / s) - special.ndtr(((near - 1) * step - mu) / s)
    return (parts * (near >= least[:, np.newaxis])).sum(axis=1) / parts.sum(axis=1)


def test_the_draws_have_the_law_of_the_sum():
    """All sums of two observed and two unobserved scores against the integrals; level 1e-6 of all five tests."""
    orders, lowest = orders_of_shift(2, 2, 0.8), (False, False, True, True)
    for labels in orders.keys() - {lowest}:
        # Normal scores are rounded.
        total = round(sum_of(labels) / UNIT) - 2
        chance = sum(orders[other] for other in orders if sum_of(other) > sum_of(labels) - 1e-3)
        chances = chances_to_reach(2, 2, total, 0.8)
        error = np.std(chances) / len(chances) ** 0.5
        # A difference is rounded up to a whole step, of s/256.
        assert -5.3 * error - 1e-5 <= chances.mean() - chance <= 5.3 * error + 0.0016


def test_few_ranks_of_many_scores_have_the_law_of_order_statistics():
    """Deviations and a mean of their own are normal variables: four ranks of 1,000, level 1e-7 each."""
    x = 2.0**-25 * normal_ranks._deviations(np.random.default_rng(7), 4000, 1000)
    x += np.random.default_rng(8).normal(0.0, 1000**-0.5, (4000, 1))
    ranks = declared_ranks(1000)[::-1]
    assert (len(ranks) <= 100, ranks[0], ranks[-1]) == (True, 1000, 1)
    for i in (0, 32, 60, len(ranks) - 1):
        law = stats.beta(1001 - ranks[i], ranks[i])
        assert stats.kstest(special.ndtr(x[:, i]), law.cdf).pvalue > 1e-7


def test_a_sum_of_declared_ranks_is_that_of_all_where_there_are_few():
    rng = np.random.default_rng(3)
    for count, null_count in ((1, 1), (5, 2), (40, 100)):
        seen, unseen = np.rint(2.0 * rng.normal(0.7, 1.0, count)), np.rint(2.0 * rng.normal(size=null_count))
        ordered = sorted([(-x, True) for x in seen] + [(-x, False) for x in unseen])
        found = sums_of(prepare(seen, unseen))
        assert UNIT * found[0] == pytest.approx(sum_of([observed for _, observed in ordered]), abs=1e-3)


def sum_at(draws, row, shift):
    """The sum of a draw's scores, those of one kind moved by so many units, and unobserved ones first of equals."""
    ordered = sorted([(-x - shift, True) for x in draws.observed[row]] + [(-x, False) for x in draws.unobserved[row]])
    labels = [observed for _, observed in ordered]
    return sum(round(stats.norm.isf(rank / (len(labels) + 1.0)) / UNIT) for rank, seen in enumerate(labels, 1) if seen)


def test_a_draw_reaches_a_sum_from_its_least_difference_on():
    draws, weights = normal_ranks._draws(5, 4), normal_ranks._weights(5, 4)
    totals = [round(total / UNIT) for total in (-0.4, 1.3, 2.2)] + [int(weights[:, 0].sum())]
    for total in totals:
        least = normal_ranks._least_reaching(draws, weights, total)
        assert np.all(least % 128 == draws.firsts)
        for row in range(10):
            # Each draw has its first difference already.
            shift = 2 * draws.step * int(least[row] - draws.firsts[row])
            before = shift - 2 * draws.step * 128
            assert sum_at(draws, row, before) < total <= sum_at(draws, row, shift)


def test_a_level_needs_draws():
    assert [draw_count(*sizes) for sizes in ((1, 1), (100, 100), (1000, 1000), (5000, 5000), (5000, 5001))] == [
        20_000,
        20_000,
        2000,
        1000,
        0,
    ]
    scores = prepare(np.arange(1000.0) + 1e4, np.arange(1000.0))
    level = least_level(1000, 1000)
    assert (1.0 + level) ** 2000 < 100.0 < (1.0 + 1.5 * level) ** 2000
    assert largest_rejected_mu(scores, level)[0] == -math.inf < largest_rejected_mu(scores, 2.0 * level)[0]
    many = prepare(np.arange(5001.0), np.arange(5001.0))
    assert (least_level(5001, 5001), largest_rejected_mu(many, 0.05)[0]) == (1.0, -math.inf)


@pytest.mark.deep
@pytest.mark.parametrize(("count", "null_count", "mu"), [(100, 100, 1.0), (30, 200, 0.5), (1000, 300, 2.0)])
def test_the_shift_itself_is_rejected_at_the_level(count, null_count, mu):
    """Normal scores: at least 4.3% and at most 5% of 20,000 audits, as chance allows at 1e-6."""
    rng, audits = np.random.default_rng((86, count)), 20_000
    seen, unseen = rng.normal(mu, 1.0, (audits, count)), rng.normal(size=(audits, null_count))
    above = int(np.sum(largest_rejected_mu(prepare(seen, unseen), 0.05) >= mu))
    assert stats.binom.sf(above - 1, audits, 0.05) > 1e-6
    assert stats.binom.cdf(above, audits, 0.043) > 1e-6


@pytest.mark.usefixtures("few_draws")
def test_the_largest_mu_is_that_against_which_the_bets_win():
    """Won are a hundred times the stake, half on each factor; means over draws, by hand."""
    rng = np.random.default_rng(5)
    seen, unseen = rng.normal(1.0, 1.0, (3, 30)), rng.normal(size=(3, 40))
    seen[0] -= 3.0
    scores = prepare(seen, unseen)
    found, level = largest_rejected_mu(scores, 0.0495), 0.0495
    step = normal_ranks._draws(30, 40).step * 2.0**-24
    for total, mu in zip(sums_of(scores).tolist(), found, strict=True):
        for at, is_rejected in ((mu, True), (mu + step, False)):
            gains = level - chances_to_reach(30, 40, total, at)
            won = [np.prod(1.0 + bet * gains) for bet in (1.0, 15.0 / math.sqrt(1000))]
            assert bool(np.mean(won) >= 100.0) is is_rejected
    assert found[0] < 0.0 < min(found[1:])
