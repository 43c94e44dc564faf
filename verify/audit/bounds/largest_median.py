"""The largest median that any valid lower bound can have, for independent Gaussian scores with an exact null.

A valid bound is above ε′ with a probability of at most α wherever scores have an (ε′, δ)-private law. So with scores of
N(μ, 1) it is above ε′ at most as often as Neyman and Pearson's test against the hardest private law rejects. Where that
is half of the time, no valid bound has a larger median (``proofs_check/lower_bounds.md``, section 4).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import fft, optimize, special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.bounds.fixed_sequence import hardest_law
from canaryproof.verify.audit.bounds.precedence import worst_tail

# Cells of one score's law; steps of the sum's law in its standard deviation, and its length in steps.
_CELLS, _STEPS, _LENGTH = 20_000, 1000, 2**15
# Scores of N(μ, 1) farther from μ have no weight.
_REACH = 12.0
# The ratio in which the root is bracketed, and the root's absolute error.
_RATIO, _CLOSE = 0.95, 1e-5


def largest_median(count: int, mean: float, delta: float, alpha: float) -> float:
    """Return the largest median of any bound of level α, from so many scores of N(μ, 1) and the null N(0, 1)."""

    def excess(epsilon: float) -> float:
        return _power(count, mean, epsilon, delta, alpha) - 0.5

    # Above its own ε the mechanism is private, and is rejected with probability α.
    high = float(gaussian_mechanism.epsilon(delta, 1.0 / mean))
    while excess(_RATIO * high) < 0.0:
        high *= _RATIO
    return float(optimize.brentq(excess, _RATIO * high, high, xtol=_CLOSE))


def _power(count: int, mean: float, epsilon: float, delta: float, alpha: float) -> float:
    """Return the power of the best test of N(μ, 1) against the hardest (ε, δ)-private law, at level α."""
    first, second, third, fourth = (x.item() for x in hardest_law(np.array([mean]), np.array(epsilon), delta))
    edges = np.linspace(max(fourth, -_REACH), min(first, mean + _REACH), _CELLS + 1)
    tails = worst_tail(epsilon, special.log_ndtr(-edges), delta), special.ndtr(mean - edges)
    private, mechanism = (-np.diff(np.concatenate([[1.0], tail, [0.0]])) for tail in tails)
    at = np.concatenate([edges[:1], 0.5 * (edges[1:] + edges[:-1]), edges[-1:]])
    # The log likelihood ratio, but for a constant; between the third and the second it does not change.
    ratio = mean * np.where(at > second, at, np.minimum(at, third)) + np.where(at > second, -epsilon, epsilon)
    variance = max(float(law @ (ratio - law @ ratio) ** 2) for law in (private, mechanism))
    steps = ratio * _STEPS / math.sqrt(count * variance)
    steps -= steps.min()
    first_step = math.floor(count * float(private @ steps) - 0.5 * _LENGTH)
    above, seen = (np.cumsum(_sum_law(law, steps, count, first_step)[::-1]) for law in (private, mechanism))
    return float(np.interp(alpha, above, seen))


def _sum_law(law: Array, steps: Array, count: int, first: int) -> Array:
    """Return the law of the sum of independent steps from ``first`` on; between two whole numbers a step is at both."""
    below = np.floor(steps).astype(np.int64)
    share = steps - below
    numbers = np.concatenate([below, below + 1]) % _LENGTH
    step_law = np.bincount(numbers, np.concatenate([law * (1.0 - share), law * share]), _LENGTH)
    return np.roll(fft.irfft(fft.rfft(step_law) ** count, _LENGTH), -(first % _LENGTH))


# Level and δ of the table.
ALPHA, DELTA = 0.05, 1e-5


@dataclass(frozen=True)
class Medians:
    """The default's median from k scores of N(μ, 1), and the largest of any valid bound, rounded up."""

    count: int
    mean: float
    default: float
    largest: float


TABLE = (
    Medians(100, 0.5, 0.468, 0.586),
    Medians(100, 1.0, 1.61, 1.848),
    Medians(100, 2.0, 5.04, 5.487),
    Medians(100, 4.0, 15.52, 16.329),
    Medians(1_000, 0.5, 0.921, 1.033),
    Medians(1_000, 1.0, 2.45, 2.669),
    Medians(1_000, 2.0, 6.62, 7.017),
    Medians(1_000, 4.0, 18.17, 19.157),
    Medians(10_000, 0.5, 1.265, 1.389),
    Medians(10_000, 1.0, 3.15, 3.33),
    Medians(10_000, 2.0, 7.92, 8.228),
    Medians(10_000, 4.0, 20.51, 21.358),
)


def nearest(count: int, mean: float) -> Medians | None:
    """Return the table's row that is nearest to so many scores of this mean; None beyond the table."""
    if not mean > 0.0:
        return None
    row = min(TABLE, key=lambda row: _distance(row, count, mean))
    return row if _distance(row, count, mean) <= 0.5 else None


def _distance(row: Medians, count: int, mean: float) -> float:
    """Return the distance in steps of the table, which has ten times as many scores, or twice the mean, a step."""
    return max(abs(math.log10(count / row.count)), abs(math.log2(mean / row.mean)))
