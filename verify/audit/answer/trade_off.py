"""The trade-off curve of an audit: rates of both errors at every threshold, with a band for all thresholds at once.

Let S(x) be the probability that an observed score is at least x, and h of k observed scores are. With the levels L of
``bounds.thresholds.band``, S(x) is at least L_h and at most 1 − L_{k−h} for all x at once, each with probability 1 − α.
The h-th highest score's S is stochastically at least the h-th of sorted uniform variables. The S just above it is at
most that variable, whatever ties there are. Each side of each rate gets an equal share of what the confidence leaves.
As for ``fixed-sequence``, this needs independent scores, which those of one run are in the limit.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from canaryproof.kernels.arrays import Array, Ints
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.answer.result import AuditResult
from canaryproof.verify.audit.bounds.lower_bound import cosine_null
from canaryproof.verify.audit.bounds.thresholds import band, band_ranks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Up to so many scores, each one is a threshold. Of more, quantiles are, and all at both ends.
_ALL, _ENDS = 10_000, 100
# Ratio of a declared rank to the one before: the band is to be smooth, where a bound needs its best rank alone.
_RATIO = 1.2
# A picture has no more thresholds than these.
_DRAWN = 600
_COLUMNS = ("threshold", "fpr", "fpr_low", "fpr_high", "fnr", "fnr_low", "fnr_high")


@set_module("canaryproof.typing")
@dataclass(frozen=True, eq=False)
class TradeOffCurve:
    """Rates of both errors of who calls a canary a member if its score is at least a threshold.

    Attributes
    ----------
    thresholds
        Thresholds, from the highest on, shape (n,).
    false_positives, false_negatives
        Lower limit, estimate and upper limit of each rate, shape (n, 3). All limits hold at once with the confidence,
        if scores are independent.
    confidence
        Probability with which they do.
    claim, delta
        Claimed ε, or None, and its δ.
    """

    thresholds: Array
    false_positives: Array
    false_negatives: Array
    confidence: float
    claim: float | None
    delta: float

    def true_positive_rate(self, false_positive_rate: float) -> tuple[float, float]:
        """Return the true positive rate at a false positive rate, and its valid lower limit.

        Parameters
        ----------
        false_positive_rate
            In [0, 1].

        Returns
        -------
        The largest estimate over thresholds whose estimated rate of false positives is at most this; and the largest
        lower limit over thresholds whose upper limit is. Both are 0 where there is no such threshold.

        Raises
        ------
        ValueError
            If the rate is outside.
        """
        at = rules.NumberRange("lie between 0 and 1", 0.0, 1.0).number("false_positive_rate", false_positive_rate)
        estimate, low = (
            float(
                np.max(1.0 - self.false_negatives[:, column], initial=0.0, where=self.false_positives[:, column] <= at)
            )
            for column in (1, 2)
        )
        return estimate, low

    @property
    def advantage(self) -> tuple[float, float]:
        """Largest difference of true and false positive rates: the estimate, and its valid lower limit."""
        estimate, low = (
            float(np.max(1.0 - self.false_negatives[:, column] - self.false_positives[:, column], initial=0.0))
            for column in (1, 2)
        )
        return estimate, low

    def epsilon(self, delta: float) -> float:
        """Return a lower limit of ε by Equation (1) of Andrew et al., which holds for every δ at once.

        Parameters
        ----------
        delta
            δ in [0, 1).

        Returns
        -------
        The limit.

        Raises
        ------
        ValueError
            If δ is outside.
        """
        at = rules.DELTA_OR_ZERO.number("delta", delta)
        false_positive, false_negative = self.false_positives[:, 2], self.false_negatives[:, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.fmax(
                np.log(1.0 - at - false_negative) - np.log(false_positive),
                np.log(1.0 - at - false_positive) - np.log(false_negative),
            )
        return float(np.nanmax(values, initial=0.0))

    def to_frame(self) -> "pd.DataFrame":
        """Return a row for each threshold.

        Returns
        -------
        Columns threshold, fpr, fpr_low, fpr_high, fnr, fnr_low and fnr_high.
        """
        import pandas as pd

        rates = (self.false_positives[:, [1, 0, 2]], self.false_negatives[:, [1, 0, 2]])
        return pd.DataFrame(np.column_stack([self.thresholds, *rates]), columns=list(_COLUMNS))

    def plot(self) -> "Figure":
        """Draw the curve with its band and the claim's, and the same for small rates of false positives.

        Returns
        -------
        A matplotlib figure.
        """
        # Matplotlib takes half a second to load.
        from matplotlib.figure import Figure

        from canaryproof.verify.audit.accounting.accountant import Claim
        from canaryproof.verify.audit.markup.figures import BLUE, GREY, ORANGE

        figure = Figure(figsize=(7.0, 3.4), layout="constrained")
        linear, small = figure.subplots(1, 2)
        shown = _picture_indices(len(self.thresholds))
        low, estimate, high = (self.false_positives[shown, i] for i in range(3))
        fnr_low, fnr, fnr_high = (self.false_negatives[shown, i] for i in range(3))
        rates = np.geomspace(1e-6, 1.0, 400)
        # The right part has true positive rates.
        for axes, of in ((linear, (0.0, 1.0)), (small, (1.0, -1.0))):
            ends = np.concatenate([fnr_low, fnr_high[::-1]])
            outline = np.concatenate([low, high[::-1]]), of[0] + of[1] * ends
            axes.fill(*outline, color=BLUE, alpha=0.2, linewidth=0.0, label=f"{self.confidence:.0%} band")
            axes.plot(estimate, of[0] + of[1] * fnr, color=BLUE, label="measured")
            if self.claim is not None:
                claimed = of[0] + of[1] * Claim("add-or-remove", statement=(self.claim, self.delta)).tradeoff(rates)
                axes.plot(rates, claimed, color=ORANGE, linestyle="--", label=f"claimed: ε = {self.claim:.4g}")
            axes.plot(rates, of[0] + of[1] * (1.0 - rates), color=GREY, linewidth=0.8, label="no privacy is lost")
            axes.set_xlabel("false positive rate")
            axes.spines[["top", "right"]].set_visible(False)
        linear.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), ylabel="false negative rate")
        least = min(0.01, max(1e-6, 0.5 / len(self.thresholds)))
        small.set(xscale="log", yscale="log", xlim=(least, 1.0), ylim=(least, 1.05), ylabel="true positive rate")
        linear.legend(frameon=False, fontsize=8.0)
        return figure


def _picture_indices(count: int) -> Ints:
    """Return the indices of the thresholds that a picture has: all of few, and more at both ends."""
    if count <= _DRAWN:
        return np.arange(count)
    end = np.geomspace(1.0, count, _DRAWN // 3) - 1.0
    middle = np.linspace(0.0, count - 1.0, _DRAWN // 3)
    return np.unique(np.concatenate([end, middle, count - 1.0 - end]).round().astype(int))


def trade_off_curve(result: AuditResult) -> TradeOffCurve:
    """Return an audit's trade-off curve at its confidence.

    Parameters
    ----------
    result
        The audit.

    Returns
    -------
    The curve. Without unobserved scores its false positive rates are exact, by Theorem 3.1.

    Raises
    ------
    ValueError
        If the audit is withheld.
    """
    if result.withheld:
        raise ValueError("curve: the audit is withheld, so that its rates of errors mean nothing")
    scores = result.scores
    observed, unobserved = np.sort(scores.observed), scores.unobserved
    pooled = observed if unobserved is None else np.concatenate([observed, unobserved])
    thresholds = _thresholds(np.unique(pooled)[::-1])
    alpha = (1.0 - result.confidence) / (result.request.tried * (2.0 if unobserved is None else 4.0))
    if unobserved is None:
        exact = np.exp(cosine_null(float(scores.dim or 0)).log_tail(thresholds))
        false_positives = np.repeat(exact[:, np.newaxis], 3, axis=1)
    else:
        false_positives = _rates(np.sort(unobserved), thresholds, alpha)
    false_negatives = 1.0 - _rates(observed, thresholds, alpha)[:, ::-1]
    return TradeOffCurve(thresholds, false_positives, false_negatives, result.confidence, result.claim, result.delta)


def _thresholds(distinct: Array) -> Array:
    """Return all distinct scores, or those at both ends and at quantiles."""
    if len(distinct) <= _ALL:
        return distinct
    ends = band_ranks(len(distinct), ratio=_RATIO)
    indices = np.unique(
        np.concatenate([ends - 1, np.arange(_ENDS), np.linspace(0, len(distinct) - 1, _ALL).astype(int)])
    )
    return np.asarray(distinct[indices])


def _rates(ordered: Array, thresholds: Array, alpha: float) -> Array:
    """Return limits and estimate of the probability of a score at or above each threshold, shape (n, 3)."""
    count = len(ordered)
    levels = band(count, alpha, ratio=_RATIO)
    above: Ints = count - np.searchsorted(ordered, thresholds, side="left")
    return np.stack([levels[above], above / count, 1.0 - levels[count - above]], axis=1)
