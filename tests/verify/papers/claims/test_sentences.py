"""Sentences without a table: each has a claim or a reason, and other numbers change the verdicts."""

from types import SimpleNamespace

import pytest
from scipy import stats

from canaryproof.verify.papers.check.results import Subject, Verdict
from canaryproof.verify.papers.claims import sentences
from canaryproof.verify.papers.suites.catalogue import SUITES

IDS = {check.id for suite in SUITES.values() for check in suite if check.subject is Subject.DOCUMENT}

# Sentences that a second reading of the documents found, and who judges them: claims, or a place without one.
READ = {
    "CANIFE composes an equivalent noise": ("final.section2.canife.noise", "submission.appendixF.canife.noise"),
    "CANIFE's accountant": ("final.section2.canife.accountant", "submission.appendixI.canife.accountant"),
    "CANIFE's mock clients": ("final.section2.canife.knowledge",),
    "who the auditors of Table 1 are": ("final.table1.algorithms", "final.table1.canife", "final.table1.order"),
    "other works in Table 1": (("final", "Table 1, the six rows of central training"),),
    "other works in Table 5": (("submission", "Table 5, the six rows of central training"),),
    "no a priori knowledge": tuple(f"{name}.abstract.a-priori" for name in ("final", "submission", "v1")),
    "the log domain": ("final.section3.2.log-domain", "submission.appendixB.log-domain"),
    "an iterate as a combination": ("final.section4.combination", "submission.section4.combination"),
    "an unobserved canary in federated learning": ("final.section4.unchanged",),
    "easier memorisation": ("final.section4.memorisation", "submission.section4.memorisation"),
    "the largest angle": ("final.section4.1.angle", "v1.section4.1.angle", "submission.section4.angle"),
    "no closed form": ("final.section4.1.closed-form", "v1.section4.1.closed-form", "submission.section4.closed-form"),
    "the exact CDF": ("final.section5.1.exact-cdf", "v1.section5.exact-cdf", "submission.section5.exact-cdf"),
    "shuffling": (("final", "footnote 5, tight bounds for shuffling are not known"),),
    "momentum": (
        ("final", "Section 5.2.1, a server momentum of 0.9"),
        ("submission", "Appendix D, a server momentum of 0.9"),
    ),
    "unanticipated aspects of training": ("final.section5.4.detects",),
    "CANIFE inverts and composes": ("final.section5.4.canife.inverts", "submission.appendixH.canife.inverts"),
    "the displayed ε of a threshold": ("v1.section4.displayed-epsilon",),
    "a positive cosine": ("v1.section4.positive",),
    "a small discrepancy": ("v1.theorem-3.2.discrepancy", "final.theorem-3.2.discrepancy"),
    "a subset of clients": ("v1.section2.canife.knowledge", "submission.appendixF.canife.knowledge"),
    "intervals that reduce variance": ("v1.section2.intervals",),
    "Section 3's inference": ("submission.section-3.inference", "submission.section-3.limit-law"),
    "footnote 2": ("submission.footnote-2",),
    "the proofs": ("submission.theorem-3.3.square-variance", "submission.appendix-b.cases"),
    "the only assumption": ("submission.section4.same-distribution",),
    "any given user": ("submission.section4.any-user", "v1.section4.1.any-user"),
    "an inaccurate estimate": ("submission.appendixH.canife.shuffled",),
    "critical values": ("submission.table4.critical-values",),
    "promises": tuple(
        f"review.promise.{name}"
        for name in (
            "accuracies", "sweep", "scheffe", "outside", "lower-bound", "laplace", "attacks", "theorem",
        )
    ),
    "references": ("review.references.same-paper", "review.references.steinke"),
    "a bound in one training run": ("review.one-training-run",),
    "CANIFE's words": (
        "canife.section4.3.correlated", "canife.figure8.a.sizes", "canife.figure8.c", "canife.figure9.enough",
        "canife.appendixF.stable",
    ),
}  # fmt: skip


@pytest.mark.parametrize("judges", READ.values(), ids=READ.keys())
def test_each_sentence_has_a_claim_or_a_reason(judges):
    for judge in judges:
        assert judge in (IDS if isinstance(judge, str) else sentences.UNJUDGED)


def test_each_reason_is_of_a_sentence_that_was_read():
    assert set(sentences.UNJUDGED) <= {judge for judges in READ.values() for judge in judges}
    assert all(sentences.UNJUDGED.values())


def test_other_numbers_have_other_verdicts():
    assert sentences.judge_log_domain("45800").verdict is Verdict.CONFIRMED
    assert sentences.judge_log_domain("382").verdict is Verdict.REFUTED


def test_the_largest_cosine_of_an_unobserved_canary_is_a_maximum_of_normal_draws():
    evidence = sentences.judge_closed_form(2).evidence
    assert evidence["mean"] == pytest.approx(0.5641896, abs=1e-6)
    assert evidence["deviation"] == pytest.approx(0.8256453, abs=1e-6)


@pytest.mark.parametrize(
    ("deviations", "verdict"),
    [
        ((2.01, 2.01, 2.01), Verdict.CONFIRMED),
        ((1.99, 2.01, 2.01), Verdict.QUALIFIED),
        ((1.99, 1.99, 2.01), Verdict.QUALIFIED),
        ((1.99, 1.99, 1.99), Verdict.REFUTED),
    ],
)
def test_more_influence_is_seen_beyond_two_deviations_of_the_estimate(monkeypatch, deviations, verdict):
    values = iter([3.0 + 0.1 * times for times in deviations])
    monkeypatch.setattr(sentences.distributions, "moments_fitted", lambda *_: (3.0, 0.1))
    monkeypatch.setattr(sentences, "epsilon_estimators", SimpleNamespace(both_directions=lambda *_: next(values)))
    assert sentences.judge_detects().verdict is verdict


@pytest.mark.parametrize(("miss", "verdict"), [(0.9e-6, Verdict.CONFIRMED), (1.1e-6, Verdict.QUALIFIED)])
def test_a_cosine_is_positive_but_for_a_millionth(monkeypatch, miss, verdict):
    noise = 1.0 / stats.norm.isf(miss)
    monkeypatch.setattr(sentences.Final, "TABLE_2_NOISE", (("1.0", f"{noise:.12f}"), ("3.0", "0.01")))
    assert sentences.judge_positive().verdict is verdict
