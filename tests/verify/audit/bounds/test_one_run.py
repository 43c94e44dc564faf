import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse, special, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.bounds.block_tests import designs
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.guesses import count_wrong, pooled_order
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.bounds.one_run import (
    _number_for_mu,
    blocks,
    curve_p_value,
    declared_number,
    declared_tests,
    excess_gaussian,
    excess_of_curve,
    gaussian_bound,
    gaussian_curve,
    number_for_curve,
    p_value,
    p_value_of_curve,
    right_before_the_first_wrong,
    run_share,
    steinke_bound,
)
from canaryproof.verify.audit.bounds.weights import p_value as weighted_p_value


def rights(scores, top, bottom):
    before = pooled_order(scores.observed, scores.unobserved)[1]
    return top + bottom - count_wrong(before, scores.null_count, (top, bottom))


def printed_p_value(total, number, right, epsilon, delta):
    """Steinke et al., arXiv 2305.08846, Theorem 5.2."""
    law = stats.binom(number, special.expit(epsilon))
    i = np.arange(1, right + 1)
    return law.sf(right - 1) + 2.0 * total * delta * np.max((law.sf(right - i - 1) - law.sf(right - 1)) / i)


@pytest.mark.parametrize(
    ("total", "number", "right", "delta", "printed", "digits", "exact"),
    [
        # Steinke et al., arXiv 2305.08846, Appendix D; the last from its Figure 11, which cuts digits off. Those with
        # δ's exact cost stand beside them in docs/theory/bounds.md.
        (100, 100, 75, 0.0, 0.702, 5e-4, 0.702),
        (100, 100, 75, 1e-4, 0.699, 5e-4, 0.702),
        (1000, 100, 75, 1e-4, 0.673, 5e-4, 0.695),
        (100_000, 1510, 1439, 1e-5, 2.675, 1e-3, 2.803),
    ],
)
def test_printed_values(total, number, right, delta, printed, digits, exact):
    found = optimize.brentq(lambda epsilon: printed_p_value(total, number, right, epsilon, delta) - 0.05, 0.0, 9.0)
    assert found == pytest.approx(printed, abs=digits)
    ours = steinke_bound(total, number, right, delta, 0.05)
    assert round(ours, 3) == exact
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
    for number in range(2, len(pooled) + 1, 2):
        half = number // 2
        high = sorted((x for x, _ in pooled), reverse=True)[half - 1]
        low = sorted(x for x, _ in pooled)[half - 1]
        least = 0
        for edge, sign, wanted in ((high, 1, 1), (low, -1, 0)):
            surely = [took == wanted for x, took in pooled if sign * x > sign * edge]
            ties = sorted(took == wanted for x, took in pooled if x == edge)
            least += sum(surely) + sum(ties[: half - len(surely)])
        assert rights(scores, half, half)[0] == least


@pytest.mark.parametrize("mu", [0.02, 0.3, 1.0, 3.0, 9.0])
@pytest.mark.parametrize("total", [2, 7, 100, 3000])
def test_numbers_are_declared_alike_by_both_recursions(total, mu):
    """The compiled one follows the quantile of its probability, the other computes each anew, for any curve."""
    assert _number_for_mu(total, mu) == number_for_curve(total, gaussian_curve(mu))


@given(st.integers(2, 500), st.floats(1e-3, 20.0))
def test_declared_numbers_of_a_curve_are_even_and_no_more_than_there_are_canaries(total, mu):
    number = number_for_curve(total, gaussian_curve(mu))
    assert number % 2 == 0
    assert 2 <= number <= total


@given(st.integers(2, 10**7), st.floats(0.0, 1.0, exclude_max=True), st.floats(1e-3, 1e4))
def test_declared_numbers_are_even_and_no_more_than_there_are_canaries(total, delta, epsilon):
    number, trace = declared_number(total, delta, epsilon)
    assert trace > 0.0
    assert number % 2 == 0
    assert 2 <= number <= total


@pytest.mark.parametrize(("total", "delta", "epsilon", "number"), [(2, 1e-5, 0.5, 2), (100, 1e-5, 8.0, 100)])
def test_all_canaries_are_guessed_where_fewer_reject_nothing(total, delta, epsilon, number):
    assert declared_number(total, delta, epsilon)[0] == number


