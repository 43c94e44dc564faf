"""The table of rules: each row of it, whatever else was found."""

import itertools

import pytest

from canaryproof.verify.audit.answer.findings import RULES, Finding, GateOutcome, Question, Status, decide

OF_THE_MECHANISM = [question for question in Question if question not in (Question.INPUT, Question.PLAN)]
ASKED = (Question.INPUT, Question.LEAK)


def found(**statuses):
    return [Finding(question, statuses.get(question.value, Status.AS_CLAIMED), "because") for question in Question]


def decided(asked=ASKED, **statuses):
    return decide(found(**statuses), asked, 0.05, 0.5)


def test_the_rules_have_the_statuses_of_a_gate():
    assert [(rule.outcome.value, rule.status) for rule in RULES] == [
        ("CANNOT SAY", 4),
        ("NOT PASSED", 1),
        ("CANNOT SAY", 3),
        ("PASSED", 0),
    ]


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("question", Question)
def test_one_answer_decides_by_the_first_rule_that_applies(question, status):
    decision = decided(**{question.value: status})
    if status is Status.FAILED:
        rule = {Question.INPUT: 4, Question.PLAN: 3}.get(question, 1)
    elif status is Status.AS_CLAIMED or question not in (*ASKED, Question.PLAN):
        rule = 0
    else:
        # A plan that was not given is not asked for.
        rule = 0 if (question, status) == (Question.PLAN, Status.NOT_LOOKED_AT) else 3
    assert decision.status == rule
    assert decision.rule == next(each.name for each in RULES if each.status == rule)


def test_a_wrong_input_comes_before_all_else_and_a_failure_before_what_is_open():
    for others in itertools.product(Status, repeat=3):
        rest = dict(zip(("noise", "leak", "plan"), others, strict=True))
        assert decided(input=Status.FAILED, **rest).status == 4
        assert decided(input=Status.CANNOT_SAY, sampling=Status.FAILED, **rest).status == 1


@pytest.mark.parametrize("question", OF_THE_MECHANISM)
def test_what_failed_is_never_passed_though_nobody_asks_for_it(question):
    decision = decided(asked=(), **{question.value: Status.FAILED})
    assert decision.outcome is GateOutcome.NOT_PASSED


@pytest.mark.parametrize("question", OF_THE_MECHANISM)
@pytest.mark.parametrize("status", [Status.CANNOT_SAY, Status.NOT_LOOKED_AT])
def test_an_open_question_counts_where_it_is_asked_for(question, status):
    assert decided(asked=(question,), **{question.value: status}).status == 3
    rest = tuple(each for each in OF_THE_MECHANISM if each is not question)
    assert decided(asked=rest, **{question.value: status}).status == 0


def test_a_question_without_a_finding_is_open():
    answered = [finding for finding in found() if finding.question is not Question.CLIPPING]
    assert decide(answered, (Question.CLIPPING,), 0.05, 0.5).status == 3
    assert decide(answered, ASKED, 0.05, 0.5).status == 0


def test_a_decision_says_what_it_was_made_by():
    decision = decide(found(), ("leak", "noise", "input"), 0.01, 0.8)
    assert (decision.asked, decision.level, decision.notice) == (("input", "noise", "leak"), 0.01, 0.8)
