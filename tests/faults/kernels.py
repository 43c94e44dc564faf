"""Faults of the fast kernels."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.two_gaussians import SMALLEST_DELTA
from tests.faults.fault import Fault, Function

_KERNELS = "canaryproof.kernels"


def _cosine(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    checks = (f"numerics.null-cosine.{function}", f"numerics.comparison.null-cosine.{function}")
    return Fault(f"null-cosine.{name}", description, f"{_KERNELS}.null_cosine:{function}", make, checks)


def _mechanism(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    topic = f"gaussian-mechanism.{function.replace('_', '-')}"
    checks = (f"numerics.{topic}", f"numerics.comparison.{topic}")
    return Fault(f"gaussian-mechanism.{name}", description, f"{_KERNELS}.gaussian_mechanism:{function}", make, checks)


def _pair(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    topic = f"two-gaussians.{function.replace('_', '-')}"
    checks = (f"numerics.{topic}.*", f"numerics.comparison.{topic}", f"numerics.paths.{topic}*")
    return Fault(f"two-gaussians.{name}", description, f"{_KERNELS}.two_gaussians:{function}", make, checks)


def _binomial(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    checks = (
        f"numerics.binomial.{function}.*",
        f"numerics.comparison.binomial.{function}",
        f"numerics.paths.binomial.{function}.*",
    )
    return Fault(f"binomial.{name}", description, f"{_KERNELS}.binomial:{function}", make, checks)


def _log_density(x: Any, dim: Any, numerator: Any, denominator: Any, power: Any) -> Any:
    """Log of Γ(numerator)/(Γ(denominator)√π)·(1 − x²)^power."""
    scale = special.gammaln(numerator) - special.gammaln(denominator) - 0.5 * math.log(math.pi)
    with np.errstate(all="ignore"):
        return scale + power * np.log1p(-np.square(x)) + 0.0 * np.asarray(dim)


def _normal_difference(epsilon: Any, sigma: Any, sign: float) -> Any:
    """Φ(1/(2σ) − εσ) + sign·e^ε·Φ(−1/(2σ) − εσ)."""
    half, away = 0.5 / np.asarray(sigma), np.multiply(epsilon, sigma)
    with np.errstate(all="ignore"):
        return special.ndtr(half - away) + sign * np.exp(epsilon + special.log_ndtr(-half - away))


def _without_log_ratio(log_delta: Function) -> Function:
    def faulty(e: Any, m1: Any, s1: Any, m2: Any, s2: Any, direction: str = "both") -> Any:
        # δ = E(1 − e^(ε − Z))⁺ depends on ε − Z alone. In the reverse direction the loss Z has log(σ₂/σ₁).
        signs = {"forward": [-1.0], "reverse": [1.0], "both": [-1.0, 1.0]}[direction]
        thresholds = (np.maximum(e + sign * np.log(np.divide(s1, s2)), 0.0) for sign in signs)
        ways = ("forward" if sign < 0.0 else "reverse" for sign in signs)
        found = [log_delta(t, m1, s1, m2, s2, way) for t, way in zip(thresholds, ways, strict=True)]
        return np.maximum(found[0], found[-1])

    return faulty


FAULTS = (
    _cosine(
        "gamma",
        "Γ(d/2) for Γ((d − 1)/2) below the density",
        "pdf",
        lambda _: lambda x, dim: np.exp(_log_density(x, dim, dim / 2, dim / 2, (dim - 3) / 2)),
    ),
    _cosine(
        "exponent",
        "(d − 2)/2 for (d − 3)/2 in the density",
        "pdf",
        lambda _: lambda x, dim: np.exp(_log_density(x, dim, dim / 2, (dim - 1) / 2, (dim - 2) / 2)),
    ),
    _cosine(
        "log-gammas",
        "log density by subtracting two log-gammas, which loses digits at large d",
        "logpdf",
        lambda _: lambda x, dim: _log_density(x, dim, dim / 2, (dim - 1) / 2, (dim - 3) / 2),
    ),
    _cosine(
        "sphere",
        "d − 1 for d: the sphere's dimension for the space's",
        "cdf",
        lambda f: lambda x, dim: f(x, np.maximum(dim - 1, 2.0)),
    ),
    _cosine("two-sided", "P(|cosine| > x) for P(cosine > x)", "sf", lambda f: lambda x, dim: 2.0 * f(np.abs(x), dim)),
    _cosine("wrong-tail", "upper for lower tail", "logcdf", lambda f: lambda x, dim: f(-np.asarray(x), dim)),
    _cosine(
        "normal",
        "the normal limit for the exact law",
        "logsf",
        lambda _: lambda x, dim: special.log_ndtr(-np.multiply(x, np.sqrt(dim))),
    ),
    _cosine(
        "no-root",
        "N(0, 1/d²) for N(0, 1/d) in a normal limit",
        "sf",
        lambda _: lambda x, dim: special.ndtr(-np.multiply(x, dim)),
    ),
    _cosine("float32", "log tail in float32", "logcdf", lambda f: lambda x, dim: np.float64(np.float32(f(x, dim)))),
    _cosine(
        "underflow",
        "log of a tail that has underflowed",
        "logsf",
        lambda f: lambda x, dim: np.log(np.maximum(np.exp(f(x, dim)), 1e-308)),
    ),
    _cosine("quantile-sign", "the upper quantile for the lower", "ppf", lambda f: lambda q, dim: -f(q, dim)),
    _cosine(
        "quantile-truncated",
        "quantiles cut at 8 deviations",
        "isf",
        lambda f: lambda q, dim: np.clip(f(q, dim), -8.0 / np.sqrt(dim), 8.0 / np.sqrt(dim)),
    ),
    _mechanism("sign", "+ e^ε for − e^ε", "delta", lambda _: lambda e, s: _normal_difference(e, s, 1.0)),
    _mechanism(
        "one-term",
        "tail of the privacy loss, without the second term",
        "delta",
        lambda _: lambda e, s: _normal_difference(e, s, 0.0),
    ),
    _mechanism(
        "truncated",
        "the plain difference of two normal tails, cut at 0 where it is rounding",
        "delta",
        lambda _: lambda e, s: np.maximum(_normal_difference(e, s, -1.0), 0.0),
    ),
    _mechanism(
        "delta-for-log", "δ in place of log δ", "log_delta", lambda _: lambda e, s: gaussian_mechanism.delta(e, s)
    ),
    _mechanism(
        "log-underflow",
        "log of a δ that has underflowed",
        "log_delta",
        lambda f: lambda e, s: np.maximum(f(e, s), -745.0),
    ),
    _mechanism("base-2", "bits for nats", "epsilon", lambda f: lambda d, s: f(d, s) / math.log(2.0)),
    _mechanism("variance", "σ² for σ", "epsilon", lambda f: lambda d, s: f(d, np.clip(np.square(s), 1e-14, 1e50))),
    _mechanism(
        "half-delta",
        "δ/2 for δ, as if two directions shared it",
        "epsilon",
        lambda f: lambda d, s: f(np.maximum(0.5 * np.asarray(d), SMALLEST_DELTA), s),
    ),
    _mechanism(
        "tail-inverse",
        "ε by the tail of the privacy loss alone",
        "epsilon",
        lambda _: lambda d, s: np.maximum(0.5 / np.square(s) - special.ndtri(d) / s, 0.0),
    ),
    _mechanism(
        "replacement",
        "sensitivity 2 for 1",
        "epsilon",
        lambda f: lambda d, s: f(d, np.maximum(0.5 * np.asarray(s), 1e-14)),
    ),
    _mechanism(
        "classical",
        "the classical calibration √(2 log(1.25/δ))/ε",
        "noise_multiplier",
        lambda _: lambda e, d: np.sqrt(2.0 * np.log(1.25 / np.asarray(d))) / np.maximum(e, 1e-30),
    ),
    _mechanism(
        "float32", "calibration in float32", "noise_multiplier", lambda f: lambda e, d: np.float64(np.float32(f(e, d)))
    ),
    _pair(
        "direction",
        "forward and reverse swapped",
        "epsilon",
        lambda f: (
            lambda d, m1, s1, m2, s2, direction="both": f(
                d, m1, s1, m2, s2, {"forward": "reverse", "reverse": "forward"}.get(direction, direction)
            )
        ),
    ),
    _pair(
        "smaller",
        "the smaller of both directions",
        "epsilon",
        lambda f: (
            lambda d, m1, s1, m2, s2, direction="both": (
                f(d, m1, s1, m2, s2, direction)
                if direction != "both"
                else np.minimum(f(d, m1, s1, m2, s2, "forward"), f(d, m1, s1, m2, s2, "reverse"))
            )
        ),
    ),
    _pair(
        "variance",
        "variances for deviations",
        "epsilon",
        lambda f: (
            lambda d, m1, s1, m2, s2, *rest, **options: f(d, m1, np.square(s1), m2, np.square(s2), *rest, **options)
        ),
    ),
    _pair(
        "equal-variances",
        "the first deviation for both",
        "epsilon",
        lambda f: lambda d, m1, s1, m2, s2, *rest, **options: f(d, m1, s1, m2, s1, *rest, **options),
    ),
    _pair(
        "no-log-ratio",
        "log(σ₁/σ₂) left out of the privacy loss",
        "log_delta",
        _without_log_ratio,
    ),
    _pair(
        "one-direction",
        "forward where the larger of both is asked for",
        "log_delta",
        lambda f: (
            lambda e, m1, s1, m2, s2, direction="both": f(
                e, m1, s1, m2, s2, "forward" if direction == "both" else direction
            )
        ),
    ),
    _binomial(
        "two-sided",
        "two-sided for one-sided limits",
        "lower",
        lambda f: lambda s, n, c=0.95, *rest, **options: f(s, n, 0.5 + 0.5 * np.asarray(c), *rest, **options),
    ),
    _binomial(
        "off-by-one",
        "one success more than was counted",
        "upper",
        lambda f: lambda s, n, *rest, **options: f(np.minimum(np.add(s, 1), n), n, *rest, **options),
    ),
    _binomial(
        "misses",
        "misses counted for hits",
        "lower",
        lambda f: lambda s, n, *rest, **options: f(np.subtract(n, s), n, *rest, **options),
    ),
    _binomial(
        "one-sided",
        "one-sided limits for two-sided",
        "interval",
        lambda f: (
            lambda s, n, c=0.95, *rest, **options: f(
                s, n, np.maximum(2.0 * np.asarray(c) - 1.0, 1e-6), *rest, **options
            )
        ),
    ),
    _binomial(
        "normal",
        "the normal approximation for the exact limit",
        "upper",
        lambda _: (
            lambda s, n, c=0.95, method="": np.minimum(
                s / n - special.ndtri(1.0 - c) * np.sqrt(np.multiply(s, np.subtract(n, s)) / n**3), 1.0
            )
        ),
    ),
    _binomial(
        "prior",
        "the uniform prior for Jeffreys'",
        "lower",
        lambda f: (
            lambda s, n, c=0.95, method="clopper-pearson": (
                f(s, n, c, method)
                if method != "jeffreys"
                else np.where(np.equal(s, 0), 0.0, special.betaincinv(s + 1.0, n - s + 1.0, 1.0 - np.asarray(c)))
            )
        ),
    ),
)
