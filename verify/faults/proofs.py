"""Faults of the exact moments, limits and bounds that the proofs' checks rest on."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.sphere_moments import D, K, scaled
from canaryproof.verify.faults.fault import Fault, Function

_PROOFS = "canaryproof.proofs_check"


def _sphere(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    checks = ("theorems.moments.known", "theorems.witness.d12")
    return Fault(f"sphere-moments.{name}", description, f"{_PROOFS}.sphere_moments:{function}", make, checks)


def _release(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    target = f"{_PROOFS}.release_moments:{function}"
    return Fault(f"release-moments.{name}", description, target, make, ("theorems.witness.d40",))


def _regime(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    checks = ("theorems.limits.known", "final.theorem-3.3.norm-*")
    return Fault(f"regime.{name}", description, f"{_PROOFS}.regime:{function}", make, checks)


def _bound(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    checks = ("theorems.convergence.release", "theorems.bounds.*")
    return Fault(f"finite-bounds.{name}", description, f"{_PROOFS}.finite_bounds:{function}", make, checks)


def _consistency(name: str, description: str, function: str, make: Callable[[Function], Function], *more: str) -> Fault:
    checks = ("ours.consistency.*", *more)
    return Fault(f"consistency.{name}", description, f"{_PROOFS}.consistency:{function}", make, checks)


def _last_left_out(pairings: Function) -> Function:
    def faulty(items: tuple[str, ...]) -> Any:
        found = list(pairings(items))
        return iter(found[:-1] if len(found) > 1 else found)

    return faulty


FAULTS = (
    _sphere(
        "rising",
        "d(d + 1)⋯ for d(d + 2)⋯",
        "_rising",
        lambda f: lambda pairs: f(pairs) if pairs < 2 else f(pairs) / (f(2) / f(1)) * (f(2) / f(1) - 1),
    ),
    _sphere("pairings", "one pairing left out", "_pairings", _last_left_out),
    _sphere(
        "sixth",
        "one pairing of six vectors left out",
        "_pairings",
        lambda f: lambda items: (p for p, _ in zip(f(items), range(14), strict=False)),
    ),
    _sphere(
        "with-repetition", "k^b choices of b different canaries", "_falling", lambda f: lambda blocks: f(1) ** blocks
    ),
    _sphere(
        "no-coincidences",
        "equal indices left out",
        "_partitions",
        lambda f: lambda items: (blocks for blocks in f(items) if len(blocks) >= len(items) - 1),
    ),
    _release(
        "second-moment",
        "the second moment for the variance",
        "central_moment",
        lambda f: lambda name, order: release_moments.raw_moment(name, order),
    ),
    _release("norm", "‖ρ‖² not divided by d", "_norm_square", lambda f: lambda a, b: scaled(D, f(a, b))),
    _release("mean", "1/(k − 1) for 1/k", "_mean_product", lambda f: lambda i, a: scaled(K / (K - 1), f(i, a))),
    _regime(
        "wrong-way",
        "the limit for d = o(k)",
        "limit",
        lambda f: lambda expression: f(expression.subs({D: K, K: D}, simultaneous=True)),
    ),
    _regime("always", "a limit of 0 wherever none is shown", "limit", lambda f: lambda expression: f(expression) or 0),
    _bound("one-tail", "a tenth of the bound", "mean_deviates", lambda f: lambda *a: f(*a) / 10),
    _bound(
        "no-fourth-moment",
        "the bound at twice the distance",
        "variance_deviates",
        lambda f: lambda dim, count, sigma, distance: f(dim, count, sigma, 2 * distance),
    ),
    _bound(
        "dimension",
        "the bound at d² for d",
        "mean_deviates",
        lambda f: lambda dim, count, sigma, distance: f(dim, count, sigma, Fraction(3) * distance),
    ),
    _consistency(
        "sign",
        "the slopes of both directions swapped",
        "slopes",
        lambda f: lambda *a: (lambda s: type(s)(s.epsilon, s.mean, s.reverse, s.forward))(f(*a)),
        "theorems.convergence.estimators",
    ),
    _consistency(
        "bias",
        "1/√k for 1/√(πk)",
        "Slopes.fitted_bias",
        lambda f: lambda s, count: math.sqrt(math.pi) * f(s, count),
        "gaussian.fitted-bias",
    ),
    _consistency(
        "mean",
        "the slope without its normal tail",
        "slopes",
        lambda f: lambda *a: (lambda s: type(s)(s.epsilon, 0.9 * s.mean, s.forward, s.reverse))(f(*a)),
    ),
    _consistency(
        "shift",
        "k/d for k/(2d)",
        "shift",
        lambda f: lambda dim, count, sigma: 2.0 * f(dim, count, sigma),
        "theorems.convergence.too-many-canaries",
    ),
    _consistency(
        "shift-sign",
        "the mean displaced the wrong way",
        "shift",
        lambda f: lambda *a: -f(*a),
        "theorems.convergence.too-many-canaries",
    ),
    _consistency(
        "growth",
        "4d²σ⁶ for 2d²σ⁶ in the best number of canaries",
        "best_count",
        lambda f: lambda dim, sigma: f(math.sqrt(2.0) * dim, sigma),
        "theorems.best-count.plain",
    ),
)
