import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import rdp
from scipy import integrate, optimize

from canaryproof.verify.papers.accounting import analytical
from canaryproof.verify.papers.accounting.sampled_gaussian import (
    OPACUS_ORDERS,
    composed_epsilon,
    log_moments,
    noise_of_round,
    poisson_noise_multiplier,
)
from canaryproof.verify.papers.accounting.sampled_gaussian import rdp as rdp_epsilon

DELTA = 1e-5


def one_round(sigma, delta, orders):
    """ε of one round by dp-accounting."""
    accountant = rdp.RdpAccountant(orders)
    accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    return accountant.get_epsilon(delta)


@pytest.mark.parametrize("delta", [1e-2, 1e-5])
@pytest.mark.parametrize("epsilon", [0.3, 0.879, 3.89, 20.0])
def test_noise_of_a_round_agrees_with_a_search_on_dp_accounting(epsilon, delta):
    expected = optimize.brentq(
        lambda log_sigma: one_round(math.exp(log_sigma), delta, OPACUS_ORDERS) - epsilon, -4.0, 3.0, xtol=1e-12
    )
    assert noise_of_round(epsilon, delta) == pytest.approx(math.exp(expected), rel=1e-9)


def test_noise_of_rounds_at_the_ends():
    assert noise_of_round(math.inf, 1e-5) == 0.0
    assert noise_of_round(0.102, 1e-5) == noise_of_round(-math.inf, 1e-5) == math.inf
    assert 10.0 < noise_of_round(0.104, 1e-5) < math.inf
    with pytest.raises(ValueError, match="must be a number"):
        noise_of_round(math.nan, 1e-5)


def by_integration(sigmas, rounds, sampling, delta):
    """Composed ε with each moment as an integral, over the orders near the best one."""

    def log_moment(order, sigma):
        # E over N(0, σ²) of (1 − q + q·e^{(2x − 1)/(2σ²)})^α; its mass lies between 0 and the order.
        def log_value(x):
            ratio = np.logaddexp(np.log1p(-sampling), np.log(sampling) + (2.0 * x - 1.0) / (2.0 * sigma**2))
            return order * ratio - 0.5 * (x / sigma) ** 2

        ends = -12.0 * sigma, order + 12.0 * sigma
        grid = np.linspace(*ends, 2001)
        peaks = log_value(grid)
        top, place = peaks.max(), grid[peaks.argmax()]
        total = integrate.quad(
            lambda x: math.exp(log_value(x) - top), *ends, epsabs=0.0, epsrel=1e-11, limit=500, points=[0.0, place]
        )[0]
        return top + math.log(total / (sigma * math.sqrt(2.0 * math.pi)))

    best = math.inf
    for order in [order for order in OPACUS_ORDERS if order <= 40.0]:
        divergence = sum(count * log_moment(order, sigma) for sigma, count in zip(sigmas, rounds, strict=True)) / (
            order - 1.0
        )
        best = min(best, divergence + math.log1p(-1.0 / order) - math.log(delta * order) / (order - 1.0))
    return best


@pytest.mark.parametrize(
    ("sigmas", "rounds", "sampling", "delta"),
    [
        ([0.9, 1.3, 0.7], [100, 200, 169], 128 / 60_000, 1e-5),
        ([0.6], [510], 60 / 1016, 1e-5),
        ([2.0, 1.0], [10, 5], 0.2, 1e-3),
    ],
)
def test_composition_agrees_with_integration(sigmas, rounds, sampling, delta):
    assert composed_epsilon(sigmas, rounds, sampling, delta) == pytest.approx(
        by_integration(sigmas, rounds, sampling, delta), rel=1e-6
    )


def test_composition_agrees_with_dp_accounting_at_whole_orders():
    orders = tuple(range(2, 64))
    accountant = rdp.RdpAccountant(orders)
    for sigma, count in ((0.8, 100), (1.5, 369)):
        accountant.compose(dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(sigma)), count)
    found = composed_epsilon([0.8, 1.5], [100, 369], 0.01, 1e-5, orders)
    assert found == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-9)


@pytest.mark.parametrize(("noise_multiplier", "sampling"), [(20.0, 0.5), (3.0, 0.9), (1.0, 1e-6), (200.0, 0.999)])
def test_of_the_largest_order_all_terms_count(noise_multiplier, sampling):
    order = int(max(OPACUS_ORDERS))
    with mpmath.workdps(40):
        sigma, q = mpmath.mpf(noise_multiplier), mpmath.mpf(sampling)
        terms = (
            mpmath.binomial(order, i) * (1 - q) ** (order - i) * q**i * mpmath.exp((i * i - i) / (2 * sigma**2))
            for i in range(order + 1)
        )
        expected = float(mpmath.log(mpmath.fsum(terms)))
    assert log_moments((order,), noise_multiplier, sampling) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_composition_at_the_ends():
    assert composed_epsilon([0.0, 1.0], [1, 1], 0.1, 1e-5) == math.inf
    assert composed_epsilon([math.inf], [100], 0.1, 1e-5) == 0.0
    assert composed_epsilon([math.inf, 1.2], [100, 5], 1.0, 1e-5) == pytest.approx(
        one_round(1.2 / math.sqrt(5.0), 1e-5, OPACUS_ORDERS), rel=1e-12
    )
    with pytest.raises(ValueError, match="sampling"):
        composed_epsilon([1.0], [1], 0.0, 1e-5)


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("epsilon", "rounds", "sampling"),
    # CelebA and Shakespeare of CANIFE, few clients, all of them, one round, the largest ε.
    [(50.0, 2550, 100 / 8408), (10.0, 510, 60 / 1016), (3.0, 5, 0.4), (20.0, 7, 1.0), (0.3, 1, 0.01), (1e5, 100, 0.1)],
)
def test_noise_gives_a_training_its_epsilon(epsilon, rounds, sampling):
    sigma = poisson_noise_multiplier(epsilon, DELTA, rounds, sampling)
    assert composed_epsilon([sigma], [rounds], sampling, DELTA) == pytest.approx(epsilon, rel=1e-4)
    # Another library's bound for the same noise, above by what it is known to be coarse.
    assert epsilon * (1.0 - 1e-3) <= analytical.rdp(sigma, DELTA, rounds, sampling) <= 1.2 * epsilon


def test_an_infinite_epsilon_is_no_noise_and_one_below_the_accountings_end_is_refused():
    assert poisson_noise_multiplier(math.inf, DELTA, 5, 0.1) == 0.0
    with pytest.raises(ValueError, match=r"^training.epsilon: must be at least 0.103, as Rényi accounting ends there$"):
        poisson_noise_multiplier(0.1, DELTA, 5, 0.1)


def test_noise_that_serves_no_round_costs_nothing():
    alone = composed_epsilon([1.0], [10], 1.0, 1e-5)
    assert composed_epsilon([1.0, 0.0], [10, 0], 1.0, 1e-5) == alone


def test_no_epsilon_is_negative():
    # A large δ allows for more than the divergences of so much noise.
    assert composed_epsilon([100.0], [1], 1.0, 0.5) == 0.0
    assert rdp_epsilon(100.0, 0.5) == 0.0
