import io
import re
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from canaryproof.verify.audit.markup import figures
from canaryproof.verify.audit.markup.figures import BLUE, description, drawing, inline, mark_edge, panels, png, svg


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


def test_the_style_leaves_nothing_to_a_readers_matplotlibrc():
    with mpl.rc_context(mpl.rcParamsDefault), mpl.rc_context(figures.STYLE):
        expected = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 18.0, "axes.grid": True, "lines.linewidth": 5.0}), mpl.rc_context(figures.STYLE):
        assert dict(mpl.rcParams) == expected


def test_a_figure_is_drawn_once(figure):
    assert drawing(figure) is drawing(figure)


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


def test_a_picture_alone_has_its_own_styles(figure):
    styles = {}
    shared, alone = inline(figure, "p", "", styles), inline(figure, "p", "")
    sheet = "".join(f"\n.{name}{{{style}}}" for style, name in styles.items())
    assert alone.replace(f"<style>{sheet}</style>", "") == shared


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


def test_png_has_200_dots_an_inch_on_white():
    made = Figure(figsize=(2.0, 1.0), layout="constrained")
    made.subplots().set_axis_off()
    pixels = imread(io.BytesIO(png(made)))
    assert pixels.shape[:2] == (200, 400)
    assert (pixels == 1.0).all()


def test_panels_are_as_many_as_asked_for_and_rows_are_alike():
    for count, columns, rows in ((1, 1, 1), (3, 2, 2), (4, 2, 2), (5, 3, 2), (7, 3, 3)):
        made, axes = panels(count, columns, (6.0, 0.5, 2.0), sharex=True)
        assert tuple(made.get_size_inches()) == (6.0, 0.5 + 2.0 * rows)
        assert len(made.axes) == rows * columns
        assert list(axes) == made.axes[:count]
        assert [axis.get_visible() for axis in made.axes] == [i < count for i in range(rows * columns)]
        assert all(axis.get_shared_x_axes().joined(axis, made.axes[0]) for axis in made.axes[1:])


@pytest.mark.parametrize(
    ("edge", "limits", "shown"),
    [
        # A decade below four times the edge would touch its label; that at the upper end is shown.
        (2e-4, (1.6e-4, 1.2), {2e-4: "edge", 1e-3: "0.001", 1e-2: "0.01", 0.1: "0.1", 1.0: "1"}),
        (0.1, (0.1, 100.0), {0.1: "edge", 1.0: "1", 10.0: "10", 100.0: "100"}),
        (0.3, (0.2, 10.0), {0.3: "edge", 10.0: "10"}),
    ],
)
def test_an_edge_is_labelled_among_the_decades_of_its_axis(edge, limits, shown):
    axis = Figure().subplots()
    axis.set(yscale="log", ylim=limits)
    mark_edge(axis.yaxis, edge, "edge")
    assert list(axis.get_yticks()) == pytest.approx(list(shown))
    assert [text.get_text() for text in axis.get_yticklabels()] == list(shown.values())
    assert not any(text.get_text() for text in axis.get_yticklabels(minor=True))


