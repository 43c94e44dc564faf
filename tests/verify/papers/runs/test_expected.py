from dataclasses import replace

import pytest

from canaryproof.verify.papers.check.results import Effort, Result, Run, Subject, Verdict
from canaryproof.verify.papers.check.verdicts import is_fixed
from canaryproof.verify.papers.runs.expected import (
    changes,
    read,
    read_findings,
    read_statements,
    updated,
    updated_findings,
)
from canaryproof.verify.papers.runs.plan import load


def result(name, verdict=Verdict.CONFIRMED, suite="claims", subject=Subject.DOCUMENT):
    return Result(name, suite, subject, "a source", "a statement", verdict, "a finding", {})


RUN = Run(
    "0", Effort.QUICK, 0, (result("b"), result("a", Verdict.REFUTED), result("own", subject=Subject.IMPLEMENTATION))
)
SUITES = ("claims",)
EXPECTED = {("claims", "a"): Verdict.REFUTED, ("claims", "b"): Verdict.CONFIRMED}


def test_what_is_expected_is_no_change():
    assert changes(RUN, EXPECTED, SUITES) == []


def test_a_changed_verdict_is_named_with_its_reason():
    assert changes(RUN, {**EXPECTED, ("claims", "b"): Verdict.QUALIFIED}, SUITES) == [
        "b: expected qualified, found confirmed: a finding"
    ]


@pytest.mark.parametrize("subject", Subject)
@pytest.mark.parametrize(
    ("found", "same"),
    [
        ("3 of 12 rows; p = 4.2e-05, at most 0.0042", True),
        # One unit of the last digit is how a last bit may round; a whole number is not rounded.
        ("3 of 12 rows; p = 4.3e-05, at most 0.0041", True),
        ("3 of 12 rows; p = 4.4e-05, at most 0.0042", False),
        ("3 of 12 rows; p = 4.2e-06, at most 0.0042", False),
        ("3 of 12 rows; p = 4.2e-05, at most 0.0044", False),
        ("4 of 12 rows; p = 4.2e-05, at most 0.0042", False),
        ("3 of 12 rows; p = 4.2e-05, at least 0.0042", False),
        ("3 of 12 rows; p = 4.2e-05, at most 0.0042, 0.1", False),
    ],
)
def test_a_changed_finding_is_named(found, same, subject):
    sentence = "3 of 12 rows; p = 4.2e-05, at most 0.0042"
    run = replace(RUN, results=(replace(result("a", subject=subject), finding=found), result("b")))
    expected = {("claims", name): Verdict.CONFIRMED for name in "ab"}
    named = [] if same else [f'a: expected the finding "{sentence}", found "{found}"']
    assert changes(run, expected, SUITES, findings={"a": sentence}) == named


def test_data_may_decide_what_needed_data_and_nothing_else():
    expected = {("claims", "a"): Verdict.NEEDS_DATA, ("claims", "b"): Verdict.QUALIFIED}
    lines = ["a: expected needs-data, found refuted: a finding", "b: expected qualified, found confirmed: a finding"]
    # In the order of the run.
    assert changes(RUN, expected, SUITES) == lines[::-1]
    assert changes(RUN, expected, SUITES, with_data=True) == lines[1:]


def test_a_new_statement_must_be_expected():
    assert changes(RUN, {("claims", "a"): Verdict.REFUTED}, SUITES) == [
        "b: not in expected_verdicts.csv, found confirmed: a finding"
    ]
    assert len(changes(RUN, {("other", "a"): Verdict.REFUTED, ("claims", "b"): Verdict.CONFIRMED}, SUITES)) == 1


def test_a_statement_that_is_judged_no_more_is_named():
    lost = {**EXPECTED, ("claims", "c"): Verdict.CONFIRMED}
    assert changes(RUN, lost, SUITES) == ["c: in expected_verdicts.csv, but no check judges it"]


def test_suites_that_did_not_run_are_not_missed():
    assert changes(RUN, {**EXPECTED, ("other", "c"): Verdict.CONFIRMED}, SUITES) == []


def test_a_suite_that_was_lost_whole_is_missed():
    expected = {**EXPECTED, ("empty", "c"): Verdict.CONFIRMED}
    assert changes(RUN, expected, ("claims", "empty")) == ["c: in expected_verdicts.csv, but no check judges it"]


def test_an_update_replaces_what_was_judged_and_forgets_what_is_gone():
    before = {("other", "x"): Verdict.CONFIRMED, ("claims", "b"): Verdict.REFUTED, ("claims", "gone"): Verdict.REFUTED}
    text = updated(RUN.results, before, {("other", "x"): "x, as said", ("claims", "b"): "former"})
    rows = ("claims,a,refuted,a statement", "claims,b,confirmed,a statement", 'other,x,confirmed,"x, as said"')
    assert text.splitlines() == ["suite,id,verdict,statement", *rows]
    assert read_statements(text)["other", "x"] == "x, as said"
    assert changes(RUN, read(text), SUITES) == []


def test_an_update_has_the_findings_that_are_the_same_in_each_run():
    text = updated_findings(
        RUN.results, {"a": "another finding", "x": 'one with a comma, and "marks"', "gone": "x"}, {"a", "x"}
    )
    assert read_findings(text) == {"a": "a finding", "x": 'one with a comma, and "marks"'}


HEADER = "suite,id,verdict,statement\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("suite,id\n", "columns must be suite, id, verdict, statement"),
        (HEADER + "a,b,maybe,c\n", "maybe"),
        (HEADER + "a,b\n", "not enough values"),
        (HEADER + "a,b,refuted,c\n" * 2, "are there twice"),
    ],
)
def test_a_damaged_table_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id\n", "columns must be id, finding"),
        ("id,finding\na\n", "length 1"),
        ("id,finding\n" + "a,b\n" * 2, "is there twice"),
    ],
)
def test_a_damaged_table_of_findings_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_findings(text)


def test_the_table_of_findings_has_exactly_the_checks_that_follow_from_print():
    suites = load("canaryproof.verify.papers.suites.catalogue:SUITES").values()
    assert read_findings().keys() == {check.id for checks in suites for check in checks if is_fixed(check.judge)}
    assert len(read_findings()) > 250


def test_the_table_has_exactly_the_documents_statements():
    suites = load("canaryproof.verify.papers.suites.catalogue:SUITES")
    found = {(name, c.id): c.statement for name, cs in suites.items() for c in cs if c.subject is Subject.DOCUMENT}
    assert read().keys() == found.keys()
    assert read_statements() == found, "make published CHECKS=ID writes a changed statement"
