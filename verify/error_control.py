"""Sample sizes, looks and p-values of the checks whose verdicts depend on chance."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.power import NormalIndPower, normal_sample_size_one_tail

# Power at which what a test notices is stated.
POWER = 0.9
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
    size = normal_sample_size_one_tail(claimed - alternative, POWER, level, _spread(claimed), _spread(alternative))
    return math.ceil(float(size))


def _spread(share: float) -> float:
    return math.sqrt(share * (1.0 - share))


def mean_p_value(values: NDArray[np.float64], expected: float) -> float:
    """Two-sided p-value of a sample's mean.

    Parameters
    ----------
    values
        Independent draws.
    expected
        Mean of their law.

    Returns
    -------
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
