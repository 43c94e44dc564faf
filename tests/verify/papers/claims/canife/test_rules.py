import math
import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims import CHECKS, prediction
from canaryproof.verify.papers.claims.canife import rules as canife_rules
from canaryproof.verify.papers.claims.canife.rules import PRINTED, compared, positive
from canaryproof.verify.papers.claims.canife.rules import READING_LEVEL as LEVEL
from canaryproof.verify.papers.claims.experiment_results import FinishedExperiment
from canaryproof.verify.papers.claims.transcripts import Canife
from canaryproof.verify.papers.records.benchmark_record import PrintedReading, PrintedRecord, SpreadRecord
from canaryproof.verify.papers.records.training_record import (
    Analytical,
    CanifeAttackRecord,
    CanifeAuditRecord,
    CanifeRecord,
    CellRecord,
    DesignRecord,
    RepetitionRecord,
    RoundEpsilon,
    TrainingRecord,
)

CONFIRMED, QUALIFIED, REFUTED, INCONCLUSIVE, NEEDS_DATA = Verdict


# CANIFE's experiments, made without files.
def cell(settings, runs, noise_multiplier=0.5, clients=1000, swept=None):
    return CellRecord(
        swept=swept or {},
        settings=settings,
        federation="data",
        clients=clients,
        test_examples=1000,
        dim=10,
        rounds=100,
        noise_multiplier=noise_multiplier,
        analytical=Analytical(None, "", ""),
        results=tuple(RepetitionRecord((run,)) for run in runs),
    )


def training(attacks, accuracy=0.639, composed=5.0):
    audits = tuple(CanifeAuditRecord(t, accuracy, (attack,), {}) for t, attack in attacks)
    by_rule = {"capped": None if composed is None else (composed,)}
    return TrainingRecord(1, accuracy, None, (), CanifeRecord(100, audits, by_rule))


def made(*cells_):
    return FinishedExperiment("canife", "full", "folder", (), tuple(cells_))


def epsilons(composed, accuracy=0.639):
    rng = np.random.default_rng(0)
    return made(
        *(
            cell(
                {"training.epsilon": float(e)}, [training([], accuracy, c * rng.uniform(0.99, 1.01)) for _ in range(5)]
            )
            for e, c in zip((10, 30, 50), composed, strict=True)
        )
    )


def test_estimates_far_below_the_final_epsilon():
    levels = ("10", "30", "50")
    assert canife_rules.far_below(levels, epsilons((2, 5, 8))).verdict is CONFIRMED
    assert canife_rules.far_below(levels, epsilons((8, 5, 8))).verdict is QUALIFIED
    assert canife_rules.far_below(levels, epsilons((20, 5, 8))).verdict is REFUTED
    assert canife_rules.model_accuracy("63.9", "50", epsilons((2, 5, 8))).verdict is CONFIRMED
    assert canife_rules.model_accuracy("63.9", "50", epsilons((2, 5, 8), 0.5)).verdict is REFUTED
    assert canife_rules.model_accuracy("63.9", "50", epsilons((2, 5, 8)), "0").verdict is QUALIFIED
    assert canife_rules.model_accuracy("63.9", "inf", epsilons((2, 5, 8))) is None


def attack(health=0.97, accuracy=0.9, deviation=0.4, epsilon=3.0, separated=None):
    separated = epsilon if separated is None else separated
    capped, infinite = (RoundEpsilon(value, 0.0, 9.0, 0.5, 0, 0, 50, 50) for value in (epsilon, separated))
    return CanifeAttackRecord(
        epsilon=SimpleNamespace(separated=infinite, capped=capped),
        canary=DesignRecord(loss=0.1, norm=1.0, health=health, attempts=1, healthy=True),
        accuracy=accuracy,
        deviations=(deviation, deviation),
    )


def monitored(values, seed=0, **options):
    rng = np.random.default_rng(seed)
    runs = [
        training(
            [
                (10 * (i + 1), attack(epsilon=value * rng.uniform(0.98, 1.02), **options))
                for i, value in enumerate(values)
            ]
        )
        for _ in range(5)
    ]
    return made(cell({"training.epsilon": 50.0, "training.cohort": 100}, runs))


def test_the_gap_of_a_round():
    theory = canife_rules.rdp(0.5, Canife.CODE_DELTA)
    for ratio, verdict in ((4.5, CONFIRMED), (8.0, QUALIFIED), (20.0, REFUTED)):
        found = canife_rules.gap("4", "5", monitored([theory / ratio] * 8))
        assert found.verdict is verdict


def test_estimates_that_settle_within_an_epoch():
    assert canife_rules.settles(monitored([1.0, *[3.0] * 9])).verdict is CONFIRMED
    assert canife_rules.settles(monitored(np.linspace(1, 10, 10))).verdict is REFUTED


def healthy(mean, seed):
    rng = np.random.default_rng(seed)
    return made(
        cell(
            {"training.epsilon": 50.0},
            [
                training([(2000 + t, attack(health=1 - (1 - mean) * rng.uniform(0.9, 1.1))) for t in range(9)])
                for _ in range(5)
            ],
        )
    )


def test_health():
    assert canife_rules.health((("0.970", 0),), healthy(0.97, 0)).verdict is CONFIRMED
    assert canife_rules.health((("0.970", 0),), healthy(0.80, 0)).verdict is REFUTED


def test_stable_final_estimates():
    tasks = (
        replace(epsilons(composed), name=f"canife_figure1_{task}")
        for task, composed in (("sent140", (2, 5, 8)), ("celeba", (3, 9, 15)))
    )
    sent140, celeba = tasks
    assert canife_rules.stable("sent140", sent140, celeba).verdict is CONFIRMED
    assert canife_rules.stable("celeba", sent140, celeba).verdict is REFUTED


def without_privacy(attacks, accuracies=None):
    audits = tuple(
        CanifeAuditRecord(i, 0.5 if accuracies is None else accuracies[i], (one,), {}) for i, one in enumerate(attacks)
    )
    run = TrainingRecord(1, 0.644, None, (), CanifeRecord(100, audits, {"capped": None}))
    return made(cell({"training.cohort": 100}, [run], noise_multiplier=0.0))


def test_without_privacy_estimates_are_at_their_bound():
    once = [attack(epsilon=3.89)] * 19 + [attack(epsilon=3.89, separated=math.inf)]
    assert canife_rules.at_its_bound(without_privacy(once)).verdict is CONFIRMED
    always = [attack(epsilon=3.89, separated=math.inf)] * 20
    assert canife_rules.at_its_bound(without_privacy(always)).verdict is QUALIFIED
    loose = [attack(epsilon=1.0 + i / 10) for i in range(20)]
    assert canife_rules.at_its_bound(without_privacy(loose)).verdict is REFUTED


