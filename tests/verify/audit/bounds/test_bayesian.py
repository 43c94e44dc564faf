import math
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.audit.bounds import bayesian
from canaryproof.verify.audit.bounds.bayesian import Rate, allowed_range
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import normal_null, prepare
from canaryproof.verify.audit.bounds.thresholds import split_counts


def epsilon(fnr, fpr, delta):
    """Least ε that allows a pair of rates: Equation (1) for the attack and for the one with its guesses turned over."""
    terms = [
        (1.0 - delta - one) / other for a, b in ((fnr, fpr), (1.0 - fnr, 1.0 - fpr)) for one, other in ((a, b), (b, a))
    ]
    return max(0.0, *(math.log(term) if term > 0.0 else 0.0 for term in terms))


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.sampled_from([0.0, 1e-5, 0.1]))
def test_the_region_is_where_epsilon_is_small_enough(fnr, fpr, delta):
    least = epsilon(fnr, fpr, delta)
    low, high = allowed_range(np.array(fnr), least + 1e-9, delta)
    assert low <= fpr + 1e-9
    assert fpr <= high + 1e-9
    if least > 1e-6:
        low, high = allowed_range(np.array(fnr), 0.999 * least, delta)
        assert not low <= fpr <= high


def twin(fnr, fpr, least, delta):
    """P(ε > least) by mpmath, from one rate's density and the range that privacy leaves to the other."""
    with mpmath.workdps(20):
        least, delta = mpmath.mpf(least), mpmath.mpf(delta)
        (a, b), (c, d) = fnr.parameters, fpr.parameters
        up, kink = mpmath.exp(least), (1 - delta) / (1 + mpmath.exp(least))
        mean, deviation = a / (a + b), mpmath.sqrt(a * b / (a + b + 1)) / (a + b)
        edges = [0, delta, kink, 1 - kink, 1 - delta, 1, *(kink * j / 8 for j in range(8))]
        edges += [1 - kink * j / 8 for j in range(8)] + [
            mean + j * deviation for j in (-10, -6, -3, -1, 0, 1, 3, 6, 10)
        ]
        edges = sorted({mpmath.mpf(edge) for edge in edges if 0 <= edge <= 1})

        def outside(rate):
            low = max(mpmath.mpf(0), 1 - delta - up * rate, (1 - delta - rate) / up)
            high = min(mpmath.mpf(1), delta + up * (1 - rate), 1 + (delta - rate) / up)
            below, above = (mpmath.betainc(c, d, *ends, regularized=True) for ends in ((0, low), (high, 1)))
            return rate ** (a - 1) * (1 - rate) ** (b - 1) / mpmath.beta(a, b) * (below + above)

        return mpmath.quad(outside, edges, maxdegree=5)


@pytest.mark.deep(beyond=1)
@pytest.mark.parametrize(
    ("fnr", "fpr", "above", "delta"),
    [
        pytest.param(Rate(0, 50), Rate(0, 50), 0.5, 1e-3, marks=pytest.mark.deep),
        (Rate(0, 500), Rate(0, 500), 0.025, 1e-6),
        pytest.param(Rate(10, 40), Rate(3, 57), 0.975, 0.0, marks=pytest.mark.deep),
        pytest.param(Rate(45, 5), Rate(58, 2), 0.025, 1e-6, marks=pytest.mark.deep),
        pytest.param(Rate(300, 200), Rate(0, 500), 0.0005, 1e-6, marks=pytest.mark.deep),
        (Rate(0, 1), Rate(1, 0), 0.9995, 0.0),
    ],
    ids=["no error", "no error of many", "few errors", "turned", "one tail", "one score"],
)
def test_quantiles_are_those_of_the_twin_to_1e_10(fnr, fpr, above, delta):
    found = bayesian.quantile(fnr, fpr, delta, above)
    assert twin(fnr, fpr, found + 1e-10, delta) < above
    if found > 0.0:
        assert twin(fnr, fpr, found - 1e-10, delta) > above


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.floats(0.0, 600.0),
    st.sampled_from([0.0, 1e-12, 1e-5, 0.3]),
)
def test_both_rates_turned_or_swapped_leave_the_probability(misses, hits, alarms, passes, least, delta):
    fnr, fpr = Rate(misses, hits), Rate(alarms, passes)
    found = bayesian.exceedance(fnr, fpr, least, delta)
    assert -1e-12 <= found <= 1.0 + 1e-12
    for one, other in ((fpr, fnr), (fnr.complement, fpr.complement)):
        assert bayesian.exceedance(one, other, least, delta) == pytest.approx(found, rel=1e-12, abs=1e-12)


def test_of_a_million_scores_no_piece_is_missed():
    # Every score of ten thousand to a million is told apart: e^-ε is at most about one in so many.
    many = [bayesian.quantile(Rate(0, 10**n), Rate(0, 10**n), 1e-12, 0.5) for n in (4, 5, 6)]
    np.testing.assert_allclose(np.diff(many), math.log(10.0), rtol=1e-4)


def test_with_a_known_rate_the_probability_is_that_of_an_interval():
    low, high = allowed_range(np.array(0.05), 1.0, 1e-5)
    law = stats.beta(20.5, 80.5)
    found = bayesian.exceedance_at_tail(Rate(20, 80), 0.05, 1.0, 1e-5)
    assert found == pytest.approx(law.cdf(low) + law.sf(high), rel=1e-12)


def test_the_posterior_interval_leaves_half_of_alpha_at_either_end():
    seen, unseen = np.random.default_rng(0).normal([[1.5], [0.0]], 1.0, (2, 300))
    tiled = np.tile(seen[:30], 10)  # so that the largest score is in both halves
    for scores, alpha in product((prepare(seen, unseen), prepare(tiled, null=normal_null())), (0.05, 0.2)):
        bound = METHODS["bayesian"].bound(scores, 1e-5, alpha)
        counts = split_counts(scores, 1e-5, bayesian._CHOICE)
        hits, count = int(counts.hits[0]), counts.half.count
        fnr = Rate(count - hits, hits)
        assert 0.0 < bound.value < bound.upper
        for end, above in ((bound.value, 1.0 - 0.5 * alpha), (bound.upper, 0.5 * alpha)):
            if scores.null is None:
                alarms, null_count = int(counts.alarms[0]), counts.half.null_count
                probability = bayesian.exceedance(fnr, Rate(alarms, null_count - alarms), end, 1e-5)
            else:
                probability = bayesian.exceedance_at_tail(fnr, math.exp(counts.log_tails[0]), end, 1e-5)
            assert probability == pytest.approx(above, abs=1e-8)
