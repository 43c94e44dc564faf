import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from canaryproof.reports.figures import BLUE, description, drawn, inline, png, svg


@pytest.fixture
def figure():
    made = Figure(layout="constrained")
    left, right = made.subplots(1, 2)
    left.plot([1, 10, 100], [1, 2, 3], "o", color=BLUE, label="found")
    left.set(xscale="log", xlabel="dimension d", ylabel="ε̂ < 3 & more", title="a & b")
    right.set_visible(False)
    made.legend(loc="outside upper center")
    return made


def test_ids_begin_with_the_pictures_name_and_all_are_found(figure):
    text = inline(figure, "picture-x", "a < b", {})
    ElementTree.fromstring(text)
    names = re.findall(r' id="([^"]+)"', text)
    assert names
    assert all(name.startswith("picture-x-") for name in names)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= set(names)


def test_a_figure_is_drawn_once(figure):
    assert drawn(figure, "path") is drawn(figure, "path")
    assert drawn(figure, "none") != drawn(figure, "path")


def test_colours_are_the_pages(figure):
    styles = {}
    text = inline(figure, "p", "", styles)
    assert "var(--blue)" in str(styles)
    assert "currentColor" in str(styles)
    assert set(re.findall(r'class="(\w+)"', text)) == set(styles.values())
    text += str(styles)
    assert BLUE.lower() not in text.lower()
    assert "#000000" not in text
    assert "<style" not in text


def test_ticks_of_a_kind_are_one_path(figure):
    text = inline(figure, "p", "", {})
    # Those of two axes, large and small; markers of points stay.
    assert len(re.findall(r'<path d="(?:M[\d. ]+l[\d. -]+)+"', text)) == 3
    assert text.count("<use") == 4


def test_pictures_of_a_page_share_their_styles(figure):
    styles = {}
    first = inline(figure, "p", "", styles)
    known = dict(styles)
    assert inline(figure, "q", "", styles) == re.sub(r'(?<=["# ])p-', "q-", first)
    assert styles == known


def test_letters_are_text(figure):
    text = inline(figure, "p", "", {})
    assert ">dimension d</text>" in text
    assert "font-family" not in text


def test_it_says_what_it_shows(figure):
    assert description(figure) == "1 panel. a & b: dimension d, ε̂ < 3 & more. Drawn: found."
    root = ElementTree.fromstring(inline(figure, "p", 'says "this"', {}))
    assert root.find("title").text == 'says "this"'
    assert root.attrib["aria-labelledby"] == "p-title p-desc"
    assert root.find("desc").text == description(figure)


def test_it_is_the_same_every_time_whatever_was_made_before(figure):
    first = inline(figure, "p", "", {})
    assert svg(figure) == svg(figure)
    assert png(figure) == png(figure)
    assert inline(figure, "p", "", {}) == first