def test_attacks_go_with_accuracy():
    rises = [attack(accuracy=0.5 + i / 40) for i in range(21)]
    models = np.linspace(0.5, 0.65, 21)
    assert canife_rules.goes_with_accuracy(("inf",), without_privacy(rises, models)).verdict is CONFIRMED
    falls = without_privacy(rises[::-1], models)
    assert canife_rules.goes_with_accuracy(("inf",), falls).verdict is REFUTED


def grid(settings, quantity):
    """One attack for each of some settings, whose values a function gives."""
    return made(
        *(
            cell(
                one,
                [training([(1, attack(**{name: f(one) for name, f in quantity.items()}))] * 5, 0.7)],
                0.0,
            )
            for one in settings
        )
    )


def test_deviations_of_histograms():
    settings = [
        {"training.cohort": c, "canife.pool": p, "training.noise_multiplier": 0.0}
        for c in (32, 64, 256)
        for p in (64, 512)
    ]
    rising_ = grid(settings, {"deviation": lambda one: 0.006 * one["training.cohort"] / 64})
    assert canife_rules.clients_and_pools(rising_).verdict is CONFIRMED
    assert canife_rules.histogram_deviation("0.006", "0", rising_).verdict is CONFIRMED
    assert canife_rules.histogram_deviation("0.009", "0", rising_).verdict is QUALIFIED
    assert canife_rules.histogram_deviation("0.060", "0", rising_).verdict is REFUTED
    assert canife_rules.reached("60", rising_).verdict is CONFIRMED
    assert canife_rules.reached("75", rising_).verdict is REFUTED
    falling = grid(settings, {"deviation": lambda one: 1.0 / one["training.cohort"]})
    assert canife_rules.clients_and_pools(falling).verdict is REFUTED


@pytest.mark.parametrize(("factor", "verdict"), [(1.1, CONFIRMED), (1.6, QUALIFIED), (3.0, REFUTED)])
def test_starts_and_pools(factor, verdict):
    settings = [
        {"canife.steps": 2500, "canife.start": s, "canife.pool": p} for s in ("noise", "sample") for p in (32, 512)
    ]
    found = grid(settings, {"deviation": lambda one: factor if one["canife.start"] == "noise" else 1.0})
    assert canife_rules.start_and_pool(found).verdict is verdict


def test_steps_of_the_design():
    settings = [{"canife.steps": s, "canife.start": "noise", "canife.pool": 512} for s in (1000, 3000)]
    printed = ((1000, "0.95"), (3000, "1.00"))
    good = grid(settings, {"accuracy": lambda one: 0.95 if one["canife.steps"] == 1000 else 0.99})
    assert canife_rules.design_steps(printed, good).verdict is CONFIRMED
    assert canife_rules.design_steps(printed, grid(settings, {"accuracy": lambda _: 0.7})).verdict is REFUTED


def test_losses():
    settings = [{"canife.loss": loss, "canife.pool": p} for loss in ("covariance", "mean") for p in range(8)]
    better = {"covariance": 0.98, "mean": 0.8}
    spread = lambda one: better[one["canife.loss"]] + one["canife.pool"] / 1000  # noqa: E731
    assert canife_rules.losses(grid(settings, {"accuracy": spread})).verdict is CONFIRMED
    worse = lambda one: -spread(one)  # noqa: E731
    assert canife_rules.losses(grid(settings, {"accuracy": worse})).verdict is REFUTED


def test_clients_a_round():
    cells_ = [
        cell(
            {"training.cohort": c},
            [training([(1, attack(accuracy=0.98 - c / 4000 + i / 1e4))], composed=c / 20 + i) for i in range(5)],
        )
        for c in (25, 50, 100, 200)
    ]
    assert canife_rules.falls_with_clients(made(*cells_)).verdict is CONFIRMED


def test_norm_constants():
    settings = [{"canife.norm_constant": c, "i": i} for c in (1.0, 10.0, 50.0, 100.0, 600.0, 1000.0) for i in range(4)]
    found = grid(
        settings,
        {
            "accuracy": lambda one: (0.98 if one["canife.norm_constant"] <= 50 else 0.6) + one["i"] / 100,
            "health": lambda one: (0.98 if one["canife.norm_constant"] <= 600 else 0.6) + one["i"] / 100,
        },
    )
    assert canife_rules.norm_constants(50, 600, found).verdict is CONFIRMED


# The comparison on Fashion-MNIST.
def sample(mean, deviation, runs):
    """Numbers with exactly this mean and deviation."""
    values = stats.norm.ppf((np.arange(runs) + 0.5) / runs)
    return mean + deviation * values / values.std(ddof=1)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        (sample(6.76, 1.06, 10), CONFIRMED),
        (sample(7.5, 0.8, 10), CONFIRMED),
        (sample(12.0, 1.06, 10), REFUTED),
        (sample(6.76, 0.02, 10), REFUTED),
        (sample(6.76, 40.0, 10), REFUTED),
        (sample(6.76, 1.06, 3), INCONCLUSIVE),
        ([6.76], INCONCLUSIVE),
        ([6.5] * 10, INCONCLUSIVE),
        ([6.0, math.inf], REFUTED),
    ],
)
def test_a_printed_mean_and_deviation(values, verdict):
    assert compared(values, 6.76, 1.06, math.inf)[0] is verdict


def test_no_number_exceeds_its_cap():
    verdict, finding = compared([0.52] * 2, 0.879, 0.124, 0.5214)
    assert verdict is REFUTED
    assert finding == "the cap is 0.521"


def test_the_visible_shift_is_seen_as_often_as_said():
    runs, rng = 10, np.random.default_rng(0)
    _, finding = compared(sample(6.76, 1.06, runs), 6.76, 1.06, math.inf)
    shift = float(finding.partition("a shift of ")[2].partition(" ")[0])
    ours, theirs = shift + rng.standard_normal((2000, runs)), rng.standard_normal((2000, runs))
    seen = int(np.sum(stats.ttest_ind(ours, theirs, axis=1).pvalue <= 0.5 * LEVEL))
    assert stats.binomtest(seen, 2000, 0.9).pvalue > 1e-6


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        (sample(3.0, 0.3, 10), CONFIRMED),
        (sample(-0.3, 0.02, 10), REFUTED),
        (sample(0.1, 0.3, 10), INCONCLUSIVE),
        ([2.0, 2.0], INCONCLUSIVE),
        ([2.0], INCONCLUSIVE),
    ],
)
def test_a_difference_in_the_same_trainings(values, verdict):
    assert positive(values)[0] is verdict


