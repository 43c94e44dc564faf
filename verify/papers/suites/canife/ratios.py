"""By which factor a fault changes a method's number, over pairs of trainings."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.papers.check.p_values import mean_limits

# The least factor of change that counts as noticed.
FACTOR = 1.25
RISES, FALLS, UNMOVED, OPEN = "rises", "falls", "unmoved", "open"


@dataclass(frozen=True)
class Ratio:
    """By which factor a method's number changes, and its limits, each right with probability 1 − LEVEL/2."""

    value: float
    low: float
    high: float

    @property
    def moves(self) -> str:
        """The change that is certain."""
        if self.low > FACTOR:
            return RISES
        if self.high < 1.0 / FACTOR:
            return FALLS
        return UNMOVED if self.low > 1.0 / FACTOR and self.high < FACTOR else OPEN


def ratio(without: Array, with_fault: Array) -> Ratio:
    """Compare numbers of pairs of trainings, by Student's limits of the mean of logarithms of their ratios.

    Where a number is 0 or less nothing is certain of the factor.
    """
    if min(without.min(), with_fault.min()) <= 0.0:
        return Ratio(float(with_fault.mean() / without.mean()), 0.0, math.inf)
    logarithms = np.log(with_fault / without)
    mean, error = float(logarithms.mean()), float(logarithms.std(ddof=1)) / math.sqrt(len(logarithms))
    reach = float(stats.t.isf(0.5 * LEVEL, len(logarithms) - 1)) * error
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach))


def capped_ratio(without: Array, with_fault: Array) -> Ratio:
    """Compare means of shares of a cap, by limits that need no law.

    Shares are independent numbers in [0, 1] given the models that were trained and the canaries designed for them.
    By Hoeffding (1963, Theorem 1), a mean of n such numbers with expectation p < x is x or more with probability at
    most exp(−n KL(x ‖ p)). The single expectations may differ. Shares are mostly 1, where Student's law says nothing.
    """
    (low, high), (faulty_low, faulty_high) = (mean_limits(values, 0.25 * LEVEL) for values in (without, with_fault))
    return Ratio(float(with_fault.mean() / without.mean()), faulty_low / high, faulty_high / low)


def geometric_mean(numerators: Array, denominators: Array) -> float:
    """Return the geometric mean of ratios."""
    return math.exp(float(np.mean(np.log(numerators / denominators))))


def mean_sd(values: Array) -> str:
    """Return a sample's mean and deviation as text."""
    return f"{values.mean():.3g} ± {values.std(ddof=1):.2g}" if len(values) > 1 else f"{values.mean():.3g}"
