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
from sympy import Expr

from canaryproof.kernels import exact_law
from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, S
from canaryproof.verify import simulation
from canaryproof.verify.error_control import POWER, mean_p_value, visible_mean
from canaryproof.verify.results import Check, Context, Design, Outcome, Subject, Verdict

# Declared level of one setting, and that of all its tests, Bonferroni: their p-values of means of fourth powers, by a
# gamma law, may be off by a factor of 10 so far out.
LEVEL, _NOMINAL = 1e-6, 1e-7
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
    with ThreadPoolExecutor(simulation.threads()) as pool:
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


def _row(sampler: str, name: str, order: int, values: Array, setting: Setting) -> dict[str, Any]:
    centre = _number(release_moments.raw_moment(name, 1), setting)
    exact = centre if order == 1 else _number(release_moments.central_moment(name, order), setting)
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
    if order == 2 and name in _PRINTED and not setting.data_norm:
        row["p_value_of_printed"] = mean_p_value(powers, _number(_PRINTED[name], setting))
    return row


def _judge(setting: Setting, context: Context) -> Outcome:
    runs = context.pick(20_000, 200_000)
    rows = []
    for sampler in _SAMPLERS:
        key = context.key(f"witness/{setting.dim}/{setting.count}/{sampler}")
        for name, values in _sample(sampler, setting, runs, key).items():
            rows += [_row(sampler, name, order, values, setting) for order in _ORDERS[name]]
    smallest = min(row["p_value"] for row in rows)
    finding = f"smallest of {len(rows)} p-values {smallest:.2g} ({runs:,} runs a sampler)"
    printed = [row["p_value_of_printed"] for row in rows if "p_value_of_printed" in row]
    if printed:
        finding += f"; of the printed variances of A and B {max(printed):.0e} at most"
    evidence = {"runs": runs, "level": _NOMINAL, "rows": rows}
    # Of a mean square of normal numbers, whose deviation is √2 times what it estimates.
    visible = math.sqrt(2.0) * visible_mean(runs, _NOMINAL / len(rows))
    design = Design("the moments are exact", LEVEL, f"a variance is off by {visible:.1%}", POWER, runs)
    holds = smallest >= _NOMINAL / len(rows)
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence, design)


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
