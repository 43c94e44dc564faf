from fractions import Fraction

import pytest

from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims.canife import attack as canife_attack
from canaryproof.verify.papers.claims.canife import experiments as canife_experiments
from canaryproof.verify.papers.claims.transcripts import Canife, Task

ALTERED = Task("x", "X", 100, 8508, 30, 85, 2550, 1, 63)


def test_parameters_by_hand():
    # torchvision's count for ImageNet's thousand classes.
    assert canife_experiments.resnet18(1000) == 11_689_512
    # 3·9·32 + 32, thrice 32·9·32 + 32, one pair of 32, and 3·3·32 inputs to two classes.
    assert canife_experiments.four_layers(2, 32, 2, 1) == 896 + 3 * 9248 + 64 + 578
    assert canife_experiments.characters(80, 80) == 640 + 272_384 + 526_336 + 20_560
    assert canife_experiments.sentiment(101, 300) == 30_300 + 160_800 + 80_800 + 202


def test_the_number_of_classes_that_fits_is_confirmed():
    assert canife_experiments.judge_classes(819_920, "80").verdict is Verdict.CONFIRMED
    assert canife_experiments.judge_classes(819_921, "80").verdict is Verdict.INCONCLUSIVE


def test_a_canary_in_more_characters_than_there_are_classes_is_refuted(monkeypatch):
    assert len(set(canife_experiments.TABLE_1)) == len(canife_experiments.TABLE_1)
    monkeypatch.setattr(canife_experiments, "TABLE_1", "".join(map(chr, range(81))))
    assert canife_experiments.judge_classes(819_920, "80").verdict is Verdict.REFUTED


def test_altered_schedules_change_the_verdict():
    assert canife_experiments.judge_rounds(ALTERED).verdict is Verdict.REFUTED
    right = Task("x", "X", 100, 8408, 30, 85, 2550, 40, 63)
    assert canife_experiments.judge_audits(right).verdict is Verdict.CONFIRMED
    assert canife_experiments.judge_epochs(Canife.SHAKESPEARE, 15).verdict is Verdict.QUALIFIED
    assert canife_experiments.judge_epochs(Canife.SHAKESPEARE, 30).verdict is Verdict.CONFIRMED
    assert canife_experiments.judge_clients(100, Canife.TASKS).verdict is Verdict.REFUTED
    assert canife_experiments.judge_covered((ALTERED,)).verdict is Verdict.CONFIRMED
    everybody = Task("x", "X", 7, 7, 30, 1, 30, 1, 30)
    assert canife_experiments.judge_poisson((everybody,)).verdict is Verdict.CONFIRMED


def test_altered_counts_change_the_verdict():
    assert canife_experiments.judge_split(8409, 934, Fraction(9, 10), 9343, "X").verdict is Verdict.REFUTED
    assert canife_experiments.judge_split(50_000, 10_000, Fraction(5, 6), 70_000, "X").verdict is Verdict.QUALIFIED
    assert canife_experiments.judge_times("0.06", 2500, "150").verdict is Verdict.CONFIRMED
    assert canife_experiments.judge_times("0.08", 2500, "165").verdict is Verdict.REFUTED
    assert canife_experiments.judge_pool(20_000, 10_000).verdict is Verdict.REFUTED
    assert canife_experiments.judge_utility((Canife.SHAKESPEARE, Canife.SENT140)).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("spread", "late", "verdict"),
    [
        ("0.098", ("0.990", "0.01"), Verdict.CONFIRMED),
        # Possible over runs, and impossible over audits.
        ("0.06", ("0.990", "0.01"), Verdict.REFUTED),
        ("0.7", ("0.990", "0.01"), Verdict.REFUTED),
        # Impossible over runs, and early audits that would have to be above 1.
        ("0.098", ("0.990", "0.04"), Verdict.REFUTED),
        ("0.098", ("0.950", "0.01"), Verdict.REFUTED),
    ],
)
def test_a_spread_of_bounded_numbers_is_bounded(spread, late, verdict):
    assert canife_experiments.judge_healths(("0.970", spread), late, 1000).verdict is verdict


@pytest.mark.parametrize(
    ("rates", "verdict"),
    [({"A": "1"}, Verdict.CONFIRMED), ({"A": "2", "B": "0.5"}, Verdict.QUALIFIED), ({"A": "0.5"}, Verdict.REFUTED)],
)
def test_small_steps_do_not_reach_the_clip_norm(rates, verdict):
    assert canife_attack.judge_norm(rates).verdict is verdict


def test_times_are_in_proportion_to_the_iterations():
    found = canife_experiments._judge_minutes()
    assert found.evidence["minutes"] == pytest.approx(591.5 / 60)
    assert found.verdict is Verdict.CONFIRMED
