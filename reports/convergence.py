"""The convergence page: how fast what the theorems bound goes to zero, what is proven of it, and its pictures."""

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from canaryproof.reports.page import Page, provenance
from canaryproof.verify.audit.markup.digits import percent, plus_minus, round_to_error
from canaryproof.verify.audit.markup.figures import BLUE, GREY, ORANGE, STYLE, panels
from canaryproof.verify.audit.markup.markdown import table
from canaryproof.verify.papers.check.results import Result, Run, Verdict
from canaryproof.verify.papers.records.evidence import ConvergenceMeasured, Series, is_of, records

_ABOUT = """\
{provenance}. A slope is that of the logarithm of the
quantity against the logarithm of d or k: −1/2 says that it falls as the inverse square root. What is proven of slopes
holds in the limit. At finite d and k lower orders bend them, so verdicts rest on the points and not on slopes. Exact
values and bounds are rounded to six digits here; `results.json` has all. A ± is one standard error here, two in the
pictures."""
_LABELS = "proven bound", "simulated ± 2 standard errors", "simulated", "0 or below, at the edge"
_BOUND, _SIMULATED, _BARE, _EDGE = _LABELS


def picture_name(identifier: str) -> str:
    """Name the picture that belongs to a result."""
    # Results may be read from a file, and none may lead out of the folder.
    return "convergence-" + re.sub(r"[^A-Za-z0-9_]+", "-", identifier) + ".svg"


def text(run: Run) -> str:
    """Render the page; "" without series."""
    shown = _shown(run)
    if not shown:
        return ""
    parts = ["# Convergence", _headline(shown)]
    parts += [part for result, series in shown for part in _chapter(result, series)]
    parts += ["## How to read this page", _ABOUT.format(provenance=provenance(run))]
    return "\n\n".join(parts) + "\n"


def _shown(run: Run) -> list[tuple[Result, tuple[Series, ...]]]:
    measured = records(run, ConvergenceMeasured)
    return [(result, measured[result.id].convergence) for result in run.results if result.id in measured]


def _headline(shown: Sequence[tuple[Result, Sequence[Series]]]) -> str:
    """Say in a sentence what all series together show."""
    count = sum(len(series) for _, series in shown)
    held = sum(result.verdict is Verdict.CONFIRMED for result, _ in shown)
    return f"{held} of {len(shown)} checks of convergence in d and k are confirmed, over {count} quantities."


def _chapter(result: Result, series: Sequence[Series]) -> list[str]:
    parts = [
        f"## {result.statement[:1].upper()}{result.statement[1:]}",
        f"![{_alternative(series)}]({picture_name(result.id)})",
        f"**{result.verdict}**: {result.finding} (`{result.id}`; {result.source})",
    ]
    for row in series:
        parts += [f"### {row.title}", points_table(row)]
    return parts


def points_table(row: Series) -> str:
    """Lay out the points of a series, its slope, and which points its picture leaves out."""
    return "\n\n".join(filter(None, (_values(row), _slope(row), _omitted(row), row.note)))


def _alternative(series: Sequence[Series]) -> str:
    """Say in words what the picture shows."""
    titles = []
    for row in series:
        shown = {row.exact_label: row.exact, "proven bound": row.bound, "simulated": row.simulated}
        names = ", ".join(name for name, values in shown.items() if values is not None)
        span = f"{row.axis} from {_at(min(row.x))} to {_at(max(row.x))}"
        titles.append(f"{row.title}, against {span} ({names})")
    # A bracket would end the text.
    return ("On logarithmic axes: " + "; ".join(titles)).replace("[", "(").replace("]", ")")


def _at(x: float) -> str:
    return f"{x:g}" if float(f"{x:g}") == x else f"{x:,}".removesuffix(".0")


def _values(row: Series) -> str:
    columns = [(row.axis, [_at(x) for x in row.x])]
    if row.exact is not None:
        columns.append((row.exact_label, [_digits(value) for value in row.exact]))
    if row.bound is not None:
        columns.append((row.bound_label or "bound", [_digits(value) for value in row.bound]))
    if row.simulated is not None:
        errors = row.standard_error or [0.0] * len(row.x)
        rows = zip(row.simulated, errors, strict=True)
        columns.append(("simulated", [plus_minus(y, e) if e else _digits(y) for y, e in rows]))
    header, cells = zip(*columns, strict=True)
    return table(header, zip(*cells, strict=True))


def _digits(value: float) -> str:
    return f"{value:.6g}"


def _slope(row: Series) -> str:
    low, high = row.slope_interval
    # As many digits as the interval's width earns.
    slope, low_end, high_end = (round_to_error(value, (high - low) / 4.0) for value in (row.fitted_slope, low, high))
    fitted_to = {"exact": row.exact_label, "bound": row.bound_label or "bound", "simulated": "simulated"}[row.slope_of]
    return (
        f"Fitted slope ({fitted_to}) {slope} [{low_end}, {high_end}] ({percent(row.confidence)}), "
        f"proven in the limit {_digits(row.proven_slope)}."
    )


