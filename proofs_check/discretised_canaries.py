"""How far 32-bit uniforms, float32 and rounding move Algorithm 1's estimates: ``discretised_canaries.md`` in numbers.

Every bound is a root mean square over the coupling of that text, section by section: ``coordinate`` is section 2,
``canary`` section 3, ``moments`` section 4, ``estimates`` section 5. What is infinite or a limit is summed in ball
arithmetic; the rest are sums and products of some fifty positive floats, whose rounding is allowed for at the end.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import sympy
from flint import arb, fmpq

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.certified import at_precision, two_gaussians
from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K
from canaryproof.verify.papers.check.results import Check, Context, Outcome, Subject, Verdict

_CELLS = 2048  # summed one by one, from the outermost on
_PRECISION = 192
_FOURTH = 3.0**0.25  # the fourth root of E X⁴
_UNIT = 2.0**-53
_ROUNDING = 1.0 + 1e-12


@dataclass(frozen=True)
class Source:
    """The words and quantiles that canaries are made of; the defaults are the kernel's."""

    bits: int = 32  # b ≥ 3 of a word: 2^(b − 1) equally likely values
    quantile_error: float = 4.6e-7  # largest relative error κ of a value
    rounding: float = 2.0**-24  # largest relative error u by which a coordinate of ``vector(j)`` is rounded


@dataclass(frozen=True)
class Coordinate:
    """Bounds on a coordinate's error e = x′ − x."""

    square: float  # of (E e²)^(1/2)
    fourth: float  # of (E e⁴)^(1/4)
    scaled: float  # of (E e²x²)^(1/2)
    variance: float  # of |E x′² − 1|


def _density(x: arb) -> arb:
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def _cells(bits: int) -> tuple[arb, arb, arb, arb]:
    """Bounds on E(q − X)², E(q − X)⁴, E(q − X)²X² and |E q² − 1|, q the quantile at the centre of X's cell."""
    width, half = fmpq(1, 2 ** (bits - 1)), 2 ** (bits - 2)
    cells = min(half, _CELLS)
    root, h = arb(2).sqrt(), arb(width)

    def quantile(outer: fmpq) -> arb:
        return root * (arb(2) * outer).erfcinv()

    square, fourth, scaled, lost = arb(0), arb(0), arb(0), arb(0)
    # xⁿφ(x) at the cell's outer end; the outermost cell's lies at infinity.
    outer = [arb(0)] * 4
    for i in range(cells):
        q, t = quantile(width * (2 * i + 1) / 2), quantile(width * (i + 1))
        inner = [_density(t) * t**n for n in range(4)]
        first, second, third, last = (near - far for near, far in zip(inner, outer, strict=True))
        # Integrals of xⁿφ over the cell, by parts.
        m2 = h + second
        m3, m4 = third + 2 * first, last + 3 * m2
        square += m2 - 2 * q * first + q**2 * h
        fourth += m4 - 4 * q * m3 + 6 * q**2 * m2 - 4 * q**3 * first + q**4 * h
        scaled += m4 - 2 * q * m3 + q**2 * m2
        lost += m2 - q**2 * h
        outer = inner
    if cells < half:
        # Section 2: the cells farther in, by the concavity of the density as a function of the probability.
        edge = quantile(width * cells)
        beyond = h * arb.pi() / 8 / (cells - 1)
        square += beyond
        fourth += h * (arb.pi() / 8) ** 2 / (3 * (cells - 1) ** 3)
        scaled += edge**2 * beyond
        lost += h * (1 + edge**2) * arb.pi() / 24 / (cells - 1)
    return 2 * square, 2 * fourth, 2 * scaled, 2 * lost


@cache
def coordinate(source: Source) -> Coordinate:
    """Bound a coordinate's error, of canaries and noise alike."""
    ends = at_precision(_PRECISION, lambda: [float(ball.upper()) for ball in _cells(source.bits)])
    square, fourth, scaled, lost = ends
    kappa = source.quantile_error
    return Coordinate(
        (1.0 + kappa) * math.sqrt(square) + kappa,
        (1.0 + kappa) * fourth**0.25 + kappa * _FOURTH,
        (1.0 + kappa) * math.sqrt(scaled) + kappa * _FOURTH**2,
        lost + (2.0 * kappa + kappa**2) * (1.0 + lost),
    )


