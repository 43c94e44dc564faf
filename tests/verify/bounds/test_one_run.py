import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.one_run import (
    correct,
    excess_gaussian,
    gaussian_bound,
    guesses,
    p_value,
    steinke_bound,
)
from canaryproof.verify.bounds.scores import prepare


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
    assert steinke_bound(total, number, right, delta, 0.05) == pytest.approx(printed, abs=digits)


def test_printed_p_value():
    assert p_value(100, 100, 75, math.log(3.0), 0.0) == pytest.approx(0.553, abs=5e-4)


@given(st.integers(1, 60), st.data(), st.sampled_from([0.0, 1e-5, 1e-2]))
def test_p_values_by_a_plain_sum(number, data, delta):
    right = data.draw(st.integers(0, number))
    epsilon = data.draw(st.floats(0.0, 5.0))
    law = stats.binom(number, 1.0 / (1.0 + math.exp(-epsilon)))
    beta = sum(law.pmf(range(right, number + 1)))
    slopes = [sum(law.pmf(range(max(0, right - i), right))) / i for i in range(1, number + 1)]
    expected = min(1.0, beta + 2.0 * 80 * delta * max(slopes))
    assert p_value(80, number, right, epsilon, delta) == pytest.approx(expected, rel=1e-9, abs=1e-14)


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
        assert correct(scores, number)[0] == least


def test_guesses_are_even_and_no_more_than_there_are_canaries():
    assert guesses(2000) == [2000, 500, 124, 30]
    assert guesses(2) == [2]
    assert guesses(3) == [2]


@pytest.mark.parametrize("name", ["one-run", "one-run-gaussian"])
def test_bounds_of_separated_and_of_equal_scores(name):
    best = METHODS[name].bound(prepare(np.ones(100), np.zeros(100), inclusion="coin"), 1e-6, 0.05)
    if name == "one-run":
        # All 200 guesses right, at a quarter of α.
        assert best.value == pytest.approx(steinke_bound(200, 200, 200, 1e-6, 0.0125), rel=1e-12)
        assert best.value == pytest.approx(-math.log(0.0125 ** (-1 / 200) - 1), rel=1e-3)
    else:
        mu = max(gaussian_bound(200, n, n, 0.0125) for n in guesses(200))
        assert best.value == pytest.approx(float(gaussian_mechanism.epsilon(1e-6, 1.0 / mu)), rel=1e-9)
    assert best.value == best.cap
    assert METHODS[name].bound(prepare(np.ones(100), np.ones(100)), 1e-6, 0.05).value == 0.0


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


def test_both_need_unobserved_scores():
    from canaryproof.verify.bounds.scores import normal_null

    for name in ("one-run", "one-run-gaussian", "canife"):
        with pytest.raises(ValueError, match=f"{name} needs unobserved scores"):
            METHODS[name].values(prepare([1.0], null=normal_null()), 1e-5, 0.05)
