"""Privacy curve of the Gaussian mechanism as proven enclosures: Balle and Wang (ICML 2018), Theorem 8.

With sensitivity 1 and noise multiplier σ: δ(ε) = Φ(1/(2σ) − εσ) − e^ε·Φ(−1/(2σ) − εσ), the case of equal deviations
of ``two_gaussians`` with distance 1/σ, whose balls serve here.

Domain: σ from 1e-50 to 1e50, 0 ≤ ε ≤ 1e50, 0 < δ < 1; floats, ints or Fractions, taken as the exact numbers that they
are. All enclosures are tight (at most 2 ulps), but for a δ given as a Fraction that agrees with a value of the curve to
thousands of digits.
"""

from functools import partial

from flint import arb, fmpq

from canaryproof.kernels import gaussian_mechanism as fast
from canaryproof.kernels.certified import two_gaussians
from canaryproof.kernels.certified._ball import (
    Enclosure,
    Number,
    bracket,
    enclose,
    guess,
    sign,
    strictly_within_unit,
    within,
)

_LARGEST = 1e50


def _arguments(epsilon: Number, noise_multiplier: Number) -> tuple[fmpq, fmpq]:
    """Return ε and the distance 1/σ."""
    eps = within("epsilon", epsilon, 0.0, _LARGEST)
    return eps, 1 / within("noise_multiplier", noise_multiplier, 1 / _LARGEST, _LARGEST)


def delta(epsilon: Number, noise_multiplier: Number) -> Enclosure:
    """Enclose the least δ at which the Gaussian mechanism is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon
        ε in nats, 0 ≤ ε ≤ 1e50.
    noise_multiplier
        Standard deviation σ of the noise per unit of sensitivity.

    Returns
    -------
    Enclosure of δ.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    Balle and Wang (2018), Theorem 8.
    """
    eps, distance = _arguments(epsilon, noise_multiplier)
    return enclose(lambda: two_gaussians.shifted(eps, distance).delta, least=0.0, greatest=1.0)


def log_delta(epsilon: Number, noise_multiplier: Number) -> Enclosure:
    """Enclose the natural log of ``delta``, which doesn't underflow; arguments and errors as there."""
    eps, distance = _arguments(epsilon, noise_multiplier)
    return enclose(lambda: two_gaussians.log_of(two_gaussians.shifted(eps, distance)), greatest=0.0)


def epsilon(delta: Number, noise_multiplier: Number) -> Enclosure:
    """Enclose the least ε ≥ 0 at which the Gaussian mechanism is (ε, δ)-differentially private.

    Parameters
    ----------
    delta
        δ in (0, 1).
    noise_multiplier
        Standard deviation σ of the noise per unit of sensitivity.

    Returns
    -------
    Floats with δ(lo) > delta ≥ δ(hi), both proven by enclosures of δ; lo = hi = 0 where δ(0) ≤ delta is proven.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    The inverse of Balle and Wang (2018), Theorem 8, in ε, in which δ does not increase. The fast kernel says where the
    search starts.
    """
    target = strictly_within_unit("delta", delta)
    _, distance = _arguments(0, noise_multiplier)

    def excess(eps: fmpq) -> arb:
        return two_gaussians.shifted(eps, distance).delta - arb(target)

    if sign(partial(excess, fmpq(0)))[0] < 0:
        return Enclosure(0.0, 0.0, arb(0))
    return bracket(excess, guess(fast.epsilon, delta, noise_multiplier))


def noise_multiplier(epsilon: Number, delta: Number) -> Enclosure:
    """Enclose the least noise multiplier at which the Gaussian mechanism is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon
        ε in nats, 0 ≤ ε ≤ 1e50.
    delta
        δ in (0, 1).

    Returns
    -------
    Floats with δ(ε, lo) > delta ≥ δ(ε, hi), both proven by enclosures of δ.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    The inverse of Balle and Wang (2018), Theorem 8, in σ: δ falls from 1 at σ = 0 to 0 at infinity, because to add
    noise is to process what was released. The fast kernel says where the search starts.
    """
    eps = within("epsilon", epsilon, 0.0, _LARGEST)
    target = strictly_within_unit("delta", delta)
    return bracket(
        lambda sigma: two_gaussians.shifted(eps, 1 / sigma).delta - arb(target),
        guess(fast.noise_multiplier, epsilon, delta),
    )
