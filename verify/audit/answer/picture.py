"""An audit as a picture: scores against the null, and ε̂ with its interval, the best lower bound and the claim."""

import math

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from canaryproof.verify.audit.answer.result import AuditResult
from canaryproof.verify.audit.answer.text import answer, claim_text, shown_bound
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.markup.digits import percent
from canaryproof.verify.audit.markup.figures import BLUE, GREEN, GREY, ORANGE, STYLE, png, svg


def draw(result: AuditResult, *, titled: bool = True) -> Figure:
    """Draw an audit, with its answer as the title or without."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 5.2), layout="constrained")
        above, below = figure.subplots(2, 1, height_ratios=(3.0, 1.0))
        _draw_scores(above, result)
        _draw_epsilon(below, result)
        if titled:
            figure.suptitle(answer(result), x=0.01, ha="left", fontsize=10.0, wrap=True)
    return figure


def data(result: AuditResult, form: str) -> bytes:
    """Return an audit's picture as the bytes of a file, ``svg`` or ``png``."""
    figure = draw(result)
    return svg(figure).encode() if form == "svg" else png(figure)


def _draw_scores(axes: Axes, result: AuditResult) -> None:
    scores = result.scores
    observed, unobserved = scores.observed, scores.unobserved
    noun = "cosine" if scores.kind is ScoreKind.COSINE else "score"
    if result.has_equal_scores:
        centre, scale, unit = 0.0, 1.0, noun
    elif unobserved is None:
        centre, scale, unit = 0.0, 1.0 / math.sqrt(scores.dim or 1), "√d · cosine"
    else:
        centre, scale, unit = float(unobserved.mean()), float(unobserved.std()), f"({noun} − mean) / deviation of null"
    seen = (observed - centre) / scale
    unseen = None if unobserved is None else (unobserved - centre) / scale
    everything = seen if unseen is None else np.concatenate([seen, unseen])
    low, high = float(everything.min()), float(everything.max())
    if result.has_equal_scores:
        edge = 0.1 * (high - low) or 1.0
        low, high = low - edge, high + edge
    else:
        low, high = min(-3.5, low), max(3.5, high)
    bins = np.linspace(low, high, 1 + min(40, 6 + round(1.5 * math.sqrt(len(seen))))).tolist()
    x = np.linspace(low, high, 400)
    if unseen is not None:
        axes.hist(unseen, bins=bins, density=True, color=GREY, alpha=0.25, label=f"{len(unseen):,} unobserved")
    axes.hist(seen, bins=bins, density=True, color=BLUE, alpha=0.35, label=f"{len(seen):,} observed")
    if not result.has_equal_scores:
        axes.plot(x, stats.norm.pdf(x), color=GREY, label="null N(0, 1/d)" if unseen is None else "null, fitted")
        fitted = stats.norm.pdf(x, seen.mean(), seen.std())
        axes.plot(x, fitted, color=BLUE, linestyle="--", label="observed, fitted")
    axes.set_xlabel(unit)
    axes.set_ylabel("density")
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)


def _draw_epsilon(axes: Axes, result: AuditResult) -> None:
    estimate, bound = result.estimate, result.bound
    axes.set_yticks([])
    axes.set_ylim(0.0, 3.0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"ε at δ = {result.delta!r}")
    ends = [1.0, result.claim or 0.0, 0.0 if bound is None else bound.low]
    ends += [] if estimate is None else [estimate.epsilon, estimate.high]
    right = 1.08 * max(end for end in ends if math.isfinite(end))
    if estimate is not None:
        # Infinite values stand at the edge.
        value, low, high = (min(each, right) for each in (estimate.epsilon, estimate.low, estimate.high))
        label = f"estimate {estimate.name}, {percent(result.confidence)} interval"
        label += ", infinite" if math.isinf(estimate.epsilon) else ""
        reach = [[value - low], [max(0.0, high - value)]]
        axes.errorbar([value], [2.2], xerr=reach, fmt="o", color=BLUE, capsize=4.0, label=label)
    if bound is not None:
        axes.plot([min(bound.low, right)], [1.2], marker=">", color=GREEN, label=shown_bound(bound), linestyle="none")
    if result.claim is not None:
        axes.axvline(result.claim, color=ORANGE, linestyle="--", label=claim_text(result.claim))
    if bound is not None:
        axes.hlines(1.2, min(bound.low, right), right, color=GREEN, linewidth=1.0)
    axes.set_xlim(0.0, right)
    if result.withheld:
        axes.set_xticks([])
        axes.text(0.5, 1.5, "estimates and bounds withheld", transform=axes.get_yaxis_transform(), ha="center")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, -0.75))
