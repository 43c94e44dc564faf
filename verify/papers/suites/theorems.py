"""Suite ``theorems``: every line of the proofs, and their foundations by other means.

These are known moments and limits, and Theorem 3.3's bounds and the best number of canaries by a grid. The exact
moments are compared with Algorithm 1, drawn from its exact law and, apart, in plain numpy. Convergence is in d and k.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from types import ModuleType
from typing import Any

import numba
import numpy as np
import sympy
from sympy import Expr

from canaryproof.kernels import exact_law
from canaryproof.kernels.arrays import Array
from canaryproof.proofs_check import (
    anderson_darling,
    canife_a,
    consistency,
    data_vectors,
    finite_bounds,
    first_version,
    joint_law,
    lemma_a_1,
    limits,
    release_moments,
    section_3_2,
    sphere_moments,
    submission,
    theorem_3_1,
    theorem_3_2,
    theorem_3_3,
)
from canaryproof.proofs_check.displayed_lines import displayed
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, S, Z
from canaryproof.verify.audit.levels import LEVEL, PART_LEVEL, POWER
from canaryproof.verify.papers.check.p_values import mean_p_value
from canaryproof.verify.papers.check.power import visible_mean
from canaryproof.verify.papers.check.results import Check, Context, Design, Outcome, Subject, Verdict
from canaryproof.verify.papers.suites import convergence

MODULES: tuple[ModuleType, ...] = (
    theorem_3_1,
    lemma_a_1,
    theorem_3_2,
    anderson_darling,
    theorem_3_3,
    release_moments,
    data_vectors,
    joint_law,
    first_version,
    consistency,
    section_3_2,
    submission,
    canife_a,
)


def missing_rows() -> list[str]:
    """Rows of displayed formulas that no line checks, and lines of rows that no display has."""
    missing = []
    for module in MODULES:
        printed = {(name, row) for name, rows in module.DISPLAYS.items() for row in range(1, rows + 1)}
        checked = {row for row in map(displayed, module.LINES) if row is not None}
        missing += [f"{module.__name__}: {name}, row {row}" for name, row in sorted(printed ^ checked)]
    return missing


def _displayed(_: Context) -> Outcome:
    missing = missing_rows()
    rows = sum(sum(module.DISPLAYS.values()) for module in MODULES)
    displays = sum(len(module.DISPLAYS) for module in MODULES)
    finding = f"{rows} rows of {displays} displays, each with a check" if not missing else "; ".join(missing)
    return Outcome(Verdict.REFUTED if missing else Verdict.CONFIRMED, finding, {"rows": rows, "displays": displays})


# Exact results, found plainly.

_POINTS = 400_001
# Half the highest order of the moments.
_ORDERS = 4
# The grid's own resolution, and that of the search.
_TOLERANCE = 1e-6
_GRIDS = (
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


def _bounds(_: Context) -> Outcome:
    rows: list[dict[str, Any]] = []
    for setting in _GRIDS:
        dim, count, sigma, distance = setting
        exact = dim, count, Fraction(sigma), Fraction(distance)
        for name, proven, plain in (
            ("mean", finite_bounds.mean_deviates(*exact), _least_mean(*setting)),
            ("variance", finite_bounds.variance_deviates(*exact), _least_variance(*setting)),
        ):
            rows.append({"bound": name, "setting": setting, "found": float(proven), "plain": plain})
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
        for name, expected, exact in (
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
            if sympy.cancel(expected - exact) != 0:
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
    wrong = [str(expression) for expression, exact in _LIMITS if limits.limit(expression) != exact]
    finding = f"{len(_LIMITS) - len(wrong)} of {len(_LIMITS)} are right"
    if wrong:
        finding += f"; not {', '.join(wrong)}"
    evidence = {"limits": len(_LIMITS), "wrong": wrong}
    return Outcome(Verdict.REFUTED if wrong else Verdict.CONFIRMED, finding, evidence)


def _best_count(_: Context) -> Outcome:
    """Minimise 1/k + (k/(2dσ³))², the square of pinned's error over ∂ε/∂m to leading order, on a fine grid of k."""
    worst = 0.0
    for dim, sigma in ((10**4, 0.5), (10**6, 1.5), (10**9, 4.0)):
        best = consistency.best_count(dim, sigma)
        counts = np.geomspace(0.1 * best, 10.0 * best, _POINTS)
        errors = 1.0 / counts + (counts / (2.0 * dim * sigma**3)) ** 2
        worst = max(worst, abs(math.log(float(counts[errors.argmin()]) / best)))
    finding = f"largest relative difference {worst:.1e}"
    # Next to a minimum errors differ by the square of what counts do.
    return Outcome(Verdict.CONFIRMED if worst <= 1e-4 else Verdict.REFUTED, finding, {"worst": worst})


_EXACT = (
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
        "proofs_check.limits",
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
        _bounds,
    ),
)


# Every exact moment against simulations.

# A case's tests are at PART_LEVEL: their p-values of means of fourth powers, by a gamma law, may be off by a factor
# of 10 so far out.
_STATISTICS = ("A", "B", "T", "W")
_BLOCK = 1000


@dataclass(frozen=True)
class SmallCase:
    """A small case of Algorithm 1 at which printed and exact moments differ visibly."""

    dim: int
    count: int
    noise_multiplier: Fraction
    data_norm: int


_CASES = (
    SmallCase(40, 12, Fraction(7, 10), 0),
    SmallCase(12, 40, Fraction(3, 2), 0),
    SmallCase(50, 8, Fraction(1, 2), 6),
)


