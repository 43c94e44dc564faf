"""Exact results of the proofs by another road: known moments, and Theorem 3.3's bounds found plainly on a grid."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from sympy import Expr

from canaryproof.proofs_check import consistency, finite_bounds, regime, release_moments, sphere_moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, Z
from canaryproof.verify.results import Check, Context, Outcome, Subject, Verdict

_POINTS = 400_001
# Half the highest order of the moments.
_ORDERS = 4
# The grid's own resolution, and that of the search.
_TOLERANCE = 1e-6
SETTINGS = (
    (100, 10, 1.0, 0.5),
    (900, 30, 0.5, 0.25),
    (10**6, 1000, 4.0, 0.125),
    (10**4, 2000, 2.0, 0.75),
)


def _number(name: str, dim: int, count: int, sigma: float) -> tuple[float, float]:
    at = {D: dim, K: count, SIGMA: Fraction(sigma)}
    centre, spread = (float(part.subs(at)) for part in release_moments.moments(name))
    return centre, spread


def _least_mean(dim: int, count: int, sigma: float, distance: float) -> float:
    """Least Var A/a² + Var B/b² such that |A − α| ≤ a and |B − 1| ≤ b leave B/√A within the distance of 1/σ."""
    (alpha, var_a), (_, var_b) = (_number(name, dim, count, sigma) for name in "AB")
    b = np.linspace(0.0, 1.0, _POINTS)[1:-1]
    high, low = 1.0 / sigma + distance, 1.0 / sigma - distance
    a = alpha - ((1.0 + b) / high) ** 2
    if low > 0.0:
        a = np.minimum(a, ((1.0 - b) / low) ** 2 - alpha)
    return _least(var_a, a, var_b, b)


def _least_variance(dim: int, count: int, sigma: float, distance: float) -> float:
    """Least Var A/a² + Var W/w² such that |A − α| ≤ a and |W − ω| ≤ w leave W/A within the distance of 1."""
    (alpha, var_a), (omega, var_w) = (_number(name, dim, count, sigma) for name in "AW")
    a = np.linspace(0.0, alpha, _POINTS)[1:-1]
    w = np.minimum((1.0 + distance) * (alpha - a) - omega, omega - (1.0 - distance) * (alpha + a))
    return _least(var_a, a, var_w, w)


def _least(var_a: float, a: Any, other: float, b: Any) -> float:
    possible = (a > 0.0) & (b > 0.0)
    return float(np.min(var_a / a[possible] ** 2 + other / b[possible] ** 2, initial=1.0))


def _judge(_: Context) -> Outcome:
    rows: list[dict[str, Any]] = []
    for setting in SETTINGS:
        dim, count, sigma, distance = setting
        exact = dim, count, Fraction(sigma), Fraction(distance)
        for name, found, plain in (
            ("mean", finite_bounds.mean_deviates(*exact), _least_mean(*setting)),
            ("variance", finite_bounds.variance_deviates(*exact), _least_variance(*setting)),
        ):
            rows.append({"bound": name, "setting": setting, "found": float(found), "plain": plain})
    worst = max(abs(math.log(row["found"] / row["plain"])) for row in rows)
    finding = f"{len(rows)} bounds, {sum(row['plain'] < 1.0 for row in rows)} of them below 1, agree to {worst:.1e}"
    return Outcome(Verdict.CONFIRMED if worst <= _TOLERANCE else Verdict.REFUTED, finding, {"rows": rows})


def _moments(_: Context) -> Outcome:
    """⟨c, Z⟩ is standard normal, and ⟨c₁, c₂⟩ that over an independent length of Z."""
    wrong = []
    for half in range(1, _ORDERS + 1):
        double_factorial = sympy.factorial2(2 * half - 1)
        rising = sympy.prod(D + 2 * step for step in range(half))
        odd = [("c", Z)] * (2 * half - 1)
        for name, found, exact in (
            ("⟨c, Z⟩", sphere_moments.expectation(*[("c", Z)] * (2 * half)), double_factorial),
            ("⟨c₁, c₂⟩", sphere_moments.expectation(*[("c", "e")] * (2 * half)), double_factorial / rising),
            ("‖Z‖", sphere_moments.expectation(*[(Z, Z)] * half), rising),
            # Given Z, the two are independent.
            (
                "⟨c, Z⟩⟨e, Z⟩",
                sphere_moments.expectation(*[("c", Z), ("e", Z)] * (2 * half)),
                _product(double_factorial, half),
            ),
            ("odd ⟨c, Z⟩", sphere_moments.expectation(*odd), 0),
        ):
            if sympy.cancel(found - exact) != 0:
                wrong.append(f"{name}, order {2 * half}")
    count = 5 * _ORDERS
    finding = f"{count - len(wrong)} of {count} moments are exact"
    if wrong:
        finding += f"; not {wrong[0]}"
    return Outcome(Verdict.REFUTED if wrong else Verdict.CONFIRMED, finding, {"moments": count, "wrong": wrong})


def _product(double_factorial: Any, half: int) -> Any:
    """E[⟨c, Z⟩²ᵖ⟨e, Z⟩²ᵖ] = ((2p − 1)!!)²·E‖Z‖⁴ᵖ/(d(d + 2) ⋯)²."""
    length, each = (sympy.prod(D + 2 * step for step in range(pairs)) for pairs in (2 * half, half))
    return double_factorial**2 * length / each**2


# Limits for k → ∞, k = o(d); None where there is none, or where it depends on more than that.
_LIMITS: tuple[tuple[Expr, Expr | None], ...] = (
    (K / D, sympy.Integer(0)),
    (1 / K, sympy.Integer(0)),
    ((D + K) * SIGMA / (D - 1), SIGMA),
    ((K - 1) / (2 * K + K**2 / D), sympy.Rational(1, 2)),
    (K**2 / D**2 + 3, sympy.Integer(3)),
    (K, None),
    (D / K, None),
    (K**2 / D, None),
    (K**3 / D**2, None),
)


def _limits(_: Context) -> Outcome:
    wrong = [str(expression) for expression, exact in _LIMITS if regime.limit(expression) != exact]
    finding = f"{len(_LIMITS) - len(wrong)} of {len(_LIMITS)} are right"
    if wrong:
        finding += f"; not {', '.join(wrong)}"
    evidence = {"limits": len(_LIMITS), "wrong": wrong}
    return Outcome(Verdict.REFUTED if wrong else Verdict.CONFIRMED, finding, evidence)


def _best_count(_: Context) -> Outcome:
    """Minimise 1/k + (k/(2dσ³))², the square of pinned's error over ∂ε/∂m to leading order, on a fine grid of k."""
    worst = 0.0
    for dim, sigma in ((10**4, 0.5), (10**6, 1.5), (10**9, 4.0)):
        found = consistency.best_count(dim, sigma)
        counts = np.geomspace(0.1 * found, 10.0 * found, _POINTS)
        errors = 1.0 / counts + (counts / (2.0 * dim * sigma**3)) ** 2
        worst = max(worst, abs(math.log(float(counts[errors.argmin()]) / found)))
    finding = f"largest relative difference {worst:.1e}"
    # Next to a minimum errors differ by the square of what counts do.
    return Outcome(Verdict.CONFIRMED if worst <= 1e-4 else Verdict.REFUTED, finding, {"worst": worst})


CHECKS = (
    Check(
        "theorems.best-count.plain",
        Subject.IMPLEMENTATION,
        "proofs_check.consistency",
        "the best number of canaries is where pinned's error, to leading order, is least on a grid",
        _best_count,
    ),
    Check(
        "theorems.limits.known",
        Subject.IMPLEMENTATION,
        "proofs_check.regime",
        "known limits for k → ∞, k = o(d) are found, and none where it takes more than that",
        _limits,
    ),
    Check(
        "theorems.moments.known",
        Subject.IMPLEMENTATION,
        "proofs_check.sphere_moments",
        f"moments of inner products up to order {2 * _ORDERS} are those of known laws",
        _moments,
    ),
    Check(
        "theorems.bounds.plain",
        Subject.IMPLEMENTATION,
        "proofs_check.finite_bounds",
        f"Chebyshev's bounds are the least over a and b, as found plainly on a grid, to {_TOLERANCE:g}",
        _judge,
    ),
)
