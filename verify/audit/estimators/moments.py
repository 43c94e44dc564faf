"""Moments of a run's observed cosines, standardised by the null's: what the estimators of ε see of the run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arrays import Array


@dataclass(frozen=True)
class Shape:
    """How far the samples of runs are from normal.

    Attributes
    ----------
    skewness
        Third standardised moment, shape of the runs; 0 for a normal law.
    kurtosis
        Fourth one, 3 for a normal law, same shape. It is about a trimmed mean, which errs less where scores are skewed
        (Bonett, Comput. Stat. Data Anal. 50, 2006).
    """

    skewness: NDArray[np.float64]
    kurtosis: NDArray[np.float64]

    def of(self, runs: Any) -> "Shape":
        """Return the shapes of some of the runs."""
        return Shape(self.skewness[runs], self.kurtosis[runs])


NORMAL = Shape(np.asarray(0.0), np.asarray(3.0))


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
    shared
        Variance of the error of the distance that all scores of a run share, beside that of their mean.
    shape, null_shape
        Shapes of the observed and of the unobserved cosines; None if not known, and taken for normal. Standard errors
        go by them, and intervals by the larger of the normal law's errors and theirs.
    """

    distance: NDArray[np.float64]
    ratio: NDArray[np.float64]
    count: int
    null_count: float = math.inf
    shape: Shape | None = None
    null_shape: Shape | None = None
    shared: float = field(default=0.0, kw_only=True)

    @property
    def as_normal(self) -> "Moments":
        """The same, as if the cosines were normal."""
        return replace(self, shape=None, null_shape=None)

    def of(self, runs: Any) -> "Moments":
        """Return the moments of some of the runs, by any index."""
        shape, null_shape = (None if each is None else each.of(runs) for each in (self.shape, self.null_shape))
        return replace(self, distance=self.distance[runs], ratio=self.ratio[runs], shape=shape, null_shape=null_shape)


def concatenate(parts: Sequence[Moments]) -> Moments:
    """Return the moments of several lots of runs of one size as those of one lot."""
    first = parts[0]
    shape, null_shape = (
        None
        if getattr(first, name) is None
        else Shape(
            *(
                np.concatenate([getattr(getattr(each, name), part) for each in parts])
                for part in ("skewness", "kurtosis")
            )
        )
        for name in ("shape", "null_shape")
    )
    distance, ratio = (np.concatenate([getattr(each, name) for each in parts]) for name in ("distance", "ratio"))
    return replace(first, distance=distance, ratio=ratio, shape=shape, null_shape=null_shape)


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
    mean, deviation = root * cosines.mean(axis=-1), root * cosines.std(axis=-1)
    return Moments(mean, deviation, cosines.shape[-1], shape=shape_of(cosines))


def from_release(slopes: ArrayLike, dim: float, inserted: int) -> Moments:
    """Moments of canaries in one release, of a distance that measures the noise alone, without other canaries.

    Of k independent canaries in the release, each has 1/d in the variance of its coordinates. The error of the distance
    m, before they are taken out, has the variance (1 + km²/d)/k + m²/(2d): pairs of canaries count twice in a mean, and
    the length of the noise is random.

    Parameters
    ----------
    slopes
        (1 + ⟨c, x⟩)/‖x‖ of each canary c with what is left of the release without it, x, or c/√(1 − c²) of a cosine c,
        which is nearly the same; shape (k,).
    dim
        Dimension d of the release.
    inserted
        Number of canaries in the release that each is scored with, itself included.

    Returns
    -------
    Moments; the distance is infinite where the canaries would fill all of the release.
    """
    moments = from_dimension(slopes, dim)
    square = float(moments.distance) ** 2
    others = (inserted - 1.0) * square / dim
    if others >= 1.0:
        return replace(moments, distance=np.asarray(math.inf), shared=math.inf)
    error = (1.0 + others) / moments.count + 0.5 * square / dim
    shared = error / (1.0 - others) ** 3 - 1.0 / moments.count
    return replace(moments, distance=moments.distance / math.sqrt(1.0 - others), shared=shared)


def from_two_groups(observed: ArrayLike, unobserved: ArrayLike) -> Moments:
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
    ratio, counts = seen.std(axis=-1) / deviation, (seen.shape[-1], float(unseen.shape[-1]))
    return Moments(distance, ratio, *counts, shape_of(seen), shape_of(unseen))


def _runs(name: str, scores: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim < 1 or array.shape[-1] < 2:
        raise ValueError(f"{name}: a run needs at least two cosines")
    if not np.all(np.ptp(array, axis=-1) > 0.0):
        raise ValueError(f"{name}: the cosines of a run must not all be equal")
    return array


# Fewer say nothing of their shape.
_FEWEST_FOR_SHAPE = 8


def shape_of(cosines: NDArray[np.float64]) -> Shape | None:
    """Return the shapes of runs; None where they have too few scores."""
    count = cosines.shape[-1]
    if count < _FEWEST_FOR_SHAPE:
        return None
    cut = int(0.5 / math.sqrt(count - 4.0) * count)
    trimmed = np.asarray(np.partition(cosines, (cut, count - cut - 1), axis=-1)[..., cut : count - cut].mean(axis=-1))
    deviation = cosines.std(axis=-1, keepdims=True)
    skewness = _moment(cosines, cosines.mean(axis=-1, keepdims=True), deviation, 3)
    return Shape(skewness, _moment(cosines, trimmed[..., np.newaxis], deviation, 4))


def _moment(cosines: Array, centre: Array, deviation: Array, order: int) -> Array:
    """Return standardised moments of runs, the third or the fourth."""
    scores = cosines - centre
    scores /= deviation
    # A power takes 20 times as long as a product.
    powers = scores * scores
    powers *= scores if order == 3 else powers
    return np.asarray(powers.mean(axis=-1))
