"""Laplace noise, with canaries on the ℓ₁ sphere, as the authors' answers in the reviews of Andrew et al. suggest.

Clients' vectors have ℓ₁ norm at most 1, and each coordinate of their sum gets Laplace noise of scale b. The worst
client has one coordinate (blind_spots.md, 4), and δ(ε) = 1 − exp((ε − 1/b)/2) up to ε = 1/b. A uniform direction of the
ℓ₁ sphere in m coordinates has the Euclidean norm √(2/m), and noise in its direction the deviation b√2: what such a
canary adds to its score is 1/(b√m) deviations, and in all d coordinates next to nothing.

What is claimed is the scale at which ε is that of the claimed Gaussian noise. A score is a canary's inner product with
the release, over the canary's norm, and unobserved canaries are the null.
"""

import math

import numpy as np

from canaryproof.verify.blindspots.mechanism import Array, Claim, Mechanism, Truth

# Beyond so many coordinates, the noise in a canary's direction is normal, to leading order.
_MOST = 100
# Share of the claimed noise where the canaries' spread changes.
_HALF = 0.5


def claimed_scale(claim: Claim) -> float:
    """Return the scale b of Laplace noise whose ε at δ is the claimed one."""
    return 1.0 / (claim.epsilon - 2.0 * math.log1p(-claim.delta))


def _truth(share: float, claim: Claim) -> Truth:
    """Return 1/b + 2 log(1 − δ), a few roundings to either side."""
    epsilon = 1.0 / (share * claimed_scale(claim)) + 2.0 * math.log1p(-claim.delta)
    return Truth(
        max(0.0, epsilon * (1.0 - 1e-14)), max(0.0, epsilon * (1.0 + 1e-14)), "a client with a single coordinate"
    )


def _along(spread: int, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw norms of canaries of a few coordinates, and noise of scale 1 along them."""
    sizes = rng.standard_exponential((count, spread))
    squares = (sizes**2).sum(axis=1)
    noise = (sizes * rng.laplace(size=(count, spread))).sum(axis=1)
    return np.sqrt(squares) / sizes.sum(axis=1), noise / np.sqrt(squares)


def scores(spread: int, scale: float, dim: int, count: int, runs: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw scores of as many observed as unobserved canaries, independently of each other, to leading order in 1/d.

    Parameters
    ----------
    spread
        Number m of coordinates, chosen at random, among which a canary is a uniform direction of the ℓ₁ sphere.
    scale
        Scale b of the Laplace noise.
    dim
        Dimension d of the release.
    count
        Number k of observed canaries.
    runs
        Number of runs.
    rng
        Source of randomness.

    Returns
    -------
    Observed and unobserved scores, of shape (runs, count) each.
    """
    # Of the other canaries, of mean square norm 2/(m + 1), in a canary's direction.
    others = math.sqrt((count - 1) * 2.0 / ((spread + 1) * dim))
    if spread > _MOST:
        both = math.hypot(math.sqrt(2.0) * scale, others) * rng.standard_normal((runs, 2, count))
        both[:, 0] += math.sqrt(2.0 / (spread + 1))
        return both[:, 0], both[:, 1]
    both = np.empty((runs, 2, count))
    for run in both:
        norms, noise = _along(spread, 2 * count, rng)
        run[:] = (scale * noise).reshape(2, count)
        run[0] += norms[:count]
    both += others * rng.standard_normal(both.shape)
    return both[:, 0], both[:, 1]


def _everywhere(value: float, claim: Claim, count: int, runs: int, rng: np.random.Generator) -> tuple[Array, Array]:
    return scores(claim.dim, value * claimed_scale(claim), claim.dim, count, runs, rng)


def _somewhere(value: float, claim: Claim, count: int, runs: int, rng: np.random.Generator) -> tuple[Array, Array]:
    return scores(min(int(value), claim.dim), _HALF * claimed_scale(claim), claim.dim, count, runs, rng)


MECHANISMS = (
    Mechanism(
        "laplace",
        "less Laplace noise than claimed, with canaries anywhere on the ℓ₁ sphere",
        "scale of the noise, as a share of the claimed",
        (1.0, 0.5, 0.1, 0.01),
        _truth,
        None,
        scores=_everywhere,
    ),
    Mechanism(
        "laplace-spread",
        "half the claimed Laplace noise, with canaries on the ℓ₁ sphere of some coordinates",
        "number of coordinates of a canary",
        (1.0, 3.0, 10.0, 100.0, 10_000.0),
        lambda _value, claim: _truth(_HALF, claim),
        None,
        scores=_somewhere,
    ),
)
