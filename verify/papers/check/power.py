"""Power: the smallest effect that a test of a size and level notices with probability ``POWER``."""

import math
from collections.abc import Callable

from scipy import optimize, stats

from canaryproof.verify.audit.levels import LEVEL, POWER


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


def visible_difference(size: int, parts: int = 1, level: float = 0.5 * LEVEL) -> float:
    """Return the shift of a mean, in deviations of one, that all of some tests of two samples notice together."""
    return _visible(2 * size - 2, math.sqrt(size / 2.0), level, 1.0 - (1.0 - POWER) / parts)


def least_share(power: Callable[[float], float], wanted: float) -> float:
    """Return the least probability of an event at which a test has the wanted power, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if power(middle) >= wanted else (middle, high)
    return high


def visible_factor(runs: int, power: float) -> float:
    """Return by how many deviations of a pair's logarithm a factor must be beyond a bound for limits to show it."""
    return _visible(runs - 1, math.sqrt(runs), 0.5 * LEVEL, power)


def visible_shift(size: int, parts: int, level: float = LEVEL) -> float:
    """Return the distance of a mean from a bound, in deviations of one, that some tests of a sample all notice."""
    return _visible(size - 1, math.sqrt(size), 0.5 * level, 1.0 - (1.0 - POWER) / parts)


def _visible(freedom: int, root: float, level: float, power: float) -> float:
    """Return the shift of a mean, in deviations of one, that Student's one-sided test notices; its error is 1/root."""
    critical = float(stats.t.isf(level, freedom))
    # Where statsmodels looks for the shift, at so small a level, it may find another root, and a negative one.
    most = 4.0 * critical / root
    return float(optimize.brentq(lambda shift: stats.nct.sf(critical, freedom, shift * root) - power, 0.0, most))


def visible_share(size: int, share: float, parts: int, level: float = LEVEL) -> float:
    """Return the least probability that some tests all find to be above a share."""
    fewest = int(stats.binom.isf(0.5 * level, size, share)) + 1
    power = 1.0 - (1.0 - POWER) / parts
    return least_share(lambda p: float(stats.binom.sf(fewest - 1, size, p)), power)
