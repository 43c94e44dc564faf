"""Estimators of ε from the moments of a run's observed cosines, each with its standard error and interval.

All work on many runs at once. Their model is that of Andrew et al. (arXiv 2302.03098). Observed cosines are normal with
unknown mean and variance, and independent enough for the usual laws of a sample's mean and variance. The null is
N(0, 1/d) or a Gaussian fitted to unobserved canaries. What that model is worth at finite d and k is measured by the
``estimators`` suite. Where scores are not normal, an estimate and its interval are of ε of the two Gaussians with their
means and variances, whatever the mechanism's is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from canaryproof.kernels import threshold_attack, two_gaussians
from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.estimators.moments import NORMAL, Moments, Shape

# ε of a fitted pair: δ, distance and ratio in the null's units.
PairEpsilon = Callable[[float, Array, Array], Array]

# Coordinates of a release that are squared at once.
_COORDINATES = 2**22
# Level at which ``adaptive`` rejects equal variances.
TEST_LEVEL = 0.01


@dataclass(frozen=True)
class Estimate:
    """An estimate of ε with its uncertainty, one entry a run.

    Attributes
    ----------
    epsilon
        ε̂ in nats.
    low, high
        Ends of the two-sided confidence interval.
    spread
        Computes ``standard_error``, which costs many times what all the rest does.
    """

    epsilon: Array
    low: Array
    high: Array
    spread: Callable[[], Array] = field(repr=False, compare=False)

    @cached_property
    def standard_error(self) -> Array:
        """Standard deviation of ε̂ under the fitted model; a quadrature, made when it is first asked for."""
        return self.spread()


def fitted_estimate(moments: Moments, delta: float, confidence: float = 0.95) -> Estimate:
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


def threshold_estimate(moments: Moments, delta: float, confidence: float = 0.95) -> Estimate:
    """Largest ε that an attacker with one threshold on the fitted Gaussians reaches; arguments as for ``fitted``.

    Notes
    -----
    First version of Andrew et al. (arXiv 2302.03098v1), Section 4: ε(N(0, 1/d) ‖ N(μ, σ²); δ, a), maximised over a.
    """
    return _from_pair(threshold_attack.threshold_epsilon, moments, delta, confidence)


def pinned_estimate(moments: Moments, delta: float, confidence: float = 0.95) -> Estimate:
    """ε of a Gaussian mechanism with the noise multiplier 1/(μ̂√d); arguments as for ``fitted``.

    It takes the observed cosines' variance to be the null's; against unobserved canaries, both are pooled. Where the
    mean is not positive, ε̂ is 0.

    Notes
    -----
    First version of Andrew et al. (arXiv 2302.03098v1), Section 3, with Balle and Wang's (2018) curve inverted.
    """
    distance, error, reach = _pinned_limits(moments, confidence)
    epsilon = pinned_epsilon(delta, distance)
    low, high = pinned_epsilon(delta, distance - reach), pinned_epsilon(delta, distance + reach)
    return Estimate(epsilon, low, high, lambda: _pinned_spread(delta, distance, error))


def _pinned_spread(delta: float, distance: Array, error: Array) -> Array:
    return 0.5 * (pinned_epsilon(delta, distance + error) - pinned_epsilon(delta, distance - error))


def _pinned_limits(moments: Moments, confidence: float) -> tuple[Array, Array, Array]:
    """Distance that ``pinned`` goes by, its standard error and the reach of its interval."""
    k, k0 = moments.count, moments.null_count
    distance, error = pinned_distance(moments), pinned_error(moments)
    # With the closed-form null, μ̂ is divided by the sample's own deviation: Student's law.
    larger = np.maximum(error, pinned_error(moments.as_normal))
    return distance, error, larger * special.stdtrit(min(k - 1.0, k + k0 - 2.0), 0.5 + 0.5 * confidence)


# Quantile of the normal law by which the kurtosis is taken for larger than the sample's.
_WARY = 2.33


def _heavier(moments: Moments) -> Moments:
    """Return the same with the upper 99% limit that a normal law's kurtosis would have.

    A few scores of heavy tails have mostly too small a kurtosis, and the more so the smaller their deviation is.
    """
    factor = 1.0 + _WARY / 3.0 * math.sqrt(24.0 / (moments.count + moments.null_count))
    shape, null_shape = (
        None if each is None else replace(each, kurtosis=factor * each.kurtosis)
        for each in (moments.shape, moments.null_shape)
    )
    return replace(moments, shape=shape, null_shape=null_shape)


def adaptive_estimate(moments: Moments, delta: float, confidence: float = 0.95) -> Estimate:
    """``pinned`` unless a test of equal variances at level 0.01 rejects, else ``fitted``; arguments as there.

    The interval admits that a test cannot prove equality. ε only rises when the variances differ at a fixed distance.
    So the lower end of ``pinned`` holds in any case, with a margin for the heavy tails of a fitted null. The upper
    end is that of ``fitted``, which allows for any ratio that the data allow.

    The standard error is the deviation that ε̂ would have if the moments were the true ones, the jump between the two
    estimators included. It errs as the moments do. In simulations with 50 normal or t₅ scores of each kind it was on
    average 0.9 to 2.1 times the true deviation, and too large near equal variances. Go by the interval.
    """
    equal = variance_p_value(moments) >= TEST_LEVEL
    with_equal = pinned_estimate(_heavier(moments), delta, confidence)
    low, high = _range(both_directions, moments, delta, confidence)
    fitted_epsilon = both_directions(delta, moments.distance, moments.ratio)
    # Heavy tails make that test reject too often: the lower end asks one that allows for the scores' shape.
    low = np.where(equal | _has_equal_variances(moments), with_equal.low, low)
    epsilon = np.where(equal, with_equal.epsilon, fitted_epsilon)
    return Estimate(epsilon, low, high, lambda: propagate(both_directions, moments, delta, pretest=True)[1])


def adaptive_low(moments: Moments, delta: float, confidence: float = 0.95) -> Array:
    """Lower end of the interval of ``adaptive`` alone, at a fraction of its cost; arguments as there."""
    distance, _, reach = _pinned_limits(_heavier(moments), confidence)
    low = pinned_epsilon(delta, distance - reach)
    differ = variance_p_value(moments) < TEST_LEVEL
    differ[differ] = ~_has_equal_variances(moments.of(differ))
    if differ.any():
        nearest, _, smallest, largest = _rectangle(moments.of(differ), confidence)
        low[differ] = both_directions(delta, nearest, np.clip(1.0, smallest, largest))
    return low


def _has_equal_variances(moments: Moments) -> NDArray[np.bool_]:
    """Whether a test of equal variances that allows for the scores' shape does not reject."""
    smallest, largest = _ratio_range(moments, 0.5 * TEST_LEVEL)
    return (smallest <= 1.0) & (largest >= 1.0)