@pytest.mark.parametrize(
    ("key", "value", "short"),
    [
        ("x", "12.3456", "12.3"),
        ("x", "12.04", "12"),
        ("y", "-7.26 8", "-7.3 8"),
        # Shapes have a digit more, unless they are long, or ticks.
        ("d", "M 0 1.2345 \nL 3.5 4.5678", "M0 1.23L3.5 4.57"),
        ("d", "M 0 1.2345 l 3.5 4.5678", "M0 1.2l3.5 4.6"),
        ("d", "M 0 1.2345" + " L 1 2" * 160, "M0 1.2" + "L1 2" * 160),
        # A box has two places.
        ("d", "M 1 2 L 3 2 L 3 4.5 L 1 4.5 z", "M1 2H3V4.5H1z"),
        ("d", "M 1 2 \nL 3 2 \nL 3 4.5 \nL 1 4.5 \nL 1 2", "M1 2H3V4.5H1z"),
        ("d", "M 1 2 L 3 2 L 3 4.5 L 1 5 z", "M1 2L3 2L3 4.5L1 5z"),
        ("id", "a", "p-0"),
        ("clip-path", "url(#a)", "url(#p-0)"),
        ("{http://www.w3.org/1999/xlink}href", "#a", "#p-0"),
        ("transform", "translate(1.26 2) rotate(-0 3.5 4)", "translate(1.3 2)"),
        ("transform", "translate(1.26 2) rotate(-90 3.5 4)", "translate(1.3 2) rotate(-90 3.5 4)"),
        ("style", "fill: none; stroke: #0072b2; stroke-width: 1", "fill:none;stroke:var(--blue)"),
        ("style", "stroke: #d55e00; stroke-width: 1.5", "stroke:var(--orange);stroke-width:1.5"),
        ("style", "fill: #009e73; stroke: #777777", "fill:var(--green);stroke:var(--grey)"),
        ("style", "fill: #ffffff; stroke: #000000", "fill:none;stroke:currentColor"),
        ("style", "font: 9px 'DejaVu Sans', sans-serif; text-anchor: middle", "font-size:9px;text-anchor:middle"),
        ("style", "font-size: 9px; font-family: 'DejaVu Sans'; fill: red", "font-size:9px;fill:red"),
    ],
)
def test_attributes_are_short(key, value, short):
    assert figures._attribute(key, value, {"a": "p-0"}, figures._COLOURS) == short


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # A style, or a clipping path, that all points of a line have is that of the line.
        ('<g><use style="a" x="1"/><use style="a" x="2"/></g>', '<g style="a"><use x="1"/><use x="2"/></g>'),
        ('<g><use style="a"/><use style="b"/></g>', '<g><use style="a"/><use style="b"/></g>'),
        ('<g><use style="a"/></g>', '<g><use style="a"/></g>'),
        ('<g style="b"><use style="a"/><use style="a"/></g>', '<g style="b"><use style="a"/><use style="a"/></g>'),
        ('<g><use style="a"/><path/></g>', '<g><use style="a"/><path/></g>'),
        ('<g><use clip-path="a"/><use clip-path="a"/></g>', '<g clip-path="a"><use/><use/></g>'),
        ('<g><path style="a"/><path style="a"/></g>', '<g style="a"><path/><path/></g>'),
        # What shines through is darker where it overlaps, unless it does so as a group.
        (
            '<g><path style="fill:red; opacity:0.5"/><path style="fill:red; opacity:0.5"/></g>',
            '<g><path style="fill:red; opacity:0.5"/><path style="fill:red; opacity:0.5"/></g>',
        ),
        (
            '<g><use style="fill-opacity:0.5"/><use style="fill-opacity:0.5"/></g>',
            '<g style="fill-opacity:0.5"><use/><use/></g>',
        ),
        # A group without a meaning of its own goes; others stay.
        ('<g><g><path/></g><g id="x"><path/></g></g>', '<g><path/><g id="x"><path/></g></g>'),
        ("<g><g><path/><text/></g><g/></g>", "<g><path/><text/></g>"),
        # Letters of a line are one piece.
        (
            '<text><tspan y="1">a</tspan><tspan y="1">b</tspan><tspan y="2">c</tspan><tspan y="2" style="s"/></text>',
            '<text><tspan y="1">ab</tspan><tspan y="2">c</tspan><tspan y="2" style="s"/></text>',
        ),
        ("<text><tspan>a</tspan><tspan>b</tspan><tspan>c</tspan></text>", "<text><tspan>abc</tspan></text>"),
    ],
)
def test_what_repeats_is_merged(before, after):
    element = ElementTree.fromstring(before)
    figures._shorten(element)
    assert ElementTree.tostring(element, encoding="unicode").replace(" />", "/>") == after


def test_a_description_names_panels_axes_and_entries():
    made = Figure()
    axes = made.subplots(1, 3)
    axes[0].set_title("first\nline", loc="left")
    axes[0].set_title("middle", loc="center")
    axes[1].set_xlabel("x  y")
    made.supxlabel("below")
    made.supylabel("beside")
    assert description(made) == "3 panels. first line: middle; x y; a panel. Axes of all: below, beside."


def test_a_file_has_text_on_white_and_an_element_a_line(figure):
    text = svg(figure)
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert "dimension d" in [element.text for element in root.iter(f"{space}text")]
    assert root.attrib["font-family"] == "DejaVu Sans, Verdana, sans-serif"
    (declared,) = re.findall(r"\.(\w+){fill:#ffffff}", text)
    assert root.find(f".//{space}path").attrib["class"] == declared
    assert "var(" not in text
    assert all(line.count("<") - line.count("</") <= 1 for line in text.splitlines() if "<text" not in line)
    assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert text.endswith("</svg>\n")
    assert "date" not in text.lower()


def test_another_style_changes_no_other_line_of_a_file(figure):
    before = svg(figure).splitlines()
    other = Figure(layout="constrained")
    other.subplots(1, 2)[0].plot([1, 10, 100], [1, 2, 3], "o", color=BLUE, label="found")
    left, right = other.axes
    left.set(xscale="log", xlabel="dimension d", ylabel="ε̂ < 3 & more", title="a & b")
    left.spines["left"].set_color("#ff0000")
    right.set_visible(False)
    other.legend(loc="outside upper center")
    after = svg(other).splitlines()
    assert 0 < len(set(after) - set(before)) <= 2


def test_a_picture_of_the_page_takes_its_size_from_there(figure):
    root = ElementTree.fromstring(inline(figure, "p", "", {}))
    assert not {"width", "height", "version", "style"} & root.attrib.keys()
    # Points, 72 an inch.
    assert root.attrib["viewBox"] == "0 0 460.8 345.6"
    assert root.attrib["role"] == "img"
