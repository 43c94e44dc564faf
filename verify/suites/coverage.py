"""Simulations of bounds on mechanisms whose ε is known: how often they lie above it, and how far below."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels import binomial, exact_law, gaussian_mechanism
from canaryproof.verify.bounds import mechanisms
from canaryproof.verify.bounds.lower_bound import Method
from canaryproof.verify.bounds.mechanisms import Mechanism
from canaryproof.verify.bounds.scores import Scores, cosine_null, prepare
from canaryproof.verify.results import Context, Level

Array = NDArray[np.float64]

ALPHA = 0.05
# Level of each check: of all its cells, Bonferroni.
LEVEL = 1e-6
EPSILONS = (0.0, 0.5, 1.0, 3.0, 10.0)
DELTAS = (1e-6, 1e-5, 1e-2)
# Audits a cell, by number of scores.
_RUNS = {Level.QUICK: {100: 400, 1000: 100}, Level.FULL: {100: 10_000, 1000: 2000, 10_000: 200}}
# The same where an audit takes longer: with coins, as their sizes differ, and for posterior intervals.
_FEWER = {Level.QUICK: {100: 100, 1000: 25}, Level.FULL: {100: 2000, 1000: 400, 10_000: 40}}
_COSINE_RUNS = {Level.QUICK: {100: 60, 1000: 10}, Level.FULL: {100: 2000, 1000: 500, 10_000: 10}}
DIM = 10**6
# Of the truth, for its own rounding.
_ROUNDING = 1e-9

Families = Sequence[Callable[[float], Mechanism]]


@dataclass(frozen=True)
class Cell:
    """Audits of one mechanism, and its ε by δ.

    Attributes
    ----------
    where
        What the cell is.
    truth
        ε by δ.
    audits
        The scores, in pieces of any number of audits.
    """

    where: Mapping[str, Any]
    truth: Mapping[float, float]
    audits: tuple[Scores, ...]


@cache
def _mechanism(family: Callable[[float], Mechanism], epsilon: float) -> Mechanism:
    # One null object for one law, as what belongs to it is remembered.
    return family(epsilon)


def independent_cells(
    context: Context, families: Families, kinds: Sequence[str], *, fewer: bool = False
) -> Iterator[Cell]:
    """Draw audits whose scores are each from a run of its own.

    Parameters
    ----------
    context
        Level and seed.
    families
        Families of mechanisms.
    kinds
        What the null is: ``exact``, ``unobserved``, or both.
    fewer
        Whether to draw a fifth of the audits.
    """
    for family in families:
        for epsilon in EPSILONS:
            mechanism = _mechanism(family, epsilon)
            for count, runs in (_FEWER if fewer else _RUNS)[context.level].items():
                rng = np.random.default_rng(context.key(f"bounds/{mechanism.name}/{epsilon}/{count}"))
                observed = mechanism.draw(rng, (runs, count))
                for kind in kinds:
                    if kind == "exact":
                        scores = prepare(observed, null=mechanism.null, independent=True)
                    else:
                        scores = prepare(observed, mechanism.draw_null(rng, (runs, count)), independent=True)
                    yield _cell(mechanism, count, kind, (scores,))


def coin_cells(context: Context, families: Families) -> Iterator[Cell]:
    """Draw audits in which a fair coin decides on every canary."""
    for family in families:
        for epsilon in EPSILONS:
            mechanism = _mechanism(family, epsilon)
            for count, runs in _FEWER[context.level].items():
                rng = np.random.default_rng(context.key(f"bounds/coin/{mechanism.name}/{epsilon}/{count}"))
                heads = rng.binomial(2 * count, 0.5, runs)
                audits = tuple(
                    prepare(mechanism.draw(rng, (1, k)), mechanism.draw_null(rng, (1, 2 * count - k)), inclusion="coin")
                    for k in heads
                )
                yield _cell(mechanism, count, "coin", audits)


def cosine_cells(context: Context) -> Iterator[Cell]:
    """Draw the cosines of single runs of Algorithm 1, which depend on each other, with exactly their joint law."""
    null = cosine_null(DIM)
    for epsilon in EPSILONS:
        sigma = float(gaussian_mechanism.noise_multiplier(epsilon, mechanisms.DELTA)) if epsilon > 0.0 else math.inf
        for count, runs in _COSINE_RUNS[context.level].items():
            rng = np.random.Generator(np.random.SFC64(context.key(f"bounds/cosines/{epsilon}/{count}")))
            if math.isinf(sigma):
                # Nothing of the canaries is in the release: independent cosines with a fixed direction.
                observed = rng.standard_normal((runs, count))
                observed /= np.sqrt(observed**2 + rng.chisquare(DIM - 1, (runs, count)))
            else:
                observed = np.array([exact_law.cosines(count, DIM, sigma, rng) for _ in range(runs)])
            truth = {d: float(gaussian_mechanism.epsilon(d, sigma)) if epsilon > 0.0 else 0.0 for d in DELTAS}
            where = {"mechanism": "cosines of one run", "epsilon": epsilon, "count": count, "null": "exact"}
            yield Cell(where, truth, (prepare(observed, null=null),))


def _cell(mechanism: Mechanism, count: int, kind: str, audits: tuple[Scores, ...]) -> Cell:
    where = {"mechanism": mechanism.name, "epsilon": mechanism.nominal, "count": count, "null": kind}
    return Cell(where, {delta: mechanism.epsilon(delta) for delta in DELTAS}, audits)


def measure(method: Method, cells: Iterable[Cell], alpha: float = ALPHA) -> list[dict[str, Any]]:
    """Compute a bound for all audits of all cells that it serves.

    Parameters
    ----------
    method
        The method.
    cells
        Audits.
    alpha
        1 − confidence of the bound.

    Returns
    -------
    For each cell and δ: truth, audits, how many bounds are above it, the interval of that rate, mean and deficit.
    """
    rows = []
    for cell in cells:
        for delta, truth in cell.truth.items():
            found = [method.values(scores, delta, alpha)[0] for scores in cell.audits if method.serves(scores)]
            if found:
                rows.append(_row(cell, delta, truth, np.concatenate(found)))
    return rows


def _row(cell: Cell, delta: float, truth: float, values: Array) -> dict[str, Any]:
    runs, above = len(values), int(np.sum(values > truth * (1.0 + _ROUNDING) + _ROUNDING))
    low, high = binomial.interval(above, runs, 0.95)
    mean = float(values.mean())
    return {
        **cell.where,
        "delta": delta,
        "truth": truth,
        "runs": runs,
        "above": above,
        "rate": above / runs,
        "interval": (float(low), float(high)),
        "mean": mean,
        "deficit": truth - mean,
    }


def p_values(rows: Sequence[Mapping[str, Any]], alpha: float = ALPHA) -> list[float]:
    """Return for each cell the probability of as many bounds above the truth, were it α."""
    return [float(stats.binom.sf(row["above"] - 1, row["runs"], alpha)) for row in rows]


def label(row: Mapping[str, Any]) -> str:
    """Name a cell."""
    return (
        f"{row['mechanism']}, ε = {row['epsilon']:g}, k = {row['count']:,}, δ = {row['delta']:g}, {row['null']} null"
        if row["null"] != "coin"
        else f"{row['mechanism']}, ε = {row['epsilon']:g}, {2 * row['count']:,} coins, δ = {row['delta']:g}"
    )
