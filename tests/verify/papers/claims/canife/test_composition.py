import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from scipy import integrate, stats

from canaryproof.verify.papers.accounting import analytical, sampled_gaussian
from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.claims.canife import composition as canife_composition
from canaryproof.verify.papers.claims.transcripts import Canife

CONTEXT = Context(Effort.QUICK, 20230206)


def test_a_deviation_too_far_from_the_noise_is_refuted():
    assert canife_composition.judge_deviation(0.578, 0.423).verdict is Verdict.REFUTED


def test_less_noise_is_not_harder():
    assert canife_composition.judge_harder((0.1, 0.423, 2.0)).verdict is Verdict.CONFIRMED
    assert canife_composition.judge_harder((0.423, 0.1)).verdict is Verdict.REFUTED


def test_theoretical_epsilon_of_a_round_and_of_all():
    # dp-accounting by another route: one round without sampling is α/(2σ²) at order α.
    sigma = canife_composition.trained(Canife.SENT140, 1e-5)
    orders = np.arange(1.1, 20.0, 0.01)
    converted = orders / (2 * sigma**2) + np.log1p(-1 / orders) - np.log(1e-5 * orders) / (orders - 1)
    assert canife_composition.one_round(Canife.SENT140, 1e-5) == pytest.approx(converted.min(), rel=2e-3)
    total = sampled_gaussian.rdp(sigma, 1e-5, Canife.SENT140.rounds, Canife.SENT140.sampling)
    assert total == pytest.approx(50.0, abs=0.05)


@pytest.mark.parametrize(
    ("least", "most", "verdict"),
    [("2.5", "2.5", Verdict.REFUTED), ("4.5", "4.5", Verdict.NEEDS_DATA), ("4", "5", Verdict.NEEDS_DATA)],
)
def test_gaps_within_reach_and_out_of_it(least, most, verdict):
    assert canife_composition.judge_reach(Canife.SENT140, least, most).verdict is verdict


def test_composed_estimates_that_readings_reach_and_miss():
    assert canife_composition.judge_composed(Canife.CELEBA, "6").verdict is Verdict.CONFIRMED
    # With one δ throughout.
    assert canife_composition.judge_composed(Canife.CELEBA, "2").verdict is Verdict.REFUTED
    assert canife_composition.judge_composed(Canife.CELEBA, "30").verdict is Verdict.REFUTED


@pytest.mark.parametrize(("order", "sigma", "sampling"), [(1.1, 0.5, 0.06), (1.5, 0.42, 0.012), (2.3, 0.32, 0.0017)])
def test_moments_agree_with_their_integral(order, sigma, sampling):
    def integrand(x):
        ratio = 1 - sampling + sampling * np.exp((2 * x - 1) / (2 * sigma**2))
        return stats.norm.pdf(x, scale=sigma) * ratio**order

    parts = [integrate.quad(integrand, low, low + 0.5, epsabs=0, epsrel=1e-12)[0] for low in np.arange(-5, 8, 0.5)]
    assert sampled_gaussian.log_moments((order,), sigma, sampling) == pytest.approx(np.log(sum(parts)), rel=1e-6)


def test_epsilon_agrees_with_dp_accounting_at_whole_orders_and_is_below_it_elsewhere():
    for sigma, delta, rounds, sampling in ((1.2, 1e-5, 2550, 100 / 8408), (0.42, 1e-5, 2550, 100 / 8408)):
        library = analytical.rdp(sigma, delta, rounds, sampling)
        assert 0.96 * library < sampled_gaussian.rdp(sigma, delta, rounds, sampling) <= library * (1 + 1e-6)
    orders = (2, 5, 30)
    exact = [rdp_privacy_accountant._compute_log_a_int(0.01, 0.6, order) for order in orders]
    assert sampled_gaussian.log_moments(orders, 0.6, 0.01) == pytest.approx(exact, rel=1e-9)


def test_another_noise_multiplier_fits_no_round_number_of_epochs():
    assert canife_composition.judge_toy_epsilon("0.432").verdict is Verdict.INCONCLUSIVE


def test_scores_that_overlap_are_no_complete_success():
    assert canife_composition.judge_success(0.006).verdict is Verdict.CONFIRMED
    assert canife_composition.judge_success(0.478).verdict is Verdict.REFUTED


def test_epsilons_at_one_delta_are_comparable():
    assert canife_composition.judge_comparable(0.01, 1e-5).verdict is Verdict.QUALIFIED
    assert canife_composition.judge_comparable(1e-5, 1e-5).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [("4.7", Verdict.QUALIFIED), ("3.4", Verdict.REFUTED), ("4.9", Verdict.CONFIRMED)],
)
def test_a_gap_above_that_of_a_perfect_canary_is_one_of_leakage(printed, verdict):
    gaps = [(task, figure, printed, most) for task, figure, _, most in canife_composition.GAPS[:2]]
    assert canife_composition.judge_exposure(gaps, CONTEXT).verdict is verdict


def test_a_perfect_canary_whose_scores_hardly_overlap_reaches_the_largest_estimate():
    medians = canife_composition.perfect(0.25, 200, np.random.default_rng(1))
    assert max(medians.values()) == pytest.approx(np.log((1 - 1e-5 - 0.02) * 50), abs=1e-12)


def test_a_canary_without_effect_is_far_from_it():
    medians = canife_composition.perfect(1e6, 2000, np.random.default_rng(1))
    # The exact median of the law over all orders is 1.0984.
    assert medians["at the largest finite ε̂"] == pytest.approx(1.0984, abs=0.15)


def test_final_estimates_that_rise_are_refuted():
    assert canife_composition.judge_fewer_clients((100, 50)).verdict is Verdict.CONFIRMED
    assert canife_composition.judge_fewer_clients((50, 100)).verdict is Verdict.REFUTED


def test_so_many_trials_as_said_show_the_epsilon_of_a_round_and_fewer_do_not():
    found = canife_composition._judge_tight().evidence
    assert found["trials"].keys() == found["exact"].keys() == {"CelebA", "Sent140", "Shakespeare"}
    for task, trials in found["trials"].items():
        # A single false alarm among half of the trials, and no miss.
        shown = [np.log((1.0 - 0.01) / (1.0 / (0.5 * count))) for count in (trials - 1, trials)]
        assert shown[0] < found["exact"][task] <= shown[1]
