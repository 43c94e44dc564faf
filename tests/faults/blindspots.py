"""Faults of the atlas: of its truths, of the scores that it draws, and of its diagnostics."""

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy import special

from tests.faults.fault import Fault, Function

_VERIFY = "canaryproof.verify"


def _fault(name: str, description: str, target: str, make: Callable[[Function], Function], *checks: str) -> Fault:
    own = tuple(f"blindspots.{check}" for check in checks)
    return Fault(f"blindspots.{name}", description, f"{_VERIFY}.{target}", make, own)


FAULTS = (
    _fault(
        "odds",
        "the probability of a release is taken for its odds",
        "audit.blindspots.mechanisms:_outright",
        lambda f: lambda value, claim: f(value / (1.0 + value), claim),
        "truth.released-outright",
    ),
    _fault(
        "first-round",
        "the client of the last round for that of one in the middle",
        "audit.blindspots.mechanisms:_correlation",
        lambda f: lambda value, claim: f(value / np.sqrt(2.0 - value**2), claim),
        "truth.correlated-noise",
    ),
    _fault(
        "known-subspace",
        "noise of low rank counts as noise of its mean variance",
        "audit.blindspots.mechanisms:low_rank",
        lambda f: lambda _value, claim: f(1.0, claim),
        "truth.low-rank",
        "truth.low-rank-rounds",
    ),
    _fault(
        "twice-the-delta",
        "claim and truth of Laplace noise at twice the δ",
        "audit.blindspots.mechanisms:_laplace_truth",
        lambda f: lambda share, claim: f(share, dataclasses.replace(claim, delta=2.0 * claim.delta)),
        "truth.laplace",
    ),
    _fault(
        "shared-rest",
        "the canaries' Gram matrix off the residuals' plane has one degree of freedom too many",
        "papers.suites.atlas:_directions",
        lambda f: lambda count, dim, axes, rng: f(count, dim + 60, axes, rng),
        "scores.correlated-noise",
        "scores.reused-noise",
    ),
    _fault(
        "one-root",
        "eigenvalues of the Gram matrix for their roots",
        "audit.blindspots.ranges:square_root",
        lambda f: lambda gram: f(gram @ gram),
        "scores.reused-noise",
    ),
    _fault(
        "one-rank",
        "the rounds' noise of low rank fills all dimensions",
        "audit.blindspots.mechanisms:_wishart",
        lambda f: lambda covariance, dim, runs, rng: f(covariance * dim / 300.0, 300, runs, rng),
        "scores.residuals",
    ),
    _fault(
        "own-norm",
        "a canary of the ℓ₁ sphere is as long as one with a single coordinate",
        "audit.blindspots.mechanisms:_along",
        lambda f: lambda spread, count, rng: (np.ones(count), f(spread, count, rng)[1]),
        "scores.laplace.m30",
    ),
    _fault(
        "no-bonferroni",
        "the smallest p-value of the parts as it is",
        "audit.blindspots.diagnostics:part_norms_p_value",
        lambda f: lambda squares, sigma, dims: f(squares, sigma, dims) / len(dims),
        "diagnostics.level",
    ),
    _fault(
        "no-data",
        "data that are alike in every round count as noise",
        "audit.blindspots.diagnostics:rounds_p_value",
        lambda f: lambda gram, sigma, dim, _data_norm=0.0: f(gram, sigma, dim),
        "diagnostics.data",
    ),
    _fault(
        "sum-for-norm",
        "the norm's test has the degrees of freedom of a single round",
        "audit.blindspots.diagnostics:norm_p_value",
        lambda f: lambda square, sigma, dim: f(square, sigma, dim - 4),
        "diagnostics.level",
    ),
    _fault(
        "fisher",
        "two degrees of freedom too many in Fisher's sum over the rounds",
        "audit.blindspots.diagnostics:rounds_p_value",
        lambda f: (
            lambda gram, sigma, dim, *rest: (
                lambda p, free: special.chdtrc(free + 2.0, special.chdtri(free, np.maximum(p, 1e-300)))
            )(f(gram, sigma, dim, *rest), 2.0 * (np.shape(gram)[-1] - 1))
        ),
        "diagnostics.level",
        "diagnostics.power",
    ),
    _fault(
        "noncentrality",
        "the noncentrality without its square",
        "audit.blindspots.diagnostics:rounds_p_value",
        lambda f: lambda gram, sigma, dim, data_norm=0.0: f(gram, sigma, dim, np.sqrt(data_norm * sigma)),
        "diagnostics.data",
    ),
)
