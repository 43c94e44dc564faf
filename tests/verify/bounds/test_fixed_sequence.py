import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from canaryproof.verify.bounds import fixed_sequence as tested
from canaryproof.verify.bounds.fixed_sequence import (
    epsilon_sequence,
    excludes_all,
    fixed_sequence,
    least_rejecting,
    worst_tail,
    wrong_at_most,
    wrong_guesses,
)
from canaryproof.verify.bounds.lower_bound import ExactNull, discrete_null, normal_null, prepare

NULL = normal_null()


def test_tested_values_start_at_zero_and_are_close():
    values = np.concatenate(epsilon_sequence())
    assert values[0] == 0.0
    assert values[-1] >= 1e4
    steps = np.diff(values)
    assert np.all(steps > 0.0)
    assert np.all(steps <= np.maximum(0.01, 0.015 * values[:-1]) * (1.0 + 1e-9))


def reference(seen, unseen, delta):
    """The last ε of the sequence before the first whose test, by plain counting, does not reject."""
    expected = 0.0
    for epsilons in epsilon_sequence():
        if unseen is None:
            places, critical = tested._sum_critical_values(len(seen), NULL, delta, 0.05, epsilons)
            rejects = [sum(np.sum(seen >= t) for t in row) >= c for row, c in zip(places, critical, strict=True)]
        else:
            tops, bottoms, most = tested._guess_critical_values(len(seen), len(unseen), delta, 0.05, epsilons)
            falling = [x for _, x in sorted([(-v, 1) for v in seen] + [(-v, 0) for v in unseen])]
            wrong = [
                top - sum(falling[:top]) + sum(falling[len(falling) - n :])
                for top, n in zip(tops, bottoms, strict=True)
            ]
            rejects = [w <= m for w, m in zip(wrong, most, strict=True)]
        for epsilon, rejected in zip(epsilons, rejects, strict=True):
            if not rejected:
                return expected
            expected = epsilon
    return expected


def test_the_bound_is_the_last_rejected_value():
    rng = np.random.default_rng(1)
    seen, unseen = 2.0 + rng.normal(size=150), rng.normal(size=120)
    value, threshold = fixed_sequence(prepare(seen, null=NULL), 1e-5, 0.05)
    assert value[0] == reference(seen, None, 1e-5) > 0.5
    assert math.isnan(threshold[0])
    value, threshold = fixed_sequence(prepare(seen, unseen), 1e-5, 0.05)
    assert value[0] == reference(seen, unseen, 1e-5) > 0.5
    assert threshold[0] in {*seen, *unseen}


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5, 0.999])
@pytest.mark.parametrize("count", [1, 2, 17])
def test_few_scores_and_any_delta(count, delta):
    seen = np.linspace(-1.0, 0.5, count)
    assert fixed_sequence(prepare(seen, null=NULL), delta, 0.05)[0][0] == 0.0
    assert fixed_sequence(prepare(seen, seen), delta, 0.05)[0][0] == 0.0


def test_equal_scores_of_both_kinds_have_no_bound():
    tied = np.ones(500)
    assert fixed_sequence(prepare(tied, tied), 1e-6, 0.05)[0][0] == 0.0


def test_a_discrete_null_is_used_at_its_own_places():
    right = math.exp(3.0) / (1.0 + math.exp(3.0))
    seen = (np.random.default_rng(2).random(1000) < right).astype(float)
    value, _ = fixed_sequence(prepare(seen, null=discrete_null([0.0, 1.0], [right, 1.0 - right])), 1e-6, 0.05)
    # One place only: as good as Clopper and Pearson's limit there, less a step.
    limit = stats.beta.ppf(0.05, seen.sum(), 1001 - seen.sum())
    best = max(math.log(limit / (1.0 - right)), math.log(right / (1.0 - limit)))
    assert best - 0.05 <= value[0] <= best


@pytest.mark.parametrize(("count", "places"), [(30_000, 4), (150_000, 1)])
def test_many_scores_have_few_thresholds(count, places):
    rng = np.random.default_rng(3)
    value, _ = fixed_sequence(prepare(0.5 + rng.normal(size=count), null=NULL), 1e-6, 0.05)
    assert tested._sum_critical_values(count, NULL, 1e-6, 0.05, epsilon_sequence()[0])[0].shape[1] == places
    assert 1.2 < value[0] < 2.4