@pytest.mark.parametrize(
    ("trainings", "verdict"),
    [
        # Whether ε may be the printed one, verdicts of the number's readings, and those of the section's other number.
        ([(True, (CONFIRMED, REFUTED), (CONFIRMED,))], CONFIRMED),
        ([(True, (REFUTED, CONFIRMED), (REFUTED, CONFIRMED))], QUALIFIED),
        ([(False, (CONFIRMED,), (CONFIRMED,))], INCONCLUSIVE),
        ([(True, (CONFIRMED,), (REFUTED,))], INCONCLUSIVE),
        ([(True, (REFUTED,), (CONFIRMED,))], INCONCLUSIVE),
        # What one training gives of a number and another of the other is no training.
        ([(True, (CONFIRMED,), (REFUTED,)), (True, (REFUTED,), (CONFIRMED,))], INCONCLUSIVE),
        ([(True, (REFUTED,), (CONFIRMED,)), (True, (INCONCLUSIVE, CONFIRMED), (CONFIRMED,))], QUALIFIED),
    ],
)
def test_a_number_holds_only_in_a_training_that_has_all_numbers(trainings, verdict):
    def judged(verdicts):
        return {str(i): (each, "") for i, each in enumerate(verdicts)}

    given = [(near, judged(own), [judged(own), judged(other)]) for near, own, other in trainings]
    assert canife_rules._verdict(given) is verdict


def test_printed_numbers_are_those_of_the_ledger():
    statements = {check.id: check.statement for check in CHECKS}
    for printed in PRINTED:
        for name in printed.ids:
            assert f"{printed.mean:g}" in statements[name]
            assert f"{printed.deviation:g}" in statements[name]


def test_the_interval_of_a_mean_is_students():
    drawn = [1.2, 0.7, 2.1, 1.6]
    expected = stats.ttest_1samp(drawn, 0.0).confidence_interval(0.98)
    assert canife_rules._mean_interval(drawn, 0.02) == pytest.approx(tuple(expected))
    assert canife_rules._mean_interval(drawn[:1], 0.02) == (0.0, math.inf)


def test_the_error_of_a_deviation_is_that_of_two_histograms_of_fifty_scores():
    rng = np.random.default_rng(50)
    drawn = rng.standard_normal((20_000, 2, 50)).std(axis=2, ddof=1).mean(axis=1)
    # A deviation of so many numbers is known to half a per cent; five of these.
    assert drawn.std() / drawn.mean() == pytest.approx(canife_rules._DEVIATION_ERROR, rel=0.025)
    # A further one beside a single one is where 99% of the ratios are.
    settings = {"training.cohort": 64, "canife.pool": 512, "training.noise_multiplier": 0.0}
    one = made(cell(settings, [training([(1, attack(deviation=0.4))])], 0.0))
    low, high = 0.4 * np.quantile(drawn[::2] / drawn[1::2], (0.005, 0.995))
    found = canife_rules.histogram_deviation("0.4", "0", one).finding
    shown = re.search(r"\(([\d.]+) to ([\d.]+)\)", found)
    assert tuple(map(float, shown.groups())) == pytest.approx((low, high), rel=0.04)


# Levels and their shares, just inside and just outside.


def test_two_tests_of_a_printed_mean_and_deviation_share_the_level():
    runs, printed = 10, sample(6.76, 1.06, 10)

    def of_means(shift):
        return float(stats.ttest_ind(sample(6.76 + shift, 1.06, runs), printed, equal_var=False).pvalue)

    for share, refuted in ((0.4, True), (0.6, False)):
        shift = optimize.brentq(lambda x, p=share * LEVEL: math.log(of_means(x) / p), 0.5, 20.0)
        # A ratio of variances so far out, on either side, has half of this in each tail.
        ratio = math.sqrt(stats.f.isf(0.5 * share * LEVEL, runs - 1, runs - 1))
        for values in (
            sample(6.76 + shift, 1.06, runs),
            sample(6.76, 1.06 / ratio, runs),
            sample(6.76, 1.06 * ratio, runs),
        ):
            assert (compared(values, 6.76, 1.06, math.inf)[0] is REFUTED) is refuted


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(0.4, CONFIRMED), (0.6, INCONCLUSIVE), (1.0 / LEVEL - 0.6, INCONCLUSIVE), (1.0 / LEVEL - 0.4, REFUTED)],
)
def test_two_directions_of_a_difference_share_the_level(share, verdict):
    # Of mean and deviation of ten numbers: Student's statistic at which the p-value is this share of the level.
    far = stats.t.isf(share * LEVEL, 9) if share < 1.0 else -stats.t.isf((1.0 / LEVEL - share) * LEVEL, 9)
    assert positive(sample(far / math.sqrt(10), 1.0, 10))[0] is verdict


def at(*levels, runs):
    return made(*(cell({"training.epsilon": float(level), "training.cohort": 100}, runs) for level in levels))


def test_intervals_of_several_final_epsilons_share_the_level():
    composed = sample(20.0, 2.0, 5)
    # Half of 50 is 25: within 4.6 errors of the mean of five, as 1% asks, and not within 6.3, as a third of it does.
    assert 20.0 + stats.t.isf(0.005, 4) * 2.0 / math.sqrt(5) < 25.0
    assert 20.0 + stats.t.isf(0.005 / 3, 4) * 2.0 / math.sqrt(5) > 25.0
    found = at("50", runs=[training([], composed=value) for value in composed])
    assert canife_rules.far_below(("50",), found).verdict is CONFIRMED
    low = at("10", "30", runs=[training([], composed=value) for value in sample(2.0, 0.01, 5)])
    assert canife_rules.far_below(("10", "30", "50"), made(*low.cells, *found.cells)).verdict is QUALIFIED


def test_correlations_at_several_epsilons_share_the_level():
    models = np.linspace(0.5, 0.65, 12)
    rng = np.random.default_rng(4)
    # The last attack is right, as of a model that has converged.
    orders = (np.append(rng.permutation(11), 11) for _ in range(1000))
    p_values = ((order, stats.spearmanr(models, order, alternative="greater").pvalue) for order in orders)
    order = next(order for order, p in p_values if 0.01 / 3 < p < 0.01)
    audits = [
        CanifeAuditRecord(i, model, (attack(accuracy=0.45 + place / 20),), {})
        for i, (model, place) in enumerate(zip(models, order, strict=True))
    ]
    run = TrainingRecord(1, 0.6, None, (), CanifeRecord(100, tuple(audits), {"capped": None}))
    found = at("10", "30", "50", runs=[run])
    assert canife_rules.goes_with_accuracy(("50",), found).verdict is CONFIRMED
    assert canife_rules.goes_with_accuracy(("10", "30", "50"), found).verdict is INCONCLUSIVE


