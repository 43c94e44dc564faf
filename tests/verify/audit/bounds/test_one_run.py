import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.bounds.block_tests import designs
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.guesses import count_wrong, pooled_order
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.bounds.one_run import (
    declared_number,
    declared_tests,
    ends,
    excess_gaussian,
    gaussian_bound,
    guesses,
    p_value,
    steinke_bound,
)


def rights(scores, top, bottom):
    before = pooled_order(scores.observed, scores.unobserved)[1]
    return top + bottom - count_wrong(before, scores.null_count, (top, bottom))


def printed_p_value(total, number, right, epsilon, delta):
    """Steinke et al., arXiv 2305.08846, Theorem 5.2."""
    law = stats.binom(number, special.expit(epsilon))
    i = np.arange(1, right + 1)
    return law.sf(right - 1) + 2.0 * total * delta * np.max((law.sf(right - i - 1) - law.sf(right - 1)) / i)


@pytest.mark.parametrize(
    ("total", "number", "right", "delta", "printed", "digits"),
    [
        # Steinke et al., arXiv 2305.08846, Appendix D; the last from its Figure 11, which cuts digits off.
        (100, 100, 75, 0.0, 0.702, 5e-4),
        (100, 100, 75, 1e-4, 0.699, 5e-4),
        (1000, 100, 75, 1e-4, 0.673, 5e-4),
        (100_000, 1510, 1439, 1e-5, 2.675, 1e-3),
    ],
)
def test_printed_values(total, number, right, delta, printed, digits):
    found = optimize.brentq(lambda epsilon: printed_p_value(total, number, right, epsilon, delta) - 0.05, 0.0, 9.0)
    assert found == pytest.approx(printed, abs=digits)
    ours = steinke_bound(total, number, right, delta, 0.05)
    assert ours == pytest.approx(found, abs=1e-6) if delta == 0.0 else ours > found


def test_printed_p_value():
    assert p_value(100, 100, 75, math.log(3.0), 0.0) == pytest.approx(0.553, abs=5e-4)


def test_the_printed_theorem_is_exceeded_near_one():
    """All guesses wrong is less likely than it may be at δ = 0, and every other case as much more likely."""
    count, delta = 4, Fraction(1, 100)
    vectors = list(product((0, 1), repeat=count))

    def law(coins):
        wrong = tuple(1 - coin for coin in coins)
        return {v: Fraction(1, 16) + (-15 if v == wrong else 1) * delta / 16 for v in vectors}

    for coins, j in product(vectors, range(count)):
        one, other = law(coins), law(tuple(c ^ (i == j) for i, c in enumerate(coins)))
        assert sum(one.values()) == 1
        assert sum(max(one[v] - other[v], 0) for v in vectors) == delta
    right = sum(law(coins)[v] for coins in vectors for v in vectors if any(map(int.__eq__, coins, v))) / 16
    assert right == Fraction(15, 16) * (1 + delta)
    assert right > printed_p_value(count, count, 1, 0.0, float(delta)) + 0.004
    assert p_value(count, count, 1, 0.0, float(delta)) == pytest.approx(float(right), rel=1e-12)


@pytest.mark.parametrize(("number", "total"), [(1, 1), (3, 7), (8, 8), (20, 50)])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 0.05, 0.4])
def test_p_values_are_the_largest_of_all_private_mechanisms(number, total, epsilon, delta):
    """By linear programming: averaged over orders and signs, a mechanism is a law of W, its guesses at random."""
    factor, u = math.exp(epsilon), np.arange(number)
    # A coin's change from right to wrong and back, where u others are right; what is more than e^ε allows is δ in all.
    right, wrong = np.zeros((2, number, number + 1))
    right[u, u + 1], wrong[u, u] = (u + 1.0) / total, (number - u) / total
    rows = np.concatenate([right - factor * wrong, wrong - factor * right])
    rows = np.concatenate([rows, np.zeros((1, number + 1))])
    excess = np.concatenate([-np.eye(2 * number), np.ones((1, 2 * number))])
    limits = np.append(np.zeros(2 * number), delta)
    whole = np.append(np.ones(number + 1), np.zeros(2 * number))[np.newaxis]
    for v in range(1, number + 1):
        gain = np.zeros(3 * number + 1)
        gain[v : number + 1] = -1.0
        best = optimize.linprog(gain, np.hstack([rows, excess]), limits, whole, [1.0])
        assert p_value(total, number, v, epsilon, delta) == pytest.approx(-best.fun, abs=1e-6)


