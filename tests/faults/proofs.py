"""Faults of the exact moments, limits and bounds that the proofs' checks rest on."""

# A fault may ignore what it ought to use.
# ruff: noqa: ARG005

import math
from collections.abc import Callable
from itertools import islice

from scipy import special

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.consistency import Slopes
from canaryproof.proofs_check.sphere_moments import D, K, scaled
from tests.faults.fault import Fault, Function

_PROOFS = "canaryproof.proofs_check"


def _sphere(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    over_indices = function in ("_falling", "_partitions")
    checks = ("ours.moments.*" if over_indices else "theorems.moments.known", "theorems.witness.d12")
    return Fault(f"sphere-moments.{name}", description, f"{_PROOFS}.sphere_moments:{function}", make, checks)


def _release(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    target = f"{_PROOFS}.release_moments:{function}"
    return Fault(f"release-moments.{name}", description, target, make, ("theorems.witness.d40",))


def _regime(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    checks = ("theorems.limits.known", "final.theorem-3.3.target-*", "final.theorem-3.3.*-converges")
    return Fault(f"regime.{name}", description, f"{_PROOFS}.limits:{function}", make, checks)


def _bound(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    checks = ("theorems.bounds.*", "theorems.convergence.release")
    return Fault(f"finite-bounds.{name}", description, f"{_PROOFS}.finite_bounds:{function}", make, checks)


# Of the checks that call each function, those whose verdicts depend on it.
_DECIDING = {
    "slopes": ("ours.consistency.difference-quotients", "theorems.convergence.estimators", "estimators.fitted-bias"),
    "Slopes.fitted_bias": ("theorems.convergence.estimators", "estimators.fitted-bias"),
    "shift": ("theorems.convergence.too-many-canaries",),
    "best_count": ("theorems.best-count.plain",),
}


def _consistency(name: str, description: str, function: str, make: Callable[[Function], Function]) -> Fault:
    checks = _DECIDING[function]
    return Fault(f"consistency.{name}", description, f"{_PROOFS}.consistency:{function}", make, checks)


# The pairings of fewer vectors, of which those of more are made, are faulty too.
def _ends_never_paired(pairings: Function) -> Function:
    # The last (n − 1)-th of all pairings of n vectors has the first with the last: (n − 2)(n − 4)⋯2 remain.
    return lambda items: islice(pairings(items), math.prod(range(2, len(items) - 1, 2)))


def _one_of_six_left_out(pairings: Function) -> Function:
    return lambda items: islice(pairings(items), 14 if len(items) == 6 else None)


def _without_tail(slopes: Slopes) -> Slopes:
    tail = float(special.ndtr(slopes.forward / slopes.mean))
    return Slopes(slopes.epsilon, tail * slopes.mean, tail * slopes.forward, tail * slopes.reverse)


FAULTS = (
    _sphere(
        "rising",
        "d(d + 1)⋯ for d(d + 2)⋯",
        "_rising",
        lambda f: lambda pairs: math.prod((f(1) + step for step in range(pairs)), start=f(0)),
    ),
    _sphere("pairings", "the first vector never paired with the last of several", "_pairings", _ends_never_paired),
    _sphere("sixth", "one pairing of six vectors left out", "_pairings", _one_of_six_left_out),
    _sphere(
        "with-repetition", "k^b choices of b different canaries", "_falling", lambda f: lambda blocks: f(1) ** blocks
    ),
    _sphere(
        "no-coincidences",
        "all coincidences of indices left out but that of two",
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
    _bound("one-tail", "half of the bound, as for one tail", "mean_deviates", lambda f: lambda *a: f(*a) / 2),
    _bound(
        "deviation",
        "twice the distance, as if it were the deviation's",
        "variance_deviates",
        lambda f: lambda dim, count, sigma, distance: f(dim, count, sigma, 2 * distance),
    ),
    _bound("dimension", "the bound at d² for d", "mean_deviates", lambda f: lambda dim, *rest: f(dim**2, *rest)),
    _consistency(
        "sign",
        "the slopes of both directions swapped",
        "slopes",
        lambda f: lambda *a: (lambda s: type(s)(s.epsilon, s.mean, s.reverse, s.forward))(f(*a)),
    ),
    _consistency(
        "bias",
        "1/√k for 1/√(πk)",
        "Slopes.fitted_bias",
        lambda f: lambda s, count: math.sqrt(math.pi) * f(s, count),
    ),
    _consistency(
        "tail",
        "φ(z) for φ(z)/Φ(z) in the slopes",
        "slopes",
        lambda f: lambda *a: _without_tail(f(*a)),
    ),
    _consistency(
        "shift",
        "k/d for k/(2d)",
        "shift",
        lambda f: lambda dim, count, sigma: 2.0 * f(dim, count, sigma),
    ),
    _consistency(
        "shift-sign",
        "the mean displaced the wrong way",
        "shift",
        lambda f: lambda *a: -f(*a),
    ),
    _consistency(
        "growth",
        "4d²σ⁶ for 2d²σ⁶ in the best number of canaries",
        "best_count",
        lambda f: lambda dim, sigma: f(math.sqrt(2.0) * dim, sigma),
    ),
)
