import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.bounds import fixed_sequence as tested
from canaryproof.verify.bounds.fixed_sequence import (
    NESTED,
    SHARP,
    BlockTest,
    designs,
    fixed_sequence,
    guess_test,
    least_rejecting,
    sequence,
    sum_test,
    wrong_at_most,
    wrong_guesses,
)
from canaryproof.verify.bounds.lower_bound import discrete_null, normal_null, prepare
from canaryproof.verify.bounds.precedence import EPSILONS, worst_tail
from canaryproof.verify.bounds.thresholds import simultaneous

NULL = normal_null()


def test_tested_values_start_at_zero_and_are_close():
    assert EPSILONS[0] == 0.0
    assert EPSILONS[-1] >= 1e4
    steps = np.diff(EPSILONS)
    assert np.all(steps > 0.0)
    assert np.all(steps <= np.maximum(0.002, 0.004 * EPSILONS[:-1]) * (1.0 + 1e-9))


def reference(seen, unseen, delta, alpha):
    """The last ε before the first that neither test rejects: one after another, by plain counting."""
    scores = prepare(seen, unseen, NULL if unseen is None else None)
    ranks = simultaneous(scores, delta, NESTED * alpha)[0][0]
    ((design, at),) = designs(max(len(seen), 0 if unseen is None else len(unseen)), delta)
    expected = 0.0
    for index, epsilon in enumerate(EPSILONS):
        declared = EPSILONS[index // 8 * 8 + 7]
        if unseen is None:
            places = tested._places(len(seen), NULL, design, declared)
            law = -np.diff([1.0, *worst_tail(epsilon, NULL.log_tail(places), at), 0.0])
            sums = np.ones(1)
            for _ in seen:
                sums = np.convolve(sums, law)
            rejects = sums[sum(int(np.sum(seen >= t)) for t in places) :].sum() <= SHARP * alpha
        else:
            top, bottom = tested._declared_guesses(len(seen), len(unseen), design, declared)
            falling = [x for _, x in sorted([(-v, 1) for v in seen] + [(-v, 0) for v in unseen])]
            wrong = top - sum(falling[:top]) + sum(falling[len(falling) - bottom :])
            law = wrong_at_most(len(seen), len(unseen), top, bottom, epsilon, at)
            rejects = law[wrong] <= SHARP * alpha
        if not (rejects or epsilon < ranks):
            return max(expected, ranks)
        expected = epsilon
    return expected


@pytest.mark.parametrize("deviation", [0.5, 1.0])
def test_the_bound_is_the_last_rejected_value(deviation):
    rng = np.random.default_rng(1)
    seen, unseen = 1.0 + deviation * rng.normal(size=60), rng.normal(size=50)
    value, threshold = fixed_sequence(prepare(seen, null=NULL), 1e-5, 0.05)
    assert value[0] == reference(seen, None, 1e-5, 0.05) > 0.5
    assert math.isnan(threshold[0])
    value, threshold = fixed_sequence(prepare(seen, unseen), 1e-5, 0.05)
    assert value[0] == reference(seen, unseen, 1e-5, 0.05) > 0.2
    assert math.isnan(threshold[0])


@pytest.mark.parametrize("unobserved", [False, True])
def test_no_weak_test_stops_the_sequence(unobserved):
    """Narrow scores, of which a sum of weights made for equal variances shows little: the bound grows with k."""
    means = []
    for count in (100, 1000, 10_000):
        rng = np.random.default_rng(count)
        seen = 0.5 + 0.6 * rng.normal(size=(20, count))
        scores = prepare(seen, rng.normal(size=seen.shape)) if unobserved else prepare(seen, null=NULL)
        means.append(fixed_sequence(scores, 1e-5, 0.05)[0].mean())
        assert sequence(scores, 1e-5, 0.05, 0.0, 1.0).mean() < means[-1]
    assert means[0] < means[1] < means[2]
    assert means[2] > 3.0


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


@pytest.mark.parametrize("count", [30_000, 1_000_000])
def test_many_scores_have_as_many_thresholds_as_few(count):
    rng = np.random.default_rng(3)
    value, _ = fixed_sequence(prepare(0.5 + rng.normal(size=count), null=NULL), 1e-6, 0.05)
    assert 1.2 < value[0] < 2.4


def test_perfect_separation():
    assert fixed_sequence(prepare([1.0], null=NULL).separated, 1e-6, 0.05)[0][0] == math.inf
    # One score that the null cannot reach says nothing at δ = α or more.
    assert fixed_sequence(prepare([1.0], null=NULL).separated, 0.05, 0.05)[0][0] == 0.0
    # From unobserved scores: all 1,000 above the largest of 1,000.
    cap = fixed_sequence(prepare(np.ones(1000), np.zeros(1000)), 1e-6, 0.05)[0][0]
    # At a level, perfect separation of 1,000 and 1,000 has that probability where e^ε is about 2,000/−log(level).
    assert cap == pytest.approx(math.log(2000 / -math.log(SHARP * 0.05)), abs=0.1)


def test_mirrored_scores_have_no_bound():
    # The attack is one-sided: lower scores of canaries that took part are no evidence to it.
    assert fixed_sequence(prepare(np.full(300, -4.0), null=NULL), 1e-6, 0.05)[0][0] == 0.0


def test_nothing_counts_after_the_first_value_that_neither_test_rejects(monkeypatch):
    # The second tests reject these values of ε; the first ones reject up to the value given.
    passing = {0: range(20), 1: range(8, 40), 2: range(24, 50), 3: range(40, 50), 4: range(17)}
    ranks = {0: 0.0, 1: 0.0, 2: EPSILONS[30], 3: EPSILONS[30], 4: 0.0}

    def test(_scores, _design, _at, _alpha):
        def critical(_, epsilon):
            return int(np.searchsorted(EPSILONS, epsilon))

        def evidence(audits, declared):
            block = int(np.searchsorted(EPSILONS, declared)) // 8
            return np.array([max((i for i in passing[a] if i // 8 == block), default=-1) for a in audits])

        return BlockTest(evidence, critical)

    monkeypatch.setattr(tested, "sum_test", test)
    monkeypatch.setattr(tested, "simultaneous", lambda *_: (np.array(list(ranks.values())), None))
    values = fixed_sequence(prepare(np.zeros((5, 4)), null=NULL), 1e-5, 0.05)[0]
    # The last one ends at the first value of a block.
    assert values.tolist() == [EPSILONS[19], 0.0, EPSILONS[49], EPSILONS[30], EPSILONS[16]]


@pytest.mark.parametrize(
    ("size", "delta", "used"), [(50, 1e-6, 1), (1000, 1e-3, 2), (10_000, 1e-3, 3), (10_000, 0.9, 5)]
)
def test_a_larger_delta_has_all_designs_of_smaller_ones(size, delta, used):
    found = designs(size, delta)
    assert len(found) == used
    assert found[-1][1] == delta
    smaller = designs(size, 0.9 * delta)
    assert [design for design, _ in smaller] == [design for design, _ in found][: len(smaller)]
    assert all(one <= other for (_, one), (_, other) in zip(smaller, found, strict=False))


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
@pytest.mark.parametrize("count", [1, 12, 400])
def test_critical_values_are_the_least_of_the_exact_law(tails, alpha, count):
    law = -np.diff([1.0, *tails, 0.0])
    sums = np.ones(1)
    for _ in range(count):
        sums = np.convolve(sums, law)
    upper = np.append(np.cumsum(sums[::-1])[::-1], 0.0)
    expected = int(np.argmax(upper <= alpha))
    assert least_rejecting(np.array(tails), count, alpha) == expected


def test_a_window_of_sums_is_enough():
    """A million scores, whose sums are two million: the transform is of few of them."""
    found = least_rejecting(np.array([0.5, 0.1]), 1_000_000, 0.05)
    deviation = 1000.0 * math.sqrt(0.5 * 0.5 + 0.1 * 0.9 + 2.0 * 0.1 * 0.5)
    assert found == pytest.approx(600_000 + stats.norm.isf(0.05) * deviation, abs=2.0)


@pytest.mark.parametrize("middle", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-4])
def test_each_test_has_level_alpha_at_every_value_of_its_block(middle, alpha):
    """P(T ≥ c) at the worst law, by its exact convolution; for several values of ε, from which a larger c follows."""
    test = sum_test(prepare(np.zeros(40), null=NULL), 1e-3, 2e-3, alpha)
    places = tested._places(40, NULL, 1e-3, middle)
    assert np.all(np.diff(places) >= 0.0)
    found = []
    for epsilon in (0.97 * middle, middle, 1.03 * middle):
        law, sums = -np.diff([1.0, *worst_tail(epsilon, NULL.log_tail(places), 2e-3), 0.0]), np.ones(1)
        for _ in range(40):
            sums = np.convolve(sums, law)
        critical = test.critical(middle, epsilon)
        assert sums[critical:].sum() <= alpha
        # Not much is wasted: one less would be too many.
        assert sums[critical - 1 :].sum() > alpha
        found.append(critical)
    assert found == sorted(found)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1e-3, 0.3]))
def test_critical_numbers_of_wrong_guesses_fall_with_epsilon_and_delta(seed, delta):
    rng = np.random.default_rng(seed)
    count, null_count = rng.integers(1, 60, 2)
    scores = prepare(np.zeros(count), np.zeros(null_count))
    middle = rng.exponential(2.0)

    def critical(epsilon, at, alpha):
        return guess_test(scores, delta, at, alpha).critical(middle, epsilon)

    base = critical(middle, delta, 0.05)
    assert base <= critical(1.1 * middle, delta, 0.05)
    assert base <= critical(middle, 2.0 * delta, 0.05)
    assert base <= critical(middle, delta, 0.04)


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
