import math

import numpy as np
import pytest

from canaryproof.verify.check.results import Context, Level, Subject, Verdict
from canaryproof.verify.suites import canife, canife_trainings
from canaryproof.verify.suites.canife import CHECKS
from canaryproof.verify.suites.canife_trainings import Numbers

QUICK = Context(Level.QUICK, 0)
BY_ID = {check.id: check for check in CHECKS}
METHODS = ("canife-law", "algorithm-3", "algorithm-3-pinned", "final", "change", "change-fitted", "bound")


def trained(monkeypatch, factor, share=1.0):
    """Have numbers that a fault multiplies, in place of trainings."""

    def pairs(context, scenario, runs):
        rng = np.random.default_rng(context.key(scenario))
        without = {name: rng.lognormal(0.0, 0.5, runs) for name in METHODS}
        with_fault = {name: factor * values * rng.lognormal(0.0, 0.02, runs) for name, values in without.items()}
        ones = np.ones((runs, 4))
        return Numbers(without, ones, ones, ones), Numbers(with_fault, share * ones, ones, ones)

    monkeypatch.setattr(canife_trainings, "pairs", pairs)
    monkeypatch.setattr(canife_trainings, "rounds", lambda: 30)


@pytest.mark.parametrize("check", [check for check in CHECKS if check.id.startswith("comparison.")], ids=lambda c: c.id)
@pytest.mark.parametrize(
    ("factor", "moves"), [(3.0, "rises"), (0.3, "falls"), (1.0, "unmoved"), (1.25, "open"), (0.8, "open")]
)
def test_statements_of_ours_hold_for_what_they_say_alone(monkeypatch, check, factor, moves):
    if check.id.count(".") < 2 or check.id.endswith(".canife"):
        return
    trained(monkeypatch, factor)
    says = next(moved for word, moved in WORDS.items() if word in check.statement)
    found = check.judge(QUICK)
    assert check.subject is Subject.IMPLEMENTATION
    assert found.evidence["moves"] == moves
    expected = Verdict.INCONCLUSIVE if moves == "open" else Verdict.CONFIRMED if moves == says else Verdict.REFUTED
    assert found.verdict is expected


WORDS = {"notices that": "rises", "says less": "falls", "is blind": "unmoved"}


@pytest.mark.parametrize(
    ("share", "verdict"), [(1.0, Verdict.CONFIRMED), (0.2, Verdict.REFUTED), (0.8, Verdict.INCONCLUSIVE)]
)
@pytest.mark.parametrize("name", ["final.section5.4.canife.reused", "comparison.unclipped.canife"])
def test_a_cap_that_all_audits_reach_hides_a_fault(monkeypatch, share, verdict, name):
    trained(monkeypatch, 3.0, share)
    assert BY_ID[name].judge(QUICK).verdict is verdict


def test_canife_is_not_wrong_where_nothing_changes(monkeypatch):
    trained(monkeypatch, 1.0)
    monkeypatch.setattr(canife.accounting, "pld", lambda *_: 33.0)
    assert BY_ID["final.section5.4.canife.shuffled"].judge(QUICK).verdict is Verdict.REFUTED
    assert BY_ID["final.section5.4.canife.halved"].judge(QUICK).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(3.0, Verdict.CONFIRMED), (1.0, Verdict.QUALIFIED), (0.3, Verdict.QUALIFIED), (1.25, Verdict.INCONCLUSIVE)],
)
def test_what_random_canaries_detect(monkeypatch, factor, verdict):
    trained(monkeypatch, factor)
    for fault in ("shuffled", "reused", "halved"):
        assert BY_ID[f"final.section5.4.detects.{fault}"].judge(QUICK).verdict is verdict


def test_designs_are_declared(quick_run):
    for check in CHECKS:
        design = quick_run.results[check.id].design
        assert 0.0 < design.level <= 1e-6
        assert design.power >= 0.9
        assert design.runs >= 24
        assert "-" not in design.alternative.replace("e-", "")


def test_both_roads_of_a_canary_give_the_same_share_of_noise(quick_run):
    """With noise on half of the coordinates the law of a round has about √2 of the distance."""
    found = quick_run.results["comparison.halved.canife-law"].evidence["methods"]["canife-law"]
    assert 1.0 < found["factor"] < 3.0
    assert math.isfinite(found["limits"][1])
