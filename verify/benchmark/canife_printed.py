"""The numbers that the papers print of the comparison with CANIFE, judged beside our own on the same data.

Section 5.4 of the final version and Appendix H of the submission have the same two means and deviations. Neither says
over how many trainings, at which δ of the conversion, nor what attack and estimator one of them is of.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

from canaryproof.verify.benchmark.canife_methods import METHODS, Plan
from canaryproof.verify.benchmark.canife_spread import spread
from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Verdict

# Of each reading's tests together.
LEVEL = 1e-6


class Printed(NamedTuple):
    """A printed mean and deviation, and the methods that it may be of: the text's own first."""

    ids: tuple[str, ...]
    mean: float
    deviation: float
    readings: tuple[str, ...]


PRINTED = (
    Printed(
        ("final.section5.4.canife", "submission.appendixH.canife"),
        0.879,
        0.124,
        ("CANIFE as printed", "CANIFE, conversion at 1/n", "CANIFE, no errors are ∞"),
    ),
    Printed(
        ("final.section5.4.ours",),
        6.76,
        1.06,
        (
            "Algorithm 3, all rounds",
            "Algorithm 3, all rounds: pinned",
            "Algorithm 2, final model",
            "Algorithm 2, change of the model",
        ),
    ),
)
# The authors' own lower bound, and one whose coverage is proven for independent scores.
_BOUNDS = ("andrew", "fixed-sequence")
_BETWEEN = (PRINTED[0].mean, PRINTED[1].mean)


def claims(found: Sequence[Mapping[str, Any]], plan: Plan, fashion: bool) -> list[dict[str, Any]]:
    """Put what is printed beside what was found.

    Parameters
    ----------
    found
        Runs with Poisson samples.
    plan
        What CANIFE's composition is told.
    fashion
        Whether the data are those of the papers; else nothing is decided.

    Returns
    -------
    A row for each reading of each claim, with the verdicts of both.
    """
    methods = {method.name: method for method in METHODS}
    rows = []
    for printed in PRINTED:
        readings = {}
        for name in printed.readings:
            values = [methods[name].value(run, plan).epsilon for run in found]
            judged = compared(values, printed.mean, printed.deviation, methods[name].cap(found[0], plan))
            readings[name] = values, judged
        rows += _rows(", ".join(printed.ids), f"{printed.mean:g} ± {printed.deviation:g}", readings, fashion)
    readings = {}
    for name in _BOUNDS:
        values = [float(run["oneshot"]["all"]["unobserved"]["bounds"][name]["value"]) for run in found]
        readings[f"Algorithm 3, all rounds: {name}"] = values, between(values, *_BETWEEN)
    low, high = _BETWEEN
    return rows + _rows("review.canife.bound", f"a lower bound between {low:g} and {high:g}", readings, fashion)


def _rows(
    name: str, statement: str, readings: Mapping[str, tuple[Sequence[float], tuple[Verdict, str]]], fashion: bool
) -> list[dict[str, Any]]:
    verdict = _verdict([found for _, (found, _) in readings.values()])
    return [
        {
            "id": name,
            "statement": statement,
            "method": method,
            "epsilon": spread(values),
            "reading": str(found if fashion else Verdict.NEEDS_DATA),
            "verdict": str(verdict if fashion else Verdict.NEEDS_DATA),
            "finding": finding if fashion else "",
        }
        for method, (values, (found, finding)) in readings.items()
    ]


def _verdict(readings: Sequence[Verdict]) -> Verdict:
    """Verdict of a claim from those of its readings, the text's own first.

    Where all are refuted the claim is not: learning rate, width and a δ are not printed, and others may have it.
    """
    if readings[0] is Verdict.CONFIRMED:
        return Verdict.CONFIRMED
    return Verdict.QUALIFIED if Verdict.CONFIRMED in readings else Verdict.INCONCLUSIVE


def compared(values: Sequence[float], mean: float, deviation: float, cap: float) -> tuple[Verdict, str]:
    """Judge whether a printed mean and deviation may be of trainings like ours, of which as many are supposed.

    Parameters
    ----------
    values
        Our numbers, one a training.
    mean, deviation
        What is printed.
    cap
        The largest number that ours can be.

    Returns
    -------
    Refuted if the printed mean is above the cap, or Welch's test of the means or the F test of the variances rejects.
    Else confirmed, unless ours are all equal, or the test could not have told the printed mean from 0.
    """
    runs, array = len(values), np.array(values)
    if mean > cap:
        return Verdict.REFUTED, f"the cap is {cap:.3g}"
    if runs < 2 or not np.isfinite(array).all():
        infinite = int(np.isinf(array).sum())
        return (Verdict.REFUTED, f"infinite in {infinite}") if infinite else (Verdict.INCONCLUSIVE, "one training")
    ours = float(array.std(ddof=1))
    welch = float(stats.ttest_ind_from_stats(array.mean(), ours, runs, mean, deviation, runs, equal_var=False).pvalue)
    finding = f"p = {welch:.2g} for the mean"
    p_values = [welch]
    # Numbers that are equal but for rounding have no normal law, and their variance no test.
    varied = ours > 1e-9 * abs(array.mean())
    if varied:
        law, larger = stats.f(runs - 1, runs - 1), (deviation / ours) ** 2
        p_values.append(2.0 * float(min(law.sf(larger), law.cdf(larger))))
        finding += f", {p_values[-1]:.2g} for the deviation"
    if min(p_values) <= 0.5 * LEVEL:
        return Verdict.REFUTED, finding
    visible = visible_shift(runs)
    finding += f"; a shift of {visible:.2g} printed deviations would be seen"
    return (Verdict.CONFIRMED if varied and visible * deviation <= mean else Verdict.INCONCLUSIVE), finding


def visible_shift(runs: int) -> float:
    """Return the distance of two means, in deviations, that a two-sided t test of so many runs each sees."""
    freedom, root = 2 * runs - 2, math.sqrt(runs / 2.0)
    critical = stats.t.isf(0.25 * LEVEL, freedom)

    def missing(shift: float) -> float:
        return float(stats.nct.sf(critical, freedom, shift * root)) - POWER

    return float(optimize.brentq(missing, 0.0, 4.0 * critical / root))


def between(values: Sequence[float], low: float, high: float) -> tuple[Verdict, str]:
    """Judge by Student's tests whether the mean of our numbers lies between two others.

    Parameters
    ----------
    values
        Our numbers, one a training.
    low, high
        The ends.
    """
    array = np.array(values)
    if len(values) < 2 or not np.isfinite(array).all():
        return Verdict.INCONCLUSIVE, "one training, or an infinite bound"
    if array.std() == 0.0:
        # All numbers are the bound's cap, of which Student's law says nothing.
        return Verdict.INCONCLUSIVE, "equal in all trainings"
    above = float(stats.ttest_1samp(array, low, alternative="greater").pvalue)
    below = float(stats.ttest_1samp(array, high, alternative="less").pvalue)
    finding = f"p = {above:.2g} that it is not above, {below:.2g} that it is not below"
    if max(above, below) <= 0.5 * LEVEL:
        return Verdict.CONFIRMED, finding
    outside = max(above, below) >= 1.0 - 0.5 * LEVEL
    return (Verdict.REFUTED if outside else Verdict.INCONCLUSIVE), finding
