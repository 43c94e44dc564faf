import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.reports.markdown import (
    Section,
    code,
    interval,
    made_by,
    page,
    plus_minus,
    rounded,
    table,
    without_tags,
    words,
)


def test_bars_do_not_end_cells():
    assert table(("|x|", "b"), [("1", "a|b")]) == "| \\|x\\| | b |\n|---|---|\n| 1 | a\\|b |"


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (1.23456, 0.0345, "1.235 ± 0.035"),
        (-0.0001, 0.0345, "0.000 ± 0.035"),
        (1.23456e-9, 3.46e-11, "1.235e-09 ± 3.5e-11"),
        (12345.6, 123.0, "12350 ± 120"),
        (1.23456e9, 1.2e7, "1.235e+09 ± 1.2e+07"),
        (0.5, 0.0, "0.5 ± 0"),
        (math.nan, 1.0, "nan ± 1.0"),
    ],
)
def test_two_digits_of_the_error_decide(value, error, shown):
    assert plus_minus(value, error) == shown


@given(st.floats(-1e300, 1e300), st.floats(1e-300, 1e300))
def test_what_is_shown_is_within_a_tenth_of_the_error(value, error):
    shown = float(rounded(value, error))
    assert abs(shown - value) <= max(0.051 * error, 5.1e-6 * abs(value) if error <= 1e-16 * abs(value) else 0.0)


def test_no_text_ends_a_cell_or_becomes_a_tag():
    assert table(["a"], [["x | y\nz <b>w</b>, 1 < 2 <= 3"]]).splitlines()[2] == r"| x \| y z \<b>w\</b>, 1 < 2 <= 3 |"


def test_links_lead_to_pages_or_to_the_web_alone():
    for link in ("[a](proofs.md)", "[b](claims.md#x.1)", "[c](#top)", "[d](https://arxiv.org/abs/1)"):
        assert without_tags(link) == link
    for address in ("javascript:x", " javascript:x", "&#106;avascript:x", "data:text/html,x", "a.md 'javascript:x'"):
        assert without_tags(f"[a]({address})") == rf"[a]\({address})"


def test_somebodys_words_are_no_markdown():
    assert words("a <script>\n[b](c) ![d](e) *f* `g` _h_ \\ i") == (
        r"a \<script> \[b\](c) !\[d\](e) \*f\* \`g\` \_h\_ \\ i"
    )
    assert code("a `b` <c>\nd") == "`a 'b' <c> d`"


def test_a_page_has_no_tags_but_anchors():
    page = '<a id="final.x"></a>`x` <b>1</b> 1 < 2 \\<i> <a id="x" onclick="y()"></a> <!-- z -->'
    assert without_tags(page) == (
        '<a id="final.x"></a>`x` \\<b>1\\</b> 1 < 2 \\<i> \\<a id="x" onclick="y()"></a> \\<!-- z -->'
    )


def test_a_page_has_finding_and_first_picture_before_all_and_others_under_their_titles():
    sections = [
        Section("One", ("a",), (("1",),), "note 1", "one.svg", "first"),
        Section("Two", ("b",), (("2",),), "note 2"),
        Section("Three", ("c", "d"), (("3", "4"),), "note 3", "three.svg", "third"),
    ]
    assert page("Title", "Finding.", ["about", "more"], sections, "last") == (
        "# Title\n\nFinding.\n\n![first](one.svg)\n\nabout\n\nmore\n\n"
        "## One\n\n| a |\n|---|\n| 1 |\n\nnote 1\n\n"
        "## Two\n\n| b |\n|---|\n| 2 |\n\nnote 2\n\n"
        "## Three\n\n![third](three.svg)\n\n| c | d |\n|---|---|\n| 3 | 4 |\n\nnote 3\n\nlast\n"
    )
    assert page("Title", "Finding.", [], sections[1:2]).endswith("| 2 |\n\nnote 2\n")


def test_rows_have_anchors_that_addresses_may_have():
    assert table(["a"], [["`x y`"], ["z"]], ["x y/é", ""]).splitlines()[2:] == ['| <a id="x-y-é"></a>`x y` |', "| z |"]


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        # Plain from 1e-5 to a million, else with an exponent; as many digits as the error's second.
        (1.5, 1e-5, "1.500000"),
        (1.5, 9.9e-6, "1.5000000e+00"),
        (999999.0, 10.0, "999999"),
        (1000001.0, 10.0, "1.000001e+06"),
        (123456.0, 100.0, "123460"),
        (-0.4, 100.0, "0"),
        (1.0, 1e-17, "1"),
        (3.0, math.inf, "3"),
        (math.inf, 1.0, "inf"),
    ],
)
def test_numbers_are_rounded_to_the_second_digit_of_their_error(value, error, shown):
    assert rounded(value, error) == shown


def test_ends_keep_all_digits_and_environments_their_names():
    assert interval([0.1, 0.30000000000000004]) == "[0.1, 0.30000000000000004]"
    assert made_by({"python": "3.11", "numpy": "2"}) == "Environment: python: 3.11, numpy: 2."
