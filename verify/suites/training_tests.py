"""Statistical tests of the suite ``training``."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.power import TTestIndPower

from canaryproof.verify.error_control import POWER

# Level of each check of the suite: all its tests, both directions of each.
LEVEL = 1e-6


def less(low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """p-value of Welch's one-sided test that the first mean is not less than the second."""
    return float(stats.ttest_ind(low, high, equal_var=False, alternative="less").pvalue)


def visible(size: int, parts: int = 1, level: float = 0.5 * LEVEL) -> float:
    """Return the shift of a mean, in deviations of one, that all of some tests of two samples notice together."""
    power = 1.0 - (1.0 - POWER) / parts
    return float(TTestIndPower().solve_power(None, size, level, power, alternative="larger"))


def least_share(power: Callable[[float], float], wanted: float) -> float:
    """Return the least probability of an event at which a test has the wanted power, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if power(middle) >= wanted else (middle, high)
    return high
