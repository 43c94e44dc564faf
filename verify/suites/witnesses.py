"""A second witness of every exact moment: Algorithm 1 drawn from its exact law and, apart, in plain numpy."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy import stats
from sympy import Expr

from canaryproof.kernels import exact_law
from canaryproof.proofs_check.release_moments import central_moment, raw_moment
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, S
from canaryproof.verify.results import Check, Context, Outcome, Subject, Verdict
from canaryproof.verify.simulation import threads

# Level of one setting: all its moments from both samplers, Bonferroni. The tests rest on the central limit theorem,
# which at these sample sizes may be off by a factor of 2 so far out; the declared 1e-6 leaves a factor of 10.
LEVEL = 1e-7
_STATISTICS = ("A", "B", "T", "W")
_BLOCK = 1000


@dataclass(frozen=True)
class Setting:
    """A small case of Algorithm 1 at which printed and exact moments differ visibly."""

    dim: int
    count: int
    noise_multiplier: Fraction
    data_norm: int


SETTINGS = (
    Setting(40, 12, Fraction(7, 10), 0),
    Setting(12, 40, Fraction(3, 2), 0),
    Setting(50, 8, Fraction(1, 2), 6),
)

Array = NDArray[np.float64]


def _reduced(products: Array, squared_norms: Array, dim: int) -> dict[str, Array]:
    """Statistics A, B, T and W of runs, from inner products of shape (runs, k) and squared norms of shape (runs,)."""
    mean, square = products.mean(axis=1), (products**2).mean(axis=1)
    return {"A": squared_norms / dim, "B": mean, "T": square, "W": square - mean**2}


def _exact_block(setting: Setting, runs: int, key: np.random.SeedSequence) -> dict[str, Array]:
    rng = np.random.Generator(np.random.SFC64(key))
    draws = [
        exact_law.inner_products(
            setting.count, setting.dim, float(setting.noise_multiplier), rng, float(setting.data_norm)
        )
        for _ in range(runs)
    ]
    norms = np.array([norm for _, norm in draws])
    return _reduced(np.array([products for products, _ in draws]), norms**2, setting.dim)


def _plain_block(setting: Setting, runs: int, key: np.random.SeedSequence) -> dict[str, Array]:
    rng = np.random.default_rng(key)
    canaries = rng.standard_normal((runs, setting.count, setting.dim))
    canaries /= np.linalg.norm(canaries, axis=2, keepdims=True)
    release = canaries.sum(axis=1) + float(setting.noise_multiplier) * rng.standard_normal((runs, setting.dim))
    release[:, 0] += setting.data_norm
    return _reduced(np.einsum("rkd,rd->rk", canaries, release), (release**2).sum(axis=1), setting.dim)


_SAMPLERS: dict[str, Callable[[Setting, int, np.random.SeedSequence], dict[str, Array]]] = {
    "exact law": _exact_block,
    "plain numpy": _plain_block,
}


def _sample(name: str, setting: Setting, runs: int, key: np.random.SeedSequence) -> dict[str, Array]:
    with ThreadPoolExecutor(threads()) as pool:
        blocks = list(pool.map(lambda child: _SAMPLERS[name](setting, _BLOCK, child), key.spawn(runs // _BLOCK)))
    return {statistic: np.concatenate([block[statistic] for block in blocks]) for statistic in _STATISTICS}


# The variances that the proof prints, where they differ from the exact ones (Appendix A).
_PRINTED = {
    "A": (K * (K - 1) / D + 2 * K * SIGMA**2 + 2 * SIGMA**4 * D) / D**2,
    "B": (K * (K - 1) / D + K * SIGMA**2) / K**2,
}
# The mean, and central moments of these orders.
_ORDERS = {"A": (1, 2, 4), "B": (1, 2, 4), "T": (1, 2), "W": (1, 2)}


def _number(expression: Expr, setting: Setting) -> float:
    noise = sympy.Rational(setting.noise_multiplier)
    at = {D: setting.dim, K: setting.count, SIGMA: noise, S: setting.data_norm}
    return float(sympy.Rational(expression.subs(at)))


def _deviation(powers: Array, expected: float) -> float:
    """How far a sample's mean is from the expected one, in standard errors."""
    return float((powers.mean() - expected) / (powers.std(ddof=1) / math.sqrt(powers.size)))


def _row(sampler: str, name: str, order: int, values: Array, setting: Setting) -> dict[str, Any]:
    centre = _number(raw_moment(name, 1), setting)
    exact = centre if order == 1 else _number(central_moment(name, order), setting)
    powers = values if order == 1 else (values - centre) ** order
    row = {
        "sampler": sampler,
        "statistic": name,
        "order": order,
        "exact": exact,
        "simulated": float(powers.mean()),
        "deviation": _deviation(powers, exact),
    }
    if order == 2 and name in _PRINTED and not setting.data_norm:
        row["deviation_from_printed"] = _deviation(powers, _number(_PRINTED[name], setting))
    return row


def _judge(setting: Setting, context: Context) -> Outcome:
    runs = context.pick(20_000, 200_000)
    rows = []
    for sampler in _SAMPLERS:
        key = context.key(f"witness/{setting.dim}/{setting.count}/{sampler}")
        for name, values in _sample(sampler, setting, runs, key).items():
            rows += [_row(sampler, name, order, values, setting) for order in _ORDERS[name]]
    allowed = float(stats.norm.isf(0.5 * LEVEL / len(rows)))
    worst = max(abs(row["deviation"]) for row in rows)
    finding = f"largest of {len(rows)} deviations {worst:.2f} standard errors ({runs:,} runs a sampler)"
    printed = [abs(row["deviation_from_printed"]) for row in rows if "deviation_from_printed" in row]
    if printed:
        finding += f"; the printed variances of A and B are off by {min(printed):.0f} to {max(printed):.0f}"
    evidence = {"runs": runs, "level": LEVEL, "largest_allowed": allowed, "rows": rows}
    return Outcome(Verdict.CONFIRMED if worst <= allowed else Verdict.REFUTED, finding, evidence)


def _check(setting: Setting) -> Check:
    data = f", ‖Σxᵢ‖ = {setting.data_norm}" if setting.data_norm else ""
    return Check(
        f"theorems.witness.d{setting.dim}",
        Subject.IMPLEMENTATION,
        "proofs_check.release_moments",
        f"the exact moments of A, B, T and W are those of simulations at d = {setting.dim}, "
        f"k = {setting.count}, σ = {float(setting.noise_multiplier):g}{data}",
        lambda context: _judge(setting, context),
    )


CHECKS = tuple(_check(setting) for setting in SETTINGS)
