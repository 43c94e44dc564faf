import pytest

from canaryproof.proofs_check.displayed_lines import Kind, displayed, held, judged, kind_of, line
from canaryproof.verify.papers.check.results import Context, Effort, Outcome, Subject, Verdict


def test_held_is_exact_only_if_all_facts_hold():
    assert held(True, "found.") == Outcome(Verdict.CONFIRMED, "found.", {"kind": "exact", "holds": True})
    both = held({"a": True, "b": True}, "found.", number=3)
    assert both.evidence == {"kind": "exact", "a": True, "b": True, "number": 3}
    failed = held({"a": True, "the other": False}, "found.", Kind.WRONG_TERM)
    assert kind_of(failed) is Kind.WRONG_TERM
    assert "the other" in failed.finding
    assert kind_of(held(False, "found.")) is Kind.FALSE


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (Kind.EXACT, Verdict.CONFIRMED),
        (Kind.LEADING_ORDER, Verdict.QUALIFIED),
        (Kind.HYPOTHESIS, Verdict.QUALIFIED),
        (Kind.WRONG_TERM, Verdict.REFUTED),
        (Kind.FALSE, Verdict.REFUTED),
    ],
)
@pytest.mark.parametrize("ours", [True, False])
def test_kinds_become_verdicts(kind, verdict, ours):
    check = line("final.x", "a place", "a statement", lambda: judged(kind, "found", {"a": 1}), "a display", 2, own=ours)
    assert check.subject is (Subject.IMPLEMENTATION if ours else Subject.DOCUMENT)
    assert displayed(check) == ("a display", 2)
    outcome = check.judge(Context(Effort.QUICK, 0))
    assert outcome.verdict is verdict
    assert list(outcome.evidence.items()) == [("kind", str(kind)), ("a", 1), ("display", "a display"), ("row", 2)]


def test_the_source_is_the_document_of_the_id():
    check = line("v1.x", "Section 3", "A statement", lambda: held(True, "found"))
    assert check.source == "Andrew et al., arXiv 2302.03098, first version, Section 3"
    assert line("ours.x", "here", "A statement", lambda: held(True, "found"), own=True).source == "here"


def test_prose_is_of_no_display():
    check = line("final.x", "a place", "a statement", lambda: held(True, "found"))
    assert displayed(check) is None
    assert check.judge(Context(Effort.QUICK, 0)).evidence == {"kind": "exact", "holds": True}


def test_a_line_that_rests_on_another_has_a_kind_of_its_own():
    other = held(False, "found", number=1)
    found = judged(Kind.HYPOTHESIS, "found", other.evidence)
    assert list(found.evidence.items()) == [("kind", str(Kind.HYPOTHESIS)), ("holds", False), ("number", 1)]
