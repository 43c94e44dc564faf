"""Tests and verdicts of the suite ``canife``."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.power import TTestPower

from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Verdict
from canaryproof.verify.suites.training_tests import LEVEL, least_share

Array = NDArray[np.float64]

PAPER = "CANIFE (arXiv 2210.02912), "


def above(values: Array, bound: float = 0.0) -> float:
    """p-value of the test that a mean is at most a bound: Student's, or the sign test's where all values are equal."""
    if np.ptp(values) == 0.0:
        return 0.5 ** len(values) if values[0] > bound else 1.0
    return float(stats.ttest_1samp(values, bound, alternative="greater").pvalue)


def below(values: Array, bound: float = 0.0) -> float:
    """p-value of the test that a mean is at least a bound."""
    return above(-values, -bound)


def share_above(hits: int, size: int, share: float) -> float:
    """p-value of the test that what was hit so often has at most this probability."""
    return float(stats.binom.sf(hits - 1, size, share))


def share_below(hits: int, size: int, share: float) -> float:
    """p-value of the test that what was hit so often has at least this probability."""
    return float(stats.binom.cdf(hits, size, share))


def judged(for_it: Sequence[float], against_it: Sequence[float], level: float = LEVEL) -> Verdict:
    """Judge by p-values: of the tests that must all reject, and of those that refute if one does."""
    if max(for_it) <= 0.5 * level:
        return Verdict.CONFIRMED
    return Verdict.REFUTED if min(against_it) <= 0.5 * level / len(against_it) else Verdict.INCONCLUSIVE


def both(ours: Verdict, printed: Verdict) -> Verdict:
    """Put the verdicts of two settings together, each found at half the level."""
    if ours is printed:
        return ours
    return Verdict.QUALIFIED if {ours, printed} == {Verdict.CONFIRMED, Verdict.REFUTED} else Verdict.INCONCLUSIVE


def visible(size: int, parts: int, level: float = LEVEL) -> float:
    """Return the distance of a mean from a bound, in deviations of one, that some tests of a sample all notice."""
    power = 1.0 - (1.0 - POWER) / parts
    return float(TTestPower().solve_power(None, size, 0.5 * level, power, alternative="larger"))


def visible_share(size: int, share: float, parts: int, level: float = LEVEL) -> float:
    """Return the least probability that some tests all find to be above a share."""
    fewest = int(stats.binom.isf(0.5 * level, size, share)) + 1
    power = 1.0 - (1.0 - POWER) / parts
    return least_share(lambda p: float(stats.binom.sf(fewest - 1, size, p)), power)


def spoken(values: Array) -> str:
    """Say a sample's mean and deviation."""
    return f"{values.mean():.3g} ± {values.std(ddof=1):.2g}" if len(values) > 1 else f"{values.mean():.3g}"


def ratio(one: Array, other: Array) -> float:
    """Return the geometric mean of ratios."""
    return math.exp(float(np.mean(np.log(one / other))))
