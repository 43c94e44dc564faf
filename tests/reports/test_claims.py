from dataclasses import replace

import pytest
from made_up import claim

from canaryproof.reports.claims import described, documents, findings, number, page_name, rule, text
from canaryproof.reports.html import tables
from canaryproof.reports.pages import render
from canaryproof.verify.check.results import Level, Result, Run, Subject, Verdict


def result(name, verdict, suite="claims", **evidence):
    return Result(name, suite, Subject.DOCUMENT, f"place of {name}", f"says {name}", verdict, f"found {name}", evidence)


RUN = Run(
    "0",
    Level.QUICK,
    0,
    (
        result("canife.a", Verdict.NEEDS_DATA),
        result("final.a", Verdict.CONFIRMED),
        result("final.line", Verdict.CONFIRMED, "theorems", kind="exact"),
        result("final.b", Verdict.REFUTED),
        result("elsewhere.a", Verdict.QUALIFIED),
        Result("ours.a", "claims", Subject.IMPLEMENTATION, "", "", Verdict.CONFIRMED, "", {}),
    ),
)


def test_documents_come_in_their_order():
    assert documents(RUN) == ["final", "canife", "elsewhere"]


def test_a_page_has_all_of_its_document_and_nothing_else():
    page = text(RUN, "final")
    row = '| <a id="final.b"></a>`final.b` | place of final.b | says final.b | found final.b |'
    assert page.index(row) < page.index("`final.a` |")
    assert "canife.a" not in page
    assert "final.line" not in page
    assert "1 lines of proofs more are confirmed" in page
    assert "| confirmed | 2 | holds as printed |" in page


def test_the_rule_of_a_printed_number_has_its_reading_and_all_digits():
    judged = {"printed": "0.081", "reading": "cut", "value": 0.08154296875, "why": "qualified: cut"}
    one = result("final.c", Verdict.QUALIFIED, rule=judged)
    assert rule(one) == "qualified: cut; printed 0.081, computed 0.08154296875 (cut)"
    assert "| found final.c. Rule: qualified: cut; printed" in text(replace(RUN, results=(one,)), "final")
    enclosed = result("final.c", Verdict.CONFIRMED, rule=judged | {"value": [1.0, 1.0000000000000002]})
    assert "computed [1.0, 1.0000000000000002]" in rule(enclosed)


def test_the_rule_of_a_sentence_is_that_of_its_verdict():
    assert rule(result("final.b", Verdict.REFUTED)) == (
        "refuted: false as printed under every reading; what is true is given"
    )


def test_the_summary_counts_by_document_and_links():
    page = render(RUN)["summary.md"].decode()
    assert "| [Andrew et al., final version](claims-final.md) | 2 | 0 | 1 | 0 | 0 | 3 |" in page
    assert "| [elsewhere](claims-elsewhere.md) | 0 | 1 | 0 | 0 | 0 | 1 |" in page


def test_no_name_leads_out_of_the_folder():
    assert page_name("../x") == "claims----x.md"


def rows(evidence, room=10_000):
    return [found for _, found in tables(described(evidence, "results[0].evidence", room))]


def test_single_values_stand_in_one_line_and_rows_in_a_table():
    evidence = {"runs": 12345, "deep": {"a": {"b": 0.5}, "c": 2}, "cells": [{"d": 10, "ε": 1.0}, {"d": 100, "k": True}]}
    found = rows(evidence)
    assert described(evidence, "", 1000).splitlines()[0] == "runs: 12,345; deep · a · b: 0.5; deep · c: 2"
    assert found == [(("10", "1", ""), ("100", "", "yes"))]


def test_objects_of_objects_are_tables_whose_names_come_first():
    assert rows({"readings": {"pinned": {"mean": 3.0}, "fitted": {"mean": 3.4}}}) == [
        (("pinned", "3"), ("fitted", "3.4"))
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1 / 3, "0.333333"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
        (float("nan"), "nan"),
        (None, "–"),
        (False, "no"),
        (10**20, "100,000,000,000,000,000,000"),
    ],
)
def test_values_are_readable(value, shown):
    assert number(value) == shown


def test_enclosures_keep_all_digits_and_intervals_do_not():
    found = rows({"cells": [{"narrow": [4.224678889326835, 4.224678889326836], "wide": [0.123456789, 0.3]}]})
    assert found == [(("[4.224678889326835, 4.224678889326836]", "[0.123457, 0.3]"),)]


def test_what_is_long_is_cut_and_pointed_to():
    text = described({"rows": [{"i": i} for i in range(1000)], "list": list(range(50))}, "results[7].evidence", 400)
    assert "results[7].evidence" in text
    assert ", … (50)" in text
    assert len(text) < 1500


def test_marks_are_text():
    ((row,),) = rows({"x": [{"a|b": "a|b", "c": "*x* _y_ <b>z</b> [l](http://x) `c`\n\n# h ![p](http://p) \\"}]})
    assert row == ("a|b", "*x* _y_ <b>z</b> [l](http://x) `c` # h ![p](http://p) \\")


def test_what_the_chapters_show_is_not_repeated():
    assert described({"convergence": [{"x": [1]}]}, "", 100) == ""


def names(*results):
    return [result.id for result in findings(Run("0", Level.QUICK, 0, results))]


def test_a_line_on_the_way_comes_last_and_each_suite_speaks_first(results):
    assert names(*results) == ["final.footnote", "final.tight", "final.line"]


def test_refuted_comes_before_qualified_and_others_never():
    some = claim("v1.a", Verdict.QUALIFIED), claim("v1.b", Verdict.REFUTED), claim("v1.c"), claim("ours.a")
    assert names(*some) == ["v1.b", "v1.a"]


def test_the_final_version_comes_first_and_what_is_of_no_privacy_later():
    some = (
        claim("canife.a", Verdict.REFUTED, statement="ε is large"),
        claim("final.a", Verdict.REFUTED, statement="there are 47 classes"),
        claim("final.b", Verdict.REFUTED, statement="the loss of privacy is small"),
    )
    assert names(*some) == ["final.b", "canife.a", "final.a"]


def test_a_second_finding_of_a_suite_waits_for_the_others():
    some = [claim(f"final.{i}", Verdict.REFUTED, "claims", "ε") for i in range(3)]
    assert names(*some, claim("bounds.a", Verdict.REFUTED, "bounds", "ε")) == ["final.0", "bounds.a", "final.1"]
