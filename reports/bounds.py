"""The page of the bounds' grid: how close the default bound is to the best one, for scores of many shapes."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from canaryproof.reports.page import Page, provenance
from canaryproof.verify.audit.markup.figures import BLACK, BLUE, GREY, ORANGE, STYLE, panels
from canaryproof.verify.audit.markup.markdown import table
from canaryproof.verify.papers.check.results import Run
from canaryproof.verify.papers.records.evidence import GridOfShapes, ShapeBounds, records

PICTURE = "bounds-grid.svg"
_DEFAULT = "fixed-sequence"
_NULLS = {"exact": "exact null", "k": "k unobserved scores", "10 k": "10 k unobserved scores"}
_LOWEST = 0.7
# Numbers that would touch their neighbours below a column.
_LARGE = {10**5: "10⁵", 10**6: "10⁶"}

_ABOUT = """\
{provenance}. Mean 95% bounds of scores of many
shapes, on the scale on which the null is N(0, 1). A share is the mean of `{default}` over the largest mean of all
bounds that need independent scores only. Two of these are its own parts with all of α: `band`, which looks at declared
ranks, and its sharper half for scores of equal variances (up to 1,000 scores, 10,000 at the full level). Where there
are as many unobserved scores as observed ones, jax_privacy's Clopper–Pearson bounds of either tail are among them,
and `one-run` at the full level. Bounds of f-DP take a Gaussian trade-off curve for granted. They are not among them,
as most of these shapes have another curve, on which such a bound may be above the truth."""


def _grid(run: Run) -> GridOfShapes | None:
    return records(run, GridOfShapes).get("bounds.grid")


def _useful(grid: GridOfShapes) -> list[ShapeBounds]:
    return [row for row in grid.cells if max(row.means.values()) >= grid.useful]


def text(run: Run) -> str:
    """Render the page of a run that has measured the grid; "" of any other."""
    grid = _grid(run)
    if grid is None:
        return ""
    rows = _useful(grid)
    groups: dict[tuple[int, str, float], list[ShapeBounds]] = {}
    for row in rows:
        groups.setdefault((row.count, row.null, row.delta), []).append(row)
    summary = [
        (
            f"{count:,}",
            _NULLS[null],
            f"{delta:g}",
            f"{len(group)}",
            f"{np.mean([row.share for row in group]):.1%}",
            f"{min(row.share for row in group):.1%}",
            f"{sum(row.share >= 0.9 for row in group)}",
            f"{sum(row.best == _DEFAULT for row in group)}",
        )
        for (count, null, delta), group in groups.items()
    ]
    low = sorted((row for row in rows if row.share < 0.9), key=lambda row: row.share)
    names = list(dict.fromkeys(name for row in rows for name in row.means))
    curves = list(dict.fromkeys(name for row in rows for name in row.of_a_curve))
    high = sum(row.share >= 0.9 for row in rows)
    parts = [
        "# Lower bounds for scores of many shapes",
        f"The default bound, `{_DEFAULT}`, has at least 90% of the largest mean in {high} of {len(rows)} settings.",
        f"![Share of the largest mean, by shape and number of scores, a panel for each null and δ]({PICTURE})",
        _ABOUT.format(provenance=provenance(run, "bounds"), default=_DEFAULT),
        "Cells where the largest mean is below 0.1 are left out.",
        table(("k", "null", "δ", "shapes", "mean share", "least", "at least 90%", "largest"), summary),
        "## Below 90%" if low else "No share is below 90%.",
    ]
    if low:
        parts.append(
            table(
                ("shape", "k", "null", "δ", "share", *(f"`{name}`" for name in names)),
                [
                    (
                        *_setting(row),
                        f"{row.share:.1%} ± {row.share_error:.1%}",
                        *(f"{row.means[name]:.3g}" if name in row.means else "–" for name in names),
                    )
                    for row in low
                ],
            )
        )
    if curves:
        parts += [
            "## Where the trade-off curve is Gaussian",
            f"Means of `{_DEFAULT}` and of bounds that need such a curve, for normal scores of the null's variance.",
            table(
                ("shape", "k", "null", "δ", *(f"`{name}`" for name in (_DEFAULT, *curves))),
                [
                    (
                        *_setting(row),
                        f"{row.means[_DEFAULT]:.3g}",
                        *(f"{row.of_a_curve[name]:.3g}" if name in row.of_a_curve else "–" for name in curves),
                    )
                    for row in rows
                    if row.of_a_curve
                ],
            ),
        ]
    return "\n\n".join(parts) + "\n"


def _setting(row: ShapeBounds) -> tuple[str, ...]:
    return row.shape, f"{row.count:,}", _NULLS[row.null], f"{row.delta:g}"


@mpl.rc_context(STYLE)
def picture(grid: GridOfShapes) -> Figure:
    """Draw the shares as a heat map."""
    every = grid.cells
    rows = _useful(grid)
    shapes = list(dict.fromkeys(row.shape for row in every))
    kinds = list(dict.fromkeys((row.null, row.delta) for row in every))
    counts = sorted({row.count for row in every})
    colours = LinearSegmentedColormap.from_list("share", [ORANGE, "#ffffff", BLUE])
    figure, axes = panels(
        len(kinds), min(3, len(kinds)), (9.0, 0.6, 0.165 * len(shapes) + 0.5), sharex=True, sharey=True
    )
    for axis, (null, delta) in zip(axes, kinds, strict=True):
        shares = np.full((len(shapes), len(counts)), np.nan)
        for row in rows:
            if (row.null, row.delta) == (null, delta):
                shares[shapes.index(row.shape), counts.index(row.count)] = row.share
        # Cells as paths: a picture within the picture would be no SVG.
        axis.pcolormesh(np.ma.masked_invalid(shares), cmap=colours, vmin=_LOWEST, vmax=2.0 * 0.9 - _LOWEST)
        made = {(row.shape, row.count) for row in every if (row.null, row.delta) == (null, delta)}
        for (y, x), share in np.ndenumerate(shares):
            useless = "·" if (shapes[y], counts[x]) in made else ""
            words = useless if np.isnan(share) else f"{100.0 * share:.0f}"
            axis.text(x + 0.5, y + 0.5, words, ha="center", va="center", fontsize=6.0)
        axis.set(title=f"{_NULLS[null]}, δ = {delta:g}")
        axis.set_xticks(
            np.arange(len(counts)) + 0.5, [_LARGE.get(count, f"{count:,}") for count in counts], fontsize=7.0
        )
        axis.set_yticks(np.arange(len(shapes)) + 0.5, shapes, fontsize=7.0)
        axis.tick_params(length=0)
    axes[0].invert_yaxis()
    figure.supxlabel("number k of observed scores; numbers are percent of the largest mean", fontsize=9.0)
    steps = (_LOWEST, 0.8, 0.9, 1.0)
    handles: list[Any] = []
    for step in steps:
        tone, words = colours((step - _LOWEST) / (1.8 - 2.0 * _LOWEST)), " or less" * (step == _LOWEST)
        handles.append(
            Rectangle((0, 0), 1, 1, facecolor=tone, edgecolor=GREY, linewidth=0.5, label=f"{step:.0%}{words}")
        )
    handles.append(Line2D([], [], linestyle="", marker=".", color=BLACK, label="largest mean below 0.1"))
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False)
    return figure


def _figures(run: Run) -> dict[str, Figure]:
    grid = _grid(run)
    return {} if grid is None else {PICTURE: picture(grid)}


PAGE = Page(
    "bounds-grid",
    "Shapes of scores",
    "Lower bounds for scores of many shapes",
    text,
    file="bounds.md",
    about="how close the default lower bound is to the best one, for scores of many shapes",
    figures=_figures,
    pictures=(PICTURE,),
)
