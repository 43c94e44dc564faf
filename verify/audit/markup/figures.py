"""The pictures' style, and pictures as files and within the page: the same bytes every time."""

import io
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary
from xml.etree import ElementTree

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

# Okabe and Ito's palette: safe for colour-blind readers.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
BLACK = "#000000"
# All else is matplotlib's default, so that a matplotlibrc of whoever draws changes nothing.
STYLE: dict[Any, Any] = {key: value for key, value in mpl.rcParamsDefault.items() if key != "backend"} | {
    "svg.hashsalt": "canaryproof",
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
}

_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
# Colours that the style sheet names. White is the figure's ground, and the page has its own.
_COLOURS = {
    BLUE: "var(--blue)",
    ORANGE: "var(--orange)",
    GREEN: "var(--green)",
    GREY: "var(--grey)",
    BLACK: "currentColor",
    "#ffffff": "none",
}
_SHAPE = 600
_FRACTION = re.compile(r"-?\d+\.\d+")
_TICK = re.compile(r"M 0 0 L (\S+) (\S+)")
_OPACITY = re.compile(r"(?:.*[; ])?opacity:")
_BOX = re.compile(r"M(\S+) (\S+)L(\S+) \2L\3 (\S+)L\1 \4(?:L\1 \2|z)")