@pytest.mark.parametrize(
    ("p_value", "verdict"), [(0.0049, CONFIRMED), (0.0051, INCONCLUSIVE), (0.9949, INCONCLUSIVE), (0.9951, REFUTED)]
)
def test_two_tests_of_ranks_share_the_level(p_value, verdict):
    assert canife_rules._tested("it", p_value, "").verdict is verdict


def test_printed_healths_share_the_level_and_count_later_audits_alone():
    lacks = sample(0.025, 0.0008, 5)
    # What 0.970 lacks is 0.0295 or more: 4.6 deviations and the mean's error off at 1%, 5.6 at half of it.
    reach = 0.0008 * math.sqrt(1.2)
    assert 0.025 + stats.t.isf(0.005, 4) * reach < 0.0295 < 0.025 + stats.t.isf(0.0025, 4) * reach
    early = (1000, attack(health=0.1))
    found = at("50", runs=[training([early, (1001, attack(health=1.0 - value))]) for value in lacks])
    assert canife_rules.health((("0.975", 1000),), found).verdict is CONFIRMED
    assert canife_rules.health((("0.970", 1000),), found).verdict is QUALIFIED
    assert canife_rules.health((("0.970", 1000), ("0.975", 1000)), found).verdict is CONFIRMED


def test_the_first_epoch_ends_with_its_last_round():
    run = training([(t, attack(epsilon=float(t))) for t in (9, 10, 11)])
    # 1,000 clients, 100 a round.
    assert canife_rules._after_epoch(cell({"training.cohort": 100}, [run]), run) == [11.0]


def test_final_estimates_are_stable_by_their_relative_deviation():
    # Within a quarter of the mean, whatever it is.
    for relative, verdict in ((0.2, CONFIRMED), (0.3, QUALIFIED)):
        runs = [training([], composed=value) for value in sample(40.0, 40.0 * relative, 5)]
        found = replace(at("50", runs=runs), name="canife_figure1_celeba")
        assert canife_rules.stable("celeba", found).verdict is verdict


@pytest.mark.parametrize(("shift", "verdict"), [(-0.01, INCONCLUSIVE), (0.01, CONFIRMED)])
def test_deviations_without_noise_rise_by_more_than_their_errors(shift, verdict):
    # Both ends of a step have an error; two pools share 1%.
    step = stats.norm.isf(0.005) * math.sqrt(2.0 / (2 * 2 * 49)) + shift
    settings = [{"training.cohort": c, "canife.pool": p} for c in (32, 64) for p in (64, 512)]
    rising_ = grid(settings, {"deviation": lambda one: math.exp(step * (one["training.cohort"] == 64))})
    noisy = [cell(one, [training([(1, attack(deviation=1.0 / one["training.cohort"]))])], 0.4) for one in settings]
    assert canife_rules.clients_and_pools(made(*rising_.cells, *noisy)).verdict is verdict


# Where a verdict changes, and what is said.


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.0, CONFIRMED), (1.249, CONFIRMED), (1.251, QUALIFIED), (1.99, QUALIFIED), (2.01, REFUTED)]
)
def test_little_is_a_quarter(ratio, verdict):
    assert canife_rules.little(ratio) is verdict
    assert canife_rules.ratio_between(2.0, 2.0 * ratio) == canife_rules.ratio_between(2.0 * ratio, 2.0)
    assert canife_rules.ratio_between(2.0, 2.0 * ratio) == pytest.approx(ratio)
    assert canife_rules.ratio_between(0.0, 1.0) == canife_rules.ratio_between(1.0, -1.0) == math.inf


@pytest.mark.parametrize(
    ("printed", "share", "verdict"),
    [
        ("1.00", 0.981, CONFIRMED),
        ("1.00", 0.979, REFUTED),
        ("0.95", 0.979, CONFIRMED),
        ("0.95", 0.981, REFUTED),
        ("0.95", 0.921, CONFIRMED),
        ("0.95", 0.919, REFUTED),
    ],
)
def test_a_share_of_an_attack(printed, share, verdict):
    assert canife_rules.share_of(printed, share) is verdict


def test_an_estimate_of_several_attacks_is_their_mean():
    def with_(composed):
        return TrainingRecord(1, 0.6, None, (), CanifeRecord(100, (), {"capped": composed, "separated": (9.0,)}))

    assert canife_rules.epsilon_of(with_((2.0, 3.0, 7.0))) == 4.0
    assert canife_rules.epsilon_of(with_(None)) is None
    assert canife_rules.epsilon_of(TrainingRecord(1, 0.6, None, (), None)) is None


def test_attacks_are_those_of_the_last_audit():
    runs = [training([(1, attack(accuracy=0.1)), (2, attack(accuracy=share))]) for share in (0.7, 0.8)]
    assert canife_rules.attack_values(cell({}, runs), "accuracy") == [0.7, 0.8]


@pytest.mark.parametrize(
    ("composed", "verdict"), [(24.9, CONFIRMED), (25.1, QUALIFIED), (49.9, QUALIFIED), (50.1, REFUTED)]
)
def test_far_below_is_half_or_less(composed, verdict):
    runs = [training([], composed=composed + shift) for shift in (-1e-3, 1e-3)]
    found = canife_rules.far_below(("50",), at("50", runs=runs))
    assert found.verdict is verdict
    assert found.finding.startswith(
        f"at ε = 50 ε̂ is {composed - 1e-3:.4g}, {composed + 1e-3:.4g}: {verdict}; not stated"
    )
    # One training has no spread, and shows nothing.
    assert canife_rules.far_below(("50",), at("50", runs=runs[:1])).verdict is INCONCLUSIVE
    assert canife_rules.far_below(("50",), at("50", runs=[training([], composed=None)])) is None
    assert canife_rules.far_below(("30",), at("50", runs=runs)) is None


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (1.74, REFUTED),
        (1.76, QUALIFIED),
        (3.49, QUALIFIED),
        (3.51, CONFIRMED),
        (5.49, CONFIRMED),
        (5.51, QUALIFIED),
        (10.99, QUALIFIED),
        (11.01, REFUTED),
    ],
)
def test_a_gap_of_four_to_five_holds_what_rounds_to_them_and_is_near_within_two(ratio, verdict, monkeypatch):
    # Of the text's δ; at the other one the theoretical ε is far off.
    monkeypatch.setattr(canife_rules, "rdp", lambda sigma, delta: 20.0 * sigma if delta == 1e-5 else 1e6)
    runs = [training([(11, attack(epsilon=10.0 / (ratio + shift)))]) for shift in (0.1, -0.1)]
    found = canife_rules.gap("4", "5", at("50", runs=runs))
    assert found.verdict is verdict
    shown = f"{ratio + 0.1:.4g}, {ratio - 0.1:.4g}"
    assert found.finding.startswith(f"4 to 5 times, measured {shown}, of ε = 10: {verdict}; not stated")
    assert canife_rules.gap("4", "5", at("50", runs=[training([(10, attack())])])) is None
    monkeypatch.setattr(canife_rules, "rdp", lambda sigma, delta: 20.0 * sigma if delta == 0.01 else 1e6)
    other = canife_rules.gap("4", "5", at("50", runs=runs))
    assert other.verdict is (QUALIFIED if verdict is CONFIRMED else REFUTED)
    if verdict is CONFIRMED:
        assert other.finding.startswith(f"only with δ = 1/n (4 to 5 times, measured {shown}, of ε = 10: confirmed)")