def norm_estimate(release: ArrayLike, delta: float, confidence: float = 0.95) -> Estimate:
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
    return norm_estimate_at(norm_distance(release), np.shape(release)[-1], delta, confidence)


def norm_estimate_at(distance: Array, dim: int, delta: float, confidence: float = 0.95) -> Estimate:
    """``norm`` of releases of a distance √d/‖ρ‖; other arguments as for that."""
    tail = 0.5 - 0.5 * confidence
    low, high = (math.sqrt(2.0 * special.gammaincinv(0.5 * dim, p) / dim) for p in (tail, 1.0 - tail))
    error = distance / math.sqrt(2.0 * dim)
    return Estimate(
        pinned_epsilon(delta, distance),
        pinned_epsilon(delta, distance * low),
        pinned_epsilon(delta, distance * high),
        lambda: _pinned_spread(delta, distance, error),
    )


def norm_distance(release: ArrayLike) -> Array:
    """Distance √d/‖ρ‖ that ``norm`` goes by; arguments and errors as there."""
    vectors = np.asarray(release)
    length = np.sqrt(squared_norm(vectors))
    if not np.all(length > 0.0):
        raise ValueError("the release must not be the zero vector")
    return np.asarray(math.sqrt(vectors.shape[-1]) / length)


def squared_norm(vectors: NDArray[np.floating]) -> Array:
    """Squared norms of vectors, shape (..., d), in float64."""
    # In pieces, as a release in single precision may have billions of coordinates.
    firsts = range(0, vectors.shape[-1], _COORDINATES)
    return np.asarray(sum(np.square(vectors[..., i : i + _COORDINATES], dtype=np.float64).sum(axis=-1) for i in firsts))


def variance_p_value(moments: Moments) -> Array:
    """Two-sided p-value of equal variances of observed cosines and null: chi-square, or F against unobserved ones."""
    k, k0 = moments.count, moments.null_count
    if math.isfinite(k0):
        statistic = moments.ratio**2 * (k / (k - 1)) / (k0 / (k0 - 1))
        tails = special.fdtr(k - 1, k0 - 1, statistic), special.fdtrc(k - 1, k0 - 1, statistic)
    else:
        statistic = moments.ratio**2 * k
        tails = special.chdtr(k - 1, statistic), special.chdtrc(k - 1, statistic)
    return np.minimum(1.0, 2.0 * np.minimum(*tails))


