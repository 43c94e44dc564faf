"""The page of pitfalls: what goes wrong in empirical auditing, how bad, and how the package handles it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from scipy import stats

from canaryproof.reports.page import Page, provenance
from canaryproof.verify.audit.markup.figures import BLUE, GREEN, GREY, ORANGE, STYLE, mark_edge, panels
from canaryproof.verify.audit.markup.markdown import table
from canaryproof.verify.papers.check.results import Run
from canaryproof.verify.papers.records.evidence import (
    BoundCoverage,
    CoverageRow,
    DefaultBound,
    MeanBounds,
    NominalCoverage,
    records,
)

PICTURE = "coverage.svg"
_SUITE = "bounds."

_ABOUT = """\
{provenance}. A "95% lower bound" is wrong in an audit if it is above the true ε; it promises to be so in at most 5%
of audits."""


def text(run: Run) -> str:
    """Render the page of a run of checks of the suite ``bounds``, without what they lack; "" if there are none."""
    # The claims of documents that this suite judges are among these.
    coverage, nominal = records(run, BoundCoverage), _nominal(run)
    default = records(run, DefaultBound, _SUITE).get("default")
    if not coverage and nominal is None and default is None:
        return ""
    parts = ["# Pitfalls of empirical privacy auditing", *_headline(coverage)]
    if nominal is not None:
        parts.append(f"![Share of bounds above the true ε against what is promised, a panel a method]({PICTURE})")
    parts.append(_ABOUT.format(provenance=provenance(run, "bounds")))
    for section in (_selection, _at_one, _ties, _kinds, _structure, _dependence, _dependent, _trainings):
        parts += section(coverage)
    if default is not None:
        parts += [*_cost(default), *_caps(default)]
    return "\n\n".join(parts) + "\n"


def _nominal(run: Run) -> NominalCoverage | None:
    return records(run, NominalCoverage, _SUITE).get("nominal")


def _headline(coverage: Mapping[str, BoundCoverage]) -> list[str]:
    """Say in a sentence how many settings show that bounds as printed, and the default, are no 95% bounds."""
    parts = []
    for name, check in _BOTH.items():
        if check in coverage:
            measured = coverage[check]
            cells = measured.cells
            tails = [stats.binom.sf(row.above - 1, row.runs, measured.alpha) for row in cells]
            parts.append(f"{sum(tail < measured.level / len(cells) for tail in tails)} of {len(cells)} for {name}")
    if not parts:
        return []
    return [f"Settings in which a 95% lower bound is above the true ε in more than 5% of audits: {', '.join(parts)}."]


def _rate(row: CoverageRow) -> str:
    low, high = row.interval
    return f"{row.rate:.1%} [{low:.1%}, {high:.1%}]"


def _cells(coverage: Mapping[str, BoundCoverage], check: str) -> Sequence[CoverageRow]:
    return coverage[check].cells if check in coverage else ()


def _usual(row: CoverageRow | MeanBounds) -> bool:
    return row.count == 1000 and row.delta == 1e-6


def _by_method(
    coverage: Mapping[str, BoundCoverage],
    checks: Mapping[str, str],
    keep: Callable[[CoverageRow], bool] = lambda _: True,
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Collect the rates of several checks, a row for each usual cell that is kept and a column for each check."""
    rates: dict[tuple[Any, ...], dict[str, str]] = {}
    names = [name for name, check in checks.items() if check in coverage]
    for name in names:
        for row in coverage[checks[name]].cells:
            if _usual(row) and keep(row):
                key = row.mechanism, row.null, f"{row.count:,}", f"{row.epsilon:g}"
                rates.setdefault(key, {})[name] = _rate(row)
    return [(*key, *(cells.get(name, "–") for name in names)) for key, cells in rates.items()], names


_HEAD = ("mechanism", "null", "k", "ε")
_BOTH = {
    "`andrew`, as printed": "v1.section5.limit",
    "`jagielski`, our reading": "bounds.printed.jagielski",
    "`fixed-sequence`": "bounds.coverage.fixed-sequence",
}


