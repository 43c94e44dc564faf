"""Limits of the factor by which a method's number changes, for the suite's comparison of audits."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from canaryproof.verify.suites.training_tests import LEVEL

Array = NDArray[np.float64]

# How much a number must change to be noticed.
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
        """What is certain of it."""
        if self.low > FACTOR:
            return RISES
        if self.high < 1.0 / FACTOR:
            return FALLS
        return UNMOVED if self.low > 1.0 / FACTOR and self.high < FACTOR else OPEN


def ratio(without: Array, with_fault: Array) -> Ratio:
    """Compare numbers of pairs of trainings, by Student's limits of the mean of logarithms of their ratios.

    Parameters
    ----------
    without, with_fault
        Numbers, pair by pair. Where one is 0 or less nothing is certain of the factor.
    """
    if min(without.min(), with_fault.min()) <= 0.0:
        return Ratio(float(with_fault.mean() / without.mean()), 0.0, math.inf)
    logarithms = np.log(with_fault / without)
    mean, error = float(logarithms.mean()), float(logarithms.std(ddof=1)) / math.sqrt(len(logarithms))
    reach = float(stats.t.isf(0.5 * LEVEL, len(logarithms) - 1)) * error
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach))


def capped_ratio(without: Array, with_fault: Array) -> Ratio:
    """Compare means of shares of a cap, by limits that need no law.

    Parameters
    ----------
    without, with_fault
        Independent numbers in [0, 1] given the models that were trained and the canaries designed for them.

    Notes
    -----
    Hoeffding (1963, Theorem 1): a mean of n such numbers is x or more, where its expectation is p < x, with probability
    at most exp(−n KL(x ‖ p)); the expectations may differ. Shares are mostly 1, where Student's law says nothing.
    """
    (low, high), (faulty_low, faulty_high) = (mean_limits(values, 0.25 * LEVEL) for values in (without, with_fault))
    return Ratio(float(with_fault.mean() / without.mean()), faulty_low / high, faulty_high / low)


def mean_limits(values: Array, level: float) -> tuple[float, float]:
    """Return limits of the expectation of a mean of numbers in [0, 1], each wrong with at most this probability."""
    mean, allowed = float(values.mean()), -math.log(level) / values.size

    def excess(p: float) -> float:
        return float(special.rel_entr(mean, p) + special.rel_entr(1.0 - mean, 1.0 - p)) - allowed

    # Where there is no root, the end itself is allowed.
    low = float(optimize.brentq(excess, 0.0, mean)) if excess(0.0) > 0.0 else 0.0
    high = float(optimize.brentq(excess, mean, 1.0)) if excess(1.0) > 0.0 else 1.0
    return low, high


def visible(runs: int, power: float) -> float:
    """Return by how many deviations of a pair's logarithm a factor must be beyond a bound for limits to show it."""
    critical, root = stats.t.isf(0.5 * LEVEL, runs - 1), math.sqrt(runs)
    # Where statsmodels looks for the effect, at so small a level, it finds another root.
    return float(optimize.brentq(lambda effect: stats.nct.sf(critical, runs - 1, effect * root) - power, 0.0, 100.0))
