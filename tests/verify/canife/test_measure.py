import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from canaryproof.verify.accounting.sampled_gaussian import OPACUS_ORDERS, composed_epsilon, noise_of_round
from canaryproof.verify.bounds import printed
from canaryproof.verify.canife.measure import Deltas, largest_finite, round_epsilon, rounds_served, training_epsilon


def by_counting(observed, unobserved, delta, zero_counts):
    """ε̂ by the plain definition, in rational numbers until the logarithm."""
    found = []
    for threshold in [*observed, *unobserved]:
        fp = Fraction(int(sum(score >= threshold for score in unobserved)), len(unobserved))
        fn = Fraction(int(sum(score < threshold for score in observed)), len(observed))
        if fp == fn == 0 and zero_counts != "infinite":
            top = math.log((1 - delta) * max(len(observed), len(unobserved)))
            found.append(math.inf if zero_counts == "separated" else top)
            continue
        for one, other in ((fp, fn), (fn, fp)):
            rest = 1 - Fraction(delta) - one
            if rest > 0 and other > 0:
                found.append(math.log(rest / other))
            elif rest > 0 and zero_counts == "infinite":
                found.append(math.inf)
    return max(found)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(11)
    drawn = [
        (rng.normal(shift, 1.0, size), rng.normal(0.0, 1.0, other))
        for shift in (0.0, 0.5, 2.0)
        for size, other in ((50, 50), (44, 56), (3, 4))
    ]
    # Ties, and perfect separation.
    rounded = [(observed.round(), unobserved.round()) for observed, unobserved in drawn]
    return [*drawn, *rounded, (np.arange(5.0) + 10.0, np.arange(7.0))]


@pytest.mark.parametrize("zero_counts", ["infinite", "separated", "capped"])
def test_the_estimate_is_that_of_plain_counting(samples, zero_counts):
    for observed, unobserved in samples:
        for delta in (0.0, 1e-5, 0.01):
            found = round_epsilon(observed, unobserved, delta, zero_counts=zero_counts)
            expected = by_counting(observed, unobserved, delta, zero_counts)
            assert found.epsilon == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_limits_are_the_formula_at_the_limits_of_both_rates(samples):
    for observed, unobserved in samples:
        found = round_epsilon(observed, unobserved, 0.01)
        assert found.false_alarms == np.count_nonzero(unobserved >= found.threshold)
        assert found.missed == np.count_nonzero(observed < found.threshold)
        counts = found.false_alarms, found.missed, found.null_count, found.count
        assert found.lower == pytest.approx(printed.at_counts(*counts, 0.01), rel=1e-12)
        low = [
            stats.binomtest(wrong, size).proportion_ci(0.95, "exact").low
            for wrong, size in ((found.false_alarms, found.null_count), (found.missed, found.count))
        ]
        with np.errstate(divide="ignore"):
            upper = max(np.log((0.99 - np.array(low)) / np.array(low[::-1])))
        assert found.upper == pytest.approx(upper, rel=1e-9)
        assert found.lower <= found.epsilon <= found.upper


def test_perfect_separation():
    observed, unobserved = np.arange(50) + 100.0, np.arange(50.0)
    assert round_epsilon(observed, unobserved, 0.01).epsilon == math.inf
    capped = round_epsilon(observed, unobserved, 0.01, zero_counts="capped")
    assert capped.epsilon == largest_finite(50, 50, 0.01) == pytest.approx(math.log(49.5), rel=1e-15)
    assert capped.false_alarms == capped.missed == 0
    assert capped.upper == math.inf


def test_the_formula_as_printed_is_infinite_for_a_canary_that_does_nothing():
    rng = np.random.default_rng(5)
    infinite = sum(
        round_epsilon(*rng.normal(size=(2, 50)), 0.01, zero_counts="infinite").epsilon == math.inf for _ in range(400)
    )
    # 1 − 25/99, as the claim on Appendix C.5 finds by counting orders; level 1e-6.
    assert stats.binomtest(infinite, 400, 1 - 25 / 99).pvalue > 1e-6


@pytest.mark.parametrize(
    ("observed", "unobserved", "delta", "alpha"),
    [([], [1.0], 0.1, 0.05), ([math.nan], [1.0], 0.1, 0.05), ([1.0], [0.0], 1.0, 0.05), ([1.0], [0.0], 0.1, 0.0)],
)
def test_what_is_refused(observed, unobserved, delta, alpha):
    with pytest.raises(ValueError, match="must"):
        round_epsilon(observed, unobserved, delta, alpha=alpha)


def one_round(sigma, delta, orders):
    """ε of one round by dp-accounting."""
    import dp_accounting
    from dp_accounting import rdp

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
    import dp_accounting
    from dp_accounting import rdp

    orders = tuple(range(2, 64))
    accountant = rdp.RdpAccountant(orders)
    for sigma, count in ((0.8, 100), (1.5, 369)):
        accountant.compose(dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(sigma)), count)
    found = composed_epsilon([0.8, 1.5], [100, 369], 0.01, 1e-5, orders)
    assert found == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-9)


def test_composition_at_the_ends():
    assert composed_epsilon([0.0, 1.0], [1, 1], 0.1, 1e-5) == math.inf
    assert composed_epsilon([math.inf], [100], 0.1, 1e-5) == 0.0
    assert composed_epsilon([math.inf, 1.2], [100, 5], 1.0, 1e-5) == pytest.approx(
        one_round(1.2 / math.sqrt(5.0), 1e-5, OPACUS_ORDERS), rel=1e-12
    )
    with pytest.raises(ValueError, match="sampling"):
        composed_epsilon([1.0], [1], 0.0, 1e-5)


def test_rounds_served():
    # CelebA: the public code audits round 1 and then every 40th; Algorithm 2 begins with round 40.
    assert rounds_served([1, 41, 81], 100) == [40, 40, 20]
    assert rounds_served([40, 80], 100) == [79, 21]
    for audited in ([], [2, 1], [0], [101], [3, 3]):
        with pytest.raises(ValueError, match="must rise"):
            rounds_served(audited, 100)


def test_the_three_deltas_matter():
    epsilons, rounds = [1.9, 1.7, 2.0, 1.8, 1.9], [99, 100, 100, 100, 70]
    as_printed = Deltas.as_printed(100, 1e-5)
    assert as_printed == Deltas(0.01, 1e-5, 1e-5)
    found = training_epsilon(epsilons, rounds, 128 / 60_000, as_printed)
    converted = training_epsilon(epsilons, rounds, 128 / 60_000, Deltas(0.01, 0.01, 1e-5))
    noise = [noise_of_round(epsilon, 1e-5) for epsilon in epsilons]
    assert found == composed_epsilon(noise, rounds, 128 / 60_000, 1e-5)
    assert converted > 2.0 * found


def test_measuring_needs_no_jax():
    code = "import sys; from canaryproof.verify.canife import attack, measure; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
