import pytest

from canaryproof.reports.claims import described, number
from canaryproof.reports.rich_text import tables


def rows(evidence, room=10_000):
    return [table.rows for table in tables(described(evidence, "results[0].evidence", room))]


def test_single_values_stand_in_one_table_and_rows_in_their_own():
    found = rows(
        {"runs": 12345, "deep": {"a": {"b": 0.5}, "c": 2}, "cells": [{"d": 10, "ε": 1.0}, {"d": 100, "k": True}]}
    )
    assert found == [
        (("runs", "12,345"), ("deep · a · b", "0.5"), ("deep · c", "2")),
        (("10", "1", ""), ("100", "", "yes")),
    ]


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
    found = rows({"narrow": [4.224678889326835, 4.224678889326836], "wide": [0.123456789, 0.3]})
    assert found == [(("narrow", "[4.224678889326835, 4.224678889326836]"), ("wide", "[0.123457, 0.3]"))]


def test_what_is_long_is_cut_and_pointed_to():
    text = described({"rows": [{"i": i} for i in range(1000)], "list": list(range(50))}, "results[7].evidence", 400)
    assert "results[7].evidence" in text
    assert ", … (50)" in text
    assert len(text) < 1500


def test_marks_are_text():
    ((row,),) = rows({"a|b": "*x* _y_ <b>z</b> [l](http://x) `c`\n\n# h ![p](http://p) \\"})
    assert row == ("a|b", "*x* _y_ <b>z</b> [l](http://x) `c` # h ![p](http://p) \\")


def test_what_the_chapters_show_is_not_repeated():
    assert described({"convergence": [{"x": [1]}]}, "", 100) == ""
