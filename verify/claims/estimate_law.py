"""The laws of estimates of ε from 1,000 independent normal cosines, by integration, and p-values of printed ones.

The cosines are N(m, 1) in the null's units: what observed cosines are where noise is all there is. An estimate's law is
skewed, and a normal law in its place errs by powers of ten as far out as tests of level 1e-6 look.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.claims.final_printed import CANARIES
from canaryproof.verify.error_control import POWER
from canaryproof.verify.oneshot import estimators

Array = NDArray[np.float64]
# P(ε̂ ≤ value) at values and means m, for δ: an entry for each mean (rows) and value.
Law = Callable[[ArrayLike, ArrayLike, float], Array]

# Means, at a hundredth of a sample mean's deviation; the tables below reach half a unit further, fifteen deviations.
MEANS = np.arange(0.0, 2.5, 0.01 / math.sqrt(CANARIES))
_DISTANCES = np.linspace(0.0, 3.0, 481)
_VALUES = np.linspace(0.0, 25.0, 5001)[1:]
# A sample deviation is farther than this many of its own from 1 with probability 1e-14.
_REACH = 7.7
_NODES = 24


@cache
def _fitted(delta: float) -> tuple[Array, Array]:
    """Estimates at distances (rows) and the ratios at which to integrate, and the ratios' weights."""
    reach = _REACH / math.sqrt(2.0 * CANARIES)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    # The kink at 1 ends one panel and begins the next.
    ratios = np.concatenate([1.0 + 0.5 * reach * (side + nodes) for side in (-1.0, 1.0)])
    density = stats.chi2.pdf(CANARIES * ratios**2, CANARIES - 1) * 2.0 * CANARIES * ratios
    table = estimators.both_directions(delta, _DISTANCES[:, np.newaxis], ratios)
    return table, 0.5 * reach * np.concatenate([weights, weights]) * density


def fitted(values: ArrayLike, means: ArrayLike, delta: float) -> Array:
    """Law of Algorithm 1's estimate as finally printed, ``estimators.both_directions``.

    Parameters
    ----------
    values
        Where, at most 25.
    means
        m of the cosines, in [0, 2.5].
    delta
        δ of the estimate.
    """
    table, weights = _fitted(delta)
    # At each ratio, the distance from which on the estimate is above the value: on both sides of 0.
    reach = np.array([np.interp(np.atleast_1d(values), column, _DISTANCES) for column in table.T])
    centre, root = np.atleast_1d(means)[:, np.newaxis, np.newaxis], math.sqrt(CANARIES)
    inside = special.ndtr(root * (reach - centre)) - special.ndtr(root * (-reach - centre))
    law: Array = np.einsum("r,mrv->mv", weights, inside)
    return law


def pinned(values: ArrayLike, means: ArrayLike, delta: float) -> Array:
    """Law of the first version's estimate; arguments as for ``fitted``, values above 0."""
    reach = 1.0 / gaussian_mechanism.noise_multiplier(np.atleast_1d(values), delta)
    law: Array = special.ndtr(math.sqrt(CANARIES) * (reach - np.atleast_1d(means)[:, np.newaxis]))
    return law


def quantile(law: Law, probability: float, mean: float, delta: float) -> float:
    """Return the estimate that is exceeded with the complementary probability."""
    return float(np.interp(probability, law(_VALUES, mean, delta)[0], _VALUES))


def mean_at(law: Law, value: float, probability: float, delta: float) -> float:
    """Return the cosines' mean at which an estimate is at most the value with a probability."""
    return float(np.interp(probability, law(value, MEANS, delta)[::-1, 0], MEANS[::-1]))


def two_sided(below: Array) -> Array:
    """Two-sided p-values of draws, from their laws' values at them."""
    p_values: Array = 2.0 * np.minimum(below, 1.0 - below)
    return p_values


def noticed(mean: float, delta: float, level: float) -> float:
    """Mean of cosines whose ``fitted`` estimate is too large for another mean at a level, with power ``POWER``."""
    return mean_at(fitted, quantile(fitted, 1.0 - 0.5 * level, mean, delta), 1.0 - POWER, delta)


def same_mean(one: float, other: float, delta: float) -> float:
    """p-value of two ``fitted`` estimates being of cosines with one mean: the largest over all means (Bonferroni)."""
    return min(1.0, 2.0 * float(two_sided(fitted([one, other], MEANS, delta)).min(axis=1).max()))


def noticed_beside(estimate: float, delta: float, level: float) -> float:
    """ε of cosines whose estimate ``same_mean`` tells from that of cosines with a given ε, with power ``POWER``."""
    mean = 1.0 / float(gaussian_mechanism.noise_multiplier(estimate, delta))
    missed = 0.5 * (1.0 - POWER)
    # A mean between the two, of which the one is the lower tail and the other the upper: two estimates, two tails each.
    between = mean_at(fitted, quantile(fitted, 1.0 - missed, mean, delta), 0.25 * level, delta)
    beyond = mean_at(fitted, quantile(fitted, 1.0 - 0.25 * level, between, delta), missed, delta)
    return float(estimators.pinned_epsilon(delta, np.asarray(beyond)))