def _bias_correction(moments: Moments) -> float:
    """Return the square of the ratio of unbiased deviations as a multiple of that of the ratio."""
    k, k0 = moments.count, moments.null_count
    return (k / (k - 1)) / (k0 / (k0 - 1) if math.isfinite(k0) else 1.0)


def _ratio_limits(moments: Moments, tail: float) -> tuple[float, float]:
    """Return quantiles of the estimated ratio of equal deviations, by the normal law."""
    k, k0 = moments.count, moments.null_count
    if math.isfinite(k0):
        squares = special.fdtri(k - 1, k0 - 1, tail), special.fdtri(k - 1, k0 - 1, 1.0 - tail)
    else:
        squares = 2.0 * special.gammaincinv(0.5 * (k - 1), tail) / (k - 1), special.chdtri(k - 1, tail) / (k - 1)
    low, high = (math.sqrt(square / _bias_correction(moments)) for square in squares)
    return low, high


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


def _log_deviation_variance(shape: Shape | None) -> Array:
    """Return the variance of the log deviation of a sample, times its size."""
    # The kurtosis of two values, as often each, is 1, and rounds below.
    return 0.25 * np.maximum((shape or NORMAL).kurtosis - 1.0, 1e-12)


def _skewness(shape: Shape | None) -> Array:
    return (shape or NORMAL).skewness


def log_ratio_error(moments: Moments) -> Array:
    """Return the standard error of the log ratio."""
    seen, unseen = _log_deviation_variance(moments.shape), _log_deviation_variance(moments.null_shape)
    return np.sqrt(seen / (moments.count - 1) + unseen / (moments.null_count - 1))


def pinned_error(moments: Moments) -> Array:
    """Return the standard error of the distance that ``pinned`` goes by."""
    k, k0 = moments.count, moments.null_count
    if not math.isfinite(k0):
        return np.sqrt(moments.ratio**2 / (k - 1) + moments.shared)
    # The pooled deviation errs, and with the means where the scores are skewed.
    distance, total = pinned_distance(moments), k + k0
    pooled = (k * _log_deviation_variance(moments.shape) + k0 * _log_deviation_variance(moments.null_shape)) / total
    skewed = distance * (_skewness(moments.shape) - _skewness(moments.null_shape))
    return np.sqrt(1.0 / k + 1.0 / k0 + np.maximum(pooled * distance**2 - skewed, 0.0) / total)


def _distance_error(moments: Moments) -> Array:
    k, k0, distance = moments.count, moments.null_count, moments.distance
    # The null's deviation errs, and with its mean where unobserved scores are skewed.
    own = _log_deviation_variance(moments.null_shape) * distance**2 + _skewness(moments.null_shape) * distance
    return np.sqrt(moments.ratio**2 / (k - 1) + np.maximum(1.0 + own, 0.0) / k0 + moments.shared)


def _correlation(moments: Moments) -> Array:
    """Return that of the errors of distance and log ratio."""
    own = _log_deviation_variance(moments.null_shape) * moments.distance + 0.5 * _skewness(moments.null_shape)
    product = 0.5 * moments.ratio * _skewness(moments.shape) / moments.count + own / moments.null_count
    return np.clip(product / (_distance_error(moments) * log_ratio_error(moments)), -1.0, 1.0)


# Quadrature runs over the laws of a sample's mean and log deviation. The mean is at a given deviation, and the log
# deviation piecewise between its kinks and jumps, up to ``_REACH`` standard errors on either side. A standard error is
# right to 2%.
_MEAN_NODES, _MEAN_WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
_RATIO_NODES, _RATIO_WEIGHTS = np.polynomial.legendre.leggauss(12)
_REACH = 5.0


