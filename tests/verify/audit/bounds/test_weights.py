import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special

from canaryproof.verify.audit.bounds.block_tests import designs
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.bounds.one_run import blocks, declared_number, declared_tests
from canaryproof.verify.audit.bounds.weights import (
    declared_sizes,
    law_of_wrong,
    p_value,
    share_of_delta,
    weighted_bound,
)


def weights_of(sizes):
    """The weight of each guess, from the high end and then from the low one."""
    return [sum(i < size for size in sizes) for i in range(sizes[0])] * 2


def worst_of_all(total, weights, most, epsilon, delta):
    """The largest P(wrong weight ≤ most) of all mechanisms: a linear programme over all guesses for all coins."""
    coins = list(product((0, 1), repeat=total))
    number = len(weights)
    answers = list(product(permutations(range(total), number), product((0, 1), repeat=number)))
    size = len(coins) * len(answers)
    gain, rows, limits, slacks = np.zeros(size), [], [], 0
    for x, coin in enumerate(coins):
        for a, (chosen, sides) in enumerate(answers):
            wrong = sum(w for w, c, side in zip(weights, chosen, sides, strict=True) if coin[c] != side)
            gain[x * len(answers) + a] = -(wrong <= most) / len(coins)
    pairs = [(x, x ^ (1 << c)) for x in range(len(coins)) for c in range(total)]
    columns = size + len(pairs) * len(answers)
    for x, y in pairs:
        whole = np.zeros(columns)
        for a in range(len(answers)):
            row = np.zeros(columns)
            row[x * len(answers) + a], row[y * len(answers) + a] = 1.0, -math.exp(epsilon)
            row[size + slacks] = -1.0
            whole[size + slacks] = 1.0
            slacks += 1
            rows.append(row)
            limits.append(0.0)
        rows.append(whole)
        limits.append(delta)
    sums = np.zeros((len(coins), columns))
    for x in range(len(coins)):
        sums[x, x * len(answers) : (x + 1) * len(answers)] = 1.0
    cost = np.append(gain, np.zeros(columns - size))
    return -optimize.linprog(cost, np.array(rows), limits, sums, np.ones(len(coins)), method="highs").fun


def worst_patterns(total, weights, most, epsilon, delta):
    """The same of all laws of the right guesses that privacy allows; no mechanism has a larger one."""
    number = len(weights)
    patterns = list(product((0, 1), repeat=number))
    place = {pattern: i for i, pattern in enumerate(patterns)}
    turned = [(d, j) for d in patterns for j in range(number) if not d[j]]
    rows = np.zeros((len(turned) + 1, len(patterns) + len(turned)))
    for i, (d, j) in enumerate(turned):
        rows[i, place[(*d[:j], 1, *d[j + 1 :])]], rows[i, place[d]] = 1.0, -math.exp(epsilon)
        rows[i, len(patterns) + i] = -1.0
    rows[-1, len(patterns) :] = 1.0
    limits = np.append(np.zeros(len(turned)), total * delta)
    gain, whole = np.zeros(rows.shape[1]), np.zeros((1, rows.shape[1]))
    whole[0, : len(patterns)] = 1.0
    for pattern, i in place.items():
        gain[i] = -(sum(w for w, right in zip(weights, pattern, strict=True) if not right) <= most)
    return -optimize.linprog(gain, rows, limits, whole, [1.0], method="highs").fun


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize("most", [0, 1, 2])
def test_no_mechanism_has_so_little_wrong_weight_more_often(most, epsilon):
    """Two guesses on three canaries, one at either end, by all mechanisms and by all laws of right guesses."""
    delta, sizes = 0.01, (1, 1)
    worst = worst_of_all(3, weights_of(sizes), most, epsilon, delta)
    assert worst_patterns(3, weights_of(sizes), most, epsilon, delta) == pytest.approx(worst, abs=1e-7)
    assert p_value(3, sizes, most, epsilon, (epsilon, epsilon), delta) >= worst - 1e-9


