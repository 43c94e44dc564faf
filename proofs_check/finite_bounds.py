"""Non-asymptotic Theorem 3.3: Chebyshev's bounds at finite d and k, from the exact moments.

In the notation of ``release_moments`` √d·μ̂ = B/√A and d·σ̂² = W/A. Let α = E[A], ω = E[W]; E[B] = 1. Where |A − α| ≤ a
and |B − 1| ≤ b < 1,

    (1 − b)/√(α + a) ≤ B/√A ≤ (1 + b)/√(α − a),

and where |W − ω| ≤ w, (ω − w)/(α + a) ≤ W/A ≤ (ω + w)/(α − a). Whenever these ends lie within t of 1/σ, or of 1,
the probability of being farther off than t is at most Var A/a² + Var B/b², or Var A/a² + Var W/w², by Chebyshev. Any
a, b, w that pass give a proven bound; a search makes it small. All numbers are rational, and all comparisons exact.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import sympy
from scipy import optimize

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K


@cache
def _functions() -> dict[str, tuple[Callable[..., Any], ...]]:
    moments = {name: release_moments.moments(name) for name in "ABW"}
    return {
        name: tuple(sympy.lambdify((D, K, SIGMA), part, "math") for part in parts) for name, parts in moments.items()
    }


def moments_at(name: str, dim: int, count: int, noise_multiplier: Fraction) -> tuple[Fraction, Fraction]:
    """Exact mean and variance of A, B or W at numbers."""
    numbers = (Fraction(dim), Fraction(count), noise_multiplier)
    centre, spread = _functions()[name]
    return Fraction(centre(*numbers)), Fraction(spread(*numbers))


def _checked(dim: int, count: int, noise_multiplier: Fraction, distance: Fraction) -> None:
    if dim < 2 or count < 2:
        raise ValueError("dim and count must be at least 2")
    if not (noise_multiplier > 0 and distance > 0):
        raise ValueError("noise_multiplier and distance must be positive")


def _smallest(bound: Callable[[Fraction], Fraction], greatest: Fraction) -> Fraction:
    """Smallest bound found over (0, greatest), at most 1."""
    if greatest <= 0:
        return Fraction(1)

    def at(share: float) -> float:
        return float(bound(Fraction(share) * greatest))

    optimum = optimize.minimize_scalar(at, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9})
    return min(Fraction(1), bound(Fraction(float(optimum.x)) * greatest))


def mean_deviates(dim: int, count: int, noise_multiplier: Fraction, distance: Fraction) -> Fraction:
    """Proven upper bound, at most 1, on P(|√d·μ̂ − 1/σ| > t), for d, k ≥ 2, σ > 0 and t > 0 (else ValueError).

    Theorem 3.3 of Andrew et al. (arXiv 2302.03098) says that the probability tends to 0.
    """
    _checked(dim, count, noise_multiplier, distance)
    (alpha, var_a), (_, var_b) = (moments_at(name, dim, count, noise_multiplier) for name in "AB")
    high, low = 1 / noise_multiplier + distance, 1 / noise_multiplier - distance

    def bound(b: Fraction) -> Fraction:
        a = alpha - ((1 + b) / high) ** 2
        if low > 0:
            a = min(a, ((1 - b) / low) ** 2 - alpha)
        if not (a > 0 and 0 < b < 1):
            return Fraction(1)
        return var_a / a**2 + var_b / b**2

    # Beyond these b no a > 0 is left; a root that is off by a rounding costs nothing but a little of the bound.
    root = Fraction(math.sqrt(alpha))
    return _smallest(bound, min(high * root - 1, 1 - low * root, Fraction(1)))


def variance_deviates(dim: int, count: int, noise_multiplier: Fraction, distance: Fraction) -> Fraction:
    """Proven upper bound, at most 1, on P(|d·σ̂² − 1| > t); arguments and errors as ``mean_deviates``."""
    _checked(dim, count, noise_multiplier, distance)
    (alpha, var_a), (omega, var_w) = (moments_at(name, dim, count, noise_multiplier) for name in "AW")

    def bound(a: Fraction) -> Fraction:
        w = min((1 + distance) * (alpha - a) - omega, omega - (1 - distance) * (alpha + a))
        if not (a > 0 and w > 0):
            return Fraction(1)
        return var_a / a**2 + var_w / w**2

    greatest = alpha - omega / (1 + distance)
    return _smallest(bound, min(greatest, omega / (1 - distance) - alpha) if distance < 1 else greatest)
