import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import DESIGN, HOSTILE, SERIES, claim, page_of
from matplotlib.figure import Figure

from canaryproof.reports.html import environment, html, rich_line, rich_text, tables
from canaryproof.reports.pages import Chapter
from canaryproof.verify.papers.check.results import Effort, Result, Run, Subject, Verdict
from canaryproof.verify.papers.records.report_input import Material

PAGE = """# Title

words

## Part

| a | b |
|---|---|
| `x` | 1.5 ± 0.1 |
| y | **refuted** |

### Deeper

- one
"""


def test_code_is_all_that_a_line_knows():
    assert rich_line("`a<b` *c* [d](e) <f> & `") == "<code>a&lt;b</code> *c* [d](e) &lt;f&gt; &amp; `"


def test_titles_go_and_headings_are_lowered():
    text = rich_text(PAGE)
    assert "Title" not in text
    assert "<h3>Part</h3>" in text
    assert "<h4>Deeper</h4>" in text


def test_tables_have_headers_and_names():
    text = rich_text(PAGE)
    assert 'aria-label="Part, table"' in text
    assert '<th scope="col">a</th>' in text
    assert '<th scope="row"><code>x</code></th><td>1.5\u00a0±\u00a00.1</td>' in text
    assert '<strong class="chip refuted"><span aria-hidden="true">✗</span> refuted</strong>' in text


def test_long_tables_are_folded():
    rows = "".join(f"| {i} |\n" for i in range(40))
    text = rich_text(f"| a |\n|---|\n{rows}")
    assert "<summary>Table of 40 rows</summary>" in text
    assert text.count("<details") == text.count("</details>") == 1


@pytest.mark.parametrize(
    "text",
    ["<script>x</script>", "a <img src=x> b", "![p](http://x/p.png)", "[l](javascript:x)", "[l](//x/y)", "<!-- c"],
)
def test_nothing_is_fetched_or_run(text):
    found = rich_text(text)
    assert not any(mark in found for mark in ("<script", "<img", "href", "src=", "<!--")) or "&lt;" in found
    assert "<img" not in found
    assert "<script" not in found
    assert "href" not in found


def test_links_lead_where_they_are_told():
    text = rich_text("[a](proofs.md) [b](https://arxiv.org) [c](../x.md)", links={"proofs.md": "#proofs"})
    assert '<a href="#proofs">a</a> <a href="https://arxiv.org">b</a> <a>c</a>' in text


def test_pictures_are_drawn_by_name():
    assert (
        rich_text("![what it *shows*](p.svg)", lambda name, words: f"[{name}: {words}]")
        == "<p>[p.svg: what it *shows*]</p>\n"
    )


def test_tables_are_read_as_plain_text():
    ((header, rows),) = tables(PAGE)
    assert header == ("a", "b")
    assert rows == (("x", "1.5 ± 0.1"), ("y", "refuted"))


VOID = {"meta", "img", "br", "input", "link", "hr"}


