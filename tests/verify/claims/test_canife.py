from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from scipy import integrate, stats

from canaryproof.verify.claims import (
    accounting,
    canife_composition,
    canife_counts,
    canife_data,
    canife_models,
    canife_numbers,
    canife_privacy,
    canife_rates,
    sampled_rdp,
)
from canaryproof.verify.claims.canife import CHECKS
from canaryproof.verify.results import Context, Level, Subject, Verdict

CONTEXT = Context(Level.QUICK, 20230206)

# All others that need no data set are confirmed.
NOT_CONFIRMED = {
    "canife.section3.4.cap": Verdict.QUALIFIED,
    "canife.appendixC5.infinite": Verdict.QUALIFIED,
    "canife.section4.1.epsilon": Verdict.QUALIFIED,
    "canife.section1.toy": Verdict.QUALIFIED,
    "canife.section3.4.tight": Verdict.QUALIFIED,
    "canife.section4.2.gap.sent140": Verdict.QUALIFIED,
    "canife.section4.2.gap.celeba": Verdict.NEEDS_DATA,
    "canife.section4.2.gap.shakespeare": Verdict.NEEDS_DATA,
    "canife.section1.celeba": Verdict.QUALIFIED,
    "canife.section2.1.root": Verdict.QUALIFIED,
    "canife.appendixB.sent140.epsilon0": Verdict.REFUTED,
    "canife.appendixB.shakespeare.epsilon0": Verdict.REFUTED,
    "canife.appendixB.celeba.cnn": Verdict.QUALIFIED,
    "canife.appendixB.sent140.lstm": Verdict.QUALIFIED,
    "canife.appendixB.shakespeare.lstm": Verdict.QUALIFIED,
    "canife.appendixB.shakespeare.classes": Verdict.REFUTED,
    "canife.section4.3.times.sent140": Verdict.QUALIFIED,
    "canife.section4.3.times.celeba": Verdict.QUALIFIED,
    "canife.appendixB.sent140.users": Verdict.QUALIFIED,
    "canife.section4.2.utility.shakespeare": Verdict.INCONCLUSIVE,
    "canife.appendixB.shakespeare.epochs": Verdict.QUALIFIED,
    "canife.appendixC3.celeba.audits": Verdict.QUALIFIED,
    "canife.appendixC3.sent140.audits": Verdict.REFUTED,
    "canife.appendixC3.shakespeare.audits": Verdict.QUALIFIED,
    **{check.id: Verdict.NEEDS_DATA for check in canife_data.CHECKS},
}


