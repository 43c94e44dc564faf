"""Estimators of ε from the moments of a run's observed cosines, each with its standard error and interval.

All work on many runs at once. Their model is that of Andrew et al. (arXiv 2302.03098): observed cosines are normal with
unknown mean and variance, independent enough for the usual laws of a sample's mean and variance, and the null is
N(0, 1/d) or a Gaussian fitted to unobserved canaries. What that model is worth at finite d and k is measured by the
``gaussian`` suite.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from canaryproof.kernels import threshold_attack, two_gaussians


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of observed cosines, standardised by the null's.

    Attributes
    ----------
    distance
        (μ̂ − μ₀)/σ₀, shape of the runs; √d·μ̂ for the closed-form null N(0, 1/d).
    ratio
        σ̂/σ₀, same shape, with σ̂² the mean squared deviation (divisor k, as in Andrew et al., Theorem 3.3).
    count
        Number k ≥ 2 of observed cosines in a run.
    null_count
        Number of unobserved cosines that the null was fitted to; infinite for the closed form.
    """

    distance: NDArray[np.float64]
    ratio: NDArray[np.float64]
    count: int
    null_count: float = math.inf


def from_dimension(observed: ArrayLike, dim: float) -> Moments:
    """Moments against the closed-form null N(0, 1/d) (Andrew et al., arXiv 2302.03098, Theorem 3.2).

    Parameters
    ----------
    observed
        Cosines of observed canaries, shape (..., k), k ≥ 2.
    dim
        Dimension d of the released vector.

    Returns
    -------
    Moments of shape (...).

    Raises
    ------
    ValueError
        If a run has fewer than two cosines, or all its cosines are equal.
    """
    cosines = _runs("observed", observed)
    root = math.sqrt(dim)
    return Moments(root * cosines.mean(axis=-1), root * cosines.std(axis=-1), cosines.shape[-1])


def from_unobserved(observed: ArrayLike, unobserved: ArrayLike) -> Moments:
    """Moments against a Gaussian fitted to unobserved canaries' scores (Andrew et al., Algorithm 3, line 17).

    Parameters
    ----------
    observed, unobserved
        Scores, shapes (..., k) and (..., k₀), both k ≥ 2; cosines or their maxima over rounds.

    Returns
    -------
    Moments of shape (...).

    Raises
    ------
    ValueError
        If a run has fewer than two scores of either kind, or all its scores of one kind are equal.
    """
    seen, unseen = _runs("observed", observed), _runs("unobserved", unobserved)
    deviation = unseen.std(axis=-1)
    distance = (seen.mean(axis=-1) - unseen.mean(axis=-1)) / deviation
    return Moments(distance, seen.std(axis=-1) / deviation, seen.shape[-1], float(unseen.shape[-1]))


