import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.bounds.any_dependence import largest_score, posterior_tail, pure_dp
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.fixed_sequence import fixed_sequence
from canaryproof.verify.audit.bounds.lower_bound import cosine_null, normal_null, prepare
from canaryproof.verify.papers.suites.bounds_dependence import MECHANISMS


def largest_probability(count, hits, tail, epsilon, delta):
    """The largest P(N ≥ n) of all mechanisms with k canaries that all take part, by linear programming.

    A canary's direction is hit if the output's region, which has the probability u for a direction that the output does
    not know, holds it. Averaged over canaries and over directions inside and outside of regions, a mechanism is the law
    p_s of the number of hits on the s canaries that take part, s = 0, …, k, and others are hit independently with
    probability u.
    """
    place = {(s, h): i for i, (s, h) in enumerate((s, h) for s in range(count + 1) for h in range(s + 1))}
    rows, limits, size = [], [], len(place)
    for s in range(1, count + 1):
        # One canary is hit or missed, and h others are hit: the probability with it, and without it.
        outcomes = [(((s, h + 1), (h + 1) / s), ((s - 1, h), tail)) for h in range(s)]
        outcomes += [(((s, h), (s - h) / s), ((s - 1, h), 1.0 - tail)) for h in range(s)]
        for pairs in (outcomes, [pair[::-1] for pair in outcomes]):
            slacks = range(size, size + len(outcomes))
            for ((one, p), (other, q)), slack in zip(pairs, slacks, strict=True):
                rows.append({place[one]: p, place[other]: -math.exp(epsilon) * q, slack: -1.0})
                limits.append(0.0)
            rows.append(dict.fromkeys(slacks, 1.0))
            limits.append(delta)
            size += len(outcomes)
    matrix, whole = np.zeros((len(rows), size)), np.zeros((count + 1, size))
    for row, entries in zip(matrix, rows, strict=True):
        row[list(entries)] = list(entries.values())
    for (s, _), i in place.items():
        whole[s, i] = 1.0
    gain = np.zeros(size)
    gain[[place[count, h] for h in range(hits, count + 1)]] = -1.0
    return -optimize.linprog(gain, matrix, limits, whole, np.ones(count + 1), method="highs").fun


CASES = [(1, 0.1, 0.5, 0.0), (2, 0.1, 1.0, 0.0), (3, 0.02, 2.0, 1e-2), (4, 0.3, 0.5, 1e-3), (6, 0.01, 3.0, 0.0)]


@pytest.mark.parametrize(("count", "tail", "epsilon", "delta"), CASES)
def test_no_mechanism_has_so_many_hits_more_often(count, tail, epsilon, delta):
    for hits in range(1, count + 1):
        worst = largest_probability(count, hits, tail, epsilon, delta)
        markov = count * (math.exp(epsilon) * tail + delta) / hits
        assert worst <= min(markov, 1.0) + 1e-9
        if delta == 0.0:
            rate = float(posterior_tail(2.0 * epsilon, np.log(tail)))
            assert worst <= stats.binom.sf(hits - 1, count, rate) + 1e-9
    # One canary reaches what privacy allows.
    assert count > 1 or worst == pytest.approx(markov)


def test_independent_scores_are_not_the_worst():
    """The law that the default takes for the worst is exceeded where scores depend on each other."""
    count, tail, epsilon = 6, 0.5, 1.0
    rate = min(math.exp(epsilon) * tail, 1.0 - math.exp(-epsilon) * (1.0 - tail))
    assert largest_probability(count, count, tail, epsilon, 0.0) > 1.1 * stats.binom.sf(count - 1, count, rate)


def test_the_largest_score_has_a_closed_form():
    scores = prepare([0.0, 1.0, 4.0], null=normal_null())
    (value,), (threshold,) = largest_score(scores, 1e-5, 0.05)
    assert value == pytest.approx(math.log((0.05 / 3 - 1e-5) / stats.norm.sf(4.0)))
    assert threshold == 4.0


def test_where_many_may_be_shown_a_lower_rank_counts():
    scores = prepare(np.linspace(-2.0, 9.0, 1000), null=normal_null())
    (value,), (threshold,) = largest_score(scores, 1e-3, 0.05)
    # 40 of 1,000 scores beyond the rank's have twice δ at 5%.
    assert threshold == scores.observed[0, -40]
    assert value == pytest.approx(math.log(1e-3 / stats.norm.sf(threshold)))
    assert largest_score(scores, 0.03, 0.05)[0] == [0.0]


def test_pure_privacy_is_never_less_than_half_of_the_default():
    seen = np.random.default_rng(0).normal([[0.3], [1.0], [3.0]], 1.0, (3, 200))
    scores = prepare(seen, null=normal_null())
    default, pure = (bound(scores, 0.0, 0.05)[0] for bound in (fixed_sequence, pure_dp))
    assert np.all(pure >= 0.5 * default)
    assert np.all(pure <= default)
    assert pure_dp(scores, 1e-9, 0.05)[0].tolist() == [0.0] * 3


def test_what_was_before_is_a_little_likelier_given_the_output():
    tails = posterior_tail(1.0, np.log([1e-300, 0.25, 1.0]))
    assert tails == pytest.approx([math.e * 1e-300, math.e * 0.25 / (math.e * 0.25 + 0.75), 1.0])


@pytest.mark.parametrize(("null", "known"), [(cosine_null(1000), "proven"), (normal_null(), "asymptotic")])
def test_pure_privacy_is_proven_where_directions_are_independent_of_all_else(null, known):
    scores = prepare(np.linspace(-0.1, 0.1, 9), null=null)
    assert METHODS["pure-dp"].coverage(scores) == known
    assert METHODS["largest-score"].coverage(scores) == "proven"


def test_a_claim_s_own_curve_refutes_a_true_claim_of_one_run():
    """A test that is right for independent scores refutes a true claim in 83% of runs, not in 5%."""
    count, runs = 1000, 300
    (two_states,) = (each for each in MECHANISMS if each.name == "two states")
    rng = np.random.default_rng(86)
    scores = np.concatenate([two_states.draw(rng, np.ones((50, count), bool)) for _ in range(runs // 50)])
    # If scores were independent, (1, 0)-privacy would leave at most this share of positive ones.
    critical = stats.binom.isf(0.05, count, 1.0 - math.exp(-1.0) / 2.0)
    refuted = int(((scores > 0.0).sum(axis=1) > critical).sum())
    first = (1.0 - math.exp(-1.0)) * math.cosh(1.0) / (math.cosh(1.0) - math.exp(-1.0))
    assert first == pytest.approx(0.83, abs=0.005)
    # It is refuted in the first state, and hardly ever in the second. Below 70% of runs, this fails.
    assert stats.binomtest(refuted, runs, first).pvalue > 1e-6


def test_the_curve_adds_nothing_to_the_largest_score():
    share = 0.05 / 1000
    by_curve = 1.0 - special.ndtri(share)
    epsilon = float(gaussian_mechanism.epsilon(1e-5, 1.0))
    by_bound = -special.ndtri((share - 1e-5) / math.exp(epsilon))
    assert (by_curve, by_bound) == (pytest.approx(4.8906, abs=5e-5), pytest.approx(4.8907, abs=5e-5))
    assert 1.0 - special.ndtr(by_bound - 2.0) ** 1000 == pytest.approx(0.85, abs=0.005)