def test_perfect_separation():
    assert fixed_sequence(prepare([1.0], null=NULL).separated, 1e-6, 0.05)[0][0] == math.inf
    # One score that the null cannot reach says nothing at δ = α or more.
    assert fixed_sequence(prepare([1.0], null=NULL).separated, 0.05, 0.05)[0][0] == 0.0
    # From unobserved scores: all 1,000 above the largest of 1,000.
    cap = fixed_sequence(prepare(np.ones(1000), np.zeros(1000)), 1e-6, 0.05)[0][0]
    # Perfect separation of 1,000 and 1,000 has probability 0.05 at (1,000/2.996)/ε-odds twice over: e^ε is about 667.
    assert cap == pytest.approx(math.log(2000 / -math.log(0.05)), abs=0.1)


def test_mirrored_scores_have_no_bound():
    # The attack is one-sided: lower scores of canaries that took part are no evidence to it.
    assert fixed_sequence(prepare(np.full(300, -4.0), null=NULL), 1e-6, 0.05)[0][0] == 0.0


def test_nothing_counts_after_the_first_test_that_does_not_reject(monkeypatch):
    # Of three audits the first does not reject the third value, the second not the first, the third one of block two.
    def tests(_scores, _delta, _alpha):
        def reject(audits, epsilons):
            found = np.ones((3, len(epsilons)), dtype=bool)
            found[0, 2] = found[1, 0] = False
            found[2, 5] = epsilons[0] == 0.0
            return found[audits], np.full((len(audits), len(epsilons)), math.nan)

        return reject

    monkeypatch.setattr(tested, "sum_tests", tests)
    values = fixed_sequence(prepare(np.zeros((3, 4)), null=NULL), 1e-5, 0.05)[0]
    sequence = np.concatenate(epsilon_sequence())
    assert values.tolist() == [sequence[1], 0.0, sequence[len(epsilon_sequence()[0]) + 4]]


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


@pytest.mark.parametrize(
    ("count", "null_count", "top", "bottom", "epsilon", "delta"),
    [
        (300, 300, 90, 90, 0.7, 0.0),
        (300, 300, 90, 90, 0.7, 0.02),
        (400, 90, 50, 20, 1.0, 1e-3),
        (200, 200, 199, 199, 4.0, 0.0),
    ],
)
def test_law_is_that_of_the_worst_mechanism_or_above(count, null_count, top, bottom, epsilon, delta):
    runs = 20_000
    wrong = worst_mechanism(count, null_count, top, bottom, epsilon, delta, runs)
    bounds = wrong_at_most(count, null_count, top, bottom, epsilon, delta, 0.05)
    assert np.all(np.diff(bounds) >= -1e-12)
    for most in np.unique(np.quantile(wrong, [0.01, 0.05, 0.3, 0.7]).astype(int)):
        seen = int(np.sum(wrong <= most))
        # Never significantly above the bound; at δ = 0 not below either.
        assert stats.binom.sf(seen - 1, runs, min(bounds[most], 1.0)) > 1e-7
        if delta == 0.0:
            assert stats.binom.cdf(seen, runs, bounds[most]) > 1e-7


def test_all_guesses_may_be_right_where_all_canaries_are_shown():
    assert wrong_at_most(3, 3, 3, 3, 0.0, 1.0 - 1e-12, 0.05)[0] == pytest.approx(1.0)


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
        found = wrong_at_most(count, null_count, top, bottom, math.log(factor), float(delta), 0.05)
        excess = found - np.array([float(x) for x in itertools.accumulate(exact)])
        assert excess.min() > -1e-12
        assert delta > 0 or excess.max() < 1e-12