def panels(count: int, columns: int, size: tuple[float, float, float], **options: Any) -> tuple[Figure, Sequence[Axes]]:
    """Make a figure of panels; ``size`` is its width, its height without rows, and the height of a row."""
    width, head, height = size
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(width, head + height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes[:count]


def mark_edge(axis: Axis, edge: float, words: str) -> None:
    """Label where a logarithmic axis shows what it has no place for, such as 0: at ``edge``, its lowest tick."""
    low, high = axis.get_view_interval()
    ticks = [tick for tick in axis.get_major_locator().tick_values(low, high) if 4.0 * edge < tick <= 1.001 * high]
    axis.set_major_locator(FixedLocator([edge, *ticks]))
    axis.set_major_formatter(FixedFormatter([words, *(f"{tick:g}" for tick in ticks)]))
    axis.set_minor_formatter(NullFormatter())


_DRAWN: WeakKeyDictionary[Figure, bytes] = WeakKeyDictionary()


def drawing(figure: Figure) -> bytes:
    """Return a figure as matplotlib's SVG, drawn once; letters are text."""
    if figure not in _DRAWN:
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        _DRAWN[figure] = save(figure, format="svg", metadata=nothing)
    return _DRAWN[figure]


# The figures are laid out with the first one; the second one has letters of the same widths.
_LETTERS = "DejaVu Sans, Verdana, sans-serif"


def svg(figure: Figure) -> str:
    """Render a figure as the text of an SVG file, an element a line, on white."""
    root = _with_styles(drawing(figure), "p", {})
    root.attrib |= {
        "xmlns": "http://www.w3.org/2000/svg",
        "font-family": _LETTERS,
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
    }
    # Blanks between the parts of a text would show.
    return re.sub(r"(?<=>)(?=<(?!/?tspan|/text))", "\n", _text(root)) + "\n"


def png(figure: Figure) -> bytes:
    """Render a figure as PNG, 200 dots an inch on white."""
    return save(figure, format="png", metadata={"Software": "canaryproof"}, facecolor="white", dpi=200)


def save(figure: Figure, **options: Any) -> bytes:
    """Return a figure as a file in the pictures' style, with options of ``Figure.savefig``.

    matplotlib makes ticks when it draws, so that they need the style too.
    """
    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        # Laying out takes most of the time, and a second time would move things a little. matplotlib itself would draw
        # the figure once more for it. Letters are measured as those of SVG, whatever the format.
        if engine := figure.get_layout_engine():
            FigureCanvasSVG(figure)
            engine.execute(figure)
            figure.set_layout_engine(None)
        figure.savefig(buffer, **options)
    return buffer.getvalue()


def inline(figure: Figure, name: str, alternative: str, styles: dict[str, str] | None = None) -> Markup:
    """Render a figure as an SVG element of the page: letters are text, colours are the style sheet's.

    Ids begin with ``name``, which no other picture of the page has. ``styles`` is the page's: declarations by the class
    that stands for them in all of its pictures; what is new is added. Without it the element has its own.
    """
    picture = drawing(figure)
    root = _with_styles(picture, name, _COLOURS) if styles is None else _compact(picture, name, _COLOURS, styles)
    for unused in ("width", "height"):
        root.attrib.pop(unused, None)
    head, _, body = _text(root).partition(">")
    return Markup(
        f'{head} role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(alternative)}</title>'
        f'<desc id="{name}-desc">{escape(description(figure))}</desc>{body}'
    )


def _with_styles(picture: bytes, name: str, colours: Mapping[str, str]) -> ElementTree.Element:
    styles: dict[str, str] = {}
    root = _compact(picture, name, colours, styles)
    sheet = ElementTree.Element("style")
    sheet.text = "".join(f"\n.{name}{{{style}}}" for style, name in styles.items())
    root.insert(0, sheet)
    return root


def _text(root: ElementTree.Element) -> str:
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")


def _compact(picture: bytes, name: str, colours: Mapping[str, str], styles: dict[str, str]) -> ElementTree.Element:
    """Return matplotlib's drawing without repetitions, unused ids and invisible digits.

    ``colours`` are those that get another name. The classes of ``styles`` stand for its declarations; new ones are
    added. They are named after what they declare, so that another style changes no other class.
    """
    root = ElementTree.fromstring(picture)
    for parent in root.iter():
        for child in list(parent):
            # The sheet of a picture would hold for the whole page, which has its own.
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        element.tail = None
        if not (element.text or "").strip():
            element.text = None
    _join_ticks(root)
    named = {value.removeprefix("#") for element in root.iter() if (value := element.get(_LINK))}
    named |= {identifier for element in root.iter() if (identifier := element.get("id")) and element.tag == "clipPath"}
    ids = {identifier: f"{name}-{i}" for i, identifier in enumerate(sorted(named))}
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            del element.attrib[key]
            if (key != "id" or value in ids) and (short := _attribute(key, value, ids, colours)):
                element.attrib[key.replace(_LINK, "href")] = short
    for element in reversed(list(root.iter())):
        _shorten(element)
    for element in root.iter():
        if style := element.attrib.pop("style", None):
            element.attrib["class"] = styles.setdefault(style, _name(style, styles))
    root.attrib.pop("version", None)
    return root


def _name(style: str, styles: Mapping[str, str]) -> str:
    """Name a class after what it declares, by as many digits as tell it from others."""
    digits = f"{zlib.crc32(style.encode()):08x}"
    return next(name for length in range(4, 9) if (name := f"s{digits[:length]}") not in styles.values())


def _join_ticks(root: ElementTree.Element) -> None:
    """Draw all ticks of a kind as one path: there are thousands, each an element that refers to one line."""
    lines = {}
    for element in root.iter("path"):
        if (identifier := element.get("id")) and (line := _TICK.fullmatch(" ".join(element.get("d", "").split()))):
            lines[f"#{identifier}"] = line
    joined: dict[tuple[str, str | None], ElementTree.Element] = {}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag != "use" or (line := lines.get(child.get(_LINK, ""))) is None:
                continue
            parent.remove(child)
            move = f"M{child.get('x')} {child.get('y')}l{line[1]} {line[2]}"
            path = joined.setdefault((line[0], child.get("style")), ElementTree.Element("path", {"d": ""}))
            if not path.attrib["d"]:
                path.attrib["style"] = child.get("style", "")
                parent.append(path)
            path.attrib["d"] += move
    for parent in root.iter():
        for child in list(parent):
            if child.tag == "defs" and all(f"#{path.get('id')}" in lines for path in child):
                parent.remove(child)


def description(figure: Figure) -> str:
    """Describe a figure in words: its panels' titles, axes and legend entries."""
    axes = []
    shared = [text.get_text() for text in (figure._supxlabel, figure._supylabel) if text is not None]  # type: ignore[attr-defined]
    for axis in figure.axes:
        if not axis.get_visible():
            continue
        names = [" ".join(axis.get_title(loc=where).split()) for where in ("left", "center")]
        labels = [" ".join(label.split()) for label in (axis.get_xlabel(), axis.get_ylabel()) if label]
        words = ": ".join([*filter(None, names), *([", ".join(labels)] if labels else [])])
        axes.append(words or "a panel")
    entries = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    parts = [f"{len(axes)} panel{'s' * (len(axes) != 1)}. " + "; ".join(axes) + "."]
    parts += [f"Axes of all: {', '.join(shared)}."] if shared else []
    parts += [f"Drawn: {', '.join(entries)}."] if entries else []
    return " ".join(parts)


def _shorten(element: ElementTree.Element) -> None:
    """Merge what an element repeats: styles of its points and paths, groups without a meaning, pieces of text."""
    element[:] = [part for child in element for part in (child if child.tag == "g" and not child.attrib else [child])]
    if len(element) < 2:
        return
    if all(child.tag == element[0].tag and child.tag in ("use", "path") for child in element):
        for key in ("style", "clip-path"):
            values = {child.get(key) for child in element}
            value = values.pop() if len(values) == 1 else None
            # In a translucent group, shapes that overlap would not be darker.
            if value and key not in element.attrib and not _OPACITY.match(value):
                element.attrib[key] = value
                for child in element:
                    del child.attrib[key]
    elif all(child.tag == "tspan" for child in element):
        for before, child in zip(list(element)[-2::-1], list(element)[:0:-1], strict=True):
            if (before.get("y"), before.get("style")) == (child.get("y"), child.get("style")):
                before.text = f"{before.text}{child.text}"
                element.remove(child)


def _attribute(key: str, value: str, ids: Mapping[str, str], colours: Mapping[str, str]) -> str:
    """Shorten an attribute's value; a value without effect becomes empty."""
    if key == "id":
        return ids[value]
    if key == _LINK:
        return f"#{ids[value.removeprefix('#')]}"
    if key == "clip-path":
        return f"url(#{ids[value.removeprefix('url(#').removesuffix(')')]})"
    if key == "transform":
        # rotate(0) has no effect.
        value = re.sub(r"rotate\(-?0 [^)]*\)", "", value).strip()
    if key == "style":
        for colour, variable in colours.items():
            value = re.sub(re.escape(colour), variable, value, flags=re.IGNORECASE)
        # All letters are of a family, which the page or the file has once.
        value = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", value)
        value = re.sub(r";? ?font-family: [^;]*|; stroke-width: 1$", "", value).replace(": ", ":").replace("; ", ";")
    if key == "d":
        value = re.sub(r" *([A-Za-z]) *", r"\1", " ".join(value.split()))
    # A tenth of a point in a place, or a hundredth in a marker's shape, is less than anybody sees.
    digits = 2 if key == "d" and len(value) < _SHAPE and "l" not in value else 1
    value = _FRACTION.sub(lambda match: f"{float(match[0]):.{digits}f}".rstrip("0").rstrip("."), value)
    return _BOX.sub(r"M\1 \2H\3V\4H\1z", value) if key == "d" else value