def _section(title: str, words: Sequence[str], rows: Sequence[Sequence[str]], head: Sequence[str]) -> list[str]:
    return [f"## {title}", words[0], table(head, rows), *words[1:]] if rows else []


def _selection(coverage: Mapping[str, BoundCoverage]) -> list[str]:
    rows, names = _by_method(coverage, _BOTH, lambda row: row.mechanism == "Gaussian")
    words = (
        "The largest of many limits is not a limit: each threshold's holds in 95% of audits, their maximum does not. "
        "Limits of both rates at full α, instead of half of it for each, and Jeffreys' limits, which hold on average "
        "over rates only, add to it. Share of bounds above the truth, with its 95% interval, at δ = 1e-6:",
        "*Here:* the default bound tests one ε after another, each at ranks and by weights or guesses that are "
        "declared for it: nothing is chosen from the scores. `band` has the ranks alone. Bounds as printed "
        "are there for comparison, only by `--bound`, and are labelled heuristic. The proofs are in "
        "`proofs_check/lower_bounds.md`.",
    )
    return _section("The threshold is chosen on the scores it is judged by", words, rows, (*_HEAD, *names))


def _at_one(coverage: Mapping[str, BoundCoverage]) -> list[str]:
    rates: dict[str, dict[str, str]] = {}
    for row in _cells(coverage, "bounds.printed.andrew-at-one"):
        rates.setdefault(f"{row.delta:g}", {})[row.null] = _rate(row)
    rows = [(delta, *(kinds.get(kind, "–") for kind in ("exact", "unobserved"))) for delta, kinds in rates.items()]
    words = (
        "How often depends on δ too: it takes part of what the largest limit is too large by. Above, mechanisms have "
        "their ε at δ = 1e-5; here ε = 1 at each δ itself. Share of `andrew`'s bounds above the truth, Gaussian "
        "scores, k = 1,000:",
        "A share of misses means little without its null and its δ: with unobserved scores two limits are estimated, "
        "which seldom miss together.",
    )
    # A part of the section before.
    return [words[0], table(("δ", "exact null", "unobserved scores"), rows), words[1]] if rows else []


def _ties(coverage: Mapping[str, BoundCoverage]) -> list[str]:
    tied = ("randomised response", "rounded Gaussian")
    rows, names = _by_method(coverage, _BOTH, lambda row: row.mechanism in tied and row.epsilon in (0.0, 1.0))
    words = (
        "Where equal scores are counted in the order in which they were sorted, a threshold lies between equals, and "
        "the attack sees a difference that no one can see. Identical samples then have a large bound:",
        "*Here:* equal scores are always counted together, and at a choice among equals guesses count as wrong.",
    )
    return _section("Tied scores", words, rows, (*_HEAD, *names))


def _kinds(coverage: Mapping[str, BoundCoverage]) -> list[str]:
    rows, names = _by_method(coverage, {"posterior interval, lower end": "bounds.printed.bayesian"})
    words = (
        "An estimate may be above the truth: without a bias it is so about half of the time. A posterior interval has "
        "a probability given a prior, and its lower end none of being below the truth: where ε = 0 a continuous prior "
        "excludes the truth itself. "
        "Share above the truth of the lower end of a 95% interval, nominally 2.5%:",
        "*Here:* `audit` says of every number whether it is an estimate, a lower bound or a posterior interval, and "
        "of every bound whether its coverage is proven, asymptotic or heuristic.",
    )
    return _section("An estimate, a bound and a posterior interval", words, rows, (*_HEAD, *names))


def _structure(coverage: Mapping[str, BoundCoverage]) -> list[str]:
    rows, names = _by_method(coverage, {"`normal-scores`": "bounds.gaussian-elsewhere"})
    words = (
        "A bound of μ, as of Gaussian differential privacy, is valid for every mechanism; the ε that it is turned into "
        "is not. With Laplace noise, share above the truth at δ = 1e-6:",
        "*Here:* the assumption is printed beside every bound that needs it, and the default needs none.",
    )
    return _section("A Gaussian trade-off curve that is not", words, rows, (*_HEAD, *names))


