"""Faults of the estimates' enclosures, of the audit and of the files that it reads."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import dataclasses
from collections.abc import Callable

import numpy as np

from canaryproof.kernels.certified import two_gaussians
from canaryproof.verify.audit.canaries.scores import Scores
from tests.faults.fault import Fault, Function

_VERIFY = "canaryproof.verify"


def _enclosure(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    checks = ("estimators.inference.enclosures", "audit.scores", "audit.release")
    return Fault(f"enclosures.{name}", description, f"canaryproof.kernels.certified.estimates:{function}", make, checks)


def _audit(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    inputs = {
        "audit": ("scores",),
        "audit_release": ("release",),
        "_audit": ("release",),
        "null_law": ("scores",),
    }.get(function, ("scores", "release"))
    checks = tuple(f"audit.{given}" for given in inputs)
    module = "inputs" if function == "_moments" else "run_audit"
    return Fault(f"audit.{name}", description, f"{_VERIFY}.audit.answer.{module}:{function}", make, checks)


def _reads(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    target = f"{_VERIFY}.audit.files.reading:{function}"
    return Fault(f"input.{name}", description, target, make, ("audit.files",))


FAULTS = (
    Fault(
        "audit.planned-count",
        "a plan asks for half of the canaries that see a fault",
        f"{_VERIFY}.audit.answer.plan:_count",
        lambda f: lambda *arguments, **options: (f(*arguments, **options) or 0) // 2 or None,
        ("audit.plan",),
    ),
    _enclosure(
        "direction",
        "one direction for the larger of both",
        "fitted_epsilon",
        lambda _: (
            lambda delta, distance, ratio, direction="both": two_gaussians.epsilon(
                delta, 0, 1, distance, ratio, "forward"
            )
        ),
    ),
    _enclosure(
        "ratio",
        "the fitted ratio ignored",
        "threshold_epsilon",
        lambda f: lambda delta, distance, ratio: f(delta, distance, 1.0),
    ),
    _enclosure(
        "clipped", "|μ̂| for max(μ̂, 0)", "pinned_epsilon", lambda f: lambda delta, distance: f(delta, abs(distance))
    ),
    _audit(
        "seed",
        "canaries of another seed",
        "audit_release",
        lambda f: (
            lambda release, canaries, *rest, **options: f(
                release, dataclasses.replace(canaries, seed=canaries.seed + 1), *rest, **options
            )
        ),
    ),
    _audit(
        "last-canary",
        "the last canary not scored",
        "audit_release",
        lambda f: (
            lambda release, canaries, *rest, **options: f(
                release, dataclasses.replace(canaries, count=canaries.count - 1), *rest, **options
            )
        ),
    ),
    _audit(
        "dilution",
        "a release 1% too long",
        "_audit",
        lambda f: (
            lambda *given, **options: (
                lambda found: (
                    dataclasses.replace(found, release_norm=1.01 * found.release_norm) if found.release_norm else found
                )
            )(f(*given, **options))
        ),
    ),
    _audit(
        "null-law",
        "the null law in R^(2d)",
        "null_law",
        lambda f: lambda scores: f(Scores(scores.observed, scores.unobserved, scores.dim and 2 * scores.dim)),
    ),
    _audit(
        "normality",
        "normality of the cosines' squares for that of the cosines",
        "normality",
        lambda f: lambda observed: f(np.square(observed)),
    ),
    _audit(
        "confidence",
        "the default confidence whatever is asked for",
        "audit",
        lambda f: (
            lambda scores, delta, confidence=0.95, **options: dataclasses.replace(
                f(scores, delta, 0.95, **options), confidence=confidence
            )
        ),
    ),
    _audit(
        "unobserved",
        "unobserved cosines ignored where the dimension is known",
        "_moments",
        lambda f: lambda observed, unobserved, dim: f(observed, unobserved if dim is None else None, dim),
    ),
    _reads(
        "swapped",
        "observed and unobserved swapped",
        "read_scores",
        lambda f: (
            lambda path: (lambda s: type(s)(s.unobserved if s.unobserved is not None else s.observed, s.observed))(
                f(path)
            )
        ),
    ),
    _reads(
        "first-line",
        "the first cosine left out, as if it were a header",
        "read_scores",
        lambda f: lambda path: (lambda s: dataclasses.replace(s, observed=s.observed[1:]))(f(path)),
    ),
    _reads(
        "single",
        "a release in float64 read in float32",
        "read_release",
        lambda f: lambda path: f(path).astype(np.float32),
    ),
)
