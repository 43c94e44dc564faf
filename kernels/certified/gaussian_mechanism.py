"""Privacy curve of the Gaussian mechanism as proven enclosures: Balle and Wang (ICML 2018), Theorem 8.

With sensitivity 1 and noise multiplier σ: δ(ε) = Φ(1/(2σ) − εσ) − e^ε·Φ(−1/(2σ) − εσ), the case of equal deviations
of ``two_gaussians`` with distance 1/σ, whose balls serve here.

Domain: σ from 1e-50 to 1e50, 0 ≤ ε ≤ 1e50, 0 < δ < 1; floats, ints or Fractions, taken as the exact numbers that they
are. All enclosures are tight (at most 2 ulps), but for a δ given as a Fraction that agrees with a value of the curve to
thousands of digits. Arrays are enclosed as those of ``two_gaussians`` are.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, overload

from flint import arb, fmpq
from numpy.typing import ArrayLike

from canaryproof.kernels import gaussian_mechanism as fast
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.certified import _pair_balls, two_gaussians
from canaryproof.kernels.certified._ball import (
    Enclosure,
    Enclosures,
    Number,
    bracket,
    enclose,
    enclose_arrays,
    guess,
    has_arrays,
    sign,
    strictly_within_unit,
    within,
)

_LARGEST = 1e50


def _arguments(epsilon: Number, noise_multiplier: Number) -> tuple[fmpq, fmpq]:
    """Return ε and the distance 1/σ."""
    eps = within("epsilon", epsilon, 0.0, _LARGEST)
    return eps, 1 / within("noise_multiplier", noise_multiplier, 1 / _LARGEST, _LARGEST)


def _deltas(slow: Callable[..., Enclosure], epsilon: Any, noise_multiplier: Any, *, log: bool) -> Enclosures:
    def fill(eps: Array, sigma: Array, low: Array, high: Array) -> None:
        fast.checked_noise(sigma)
        _pair_balls.mechanism_deltas(eps, sigma, log, low, high)

    return enclose_arrays(None, fill, slow, epsilon, noise_multiplier)


@overload
def delta(epsilon: Number, noise_multiplier: Number) -> Enclosure: ...
@overload
def delta(epsilon: ArrayLike, noise_multiplier: ArrayLike) -> Enclosures: ...
def delta(epsilon: Any, noise_multiplier: Any) -> Enclosure | Enclosures:
    """Enclose the least δ at which the Gaussian mechanism is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon
        ε in nats, 0 ≤ ε ≤ 1e50.
    noise_multiplier
        Standard deviation σ of the noise per unit of sensitivity.

    Returns
    -------
    Enclosure of δ; ``Enclosures`` if an argument is an array.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    Balle and Wang (2018), Theorem 8.
    """
    if has_arrays(epsilon, noise_multiplier):
        return _deltas(delta, epsilon, noise_multiplier, log=False)
    eps, distance = _arguments(epsilon, noise_multiplier)
    return enclose(lambda: two_gaussians.shift_divergence(eps, distance).delta, least=0.0, greatest=1.0)


@overload
def log_delta(epsilon: Number, noise_multiplier: Number) -> Enclosure: ...
@overload
def log_delta(epsilon: ArrayLike, noise_multiplier: ArrayLike) -> Enclosures: ...
def log_delta(epsilon: Any, noise_multiplier: Any) -> Enclosure | Enclosures:
    """Enclose the natural log of ``delta``, which doesn't underflow; arguments and errors as there."""
    if has_arrays(epsilon, noise_multiplier):
        return _deltas(log_delta, epsilon, noise_multiplier, log=True)
    eps, distance = _arguments(epsilon, noise_multiplier)
    return enclose(lambda: two_gaussians.log_of(two_gaussians.shift_divergence(eps, distance)), greatest=0.0)


@overload
def epsilon(delta: Number, noise_multiplier: Number) -> Enclosure: ...
@overload
def epsilon(delta: ArrayLike, noise_multiplier: ArrayLike) -> Enclosures: ...
def epsilon(delta: Any, noise_multiplier: Any) -> Enclosure | Enclosures:
    """Enclose the least ε ≥ 0 at which the Gaussian mechanism is (ε, δ)-differentially private.

    Parameters
    ----------
    delta
        δ in (0, 1).
    noise_multiplier
        Standard deviation σ of the noise per unit of sensitivity.

    Returns
    -------
    Floats with δ(lo) > delta ≥ δ(hi), both proven by enclosures of δ; lo = hi = 0 where δ(0) ≤ delta is proven. Arrays
    of them if an argument is an array.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    The inverse of Balle and Wang (2018), Theorem 8, in ε, in which δ does not increase. The fast kernel says where the
    search starts.
    """
    if has_arrays(delta, noise_multiplier):
        return enclose_arrays(fast.epsilon, _pair_balls.mechanism_epsilons, epsilon, delta, noise_multiplier)
    target = strictly_within_unit("delta", delta)
    _, distance = _arguments(0, noise_multiplier)

    def excess(eps: fmpq) -> arb:
        return two_gaussians.shift_divergence(eps, distance).delta - arb(target)

    if sign(partial(excess, fmpq(0)))[0] < 0:
        return Enclosure(0.0, 0.0, arb(0))
    return bracket(excess, guess(fast.epsilon, delta, noise_multiplier))


@overload
def noise_multiplier(epsilon: Number, delta: Number) -> Enclosure: ...
@overload
def noise_multiplier(epsilon: ArrayLike, delta: ArrayLike) -> Enclosures: ...
def noise_multiplier(epsilon: Any, delta: Any) -> Enclosure | Enclosures:
    """Enclose the least noise multiplier at which the Gaussian mechanism is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon
        ε in nats, 0 ≤ ε ≤ 1e50.
    delta
        δ in (0, 1).

    Returns
    -------
    Floats with δ(ε, lo) > delta ≥ δ(ε, hi), both proven by enclosures of δ; arrays if an argument is one.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    The inverse of Balle and Wang (2018), Theorem 8, in σ: δ falls from 1 at σ = 0 to 0 at infinity, because to add
    noise is to process what was released. The fast kernel says where the search starts.
    """
    if has_arrays(epsilon, delta):
        return enclose_arrays(fast.noise_multiplier, _pair_balls.noise_multipliers, noise_multiplier, epsilon, delta)
    eps = within("epsilon", epsilon, 0.0, _LARGEST)
    target = strictly_within_unit("delta", delta)
    return bracket(
        lambda sigma: two_gaussians.shift_divergence(eps, 1 / sigma).delta - arb(target),
        guess(fast.noise_multiplier, epsilon, delta),
    )
