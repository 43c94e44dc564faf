"""How far out a lower bound from 1,000 canaries is, by union bounds over its thresholds, without a simulation.

A bound is the largest of its thresholds' bounds: it is large if some threshold has few errors, and small only if none
has. The law of the largest is skewed, and a normal one in its place errs by powers of ten as far out as tests of level
1e-6 look.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from canaryproof.kernels import binomial
from canaryproof.verify.claims.final_printed import CANARIES
from canaryproof.verify.claims.judging import LEVEL
from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Design

Array = NDArray[np.float64]
_LIMITS = binomial.upper(np.arange(CANARIES), CANARIES, 0.95, method="jeffreys")
_MISSES = np.arange(CANARIES)
# Numbers of errors that are told apart where both rates are counted: the first ones, and ever fewer.
_ERRORS = np.unique(np.concatenate([np.arange(30.0), np.geomspace(30.0, CANARIES - 1.0, 80)]).astype(int))
# Where the null's values are, as standard normal quantiles.
_GRID = np.linspace(-7.0, 7.5, 700)
# To what a factor is computed, in its logarithm.
_STEP = 0.01


class Law(Protocol):
    """Limits of the probabilities of bounds, for canaries at a distance from the null."""

    def at_least(self, bound: float, distance: float) -> float:
        """Return no less than the probability of this bound or a larger one."""

    def below(self, bound: float, distance: float) -> float:
        """Return no less than the probability of a smaller bound."""


def _alarms(misses: NDArray[np.int_], bound: float, delta: float) -> Array:
    """Largest rates of alarms with which so many misses still give the bound: Equation (1), solved for FPR."""
    limits = _LIMITS[misses]
    alarms: Array = np.maximum(1.0 - delta - limits * math.exp(bound), (1.0 - delta - limits) * math.exp(-bound))
    return alarms


@dataclass(frozen=True)
class KnownNull:
    """The bound from cosines N(m, 1) beside the null N(0, 1), whose rate of alarms is known.

    Attributes
    ----------
    delta
        δ of the bound.
    """

    delta: float

    def _missed(self, bound: float, distance: float) -> Array:
        """Probability of a miss at the threshold that has the bound with so many misses."""
        missed: Array = special.ndtr(-special.ndtri(_alarms(_MISSES, bound, self.delta)) - distance)
        return missed

    def at_least(self, bound: float, distance: float) -> float:
        """Sum over the numbers of misses."""
        return float(np.sum(stats.binom.cdf(_MISSES, CANARIES, self._missed(bound, distance))))

    def below(self, bound: float, distance: float) -> float:
        """By the best number of misses."""
        return float(np.min(stats.binom.sf(_MISSES, CANARIES, self._missed(bound, distance))))


@dataclass(frozen=True)
class SampledNull:
    """The bound from canaries' largest cosines over rounds, beside those of as many unobserved canaries.

    Attributes
    ----------
    rounds
        Rounds, in one of which a canary's cosine is N(m, 1); all others are N(0, 1).
    delta
        δ of the bound.
    """

    rounds: int
    delta: float

    def _possible(self, bound: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Places in ``_ERRORS`` of misses that allow the bound, and the most alarms that do beside each."""
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
        places = np.searchsorted(_ERRORS, alarms, side="right") - 1
        return float(1.0 - _lower_chances(self.rounds, distance)[misses, places].max(initial=0.0))


@lru_cache
def _upper_chances(rounds: int, distance: float) -> Array:
    """No less than the chance of no more misses than a block's last number (rows) and no more alarms."""
    few = _few_misses(np.append(_ERRORS[1:] - 1, CANARIES - 1), rounds, distance)
    # The larger the null, the less likely few misses beside it are: a cell's left end is on the safe side.
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
    few: Array = np.asarray(stats.binom.cdf(misses[:, np.newaxis], CANARIES, missed))
    return few


@cache
def _null(rounds: int) -> tuple[Array, Array]:
    """Values, and for each number of alarms (rows) the chance of each cell between them for the last value spared."""
    values = special.ndtri_exp(special.log_ndtr(_GRID) / rounds)
    up_to = stats.binom.sf(CANARIES - 1 - _ERRORS[:, np.newaxis], CANARIES, special.ndtr(_GRID))
    return values, np.diff(np.pad(up_to, ((0, 0), (1, 1)), constant_values=((0, 0), (0.0, 1.0))), axis=1)


def p_value(law: Law, bound: float, distance: float) -> float:
    """Two-sided p-value of a bound, no smaller than the exact one.

    Parameters
    ----------
    law
        Of the bound.
    bound
        As printed.
    distance
        Of the canaries.
    """
    return min(1.0, 2.0 * min(law.at_least(bound, distance), law.below(bound, distance)))


def noticed(law: Law, distance: float, level: float) -> float:
    """Factor by which a distance must be larger, or smaller, that its bound is noticed with probability ``POWER``.

    Parameters
    ----------
    law, distance
        As for ``p_value``.
    level
        Level of the two-sided test.

    Returns
    -------
    The smaller one of both factors, or an upper limit of it.
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


def fit(law: Law, rows: Sequence[tuple[float, float]]) -> tuple[float, Design]:
    """Test that printed bounds are those of canaries at given distances.

    Parameters
    ----------
    law
        Of the bounds.
    rows
        Each bound with the distance.

    Returns
    -------
    The joint p-value (Bonferroni), and the test.
    """
    joint = min(1.0, len(rows) * min(p_value(law, *row) for row in rows))
    factors = [noticed(law, distance, LEVEL / len(rows)) for _, distance in rows]
    design = Design(
        f"each printed bound is of {CANARIES:,} canaries at the distance that the estimate beside it has",
        LEVEL,
        f"in one row the distance is off by a factor of {', '.join(f'{factor:.2g}' for factor in factors)}",
        POWER,
        CANARIES,
    )
    return joint, design