@given(st.floats(0.0, 20.0), st.floats(1e-9, 1.0), st.sampled_from([0.0, 1e-6, 1e-2, 0.5, 0.99]))
def test_worst_tail_is_what_both_inequalities_allow(epsilon, tail, delta):
    found = float(worst_tail(np.array(epsilon), np.log(np.array(tail)), delta))
    factor = math.exp(epsilon)

    def slack(p):
        return min(factor * tail + delta - p, factor * (1.0 - p) + delta - (1.0 - tail))

    # Rounded up, by less than matters.
    assert slack(found * (1.0 - 1e-12)) >= -1e-12 * factor
    assert found == 1.0 or slack(found) <= 1e-12 * factor


def test_randomised_response_reaches_the_worst_tail():
    wrong = 1.0 / (1.0 + math.e)
    assert worst_tail(np.array(1.0), np.array(math.log(wrong)), 0.0) == pytest.approx(1.0 - wrong, rel=1e-12)


@pytest.mark.parametrize("tails", [[0.3], [0.5, 0.2], [0.6, 0.6, 0.1], [1.0, 0.4, 0.0]])
@pytest.mark.parametrize("alpha", [0.05, 1e-4])
def test_critical_values_are_the_least_of_the_exact_law(tails, alpha):
    count = 12
    law = -np.diff([1.0, *tails, 0.0])
    sums = np.ones(1)
    for _ in range(count):
        sums = np.convolve(sums, law)
    upper = np.append(np.cumsum(sums[::-1])[::-1], 0.0)
    expected = int(np.argmax(upper <= alpha))
    assert least_rejecting(np.array(tails), count, alpha) == expected


@pytest.mark.parametrize("block", [0, 2, 4, 9])
def test_each_test_has_level_alpha_whatever_the_block(block):
    """P(T ≥ c) at the worst law, by its exact convolution, for some tests of a block."""
    epsilons = epsilon_sequence()[block]
    places, critical = tested._sum_critical_values(40, NULL, 1e-3, 0.05, epsilons)
    assert np.all(np.diff(places, axis=1) >= 0.0)
    for j in (1, 30):
        tails = worst_tail(epsilons[j], NULL.log_tail(places[j]), 1e-3)
        law, sums = -np.diff([1.0, *tails, 0.0]), np.ones(1)
        for _ in range(40):
            sums = np.convolve(sums, law)
        assert sums[critical[j] :].sum() <= 0.05
        # Not much is wasted: one less would be too many.
        assert sums[critical[j] - 1 :].sum() > 0.05


@pytest.mark.parametrize(("mu", "epsilon", "delta"), [(1.0, 0.5, 1e-5), (0.3, 0.1, 1e-2), (3.0, 6.0, 1e-6)])
def test_hardest_law_is_private_and_a_law(mu, epsilon, delta):
    first, second, third, fourth = (float(x) for x in tested._hardest(np.array(mu), np.array(epsilon), delta))
    x = np.linspace(-12.0, 12.0 + mu, 400_001)
    q, ratio = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi), np.exp(mu * x - 0.5 * mu * mu)

    def at(place):
        return math.exp(mu * place - 0.5 * mu * mu)

    # Densities by the null's: the Gaussian one's where the logarithm of their ratio is flat.
    p = np.where(x > first, ratio * math.exp(epsilon) / at(first), math.exp(epsilon))
    p = np.where(x < second, ratio * math.exp(epsilon) / at(second), p)
    p = np.where(x < third, math.exp(-epsilon), p)
    p = np.where(x < fourth, ratio * math.exp(-epsilon) / at(fourth), p)
    step = x[1] - x[0]
    assert np.sum(p * q) * step == pytest.approx(1.0, abs=1e-4)
    for one, other in ((p, 1.0), (1.0, p)):
        assert np.sum(np.maximum(one - math.exp(epsilon) * other, 0.0) * q) * step == pytest.approx(delta, rel=0.02)


def test_impossible_scores_exclude_every_epsilon():
    bounded = ExactNull("up to 1", lambda x: np.where(x > 1.0, -math.inf, special.log_ndtr(-x)), NULL.place)
    for above, delta, expected in ((0, 0.0, False), (1, 0.0, True), (1, 1e-3, False), (4, 1e-3, True)):
        scores = prepare(np.where(np.arange(1000) < above, 2.0, 0.0), null=bounded)
        assert excludes_all(scores, delta, 0.05)[0] == expected
