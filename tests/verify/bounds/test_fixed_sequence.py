import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.bounds import fixed_sequence as module
from canaryproof.verify.bounds.fixed_sequence import epsilon_sequence, fixed_sequence, worst_tail
from canaryproof.verify.bounds.scores import discrete_null, normal_null, prepare

NULL = normal_null()


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


def test_tested_values_start_at_zero_and_are_close():
    values = epsilon_sequence()
    assert values[0] == 0.0
    assert values[-1] >= 1e4
    steps = np.diff(values)
    assert np.all(steps > 0.0)
    assert np.all(steps <= np.maximum(0.01, 0.015 * values[:-1]) * (1.0 + 1e-9))


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
    assert module._critical(np.array(tails), count, alpha) == expected


def test_critical_values_beside_unobserved_scores_hold_their_level():
    count, null_count, alpha = 30, 40, 0.05
    epsilons, ranks = np.array([0.3, 1.0, 2.0]), np.array([8.0, 3.0, 1.0])
    critical = module._sampled_critical(epsilons, ranks, count, null_count, 1e-3, alpha)
    for epsilon, rank, c in zip(epsilons, ranks, critical, strict=True):
        law = stats.beta(rank, null_count - rank + 1)

        def tail(s, epsilon=epsilon, law=law):
            return law.expect(lambda b: stats.binom.sf(s - 1, count, worst_tail(epsilon, np.log(b), 1e-3)), epsabs=1e-9)

        assert tail(c) <= alpha
        # Not much is wasted: one less would be too many, or nearly so.
        assert tail(c - 1) > 0.9 * alpha


def test_the_bound_is_the_last_rejected_value():
    seen = 2.0 + np.random.default_rng(1).normal(size=150)
    value, threshold = fixed_sequence(prepare(seen, null=NULL), 1e-5, 0.05)
    expected = 0.0
    done = False
    for block in range(40):
        tests = module._tests(150, NULL, 1e-5, 0.05, block)
        for epsilon, places, critical in zip(tests.epsilons, tests.places, tests.critical, strict=True):
            if sum(np.sum(seen >= t) for t in places) < critical:
                done = True
                break
            expected, last = epsilon, places[0]
        if done:
            break
    assert (value[0], threshold[0]) == (expected, last)
    assert value[0] > 0.5


def test_each_test_has_level_alpha_whatever_the_block():
    """P(T ≥ c) at the worst law, by its exact convolution, for some tests of three blocks."""
    for block in (0, 2, 4):
        tests = module._tests(40, NULL, 1e-3, 0.05, block)
        for j in (1, 30):
            tails = worst_tail(tests.epsilons[j], NULL.log_tail(tests.places[j]), 1e-3)
            law, sums = -np.diff([1.0, *tails, 0.0]), np.ones(1)
            for _ in range(40):
                sums = np.convolve(sums, law)
            assert sums[tests.critical[j] :].sum() <= 0.05


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


def test_more_than_twenty_thousand_scores_have_one_threshold():
    rng = np.random.default_rng(3)
    value, _ = fixed_sequence(prepare(0.5 + rng.normal(size=30_000), null=NULL), 1e-6, 0.05)
    assert module._tests(30_000, NULL, 1e-6, 0.05, 0).places.shape[1] == 1
    assert 1.0 < value[0] < 2.4


def test_perfect_separation():
    assert fixed_sequence(prepare([1.0], null=NULL).separated, 1e-6, 0.05)[0][0] >= 1e4
    # From unobserved scores: all 1,000 above the largest of 1,000.
    cap = fixed_sequence(prepare(np.ones(1000), np.zeros(1000)), 1e-6, 0.05)[0][0]
    assert 6.0 < cap < math.log(1e6)


def test_mirrored_scores_have_no_bound():
    # The attack is one-sided: lower scores of canaries that took part are no evidence to it.
    assert fixed_sequence(prepare(np.full(300, -4.0), null=NULL), 1e-6, 0.05)[0][0] == 0.0


def test_two_thousand_bounds_of_a_thousand_scores_take_a_second():
    scores = prepare(0.25 + np.random.default_rng(4).normal(size=(1000, 1000)), null=NULL)
    fixed_sequence(scores, 1e-6, 0.05)
    begun = time.process_time()
    fixed_sequence(scores, 1e-6, 0.05)
    # Measured: some 50 microseconds each; the promise is 500.
    assert time.process_time() - begun < 0.5


def test_a_statistic_at_its_critical_value_rejects():
    tests = module._tests(100, 100, 1e-5, 0.05, 1)
    j = 10
    hits = int(tests.critical[j])
    seen = np.where(np.arange(100) < hits, 1e3, -1e3)
    expected = 0.0
    for block in range(8):
        for epsilon, critical in zip(
            (some := module._tests(100, 100, 1e-5, 0.05, block)).epsilons, some.critical, strict=True
        ):
            if hits < critical:
                break
            expected = epsilon
        else:
            continue
        break
    assert expected >= tests.epsilons[j]
    assert fixed_sequence(prepare(seen, np.arange(100.0)), 1e-5, 0.05)[0][0] == expected


def test_nothing_counts_after_the_first_test_that_does_not_reject():
    # Five far scores would reject large values of ε, but the smallest is not rejected by scores that are low otherwise.
    seen = np.where(np.arange(100) < 5, 8.0, -3.0)
    scores = prepare(seen, null=NULL)
    far = module._tests(100, NULL, 1e-5, 0.05, 4)
    assert np.any(np.sum(seen[:, np.newaxis, np.newaxis] >= far.places, axis=(0, 2)) >= far.critical)
    assert fixed_sequence(scores, 1e-5, 0.05)[0][0] == 0.0
