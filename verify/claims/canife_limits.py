"""CANIFE's per-round ε̂ as a statistic: its confidence limits, and the choice of its threshold (Section 3.4, C.1)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels import binomial
from canaryproof.verify.claims.canife_numbers import HALF, PAPER, SCORES_DELTA
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.results import Context, Outcome, Verdict


def _limits(counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return binomial.interval(counts, HALF, 0.95)


def estimate(fp: NDArray[np.float64], fn: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """Return ε̂ of rates of error, infinite where one is zero.

    Parameters
    ----------
    fp, fn
        Rates of false positives and of false negatives.
    delta
        δ of the formula.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.log(np.maximum(1.0 - delta - one, 0.0) / other) for one, other in ((fp, fn), (fn, fp))]
    return np.asarray(np.maximum(*(np.nan_to_num(term, nan=-np.inf, posinf=np.inf) for term in terms)))


def coverage(delta: float, rates: Sequence[float]) -> dict[str, Any]:
    """Compute how often the limits of ε̂ hold the ε̂ of the true rates, exactly, at a threshold chosen beforehand.

    Parameters
    ----------
    delta
        δ of the formula.
    rates
        True rates of error to try, each pair of them.
    """
    counts = np.arange(HALF + 1)
    low, high = _limits(counts)
    lower = estimate(high[:, None], high[None, :], delta)
    upper = estimate(low[:, None], low[None, :], delta)
    worst: dict[str, Any] = {"both": 1.0, "lower": 1.0}
    for fp in rates:
        for fn in rates:
            true = float(estimate(np.asarray(fp), np.asarray(fn), delta))
            weights = np.outer(stats.binom.pmf(counts, HALF, fp), stats.binom.pmf(counts, HALF, fn))
            above = float(weights[lower <= true].sum())
            both = float(weights[(lower <= true) & (true <= upper)].sum())
            if both < worst["both"]:
                worst |= {"both": both, "rates": (fp, fn)}
            worst["lower"] = min(worst["lower"], above)
    return worst


class Selected(NamedTuple):
    """Law of the largest of the values that a rising threshold meets, for a canary that does nothing.

    Attributes
    ----------
    values
        Values, rising.
    probabilities
        Probability of each.
    """

    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]


def selected(values: NDArray[np.float64]) -> Selected:
    """Compute the law of the largest finite value over all thresholds, all orders of the scores being equally likely.

    A threshold that rises from below all scores to above all walks from no false negatives to no false positives, and
    the largest value stays below a number if and only if the walk keeps to the counts whose finite value does.

    Parameters
    ----------
    values
        Value by counts of false positives and of false negatives, each from 0 to the trials of its kind.
    """
    half = len(values) - 1
    levels = np.unique(values[np.isfinite(values)])
    allowed = ~np.isfinite(values) | (values <= levels[:, None, None])
    reached = np.zeros_like(allowed, dtype=np.float64)
    for fp in reversed(range(half + 1)):
        for fn in range(half + 1):
            before = np.full(levels.size, float((fp, fn) == (half, 0)))
            # The next score is a canary's with the share of canaries among the scores that are left.
            if fn > 0:
                before += reached[:, fp, fn - 1] * (half - fn + 1) / (half - fn + 1 + fp)
            if fp < half:
                before += reached[:, fp + 1, fn] * (fp + 1) / (half - fn + fp + 1)
            reached[:, fp, fn] = before * allowed[:, fp, fn]
    return Selected(levels, np.diff(reached[:, 0, half], prepend=0.0))


def estimates(delta: float, half: int = HALF) -> NDArray[np.float64]:
    """Compute ε̂ by counts of false positives and of false negatives.

    Parameters
    ----------
    delta
        δ of the formula.
    half
        Trials with the canary, and without.
    """
    rates = np.arange(half + 1) / half
    return estimate(rates[:, None], rates[None, :], delta)