def _omitted(row: Series) -> str:
    """Say which values the picture shows at its edge, and which it leaves out."""
    drawn = ((row.exact_label, row.exact), ("bound", row.bound), ("simulated", row.simulated))

    def named(which: Callable[[float], bool]) -> str:
        counts = {name: sum(map(which, values or ())) for name, values in drawn}
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count)

    parts = []
    if edge := named(lambda value: value <= 0.0):
        parts.append(f"At the picture's lower edge, as a logarithmic axis has no 0: {edge}.")
    if missing := named(lambda value: not value < math.inf):
        parts.append(f"Not in the picture, as not finite: {missing}.")
    return " ".join(parts)


@mpl.rc_context(STYLE)
def picture(series: Sequence[Series]) -> Figure:
    """Draw series against d or k on logarithmic axes, a panel for each and two a row."""
    columns = min(len(series), 2)
    figure, axes = panels(len(series), columns, (0.8 + 4.2 * columns, 0.5, 2.8))
    handles: dict[str, Any] = {}
    for axis, row in zip(axes, series, strict=True):
        _draw_series(axis, row)
        handles |= {label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if handles:
        lines = dict.fromkeys(row.exact_label for row in series)
        order = [label for label in (*lines, *_LABELS) if label in handles]
        shown = [handles[label] for label in order]
        figure.legend(shown, order, loc="outside upper center", ncols=4, frameon=False)
    return figure


def _draw_series(axis: Axes, row: Series) -> None:
    heights = []
    for values, style in (
        (row.exact, {"color": BLUE, "marker": ".", "markersize": 4, "label": row.exact_label}),
        (row.bound, {"color": GREY, "linestyle": "--", "label": _BOUND}),
    ):
        shown = [(x, y) for x, y in zip(row.x, values or (), strict=False) if 0.0 < y < math.inf]
        if shown:
            axis.plot(*zip(*shown, strict=True), linewidth=1.1, **style)
            heights += [y for _, y in shown]
    simulated = zip(row.x, row.simulated or (), row.standard_error or [0.0] * len(row.x), strict=False)
    points = [(x, y, 2.0 * e) for x, y, e in simulated if 0.0 < y < math.inf]
    heights += [end for _, y, e in points for end in (y, y + e, y - e) if 0.0 < end < math.inf]
    title = textwrap.wrap(row.title, 52)
    if row.bound is not None and row.bound_label:
        title += textwrap.wrap(f"bound: {row.bound_label}", 52)
    axis.set_title("\n".join(title))
    axis.set_xlabel({"d": "dimension d", "k": "number k of canaries"}[row.axis])
    axis.set_ylabel(textwrap.fill(row.quantity, 28))
    if not heights:
        axis.text(0.5, 0.5, "no positive values", transform=axis.transAxes, ha="center")
        axis.set(xticks=[], yticks=[])
        return
    if points:
        xs, ys, errors = zip(*points, strict=True)
        # A bar that reaches zero ends below the picture.
        bars = [[y - max(y - e, 1e-3 * min(heights)) for _, y, e in points], errors]
        drawn: dict[str, Any] = {"fmt": "o", "color": ORANGE, "markersize": 3.5, "linewidth": 1.1, "capsize": 2}
        axis.errorbar(xs, ys, bars, **drawn, label=_SIMULATED if row.standard_error else _BARE)
    axis.set(xscale="log", xlim=_limits(row.x), yscale="log", ylim=_limits(heights))
    for values, colour in ((row.exact, BLUE), (row.bound, GREY), (row.simulated, ORANGE)):
        if edge := [x for x, y in zip(row.x, values or (), strict=False) if y <= 0.0]:
            bottom = [axis.get_ylim()[0]] * len(edge)
            hollow: dict[str, Any] = {"color": colour, "markerfacecolor": "none", "markersize": 5, "clip_on": False}
            axis.plot(edge, bottom, "v", **hollow, label=_EDGE)
    for side in (axis.xaxis, axis.yaxis):
        _space_ticks(side)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Leave a margin, and room for two numbered ticks."""
    low, high = min(values), max(values)
    margin = max((high / low) ** 0.06, math.sqrt(5.0 * low / high))
    return low / margin, high * margin


def _space_ticks(axis: Axis) -> None:
    """Put numbers to a few ticks of a logarithmic axis."""
    low, high = axis.get_view_interval()
    if math.log10(high / low) < 2.0:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
    else:
        axis.set_major_locator(LogLocator(numticks=7))
    axis.set_minor_formatter(NullFormatter())


def _figures(run: Run) -> dict[str, Figure]:
    return {picture_name(result.id): picture(series) for result, series in _shown(run)}


PAGE = Page(
    "convergence",
    "Convergence",
    "Convergence: Theorems 3.1 to 3.3",
    text,
    file="convergence.md",
    about="how fast what the theorems bound goes to zero, measured and proven",
    figures=_figures,
    pictures=("convergence-*.svg",),
    picture_of=lambda result: picture_name(result.id) if is_of(result, ConvergenceMeasured) else "",
)