@given(st.integers(0, 2**32 - 1))
def test_each_epsilon_below_the_bound_is_rejected_by_its_own_number_of_guesses(seed):
    rng = np.random.default_rng(seed)
    shift, delta = 3.0 * rng.random(), 10.0 ** rng.uniform(-6.0, -1.0)
    scores = prepare(shift + rng.normal(size=rng.integers(1, 90)), rng.normal(size=rng.integers(1, 90)))
    total, bound = scores.count + scores.null_count, METHODS["one-run"].values(scores, delta, 0.05)[0][0]

    runs = [np.sum(scores.observed > scores.unobserved.max()), np.sum(scores.unobserved < scores.observed.min())]

    def rejected(epsilon):
        block = next(block for block in blocks(total) if block[1] >= epsilon)

        def chance(guesses, at):
            right = [int(rights(scores, *pair)[0]) for pair in guesses]
            if len(guesses) == 1:
                return p_value(total, sum(guesses[0]), right[0], epsilon, at)
            wrong = sum(map(sum, guesses)) - sum(right)
            return weighted_p_value(total, tuple(top for top, _ in guesses), wrong, epsilon, block, at)

        return all(
            any(chance(guesses, at) <= 0.05 * share for guesses, share in declared_tests(total, design, block))
            or any(p_value(total, n, n, epsilon, at) <= 0.05 * run_share(total, block[1]) for n in map(int, runs) if n)
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
        shares = [share for _, share in declared_tests(500, 1e-5, (epsilon / 1.1, epsilon))]
        assert min(shares) > 0.0
        assert math.fsum([*shares, *[run_share(500, epsilon)] * 2]) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("deviation", [0.5, 2.0])
def test_scores_that_one_end_tells_apart_have_a_bound(deviation):
    rng = np.random.default_rng(5)
    scores = prepare(rng.normal(0.5, deviation, 1000), rng.normal(size=1000), inclusion="coin")
    # Guesses at both ends find 0.2 and 0.4 in the mean.
    assert METHODS["one-run"].values(scores, 1e-5, 0.05)[0][0] > 1.5


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_guesses_before_the_first_wrong_one_are_those_beyond_all_scores_of_the_other_kind(seen, unseen):
    scores = prepare(np.array(seen, float), np.array(unseen, float))
    before = pooled_order(scores.observed, scores.unobserved)[1]
    high, low = right_before_the_first_wrong(before, len(unseen))
    assert (high[0], low[0]) == (sum(x > max(unseen) for x in seen), sum(x < min(seen) for x in unseen))


@pytest.mark.parametrize(
    ("ones", "zeros", "least"), [((150, 0), (350, 500), 3.3), ((500, 400), (0, 100), 2.9)], ids=["hits", "misses"]
)
def test_scores_of_two_values_have_a_bound(ones, zeros, least):
    """Either no canary that stayed out has a 1, or none that took part has a 0."""
    seen, unseen = (np.repeat([1.0, 0.0], numbers) for numbers in zip(ones, zeros, strict=True))
    assert METHODS["one-run"].values(prepare(seen, unseen, inclusion="coin"), 1e-5, 0.05)[0][0] >= least


def test_no_rule_that_guesses_equal_scores_together_or_not_at_all_is_monotone():
    """Two scores are equal, one within the r highest and one beyond: either choice breaks the order somewhere."""
    found = 0
    for epsilon, r in product((0.5, 1.0, 2.0, 3.0), range(4, 80)):

        def most(number, epsilon=epsilon):
            rejects = [w for w in range(number + 1) if p_value(100, number, number - w, epsilon, 0.0) <= 0.05]
            return max(rejects, default=-1)

        if -1 < most(r - 1) == most(r) - 1 == most(r + 1) - 1:
            found += 1
            # w are wrong among the r highest. Beyond them an observed score rises to the r-th, which is observed, too.
            left_out = r - 1, most(r)
            # Or the r-th, which is unobserved, falls to the next one, which is unobserved, too.
            guessed = r + 1, most(r) + 1
            for number, wrong in (left_out, guessed):
                assert p_value(100, number, number - wrong, epsilon, 0.0) > 0.05
    assert found > 20


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
        # So large a μ is rejected by guesses on all canaries, at all of α.
        mu = gaussian_bound(200, 200, 200, 0.05)
        assert best.value == pytest.approx(float(gaussian_mechanism.epsilon(1e-6, 1.0 / mu)), rel=1e-9)


def test_the_cap_of_the_gaussian_bound_is_what_the_page_says():
    found = [
        METHODS["one-run-gaussian"].bound(prepare(np.ones(n), np.zeros(n), inclusion="coin"), 1e-6, 0.05).cap
        for n in (100, 1000, 10_000)
    ]
    assert found == pytest.approx([10.48, 14.76, 18.73], abs=0.005)


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


# The claim's own curve as the null hypothesis.


def pairs_curve(pairs):
    """The curve of a mechanism that is (ε, δ)-private for some pairs."""
    return lambda right: max(
        max(0.0, math.exp(-e) * (right - d), 1.0 - d - math.exp(e) * (1.0 - right)) for e, d in pairs
    )


def worst_of_all(total, number, right, pairs):
    """The largest P(W ≥ v) of any mechanism: a linear programme over the probabilities of all guesses for all coins."""
    coins = list(product((0, 1), repeat=total))
    answers = [
        dict(zip(chosen, sides, strict=True))
        for chosen in combinations(range(total), number)
        for sides in product((0, 1), repeat=number)
    ]
    size, rows, bounds_of_rows = len(coins) * len(answers), [], []
    place = {(x, a): i for i, (x, a) in enumerate(product(range(len(coins)), range(len(answers))))}
    objective, slacks = np.zeros(size), 0
    for (x, a), i in place.items():
        if sum(coins[x][c] == side for c, side in answers[a].items()) >= right:
            objective[i] = -1.0 / len(coins)
    for (x, first), (y, second) in product(enumerate(coins), repeat=2):
        if sum(i != j for i, j in zip(first, second, strict=True)) != 1:
            continue
        for epsilon, delta in pairs:
            # What each answer has more than e^ε times of; in all at most δ.
            for a in range(len(answers)):
                rows.append({place[x, a]: 1.0, place[y, a]: -math.exp(epsilon), size + slacks + a: -1.0})
                bounds_of_rows.append(0.0)
            rows.append({size + slacks + a: 1.0 for a in range(len(answers))})
            bounds_of_rows.append(delta)
            slacks += len(answers)
    matrix = sparse.lil_matrix((len(rows), size + slacks))
    for i, row in enumerate(rows):
        for j, value in row.items():
            matrix[i, j] = value
    whole = sparse.lil_matrix((len(coins), size + slacks))
    for (x, _), i in place.items():
        whole[x, i] = 1.0
    cost = np.append(objective, np.zeros(slacks))
    found = optimize.linprog(cost, matrix.tocsr(), bounds_of_rows, whole.tocsr(), np.ones(len(coins)), method="highs")
    return -found.fun


def worst_law(total, number, right, pairs):
    """The largest P(W ≥ v) of the laws of W that privacy allows; no mechanism has a larger one."""
    size = number + 1
    rows, limits = [], []
    for k, (epsilon, delta) in enumerate(pairs):
        for u in range(number):
            row = np.zeros(size + len(pairs) * number)
            row[u + 1], row[u], row[size + k * number + u] = u + 1.0, -math.exp(epsilon) * (number - u), -1.0
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(size + len(pairs) * number)
        row[size + k * number : size + (k + 1) * number] = 1.0
        rows.append(row)
        limits.append(total * delta)
    cost, whole = np.zeros(size + len(pairs) * number), np.zeros((1, size + len(pairs) * number))
    cost[right:size], whole[0, :size] = -1.0, 1.0
    return -optimize.linprog(cost, np.array(rows), limits, whole, [1.0], method="highs").fun


CURVES = (
    ((0.0, 0.3), (1.0, 0.05)),
    ((0.5, 0.0),),
    ((0.0, 0.19), (0.5, 0.07), (1.5, 0.005)),
)


@pytest.mark.parametrize("pairs", CURVES)
@pytest.mark.parametrize(("total", "number", "right"), [(2, 2, 2), (2, 2, 1), (3, 2, 2), (3, 3, 3), (3, 3, 2)])
def test_no_mechanism_with_the_curve_has_so_many_right_guesses_more_often(total, number, right, pairs):
    worst = worst_of_all(total, number, right, pairs)
    # The law of W loses nothing beside all mechanisms.
    assert worst_law(total, number, right, pairs) == pytest.approx(worst, abs=1e-6)
    found = p_value_of_curve(total, number, right, pairs_curve(pairs))
    assert worst - 1e-6 <= found <= 1.0
    assert right < number or found < 1.1 * worst


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("total", "number"), [(20, 6), (200, 30), pytest.param(40, 40, marks=pytest.mark.deep)])
def test_no_law_of_a_gaussian_curve_has_so_many_right_guesses_more_often(total, number, mu):
    epsilons = np.linspace(0.0, 4.0 * mu + mu * mu, 30)
    pairs = [(float(e), float(gaussian_mechanism.delta(e, 1.0 / mu))) for e in epsilons]
    for right in range(number // 2, number + 1, 2):
        found = p_value_of_curve(total, number, right, pairs_curve(pairs))
        assert found >= worst_law(total, number, right, pairs) - 1e-6
        # A curve is more than some of its pairs.
        assert p_value_of_curve(total, number, right, gaussian_curve(mu)) <= found * (1.0 + 1e-5)


@given(st.floats(0.05, 4.0), st.integers(2, 30), st.data())
def test_the_p_value_of_a_curve_is_where_its_rejections_end(mu, half, data):
    total, number = 100, 2 * half
    right = data.draw(st.integers(0, number))
    curve = gaussian_curve(mu)
    found = p_value_of_curve(total, number, right, curve)
    assert 0.0 < found <= 1.0
    assert found == 1.0 or excess_of_curve(total, number, right, curve, found * (1.0 + 1e-5)) > 0.0
    assert excess_of_curve(total, number, right, curve, found * (1.0 - 1e-5)) <= 1e-6
    assert p_value_of_curve(total, number, right, gaussian_curve(mu * 1.1)) >= found * (1.0 - 1e-5)
    if right < number:
        assert p_value_of_curve(total, number, right + 1, curve) <= found * (1.0 + 1e-5)


def test_half_of_the_claimed_noise_is_refuted_by_the_claims_curve():
    # 50 of 50 by other keys. The claimed noise itself: at most 5%, which is 10 of 20 with a probability below 1e-7.
    for trace, least, most in ((2.0, 18, 20), (1.0, 0, 9)):
        refuted = 0
        for row in range(20):
            rng = np.random.default_rng((86, row))
            took_part = rng.random(2000) < 0.5
            scores = rng.normal(size=2000) + trace * took_part
            sample = prepare(scores[took_part], scores[~took_part], inclusion="coin")
            refuted += curve_p_value(sample, gaussian_curve(1.0)) <= 0.05
        assert least <= refuted <= most


@pytest.mark.parametrize("trace", [0.7, 3.0])
def test_the_gaussian_bound_falls_as_the_confidence_rises(trace):
    method, scores = METHODS["one-run-gaussian"], gaussian_coins(120, trace, 40, 5)
    alphas = (0.6, 0.3, 0.1, 0.05, 0.02, 0.01, 0.001)
    bounds = np.array([method.values(scores, 1e-5, alpha)[0] for alpha in alphas])
    assert np.all(np.diff(bounds, axis=0) <= 0.0)
    assert np.any(np.diff(bounds, axis=0) < 0.0)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("total", "trace", "target", "error"),
    [(200, 0.5, 0.507, 0.03), (200, 1.0, 1.873, 0.05), (200, 2.0, 4.723, 0.06), (200, 4.0, 8.255, 0.04),
     (2000, 0.5, 1.134, 0.06), (2000, 1.0, 2.705, 0.08), (2000, 2.0, 6.023, 0.12), (2000, 4.0, 11.31, 0.15)],
)  # fmt: skip
def test_the_mean_gaussian_bound_is_that_of_an_earlier_study(total, trace, target, error):
    """Means of a prototype, of 300 and 80 audits, with two standard errors of both."""
    found = METHODS["one-run-gaussian"].values(
        gaussian_coins(total, trace, 600 if total == 200 else 150, 9), 1e-5, 0.05
    )
    assert found[0].mean() >= target - error