def _runs(name: str, scores: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim < 1 or array.shape[-1] < 2:
        raise ValueError(f"{name}: a run needs at least two cosines")
    if not np.all(np.ptp(array, axis=-1) > 0.0):
        raise ValueError(f"{name}: the cosines of a run must not all be equal")
    return array


Array = NDArray[np.float64]
# ε of a fitted pair: δ, distance and ratio in the null's units.
PairEpsilon = Callable[[float, Array, Array], Array]

# Level at which ``adaptive`` rejects equal variances.
TEST_LEVEL = 0.01


@dataclass(frozen=True)
class Estimate:
    """An estimate of ε with its uncertainty, one entry a run.

    Attributes
    ----------
    epsilon
        ε̂ in nats.
    standard_error
        Standard deviation of ε̂ under the fitted model.
    low, high
        Ends of the two-sided confidence interval.
    """

    epsilon: Array
    standard_error: Array
    low: Array
    high: Array


def fitted(moments: Moments, delta: float, confidence: float = 0.95) -> Estimate:
    """ε of the null against the Gaussian fitted to the observed cosines, the larger of both directions.

    Parameters
    ----------
    moments
        Moments of the runs.
    delta
        Target δ in (0, 1).
    confidence
        Confidence of the interval, in (0, 1). It is the range of ε over a joint confidence rectangle of mean and
        variance, so it covers at least as often.

    Returns
    -------
    Estimate, shape of the moments.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), last line of Algorithms 1, 2 and 3 with the computation of Section 3.2.
    """
    return _from_pair(both_directions, moments, delta, confidence)


def threshold(moments: Moments, delta: float, confidence: float = 0.95) -> Estimate:
    """Largest ε that an attacker with one threshold on the fitted Gaussians reaches; arguments as for ``fitted``.

    Notes
    -----
    First version of Andrew et al. (arXiv 2302.03098v1), Section 4: ε(N(0, 1/d) ‖ N(μ, σ²); δ, a), maximised over a.
    """
    return _from_pair(threshold_attack.threshold_epsilon, moments, delta, confidence)


def pinned(moments: Moments, delta: float, confidence: float = 0.95) -> Estimate:
    """ε of a Gaussian mechanism with the noise multiplier 1/(μ̂√d); arguments as for ``fitted``.

    It takes the observed cosines' variance to be the null's; against unobserved canaries, both are pooled. Where the
    mean is not positive, ε̂ is 0.

    Notes
    -----
    First version of Andrew et al. (arXiv 2302.03098v1), Section 3, with Balle and Wang's (2018) curve inverted.
    """
    k, k0 = moments.count, moments.null_count
    distance, error = pinned_distance(moments), moments.ratio * math.sqrt(1.0 / (k - 1))
    if math.isfinite(k0):
        error = np.sqrt(1.0 / k + 1.0 / k0 + 0.5 * distance**2 / (k + k0))
    # With the closed-form null, μ̂ is divided by the sample's own deviation: Student's law.
    reach = error * stats.t.ppf(0.5 + 0.5 * confidence, min(k - 1.0, k + k0 - 2.0))
    epsilon = pinned_epsilon(delta, distance)
    spread = 0.5 * (pinned_epsilon(delta, distance + error) - pinned_epsilon(delta, distance - error))
    low, high = pinned_epsilon(delta, distance - reach), pinned_epsilon(delta, distance + reach)
    return Estimate(epsilon, spread, low, high)


def adaptive(moments: Moments, delta: float, confidence: float = 0.95) -> Estimate:
    """``pinned`` unless a test of equal variances at level 0.01 rejects, else ``fitted``; arguments as there.

    The interval admits that a test cannot prove equality. ε only rises when the variances differ at a fixed distance,
    so that the lower end of ``pinned`` holds in any case; the upper end is that of ``fitted``, which allows for any
    ratio that the data allow.
    """
    equal = variance_p_value(moments) >= TEST_LEVEL
    one, other = pinned(moments, delta, confidence), fitted(moments, delta, confidence)
    return Estimate(
        np.where(equal, one.epsilon, other.epsilon),
        np.where(equal, one.standard_error, other.standard_error),
        np.where(equal, one.low, other.low),
        other.high,
    )


def norm(release: ArrayLike, delta: float, confidence: float = 0.95) -> Estimate:
    """ε of a Gaussian mechanism with the noise multiplier ‖ρ‖/√d: no canaries, nothing known but the release.

    Parameters
    ----------
    release
        Released vectors ρ in units of the clip norm, shape (..., d).
    delta
        Target δ in (0, 1).
    confidence
        Confidence of the interval, from the chi-square law of ‖ρ‖²/σ²; it holds if the release is noise alone, and
        whatever else it contains makes ε̂ too small.

    Returns
    -------
    Estimate, shape (...).

    Raises
    ------
    ValueError
        If a release is the zero vector.

    Notes
    -----
    First version of Andrew et al. (arXiv 2302.03098v1), footnote 2.
    """
    dim = np.shape(release)[-1]
    distance = norm_distance(release)
    tail = 0.5 - 0.5 * confidence
    low, high = (math.sqrt(stats.chi2.ppf(p, dim) / dim) for p in (tail, 1.0 - tail))
    error = distance / math.sqrt(2.0 * dim)
    return Estimate(
        pinned_epsilon(delta, distance),
        0.5 * (pinned_epsilon(delta, distance + error) - pinned_epsilon(delta, distance - error)),
        pinned_epsilon(delta, distance * low),
        pinned_epsilon(delta, distance * high),
    )


def norm_distance(release: ArrayLike) -> Array:
    """Distance √d/‖ρ‖ that ``norm`` goes by; arguments and errors as there."""
    vectors = np.asarray(release, dtype=np.float64)
    length = np.linalg.norm(vectors, axis=-1)
    if not np.all(length > 0.0):
        raise ValueError("the release must not be the zero vector")
    return np.asarray(math.sqrt(vectors.shape[-1]) / length)


def variance_p_value(moments: Moments) -> Array:
    """Two-sided p-value of equal variances of observed cosines and null: chi-square, or F against unobserved ones."""
    k, k0 = moments.count, moments.null_count
    if math.isfinite(k0):
        statistic = moments.ratio**2 * (k / (k - 1)) / (k0 / (k0 - 1))
        tails = stats.f.cdf(statistic, k - 1, k0 - 1), stats.f.sf(statistic, k - 1, k0 - 1)
    else:
        statistic = moments.ratio**2 * k
        tails = stats.chi2.cdf(statistic, k - 1), stats.chi2.sf(statistic, k - 1)
    return np.minimum(1.0, 2.0 * np.minimum(*tails))


def pinned_distance(moments: Moments) -> Array:
    """Distance √d·μ̂ that ``pinned`` goes by; against unobserved canaries, in units of the pooled deviation."""
    k, k0 = moments.count, moments.null_count
    if not math.isfinite(k0):
        return moments.distance
    return moments.distance / np.sqrt((k * moments.ratio**2 + k0) / (k + k0))


def pinned_epsilon(delta: float, distance: Array) -> Array:
    """ε̂ of ``pinned`` alone, for distances of any shape: that of the Gaussian mechanism with σ = 1/distance."""
    return both_directions(delta, np.maximum(distance, 0.0), np.asarray(1.0))


def both_directions(delta: float, distance: Array, ratio: Array) -> Array:
    """ε̂ of ``fitted`` alone, for distances and ratios of any shape."""
    # Minute distances, which no sample tells from 0, lie outside the kernel's domain.
    least = two_gaussians.SMALLEST_DISTANCE * np.maximum(ratio, 1.0)
    seen = np.where(np.abs(distance) < least, 0.0, distance)
    return two_gaussians.epsilon(delta, seen, ratio, 0.0, 1.0)


def log_ratio_error(moments: Moments) -> float:
    """Return the standard error of the log ratio."""
    return math.sqrt(0.5 / (moments.count - 1) + 0.5 / (moments.null_count - 1))


def _distance_error(moments: Moments) -> Array:
    k, k0 = moments.count, moments.null_count
    return np.sqrt(moments.ratio**2 / (k - 1) + 1.0 / k0 + 0.5 * moments.distance**2 / k0)


# Quadrature nodes for the laws of a sample's mean and log deviation. Across the kink at ratio 1 the rule in the ratio
# is the one that counts: with 11 nodes a standard error is right to 7%.
_MEAN_NODES, _MEAN_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_RATIO_NODES, _RATIO_WEIGHTS = np.polynomial.hermite_e.hermegauss(11)
_WEIGHTS = np.outer(_MEAN_WEIGHTS, _RATIO_WEIGHTS).ravel() / (2.0 * math.pi)


def propagate(pair_epsilon: PairEpsilon, moments: Moments, delta: float) -> tuple[Array, Array]:
    """Mean and standard deviation of ε̂ if the moments were the true ones."""
    # The delta method would not do: ε has a kink where the ratio is 1.
    mean_nodes, ratio_nodes = (nodes.ravel() for nodes in np.meshgrid(_MEAN_NODES, _RATIO_NODES, indexing="ij"))
    distance = moments.distance[..., np.newaxis] + _distance_error(moments)[..., np.newaxis] * mean_nodes
    ratio = moments.ratio[..., np.newaxis] * np.exp(log_ratio_error(moments) * ratio_nodes)
    epsilon = pair_epsilon(delta, distance, ratio)
    mean = epsilon @ _WEIGHTS
    variance = ((epsilon - mean[..., np.newaxis]) ** 2) @ _WEIGHTS
    return mean, np.sqrt(variance)


def _from_pair(pair_epsilon: PairEpsilon, moments: Moments, delta: float, confidence: float) -> Estimate:
    k, k0 = moments.count, moments.null_count
    # Mean and variance of a normal sample are independent: two limits at this level each hold jointly at the whole.
    tail = 0.5 - 0.5 * math.sqrt(confidence)
    if math.isfinite(k0):
        scale = (k / (k - 1)) / (k0 / (k0 - 1))
        upper, lower = (stats.f.isf(p, k - 1, k0 - 1) / scale for p in (tail, 1.0 - tail))
    else:
        upper, lower = (stats.chi2.isf(p, k - 1) / k for p in (tail, 1.0 - tail))
    smallest, largest = moments.ratio / math.sqrt(upper), moments.ratio / math.sqrt(lower)
    reach = _distance_error(moments) * stats.t.isf(tail, min(k, k0) - 1.0)
    farthest = np.abs(moments.distance) + reach
    nearest = np.maximum(np.abs(moments.distance) - reach, 0.0)
    # ε rises with the distance, and at fixed distance it falls toward ratio 1 from either side.
    low = pair_epsilon(delta, nearest, np.clip(1.0, smallest, largest))
    high = np.maximum(pair_epsilon(delta, farthest, smallest), pair_epsilon(delta, farthest, largest))
    _, spread = propagate(pair_epsilon, moments, delta)
    return Estimate(pair_epsilon(delta, moments.distance, moments.ratio), spread, low, high)