@given(st.integers(2, 80), st.data())
def test_the_bound_is_where_the_p_value_reaches_alpha(number, data):
    right = data.draw(st.integers(0, number))
    found = steinke_bound(100, number, right, 1e-4, 0.05)
    if found > 0.0:
        assert p_value(100, number, right, found, 1e-4) <= 0.05
    assert p_value(100, number, right, found + 1e-4, 1e-4) > 0.05
    # p-values rise with ε, so that everything below is rejected too.
    curve = [p_value(100, number, right, e, 1e-4) for e in np.linspace(0.0, found, 30)]
    assert np.all(np.diff(curve) >= -1e-12)


def test_all_correct_without_delta_has_a_closed_form():
    assert steinke_bound(16, 16, 16, 0.0, 0.05) == pytest.approx(-math.log(0.05 ** (-1 / 16) - 1), rel=1e-8)


def largest_probability(number, right, mu):
    """P(W ≥ right) of the attack on independent Gaussian scores, which is μ-GDP in every coin: all are guessed."""
    return stats.binom.sf(right - 1, number, special.ndtr(0.5 * mu))


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("number", [10, 100])
def test_a_gaussian_mechanism_is_refuted_no_more_often_than_alpha(number, mu):
    alpha = 0.05
    refuted = [c for c in range(number + 1) if excess_gaussian(number, number, c, mu, alpha) > 0.0]
    assert refuted == list(range(refuted[0], number + 1)) if refuted else True
    if refuted:
        assert largest_probability(number, refuted[0], mu) <= alpha


def test_the_gaussian_recursion_step_by_step():
    total, number, right, mu, alpha = 20, 12, 9, 0.4, 0.05
    p = {right: alpha}
    for i in range(right - 1, -1, -1):
        above = sum(j * q for j, q in p.items()) / total
        beside = sum((number - j) * q for j, q in p.items()) / total
        need = special.ndtr(special.ndtri(min(above, 1.0)) - mu)
        p[i] = max(0.0, (need - beside) * total / (number - i))
    assert excess_gaussian(total, number, right, mu, alpha) == pytest.approx(sum(p.values()) - 1.0, rel=1e-9)


@given(st.integers(1, 60), st.data())
def test_the_gaussian_bound_is_where_the_excess_ends(number, data):
    right = data.draw(st.integers(0, number))
    found = gaussian_bound(60, number, right, 0.05)
    if found > 0.0:
        assert excess_gaussian(60, number, right, found, 0.05) > 0.0
    assert excess_gaussian(60, number, right, found + 1e-4, 0.05) <= 1e-6


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_correct_guesses_are_the_least_of_all_choices_among_equals(seen, unseen):
    scores = prepare(np.array(seen, float), np.array(unseen, float))
    pooled = [(x, 1) for x in seen] + [(x, 0) for x in unseen]
    for number in guesses(len(pooled)):
        if number > len(pooled):
            continue
        half = number // 2
        high = sorted((x for x, _ in pooled), reverse=True)[half - 1]
        low = sorted(x for x, _ in pooled)[half - 1]
        least = 0
        for edge, sign, wanted in ((high, 1, 1), (low, -1, 0)):
            surely = [took == wanted for x, took in pooled if sign * x > sign * edge]
            ties = sorted(took == wanted for x, took in pooled if x == edge)
            least += sum(surely) + sum(ties[: half - len(surely)])
        assert rights(scores, half, half)[0] == least


def test_guesses_are_even_and_no_more_than_there_are_canaries():
    assert guesses(2000) == [2000, 500, 124, 30]
    assert guesses(2) == [2]
    assert guesses(3) == [2]


@given(st.integers(2, 10**7), st.floats(0.0, 1.0, exclude_max=True), st.floats(1e-3, 1e4))
def test_declared_numbers_are_even_and_no_more_than_there_are_canaries(total, delta, epsilon):
    number = declared_number(total, delta, epsilon)
    assert number % 2 == 0
    assert 2 <= number <= total


@pytest.mark.parametrize(("total", "delta", "epsilon", "number"), [(2, 1e-5, 0.5, 2), (100, 1e-5, 8.0, 100)])
def test_all_canaries_are_guessed_where_fewer_reject_nothing(total, delta, epsilon, number):
    assert declared_number(total, delta, epsilon) == number


@given(st.integers(0, 2**32 - 1))
def test_each_epsilon_below_the_bound_is_rejected_by_its_own_number_of_guesses(seed):
    rng = np.random.default_rng(seed)
    shift, delta = 3.0 * rng.random(), 10.0 ** rng.uniform(-6.0, -1.0)
    scores = prepare(shift + rng.normal(size=rng.integers(1, 90)), rng.normal(size=rng.integers(1, 90)))
    total, bound = scores.count + scores.null_count, METHODS["one-run"].values(scores, delta, 0.05)[0][0]

    def rejected(epsilon):
        end = next(end for end in ends(total) if end >= epsilon)
        return all(
            any(
                p_value(total, top + bottom, int(rights(scores, top, bottom)[0]), epsilon, at) <= 0.05 * share
                for top, bottom, share in declared_tests(total, design, end)
            )
            for design, at in designs(total, delta)
        )

    assert all(rejected(epsilon) for epsilon in np.linspace(0.0, bound - 1e-6, 40) if bound > 1e-6)
    assert not rejected(bound + 1e-6)