def test_ids_are_unique_and_name_the_document():
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert all(check.id.startswith("canife.") and check.subject is Subject.DOCUMENT for check in CHECKS)
    assert set(NOT_CONFIRMED) <= {check.id for check in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_verdict(check):
    outcome = check.judge(CONTEXT)
    assert outcome.verdict is NOT_CONFIRMED.get(check.id, Verdict.CONFIRMED)
    assert outcome.finding


def test_largest_estimate_is_the_largest_over_all_counts():
    for delta in (Fraction(1, 100), Fraction(1, 10**5)):
        for least in (0, 1):
            ratios = [
                (1 - delta - Fraction(one, 50)) / Fraction(other, 50)
                for one in range(least, 51)
                for other in range(max(least, 1), 51)
            ]
            assert canife_rates.largest(delta, least) == pytest.approx(np.log(float(max(ratios))), rel=1e-14)


def test_a_cap_at_the_texts_delta_is_confirmed_and_another_refuted():
    assert canife_rates.judge_cap("3.88").verdict is Verdict.CONFIRMED
    assert canife_rates.judge_cap("3.98").verdict is Verdict.REFUTED


def test_lower_limit_at_perfect_separation():
    # The limit of a rate with no errors in 50 trials solves (1 − p)^50 = 1/40.
    rate = 1.0 - 0.025 ** (1 / 50)
    assert canife_rates.lower_limit(0, 0) == pytest.approx(np.log((0.99 - rate) / rate), rel=1e-12)


def test_coverage_agrees_with_simulation():
    rng = np.random.default_rng(7)
    exact = canife_rates.coverage(0.01, [0.1])["lower"]
    false_positives, false_negatives = rng.binomial(50, 0.1, (2, 20000))
    high = stats.beta.ppf(0.975, np.arange(51) + 1, np.maximum(50 - np.arange(51), 1e-9))
    one, other = high[false_positives], high[false_negatives]
    lower = np.log(np.maximum((0.99 - one) / other, (0.99 - other) / one))
    covered = np.count_nonzero(lower <= np.log(0.89 / 0.1))
    # Level 1e-6.
    assert stats.binomtest(int(covered), 20000, exact).pvalue > 1e-6


def test_a_deviation_too_far_from_the_noise_is_refuted():
    assert canife_privacy.judge_deviation(0.578, 0.423).verdict is Verdict.REFUTED


def test_theoretical_epsilon_of_a_round_and_of_all():
    # dp-accounting by another route: one round without sampling is α/(2σ²) at order α.
    sigma = canife_privacy.trained(canife_numbers.SENT140, 1e-5)
    orders = np.arange(1.1, 20.0, 0.01)
    converted = orders / (2 * sigma**2) + np.log1p(-1 / orders) - np.log(1e-5 * orders) / (orders - 1)
    assert canife_privacy.one_round(canife_numbers.SENT140, 1e-5) == pytest.approx(converted.min(), rel=2e-3)
    total = sampled_rdp.rdp(sigma, 1e-5, canife_numbers.SENT140.rounds, canife_numbers.SENT140.sampling)
    assert total == pytest.approx(50.0, abs=0.05)


@pytest.mark.parametrize(
    ("least", "most", "verdict"),
    [("2.5", "2.5", Verdict.REFUTED), ("4.5", "4.5", Verdict.QUALIFIED), ("4", "5", Verdict.NEEDS_DATA)],
)
def test_gaps_within_reach_and_out_of_it(least, most, verdict):
    assert canife_privacy.judge_gap(canife_numbers.SENT140, least, most).verdict is verdict


def test_composed_estimates_that_readings_reach_and_miss():
    assert canife_composition.judge_composed(canife_numbers.CELEBA, "2").verdict is Verdict.CONFIRMED
    assert canife_composition.judge_composed(canife_numbers.CELEBA, "30").verdict is Verdict.REFUTED


def test_parameters_by_hand():
    # torchvision's count for ImageNet's thousand classes.
    assert canife_models.resnet18(1000) == 11_689_512
    # 3·9·32 + 32, thrice 32·9·32 + 32, one pair of 32, and 3·3·32 inputs to two classes.
    assert canife_models.four_layers(2, 32, 2, 1) == 896 + 3 * 9248 + 64 + 578
    assert canife_models.characters(80, 80) == 640 + 272_384 + 526_336 + 20_560
    assert canife_models.sentiment(101, 300) == 30_300 + 160_800 + 80_800 + 202


def test_a_misprinted_number_of_parameters_is_refuted():
    model = canife_models.MODELS[0]._replace(printed=11_177_583)
    assert canife_models._judge_model(model).verdict is Verdict.REFUTED


def test_the_number_of_classes_that_fits_is_confirmed():
    assert canife_models.judge_classes(80, 819_920).verdict is Verdict.CONFIRMED
    assert canife_models.judge_classes(80, 819_921).verdict is Verdict.INCONCLUSIVE


def test_altered_counts_change_the_verdict():
    wrong = canife_numbers.Task("x", "X", 100, 8508, 30, 85, 2550, 40, 64)
    assert canife_counts.judge_rounds(wrong).verdict is Verdict.REFUTED
    right = canife_numbers.Task("x", "X", 100, 8408, 30, 85, 2550, 40, 63)
    assert canife_counts.judge_audits(right).verdict is Verdict.CONFIRMED
    assert canife_counts.judge_split(8409, 934, Fraction(9, 10), 9343).verdict is Verdict.REFUTED
    assert canife_counts.judge_times("0.06", 2500, "150").verdict is Verdict.CONFIRMED
    assert canife_counts.judge_times("0.08", 2500, "165").verdict is Verdict.REFUTED
    assert canife_counts.judge_health("0.970", "0.950", 1000).verdict is Verdict.REFUTED
    assert canife_counts.judge_pool(20_000, 10_000).verdict is Verdict.REFUTED
    assert canife_counts.judge_range(4.6, 5.0, {"Sent140": (4.5, 4.5)}).verdict is Verdict.REFUTED


def test_a_number_prints_within_half_a_unit():
    assert canife_numbers.prints(3.8918, "3.89")
    assert not canife_numbers.prints(3.8816, "3.89")
    assert canife_numbers.prints(5.6, "6")


@pytest.mark.parametrize(("order", "sigma", "sampling"), [(1.1, 0.5, 0.06), (1.5, 0.42, 0.012), (2.3, 0.32, 0.0017)])
def test_moments_agree_with_their_integral(order, sigma, sampling):
    def integrand(x):
        ratio = 1 - sampling + sampling * np.exp((2 * x - 1) / (2 * sigma**2))
        return stats.norm.pdf(x, scale=sigma) * ratio**order

    parts = [integrate.quad(integrand, low, low + 0.5, epsabs=0, epsrel=1e-12)[0] for low in np.arange(-5, 8, 0.5)]
    assert sampled_rdp.log_moment(order, sigma, sampling) == pytest.approx(np.log(sum(parts)), rel=1e-6)


def test_epsilon_agrees_with_dp_accounting_at_whole_orders_and_is_below_it_elsewhere():
    for sigma, delta, rounds, sampling in ((1.2, 1e-5, 2550, 100 / 8408), (0.42, 1e-5, 2550, 100 / 8408)):
        library = accounting.rdp(sigma, delta, rounds, sampling)
        assert 0.96 * library < sampled_rdp.rdp(sigma, delta, rounds, sampling) <= library * (1 + 1e-6)
    for order in (2, 5, 30):
        exact = rdp_privacy_accountant._compute_log_a_int(0.01, 0.6, order)
        assert sampled_rdp.log_moment(float(order), 0.6, 0.01) == pytest.approx(exact, rel=1e-9)


def test_another_noise_multiplier_fits_no_round_number_of_epochs():
    assert canife_privacy.judge_toy_epsilon("0.432").verdict is Verdict.INCONCLUSIVE
