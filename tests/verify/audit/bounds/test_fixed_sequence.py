import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from canaryproof.verify.audit.bounds import fixed_sequence as tested
from canaryproof.verify.audit.bounds.block_tests import NESTED, SHARP, BlockTest, designs
from canaryproof.verify.audit.bounds.fixed_sequence import fixed_sequence, least_rejecting, sequence, sum_test
from canaryproof.verify.audit.bounds.guesses import declared_guesses, wrong_at_most
from canaryproof.verify.audit.bounds.lower_bound import discrete_null, normal_null, prepare
from canaryproof.verify.audit.bounds.precedence import EPSILONS, worst_tail
from canaryproof.verify.audit.bounds.thresholds import simultaneous

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
            places = np.sort(NULL.quantile(tested.sum_design(len(seen), design, declared)))
            law = -np.diff([1.0, *worst_tail(epsilon, NULL.log_tail(places), at), 0.0])
            sums = np.ones(1)
            for _ in seen:
                sums = np.convolve(sums, law)
            rejects = sums[sum(int(np.sum(seen >= t)) for t in places) :].sum() <= SHARP * alpha
        else:
            top, bottom = declared_guesses(len(seen), len(unseen), design, declared)
            falling = [x for _, x in sorted([(-v, 1) for v in seen] + [(-v, 0) for v in unseen])]
            wrong = top - sum(falling[:top]) + sum(falling[len(falling) - bottom :])
            law = wrong_at_most(len(seen), len(unseen), top, bottom, epsilon, at)
            rejects = law[wrong] <= SHARP * alpha
        if not (rejects or epsilon < ranks):
            return max(expected, ranks)
        expected = epsilon
    return expected


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize("deviation", [0.5, 1.0])
def test_the_bound_is_the_last_rejected_value(deviation):
    rng = np.random.default_rng(1)
    seen, unseen = 1.0 + deviation * rng.normal(size=60), rng.normal(size=50)
    value, threshold = fixed_sequence(prepare(seen, null=NULL), 1e-5, 0.05)
    assert value[0] == reference(seen, None, 1e-5, 0.05) > 0.5
    assert math.isnan(threshold[0])
    value = sequence(prepare(seen, unseen), 1e-5, 0.05, NESTED, SHARP)
    assert value[0] == reference(seen, unseen, 1e-5, 0.05) > 0.2


@pytest.mark.deep(beyond=1)
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
    assert fixed_sequence(prepare([1.0], null=NULL).perfect_separation, 1e-6, 0.05)[0][0] == math.inf
    # One score that the null cannot reach says nothing at δ = α or more.
    assert fixed_sequence(prepare([1.0], null=NULL).perfect_separation, 0.05, 0.05)[0][0] == 0.0
    # From unobserved scores: all 1,000 above the largest of 1,000.
    cap = fixed_sequence(prepare(np.ones(1000), np.zeros(1000)), 1e-6, 0.05)[0][0]
    # Perfect separation of 1,000 and 1,000 has the probability α where e^ε is about 2,000/−log(α): all of α serves it.
    assert cap == pytest.approx(math.log(2000 / -math.log(0.05)), abs=0.03)


def test_nothing_counts_after_the_first_value_that_neither_test_rejects(monkeypatch):
    # The second tests reject these values of ε; the first ones reject up to the value given.
    passing = {0: range(20), 1: range(8, 40), 2: range(24, 50), 3: range(40, 50), 4: range(17)}
    ranks = {0: 0.0, 1: 0.0, 2: EPSILONS[30], 3: EPSILONS[30], 4: 0.0}

    def test(_scores, _design, _at, _alpha):
        def rejects(_, epsilon, value):
            return value >= np.searchsorted(EPSILONS, epsilon)

        def evidence(audits, declared):
            block = int(np.searchsorted(EPSILONS, declared)) // 8
            return np.array([max((i for i in passing[a] if i // 8 == block), default=-1) for a in audits])

        return BlockTest(evidence, rejects)

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


@pytest.mark.deep(beyond=4)
@pytest.mark.parametrize("middle", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-4])
def test_each_test_has_level_alpha_at_every_value_of_its_block(middle, alpha):
    """P(T ≥ c) at the worst law, by its exact convolution; for several values of ε, from which a larger c follows."""
    test = sum_test(prepare(np.zeros(40), null=NULL), 1e-3, 2e-3, alpha)
    places = np.sort(NULL.quantile(tested.sum_design(40, 1e-3, middle)))
    assert np.all(np.diff(places) >= 0.0)
    found = []
    for epsilon in (0.97 * middle, middle, 1.03 * middle):
        law, sums = -np.diff([1.0, *worst_tail(epsilon, NULL.log_tail(places), 2e-3), 0.0]), np.ones(1)
        for _ in range(40):
            sums = np.convolve(sums, law)
        critical = next(value for value in range(len(sums) + 1) if test.are_rejected(middle, epsilon, value))
        assert sums[critical:].sum() <= alpha
        # Not much is wasted: one less would be too many.
        assert sums[critical - 1 :].sum() > alpha
        found.append(critical)
    assert found == sorted(found)


@pytest.mark.parametrize(("mu", "epsilon", "delta"), [(1.0, 0.5, 1e-5), (0.3, 0.1, 1e-2), (3.0, 6.0, 1e-6)])
def test_hardest_law_is_private_and_a_law(mu, epsilon, delta):
    first, second, third, fourth = (float(x) for x in tested.hardest_law(np.array(mu), np.array(epsilon), delta))
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


@pytest.mark.deep(every=2)
@pytest.mark.parametrize("shift", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("count", [100, 1000])
def test_a_sum_of_weights_finds_more_than_declared_ranks(count, shift):
    # Of normal scores that lie where they are expected.
    scores = prepare(special.ndtri((np.arange(count) + 0.5) / count) + shift, None, normal_null())
    alone = sequence(scores, 1e-5, 0.05, nested=0.0, sharp=1.0)
    assert alone > simultaneous(scores, 1e-5, 0.05)[0] + 0.15
