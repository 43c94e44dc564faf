import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import integrate, stats

from canaryproof.verify.bounds import mechanisms
from canaryproof.verify.bounds.mechanisms import FAMILIES, gaussian, laplace, randomised_response, rounded_gaussian


@pytest.mark.parametrize("nominal", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-5, 1e-2])
def test_epsilon_of_the_gaussian_by_integration(nominal, delta):
    mechanism = gaussian(nominal)
    mu, epsilon = mechanisms._shift(nominal), mechanism.epsilon(delta)
    # δ(ε) = ∫ (p − e^ε q)₊, positive above the place where the loss is ε.
    start = epsilon / mu + mu / 2
    found, _ = integrate.quad(
        lambda x: stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x),
        start,
        start + 40,
        epsabs=0,
        epsrel=1e-10,
    )
    assert found == pytest.approx(delta, rel=1e-7)


@pytest.mark.parametrize("nominal", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_epsilon_of_laplace_by_integration(nominal, delta):
    epsilon = laplace(nominal).epsilon(delta)
    points = [0.0, (nominal + epsilon) / 2, nominal]
    found, _ = integrate.quad(
        lambda x: max(0.0, stats.laplace.pdf(x, nominal) - math.exp(epsilon) * stats.laplace.pdf(x)),
        -40.0, 60.0, points=points, epsabs=1e-13, limit=400,
    )  # fmt: skip
    assert found == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize("nominal", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_epsilon_of_randomised_response_over_all_events(nominal, delta):
    epsilon = randomised_response(nominal).epsilon(delta)
    right = math.exp(nominal) / (1 + math.exp(nominal))
    excess = max(right - math.exp(epsilon) * (1 - right), (1 - right) - math.exp(epsilon) * right, 0.0)
    assert excess == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("nominal", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_epsilon_of_the_rounded_gaussian_in_many_digits(nominal, delta):
    mechanism = rounded_gaussian(nominal)
    with mp.workdps(40):
        mu, epsilon = mpf(mechanisms._shift(nominal)), mpf(mechanism.epsilon(delta))
        total = {1: mpf(0), -1: mpf(0)}
        for i in range(-60, 61):
            low, high = mpf(i) / 2 - mpf(1) / 4, mpf(i) / 2 + mpf(1) / 4
            p, q = mp.ncdf(high - mu) - mp.ncdf(low - mu), mp.ncdf(high) - mp.ncdf(low)
            total[1] += max(0, p - mp.exp(epsilon) * q)
            total[-1] += max(0, q - mp.exp(epsilon) * p)
        assert float(max(total.values())) == pytest.approx(delta, rel=1e-8)
    # Rounding is post-processing.
    assert mechanism.epsilon(delta) <= gaussian(nominal).epsilon(delta) * (1.0 + 1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_told_apart_at_epsilon_zero(family):
    mechanism = family(0.0)
    assert mechanism.epsilon(1e-6) == 0.0
    one, other = (draw(np.random.default_rng(1), (500,)) for draw in (mechanism.draw, mechanism.draw_null))
    assert np.array_equal(one, other)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("nominal", [0.0, 1.0, 10.0])
def test_the_null_is_the_law_of_its_draws(family, nominal):
    mechanism = family(nominal)
    draws = mechanism.draw_null(np.random.default_rng(2), (200_000,))
    for t in np.quantile(draws, [0.1, 0.5, 0.9, 0.999]):
        expected = math.exp(mechanism.null.log_tail(np.array([t]))[0])
        count = int(np.sum(draws >= t))
        assert stats.binom.cdf(count, 200_000, min(expected, 1.0)) > 1e-7
        assert stats.binom.sf(count - 1, 200_000, min(expected, 1.0)) > 1e-7


def test_laplace_places_have_their_tails():
    null = laplace(1.0).null
    logs = np.log([0.999, 0.5, 0.2, 1e-12])
    assert null.log_tail(null.place(logs)) == pytest.approx(logs, rel=1e-9, abs=1e-12)


def test_rounded_scores_are_multiples_of_a_half():
    draws = rounded_gaussian(3.0).draw(np.random.default_rng(3), (1000,))
    assert np.array_equal(2.0 * draws, np.rint(2.0 * draws))
    assert len(np.unique(draws)) < 20
