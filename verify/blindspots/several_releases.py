"""Mechanisms of several rounds, in which each client and each canary takes part once.

Where all rounds are released, the adversary has T vectors whose noise is normal with covariance C ⊗ I, and a client of
round t shifts the t-th by its vector: ε is that of the Gaussian mechanism with σ = 1/√((C⁻¹)ₜₜ), the largest over t.
Where the final iterate alone is released, the last round's client is the worst: nothing contracts its vector.
"""

import numpy as np
from scipy import linalg

from canaryproof.verify.blindspots.mechanism import (
    Array,
    Claim,
    Mechanism,
    Residual,
    Truth,
    gaussian_truth,
    without_noise,
)
from canaryproof.verify.blindspots.single_release import low_rank

_ROUNDS = 10


def _wishart(covariance: Array, dim: int, runs: int, rng: np.random.Generator) -> Array:
    """Draw Gram matrices of normal vectors in ℝᵈ, by Bartlett's decomposition, shape (runs, T, T)."""
    size, free = len(covariance), min(len(covariance), dim)
    factor = np.tril(rng.standard_normal((runs, size, free)), -1)
    diagonal = np.arange(free)
    factor[:, diagonal, diagonal] = np.sqrt(rng.chisquare(dim - diagonal, (runs, free)))
    rows = linalg.cholesky(covariance, lower=True) @ factor
    return np.asarray(rows @ rows.swapaxes(1, 2))


def _reused(value: float, claim: Claim) -> Truth:
    if value == 1.0:
        return gaussian_truth(claim, 1.0)
    return without_noise("the difference of two rounds has no noise")


def _draw_reused(value: float, claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
    square = claim.noise_multiplier**2 * rng.chisquare(claim.dim, (runs, 1, 1, 1))
    return Residual((claim.dim,), np.broadcast_to(square, (runs, 1, int(value), int(value))))


def _covariance(value: float) -> Array:
    return np.asarray(linalg.toeplitz(value ** np.arange(_ROUNDS)))


def _correlated(value: float, claim: Claim) -> Truth:
    """(C⁻¹)ₜₜ = (1 + φ²)/(1 − φ²) of a stationary autoregression, at every round but the first and the last."""
    factor = float(np.sqrt((1.0 - value**2) / (1.0 + value**2)))
    return gaussian_truth(claim, factor, "the noise that other rounds do not tell")


def _draw_correlated(value: float, claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
    grams = _wishart(claim.noise_multiplier**2 * _covariance(value), claim.dim, runs, rng)
    return Residual((claim.dim,), grams[:, np.newaxis])


def _draw_low_rank(value: float, claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
    rank = max(1, round(value * claim.dim))
    grams = _wishart(claim.noise_multiplier**2 / value * np.eye(_ROUNDS), rank, runs, rng)
    return Residual((claim.dim,), grams[:, np.newaxis])


def _squares(value: float) -> float:
    return float((value ** (2 * np.arange(_ROUNDS))).sum())


def _contracted(value: float, claim: Claim) -> Truth:
    return gaussian_truth(claim, float(np.sqrt(_squares(value))), "the last round's client, under the noise of all")


def _draw_contracted(value: float, claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
    square = claim.noise_multiplier**2 * _squares(value) * rng.chisquare(claim.dim, (runs, 1, 1, 1))
    return Residual((claim.dim,), square)


MECHANISMS = (
    Mechanism(
        "reused-noise",
        "the same noise in every round",
        "number of rounds",
        (1.0, 2.0, 10.0),
        _reused,
        _draw_reused,
        weights=lambda value: np.eye(int(value)),
        canife=lambda value, claim: claim.noise_multiplier if value == 1.0 else 0.0,
    ),
    Mechanism(
        "correlated-noise",
        f"noise of {_ROUNDS} rounds correlated, as an autoregression, where independent noise is claimed",
        "correlation of two rounds in sequence",
        (0.0, 0.5, 0.9, 0.99),
        _correlated,
        _draw_correlated,
        weights=lambda _value: np.eye(_ROUNDS),
        canife=lambda _value, claim: claim.noise_multiplier,
    ),
    Mechanism(
        "low-rank-rounds",
        f"noise of the claimed mean variance, all of it in one subspace, the same in all of {_ROUNDS} rounds",
        "the subspace's share of the dimensions",
        (1.0, 0.5, 0.1, 0.01, 0.001),
        low_rank,
        _draw_low_rank,
        weights=lambda _value: np.eye(_ROUNDS),
        canife=lambda _value, claim: claim.noise_multiplier,
    ),
    Mechanism(
        "final-iterate",
        f"nothing: the final iterate of {_ROUNDS} rounds of a linear model, which each step contracts",
        "contraction of a step",
        (0.0, 0.5, 0.9, 1.0),
        _contracted,
        _draw_contracted,
        weights=lambda value: np.asarray(value ** np.arange(_ROUNDS, dtype=np.float64))[::-1, np.newaxis],
    ),
)
