"""What the canary estimators see of a run: the mean and deviation of its observed cosines, in the null's own units."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
