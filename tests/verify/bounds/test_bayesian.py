import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from canaryproof.verify.bounds import bayesian
from canaryproof.verify.bounds.bayesian import allowed, probability_known
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.lower_bound import BoundKind, normal_null, prepare


def epsilon(fnr, fpr, delta):
    """Least ε that allows a pair of rates: Equation (1) for the attack and for the one with its guesses turned over."""
    terms = [
        (1.0 - delta - one) / other for a, b in ((fnr, fpr), (1.0 - fnr, 1.0 - fpr)) for one, other in ((a, b), (b, a))
    ]
    return max(0.0, *(math.log(term) if term > 0.0 else 0.0 for term in terms))


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.sampled_from([0.0, 1e-5, 0.1]))
def test_the_region_is_where_epsilon_is_small_enough(fnr, fpr, delta):
    least = epsilon(fnr, fpr, delta)
    low, high = allowed(np.array(fnr), least + 1e-9, delta)
    assert low <= fpr + 1e-9
    assert fpr <= high + 1e-9
    if least > 1e-6:
        low, high = allowed(np.array(fnr), 0.999 * least, delta)
        assert not low <= fpr <= high


@pytest.mark.parametrize(("misses", "alarms"), [(0, 0), (10, 3), (45, 5), (50, 50), (25, 25)])
@pytest.mark.parametrize("level", [0.025, 0.5, 0.975])
def test_quantiles_are_those_of_drawn_rates(misses, alarms, level):
    found = bayesian._sampled_quantile(misses, 50, alarms, 60, 1e-3, level)
    rng = np.random.default_rng(1)
    draws = 40_000
    fnr, fpr = rng.beta(misses + 0.5, 50.5 - misses, draws), rng.beta(alarms + 0.5, 60.5 - alarms, draws)
    below = sum(epsilon(a, b, 1e-3) <= found for a, b in zip(fnr, fpr, strict=True))
    # The quadrature is right to 1e-3; the test's level is 1e-6.
    assert stats.binom.cdf(below, draws, level + 1e-3 if level < 1.0 else 1.0) < 1.0 or below == 0
    assert stats.binom.sf(below - 1, draws, min(1.0, level + 1e-3)) > 1e-6 or found == 0.0
    assert stats.binom.cdf(below, draws, level - 1e-3) > 1e-6


def test_with_a_known_rate_the_probability_is_that_of_an_interval():
    low, high = allowed(np.array(0.05), 1.0, 1e-5)
    law = stats.beta(20.5, 80.5)
    assert probability_known(20, 100, 0.05, 1.0, 1e-5) == pytest.approx(law.cdf(high) - law.cdf(low), rel=1e-12)


@pytest.mark.parametrize("null", [None, normal_null()])
def test_the_interval_has_two_ends_and_is_called_posterior(null):
    rng = np.random.default_rng(2)
    seen, unseen = 2.0 + rng.normal(size=400), rng.normal(size=400)
    bound = METHODS["bayesian"].bound(prepare(seen, unseen if null is None else None, null), 1e-5, 0.05)
    assert bound.kind is BoundKind.POSTERIOR
    assert 0.0 < bound.value < bound.upper
    narrow = METHODS["bayesian"].bound(prepare(seen, unseen if null is None else None, null), 1e-5, 0.5)
    assert bound.value < narrow.value < narrow.upper < bound.upper