def test_what_settles_is_alike_in_both_halves():
    # The first epoch has ten rounds: its audit counts for nothing. Halves of five audits are two and three.
    runs = [
        training([(10, attack(epsilon=50.0)), *((11 + i, attack(epsilon=e)) for i, e in enumerate(values))])
        for values in ([1.0, 3.0, 2.0, 2.0, 5.0], [2.0, 2.0, 3.0, 3.0, 3.0])
    ]
    found = canife_rules.settles(at("50", runs=runs))
    assert found.finding.startswith("ε̂ of rounds in the halves of what follows the first epoch: 2 and 3: qualified")
    few = [training([(11 + i, attack()) for i in range(3)])]
    assert canife_rules.settles(at("50", runs=few)) is None


def test_stable_estimates_are_named_with_the_lowest():
    by_task = [
        replace(at("50", runs=[training([], composed=value) for value in values]), name=f"canife_figure1_{task}")
        for task, values in (("sent140", (4.0, 6.0)), ("celeba", (8.0, 9.0, 10.0, 11.0)))
    ]
    found = canife_rules.stable("sent140", *by_task)
    # The deviation of 4 and 6 is 1.41, 28% of 5; that of 8 to 11 is 1.29, 14% of 9.5.
    assert found.finding.startswith(
        "sent140's ε̂ is 4, 6: qualified; celeba's ε̂ is 9.5 ± 1.3 in 4: confirmed; sent140's is lowest: confirmed; not"
    )
    assert "sent140's is lowest: refuted" in canife_rules.stable("celeba", *by_task).finding
    infinite = replace(by_task[0], cells=at("50", runs=[training([], composed=c) for c in (math.inf, 5.0)]).cells)
    assert canife_rules.stable("sent140", infinite, by_task[1]).verdict is REFUTED
    assert canife_rules.stable("celeba", replace(by_task[0], cells=()), by_task[1]) is None
    assert canife_rules.stable("sent140", replace(by_task[0], cells=at("50", runs=[training([])]).cells)) is None


@pytest.mark.parametrize(
    ("high", "infinite", "runs", "verdicts"),
    [
        (18, 1, 1, (CONFIRMED, CONFIRMED)),
        (17, 1, 1, (REFUTED, CONFIRMED)),
        (20, 2, 1, (CONFIRMED, CONFIRMED)),
        (20, 3, 1, (CONFIRMED, QUALIFIED)),
        (20, 0, 1, (CONFIRMED, QUALIFIED)),
        (20, 2, 2, (CONFIRMED, CONFIRMED)),
    ],
)
def test_a_bound_is_reached_in_nine_audits_of_ten_and_infinite_once_or_twice(high, infinite, runs, verdicts):
    # A tenth below 4 is 3.6.
    values = [4.0, *[3.61] * (high - 1), *[3.59] * (20 - high)]
    one = [attack(epsilon=e, separated=math.inf if i < infinite else e) for i, e in enumerate(values)]
    audits = tuple(CanifeAuditRecord(i, 0.5, (each,), {}) for i, each in enumerate(one))
    run = TrainingRecord(1, 0.6, None, (), CanifeRecord(100, audits, {"capped": None}))
    found = canife_rules.at_its_bound(made(cell({}, [run] * runs, noise_multiplier=0.0), cell({}, [run], 0.5)))
    assert found.finding.startswith(
        f"{5 * high}% of {20 * runs} audits within a tenth of 4: {verdicts[0]}; "
        f"infinite in {infinite * runs} audits of {runs} trainings: {verdicts[1]}; not stated"
    )


def test_correlated_accuracies_are_told_with_the_last():
    def pairs(models, shares):
        audits = tuple(
            CanifeAuditRecord(i, model, (attack(accuracy=share),), {})
            for i, (model, share) in enumerate(zip(models, shares, strict=True))
        )
        return made(cell({}, [TrainingRecord(1, 0.6, None, (), CanifeRecord(9, audits, {}))], noise_multiplier=0.0))

    # One exchange of neighbours among five: 1 − 6·2/(5·24).
    found = canife_rules.goes_with_accuracy(("inf",), pairs([1, 2, 3, 4, 5], [0.1, 0.3, 0.2, 0.4, 0.99]))
    assert found.finding.startswith(
        "at ε = inf rank correlation 0.90 of 5 audits: inconclusive; attack's accuracy in the end 0.990: confirmed; not"
    )
    models = list(range(20))
    assert canife_rules.goes_with_accuracy(("inf",), pairs(models, [i / 20 for i in models])).verdict is REFUTED
    alike = canife_rules.goes_with_accuracy(("inf",), pairs([1, 2, 3, 4], [0.5] * 4))
    assert alike.finding.startswith("at ε = inf all 4 audits are alike: inconclusive")
    assert canife_rules.goes_with_accuracy(("inf",), pairs([1, 2, 3], [0.1, 0.2, 0.3])) is None


def test_trainings_that_reach_an_accuracy_are_counted_by_cells():
    found = made(*(cell({}, [training([], accuracy=share) for share in shares]) for shares in ((0.5, 0.6), (0.59,))))
    outcome = canife_rules.reached("60", found)
    assert outcome.finding.startswith("1 of 2 trainings reach 60%, others 59%: qualified; not stated")
    assert canife_rules.reached("59", found).finding.startswith("2 of 2 trainings reach 59%: confirmed")
    assert canife_rules.reached("61", found).finding.startswith("0 of 2 trainings reach 61%, others 60, 59%: refuted")