def _dependence(coverage: Mapping[str, BoundCoverage]) -> list[str]:
    shown = ("fixed-sequence", "band", "normal-scores")
    rows = [
        (f"`{row.method}`", f"{row.count:,}", f"{row.epsilon:g}", f"{row.runs:,}", _rate(row))
        for row in _cells(coverage, "bounds.dependent-cosines")
        if row.method in shown and row.delta == 1e-6
    ]
    words = (
        "Cosines with one release depend on each other through its norm, and no proof for independent scores covers "
        "them. One-run bounds need no independence, but a fair coin for every canary: 1,000 observed and 1,000 "
        "unobserved, chosen in advance, are none. At d = 10⁶ the dependence is too small to be seen:",
        "*Here:* bounds for independent scores are labelled asymptotic for one run; the one-run bounds are proven with "
        "`--inclusion coin` and heuristic without.",
    )
    return _section("Scores of one run", words, rows, ("bound", "k", "ε", "runs", "share above the truth"))


def _dependent(coverage: Mapping[str, BoundCoverage]) -> list[str]:
    rates: dict[str, dict[str, str]] = {}
    for row in _cells(coverage, "bounds.dependent-scores"):
        rates.setdefault(f"`{row.method}`", {})[f"{row.mechanism}, ε = {row.truth:.3g}"] = f"{row.rate:.1%}"
    names = list(dict.fromkeys(name for cells in rates.values() for name in cells))
    rows = [(method, *(cells.get(name, "–") for name in names)) for method, cells in rates.items()]
    words = (
        "A mechanism may make scores depend on each other in any way: by a scale that it draws once a run, by "
        "correlated noise, or by a state that depends on how many take part. Two states make a mechanism of ε = 1, "
        "exactly, that the default says to leak more in most runs. Share above ε of the whole mechanism, k = 1,000, "
        "δ = 1e-6 (`pure-dp`: 0):",
        "*Here:* beside the default the answer shows `largest-score`, which is proven however scores depend on each "
        "other where the null is exact. `pure-dp` needs the null given all else, which correlated canaries do not "
        "have. With a coin for each canary `one-run` is proven, and `one-run-gaussian` for a Gaussian curve.",
    )
    return _section("Scores that depend on each other", words, rows, ("bound", *names))


def _trainings(coverage: Mapping[str, BoundCoverage]) -> list[str]:
    groups: dict[str, list[CoverageRow]] = {}
    for row in _cells(coverage, "bounds.dependent-cosines"):
        # The mechanism names the training and what the attacker knows.
        if ": " in row.mechanism:
            groups.setdefault(row.mechanism, []).append(row)
    rows = []
    for mechanism, group in groups.items():
        sharpest, worst = (max(group, key=key) for key in (lambda row: row.mean, lambda row: row.rate))
        bound = f"`{sharpest.method}`: {sharpest.mean:.3g}"
        rows.append((*mechanism.split(": "), f"{sharpest.truth:.3g}", bound, f"{sharpest.runs:,}", _rate(worst)))
    words = (
        "Steps and clip norms may differ between rounds, noise may be correlated, and canaries may take part unequally "
        "or drop out without a record. Others' data answer canaries. In half of the trainings the attacker knows these "
        "data, and takes them out of the releases; with momentum he takes out the last release, too. For each attacker "
        "the claim, the bound at 95% with the largest mean, and the largest share above the claim of all bounds, "
        "at δ = 1e-5:",
        "*Here:* a score is held against the claim for its own attacker, or for a stronger one.",
    )
    head = ("training", "attacker knows", "ε", "largest mean bound", "trainings", "largest share above ε")
    return _section("Trainings that are not plain", words, rows, head)