def canary(dim: int, source: Source) -> tuple[float, float]:
    """Bound (E‖c′ − c‖²)^(1/2) and (E‖c′ − c‖⁴)^(1/4) of a canary, for dim ≥ 7."""
    if dim < 7:
        raise ValueError("dim must be at least 7")
    e, d = coordinate(source), float(dim)
    # E 1/χ² and E 1/χ⁴ with d − 1 or d − 2 degrees of freedom.
    second = 4.0 * d * e.square**2 / (d - 3.0)
    fourth = 16.0 * d * (e.fourth**4 / ((d - 3.0) * (d - 5.0)) + (d - 1.0) * e.square**4 / ((d - 4.0) * (d - 6.0)))
    return math.sqrt(second), fourth**0.25


@dataclass(frozen=True)
class MomentErrors:
    """Bounds on the root mean squares of A′ − A, B′ − B and T′ − T, in the notation of ``release_moments``."""

    a: float
    b: float
    t: float


def moments(dim: int, count: int, noise_multiplier: float, source: Source) -> MomentErrors:
    """Bound how far the release's moments are moved; a ValueError for d below 7."""
    e, (eta, eta4) = coordinate(source), canary(dim, source)
    d, k, sigma, u = float(dim), float(count), noise_multiplier, source.rounding
    root_d, root_k = math.sqrt(d), math.sqrt(k)
    own = 2.0 * math.sqrt(2.0) * k * eta / root_d  # ‖S′‖² − ‖S‖²
    rounded = k * u * (1.0 + math.sqrt(2.0 / d))  # ⟨S′, R⟩
    crossed = root_k * (eta + e.square)  # ⟨S′, Z′⟩ − ⟨S, Z⟩
    noise = e.variance + (2.0 * e.scaled + e.fourth**2) / root_d  # (‖Z′‖² − ‖Z‖²)/d
    b = (own + rounded + sigma * crossed) / k
    a = (own + 2.0 * rounded + (k * u) ** 2 + 2.0 * sigma * crossed) / d
    a += 2.0 * sigma * root_k * u * math.sqrt(1.0 + e.variance) / d + sigma**2 * noise
    # Fourth roots of fourth moments: z = ⟨c, Z⟩ and its error, P = ⟨c₁, c₂⟩ and its error.
    spread = (3.0 / (d + 2.0)) ** 0.25 + eta4
    dzz = math.sqrt(3.0) * eta + math.sqrt(3.0 * e.square**2 + e.scaled**2 * spread**4)
    dz = _FOURTH * eta4 + (3.0 * e.square**4 + (e.fourth * spread) ** 4) ** 0.25
    p = (3.0 / (d * (d + 2.0))) ** 0.25
    dp = 2.0 * p * eta4 + eta4**2
    dpp = dp * (2.0 * p + dp)
    alpha = (3.0 * (k / d) ** 2 + k * (p + dp) ** 4) ** 0.25
    s = u * (1.0 + (3.0 * (k / d) ** 2 + k / d) ** 0.25)
    t = 2.0 * own / k + 2.0 * sigma * crossed / k
    t += sigma**2 * ((2.0 * dzz + dz**2) / root_k + noise)
    t += 2.0 * sigma * (crossed / d + dp * (_FOURTH + dz) + p * dz)
    t += own / d + math.sqrt(2.0) * (root_k + 1.0) * dpp
    t += 2.0 * s * (1.0 + alpha + sigma * (_FOURTH + dz)) + s**2
    return MomentErrors(a * _ROUNDING, b * _ROUNDING, t * _ROUNDING)


@dataclass(frozen=True)
class Estimates:
    """How far √d·μ̂ and √d·σ̂ are moved, but with the probability that was asked for."""

    mean: float
    deviation: float