@pytest.mark.deep(beyond=4)
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0, 2.0])
@pytest.mark.parametrize("delta", [0.0, 0.03])
def test_enumerated_coins_keep_the_level_of_the_whole_sequence(epsilon, delta):
    """P(bound > ε) of randomised response that shows each coin with probability δ, over all labels of ten canaries."""
    m, right = 10, delta + (1.0 - delta) / (1.0 + math.exp(-epsilon))
    for alpha in (0.05, 0.3):
        above = 0.0
        for pattern in product([False, True], repeat=m):
            places = np.arange(m, dtype=np.float64)
            took = np.array(pattern) == (places >= m // 2)
            if took.all() or not took.any():
                # Without canaries of both kinds, every bound counts as above.
                value = math.inf
            else:
                value = METHODS["one-run"].values(prepare(places[took], places[~took]), delta, alpha)[0][0]
            above += math.prod(right if ok else 1.0 - right for ok in pattern) * (value > epsilon + 1e-9)
        assert above <= alpha


def gaussian_coins(total, trace, runs, seed):
    """Audits of a Gaussian mechanism whose coins put half of the canaries in, as one sample."""
    scores = np.random.default_rng(seed).normal(size=(runs, total))
    return prepare(scores[:, : total // 2] + trace, scores[:, total // 2 :], inclusion="coin")


def test_the_shares_of_a_sequence_are_all_of_alpha():
    for epsilon in (0.1, 1.0, 9.0):
        assert math.fsum(share for *_, share in declared_tests(500, 1e-5, epsilon)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("deviation", [0.5, 2.0])
def test_scores_that_one_end_tells_apart_have_a_bound(deviation):
    rng = np.random.default_rng(5)
    scores = prepare(rng.normal(0.5, deviation, 1000), rng.normal(size=1000), inclusion="coin")
    # Guesses at both ends find 0.2 and 0.4 in the mean.
    assert METHODS["one-run"].values(scores, 1e-5, 0.05)[0][0] > 1.5


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(("total", "runs"), [(100, 2000), (1000, 400)])
@pytest.mark.parametrize("epsilon", [2.0, 4.0, 10.0])
def test_the_mean_bound_is_ninety_percent_of_that_of_the_best_number_of_guesses(total, runs, epsilon):
    # Both are from the same audits; the shares are at least 0.96 in many audits.
    scores = gaussian_coins(total, 1.0 / float(gaussian_mechanism.noise_multiplier(epsilon, 1e-5)), runs, 3)
    own = METHODS["one-run"].values(scores, 1e-5, 0.05)[0].mean()
    numbers = {2 * round(0.5 * total**0.5 * 1.15**j) for j in range(20)}
    best = max(
        np.mean([steinke_bound(total, n, int(right), 1e-5, 0.05) for right in rights(scores, n // 2, n // 2)])
        for n in numbers
    )
    assert own >= 0.9 * best


@pytest.mark.parametrize("name", ["one-run", "one-run-gaussian"])
def test_bounds_of_separated_scores(name):
    best = METHODS[name].bound(prepare(np.ones(100), np.zeros(100), inclusion="coin"), 1e-6, 0.05)
    if name == "one-run":
        # All 200 guesses right, at 98% of α.
        assert best.value == pytest.approx(steinke_bound(200, 200, 200, 1e-6, 0.049), rel=1e-12)
        assert best.value == pytest.approx(-math.log(0.049 ** (-1 / 200) - 1), rel=1e-3)
    else:
        mu = max(gaussian_bound(200, n, n, 0.0125) for n in guesses(200))
        assert best.value == pytest.approx(float(gaussian_mechanism.epsilon(1e-6, 1.0 / mu)), rel=1e-9)


def test_enumerated_coins_of_randomised_response_keep_the_bound():
    """P(W ≥ v) of the best attack on ε-DP randomised response, over all coins of six canaries."""
    epsilon, m = 0.8, 6
    right = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    for v in range(m + 1):
        found = sum(
            math.prod(right if ok else 1.0 - right for ok in pattern)
            for pattern in product([False, True], repeat=m)
            if sum(pattern) >= v
        )
        assert found <= p_value(m, m, v, epsilon, 0.0) * (1.0 + 1e-12)