def propagate(
    pair_epsilon: PairEpsilon, moments: Moments, delta: float, *, pretest: bool = False
) -> tuple[Array, Array]:
    """Mean and standard deviation of ε̂ if the moments were the true ones; with ``adaptive``'s test if so asked."""
    # The delta method would not do: ε has a kink where the ratio is 1, and the test makes a jump.
    cuts = _ratio_limits(moments, 0.5 * TEST_LEVEL) if pretest else (1.0,)
    distance, ratio = moments.distance[..., np.newaxis, np.newaxis], moments.ratio[..., np.newaxis, np.newaxis]
    distance_error, ratio_error, turned = (
        np.asarray(part)[..., np.newaxis, np.newaxis]
        for part in (_distance_error(moments), log_ratio_error(moments), _correlation(moments))
    )
    pieces, weights = [], []
    edges = [np.clip((math.log(cut) - np.log(ratio)) / ratio_error, -_REACH, _REACH) for cut in cuts]
    for i, (start, end) in enumerate(pairwise([np.asarray(-_REACH), *edges, np.asarray(_REACH)])):
        half = 0.5 * (end - start)
        steps = start + half * (1.0 + _RATIO_NODES[:, np.newaxis])
        drawn_ratio = ratio * np.exp(ratio_error * steps)
        drawn = distance + distance_error * (turned * steps + np.sqrt(1.0 - turned**2) * _MEAN_NODES)
        if pretest and i == 1:
            passed = replace(moments, distance=drawn, ratio=drawn_ratio)
            pieces.append(pinned_epsilon(delta, pinned_distance(passed)))
        else:
            pieces.append(pair_epsilon(delta, drawn, np.broadcast_to(drawn_ratio, drawn.shape)))
        density = np.exp(-0.5 * steps**2) / math.sqrt(2.0 * math.pi)
        weights.append(half * _RATIO_WEIGHTS[:, np.newaxis] * density * _MEAN_WEIGHTS)
    epsilon, weight = np.concatenate(pieces, axis=-2), np.concatenate(weights, axis=-2)
    weight /= weight.sum(axis=(-2, -1), keepdims=True)
    mean = (weight * epsilon).sum(axis=(-2, -1), keepdims=True)
    variance = (weight * (epsilon - mean) ** 2).sum(axis=(-2, -1))
    return mean[..., 0, 0], np.sqrt(variance)


def _bonett(moments: Moments, tail: float) -> tuple[Array, Array]:
    """Return limits of the ratio by the samples' kurtosis (Bonett 2006), with his correction for small samples.

    That is a factor, which is kept below 2 where a confidence near 1 would make it negative.
    """
    quantile = -float(special.ndtri(tail))
    centre, square = moments.ratio * math.sqrt(_bias_correction(moments)), np.asarray(0.0)
    for size, shape, power in ((moments.count, moments.shape, 0.5), (moments.null_count, moments.null_shape, -0.5)):
        if math.isfinite(size):
            factor = size / (size - min(quantile, 0.5 * size))
            excess = np.maximum((shape or NORMAL).kurtosis - (size - 3.0) / size, 0.0)
            centre, square = centre * factor**power, square + 0.25 * factor**2 * excess / (size - 1.0)
    step = np.exp(quantile * np.sqrt(square))
    return centre / step, centre * step


def _ratio_range(moments: Moments, tail: float) -> tuple[Array, Array]:
    """Return limits of the ratio: the normal law's, or those by the samples' shape where they are wider."""
    least, most = _ratio_limits(moments, tail)
    smallest, largest = moments.ratio / most, moments.ratio / least
    if moments.shape is None and moments.null_shape is None:
        return smallest, largest
    low, high = _bonett(moments, tail)
    return np.minimum(smallest, low), np.maximum(largest, high)


def _rectangle(moments: Moments, confidence: float) -> tuple[Array, Array, Array, Array]:
    """Return joint limits of distance and ratio."""
    # Mean and variance of a normal sample are independent: two limits at this level each hold jointly at the whole.
    tail = 0.5 - 0.5 * math.sqrt(confidence)
    smallest, largest = _ratio_range(moments, tail)
    error = np.maximum(_distance_error(moments), _distance_error(moments.as_normal))
    reach = -error * special.stdtrit(min(moments.count, moments.null_count) - 1.0, tail)
    nearest, farthest = np.maximum(np.abs(moments.distance) - reach, 0.0), np.abs(moments.distance) + reach
    return nearest, farthest, smallest, largest


def _range(pair_epsilon: PairEpsilon, moments: Moments, delta: float, confidence: float) -> tuple[Array, Array]:
    nearest, farthest, smallest, largest = _rectangle(moments, confidence)
    # ε rises with the distance, and at fixed distance it falls toward ratio 1 from either side.
    low = pair_epsilon(delta, nearest, np.clip(1.0, smallest, largest))
    high = np.maximum(pair_epsilon(delta, farthest, smallest), pair_epsilon(delta, farthest, largest))
    return low, high


def _from_pair(pair_epsilon: PairEpsilon, moments: Moments, delta: float, confidence: float) -> Estimate:
    low, high = _range(pair_epsilon, moments, delta, confidence)
    epsilon = pair_epsilon(delta, moments.distance, moments.ratio)
    return Estimate(epsilon, low, high, lambda: propagate(pair_epsilon, moments, delta)[1])