def estimates(
    dim: int, count: int, noise_multiplier: float, probability: float, seen: tuple[float, float], source: Source
) -> Estimates:
    """Bound how far the two estimates are moved, but with ``probability``; a ValueError for d below 7.

    ``seen`` are √d·μ̂ ≥ 0 and √d·σ̂ > 0 of the run. Infinite where the norm of the release is not bounded away from zero.
    """
    errors = moments(dim, count, noise_multiplier, source)
    # Chebyshev's inequality four times: for A, and for the errors of A, B and T.
    times = math.sqrt(4.0 / probability)
    a, b, t = times * errors.a, times * errors.b, times * errors.t
    numbers = {D: dim, K: count, SIGMA: sympy.Rational(Fraction(noise_multiplier))}
    centre, variance = (float(expression.subs(numbers)) for expression in release_moments.moments("A"))
    least, greatest = (centre + way * times * math.sqrt(variance) for way in (-1.0, 1.0))
    if least <= 0.0:
        return Estimates(math.inf, math.inf)
    mean, deviation = seen
    moved_mean = b / math.sqrt(least) + mean * a / least
    moved_variance = (t + b * (2.0 * mean * math.sqrt(greatest + a) + b)) / least + deviation**2 * a / least
    moved_deviation = moved_variance / (deviation + math.sqrt(max(0.0, deviation**2 - moved_variance)))
    # Sums of dim coordinates in a cosine, and of count canaries in a coordinate of the release.
    floats = math.sqrt(dim) * (dim / 2048 + 40) * _UNIT
    terms = 2.0 * count + math.sqrt(dim * (greatest + a))
    floats += 2.0 * (dim / 8192 + count + 17) * _UNIT * terms / math.sqrt(least)
    return Estimates((moved_mean + floats) * _ROUNDING, (moved_deviation + floats) * _ROUNDING)


def epsilon(delta: float, seen: tuple[float, float], moved: Estimates) -> float:
    """Bound how far ε̂ is moved if the estimates √d·μ̂ and √d·σ̂ are, by enclosures at the corners.

    ε rises with the mean and on both sides of a deviation of 1, so that no point between the corners has a larger one,
    and one with deviation 1 the smallest.
    """
    mean, deviation = seen
    means = [mean - moved.mean, mean + moved.mean]
    deviations = [deviation - moved.deviation, deviation + moved.deviation]
    if deviations[0] < 1.0 < deviations[1]:
        deviations.append(1.0)
    at = two_gaussians.epsilon(delta, np.repeat(means, len(deviations)), np.tile(deviations, 2), 0.0, 1.0)
    there = two_gaussians.epsilon(delta, mean, deviation, 0.0, 1.0)
    return float(max((at.hi - there.lo).max(), (there.hi - at.lo).max())) * _ROUNDING


_DIM, _COUNT, _DELTA, _PROBABILITY = 10**6, 1000, 1e-6, 0.01
# Section 6, by ε: bounds on how far √d·μ̂, √d·σ̂, and ε̂ with the variance known and estimated are moved.
TABLE = {
    1: (1.6e-5, 4.8e-5, 7.3e-5, 0.0011),
    3: (2.6e-5, 6.5e-5, 0.00013, 0.0018),
    10: (5.2e-5, 0.00013, 0.00034, 0.0053),
}


def bounds(true: float, source: Source) -> tuple[float, float, float, float]:
    """Bound what a row of ``TABLE`` says, at the estimates' expected values."""
    sigma = float(gaussian_mechanism.noise_multiplier(true, _DELTA))
    seen = 1.0 / math.sqrt(sigma**2 + _COUNT / _DIM), 1.0
    moved = estimates(_DIM, _COUNT, sigma, _PROBABILITY, seen, source)
    known = Estimates(moved.mean, 0.0)
    return moved.mean, moved.deviation, epsilon(_DELTA, seen, known), epsilon(_DELTA, seen, moved)


def judge(_: Context, source: Source | None = None) -> Outcome:
    """Judge ``TABLE``."""
    computed = {true: bounds(true, source or Source()) for true in TABLE}
    holds = all(bound <= stated for true in TABLE for bound, stated in zip(computed[true], TABLE[true], strict=True))
    finding = "; ".join(
        f"ε = {true}: {known:.2g} with the variance known, {estimated:.2g} with it estimated"
        for true, (_, _, known, estimated) in computed.items()
    )
    names = ("mean", "deviation", "epsilon_variance_known", "epsilon_variance_estimated")
    rows = [{"epsilon": true, **dict(zip(names, row, strict=True))} for true, row in computed.items()]
    evidence = {"dim": _DIM, "count": _COUNT, "delta": _DELTA, "probability": _PROBABILITY, "rows": rows}
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence)


CHECKS = (
    Check(
        "algorithm1.discreteness",
        Subject.IMPLEMENTATION,
        "proofs_check.discretised_canaries",
        "32-bit words, float32 quantiles and rounded vectors move ε̂ by less than 7.3e-05, 0.00013 and 0.00034 at "
        "ε = 1, 3 and 10 with the variance known, and by less than 0.0011, 0.0018 and 0.0053 with it estimated, with "
        "probability 0.99 at least (d = 10⁶, k = 1000, δ = 1e-6)",
        judge,
    ),
)
