"""Declared tests: levels, looks, p-values, limits, and what a test of a size and power notices."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

Array = NDArray[np.float64]

# Level of a check: all its tests, in both directions and at all looks, by Bonferroni. A claim's test is by the chance
# of what is printed where the null speaks of it, and by the chance of our draws elsewhere.
LEVEL = 1e-6
# Level of each of many small checks; and of tests whose p-values may be off tenfold, for a check that declares LEVEL.
PART_LEVEL = 1e-7
# Power at which what a test notices is stated.
POWER = 0.9
# What is taken to be claimed where nothing is said: what an audit shall notice is stated for it.
EPSILON = 3.0
# A sequential test looks at a sixteenth of its runs, at a quarter, and at all: its level is split evenly (Bonferroni).
_SHARES = (16, 4, 1)
LOOKS = len(_SHARES)


def looks(runs: int) -> tuple[int, ...]:
    """Numbers of runs after which a sequential test looks; it ends at the first at which it has seen enough.

    Where nothing is wrong all runs are made: what is saved is the time of a check that finds a fault.
    """
    return tuple(max(1, runs // share) for share in _SHARES)


def visible_mean(runs: int, level: float) -> float:
    """Shift of a mean, in standard deviations, that a two-sided test notices with probability ``POWER``."""
    # Loads pandas, which takes half a second; an audit needs none of it.
    from statsmodels.stats.power import NormalIndPower

    return float(NormalIndPower().solve_power(None, runs, level, POWER, ratio=0))


def visible_spread(runs: int, level: float) -> float:
    """Ratio of standard deviations that a two-sided test for normal samples notices with probability ``POWER``."""
    # The logarithm of a sample deviation has half the variance of a sample mean in units of the deviation.
    return math.exp(visible_mean(2 * (runs - 1), level))


def visible_distance(runs: int, level: float, samples: int = 1) -> float:
    """Distance of distribution functions that Kolmogorov and Smirnov's test notices with probability ``POWER``.

    By Dvoretzky, Kiefer, Wolfowitz and Massart's inequality: of a sample from a known law, or of two of equal size.
    """
    # Each sample is farther than this from its law with the probability on the left.
    rejected, missed = (math.sqrt(math.log(2.0 * samples / p) / (2.0 * runs)) for p in (level, 1.0 - POWER))
    return samples * (rejected + missed)


def runs_for_share(claimed: float, alternative: float, level: float) -> int:
    """Return after how many runs a one-sided test notices with probability ``POWER`` that a share is another."""
    # Loads pandas, which takes half a second; an audit needs none of it.
    from statsmodels.stats.power import normal_sample_size_one_tail

    size = normal_sample_size_one_tail(claimed - alternative, POWER, level, _spread(claimed), _spread(alternative))
    return math.ceil(float(size))


def _spread(share: float) -> float:
    return math.sqrt(share * (1.0 - share))


def mean_p_value(values: Array, expected: float) -> float:
    """Two-sided p-value of the mean of independent draws from a law of a known mean.

    By a gamma law with the sample's coefficient of variation if no value is negative, as powers of deviations are
    not: their sums are skewed, and the central limit theorem errs by powers of ten so far out. Else by Student's law.
    """
    runs, mean = values.size, float(values.mean())
    spread = float(values.var(ddof=1))
    if values.min() >= 0.0:
        shape = runs * mean**2 / spread
        law = stats.gamma(shape, scale=expected / shape)
        return 2.0 * float(min(law.cdf(mean), law.sf(mean), 0.5))
    return 2.0 * float(stats.t.sf(abs(mean - expected) / math.sqrt(spread / runs), runs - 1))


def less(low: Array, high: Array) -> float:
    """p-value of Welch's one-sided test that the first mean is not less than the second."""
    return float(stats.ttest_ind(low, high, equal_var=False, alternative="less").pvalue)


def visible_difference(size: int, parts: int = 1, level: float = 0.5 * LEVEL) -> float:
    """Return the shift of a mean, in deviations of one, that all of some tests of two samples notice together."""
    # Loads pandas, which takes half a second; an audit needs none of it.
    from statsmodels.stats.power import TTestIndPower

    power = 1.0 - (1.0 - POWER) / parts
    return float(TTestIndPower().solve_power(None, size, level, power, alternative="larger"))


def least_share(power: Callable[[float], float], wanted: float) -> float:
    """Return the least probability of an event at which a test has the wanted power, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if power(middle) >= wanted else (middle, high)
    return high


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


def visible_factor(runs: int, power: float) -> float:
    """Return by how many deviations of a pair's logarithm a factor must be beyond a bound for limits to show it."""
    critical, root = stats.t.isf(0.5 * LEVEL, runs - 1), math.sqrt(runs)
    # Where statsmodels looks for the effect, at so small a level, it finds another root.
    return float(optimize.brentq(lambda effect: stats.nct.sf(critical, runs - 1, effect * root) - power, 0.0, 100.0))


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


def visible_shift(size: int, parts: int, level: float = LEVEL) -> float:
    """Return the distance of a mean from a bound, in deviations of one, that some tests of a sample all notice."""
    # Loads pandas, which takes half a second; an audit needs none of it.
    from statsmodels.stats.power import TTestPower

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


def geometric_mean(one: Array, other: Array) -> float:
    """Return the geometric mean of ratios."""
    return math.exp(float(np.mean(np.log(one / other))))
