"""The attacker of the first version of Andrew et al. (arXiv 2302.03098v1), Section 4, who has a single threshold."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels._compiled import evaluate, njit
from canaryproof.kernels._tails import mills_ratio
from canaryproof.kernels.arguments import checked_reals
from canaryproof.kernels.arrays import Array

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_GRID = 48
# Beyond, erfc loses digits before it underflows.
_FAR = 35.0


@njit(cache=True, error_model="numpy")
def _log_upper(x: float) -> float:
    if x > _FAR:
        return math.log(mills_ratio(x, 0.0)[0]) - 0.5 * x * x - _HALF_LOG_TWO_PI
    return math.log(0.5 * math.erfc(x * math.sqrt(0.5)))


@njit(cache=True, error_model="numpy")
def _gain(z: float, delta: float, m: float, s: float) -> float:
    """log((P(X > a) − δ)/Q(X > a)) at a = m + sz, for P = N(m, s²) and Q = N(0, 1)."""
    hit = 0.5 * math.erfc(z * math.sqrt(0.5)) - delta
    return math.log(hit) - _log_upper(m + s * z) if hit > 0.0 else -math.inf


@njit(cache=True, error_model="numpy")
def _slope(z: float, delta: float, m: float, s: float) -> float:
    """Return the derivative of the gain."""
    hit, x = 0.5 * math.erfc(z * math.sqrt(0.5)) - delta, m + s * z
    if hit <= 0.0:
        return -math.inf
    hazard = math.exp(-0.5 * x * x - _HALF_LOG_TWO_PI - _log_upper(x))
    return s * hazard - math.exp(-0.5 * z * z - _HALF_LOG_TWO_PI) / hit


@njit(cache=True, error_model="numpy")
def _best_gain(delta: float, m: float, s: float) -> float:
    # P(X > z) ≤ δ beyond the upper end; below −9 both probabilities are 1.
    low, high = -9.0, math.sqrt(-2.0 * math.log(delta))
    step = (high - low) / _GRID
    best, at = -math.inf, 0
    for i in range(_GRID):
        value = _gain(low + step * i, delta, m, s)
        if value > best:
            best, at = value, i
    # Between the grid points next to the best one, find the zero of the derivative by the Illinois rule.
    left, right = low + step * (at - 1), low + step * (at + 1)
    rise, fall = _slope(left, delta, m, s), _slope(right, delta, m, s)
    side = 0.0
    while rise > 0.0 > fall and right - left > 1e-11:
        z = (left * fall - right * rise) / (fall - rise) if fall > -math.inf else 0.5 * (left + right)
        slope = _slope(z, delta, m, s)
        best = max(best, _gain(z, delta, m, s))
        if abs(slope) < 1e-9:
            break
        # An end that stays twice counts for half.
        if slope > 0.0:
            left, rise = z, slope
            fall *= 0.5 if side > 0.0 else 1.0
        else:
            right, fall = z, slope
            rise *= 0.5 if side < 0.0 else 1.0
        side = slope
    return best


@njit(cache=True, error_model="numpy")
def _threshold_at(delta: float, distance: float, ratio: float) -> float:
    distance = abs(distance)
    # Guessing "observed" above the threshold, and "unobserved" below it; the second after a reflection.
    above = _best_gain(delta, distance, ratio)
    below = _best_gain(delta, distance / ratio, 1.0 / ratio)
    return max(above, below, 0.0)


@njit(cache=True, error_model="numpy")
def _thresholds(delta: Array, distance: Array, ratio: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _threshold_at(delta[i], distance[i], ratio[i])


def threshold_epsilon(delta: float, distance: ArrayLike, ratio: ArrayLike) -> NDArray[np.float64]:
    """Return max over a of ε(N(0, 1) ‖ N(distance, ratio²); δ, a).

    Parameters
    ----------
    delta
        δ in (0, 1).
    distance, ratio
        Mean and standard deviation of the observed cosines in the null's units, any shape.

    Returns
    -------
    ε in nats, broadcast shape.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098v1), Section 4: with F₀ and F₁ the two distribution functions,
    max(log((F₀(a) − δ)/F₁(a)), log((1 − δ − F₁(a))/(1 − F₀(a)))).
    """
    arrays = map(checked_reals, ("delta", "distance", "ratio"), (delta, distance, ratio))
    return evaluate(_thresholds, *arrays)
