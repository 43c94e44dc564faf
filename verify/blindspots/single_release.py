"""Mechanisms that release one vector: the clients' sum with noise, in which something is amiss.

Neighbours differ by one client, whose vector has at most the clip norm 1. Where the noise is normal with covariance Σ,
a client's vector x shifts the release by x, and ε is that of the Gaussian mechanism with σ = 1/√(xᵀΣ⁻¹x): the worst
client puts everything where there is the least noise. Without noise in some direction, what the release differs by
from the others' sum there is zero without that client and is not with it, so that no ε serves at any δ < 1.
"""

import math
from functools import partial

import numpy as np

from canaryproof.verify.blindspots.mechanism import (
    Claim,
    Mechanism,
    Residual,
    Truth,
    gaussian_truth,
    single,
    without_noise,
)


def _noise(share: float, factors: tuple[float, float], claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
    """Draw noise of two factors times the claimed deviation: on a share of the coordinates, and on the others."""
    first = round(share * claim.dim)
    parts = [(dim, factor) for dim, factor in zip((first, claim.dim - first), factors, strict=True) if dim > 0]
    squares = [(factor * claim.noise_multiplier) ** 2 * rng.chisquare(dim, runs) for dim, factor in parts]
    return single(tuple(dim for dim, _ in parts), np.stack(squares, axis=1))


def _beside_data(norm: float, factor: float, claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
    """Draw noise with a sum of data of some norm, in whatever direction."""
    sigma = factor * claim.noise_multiplier
    return single((claim.dim,), sigma**2 * rng.noncentral_chisquare(claim.dim, (norm / sigma) ** 2, (runs, 1)))


def honest(_value: float, claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
    """Draw residuals of the Gaussian mechanism with the claimed noise and no data."""
    return _beside_data(0.0, 1.0, claim, runs, rng)


def unseen(_value: float, _claim: Claim) -> float:
    """Return the total variation between the laws of scores where they are one law."""
    return 0.0


def _data_distance(norm: float, claim: Claim) -> float:
    """Bound the total variation between the laws of scores with and without data of some norm (blind_spots.md, 3)."""
    return min(1.0, norm**2 / (2.0 * claim.noise_multiplier**2 * math.sqrt(math.pi * claim.dim)))


def _less_noise(value: float, claim: Claim) -> Truth:
    return gaussian_truth(claim, value, "normal noise of the deviation that there is")


def _draw_diluted(value: float, claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
    norm = math.sqrt(value * claim.dim) * claim.noise_multiplier
    return _beside_data(norm, 0.5, claim, runs, rng)


def _on_a_share(factor: float, value: float, claim: Claim) -> Truth:
    if value == 0.0:
        return gaussian_truth(claim, 1.0)
    return gaussian_truth(claim, factor, "a client with all its weight on those coordinates")


def low_rank(value: float, claim: Claim) -> Truth:
    """Return the truth for noise in a subspace that is the same in every run, so that whoever attacks may know it.

    A subspace that is drawn anew, and told to nobody, would leave noise of a law that turns into itself, and an ε.
    """
    return gaussian_truth(claim, 1.0) if value == 1.0 else without_noise("a client across the noise's subspace")


def _draw_low_rank(value: float, claim: Claim, runs: int, rng: np.random.Generator) -> Residual:
    rank = max(1, round(value * claim.dim))
    # Any subspace, so that there are no parts.
    return single((claim.dim,), claim.noise_multiplier**2 / value * rng.chisquare(rank, (runs, 1)))


def _longer(value: float, claim: Claim) -> Truth:
    return gaussian_truth(claim, 1.0 / value, "the client whose vector is that long")


def _memorised(value: float, claim: Claim) -> Truth:
    return gaussian_truth(claim, 1.0 / (1.0 + value), "the client with that example: its vector and the trace add up")


def _outright(value: float, claim: Claim) -> Truth:
    """With probability p a client's data are released beside the Gaussian mechanism's vector.

    On that event both neighbours are told apart by a third output, and apart from it they are the Gaussian
    mechanism's: δ(ε) = p + (1 − p)·δ_Gauss(ε). So ε at δ is the Gaussian's at (δ − p)/(1 − p), and none if p ≥ δ.
    """
    if value >= claim.delta:
        return without_noise("data are released with a probability of at least δ")
    # To a few roundings, which move ε by less than those that are allowed for in σ.
    left = (claim.delta - value) / (1.0 - value)
    return gaussian_truth(Claim(claim.noise_multiplier, left, claim.dim), 1.0, "δ less the probability of a release")


def _as_claimed(_value: float, claim: Claim) -> Truth:
    return gaussian_truth(claim, 1.0, "clients are treated as claimed")


def _mean_deviation(_value: float, claim: Claim) -> float:
    return claim.noise_multiplier


MECHANISMS = (
    Mechanism(
        "less-noise",
        "less noise than claimed, on all coordinates",
        "deviation of the noise, as a share of the claimed",
        (1.0, 0.9, 0.75, 0.5, 0.25),
        _less_noise,
        lambda value, claim, runs, rng: _beside_data(0.0, value, claim, runs, rng),
        canife=lambda value, claim: value * claim.noise_multiplier,
    ),
    Mechanism(
        "dilution",
        "half the claimed noise, beside data vectors that point the same way",
        "‖Σx‖²/(σ²d) of the data, with the claimed σ",
        (0.0, 0.25, 1.0, 4.0, 16.0),
        lambda _value, claim: gaussian_truth(claim, 0.5, "normal noise of half the claimed deviation"),
        _draw_diluted,
        canife=lambda _value, claim: 0.5 * claim.noise_multiplier,
    ),
    Mechanism(
        "no-noise-on-a-share",
        "no noise on some coordinates, one layer's for instance",
        "share of the coordinates without noise",
        (0.0, 0.001, 0.01, 0.1, 0.5, 0.9),
        partial(_on_a_share, 0.0),
        lambda value, claim, runs, rng: _noise(value, (0.0, 1.0), claim, runs, rng),
        canife=lambda value, claim: math.sqrt(1.0 - value) * claim.noise_multiplier,
    ),
    Mechanism(
        "half-noise-on-a-share",
        "half the noise on some coordinates, one layer's for instance",
        "share of the coordinates with half the noise",
        (0.0, 0.001, 0.01, 0.1, 0.5, 0.9),
        partial(_on_a_share, 0.5),
        lambda value, claim, runs, rng: _noise(value, (0.5, 1.0), claim, runs, rng),
        canife=lambda value, claim: math.sqrt(1.0 - 0.75 * value) * claim.noise_multiplier,
    ),
    Mechanism(
        "low-rank",
        "noise of the claimed mean variance, all of it in one subspace, the same in every run",
        "the subspace's share of the dimensions",
        (1.0, 0.5, 0.1, 0.01, 0.001),
        low_rank,
        _draw_low_rank,
        canife=_mean_deviation,
    ),
    Mechanism(
        "unclipped",
        "one client that is not clipped, or counts several times",
        "norm of its vector, in clip norms",
        (1.0, 2.0, 10.0, 100.0),
        _longer,
        lambda value, claim, runs, rng: _beside_data(value, 1.0, claim, runs, rng),
        canife=_mean_deviation,
        distance=_data_distance,
    ),
    Mechanism(
        "memorised",
        "a model that memorises one rare example, and no random direction",
        "norm of the trace that it leaves, in clip norms",
        (0.0, 1.0, 3.0, 10.0),
        _memorised,
        lambda value, claim, runs, rng: _beside_data(1.0 + value, 1.0, claim, runs, rng),
        canife=_mean_deviation,
        distance=lambda value, claim: _data_distance(1.0 + value, claim),
    ),
    Mechanism(
        "released-outright",
        "a client's data released outright with a small probability",
        "that probability",
        (0.0, 1e-6, 9e-6, 1e-5, 1e-4, 1e-3),
        _outright,
        honest,
        canife=_mean_deviation,
        distance=unseen,
    ),
    Mechanism(
        "other-canaries",
        "the auditor's mistake: canaries longer or shorter than a client's vector, or taking part more or less often",
        "their norm, or number of rounds, as a multiple of a client's",
        (1.0, 0.1, 0.5, 2.0),
        _as_claimed,
        honest,
        weights=lambda value: np.full((1, 1), value),
    ),
)
