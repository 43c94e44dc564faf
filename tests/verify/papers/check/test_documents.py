from types import SimpleNamespace

import pytest

from canaryproof.verify.papers.check.documents import Voice, distinct, voice
from canaryproof.verify.papers.check.results import Subject, Verdict
from canaryproof.verify.papers.claims import CHECKS


def result(name, statement="it holds", verdict=Verdict.CONFIRMED, subject=Subject.DOCUMENT, source="Section 1"):
    return SimpleNamespace(id=name, statement=statement, verdict=verdict, subject=subject, source=source)


@pytest.mark.parametrize(
    ("name", "source", "speaker"),
    [
        ("final.table1", "reviewer LDHu", Voice.DOCUMENT),
        ("review.promise.sweep", "authors' answers to reviewer LDHu", Voice.PROMISE),
        ("review.canife.bound", "authors' answers to reviewer ZyjW and zCeQ", Voice.DOCUMENT),
        ("review.sweep.d10k.epsilon1", "authors' answer, sweep over d", Voice.DOCUMENT),
        ("review.references.steinke", "reviewer ZyjW", Voice.REVIEWER),
        ("canife.study.start", "Section 4.3", Voice.ANALOGUE),
        ("canife.figure5.a", "Figure 5a", Voice.DOCUMENT),
    ],
)
def test_who_speaks(name, source, speaker):
    assert voice(result(name, source=source)) is speaker


def test_what_versions_state_in_the_same_words_is_one_statement():
    found = distinct(
        [
            result("final.a"),
            result("v1.a"),
            result("submission.a", verdict=Verdict.QUALIFIED),
            result("final.b", "it does not"),
            result("review.promise.a"),
            result("canife.study.a"),
            result("review.remark", source="reviewer ZyjW"),
            result("own", subject=Subject.IMPLEMENTATION),
        ]
    )
    assert [[place.id for place in places] for places in found.values()] == [
        ["final.a", "v1.a"], ["submission.a"], ["final.b"],
    ]  # fmt: skip


def test_no_remark_on_a_paper_is_refuted(quick_run):
    remarks = [check for check in CHECKS if check.subject is Subject.DOCUMENT and voice(check) is not Voice.DOCUMENT]
    assert len(remarks) > 10
    assert not [check.id for check in remarks if quick_run.results[check.id].verdict is Verdict.REFUTED]