def test_a_histograms_deviation_is_of_one_cell_and_its_own_law():
    settings = {"training.cohort": 64, "canife.pool": 512, "training.noise_multiplier": 0.0}
    values = (0.4, 0.5, 0.45)
    one = cell(settings, [training([(1, attack(deviation=value))]) for value in values], 0.0)
    other = cell(settings | {"canife.pool": 64}, [training([(1, attack(deviation=9.0))])], 0.0)
    logs = np.log(values)
    low, high = (
        float(np.exp(end)) for end in stats.t(2, logs.mean(), stats.tstd(logs) * (4 / 3) ** 0.5).interval(0.99)
    )
    found = canife_rules.histogram_deviation("0.45", "0", made(one, other))
    assert found.finding.startswith(f"deviation 0.45, measured 0.4, 0.5, 0.45 ({low:.3g} to {high:.3g})")
    assert canife_rules.histogram_deviation("0.45", "0", made(one, one)) is None
    assert canife_rules.histogram_deviation("0.45", "0.423", made(one, other)) is None
    # Of two draws: 99% of the logarithms of a mean of two's deviation, and the one's of both.
    reach = stats.norm.ppf(0.995) * math.sqrt(1.5 / 196)
    two = made(cell(settings, [training([(1, attack(deviation=value))]) for value in (0.4, 0.5)], 0.0))
    assert (
        f"({0.45 * math.exp(-reach):.3g} to {0.45 * math.exp(reach):.3g})"
        in canife_rules.histogram_deviation("0.45", "0", two).finding
    )


def test_factors_between_clients_and_between_pools_are_means():
    deviations = {(32, 64): 1.0, (32, 512): 2.0, (64, 64): 5.0, (64, 512): 7.0, (128, 64): 4.0, (128, 512): 12.0}
    settings = [{"training.cohort": c, "canife.pool": p} for c, p in deviations]
    value = lambda one: deviations[one["training.cohort"], one["canife.pool"]]  # noqa: E731
    found = canife_rules.clients_and_pools(grid(settings, {"deviation": value}))
    # 4 and 6 from 32 to 128 clients; 2, 1.4 and 3 from a pool of 64 to one of 512.
    assert found.finding.startswith(
        "deviation with clients rises in all 2: confirmed; "
        "mean factor 5 from 32 to 128 clients, 2.1 from a pool of 64 to 512: confirmed; not stated"
    )
    assert canife_rules.clients_and_pools(grid(settings[:-1], {"deviation": value})) is None
    assert canife_rules.clients_and_pools(grid(settings[:2], {"deviation": value})) is None
    assert canife_rules.clients_and_pools(grid(settings, {"deviation": lambda one: 0.0 * value(one)})) is None
    flat = {(32, 64): 1.0, (32, 512): 9.0, (64, 64): 2.0, (64, 512): 18.0}
    found = canife_rules.clients_and_pools(
        grid(settings[:4], {"deviation": lambda one: flat[one["training.cohort"], one["canife.pool"]]})
    )
    assert "mean factor 2 from 32 to 64 clients, 9 from a pool of 64 to 512: refuted" in found.finding


def test_factors_between_starts_and_the_pools_that_differ_most():
    deviations = {
        ("noise", 32): 1.0,
        ("noise", 64): 3.0,
        ("noise", 512): 2.0,
        ("sample", 32): 2.0,
        ("sample", 64): 3.0,
        ("sample", 512): 8.0,
    }
    settings = [{"canife.steps": 2500, "canife.start": s, "canife.pool": p} for s, p in deviations]
    value = lambda one: deviations[one["canife.start"], one["canife.pool"]]  # noqa: E731
    found = canife_rules.start_and_pool(grid(settings, {"deviation": value}))
    # 2, 1 and 4 between starts; 3 and 4 between pools.
    assert found.finding.startswith(
        "mean factor 2.33 between both starts: refuted; 3.5 between the pools that differ most: refuted; not stated"
    )
    assert canife_rules.start_and_pool(grid(settings[1:], {"deviation": value})) is None
    other = [one | {"canife.steps": 1000} for one in settings]
    assert canife_rules.start_and_pool(grid(other, {"deviation": value})) is None


@pytest.mark.parametrize(
    ("first", "last", "verdict"),
    [(0.95, 0.981, CONFIRMED), (0.9, 0.99, REFUTED), (0.99, 0.99, CONFIRMED), (0.95, 0.97, REFUTED)],
)
def test_more_than_is_printed_for_few_steps_is_enough(first, last, verdict):
    settings = [{"canife.steps": s, "canife.start": "noise", "canife.pool": 512} for s in (1000, 3000)]
    others = [one | {"canife.pool": 64} for one in settings] + [one | {"canife.start": "sample"} for one in settings]
    by_steps = {1000: first, 3000: last}
    right = grid(settings, {"accuracy": lambda one: by_steps[one["canife.steps"]]})
    wrong = grid(others, {"accuracy": lambda _: 0.5})
    found = canife_rules.design_steps(((1000, "0.95"), (3000, "1.00")), made(*right.cells, *wrong.cells))
    assert found.verdict is verdict
    assert f"1000 iterations 0.95, measured {first:.4g}: " in found.finding
    assert f"3000 iterations 1.00, measured {last:.4g}: " in found.finding
    assert canife_rules.design_steps(((2000, "0.95"),), right) is None


def falling(*means, spread=0.0):
    """Cells with so many clients a round, and five trainings each."""
    return made(
        *(
            cell(
                {"training.cohort": clients},
                [
                    training([(1, attack(accuracy=0.1)), (2, attack(accuracy=2 * mean - 0.1 + i * spread))])
                    for i in range(5)
                ],
            )
            for clients, mean in means
        )
    )


def test_accuracies_that_fall_with_clients_are_means_over_a_training():
    found = canife_rules.falls_with_clients(falling((100, 0.6), (25, 0.9), (50, 0.7)))
    test = stats.spearmanr([25] * 5 + [50] * 5 + [100] * 5, [0.9] * 5 + [0.7] * 5 + [0.6] * 5, alternative="less")
    assert found.finding.startswith(
        f"it: 25 clients 0.9, 50 clients 0.7, 100 clients 0.6 (p = {test.pvalue:.2g}): confirmed; "
        "by a factor of 1.5: qualified; not stated"
    )
    rises = canife_rules.falls_with_clients(falling((25, 0.6), (50, 0.7), (100, 0.9)))
    assert "(p = 1): refuted; by a factor of 1.5: qualified" in rises.finding
    # By chance, in neither direction.
    assert canife_rules.falls_with_clients(falling((25, 0.6), (50, 0.6), spread=0.01)).verdict is INCONCLUSIVE
    alike = canife_rules.falls_with_clients(falling((25, 0.6), (50, 0.6)))
    assert alike.finding.startswith("all 10 are 0.6: inconclusive; not stated")
    assert canife_rules.falls_with_clients(falling((25, 0.6))) is None


