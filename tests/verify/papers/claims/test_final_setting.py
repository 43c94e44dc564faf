"""Faults in the final version's text and sizes that must change the verdicts."""

import math

import pytest
from scipy import stats

from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims import final_setting
from canaryproof.verify.papers.claims.transcripts import Final


def test_largest_bound_is_the_closed_form():
    limit = 1.0 - 0.05 ** (1.0 / 500.0)
    low, high = final_setting.largest_bound(1000)
    assert low <= math.log((1.0 - limit) / limit) <= high or low == pytest.approx(math.log((1.0 - limit) / limit))


def test_few_dimensions_are_not_orthogonal():
    assert final_setting.judge_orthogonal({"small": 10_000}).verdict is Verdict.REFUTED
    assert final_setting.judge_orthogonal_to_clients({"EMNIST": 10_000}).verdict is Verdict.REFUTED


def test_assumptions_in_another_order_are_refuted():
    rows = Final.TABLE_1["federated"]
    assert final_setting.judge_assumptions({"two": rows[:2]}).verdict is Verdict.CONFIRMED
    assert final_setting.judge_assumptions({"two": rows[1::-1]}).verdict is Verdict.REFUTED
    assert final_setting.judge_assumptions({"all": rows}).verdict is Verdict.QUALIFIED
    # A canary that must give rise to its update needs less than one that may be any.
    assert final_setting.judge_assumptions().evidence["without_order"][-1] == "Algorithm 3 and CANIFE"


def test_epoch():
    assert final_setting.judge_epoch("342k").verdict is Verdict.CONFIRMED
    assert final_setting.judge_epoch("341k").evidence["places"] == 342_016
    # A misprint with an evident reading is named, and no confirmation.
    misprinted = final_setting.judge_epoch("342k", "34k")
    assert misprinted.verdict is Verdict.QUALIFIED
    assert misprinted.finding.startswith("only if 34k is a misprint of 342k: ")


def test_rounds_of_emnist():
    assert final_setting.judge_emnist_rounds("510").verdict is Verdict.CONFIRMED


def test_size_of_emnist():
    assert final_setting.judge_emnist_size("749k", 3400).verdict is Verdict.CONFIRMED
    assert final_setting.judge_emnist_size("383k").verdict is Verdict.CONFIRMED


def test_parameters_are_those_of_reddi_et_al():
    assert final_setting.lstm_parameters(10_004) == 4_050_748
    assert final_setting.cnn_parameters(10) == 1_199_882


def test_another_split_of_the_canaries_is_refuted():
    assert final_setting.judge_trainings("1000", repetitions=40).verdict is Verdict.REFUTED
    assert final_setting.judge_canaries("1000", 10, 90).verdict is Verdict.REFUTED
    assert final_setting.judge_canaries("1000", 5, 200).verdict is Verdict.REFUTED
    assert final_setting.judge_posterior("0.94", epsilon="4").verdict is Verdict.REFUTED


def test_audits_farther_apart_than_an_epoch_are_refuted():
    assert final_setting.judge_audits(every=469).verdict is Verdict.REFUTED
    assert final_setting.judge_audits(every=468).evidence["audits"] == 1


@pytest.mark.parametrize("fault", [{"pool": 256}, {"iterations": 3000}, {"every": 50}, {"scores": 64}])
def test_settings_that_canife_does_not_print_are_refuted(fault):
    assert final_setting.judge_canife_settings(**fault).verdict is Verdict.REFUTED


def test_a_faultless_attack_on_so_many_models_as_said_certifies_epsilon_and_on_two_fewer_does_not():
    # Clopper and Pearson's limits of both rates, each of half of the models, without an error.
    def certified(models):
        limit = stats.beta.ppf(0.95, 1, models // 2)
        return math.log((1.0 - limit) / limit)

    for epsilon, models in final_setting._judge_retrainings().evidence["needed"].items():
        assert certified(models - 2) < epsilon <= certified(models)
