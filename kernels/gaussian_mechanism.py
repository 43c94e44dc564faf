"""Privacy curve of the Gaussian mechanism: Balle and Wang (ICML 2018), Theorem 8 and Algorithm 1.

With sensitivity 1 and noise multiplier σ: δ(ε) = Φ(1/(2σ) − εσ) − e^ε·Φ(−1/(2σ) − εσ), the case of equal deviations
of ``two_gaussians`` with m = 1/σ.

Domain: σ from 1e-14 to 1e50, 0 ≤ ε ≤ 1e28, δ < 1 and not subnormal. Budget: 64 ulps of the exact result at the given
floats, 8 in practice (δ ≥ 1e-12, 0.1 ≤ ε ≤ 50). Where ε or log δ is below 0.1, an absolute 1e-15 is added. Worst by
search: 3 ulps in practice, 28 anywhere. The budgets in practice are *proven* (``proofs_check/rounding/budgets.csv``),
those anywhere *searched*, at 20,000 draws and as many steps a function; that ``epsilon`` and ``noise_multiplier`` never
return NaN is searched too. The enclosures of ``certified.gaussian_mechanism`` are proven.

For example:

>>> import canaryproof as cp
>>> print(f"{cp.gaussian_mechanism.epsilon(1e-6, 1.54):.4f}")
3.0084
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels import _double_double as dd
from canaryproof.kernels._compiled import evaluate, njit
from canaryproof.kernels._tails import Pair, outside, tails
from canaryproof.kernels.arguments import checked_reals
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.two_gaussians import (
    LARGEST_EPSILON,
    SMALLEST_DELTA,
    log_delta_at_root,
    probabilities_at_root,
    relative_excess,
    solve_epsilon,
)

# Bounds of the domain, in addition to those of ``two_gaussians``.
SMALLEST_NOISE = 1e-14
LARGEST_NOISE = 1e50
_SQRT_TWO_PI = math.sqrt(2.0 * math.pi)
_ZERO, _UNIT = (0.0, 0.0), (1.0, 0.0)


@njit(cache=True, error_model="numpy")
def _root(epsilon: float, sigma: float) -> tuple[Pair, Pair]:
    """Return u = εσ − 1/(2σ), where the privacy loss is ε, and m = 1/σ."""
    # u enters as u²/2: in one float its rounding would show at ε = 1e5.
    mh, ml = dd.divide(1.0, 0.0, sigma, 0.0)
    return dd.add(*dd.two_product(epsilon, sigma), -0.5 * mh, -0.5 * ml), (mh, ml)


@njit(cache=True, error_model="numpy")
def _delta_at(epsilon: float, sigma: float) -> float:
    u, m = _root(epsilon, sigma)
    # Beyond, δ underflows.
    return probabilities_at_root(u, m, _ZERO, m, _UNIT)[0] if u[0] < 39.0 else 0.0


@njit(cache=True, error_model="numpy")
def _deltas(epsilon: Array, sigma: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _delta_at(epsilon[i], sigma[i])


@njit(cache=True, error_model="numpy")
def _log_delta_at(epsilon: float, sigma: float) -> float:
    u, m = _root(epsilon, sigma)
    return log_delta_at_root(u, m, _ZERO, m, _UNIT)


@njit(cache=True, error_model="numpy")
def _log_deltas(epsilon: Array, sigma: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _log_delta_at(epsilon[i], sigma[i])


@njit(cache=True, error_model="numpy")
def _epsilons(delta: Array, sigma: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = solve_epsilon(delta[i], dd.divide(1.0, 0.0, sigma[i], 0.0), _ZERO)


@njit(cache=True, error_model="numpy")
def _noise_multiplier_at(epsilon: float, delta: float) -> float:
    # log δ is concave in log m, m = 1/σ, so that Newton climbs from any start below the root. Two such starts:
    # δ ≤ exp(−u²/2) bounds u from above, hence m from below; and δ(ε) ≤ δ(0) ≤ m/√(2π).
    highest = math.sqrt(-2.0 * math.log(delta))
    m = max(2.0 * epsilon / (highest + math.sqrt(highest * highest + 2.0 * epsilon)), delta * _SQRT_TWO_PI)
    step = 0.0
    for _ in range(100):
        u = dd.add(*dd.divide(epsilon, 0.0, m, 0.0), -0.5 * m, 0.0)
        excess, rest = tails(u, (m, 0.0), _ZERO, (m, 0.0), _UNIT)
        # ∂δ/∂m = φ(u) at fixed ε, and δ = φ(u)·excess.
        # −du/d log m.
        width = epsilon / m + 0.5 * m
        if delta <= 0.5:
            step = -relative_excess(u, excess, delta) * excess[0] / m
        else:
            # 1 − δ has the digits. Concave and falling: from the left a full step could overshoot, and lose the
            # density to underflow.
            total = dd.add(*outside(u, (m, 0.0), _ZERO, (m, 0.0), _UNIT), *rest)
            step = min(relative_excess(u, total, 1.0 - delta) * total[0] / m, 0.3, 1.0 / width)
        # The next step would add an amount of the order of step²·(1 + width).
        if abs(step) <= 4e-9 / math.sqrt(1.0 + width):
            break
        m *= math.exp(step)
    else:
        # As in ``solve_epsilon``.
        return math.nan
    return 1.0 / (m * (1.0 + step))


@njit(cache=True, error_model="numpy")
def _noise_multipliers(epsilon: Array, delta: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _noise_multiplier_at(epsilon[i], delta[i])


def _checked_epsilon(epsilon: ArrayLike) -> NDArray[np.float64]:
    array = checked_reals("epsilon", epsilon)
    if not np.all((array >= 0.0) & (array <= LARGEST_EPSILON)):
        raise ValueError(f"epsilon must lie between 0 and {LARGEST_EPSILON:g}")
    return array


def _checked_delta(delta: ArrayLike) -> NDArray[np.float64]:
    array = checked_reals("delta", delta)
    if not np.all((array >= SMALLEST_DELTA) & (array < 1.0)):
        raise ValueError(f"delta must lie between {SMALLEST_DELTA:g} and 1, 1 excluded")
    return array


def checked_noise(noise_multiplier: ArrayLike) -> NDArray[np.float64]:
    """Return noise multipliers as an array; a ValueError if they lie outside the domain."""
    array = checked_reals("noise_multiplier", noise_multiplier)
    if not np.all((array >= SMALLEST_NOISE) & (array <= LARGEST_NOISE)):
        raise ValueError(f"noise_multiplier must lie between {SMALLEST_NOISE:g} and {LARGEST_NOISE:g}")
    return array


def delta(epsilon: ArrayLike, noise_multiplier: ArrayLike) -> NDArray[np.float64]:
    """Least δ at which the Gaussian mechanism is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon
        ε in nats, 0 ≤ ε ≤ 1e28; any shape, broadcast with ``noise_multiplier``.
    noise_multiplier
        Standard deviation σ of the noise per unit of sensitivity.

    Returns
    -------
    δ, broadcast shape; 0 where it underflows (``log_delta`` does not).

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    Balle and Wang (2018), Theorem 8.
    """
    return evaluate(_deltas, _checked_epsilon(epsilon), checked_noise(noise_multiplier))


def log_delta(epsilon: ArrayLike, noise_multiplier: ArrayLike) -> NDArray[np.float64]:
    """Natural log of ``delta``, without underflow; arguments and errors as there."""
    return evaluate(_log_deltas, _checked_epsilon(epsilon), checked_noise(noise_multiplier))


def epsilon(delta: ArrayLike, noise_multiplier: ArrayLike) -> NDArray[np.float64]:
    """Least ε ≥ 0 at which the Gaussian mechanism is (ε, δ)-differentially private.

    Parameters
    ----------
    delta
        δ in (0, 1), not subnormal; any shape, broadcast with ``noise_multiplier``.
    noise_multiplier
        Standard deviation σ of the noise per unit of sensitivity.

    Returns
    -------
    ε in nats, broadcast shape; 0 where δ alone covers the mechanism.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    The inverse of Balle and Wang (2018), Theorem 8, in ε.
    """
    return evaluate(_epsilons, _checked_delta(delta), checked_noise(noise_multiplier))


def noise_multiplier(epsilon: ArrayLike, delta: ArrayLike) -> NDArray[np.float64]:
    """Least noise multiplier at which the Gaussian mechanism is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon
        ε in nats, 0 ≤ ε ≤ 1e28; any shape, broadcast with ``delta``.
    delta
        δ in (0, 1), not subnormal.

    Returns
    -------
    σ per unit of sensitivity, broadcast shape.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    The analytic calibration of Balle and Wang (2018), Algorithm 1.
    """
    return evaluate(_noise_multipliers, _checked_epsilon(epsilon), _checked_delta(delta))
