import math
from dataclasses import replace

import pytest
from made_up import claim

from canaryproof.reports.claims import described, documents, findings, page_name, rule, scalar, text
from canaryproof.reports.html import tables
from canaryproof.reports.pages import render
from canaryproof.verify.papers.check.results import Effort, Result, Run, Subject, Verdict


def result(name, verdict, suite="claims", **evidence):
    return Result(name, suite, Subject.DOCUMENT, f"place of {name}", f"says {name}", verdict, f"found {name}", evidence)


RUN = Run(
    "0",
    Effort.QUICK,
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
    assert scalar(value) == shown


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
    return [result.id for result in findings(Run("0", Effort.QUICK, 0, results))]


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
    some = [claim(f"final.{i}", Verdict.REFUTED, "claims", f"ε is {i}") for i in range(3)]
    assert names(*some, claim("v1.a", Verdict.REFUTED, "bounds", "ε is 9")) == ["final.0", "v1.a", "final.1"]


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        # A millionth of the larger end is narrow, whatever its size and sign.
        ([4e6, 4000003.9999], "[4000000.0, 4000003.9999]"),
        ([4e6, 4000004.25], "[4e+06, 4e+06]"),
        ([-4000003.9999, -4e6], "[-4000003.9999, -4000000.0]"),
        ([1.23456789e-9, 1.23457e-9], "[1.23457e-09, 1.23457e-09]"),
        ([0.0, 0.0], "[0.0, 0.0]"),
        ([-1.0, math.inf], "[-1, ∞]"),
        # What falls is no interval, and neither are integers or three numbers.
        ([2.5, 1.5], "2.5, 1.5"),
        ([1, 2], "1, 2"),
        ([1.5, 2.5, 3.5], "1.5, 2.5, 3.5"),
        (list(range(8)), "0, 1, 2, 3, 4, 5, 6, 7"),
        (list(range(1001, 1010)), f"{', '.join(f'{i:,}' for i in range(1001, 1009))}, … (9)"),
        ([[1, 2], {"a": 1.5, "b": None}], "1, 2, a: 1.5, b: –"),
        ([{f"k{i}": i for i in range(9)}, 5], ", ".join(f"k{i}: {i}" for i in range(8)) + ", 5"),
        ("x" * 160, "x" * 160),
        ("x" * 161, "x" * 160 + "…"),
        ({}, ""),
    ],
)
def test_a_cell_shows_a_value_and_says_what_it_leaves_out(ends, shown):
    assert rows({"cells": [{"a": 1, "x": ends}]}) == [(("1", shown),)]


def test_tables_are_whole_or_left_out():
    def shown(columns, lines, room):
        evidence = {"cells": [{f"c{i}": 7 for i in range(columns)} for _ in range(lines)], "one": 5}
        return described(evidence, "results[3].evidence", room)

    where = "All evidence: `results[3].evidence` in `results.json`."
    assert "**cells**" in shown(9, 1, 10_000)
    assert where not in shown(9, 1, 10_000)
    # More columns than nine are not shown.
    assert shown(10, 1, 10_000) == f"one: 5\n\n{where}"
    # "one" and "5" take 4 characters and twice 4 for what is around them; of a table of three lines each has 6 or 3.
    table_room = (2 + 4) + 2 * (1 + 4)
    assert "**cells**" in shown(1, 2, 4 + table_room)
    assert shown(1, 2, 4 + table_room - 1) == f"one: 5\n\n{where}"
    assert shown(1, 2, 11) == where
    assert described({"one": 5, "two": 6}, "results[3].evidence", 12) == f"one: 5\n\n{where}"


def test_table_2_stands_beside_both_estimators():
    reading = {"mean_certified": [0.0, 9.0], "p_value": 0.5}
    readings = {
        "fitted, both directions": {"mean": 1.5, "deviation": 0.25, **reading},
        "pinned": {"mean": 2.5, "deviation": 0.125, **reading},
    }
    evidence = {"dim": 10**6, "count": 1000, "epsilon": 3.0, "delta": 1e-6, "noise_multiplier": 1.0, "runs": 20_000}
    evidence |= {"printed": {"mean": 3.1, "deviation": 0.5, "runs": 50}, "level": 1e-6, "power_against": {}}
    words = "The random canary method outputs the estimate 3.10 ± 0.50 over 50 simulations"
    one = claim("final.table2.a", statement=words, **evidence, readings=readings)
    page = text(replace(RUN, results=(one,)), "final")
    assert "| 3 | 3.10 ± 0.50 | 1.500 ± 0.250 | 2.500 ± 0.125 |" in page
    assert (
        "ε̂ at d = 1,000,000, k = 1,000 and δ = 1e-06: mean ± standard deviation, printed of 50 simulations, ours of "
        "20,000 draws of the exact law."
    ) in page


@pytest.mark.parametrize("word", ["ε", "privacy", "Confidence", "Theorem"])
def test_what_is_of_privacy_comes_before_what_is_not(word):
    some = [claim(f"final.{i}", Verdict.REFUTED, statement=f"{words} is wrong") for i, words in enumerate(("x", word))]
    assert names(*some) == ["final.1", "final.0"]


def test_three_findings_are_shown_and_fewer_where_there_are_fewer():
    some = [claim(f"final.{i}", Verdict.REFUTED, f"suite{i}", f"ε is {i}") for i in range(5)]
    assert names(*some) == ["final.0", "final.1", "final.2"]
    assert names(*some[:2], claim("final.held"), claim("ours.a", Verdict.REFUTED)) == ["final.0", "final.1"]
    # Of a document that this version does not know: after those that it does.
    assert names(claim("elsewhere.a", Verdict.REFUTED, statement="ε"), *some[:1]) == ["final.0", "elsewhere.a"]
