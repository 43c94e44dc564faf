import pytest

from canaryproof.verify.blindspots import alarms, mechanisms
from canaryproof.verify.check.results import Context, Level, Subject, Verdict
from canaryproof.verify.suites import blindspots as claims

CONTEXT = Context(Level.QUICK, 7)
QUALIFIED = {"final.section4.any-user", "final.section4.same-distribution", "v1.section4.worst-case", "review.laplace"}
REFUTED = {"final.section6.refutation", "v1.section4.unusual"}


@pytest.mark.parametrize("check", claims.CHECKS, ids=lambda check: check.id)
def test_the_documents_sentences_are_judged(check, quick_run):
    assert check.subject is Subject.DOCUMENT
    verdict = quick_run.results[check.id].verdict
    if check.id in QUALIFIED:
        assert verdict is Verdict.QUALIFIED
    elif check.id in REFUTED:
        assert verdict is Verdict.REFUTED
    else:
        assert verdict is Verdict.CONFIRMED


@pytest.mark.parametrize("check", claims.CHECKS, ids=lambda check: check.id)
def test_nothing_is_said_where_faults_are_seen_in_half_of_the_audits(check, monkeypatch):
    monkeypatch.setattr(alarms, "alarms_of", lambda _m, _v, _c, size, _k: size.runs // 2)
    assert check.judge(CONTEXT).verdict is Verdict.INCONCLUSIVE


def test_no_refutation_without_an_attack_that_wins(monkeypatch):
    monkeypatch.setattr(mechanisms, "accuses", lambda releases, *_: (releases == releases).all(axis=-1))
    won = claims.attack(CONTEXT)
    assert won["with"] == won["without"] == won["releases"]
    assert claims._refutation(CONTEXT).verdict is Verdict.INCONCLUSIVE


def test_a_missed_fault_is_told_from_one_that_is_seen():
    missed, seen, between = claims.measured(CONTEXT, (("unclipped", 10.0), ("less-noise", 0.5), ("less-noise", 0.9)))
    assert [row["outcome"] for row in (missed, seen, between)] == ["missed", "seen", "between"]