def selected_miss(delta: float) -> tuple[float, float]:
    """Compute how often the lower limit at the largest finite ε̂ is above 0 for a canary that does nothing, exactly.

    Parameters
    ----------
    delta
        δ of the formula; where a canary does nothing, ε = 0 whatever δ.

    Returns
    -------
    If of several thresholds with the largest ε̂ one with a lower limit of at most 0 is taken, and one above 0.
    """
    values = estimates(delta)
    _, high = _limits(np.arange(HALF + 1))
    above = estimate(high[:, None], high[None, :], delta) > 0.0

    def miss(preferred: NDArray[np.bool_]) -> float:
        # Twice the rank of ε̂, and one more where preferred, orders by ε̂ first.
        ranks = np.searchsorted(np.unique(values), values).astype(np.float64)
        keys = np.where(np.isfinite(values), 2.0 * ranks + preferred, np.inf)
        law = selected(keys)
        return float(law.probabilities[np.isin(law.values, keys[above])].sum())

    return miss(~above), miss(above)


def _judge_limits(_: Context) -> Outcome:
    allowed = 0.05
    worst = coverage(SCORES_DELTA, [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    # Where a count is zero the figures show no limits: at the largest finite ε̂.
    least, most = selected_miss(SCORES_DELTA)
    finding = (
        f"at a threshold chosen beforehand they hold in at least {worst['both']:.4f} of the cases (exactly, over 81 "
        f"pairs of rates; two 95% intervals guarantee 90%); at the threshold of the largest finite ε̂ the lower limit "
        f"of a canary without effect is above 0 with probability {least:.4f} to {most:.4f} (exactly, by the choice "
        "among thresholds with equal ε̂)"
    )
    holds = worst["both"] >= 1.0 - allowed and most <= allowed
    return found(
        Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, worst=worst, missed_least=least, missed_most=most
    )


def judge_conservative(law: Selected) -> Outcome:
    """Judge that the threshold of the largest ε̂ errs upwards, by what it makes of a canary that does nothing.

    Parameters
    ----------
    law
        Law of the largest finite ε̂.
    """
    upwards = float(law.probabilities[law.values > 0.0].sum())
    below = np.cumsum(law.probabilities)
    median, extreme = (float(law.values[np.searchsorted(below, level)]) for level in (0.5, 0.95))
    return found(
        Verdict.CONFIRMED if upwards >= 0.95 else Verdict.REFUTED,
        f"where nothing leaks (ε = 0) the largest finite ε̂ of 100 trials is above 0 with probability {upwards:.4f}, "
        f"{median:.2f} in the median, above {extreme:.2f} in 5% of the cases: errs upwards, and so is no lower bound",
        above_zero=upwards,
        median=median,
        upper_5_percent=extreme,
    )


def _judge_infinite_limit(_: Context) -> Outcome:
    low, _high = _limits(np.arange(HALF + 1))
    upper = estimate(low[:, None], low[None, :], SCORES_DELTA)
    zero = (np.arange(HALF + 1)[:, None] == 0) | (np.arange(HALF + 1)[None, :] == 0)
    infinite = np.isinf(upper) & (upper > 0)
    one = float(upper[1, 1])
    # A rate at its upper end leaves a numerator of 0 for one term, and the other is infinite all the same.
    verdict = Verdict.CONFIRMED if np.array_equal(infinite, zero) else Verdict.REFUTED
    return found(
        verdict,
        f"the upper limit is infinite exactly where a count is zero ({int(zero.sum())} of {zero.size} pairs of "
        f"counts); one error of each kind has the limit {one:.2f}",
        pairs=int(infinite.sum()),
        one_error_each=one,
    )


CHECKS = (
    claim(
        "canife.section3.4.conservative",
        PAPER + "Section 3.4",
        "Taking the threshold at which the per-round ε̂ is largest is conservative",
        lambda _: judge_conservative(selected(estimates(SCORES_DELTA))),
    ),
    claim(
        "canife.appendixC1.limits",
        PAPER + "Appendix C.1",
        "The per-round ε̂, maximal over thresholds, has 95% confidence intervals by Clopper and Pearson's method",
        _judge_limits,
    ),
    claim(
        "canife.figure4.infinite-limits",
        PAPER + "Figure 4",
        "Some rounds have an infinite upper 95% limit",
        _judge_infinite_limit,
    ),
)