def test_losses_are_compared_by_ranks_of_one_side():
    settings = [{"canife.loss": loss, "canife.pool": p} for loss in ("covariance", "mean") for p in range(2)]
    better = {("covariance", 0): 0.9, ("covariance", 1): 0.7, ("mean", 0): 0.8, ("mean", 1): 0.6}
    found = canife_rules.losses(
        made(
            *(
                cell(one, [training([(1, attack(accuracy=better[one["canife.loss"], one["canife.pool"]]))])])
                for one in settings
            )
        )
    )
    # Of six orders of two and two, two have ranks as high as 4 and 2.
    assert found.finding.startswith("accuracy: covariance 0.9, 0.7, mean 0.8, 0.6 (p = 0.33): inconclusive; not stated")
    assert canife_rules.losses(made(cell(settings[0], [training([(1, attack())])] * 3))) is None


def test_a_norm_constant_at_the_border_is_not_above_it():
    settings = [{"canife.norm_constant": c} for c in (10.0, 50.0, 100.0, 600.0, 1000.0)]
    found = canife_rules.norm_constants(
        50,
        600,
        made(
            *(
                cell(one, [training([(1, attack(accuracy=1 / one["canife.norm_constant"], health=0.9))])] * 2)
                for one in settings
            )
        ),
    )
    # Four to 50, which are above all six others: one order of 210, by the normal law for ties.
    numbers = [[0.1, 0.1, 0.02, 0.02], [0.01] * 2 + [1 / 600] * 2 + [0.001] * 2]
    p_value = stats.mannwhitneyu(*numbers, alternative="greater").pvalue
    shown = [f"{np.mean(values):.4g} ± {stats.tstd(values):.2g} in {len(values)}" for values in numbers]
    assert f"accuracy to 50 {shown[0]}, above {shown[1]} (p = {p_value:.2g})" in found.finding
    assert "health to 600 0.9 ± 0 in 8, above 0.9, 0.9 (p = " in found.finding
    assert (
        canife_rules.norm_constants(50, 1000, made(*(cell(one, [training([(1, attack())])]) for one in settings)))
        is None
    )


@pytest.mark.parametrize(
    "rule",
    [
        partial(canife_rules.far_below, ("50",)),
        partial(canife_rules.gap, "4", "5"),
        partial(canife_rules.health, (("0.97", 0),)),
        canife_rules.settles,
        canife_rules.at_its_bound,
        partial(canife_rules.goes_with_accuracy, ("inf",)),
        partial(canife_rules.model_accuracy, "60", "50"),
        partial(canife_rules.histogram_deviation, "0.4", "0"),
        canife_rules.clients_and_pools,
        canife_rules.start_and_pool,
        partial(canife_rules.design_steps, ((1000, "0.95"),)),
        canife_rules.losses,
        canife_rules.falls_with_clients,
        partial(canife_rules.norm_constants, 50, 600),
    ],
)
def test_what_has_no_cell_of_its_own_or_no_audit_decides_nothing(rule):
    settings = {"training.epsilon": 30.0, "training.cohort": 100, "canife.norm_constant": 1.0}
    assert rule(made(cell(settings, [TrainingRecord(1, 0.6, None, (), None)]))) is None
    # Without an audit, cells of the rule's own decide no more.
    settings |= {"training.epsilon": 50.0, "canife.pool": 512}
    own = [
        cell(settings | {"training.noise_multiplier": noise}, [training([], composed=None)], noise)
        for noise in (0.0, 0.5)
    ]
    assert rule(made(*own)) is None or getattr(rule, "func", None) is canife_rules.model_accuracy


def measured_rows(*verdicts, ids="final.section5.4.ours", verdict=QUALIFIED):
    """Rows of a benchmark, a reading each of one training."""
    rows = tuple(
        PrintedReading(
            ids, "6.76 ± 1.06", "a training", f"method {i}", SpreadRecord(1.0, 0.1, 0), one, verdict, f"finding {i}"
        )
        for i, one in enumerate(verdicts)
    )
    return SimpleNamespace(printed=PrintedRecord(True, LEVEL, rows))


def test_a_benchmark_is_told_training_by_training():
    record = measured_rows(REFUTED, CONFIRMED, ids="final.section5.4.canife, submission.appendixH.canife")
    for name in ("final.section5.4.canife", "submission.appendixH.canife"):
        found = canife_rules.benchmark_reading(name, record)
        told = "a training: method 0 refuted (finding 0), method 1 confirmed (finding 1)"
        assert found.finding == f"{told}; {canife_rules._NOT_STATED}"
        assert found.verdict is QUALIFIED
        readings = {"a training: method 0": "refuted", "a training: method 1": "confirmed"}
        assert found.evidence == {"readings": readings}
    assert canife_rules.benchmark_reading("final.section5.4", record) is None
    assert canife_rules.benchmark_reading("x", SimpleNamespace(printed=None)) is None
    open_one = measured_rows(REFUTED, verdict=INCONCLUSIVE)
    found = canife_rules.benchmark_reading("final.section5.4.ours", open_one)
    assert found.finding.startswith("no one training gives all numbers of the section: a training: ")


def test_another_shuffled_epoch_stands_beside_the_benchmark():
    def repetition(value):
        one = SimpleNamespace(estimates={"fitted": SimpleNamespace(epsilon=value)})
        return SimpleNamespace(audits={"all": {}}, audit={"all": one}.__getitem__)

    name, values = "final.section5.4.ours", sample(12.0, 1.06, 10)
    trained = made(SimpleNamespace(results=[repetition(value) for value in values]))
    _, finding = compared(values, 6.76, 1.06, math.inf)
    record = measured_rows(REFUTED, verdict=INCONCLUSIVE)
    found, before = canife_rules.one_shot(name, record, trained), canife_rules.benchmark_reading(name, record)
    assert found.verdict is before.verdict
    shown = prediction.shown(values)
    assert found.finding == f"{before.finding}; in another shuffled epoch {shown} ({finding}): refuted"
    assert found.evidence == {"shuffled": list(values), **before.evidence}
    assert canife_rules.one_shot(name, SimpleNamespace(printed=None), trained) is None
    assert canife_rules.one_shot(name, measured_rows(REFUTED), made(*trained.cells, *trained.cells)) is None
    without = made(SimpleNamespace(results=[SimpleNamespace(audits=None)]))
    assert canife_rules.one_shot(name, measured_rows(REFUTED), without) is None


