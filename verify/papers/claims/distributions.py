"""Laws of lower bounds and of estimates from 1,000 canaries, without a simulation: how far out a printed one is.

A lower bound is the largest of its thresholds' bounds: it is large if some threshold has few errors, and small only if
none has. Its law is limited by union bounds over the thresholds; an estimate's law is an integral. Both are skewed, and
a normal law in their place errs by powers of ten as far out as tests of level 1e-6 look.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

from canaryproof.kernels import binomial, gaussian_mechanism, two_gaussians
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.threshold_attack import threshold_epsilon
from canaryproof.kernels.two_gaussians import Direction
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.check.results import Design
from canaryproof.verify.papers.claims.transcripts import Final

_LIMITS = binomial.upper(np.arange(Final.CANARIES), Final.CANARIES, 0.95, method="jeffreys")
_MISSES = np.arange(Final.CANARIES)
# The grid of numbers of errors where both rates are counted: dense at first, and ever coarser.
_ERRORS = np.unique(np.concatenate([np.arange(30.0), np.geomspace(30.0, Final.CANARIES - 1.0, 80)]).astype(int))
# Where the null's values are, as standard normal quantiles.
_GRID = np.linspace(-7.0, 7.5, 700)
# To what a factor is computed, in its logarithm.
_STEP = 0.01


class BoundLaw(Protocol):
    """Limits of the probabilities of bounds, for canaries at a distance from the null."""

    def at_least(self, bound: float, distance: float) -> float:
        """Return no less than the probability of this bound or a larger one."""

    def below(self, bound: float, distance: float) -> float:
        """Return no less than the probability of a smaller bound."""


def _alarms(misses: NDArray[np.int_], bound: float, delta: float) -> Array:
    """Largest rates of alarms with which so many misses still give the bound: Equation (1), solved for FPR.

    Where misses alone exceed 1 − δ, no rate does, and it is 0.
    """
    limits = _LIMITS[misses]
    alarms = np.maximum(1.0 - delta - limits * math.exp(bound), (1.0 - delta - limits) * math.exp(-bound))
    return np.maximum(alarms, 0.0)


@dataclass(frozen=True)
class KnownNull:
    """The bound from cosines N(m, 1) against the null N(0, 1), whose rate of alarms is known."""

    delta: float

    def _missed(self, bound: float, distance: float) -> Array:
        """Probability of a miss at the threshold that has the bound with so many misses."""
        missed: Array = special.ndtr(-special.ndtri(_alarms(_MISSES, bound, self.delta)) - distance)
        return missed

    def at_least(self, bound: float, distance: float) -> float:
        """Sum over the numbers of misses."""
        return float(np.sum(stats.binom.cdf(_MISSES, Final.CANARIES, self._missed(bound, distance))))

    def below(self, bound: float, distance: float) -> float:
        """By the best number of misses."""
        return float(np.min(stats.binom.sf(_MISSES, Final.CANARIES, self._missed(bound, distance))))


@dataclass(frozen=True)
class SampledNull:
    """The bound from canaries' largest cosines over rounds, and those of as many unobserved canaries.

    In one of the rounds a canary's cosine is N(m, 1); in all others it is N(0, 1).
    """

    rounds: int
    delta: float

    def _possible(self, bound: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return indices in ``_ERRORS`` of misses that allow the bound, and of the most alarms that do with each."""
        alarms = np.searchsorted(_LIMITS, _alarms(_ERRORS, bound, self.delta), side="right") - 1
        misses = np.flatnonzero(alarms >= 0)
        return misses, alarms[misses]

    def at_least(self, bound: float, distance: float) -> float:
        """Sum over blocks of misses, each with its last number and as many alarms as its first allows, or more."""
        misses, alarms = self._possible(bound)
        return float(_upper_chances(self.rounds, distance)[misses, np.searchsorted(_ERRORS, alarms)].sum())

    def below(self, bound: float, distance: float) -> float:
        """By the best pair of misses and alarms."""
        misses, alarms = self._possible(bound)
        indices = np.searchsorted(_ERRORS, alarms, side="right") - 1
        return float(1.0 - _lower_chances(self.rounds, distance)[misses, indices].max(initial=0.0))


@lru_cache
def _upper_chances(rounds: int, distance: float) -> Array:
    """No less than the chance of no more misses than a block's last number (rows) and no more alarms."""
    few = _few_misses(np.append(_ERRORS[1:] - 1, Final.CANARIES - 1), rounds, distance)
    # The larger the null, the less likely few misses are with it, so a cell's left end is on the safe side.
    chances: Array = np.pad(few, ((0, 0), (1, 0)), constant_values=1.0) @ _null(rounds)[1].T
    return chances


@lru_cache
def _lower_chances(rounds: int, distance: float) -> Array:
    """No more than the chance of no more misses (rows) and no more alarms."""
    chances: Array = np.pad(_few_misses(_ERRORS, rounds, distance), ((0, 0), (0, 1))) @ _null(rounds)[1].T
    return chances


