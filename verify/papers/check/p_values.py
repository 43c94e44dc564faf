"""p-values of means and of shares, and limits of means."""

import math

import numpy as np
from scipy import optimize, special, stats

from canaryproof.kernels.arrays import Array


def mean_p_value(values: Array, expected: float) -> float:
    """Two-sided p-value of the mean of independent draws from a law of a known mean.

    If no value is negative, as with powers of deviations, a gamma law with the sample's coefficient of variation gives
    it. Sums of such values are skewed, and the central limit theorem errs by powers of ten so far out. Else Student's
    law gives it.
    """
    runs, mean = values.size, float(values.mean())
    spread = float(values.var(ddof=1))
    if values.min() >= 0.0:
        shape = runs * mean**2 / spread
        scaled = mean / (expected / shape)
        return 2.0 * float(min(special.gammainc(shape, scaled), special.gammaincc(shape, scaled), 0.5))
    return 2.0 * float(stats.t.sf(abs(mean - expected) / math.sqrt(spread / runs), runs - 1))


def less(low: Array, high: Array) -> float:
    """p-value of Welch's one-sided test that the first mean is not less than the second."""
    return float(stats.ttest_ind(low, high, equal_var=False, alternative="less").pvalue)


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


def mean_limits(values: Array, level: float) -> tuple[float, float]:
    """Return limits of the expectation of a mean of numbers in [0, 1], each wrong with at most this probability."""
    mean, allowed = float(values.mean()), -math.log(level) / values.size

    def excess(p: float) -> float:
        return float(special.rel_entr(mean, p) + special.rel_entr(1.0 - mean, 1.0 - p)) - allowed

    # Where there is no root, the end itself is allowed.
    low = float(optimize.brentq(excess, 0.0, mean)) if excess(0.0) > 0.0 else 0.0
    high = float(optimize.brentq(excess, mean, 1.0)) if excess(1.0) > 0.0 else 1.0
    return low, high
