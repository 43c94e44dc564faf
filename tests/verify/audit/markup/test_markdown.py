from canaryproof.verify.audit.markup.markdown import Section, code, environment_line, literal, page, table, without_tags


def test_bars_do_not_end_cells():
    assert table(("|x|", "b"), [("1", "a|b")]) == "| \\|x\\| | b |\n|---|---|\n| 1 | a\\|b |"


def test_no_text_ends_a_cell_or_becomes_a_tag():
    assert table(["a"], [["x | y\nz <b>w</b>, 1 < 2 <= 3"]]).splitlines()[2] == r"| x \| y z \<b>w\</b>, 1 < 2 <= 3 |"


def test_links_lead_to_pages_or_to_the_web_alone():
    for link in ("[a](proofs.md)", "[b](claims.md#x.1)", "[c](#top)", "[d](https://arxiv.org/abs/1)"):
        assert without_tags(link) == link
    for address in ("javascript:x", " javascript:x", "&#106;avascript:x", "data:text/html,x", "a.md 'javascript:x'"):
        assert without_tags(f"[a]({address})") == rf"[a]\({address})"


def test_somebodys_words_are_no_markdown():
    assert literal("a <script>\n[b](c) ![d](e) *f* `g` _h_ \\ i # & ~") == (
        r"a \<script\> \[b\](c) !\[d\](e) \*f\* \`g\` \_h\_ \\ i \# \& \~"
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


def test_an_environment_is_named():
    assert environment_line({"python": "3.11", "numpy": "2"}) == "Environment: python: 3.11, numpy: 2."