def _few_misses(misses: NDArray[np.int_], rounds: int, distance: float) -> Array:
    """Chance of no more misses (rows) at each of the null's values."""
    values, _ = _null(rounds)
    missed = np.exp((rounds - 1) * special.log_ndtr(values) + special.log_ndtr(values - distance))
    few: Array = np.asarray(stats.binom.cdf(misses[:, np.newaxis], Final.CANARIES, missed))
    return few


@cache
def _null(rounds: int) -> tuple[Array, Array]:
    """Values, and for each number of alarms (rows) the chance of each cell between them for the last value spared."""
    values = special.ndtri_exp(special.log_ndtr(_GRID) / rounds)
    up_to = stats.binom.sf(Final.CANARIES - 1 - _ERRORS[:, np.newaxis], Final.CANARIES, special.ndtr(_GRID))
    return values, np.diff(np.pad(up_to, ((0, 0), (1, 1)), constant_values=((0, 0), (0.0, 1.0))), axis=1)


def p_value(law: BoundLaw, bound: float, distance: float) -> float:
    """Two-sided p-value of a bound, no smaller than the exact one."""
    return min(1.0, 2.0 * min(law.at_least(bound, distance), law.below(bound, distance)))


def noticed_factor(law: BoundLaw, distance: float, level: float) -> float:
    """Factor by which a distance must be larger, or smaller, that its bound is noticed with probability ``POWER``.

    The smaller one of both, or an upper limit of it.
    """
    smallest = 1e-6
    # From here on bounds are rejected; small ones may be none.
    high = optimize.bisect(lambda x: law.at_least(x, distance) - 0.5 * level, smallest, 50.0, xtol=1e-3) + 1e-3
    low = smallest
    if law.below(smallest, distance) < 0.5 * level:
        low = optimize.bisect(lambda x: law.below(x, distance) - 0.5 * level, smallest, 50.0, xtol=1e-3) - 1e-3

    def missed(log_factor: float) -> float:
        factor = math.exp(log_factor)
        larger = law.below(high, distance * factor)
        return min(larger, law.at_least(low, distance / factor)) - (1.0 - POWER)

    return math.exp(optimize.bisect(missed, 0.0, 5.0, xtol=_STEP) + _STEP)


def fit(law: BoundLaw, rows: Sequence[tuple[float, float]]) -> tuple[float, Design]:
    """Test printed bounds as those of canaries at given distances: the joint p-value (Bonferroni), and the test."""
    joint = min(1.0, len(rows) * min(p_value(law, *row) for row in rows))
    factors = [noticed_factor(law, distance, LEVEL / len(rows)) for _, distance in rows]
    design = Design(
        f"each printed bound is of {Final.CANARIES:,} canaries at the distance that the estimate beside it has",
        LEVEL,
        f"in one row the distance is off by a factor of {', '.join(f'{factor:.2g}' for factor in factors)}",
        POWER,
        Final.CANARIES,
    )
    return joint, design


# Estimates of ε from 1,000 independent cosines N(m, 1) in the null's units, which is what observed cosines are where
# noise is all there is.

# P(ε̂ ≤ value) at values and means m, for δ: an entry for each mean (rows) and value.
EstimateLaw = Callable[[ArrayLike, ArrayLike, float], Array]

# Means, at a hundredth of a sample mean's deviation; the tables below reach half a unit further, fifteen deviations.
MEANS = np.arange(0.0, 2.5, 0.01 / math.sqrt(Final.CANARIES))
_DISTANCES = np.linspace(0.0, 3.0, 481)
_VALUES = np.linspace(0.0, 25.0, 5001)[1:]
# A sample deviation is farther than this many of its own from 1 with probability 1e-14.
_REACH = 7.7
_NODES = 24


@cache
def _ratios(canaries: int = Final.CANARIES) -> tuple[Array, Array]:
    """Ratios of the deviations at which to integrate, and their weights."""
    reach = _REACH / math.sqrt(2.0 * canaries)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    # The kink at 1 ends one panel and begins the next.
    ratios = np.concatenate([1.0 + 0.5 * reach * (side + nodes) for side in (-1.0, 1.0)])
    density = stats.chi2.pdf(canaries * ratios**2, canaries - 1) * 2.0 * canaries * ratios
    return ratios, 0.5 * reach * np.concatenate([weights, weights]) * density


@cache
def _fitted(delta: float) -> Array:
    """Estimates at distances (rows) and the ratios at which to integrate."""
    return epsilon_estimators.both_directions(delta, _DISTANCES[:, np.newaxis], _ratios()[0])


