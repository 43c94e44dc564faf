"""The audit of one run: every estimate of ε, lower bounds beside them, and the checks of what the estimates assume."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.diagnostic import normal_ad

from canaryproof.kernels import null_cosine
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.certified import Enclosure, estimates
from canaryproof.verify.blindspots.noticed import BlindSpots, blind_spots
from canaryproof.verify.bounds.catalogue import lower_bounds
from canaryproof.verify.bounds.lower_bound import LowerBound, cosine_null, prepare
from canaryproof.verify.check.late import late
from canaryproof.verify.estimators import estimators
from canaryproof.verify.estimators import estimators as sample_moments
from canaryproof.verify.estimators.estimators import Moments


def _enclose_pinned(moments: Moments, delta: float) -> Enclosure:
    return estimates.pinned(delta, float(estimators.pinned_distance(moments)))


def _enclose_fitted(moments: Moments, delta: float) -> Enclosure:
    return estimates.fitted(delta, float(moments.distance), float(moments.ratio))


def _enclose_adaptive(moments: Moments, delta: float) -> Enclosure:
    equal = estimators.variance_p_value(moments) >= estimators.TEST_LEVEL
    return _enclose_pinned(moments, delta) if equal else _enclose_fitted(moments, delta)


def _enclose_threshold(moments: Moments, delta: float) -> Enclosure:
    return estimates.threshold(delta, float(moments.distance), float(moments.ratio))


# Estimators with their enclosures and what each assumes, the default first.
_ESTIMATORS = (
    (
        "adaptive",
        late(estimators, "adaptive"),
        _enclose_adaptive,
        f"as pinned, unless the variances differ at level {estimators.TEST_LEVEL:g}; then as fitted (canaryproof)",
    ),
    (
        "pinned",
        late(estimators, "pinned"),
        _enclose_pinned,
        "canaries shift the mean and leave the variance (arXiv:2302.03098v1, Section 3)",
    ),
    (
        "fitted",
        late(estimators, "fitted"),
        _enclose_fitted,
        "normal scores of any mean and variance (arXiv:2302.03098, Section 3.2)",
    ),
    (
        "threshold",
        late(estimators, "threshold"),
        _enclose_threshold,
        "as fitted, for an attacker with one threshold (v1, Section 4)",
    ),
)
_NORM_ASSUMES = "the release is Gaussian noise and little else, in units of the canary norm (v1, footnote 2)"

# The estimators are finite and free of warnings within these bounds, in units of the null's standard deviation;
# cosines in any dimension keep to the upper one.
_SMALLEST_RATIO, _LARGEST_RATIO = 1e-6, 1e7
_SMALLEST_COORDINATE, _LARGEST_COORDINATE = 1e-12, 1e15
# Below, the p-value's formula has no basis.
_FEWEST_FOR_NORMALITY = 8
# Work between two reports of progress, about a tenth of a second.
_COORDINATES_AT_ONCE = 10**8


@dataclass(frozen=True)
class Check:
    """A goodness-of-fit test.

    Attributes
    ----------
    statistic
        Its statistic, infinite where a tail probability underflows.
    p_value
        Its p-value, 0 below the smallest that its formula serves.
    """

    statistic: float
    p_value: float


@dataclass(frozen=True)
class NamedEstimate:
    """An estimate of ε by one estimator.

    Attributes
    ----------
    name
        Estimator.
    assumes
        What it assumes, with the source.
    epsilon, standard_error, low, high
        As in ``oneshot.estimators.Estimate``.
    certified
        Floats proven to lie on either side of the exact ε for the fitted parameters.
    """

    name: str
    assumes: str
    epsilon: float
    standard_error: float
    low: float
    high: float
    certified: tuple[float, float]


@dataclass(frozen=True)
class Audit:
    """What an audit finds; depends on nothing but its input.

    Attributes
    ----------
    count
        Number k of observed cosines.
    null_count
        Number of unobserved cosines that the null was fitted to; None for the closed-form null N(0, 1/d).
    dim
        Dimension d of the released vector, if known.
    delta, confidence
        As asked.
    standardised_mean
        (μ̂ − μ₀)/σ₀; √d·μ̂ for the closed-form null.
    deviation_ratio
        σ̂/σ₀; √d·σ̂ for the closed-form null.
    variance_p_value
        Two-sided p-value of equal variances of observed cosines and null.
    normality
        Anderson–Darling test that the observed cosines are normal; None for fewer than 8.
    null_law
        Kolmogorov–Smirnov test that the unobserved cosines follow the closed-form null law in R^d; None without
        unobserved cosines or without a dimension.
    estimates
        The estimates, the default first.
    inclusion
        How it was decided which canaries take part: ``fixed`` or ``coin``.
    bounds
        Lower bounds on ε and posterior intervals, those first whose coverage is proven.
    blind_spots
        What the default estimator would have noticed and what not; None where the dimension is not known or below
        1,000.
    """

    count: int
    null_count: int | None
    dim: int | None
    delta: float
    confidence: float
    standardised_mean: float
    deviation_ratio: float
    variance_p_value: float
    normality: Check | None
    null_law: Check | None
    estimates: tuple[NamedEstimate, ...]
    inclusion: str
    bounds: tuple[LowerBound, ...]
    blind_spots: BlindSpots | None

    @property
    def equal_variances(self) -> bool:
        """Whether the variances are not told apart, so that ``adaptive`` is ``pinned``."""
        return self.variance_p_value >= estimators.TEST_LEVEL

    @property
    def mean_error(self) -> float:
        """Standard error of ``standardised_mean``."""
        unobserved = 0.0 if self.null_count is None else 1.0 / self.null_count
        return math.sqrt(self.deviation_ratio**2 / self.count + unobserved)

    @property
    def ratio_error(self) -> float:
        """Standard error of ``deviation_ratio``."""
        unobserved = 0.0 if self.null_count is None else 0.5 / self.null_count
        return self.deviation_ratio * math.sqrt(0.5 / self.count + unobserved)


def audit_scores(
    observed: NDArray[np.float64],
    unobserved: NDArray[np.float64] | None,
    dim: int | None,
    delta: float,
    confidence: float = 0.95,
    inclusion: str = "fixed",
    bounds: tuple[str, ...] = (),
    noise_multiplier: float | None = None,
) -> Audit:
    """Audit the cosines of one run.

    Parameters
    ----------
    observed
        Cosines of canaries that took part, shape (k,), k ≥ 2, or their maxima over rounds.
    unobserved
        The same of canaries that did not take part: a Gaussian fitted to them is the null (Andrew et al., arXiv
        2302.03098, Algorithm 3). If None, N(0, 1/d) is.
    dim
        Dimension d of the released vector, 2 ≤ d ≤ 1e12; may be None beside unobserved cosines.
    delta
        Target δ in (0, 1).
    confidence
        Confidence of the intervals and bounds, in [1e-9, 1 − 1e-9].
    inclusion
        How it was decided which canaries take part: ``fixed``, or ``coin`` if by a fair coin for each.
    bounds
        Names of the bounds in ``bounds.catalogue``; by default a few that serve these cosines.
    noise_multiplier
        Claimed standard deviation of the noise, in units of the canary norm.

    Returns
    -------
    The audit.

    Raises
    ------
    ValueError
        If a named bound does not serve these cosines, both unobserved cosines and dimension are missing, or the
        cosines' mean or deviation is beyond any that a run produces.
    """
    moments = _moments(observed, unobserved, dim)
    null = cosine_null(dim) if unobserved is None and dim is not None else None
    # Of one run, so that they are not independent.
    scores = prepare(observed, unobserved, null, inclusion=inclusion)
    try:
        found = [
            _named(name, assumes, estimator(moments, delta, confidence), enclose(moments, delta))
            for name, estimator, enclose, assumes in _ESTIMATORS
        ]
    except ValueError as error:
        # A few cosines at a confidence near 1 leave an interval wider than any kernel's domain; or δ is subnormal.
        raise ValueError(f"observed: no estimate with this interval: {error}") from None
    return Audit(
        count=moments.count,
        null_count=None if unobserved is None else len(unobserved),
        dim=dim,
        delta=delta,
        confidence=confidence,
        standardised_mean=float(moments.distance),
        deviation_ratio=float(moments.ratio),
        variance_p_value=float(estimators.variance_p_value(moments)),
        normality=_normality(observed),
        null_law=None if unobserved is None or dim is None else _null_law(unobserved, dim),
        estimates=tuple(found),
        inclusion=inclusion,
        bounds=lower_bounds(scores, delta, confidence, bounds),
        blind_spots=blind_spots(
            dim, delta, moments.count, None if unobserved is None else len(unobserved), noise_multiplier
        ),
    )


def audit_release(
    release: NDArray[np.float32] | NDArray[np.float64],
    count: int,
    seed: int,
    delta: float,
    confidence: float = 0.95,
    advance: Callable[[int], None] = lambda _: None,
    bounds: tuple[str, ...] = (),
    noise_multiplier: float | None = None,
) -> Audit:
    """Audit a released vector, with the canaries made again from their seed.

    Parameters
    ----------
    release
        Released vector, finite and not zero, shape (d,); in units of the canary norm, which matters to ``norm`` only.
    count, seed
        Number and seed of the canaries that were added.
    delta, confidence
        As for ``audit_scores``.
    advance
        Called now and then with the number of canaries scored since the last call.
    bounds, noise_multiplier
        As for ``audit_scores``.

    Returns
    -------
    The audit, with the ``norm`` estimate last, and the release's dilution if the noise is given.

    Raises
    ------
    ValueError
        If count, seed or dimension is outside the domain of ``Canaries``, or the release's size or the cosines' mean
        or deviation is beyond any that a run produces.
    """
    largest = max(abs(float(release.min())), abs(float(release.max())))
    if not _SMALLEST_COORDINATE <= largest <= _LARGEST_COORDINATE:
        raise ValueError(
            f"the release's largest coordinate must lie between {_SMALLEST_COORDINATE:g} and "
            f"{_LARGEST_COORDINATE:g} canary norms, not {largest:.3g}"
        )
    canaries = Canaries(seed, count, len(release))
    step = max(16, _COORDINATES_AT_ONCE // canaries.dim)
    pieces = []
    for start in range(0, count, step):
        indices = np.arange(start, min(start + step, count))
        pieces.append(canaries.cosines(release, indices))
        advance(len(indices))
    found = audit_scores(
        np.concatenate(pieces), None, canaries.dim, delta, confidence, bounds=bounds, noise_multiplier=noise_multiplier
    )
    spots = found.blind_spots
    if spots is not None and noise_multiplier is not None:
        # The norm estimator's distance is √d/‖ρ‖.
        square = (noise_multiplier * float(estimators.norm_distance(release))) ** -2
        spots = dataclasses.replace(spots, dilution=square - 1.0)
    enclosure = estimates.pinned(delta, float(estimators.norm_distance(release)))
    norm = _named("norm", _NORM_ASSUMES, estimators.norm(release, delta, confidence), enclosure)
    return dataclasses.replace(found, estimates=(*found.estimates, norm), blind_spots=spots)


def _moments(observed: NDArray[np.float64], unobserved: NDArray[np.float64] | None, dim: int | None) -> Moments:
    """Return the moments, unless no run produces them."""
    # A variance may underflow to 0; the bounds refuse what comes of it, NaN too.
    with np.errstate(all="ignore"):
        if unobserved is not None:
            moments = sample_moments.from_unobserved(observed, unobserved)
        elif dim is not None:
            moments = sample_moments.from_dimension(observed, dim)
        else:
            raise ValueError("without unobserved cosines the dimension is needed")
    distance, ratio = float(moments.distance), float(moments.ratio)
    if not _SMALLEST_RATIO <= ratio <= _LARGEST_RATIO:
        raise ValueError(
            f"observed: the standard deviation must be {_SMALLEST_RATIO:g} to {_LARGEST_RATIO:g} times the null's, "
            f"not {ratio:.3g} times"
        )
    if not abs(distance) <= _LARGEST_RATIO:
        raise ValueError(
            f"observed: the mean must lie within {_LARGEST_RATIO:g} of the null's standard deviations from the null's "
            f"mean, not {abs(distance):.3g} away"
        )
    return moments


def _named(name: str, assumes: str, estimate: estimators.Estimate, enclosure: Enclosure) -> NamedEstimate:
    return NamedEstimate(
        name,
        assumes,
        float(estimate.epsilon),
        float(estimate.standard_error),
        float(estimate.low),
        float(estimate.high),
        (enclosure.lo, enclosure.hi),
    )


def _normality(observed: NDArray[np.float64]) -> Check | None:
    if len(observed) < _FEWEST_FOR_NORMALITY:
        return None
    # The logarithm of a far outlier's tail probability may be that of 0: the statistic is then infinite.
    with np.errstate(all="ignore"):
        statistic, p_value = normal_ad(observed)
    return Check(float(statistic), float(p_value))


def _null_law(unobserved: NDArray[np.float64], dim: int) -> Check:
    # Probability transform first: the closed-form law becomes the uniform.
    result = stats.kstest(null_cosine.cdf(unobserved, dim), "uniform")
    return Check(float(result.statistic), float(result.pvalue))