def _cost(default: DefaultBound) -> list[str]:
    chosen = list(filter(_usual, default.means))
    names = list(chosen[0].by_method) if chosen else []
    rows = [(row.null, f"{row.epsilon:g}", *(f"{row.by_method[name]:.3g}" for name in names)) for row in chosen]
    words = (
        "A valid bound from 1,000 scores that takes no curve for granted is far below ε, even of the best attack: the "
        "large privacy losses of a "
        "Gaussian mechanism lie in a tail that few of them reach. A low bound does not say that ε is low. Mean bounds, "
        "Gaussian scores, δ = 1e-6:",
        "*Here:* the default is close to the sharpest of these for every shape of scores that was tried; with a "
        "Gaussian trade-off curve taken for granted, `normal-scores` comes close to ε.",
    )
    return _section("What being right costs", words, rows, ("null", "ε", *(f"`{n}`" for n in names)))


def _caps(default: DefaultBound) -> list[str]:
    rows = [
        (f"`{row['method']}`", *(f"{row[count]:.2f}" for count in ("100", "1000", "10000"))) for row in default.caps
    ]
    words = (
        "With unobserved scores no bound can be above its value at perfect separation, however much leaks. At "
        "δ = 1e-6, 95%, from k observed and k unobserved scores:",
        "*Here:* `audit --details` and reports print this value with every bound. With an exact null it is infinite.",
    )
    return _section("A bound has a cap", words, rows, ("bound", "k = 100", "k = 1,000", "k = 10,000"))


_COLOURS = (BLUE, ORANGE, GREEN)
_MARKERS = {"exact": "o", "unobserved": "^"}
# Rates below are drawn here.
_LEAST = 2e-4


@mpl.rc_context(STYLE)
def picture(rows: Sequence[CoverageRow]) -> Figure:
    """Draw measured against nominal rates of bounds above the truth, of ``bounds.nominal``: a panel a method."""
    methods = list(dict.fromkeys(row.method for row in rows))
    epsilons = sorted({row.epsilon for row in rows})
    nominal = sorted({row.nominal for row in rows if row.nominal is not None})
    figure, axes = panels(len(methods), 4, (9.0, 0.6, 2.1), sharex=True, sharey=True)
    handles: dict[str, Any] = {}
    for axis, method in zip(axes, methods, strict=True):
        (handles["as promised"],) = axis.plot(nominal, nominal, color=GREY, linewidth=0.8, zorder=0)
        for colour, epsilon in zip(_COLOURS, epsilons, strict=False):
            for null, marker in _MARKERS.items():
                shown = [r for r in rows if (r.method, r.epsilon, r.null) == (method, epsilon, null)]
                if shown:
                    levels = np.array([row.nominal for row in shown], np.float64)
                    rates = [max(row.rate, _LEAST) for row in shown]
                    style: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 3, "linewidth": 0.9}
                    (handles[f"ε = {epsilon:g}, {null} null"],) = axis.plot(levels, rates, **style)
        axis.set(xscale="log", yscale="log", ylim=(0.8 * _LEAST, 1.2), title=method)
        axis.xaxis.set_major_locator(FixedLocator(nominal))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_locator(NullLocator())
        mark_edge(axis.yaxis, _LEAST, "0")
    figure.supxlabel("nominal: 1 − confidence", fontsize=9.0)
    figure.supylabel("share of bounds above the true ε", fontsize=9.0)
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=4, frameon=False)
    return figure


def _figures(run: Run) -> dict[str, Figure]:
    nominal = _nominal(run)
    return {} if nominal is None else {PICTURE: picture(nominal.levels)}


PAGE = Page(
    "bounds",
    "Bounds",
    "Lower bounds and their coverage",
    text,
    file="pitfalls.md",
    about="what goes wrong in empirical auditing, how bad, and how the package handles it",
    figures=_figures,
    pictures=(PICTURE,),
    picture_of=lambda result: PICTURE if result.id == "bounds.nominal" else "",
    captions={PICTURE: "Share of lower bounds above the true ε against what is promised, a panel a method"},
)