@pytest.mark.parametrize("sizes", [(2, 1), (2, 1, 1), pytest.param((3, 2, 1), marks=pytest.mark.deep), (2, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_no_law_that_privacy_allows_has_so_little_wrong_weight_more_often(sizes, epsilon):
    total, delta = 2 * sizes[0] + 1, 0.004
    for most in range(2 * sum(sizes)):
        worst = worst_patterns(total, weights_of(sizes), most, epsilon, delta)
        found = p_value(total, sizes, most, epsilon, (epsilon, epsilon), delta)
        assert found >= worst - 1e-9
        without = p_value(total, sizes, most, epsilon, (epsilon, epsilon), 0.0)
        assert without == pytest.approx(worst_patterns(total, weights_of(sizes), most, epsilon, 0.0), abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), pytest.param((3, 1), marks=pytest.mark.deep)])
def test_the_share_of_delta_is_at_least_every_guess_s_own(sizes, epsilon):
    """By enumeration: the chance that the others' weight lies where a guess decides, for all that are right."""
    weights, right, points = weights_of(sizes), special.expit(epsilon), 60
    largest = 0.0
    for j in (0, len(weights) // 2 - 1):
        others = weights[:j] + weights[j + 1 :]
        for pattern in product((False, True), repeat=len(others)):
            chances = []
            for i in range(points):
                unrevealed = (i + 0.5) / points
                law = np.ones(1)
                for weight, is_right in zip(others, pattern, strict=True):
                    fresh = unrevealed ** math.sqrt(weight / weights[j])
                    rate = fresh * right + (1.0 - fresh) * is_right
                    law = np.convolve(law, [1.0 - rate, *[0.0] * (weight - 1), rate])
                chances.append(np.convolve(law, np.ones(weights[j])))
            largest = max(largest, float(np.mean(chances, axis=0).max()))
    assert largest - 2e-3 <= share_of_delta(sizes, epsilon) <= 1.0


@pytest.mark.parametrize(("sizes", "epsilon"), [((5, 3, 1), 0.3), ((40, 22, 22, 3), 2.0), ((400, 250, 100, 4), 0.1)])
def test_the_law_of_wrong_weights_is_that_of_sums(sizes, epsilon):
    law, wrong = np.ones(1), special.expit(-epsilon)
    for weight in weights_of(sizes):
        law = np.convolve(law, [1.0 - wrong, *[0.0] * (weight - 1), wrong])
    first, found = law_of_wrong(sizes, epsilon)
    assert found == pytest.approx(np.cumsum(law)[first : first + len(found)], abs=1e-12)
    assert np.sum(law[:first]) < 1e-13


@given(st.floats(0.0, 1.0), st.integers(0, 200), st.sampled_from([0.0, 1e-6, 1e-4]))
def test_a_weighted_bound_is_where_the_p_value_reaches_alpha(place, wrong, delta):
    total, sizes, block = 200, (40, 25, 12, 4), blocks(200)[round(30 * place)]
    found = weighted_bound(total, sizes, wrong, block, delta, 0.05)
    assert found == 0.0 or block[0] <= found <= block[1]
    if found > 0.0:
        assert p_value(total, sizes, wrong, found, block, delta) <= 0.05
    if found < block[1]:
        assert p_value(total, sizes, wrong, max(found, block[0]) + 1e-6, block, delta) > 0.05


@given(st.integers(2, 2000), st.sampled_from([0.0, 1e-5, 1e-3, 0.1]), st.integers(0, 60))
def test_declared_sizes_are_nested_and_no_more_than_there_are_canaries(total, delta, place):
    block = blocks(total)[place]
    number, trace = declared_number(total, delta, block[1])
    if math.isfinite(trace):
        sizes = declared_sizes(total, number, trace, delta, block, 0.04)
        assert sizes == (number // 2,) or 1 <= sizes[-1] <= sizes[0] <= total // 2
        assert list(sizes) == sorted(sizes, reverse=True)


def test_equal_weights_are_declared_where_delta_costs_most():
    """Of all blocks up to 4."""

    def share_of_equal(delta):
        tests = [declared_tests(2000, delta, block)[0][0] for block in blocks(2000)[:38:6]]
        return np.mean([len(guesses) == 1 for guesses in tests])

    assert share_of_equal(1e-5) == 0.0
    assert share_of_equal(1e-3) == 1.0


@pytest.mark.parametrize("trace", [pytest.param(0.7, marks=pytest.mark.deep), 2.0])
def test_the_bound_falls_as_the_confidence_and_delta_rise(trace):
    rng = np.random.default_rng(8)
    scores = prepare(rng.normal(size=(8, 40)) + trace, rng.normal(size=(8, 40)), inclusion="coin")
    alphas, deltas = (0.6, 0.3, 0.05, 0.01), (0.0, 1e-5, 2e-3, 3e-2)
    for bounds in (
        np.array([METHODS["one-run"].values(scores, 1e-5, alpha)[0] for alpha in alphas]),
        np.array([METHODS["one-run"].values(scores, delta, 0.05)[0] for delta in deltas]),
    ):
        assert np.all(np.diff(bounds, axis=0) <= 0.0)
        assert np.any(np.diff(bounds, axis=0) < 0.0)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("count", "trace", "runs", "least"),
    [(100, 0.5, 600, 0.375), (100, 1.0, 600, 1.20), (100, 2.0, 600, 2.61), (100, 4.0, 300, 3.91),
     (1000, 0.5, 150, 0.82), (1000, 1.0, 150, 1.96), (1000, 2.0, 100, 3.80), (1000, 4.0, 60, 5.86)],
)  # fmt: skip
def test_the_mean_bound_has_what_weights_gain(count, trace, runs, least):
    """Means of a prototype less two standard errors of these audits, or what equal weights have with them if larger."""
    scores = np.random.default_rng(9).normal(size=(runs, 2 * count))
    sample = prepare(scores[:, :count] + trace, scores[:, count:], inclusion="coin")
    assert METHODS["one-run"].values(sample, 1e-5, 0.05)[0].mean() >= least


def test_each_design_of_delta_has_weights_of_its_own():
    tests = {declared_tests(200, design, blocks(200)[5])[0][0] for design, _ in designs(200, 0.02)}
    assert len(tests) > 1