PLAN = SimpleNamespace(delta=1e-5, scores=(100,), audited=(10, 20), rounds=20, every=10, sampling=0.01)


def run(canife=3.0, fitted=170.0, bound=5.0, *, distance=3.0, seen=False):
    """A training of the benchmark: ε̂ of CANIFE's rounds, Algorithm 3's estimate and bound."""
    estimates = {"fitted": SimpleNamespace(epsilon=fitted), "pinned": SimpleNamespace(epsilon=fitted / 10.0)}
    bounds = {"andrew": SimpleNamespace(value=bound), "fixed-sequence": SimpleNamespace(value=bound - 1.0)}
    every = SimpleNamespace(estimates=estimates, bounds=bounds, distance=distance)
    audit = SimpleNamespace(attacks=[SimpleNamespace(epsilon=SimpleNamespace(capped=SimpleNamespace(epsilon=canife)))])
    return SimpleNamespace(
        oneshot={"all": {"unobserved": every}, "final": {"exact": every}, "change": {"exact": every}},
        canife={"as printed": (audit, audit)},
        seen=every if seen else None,
    )


@pytest.mark.parametrize("fashion", [True, False])
def test_rows_of_a_benchmark_are_of_whole_trainings(monkeypatch, fashion):
    for name in ("composed", "code_epsilon"):
        monkeypatch.setattr(canife_rules.canife_methods, name, lambda epsilons, *_: 0.1 * epsilons[0])
    draws = sample(0.0, 1.0, 10)
    poisson = [run(8.79 + 1.24 * x, 67.6 + 10.6 * x, 5.0 + x, seen=True) for x in draws]
    shuffled = [run(8.79 + 1.24 * x, 6.76 + 1.06 * x, 5.0 + x) for x in draws]
    monkeypatch.setattr(canife_rules.canife_methods, "largest_round", lambda *_: 200.0)
    scenarios = [(66.3, poisson), (33.1, shuffled)]
    rows = canife_rules.claims(scenarios, ("Poisson samples", "shuffled epoch"), PLAN, fashion)
    trainings = list(dict.fromkeys(row.training for row in rows if "ours" in row.id))
    assert trainings == [
        "Poisson samples, all inserted canaries (ε = 66.3)",
        "Poisson samples, canaries that took part (ε = 66.3)",
        "shuffled epoch (ε = 33.1)",
    ]
    by_claim = {row.id for row in rows}
    assert by_claim == {
        "final.section5.4.canife, submission.appendixH.canife",
        "final.section5.4.ours, submission.appendixH.canaries",
        "review.canife.bound",
    }
    # CANIFE's audits are the same whoever counts as seen, and bounds are of all.
    assert {row.training for row in rows if "appendixH.canife" in row.id} == {trainings[0], trainings[2]}
    if not fashion:
        assert {(row.reading, row.verdict, row.finding) for row in rows} == {(NEEDS_DATA, NEEDS_DATA, "")}
        return
    # The shuffled epoch has both numbers and the analytical ε; Poisson samples have them by ``pinned``, at another ε.
    first = {(row.training, row.method): row.reading for row in rows}
    assert first[trainings[2], "Algorithm 3"] is CONFIRMED
    assert first[trainings[0], "Algorithm 3"] is REFUTED
    assert first[trainings[0], "Algorithm 3: pinned"] is CONFIRMED
    assert {row.verdict for row in rows if row.id != "review.canife.bound"} == {CONFIRMED}
    units = next(row for row in rows if row.method == "Algorithm 3: mean in the null's deviations")
    assert units.epsilon.mean == pytest.approx(float(gaussian_mechanism.epsilon(1e-5, 1.0 / 3.0)), rel=1e-9)
    alone = canife_rules.claims(scenarios[:1], ("Poisson samples",), PLAN, fashion)
    assert {row.verdict for row in alone if row.id != "review.canife.bound"} == {INCONCLUSIVE}
    over = [row for row in rows if row.id == "review.canife.bound"]
    assert {row.reading for row in over} == {CONFIRMED} == {row.verdict for row in over}
    assert [row.method for row in over[:2]] == [
        "andrew − CANIFE as printed", "andrew − CANIFE as printed, conversion at 1/n",
    ]  # fmt: skip


def test_what_is_said_of_a_difference_and_of_a_printed_mean():
    for values in ([2.0], [2.0, math.inf], [2.0, math.nan]):
        assert positive(values) == (INCONCLUSIVE, "one training, or an infinite number")
    assert positive([2.0, 2.0]) == (INCONCLUSIVE, "equal in all trainings")
    values = sample(2.0, 0.5, 4)
    # Student's statistic of four is 2/(0.5/2).
    assert positive(values) == (INCONCLUSIVE, f"p = {stats.t.sf(8.0, 3):.2g} that it is not")
    assert compared([2.0], 2.0, 0.5, 9.0) == (INCONCLUSIVE, "one training")
    assert compared([2.0, math.inf, math.inf], 2.0, 0.5, 9.0) == (REFUTED, "infinite in 2")
    assert compared([2.0], 9.1, 0.5, 9.0) == (REFUTED, "the cap is 9")
    welch = stats.ttest_ind(values, sample(2.5, 1.0, 4), equal_var=False).pvalue
    # Variances of a ratio of four.
    ratio = 2.0 * stats.f.sf(4.0, 3, 3)
    _, finding = compared(values, 2.5, 1.0, 9.0)
    assert finding.startswith(f"p = {welch:.2g} for the mean, {ratio:.2g} for the deviation; a shift of ")
    alike = compared([2.0] * 4, 2.5, 1.0, 9.0)
    assert alike[0] is INCONCLUSIVE
    assert " for the deviation" not in alike[1]


@pytest.mark.parametrize(("mean", "verdict"), [(1.001, CONFIRMED), (0.999, INCONCLUSIVE)])
def test_a_printed_mean_tells_where_it_could_be_distinguished_from_half_of_it(mean, verdict):
    runs, values = 10, sample(1.0, 0.3, 10)
    # A shift of two samples' mean that a test at a quarter of the level, of one side, notices with nine tenths.
    critical, root = stats.t.isf(0.25 * LEVEL, 2 * runs - 2), math.sqrt(runs / 2)
    visible = optimize.brentq(lambda x: stats.nct.sf(critical, 2 * runs - 2, x * root) - 0.9, 0.1, 20.0)
    assert compared(values, mean, 0.5 / visible, math.inf)[0] is verdict
