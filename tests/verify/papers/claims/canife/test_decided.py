"""Claims of CANIFE that a computation decides without its data."""

from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.claims.canife import composition
from canaryproof.verify.papers.claims.transcripts import Canife

CONTEXT = Context(Effort.QUICK, 0)


def test_estimate_and_accuracy_of_an_audit_rise_together():
    outcome = composition.judge_relationship(CONTEXT)
    assert outcome.verdict is Verdict.CONFIRMED
    assert 0.9 < outcome.evidence["correlation"] < 1.0


def test_celebas_estimate_is_beyond_the_cap_by_one_conversion():
    caps = composition.judge_reach_of_training(Canife.CELEBA, "6").evidence["caps"]
    assert min(caps.values()) < 3.0 < 6.0 < max(caps.values())
    assert composition.judge_reach_of_training(Canife.CELEBA, "6").verdict is Verdict.QUALIFIED
    assert composition.judge_reach_of_training(Canife.CELEBA, "20").verdict is Verdict.REFUTED


def test_fewer_clients_have_a_smaller_estimate():
    assert composition.judge_with_fewer_clients((100, 50)).verdict is Verdict.QUALIFIED
    assert composition.judge_with_fewer_clients((50, 100)).verdict is Verdict.REFUTED
