import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.bounds import gaussian
from canaryproof.verify.audit.bounds.gaussian import epsilon_of_mu, gaussian_dp, normal_scores
from canaryproof.verify.audit.bounds.lower_bound import cosine_null, discrete_null, normal_null, prepare
from canaryproof.verify.audit.bounds.normal_ranks import largest_rejected_mu, least_level


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.3])
def test_epsilon_of_mu_is_the_gaussian_mechanism_s_rounded_down(delta):
    mu = np.array([-1.0, 0.0, 0.1, 1.0, 5.0])
    found = epsilon_of_mu(mu, delta)
    exact = np.array([0.0, 0.0, *gaussian_mechanism.epsilon(delta, 1.0 / mu[2:])])
    assert np.all(found <= exact)
    assert found == pytest.approx(exact, rel=1e-11)


def test_without_delta_any_mu_is_infinite():
    assert epsilon_of_mu(np.array([-0.5, 0.5, math.inf]), 0.0).tolist() == [0.0, math.inf, math.inf]
    assert epsilon_of_mu(np.array([math.inf, math.nan]), 1e-5).tolist() == [math.inf, 0.0]


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.05, 0.5]))
def test_normal_scores_are_those_of_the_mean(seed, alpha):
    seen = 1.0 + np.random.default_rng(seed).normal(size=50)
    value = normal_scores(prepare(seen, null=normal_null()), 1e-5, alpha)[0][0]
    mu = seen.mean() - stats.norm.isf(alpha) / math.sqrt(50)
    expected = float(gaussian_mechanism.epsilon(1e-5, 1.0 / mu)) if mu > 0.0 else 0.0
    assert value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("count", [1000, 1003])
def test_of_many_normal_scores_each_is_the_least_of_a_few(monkeypatch, count):
    scores = prepare(1.0 + np.random.default_rng(3).normal(size=count), null=normal_null())
    every = normal_scores(scores, 1e-5, 0.05)[0][0]
    monkeypatch.setattr(gaussian, "_MOST", 300)
    seen = np.sort(scores.observed[0])
    least = np.repeat(seen[::4], 4)[:count]
    mu = least.mean() - stats.norm.isf(0.05) / math.sqrt(count)
    found = normal_scores(scores, 1e-5, 0.05)[0][0]
    assert found == pytest.approx(float(gaussian_mechanism.epsilon(1e-5, 1.0 / mu)), rel=1e-9)
    assert 0.97 * every < found < every


def test_normal_scores_of_cosines_in_few_dimensions():
    rng = np.random.default_rng(1)
    dim = 30
    seen = 0.3 + 0.1 * rng.normal(size=40)
    law = stats.beta(14.5, 14.5, loc=-1.0, scale=2.0)
    mu = np.mean(-stats.norm.ppf(law.sf(seen))) - stats.norm.isf(0.05) / math.sqrt(40)
    value = normal_scores(prepare(seen, null=cosine_null(dim)), 1e-5, 0.05)[0][0]
    assert value == pytest.approx(float(gaussian_mechanism.epsilon(1e-5, 1.0 / mu)), rel=1e-8)


def test_a_score_at_the_lowest_place_of_a_discrete_null_takes_the_bound_away():
    null = discrete_null([0.0, 1.0], [0.5, 0.5])
    assert normal_scores(prepare([0.0, 1.0, 1.0], null=null), 1e-5, 0.05)[0][0] == 0.0
    # Beside a score that the null never takes there is no mean at all.
    impossible = discrete_null([0.0, 1.0, 2.0], [0.5, 0.5, 0.0])
    assert normal_scores(prepare([0.0, 2.0], null=impossible), 1e-5, 0.05)[0][0] == 0.0


def test_nasr_s_bound_by_hand():
    seen = 2.0 + np.random.default_rng(2).normal(size=100)
    best = -math.inf
    for tail in (0.5, 0.2, 0.05, 0.005):
        missed = np.sum(seen < stats.norm.isf(tail))
        fnr = stats.beta.ppf(1.0 - 0.05 / 4, missed + 1, 100 - missed) if missed < 100 else 1.0
        best = max(best, stats.norm.isf(tail) - stats.norm.ppf(fnr))
    value = gaussian_dp(prepare(seen, null=normal_null()), 1e-5, 0.05)[0][0]
    assert value == pytest.approx(float(gaussian_mechanism.epsilon(1e-5, 1.0 / best)), rel=1e-9)


def test_unobserved_scores_have_precedence_tests_at_every_level():
    """At a level where the rank test rejects nothing they have all of it.

    At each declared rank r, P(more observed above) = ∫ P(Bin(k, Φ(Φ⁻¹(v) + μ)) ≥ n) over the r-th smallest of k₀.
    """
    rng = np.random.default_rng(3)
    seen, unseen = 2.0 + rng.normal(size=100), rng.normal(size=200)
    best = -math.inf
    for rank in (100, 40, 10, 1):
        hits = int(np.sum(seen > np.sort(unseen)[-rank]))
        z = np.linspace(-9.0, 5.0, 20_001)
        density = stats.beta.pdf(stats.norm.cdf(z), rank, 201 - rank) * stats.norm.pdf(z)

        def excess(mu, z=z, density=density, hits=hits):
            tails = stats.binom.sf(hits - 1, 100, stats.norm.cdf(z + mu))
            return integrate.trapezoid(tails * density, z) - 1e-4 / 4

        best = max(best, optimize.brentq(excess, -5.0, 5.0))
    value = gaussian_dp(prepare(seen, unseen), 1e-5, 1e-4)[0][0]
    expected = float(gaussian_mechanism.epsilon(1e-5, 1.0 / best))
    assert 0.98 * expected < value <= expected


def test_what_is_left_of_the_level_is_for_the_rank_test():
    rng = np.random.default_rng(3)
    scores = prepare(2.0 + rng.normal(size=30), rng.normal(size=20))
    of_precedence = least_level(30, 20)
    mu = largest_rejected_mu(scores, 0.05 - of_precedence)
    value = gaussian_dp(scores, 1e-5, 0.05)[0][0]
    assert value == epsilon_of_mu(mu, 1e-5)[0] > gaussian_dp(scores, 1e-5, of_precedence)[0][0]