def _reduced(products: Array, squared_norms: Array, dim: int) -> dict[str, Array]:
    """Statistics A, B, T and W of runs, from inner products of shape (runs, k) and squared norms of shape (runs,)."""
    mean, square = products.mean(axis=1), (products**2).mean(axis=1)
    return {"A": squared_norms / dim, "B": mean, "T": square, "W": square - mean**2}


def _exact_block(case: SmallCase, runs: int, key: np.random.SeedSequence) -> dict[str, Array]:
    rng = np.random.Generator(np.random.SFC64(key))
    products, norms = exact_law.inner_products(
        case.count, case.dim, float(case.noise_multiplier), rng, float(case.data_norm), runs
    )
    return _reduced(products, norms**2, case.dim)


def _plain_block(case: SmallCase, runs: int, key: np.random.SeedSequence) -> dict[str, Array]:
    rng = np.random.default_rng(key)
    canaries = rng.standard_normal((runs, case.count, case.dim))
    canaries /= np.linalg.norm(canaries, axis=2, keepdims=True)
    release = canaries.sum(axis=1) + float(case.noise_multiplier) * rng.standard_normal((runs, case.dim))
    release[:, 0] += case.data_norm
    return _reduced(np.einsum("rkd,rd->rk", canaries, release), (release**2).sum(axis=1), case.dim)


_SAMPLERS: dict[str, Callable[[SmallCase, int, np.random.SeedSequence], dict[str, Array]]] = {
    "exact law": _exact_block,
    "plain numpy": _plain_block,
}


def _sample(name: str, case: SmallCase, runs: int, key: np.random.SeedSequence) -> dict[str, Array]:
    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        blocks = list(pool.map(lambda child: _SAMPLERS[name](case, _BLOCK, child), key.spawn(runs // _BLOCK)))
    return {statistic: np.concatenate([block[statistic] for block in blocks]) for statistic in _STATISTICS}


# The variances that the proof prints, where they differ from the exact ones (Appendix A).
_PRINTED = {
    "A": (K * (K - 1) / D + 2 * K * SIGMA**2 + 2 * SIGMA**4 * D) / D**2,
    "B": (K * (K - 1) / D + K * SIGMA**2) / K**2,
}
# The mean, and central moments of these orders.
_CENTRAL_ORDERS = {"A": (1, 2, 4), "B": (1, 2, 4), "T": (1, 2), "W": (1, 2)}


def _value(expression: Expr, case: SmallCase) -> float:
    noise = sympy.Rational(case.noise_multiplier)
    at = {D: case.dim, K: case.count, SIGMA: noise, S: case.data_norm}
    return float(sympy.Rational(expression.subs(at)))


def _row(sampler: str, name: str, order: int, values: Array, case: SmallCase) -> dict[str, Any]:
    centre = _value(release_moments.raw_moment(name, 1), case)
    exact = centre if order == 1 else _value(release_moments.central_moment(name, order), case)
    powers = values if order == 1 else (values - centre) ** order
    row = {
        "sampler": sampler,
        "statistic": name,
        "order": order,
        "exact": exact,
        "simulated": float(powers.mean()),
        "standard_error": float(powers.std(ddof=1)) / math.sqrt(powers.size),
        "p_value": mean_p_value(powers, exact),
    }
    if order == 2 and name in _PRINTED and not case.data_norm:
        row["p_value_of_printed"] = mean_p_value(powers, _value(_PRINTED[name], case))
    return row


def _simulated_moments(case: SmallCase, context: Context) -> Outcome:
    runs = context.pick(20_000, 200_000)
    rows = []
    for sampler in _SAMPLERS:
        key = context.key(f"witness/{case.dim}/{case.count}/{sampler}")
        for name, values in _sample(sampler, case, runs, key).items():
            rows += [_row(sampler, name, order, values, case) for order in _CENTRAL_ORDERS[name]]
    smallest = min(row["p_value"] for row in rows)
    finding = f"smallest of {len(rows)} p-values {smallest:.2g} ({runs:,} runs a sampler)"
    printed = [row["p_value_of_printed"] for row in rows if "p_value_of_printed" in row]
    if printed:
        finding += f"; of the printed variances of A and B {max(printed):.0e} at most"
    evidence = {"runs": runs, "level": PART_LEVEL, "rows": rows}
    # The estimate is a mean square of normal numbers, whose deviation is √2 times the estimated variance.
    visible = math.sqrt(2.0) * visible_mean(runs, PART_LEVEL / len(rows))
    design = Design("the moments are exact", LEVEL, f"a variance is off by {visible:.1%}", POWER, runs)
    holds = smallest >= PART_LEVEL / len(rows)
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence, design)


def _check(case: SmallCase) -> Check:
    data = f", ‖Σxᵢ‖ = {case.data_norm}" if case.data_norm else ""
    return Check(
        f"theorems.witness.d{case.dim}",
        Subject.IMPLEMENTATION,
        "proofs_check.release_moments",
        f"the exact moments of A, B, T and W are those of simulations at d = {case.dim}, "
        f"k = {case.count}, σ = {float(case.noise_multiplier):g}{data}",
        lambda context: _simulated_moments(case, context),
    )


_SIMULATED = tuple(_check(case) for case in _CASES)


CHECKS = (
    *chain.from_iterable(module.LINES for module in MODULES),
    Check(
        "theorems.displayed-lines",
        Subject.IMPLEMENTATION,
        "proofs_check",
        "every displayed line of the proofs has a check",
        _displayed,
    ),
    *_EXACT,
    *_SIMULATED,
    *convergence.CHECKS,
)
