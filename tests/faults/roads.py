"""Faults of the other two roads: the proven enclosures and the multiprecision twins."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from flint import arb, fmpq
from mpmath import mp

from canaryproof.kernels.certified import Enclosure
from canaryproof.kernels.certified.two_gaussians import Divergence, Pair
from tests.faults.fault import Fault, Function

_SWAPPED = {"forward": "reverse", "reverse": "forward", "both": "both"}


def _certified(
    topic: str, name: str, description: str, function: str, make: Callable[[Function], Function], *compared: str
) -> Fault:
    """Return a fault that both the fast kernels and the twins contradict."""
    checks = (f"numerics.enclosures.{topic}", *(f"numerics.{name}" for name in compared))
    target = f"canaryproof.kernels.certified.{topic.replace('-', '_')}:{function}"
    return Fault(f"certified.{topic}.{name}", description, target, make, checks)


def _twin(topic: str, name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    target = f"canaryproof.kernels.reference.{topic.replace('-', '_')}:{function}"
    return Fault(f"twin.{topic}.{name}", description, target, make, (f"numerics.enclosures.{topic}",))


def _widened(enclosure: Enclosure) -> Enclosure:
    return dataclasses.replace(enclosure, lo=enclosure.lo - abs(enclosure.lo) * 1e-12)


def _inwards(enclosure: Enclosure) -> Enclosure:
    middle = enclosure.lo + 0.5 * (enclosure.hi - enclosure.lo)
    return dataclasses.replace(enclosure, lo=middle, hi=middle)


def _second_added(divergence: Callable[[fmpq, fmpq], Any]) -> Function:
    def faulty(epsilon: fmpq, distance: fmpq) -> Any:
        found = divergence(epsilon, distance)
        if distance == 0:
            return found
        second = arb(epsilon).exp() * _above(arb(epsilon / distance + distance / 2))
        return found._replace(delta=found.delta + 2 * second)

    return faulty


def _near_root_alone(forward: Function) -> Function:
    def faulty(epsilon: fmpq, pair: Pair) -> Divergence:
        m, s = pair
        excess = arb(epsilon) + arb(s).log()
        square = arb(m * m) + 2 * (s * s - 1) * excess
        if s == 1 or not square > 0:
            found: Divergence = forward(epsilon, pair)
            return found
        near = 2 * (excess - m * m / 2) / (m * s + square.sqrt())
        second = arb(epsilon).exp() * _above(m + s * near)
        return Divergence(_above(near) - second, _above(-near) + second)

    return faulty


def _above(u: arb) -> arb:
    """P(X > u) of a standard normal X."""
    return (u / arb(2).sqrt()).erfc() / 2


FAULTS = (
    _certified(
        "null-cosine",
        "gammas",
        "Γ(d/2) for Γ((d − 1)/2)",
        "_log_peak",
        lambda _: lambda dim: -arb.pi().log() / 2 + 0 * arb(dim),
        "comparison.null-cosine.*",
    ),
    _certified(
        "null-cosine",
        "exponent",
        "(d − 2)/2 for (d − 3)/2 in the density",
        "_log_density",
        lambda f: lambda x, dim: f(x, dim) + arb(1 - x * x).log() / 2 if abs(x) < 1 else f(x, dim),
        "comparison.null-cosine.logpdf",
    ),
    _certified(
        "null-cosine",
        "tail-power",
        "a power of 1 − x² too many in the tail",
        "tail_fraction",
        lambda f: lambda x, dim: f(x, dim) * arb(1 - x * x),
        "null-cosine.sf",
        "null-cosine.logsf",
    ),
    _certified(
        "null-cosine",
        "mirror",
        "the quantile's ends not swapped when mirrored",
        "_mirror",
        lambda _: lambda e: Enclosure(-e.lo, -e.hi, -e.ball),
        "null-cosine.ppf",
        "null-cosine.isf",
    ),
    Fault(
        "certified.gaussian-mechanism.sign",
        "+ e^ε for − e^ε where the deviations are equal",
        "canaryproof.kernels.certified.two_gaussians:shift_divergence",
        _second_added,
        ("numerics.enclosures.gaussian-mechanism", "numerics.comparison.gaussian-mechanism.*"),
    ),
    _certified(
        "gaussian-mechanism",
        "sensitivity",
        "2/σ for 1/σ",
        "_arguments",
        lambda f: lambda epsilon, sigma: (f(epsilon, sigma)[0], 2 * f(epsilon, sigma)[1]),
        "comparison.gaussian-mechanism.delta",
        "comparison.gaussian-mechanism.epsilon",
    ),
    _certified(
        "two-gaussians",
        "direction",
        "forward and reverse swapped",
        "_pairs",
        lambda f: lambda m1, s1, m2, s2, direction: f(m1, s1, m2, s2, _SWAPPED[direction]),
        "comparison.two-gaussians.*",
    ),
    _certified(
        "two-gaussians",
        "one-root",
        "the far root of the privacy loss forgotten",
        "_forward",
        _near_root_alone,
        "comparison.two-gaussians.*",
    ),
    _certified(
        "binomial",
        "confidence",
        "(1 − confidence)/2 for 1 − confidence",
        "_check_arguments",
        lambda f: lambda *a: (*f(*a)[:2], f(*a)[2] / 2),
        "comparison.binomial.*",
    ),
    _certified(
        "binomial",
        "off-by-one",
        "one success more than was counted",
        "_upper",
        lambda upper: lambda s, f, *rest: upper(s + 1, f - 1, *rest) if f > 0 else upper(s, f, *rest),
        "comparison.binomial.*",
    ),
    Fault(
        "certified.ends-inwards",
        "ends at the middle of the ball",
        "canaryproof.kernels.certified._ball:enclose",
        lambda f: lambda *a, **o: _inwards(f(*a, **o)),
        (
            "numerics.enclosures.null-cosine",
            "numerics.enclosures.gaussian-mechanism",
            "numerics.enclosures.two-gaussians",
        ),
    ),
    Fault(
        "certified.wide",
        "an enclosure of many ulps",
        "canaryproof.kernels.certified._ball:enclose",
        lambda f: lambda *a, **o: _widened(f(*a, **o)),
        ("numerics.enclosures.null-cosine",),
    ),
    Fault(
        "certified.bisection",
        "a bisection that ends one float too high",
        "canaryproof.kernels.certified._ball:hull",
        lambda f: lambda low, high: f(high, math.nextafter(high, math.inf)),
        ("numerics.enclosures.null-cosine", "numerics.enclosures.gaussian-mechanism"),
    ),
    _twin(
        "null-cosine",
        "gammas",
        "Γ((d + 1)/2) for Γ((d − 1)/2) below the density",
        "_logpdf",
        lambda f: lambda x, dim: f(x, dim) - mp.log((dim - 1) / 2),
    ),
    _twin(
        "null-cosine", "quantile-sign", "the upper quantile for the lower", "ppf", lambda f: lambda *a, **o: -f(*a, **o)
    ),
    _twin("gaussian-mechanism", "variance", "σ² for σ", "_log_delta", lambda f: lambda e, s: f(e, s * s)),
    _twin(
        "two-gaussians",
        "distance",
        "twice the distance of the means",
        "_directions",
        lambda f: lambda direction, m1, s1, m2, s2: f(direction, 2 * m1 - m2, s1, m2, s2),
    ),
    _twin(
        "two-gaussians",
        "direction",
        "forward and reverse swapped",
        "_directions",
        lambda f: lambda direction, *pair: f(_SWAPPED[direction], *pair),
    ),
    _twin(
        "binomial",
        "sides",
        "one-sided and two-sided limits swapped",
        "_tail",
        lambda f: lambda c, sides: f(c, 3 - sides),
    ),
    _twin(
        "binomial",
        "beta",
        "Beta(a, b + 1) for Beta(a, b)",
        "_log_beta_cdf",
        lambda f: lambda a, b, p, q: f(a, b + 1, p, q),
    ),
    Fault(
        "certified.series-remainder",
        "the remainder of the hypergeometric series is lost",
        "canaryproof.kernels.certified._series:hypergeometric",
        lambda f: lambda b, c, z: arb(f(b, c, z).lower()),
        ("numerics.enclosures.remainders",),
    ),
    Fault(
        "certified.fraction-remainder",
        "one convergent of the continued fraction for both",
        "canaryproof.kernels.certified.null_cosine:tail_fraction",
        lambda f: lambda x, dim: arb(f(x, dim).upper()),
        ("numerics.enclosures.remainders",),
    ),
)
