"""Statistics beside the cosines, each a test of the claimed noise with a level of its own.

Whoever audits knows the canaries, and so the residual: what is released less their sum, noise and data. Each test
holds its level exactly for normal noise of the claimed deviation, independent in all coordinates and rounds, whatever
the data, or whatever data of a norm that is given (blind_spots.md, 5). None looks at the clients: what is wrong with
one of them, with the generator's states or with the noise's last bits is no easier seen here than by cosines.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from canaryproof.kernels import binomial
from canaryproof.kernels.arrays import Array
from canaryproof.verify.blindspots.alarms import ALPHA, CONFIDENCE
from canaryproof.verify.blindspots.mechanisms import Claim, Mechanism, ReleaseResidual


def norm_p_value(residual_square: ArrayLike, noise_multiplier: float, dim: int) -> Array:
    """One-sided p-values of squared norms ‖ρ − Σcⱼ‖² in ℝᵈ: the probability that noise alone is so short.

    Norms and noise are in units of the clip norm; of several rounds, squares and dimensions are sums over them.
    ‖s + σZ‖² is at least σ²χ²_d in law for every vector s of data.
    """
    square = np.asarray(residual_square, dtype=np.float64)
    return np.asarray(special.chdtr(dim, square / noise_multiplier**2))


def part_norms_p_value(part_squares: ArrayLike, noise_multiplier: float, dims: tuple[int, ...]) -> Array:
    """Test whether a residual is too short on any of its parts, by the smallest p-value of one (Bonferroni).

    Squared norms of the parts have the shape (..., parts), and p-values (...).
    """
    squares = np.asarray(part_squares, dtype=np.float64)
    each = special.chdtr(np.asarray(dims), squares / noise_multiplier**2)
    return np.asarray(np.minimum(1.0, len(dims) * each.min(axis=-1)))


def rounds_p_value(gram: ArrayLike, noise_multiplier: float, dim: int, data_norm: float = 0.0) -> Array:
    """Test whether residuals of T rounds are nearer to each other's span than independent noise would be.

    Inner products have the shape (..., T, T), 2 ≤ T < d, and p-values (...). ``data_norm`` bounds the norm of any
    round's sum of data: data that are alike in several rounds look like noise that is, so that too small a bound makes
    the test wrong.

    The share of a round's squared residual that lies in the span of the t rounds before it is at most, in law, what a
    noncentral F variable with t and d − t degrees of freedom and noncentrality (data_norm/σ)² makes it, whatever
    these were. The p-values of the rounds are combined by Fisher's sum of logarithms.
    """
    products = np.asarray(gram, dtype=np.float64)
    noncentrality = (data_norm / noise_multiplier) ** 2
    rounds = products.shape[-1]
    logs = np.zeros(products.shape[:-2])
    for before in range(1, rounds):
        with_them, square = products[..., :before, before], products[..., before, before]
        inverse = np.linalg.pinv(products[..., :before, :before], hermitian=True)
        inside = np.einsum("...i,...ij,...j->...", with_them, inverse, with_them)
        outside = np.maximum(square - inside, 1e-12 * square)
        ratio = (inside / before) / (outside / (dim - before))
        tail = 1.0 - special.ncfdtr(before, dim - before, noncentrality, ratio)
        with np.errstate(divide="ignore"):
            logs += np.log(np.clip(tail, 0.0, 1.0))
    return np.asarray(special.chdtrc(2.0 * (rounds - 1), -2.0 * logs))


def confined(mechanism: Mechanism, claim: Claim, index: int = 0) -> Mechanism:
    """Return a mechanism as canaries see it that are uniform directions of one part of the release alone.

    It belongs to the same claim with the dimension of that part.
    """
    return replace(
        mechanism,
        draw=lambda value, _claim, runs, rng: mechanism.residual(value, claim, runs, rng).part(index),
        canife=None,
    )


def _diagonals(residual: ReleaseResidual) -> Array:
    """Return squared norms summed over the rounds, shape (runs, parts)."""
    return np.asarray(np.trace(residual.grams, axis1=2, axis2=3))


def _norm(residual: ReleaseResidual, claim: Claim) -> Array:
    together = residual.gram.shape[-1] * residual.dim
    return norm_p_value(_diagonals(residual).sum(axis=1), claim.noise_multiplier, together)


def _part_norms(residual: ReleaseResidual, claim: Claim) -> Array:
    rounds = residual.gram.shape[-1]
    dims = tuple(rounds * dim for dim in residual.dims)
    return part_norms_p_value(_diagonals(residual), claim.noise_multiplier, dims)


def _rounds(residual: ReleaseResidual, claim: Claim) -> Array | None:
    if residual.gram.shape[-1] == 1:
        return None
    return rounds_p_value(residual.gram, claim.noise_multiplier, residual.dim)


# p-values of each run; None where there is nothing to be tested.
DIAGNOSTICS: dict[str, Callable[[ReleaseResidual, Claim], Array | None]] = {
    "norm": _norm,
    "part-norms": _part_norms,
    "rounds": _rounds,
}


# How often each diagnostic raises an alarm.


def measure(
    mechanism: Mechanism, value: float, claim: Claim, runs: int, key: np.random.SeedSequence
) -> dict[str, dict[str, Any]]:
    """Test residuals of a mechanism by all diagnostics that apply, each at level α = 5%: p-value, alarms and rate."""
    residual = mechanism.residual(value, claim, runs, np.random.default_rng(key))
    stated = replace(claim, noise_multiplier=mechanism.stated(value) * claim.noise_multiplier)
    tested = {name: test(residual, stated) for name, test in DIAGNOSTICS.items()}
    cells = {}
    for name, p_values in tested.items():
        if p_values is not None:
            alarms = int((p_values <= ALPHA).sum())
            rate = [alarms / runs, *binomial.interval(alarms, runs, CONFIDENCE)]
            cells[name] = {"p_value": float(np.median(p_values)), "alarms": alarms, "rate": rate}
    return cells