class Page(HTMLParser):
    """Elements of a page, with what they are in and the text in them; complains where they do not nest."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names)
        element = {"tag": tag, "in": [e["tag"] for e in self.open], "text": "", **dict(attrs)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag):
        return [element for element in self.elements if element["tag"] == tag]


@pytest.fixture(scope="module")
def parsed(page):
    return Page(page)


def test_the_first_screen_has_counts_findings_and_our_own_checks(parsed):
    header = next(e["text"] for e in parsed.all("header"))
    for words in (
        "Do the papers' claims about one-shot privacy estimation hold?",
        "3 ✗ refuted",
        "1 ≈ qualified",
        "All 1 of our own checks pass",
    ):
        assert words in " ".join(header.split())
    assert [e["text"] for e in parsed.all("li") if "findings" in str(e["in"]) or "Theorem 3.3" in e["text"]]


def test_the_counts_lead_to_their_claims_and_symbols_are_explained(parsed):
    for verdict in Verdict:
        assert any(e.get("href") == f"#{verdict}" and "ul" in e["in"] for e in parsed.all("a"))
    symbols = next(e["text"] for e in parsed.all("dl") if e.get("class") == "symbols")
    assert "dimension of the model" in symbols
    assert "privacy loss of the mechanism" in symbols
    assert "noise" not in symbols


def test_chapters_come_before_the_ledger_and_open_with_what_was_found(parsed):
    sections = [e for e in parsed.all("section") if e["in"].count("section") == 0 and "main" in e["in"]]
    names = [e["id"] for e in sections]
    assert names.index("convergence") < names.index("ledger") < names.index("methods")
    chapter = next(e["text"] for e in sections if e["id"] == "convergence")
    assert "1 of 1 checks of convergence in d and k are confirmed" in chapter[:200]


def test_it_refers_to_nothing_outside_and_runs_no_script_but_its_own(parsed):
    fetched = {"src", "srcset", "data", "poster", "action", "background"}
    assert not any(fetched & e.keys() for e in parsed.elements)
    styles = [e["text"] for e in parsed.all("style")] + [e.get("style", "") for e in parsed.elements]
    assert not re.search(r"@import|url\((?!#)", " ".join(styles))
    addresses = [e["href"] for e in parsed.elements if "href" in e]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    policy = next(e["content"] for e in parsed.all("meta") if e.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert len(parsed.all("script")) == 1
    assert not any(name.startswith("on") for e in parsed.elements for name in e)


def test_every_link_leads_somewhere_and_no_two_places_have_one_name(parsed):
    names = [e["id"] for e in parsed.elements if "id" in e]
    assert len(set(names)) == len(names)
    assert {e["href"][1:] for e in parsed.elements if "href" in e} <= set(names)
    referred = [name for e in parsed.elements for name in e.get("aria-labelledby", "").split()]
    assert set(referred) <= set(names)


def test_it_can_be_heard(parsed):
    assert parsed.all("html")[0]["lang"] == "en"
    assert [len(parsed.all(tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1] * 5
    assert parsed.all("a")[0]["class"] == "skip"
    for heading in parsed.all("th"):
        assert heading["scope"] in ("row", "col")
    for table in parsed.all("table"):
        assert "div" in table["in"]
    for label in parsed.all("label"):
        assert label["text"].strip()
    pictures = [e for e in parsed.all("svg") if e.get("role") == "img"]
    assert len(pictures) == 1
    for tag in ("title", "desc"):
        assert next(e for e in parsed.all(tag) if "svg" in e["in"])["text"]
    described = next(e["text"] for e in parsed.all("desc"))
    assert "dimension d" in described
    assert "proven bound" in described


def test_levels_of_headings_are_not_skipped(parsed):
    levels = [int(e["tag"][1]) for e in parsed.elements if re.fullmatch(r"h[1-6]", e["tag"])]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_a_claim_opens_to_all_that_is_known_of_it(parsed):
    found = next(e["text"] for e in parsed.all("details") if e.get("id") == "final.table2")
    for words in (
        "place of final.table2",
        "found of final.table2",
        "null hypothesis: nothing to find; level 1e-07; power 0.95 against: something; 1,000 runs",
        "canaryproof claims final.table2",
        "[1.0, 1.0000000000000002]",
    ):
        assert words in found
    ours = next(e for e in parsed.elements if e.get("href") == "#picture-convergence-ours-rate")
    assert "details" in ours["in"]


def test_a_verdict_has_a_sign_and_a_word_beside_its_colour(parsed):
    for verdict in Verdict:
        chips = [e["text"] for e in parsed.all("span") if e.get("class") == f"chip {verdict}"]
        assert chips
        assert all(text.endswith(f" {verdict}") and len(text) > len(verdict) + 1 for text in chips)


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_contrast_suffices_in_both_schemes():
    sheet = environment().get_template("report.css").render()
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in re.findall(r":root \{(.*?)\}", sheet, re.S)
    )
    assert set(dark) == set(light)
    for scheme in (light, dark):
        for ink in ("ink", "soft", "link", *Verdict):
            for ground in ("bg", "surface", "sunken"):
                pair = sorted((_luminance(scheme[ink]), _luminance(scheme[ground])))
                assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, (ink, ground)
        # Lines of pictures are no text: WCAG asks for 3.
        for line in ("blue", "orange", "green", "grey"):
            pair = sorted((_luminance(scheme[line]), _luminance(scheme["surface"])))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 3.0, line


@pytest.mark.parametrize("name", [HOSTILE, "", "a b", "ledger", "../x"])
def test_names_of_claims_inject_nothing(name):
    results = [claim(name, Verdict.REFUTED), claim(name), claim("ours." + name, suite=HOSTILE)]
    parsed = Page(page_of(*results, environment={HOSTILE: HOSTILE}))
    assert len(parsed.all("script")) == 1
    assert not parsed.all("img")
    names = [e["id"] for e in parsed.elements if "id" in e]
    assert len(set(names)) == len(names)
    assert not any(" " in name for name in names)


@given(st.lists(st.text(max_size=40), min_size=6, max_size=6), st.sampled_from(Verdict))
def test_no_text_breaks_the_page(words, verdict):
    name, suite, source, statement, finding, key = words
    evidence = {key: statement, "rows": [{key: finding, "x": float("nan")}], "": {key: {key: [1, None, True]}}}
    result = Result(name, suite, Subject.DOCUMENT, source, statement, verdict, finding, evidence)
    parsed = Page(page_of(result))
    assert len(parsed.all("script")) == 1
    assert len([e for e in parsed.all("li") if "data-suite" in e]) == 1


def test_odd_runs_have_a_page():
    empty = Page(page_of())
    assert "This run has no results." in empty.all("main")[0]["text"]
    assert "None of our own checks were run" in empty.all("header")[0]["text"]
    stopped = page_of(claim("final.a"), unfinished="It was stopped.", unjudged={"bounds": 7})
    assert "It was stopped." in stopped
    assert "suite bounds was not run, or not in full" in stopped
    failing = page_of(claim("ours.a", Verdict.REFUTED))
    assert "1 of 1 of our own checks fail" in failing
    failing = page_of(claim("ours.a", Verdict.REFUTED), claim("ours.b"), claim("ours.c"), claim("final.a"))
    assert "1 of 3 of our own checks fail" in failing


def test_huge_evidence_is_cut_and_says_so():
    page = page_of(claim("final.a", rows=[{"x": i, "text": "long " * 500} for i in range(10_000)]))
    assert len(page) < 60_000
    assert "All evidence: <code>results[0].evidence</code>" in page


def test_skipped_statements_are_counted_with_reasons(parsed):
    methods = next(e["text"] for e in parsed.all("section") if e.get("id") == "methods")
    assert "1only a data set decides: CelebA" in methods
    assert "2 verdicts depend on chance" in methods
    assert "a processor" in methods


def test_sums_and_counts_are_over_all_of_a_suite_a_data_set_or_a_document():
    needs = Verdict.NEEDS_DATA
    text = page_of(
        claim("final.a", suite="bounds", design=replace(DESIGN, level=1e-7)),
        claim("final.b", Verdict.REFUTED, "bounds", design=replace(DESIGN, level=3e-7)),
        claim("final.c", design=replace(DESIGN, level=2e-7)),
        claim("canife.a", needs, data="Sent140"),
        *(claim(f"canife.{name}", needs, data="CelebA") for name in "bc"),
        *(claim(f"ours.{name}") for name in "def"),
        unjudged={"audit": 4},
    )
    numbers = re.findall(r'<th scope="row">(.*?)</th><td class="number">(.*?)</td><td class="number">(.*?)</td>', text)
    assert numbers == [("bounds", "2", "4e-07"), ("claims", "1", "2e-07")]
    skipped = re.findall(r'<tr><th scope="row">(\d+)</th><td>(.*?)</td></tr>', text)
    assert skipped == [
        ("2", "only a data set decides: CelebA"),
        ("1", "only a data set decides: Sent140"),
        ("4", "suite audit was not run, or not in full"),
    ]
    page = Page(text)
    header, main = (" ".join(page.all(tag)[0]["text"].split()) for tag in ("header", "main"))
    for words in ("6 statements of", "2 ✓ confirmed", "1 ✗ refuted", "3 ○ needs-data", "All 3 of our own checks pass"):
        assert words in header
    assert "3 verdicts depend on chance. The probability that it changes one of them is at most 6e-07" in main
    groups = [element["text"] for element in page.all("summary")]
    for words in ("final version 3✗ 1 refuted✓ 2 confirmed", " 3○ 3 needs-data", "own checks 3✓ 3 confirmed"):
        assert sum(group.endswith(words) for group in groups) == 1


@pytest.mark.parametrize(("count", "folded"), [(16, False), (17, True)])
def test_tables_of_more_than_sixteen_rows_are_folded(count, folded):
    text = rich_text("| a |\n|---|\n" + "".join(f"| {i} |\n" for i in range(count)))
    assert (f"<summary>Table of {count} rows</summary>" in text) == folded
    assert text.count("<details") == text.count("</details>") == folded


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        *(("1.5 ± 0.1", True), ("≥ 2.5", True), ("[1.5, 2.5]", True), ("−3 ± 1", True), ("∞", True), ("–", True)),
        *(("1.2e-09 ± 3.5e-11", True), ("50 %", True), ("~ 7", True), ("+1 ± 2", True)),
        *(("none known", False), ("7 to 22", False), ("a 1", False), ("d = 3", False)),
    ],
)
def test_numbers_stay_on_one_line_and_words_do_not(cell, number):
    text = rich_text(f"| a | b |\n|---|---|\n| x | {cell} |\n")
    assert f"<td>{cell.replace(' ', chr(160)) if number else cell}</td>" in text


def test_headings_go_down_as_far_as_they_are_told_and_no_further():
    text = rich_text("# a\n\n## b\n\n### c\n\n###### d\n", depth=3)
    assert re.findall(r"<(h\d)>(\w)</\1>", text) == [("h5", "b"), ("h6", "c"), ("h6", "d")]


def test_each_table_has_the_name_of_its_own_heading():
    table = "| a |\n|---|\n| 1 |\n\n"
    text = rich_text(f"{table}## One\n\n{table}## Two\n\nwords\n\n{table}", name="before")
    assert re.findall(r'aria-label="(\w+), table"', text) == ["before", "One", "Two"]


def test_rows_of_plain_tables_have_no_headers():
    table = "| a | b |\n|---|---|\n| x | 1 |\n| y | 2 |\n"
    assert rich_text(table).count('scope="row"') == 2
    assert 'scope="row"' not in rich_text(table, plain=True)
    assert rich_text(table, plain=True).count('scope="col"') == 2


def test_all_tables_of_a_page_are_read_in_their_order():
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n\nwords\n\n| c |\n|---|\n| 3 |\n| 4 |\n"
    assert list(tables(text)) == [(("a", "b"), (("1", "2"),)), (("c",), (("3",), ("4",)))]


def test_pictures_are_as_wide_as_they_were_drawn():
    figure = Figure(figsize=(5.0, 2.0))
    chapter = Chapter(
        "c", "C", "A chapter", "# A chapter\n\n![what it is](a.svg)\n\n![gone](b.svg)\n", {"a.svg": figure}
    )
    page = html(Material(Run("0", Effort.QUICK, 0, ())), [chapter])
    # Points, 72 an inch.
    assert 'id="picture-a" style="--width:360"' in page
    assert '<span class="caption" aria-hidden="true">what it is</span>' in page
    assert "<em>gone</em>" in page
    parsed = Page(page)
    assert next(e["text"] for e in parsed.all("title") if "svg" in e["in"]) == "what it is"
    assert ("#c", "C") in {(e.get("href"), e["text"]) for e in parsed.all("a")}
    assert "A chapter" in {e["text"] for e in parsed.all("h2")}


def test_a_picture_of_a_result_is_linked_where_its_chapter_shows_it():
    one = claim("ours.rate", suite="theorems", convergence=[SERIES])
    run = Run("0", Effort.QUICK, 0, (one,))
    assert 'href="#picture-convergence-ours-rate"' in page_of(one)
    assert 'href="#picture-convergence-ours-rate"' not in html(Material(run), [])


def test_a_claim_has_its_own_command_rule_evidence_and_test():
    judged = {"printed": "0.081", "reading": "cut", "value": 0.08154296875, "why": "qualified: cut"}
    design = replace(DESIGN, level=3e-7, power=0.98765, runs=12345)
    parsed = Page(
        page_of(
            claim("final.a", x=1),
            claim("ours.b", suite="audit", design=design, rows=[{"i": i, "x": "long " * 100} for i in range(99)]),
            claim("final.c", Verdict.QUALIFIED, rule=judged, y=2),
        )
    )
    found = {e["id"]: " ".join(e["text"].split()) for e in parsed.all("details") if "id" in e}
    assert "canaryproof claims final.a" in found["final.a"]
    assert "canaryproof verify audit --level quick --seed 0" in found["ours.b"]
    assert "Rule" not in found["final.a"]
    assert "Rulequalified: cut; printed 0.081, computed 0.08154296875 (cut)" in found["final.c"]
    assert "level 3e-07; power 0.988 against: something; 12,345 runs" in found["ours.b"]
    # Its place in the file.
    assert "All evidence: results[1].evidence in results.json." in found["ours.b"]
    assert [name for name, words in found.items() if "x: 1" in words] == ["final.a"]
    assert [name for name, words in found.items() if "y: 2" in words] == ["final.c"]


def test_many_claims_share_the_room_for_evidence():
    def shown(count):
        text = "word " * 30
        some = [claim(f"final.{i}", **{f"k{j}": text for j in range(30)}) for i in range(count)]
        return page_of(*some).count("word word") / count

    # 1,200 characters are 8 of these values at most; where 250,000 are split over 500, a claim has 500.
    assert 6 * 15 <= shown(1) <= 8 * 15
    assert 2 * 15 <= shown(500) <= 4 * 15


def test_symbols_that_stand_in_findings_are_explained_and_no_others():
    def explained(statement):
        parsed = Page(page_of(claim("final.a", Verdict.REFUTED, statement=statement)))
        return [e["text"] for e in parsed.all("dt") if "dl" in e["in"] and e["in"].count("header")]

    assert explained("ε of k canaries, σ̂ and A² at FPR") == ["ε", "k", "σ̂", "A²", "FPR"]
    assert explained("nothing of the kind, but `d`, μ̂ and dk") == ["d", "μ̂"]


def test_lines_on_the_way_come_last_among_their_verdict():
    parsed = Page(
        page_of(
            claim("final.a", Verdict.REFUTED, kind="wrong term"),
            claim("final.b", Verdict.REFUTED),
            claim("final.c", Verdict.QUALIFIED),
            claim("elsewhere.d"),
            claim("canife.e"),
            claim("ours.f"),
        )
    )
    ids = [e["id"] for e in parsed.all("details") if "ul" in e["in"] and "id" in e]
    # Documents in their order, one that is not known after them, and ours.
    assert ids == ["final.b", "final.a", "final.c", "canife.e", "elsewhere.d", "ours.f"]


def test_each_symbol_has_its_own_meaning():
    words = {
        "ε": "privacy loss", "δ": "probability", "d": "dimension", "k": "canaries", "n": "clients", "σ": "noise",
        "Σ": "sum", "μ̂": "mean of the canaries", "σ̂": "deviation of the canaries", "μ": "mean of a normal",
        "ρ": "released vector", "τ": "a cosine, or a threshold", "t": "√d", "θ": "parameters", "α": "1 − confidence",
        "A²": "Anderson", "FPR": "false positive", "FNR": "false negative",
    }  # fmt: skip
    parsed = Page(page_of(claim("final.a", Verdict.REFUTED, statement=" ".join(words))))
    terms, meanings = ([e["text"] for e in parsed.all(tag) if "header" in e["in"]] for tag in ("dt", "dd"))
    assert sorted(terms) == sorted(words)
    for term, meaning in zip(terms, meanings, strict=True):
        assert words[term] in meaning


def test_styles_of_pictures_are_in_the_pages_sheet_and_links_lead_to_its_chapters(parsed):
    (sheet,) = (e["text"] for e in parsed.all("style"))
    declared = re.findall(r"^\.(s[0-9a-f]+)\{(.+)\}$", sheet, re.MULTILINE)
    used = {e["class"] for e in parsed.elements if re.fullmatch(r"s[0-9a-f]+", e.get("class", ""))}
    assert {name for name, _ in declared} == used
    assert len(used) > 5
    assert any("var(--blue)" in style for _, style in declared)
    chapter = Chapter("c", "C", "T", "# T\n\n[a](proofs.md) [b](claims-final.md) [c](other.md)\n", {})
    page = html(Material(Run("0", Effort.QUICK, 0, (claim("final.a"),))), [chapter])
    assert '<a href="#proofs">a</a> <a href="#ledger">b</a> <a>c</a>' in page
