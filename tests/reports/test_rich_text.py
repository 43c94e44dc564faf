import pytest

from canaryproof.reports.rich_text import html, line, tables

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
    assert line("`a<b` *c* [d](e) <f> & `") == "<code>a&lt;b</code> *c* [d](e) &lt;f&gt; &amp; `"


def test_titles_go_and_headings_are_lowered():
    text = html(PAGE)
    assert "Title" not in text
    assert "<h3>Part</h3>" in text
    assert "<h4>Deeper</h4>" in text


def test_tables_have_headers_and_names():
    text = html(PAGE)
    assert 'aria-label="Part, table"' in text
    assert '<th scope="col">a</th>' in text
    assert '<th scope="row"><code>x</code></th><td class="number">1.5 ± 0.1</td>' in text
    assert '<strong class="chip refuted"><span aria-hidden="true">✗</span> refuted</strong>' in text


def test_long_tables_are_folded():
    rows = "".join(f"| {i} |\n" for i in range(40))
    text = html(f"| a |\n|---|\n{rows}")
    assert "<summary>Table of 40 rows</summary>" in text
    assert text.count("<details") == text.count("</details>") == 1


@pytest.mark.parametrize(
    "text",
    ["<script>x</script>", "a <img src=x> b", "![p](http://x/p.png)", "[l](javascript:x)", "[l](//x/y)", "<!-- c"],
)
def test_nothing_is_fetched_or_run(text):
    found = html(text)
    assert not any(mark in found for mark in ("<script", "<img", "href", "src=", "<!--")) or "&lt;" in found
    assert "<img" not in found
    assert "<script" not in found
    assert "href" not in found


def test_links_lead_where_they_are_told():
    text = html("[a](proofs.md) [b](https://arxiv.org) [c](../x.md)", links={"proofs.md": "#proofs"})
    assert '<a href="#proofs">a</a> <a href="https://arxiv.org">b</a> <a>c</a>' in text


def test_pictures_are_drawn_by_name():
    assert (
        html("![what it *shows*](p.svg)", lambda name, words: f"[{name}: {words}]")
        == "<p>[p.svg: what it *shows*]</p>\n"
    )


def test_tables_are_read_with_the_headings_above_them():
    (table,) = tables(PAGE)
    assert table.headings == ("Title", "Part")
    assert table.header == ("a", "b")
    assert table.rows == (("x", "1.5 ± 0.1"), ("y", "refuted"))
