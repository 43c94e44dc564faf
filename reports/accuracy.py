"""The accuracy page: the kernels' errors found, and those of other methods at the same inputs."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from canaryproof.reports.page import Page, provenance
from canaryproof.verify.audit.markup.digits import interval
from canaryproof.verify.audit.markup.figures import BLACK, BLUE, GREEN, GREY, ORANGE, STYLE, panels
from canaryproof.verify.audit.markup.markdown import table
from canaryproof.verify.papers.check.results import Run
from canaryproof.verify.papers.records.evidence import EnclosuresCompared, KernelErrors, SweepErrors, records

PICTURE = "accuracy.svg"
_COMPARISON = "numerics.comparison."

_ABOUT = """\
{provenance}. Errors are upper bounds, in units in
the last place (ulps) of the exact result at the very floats given, and are measured against enclosures proven in ball
arithmetic, mostly one ulp wide."""
_SEARCH = """\
Inputs are random and structured draws over the whole domain. Local ascent goes on from the worst of them and from the
worst inputs of earlier searches. In practice: d ≥ 100, δ ≥ 1e-12, 0.1 ≤ ε ≤ 50, ratio of deviations from 1/2 to 2
(quantiles: probability from 1e-12 to 1 − 1e-12; binomial limits: 10 trials or more, confidence from 0.9). The budget is
8 ulps in practice and 64 anywhere, or an absolute 1e-15 where ε or a logarithm is below 0.1: errors there are given in
ulps of 0.1, of which 1e-15 is 72. A search proves nothing of what it did not meet; the enclosures are proven."""
_PROVEN = """\
Of the {count} budgets in practice {proven} are proven: `make prove` repeats the chain of bounds, whose parts are tables
in `proofs_check/rounding`. The others are searched, and so is that an iteration ends: where none does, the kernel
returns NaN. Budgets anywhere are searched. The canary stream's quantile has no row here: its relative error is below
4.6e-7 for every word, which `make prove` proves too."""
_OTHERS = """\
*plain formula*: the printed formula in floats, inverted by Brent's method where
need be. *N(0, 1/d)*: the null's normal approximation, whose distance from the exact law is no rounding error. Points at
the upper edge are no results at all, and those at the lower edge are exact or off by 0.1 ulps at most. Largest error
along each line, in ulps:"""

_TWINS = """\
Compared with multiprecision twins of 40 digits, which share no code with them, at random inputs of the part of the
domain where the twins' plain formulas serve: ratios of deviations from 1e-3 to 1e3, distances up to 300 of them,
arguments of the Gaussian mechanism from 1e-12 to 1e5, at most 10,000 trials; any cosine in any dimension. Beyond, the
enclosures rest on their proofs alone."""

# The ends of the axis of errors in ulps.
_LEAST_ULPS, _MOST_ULPS = 0.1, 1e16
_TICKS = ("exact", "10⁴", "10⁸", "10¹²", "none")
# A method's colour and marker. This package comes last, on top of the others.
_METHODS = {
    "N(0, 1/d)": (GREY, "x"),
    "scipy": (GREEN, "^"),
    "dp-accounting": (BLACK, "s"),
    "plain formula": (ORANGE, "D"),
    "canaryproof": (BLUE, "o"),
}


def _sweeps_of(run: Run) -> dict[str, SweepErrors]:
    """Return the errors along sweeps, by function."""
    return records(run, SweepErrors, _COMPARISON)


def text(run: Run) -> str:
    """Render the page of a run of the suite ``numerics``; "" without comparisons."""
    sweeps = _sweeps_of(run)
    if not sweeps:
        return ""
    searched = records(run, KernelErrors, "numerics.")
    enclosed = records(run, EnclosuresCompared, "numerics.enclosures.")
    parts = (
        "# Accuracy of the kernels",
        *_headline(searched),
        f"![Errors in ulps of the kernels and of others along one line each]({PICTURE})",
        _ABOUT.format(provenance=provenance(run, "numerics")),
        "## Worst errors found",
        _SEARCH,
        _PROVEN.format(count=len(searched), proven=sum(row.practice.proven is not None for row in searched.values())),
        _searched(searched),
        "## Compared with other libraries",
        _OTHERS,
        _compared(sweeps),
        "## The enclosures themselves",
        _TWINS,
        _enclosed(enclosed),
    )
    return "\n\n".join(parts) + "\n"


def _headline(searched: Mapping[str, KernelErrors]) -> list[str]:
    """Say in a sentence how large errors are; nothing where none were searched."""
    if not searched:
        return []
    practice = max(row.practice.ulps for row in searched.values())
    whole = max(row.whole.ulps for row in searched.values())
    of_budget = max(map(_of_budget, searched.values()))
    return [
        f"The largest error found of {len(searched)} functions is {practice:.2g} ulps in practice and {whole:.2g} "
        f"anywhere, at most {of_budget:.0%} of the budget of each."
    ]


def _of_budget(row: KernelErrors) -> float:
    return max(row.practice.share_of_budget, row.whole.share_of_budget)


def _searched(searched: Mapping[str, KernelErrors]) -> str:
    rows = [
        (
            f"`{name}`",
            f"{row.practice.judged + row.whole.judged:,}",
            "searched" if row.practice.proven is None else f"proven: {row.practice.proven:.2f}",
            f"{row.practice.ulps:.2f}",
            f"{row.whole.ulps:.2f}",
            f"{_of_budget(row):.0%}",
            ", ".join(f"{key} = {value:.6g}" for key, value in row.whole.arguments.items()),
            interval(row.whole.enclosure),
        )
        for name, row in searched.items()
    ]
    header = (
        "function",
        "inputs",
        "bound in practice, ulps",
        "in practice, ulps",
        "anywhere, ulps",
        "of budget",
        "worst input",
        "result in",
    )
    return table(header, rows)


def _compared(sweeps: Mapping[str, SweepErrors]) -> str:
    methods = list(dict.fromkeys(name for sweep in sweeps.values() for name in sweep.ulps))
    rows = [
        (
            f"`{name}`",
            sweep.title,
            f"{sweep.axis} from {sweep.points[0]:g} to {sweep.points[-1]:g}",
            *(_largest(sweep.worst.get(method)) for method in methods),
        )
        for name, sweep in sweeps.items()
    ]
    return table(("function", "computed", "along", *methods), rows)


def _enclosed(enclosed: Mapping[str, EnclosuresCompared]) -> str:
    rows = [(f"`{name}`", f"{row.compared:,}", f"{len(row.missed)}", f"{row.wide}") for name, row in enclosed.items()]
    return table(("module", "inputs", "outside", "wider than 2 ulps"), rows)


def _largest(ulps: float | None) -> str:
    if ulps is None:
        return ""
    return f"{ulps:.3g}" if ulps < float("inf") else "no result"


@mpl.rc_context(STYLE)
def picture(sweeps: Mapping[str, SweepErrors]) -> Figure:
    """Draw the errors of several methods along sweeps of one argument, a panel for each function."""
    figure, axes = panels(len(sweeps), 2, (8.4, 0.6, 2.4))
    used = set()
    for axis, (function, sweep) in zip(axes, sweeps.items(), strict=True):
        for name, (colour, marker) in _METHODS.items():
            if name not in sweep.ulps:
                continue
            used.add(name)
            # Exact results are drawn at the lower edge, and no result at all at the upper one.
            ulps = [min(max(value, _LEAST_ULPS), _MOST_ULPS) for value in sweep.ulps[name]]
            axis.plot(sweep.points, ulps, marker, color=colour, markersize=2.6, clip_on=False)
        axis.set(xscale="log", yscale="log", ylim=(_LEAST_ULPS, _MOST_ULPS))
        axis.set(title=f"{function}\n{sweep.title}", xlabel=sweep.axis, ylabel="error, ulps")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.axhline(8.0, color=GREY, linewidth=0.8, zorder=0)
        axis.set_yticks([_LEAST_ULPS, *10.0 ** np.arange(4, 13, 4), _MOST_ULPS], _TICKS)
    handles = [
        Line2D([], [], linestyle="", color=colour, marker=marker, markersize=4, label=name)
        for name, (colour, marker) in _METHODS.items()
        if name in used
    ]
    handles.append(Line2D([], [], color=GREY, linewidth=0.8, label="budget: 8 ulps"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    return figure


def _figures(run: Run) -> dict[str, Figure]:
    sweeps = _sweeps_of(run)
    return {PICTURE: picture(sweeps)} if sweeps else {}


PAGE = Page(
    "accuracy",
    "Accuracy",
    "Accuracy of the kernels",
    text,
    file="accuracy.md",
    about="errors of the kernels, worst inputs, and the same of other libraries",
    figures=_figures,
    pictures=(PICTURE,),
    picture_of=lambda result: PICTURE if result.id.startswith(_COMPARISON) else "",
    captions={PICTURE: "Errors of the kernels and of what a user would take instead, in ulps, along one line each"},
)
