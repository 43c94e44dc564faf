import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.audit.bounds.guesses import guess_test, shown_numbers, wrong_at_most, wrong_guesses
from canaryproof.verify.audit.bounds.lower_bound import prepare


def drawn(number, total, of_a_kind, draws):
    # Not a number where something before it is impossible.
    return np.nan_to_num(stats.hypergeom.pmf(number, total, of_a_kind, draws)) if total else float(number == 0)


def by_enumeration(count, null_count, top, bottom, epsilon):
    """Over the numbers of canaries on the high side: within a side all orders are equally likely."""
    right = 1.0 / (1.0 + math.exp(-epsilon))
    law = np.zeros(top + bottom + 1)
    for seen, unseen in itertools.product(range(count + 1), range(null_count + 1)):
        weight = stats.binom.pmf(seen, count, right) * stats.binom.pmf(unseen, null_count, 1.0 - right)
        high, low = seen + unseen, count + null_count - seen - unseen
        # So many of the top guesses are on the high side, and of the bottom ones on the low side; the rest are beyond.
        on_high, on_low = min(top, high), min(bottom, low)
        above, below = top - on_high, bottom - on_low
        kinds = itertools.product(range(on_high + 1), range(below + 1), range(on_low + 1), range(above + 1))
        for a, b, c, d in kinds:
            law[a + b + c + d] += (
                weight
                * drawn(a, high, unseen, on_high)
                * drawn(b, high - on_high, seen - (on_high - a), below)
                * drawn(c, low, count - seen, on_low)
                * drawn(d, low - on_low, null_count - unseen - (on_low - c), above)
            )
    return law


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("count", "null_count", "top", "bottom"), [(4, 4, 2, 2), (4, 4, 4, 4), (5, 3, 6, 1), (2, 6, 1, 5), (3, 3, 2, 0)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.8, 3.0])
def test_law_of_wrong_guesses_by_enumeration(count, null_count, top, bottom, epsilon):
    found = wrong_guesses(count, null_count, top, bottom, epsilon)
    assert found == pytest.approx(by_enumeration(count, null_count, top, bottom, epsilon), abs=1e-12)
    assert found.sum() == pytest.approx(1.0, abs=1e-11)


def worst_mechanism(count, null_count, top, bottom, epsilon, delta, runs):
    """Simulate wrong guesses where S*(u) is the tail of canaries that took part and u of those that did not."""
    rng = np.random.default_rng(1)
    w = rng.random((runs, count))
    middle = (1.0 - delta) / (1.0 + math.exp(epsilon))
    low = 1.0 - delta - (1.0 - w) * math.exp(epsilon)
    seen = np.where(
        w < delta, 0.0, np.where(w < delta + math.exp(epsilon) * middle, (w - delta) / math.exp(epsilon), low)
    )
    order = np.argsort(np.concatenate([seen, rng.random((runs, null_count))], axis=1), axis=1, kind="stable")
    took_part = order < count
    return (~took_part[:, :top]).sum(axis=1) + took_part[:, count + null_count - bottom :].sum(axis=1)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("count", "null_count", "top", "bottom", "epsilon", "delta"),
    [
        pytest.param(300, 300, 90, 90, 0.7, 0.0, marks=pytest.mark.deep),
        pytest.param(300, 300, 90, 90, 0.7, 0.02, marks=pytest.mark.deep),
        (400, 90, 50, 20, 1.0, 1e-3),
        (200, 200, 199, 199, 4.0, 0.0),
    ],
)
def test_law_is_that_of_the_worst_mechanism_or_above(count, null_count, top, bottom, epsilon, delta):
    runs = 20_000
    wrong = worst_mechanism(count, null_count, top, bottom, epsilon, delta, runs)
    bounds = wrong_at_most(count, null_count, top, bottom, epsilon, delta)
    assert np.all(np.diff(bounds) >= -1e-12)
    for most in np.unique(np.quantile(wrong, [0.01, 0.05, 0.3, 0.7]).astype(int)):
        seen = int(np.sum(wrong <= most))
        # Never significantly above the bound; at δ = 0 not below either.
        assert stats.binom.sf(seen - 1, runs, min(bounds[most], 1.0)) > 1e-7
        if delta == 0.0:
            assert stats.binom.cdf(seen, runs, bounds[most]) > 1e-7