@cache
def _thresholded(delta: float) -> Array:
    """Estimates of the best threshold, as ``_fitted``."""
    distances, ratios = np.broadcast_arrays(_DISTANCES[:, np.newaxis], _ratios()[0])
    table: Array = threshold_epsilon(delta, distances, ratios)
    return table


def fitted(values: ArrayLike, means: ArrayLike, delta: float) -> Array:
    """Law of the estimate of Algorithms 1 and 2 as finally printed, ``estimators.both_directions``."""
    return _integrated(_fitted(delta), values, means)


def thresholded(values: ArrayLike, means: ArrayLike, delta: float) -> Array:
    """Law of the first version's estimate of a training, by the best threshold between the fitted Gaussians."""
    return _integrated(_thresholded(delta), values, means)


def _integrated(table: Array, values: ArrayLike, means: ArrayLike) -> Array:
    _, weights = _ratios()
    # At each ratio, the distance from which on the estimate is above the value: on both sides of 0.
    reach = np.array([np.interp(np.atleast_1d(values), column, _DISTANCES) for column in table.T])
    centre, root = np.atleast_1d(means)[:, np.newaxis, np.newaxis], math.sqrt(Final.CANARIES)
    inside = special.ndtr(root * (reach - centre)) - special.ndtr(root * (-reach - centre))
    law: Array = np.einsum("r,mrv->mv", weights, inside)
    return law


def moments_fitted(
    mean: float, delta: float, canaries: int = Final.CANARIES, direction: Direction = "both"
) -> tuple[float, float]:
    """Return mean and deviation of Algorithm 1's estimate as finally printed, of cosines with a mean."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    ratios, density = _ratios(canaries)
    means = mean + nodes[:, np.newaxis] / math.sqrt(canaries)
    values = two_gaussians.epsilon(delta, 0.0, 1.0, means, ratios, direction)
    first, second = (
        float((weights[:, np.newaxis] * values**power * density).sum() / math.sqrt(2.0 * math.pi)) for power in (1, 2)
    )
    return first, math.sqrt(second - first**2)


def pinned(values: ArrayLike, means: ArrayLike, delta: float) -> Array:
    """Law of the first version's estimate of a Gaussian mechanism; arguments as for ``fitted``, values above 0."""
    reach = 1.0 / gaussian_mechanism.noise_multiplier(np.atleast_1d(values), delta)
    law: Array = special.ndtr(math.sqrt(Final.CANARIES) * (reach - np.atleast_1d(means)[:, np.newaxis]))
    return law


def quantile(law: EstimateLaw, probability: float, mean: float, delta: float) -> float:
    """Return the estimate that is exceeded with the complementary probability."""
    return float(np.interp(probability, law(_VALUES, mean, delta)[0], _VALUES))


def mean_at(law: EstimateLaw, value: float, probability: float, delta: float) -> float:
    """Return the cosines' mean at which an estimate is at most the value with a probability."""
    return float(np.interp(probability, law(value, MEANS, delta)[::-1, 0], MEANS[::-1]))


def mean_of_median(law: EstimateLaw, value: float, delta: float) -> float:
    """Return the cosines' mean at which a printed estimate is the median: 0 where it is smaller without leakage."""
    if float(law(value, MEANS[-1], delta)[0, 0]) > 0.5:
        raise ValueError(f"an estimate must be of a mean below {MEANS[-1]:.3g}, not {value:g}")
    return mean_at(law, value, 0.5, delta)


def two_sided(below: Array) -> Array:
    """Two-sided p-values of draws, from their laws' values at them."""
    p_values: Array = 2.0 * np.minimum(below, 1.0 - below)
    return p_values


def noticed_mean(mean: float, delta: float, level: float) -> float:
    """Mean of cosines whose ``fitted`` estimate is too large for another mean at a level, with power ``POWER``."""
    return mean_at(fitted, quantile(fitted, 1.0 - 0.5 * level, mean, delta), 1.0 - POWER, delta)


def same_mean(first: float, second: float, delta: float) -> float:
    """p-value of two ``fitted`` estimates being of cosines with one mean: the largest over all means (Bonferroni)."""
    return min(1.0, 2.0 * float(two_sided(fitted([first, second], MEANS, delta)).min(axis=1).max()))


def noticed_beside(estimate: float, delta: float, level: float) -> float:
    """ε of cosines whose estimate ``same_mean`` tells from that of cosines with a given ε, with power ``POWER``."""
    mean = 1.0 / float(gaussian_mechanism.noise_multiplier(estimate, delta))
    missed = 0.5 * (1.0 - POWER)
    # A mean between the two, of which the one is the lower tail and the other the upper: two estimates, two tails each.
    between = mean_at(fitted, quantile(fitted, 1.0 - missed, mean, delta), 0.25 * level, delta)
    beyond = mean_at(fitted, quantile(fitted, 1.0 - 0.25 * level, between, delta), missed, delta)
    return float(epsilon_estimators.pinned_epsilon(delta, np.asarray(beyond)))
