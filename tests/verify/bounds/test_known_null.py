import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from canaryproof.verify.bounds import fixed_sequence
from canaryproof.verify.bounds.fixed_sequence import epsilon_sequence, excludes_all, least_rejecting, worst_tail
from canaryproof.verify.bounds.lower_bound import ExactNull, normal_null, prepare

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
    places, critical = fixed_sequence._critical_values_known_null(40, NULL, 1e-3, 0.05, epsilons)
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
    first, second, third, fourth = (float(x) for x in fixed_sequence._hardest(np.array(mu), np.array(epsilon), delta))
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