def test_all_guesses_may_be_right_where_all_canaries_are_shown():
    assert wrong_at_most(3, 3, 3, 3, 0.0, 1.0 - 1e-12)[0] == pytest.approx(1.0)


def orders(count, null_count, factor, delta):
    """The exact law of the order under the worst mechanism: labels, the highest first, and their probabilities."""
    right, total = factor / (1 + factor), count + null_count
    law = {}
    for places in itertools.combinations(range(total), count):
        labels = tuple(int(i in places) for i in range(total))
        probability = Fraction(0)
        # So many are shown at the top and at the bottom, and so many of the others are on the high side.
        for first, last in itertools.product(range(count + 1), range(null_count + 1)):
            if not all(labels[:first]) or any(labels[total - last :]):
                continue
            rest = labels[first : total - last]
            for high in range(len(rest) + 1):
                seen, low = sum(rest[:high]), len(rest) - high
                kinds = (first, seen, count - first - seen), (last, high - seen, null_count - last - high + seen)
                term = Fraction(1, math.comb(high, seen) * math.comb(low, kinds[0][2]))
                for kind, good in zip(kinds, (right, 1 - right), strict=True):
                    rates = delta, (1 - delta) * good, (1 - delta) * (1 - good)
                    term *= math.factorial(sum(kind))
                    term *= math.prod(rate**n / math.factorial(n) for rate, n in zip(rates, kind, strict=True))
                probability += term
        law[labels] = probability
    return law


@pytest.mark.parametrize(("count", "null_count"), [(1, 1), (1, 3), (3, 1), (3, 3), (5, 2)])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 50), Fraction(1, 2), Fraction(9, 10)])
def test_bounds_are_not_below_the_exact_law(count, null_count, delta):
    """All numbers of guesses, also where more canaries are shown than are left open."""
    total, factor = count + null_count, Fraction(5, 2)
    law = orders(count, null_count, factor, delta)
    assert sum(law.values()) == 1
    for top, bottom in itertools.product(range(total + 1), repeat=2):
        if not 0 < top + bottom <= total:
            continue
        exact = [Fraction(0)] * (top + bottom + 1)
        for labels, probability in law.items():
            exact[top - sum(labels[:top]) + sum(labels[total - bottom :])] += probability
        found = wrong_at_most(count, null_count, top, bottom, math.log(factor), float(delta))
        excess = found - np.array([float(x) for x in itertools.accumulate(exact)])
        assert excess.min() > -1e-12
        assert delta > 0 or excess.max() < 1e-12


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1e-3, 0.3]))
def test_critical_numbers_of_wrong_guesses_fall_with_epsilon_and_delta(seed, delta):
    rng = np.random.default_rng(seed)
    count, null_count = rng.integers(1, 60, 2)
    scores = prepare(np.zeros(count), np.zeros(null_count))
    middle = rng.exponential(2.0)

    def critical(epsilon, at, alpha):
        test = guess_test(scores, delta, at, alpha)
        # The most that rejects.
        return next(-wrong for wrong in range(count + null_count, -2, -1) if test.are_rejected(middle, epsilon, -wrong))

    base = critical(middle, delta, 0.05)
    assert base <= critical(1.1 * middle, delta, 0.05)
    assert base <= critical(middle, 2.0 * delta, 0.05)
    assert base <= critical(middle, delta, 0.04)


@pytest.mark.parametrize(("count", "null_count", "delta"), [(500, 200, 0.01), (30, 90, 0.2), (7, 7, 0.0)])
def test_numbers_shown_have_their_law(count, null_count, delta):
    beyond = 1.0
    for (seen, unseen), probability in shown_numbers(count, null_count, delta):
        assert seen <= count
        assert unseen <= null_count
        beyond -= probability
        fewer = stats.binom.cdf(seen, count, delta) * stats.binom.cdf(unseen, null_count, delta)
        assert beyond == pytest.approx(1.0 - fewer, abs=1e-12)
    assert (seen, unseen) == (count, null_count)
