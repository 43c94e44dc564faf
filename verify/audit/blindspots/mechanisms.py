"""The atlas's mechanisms: the claim of each, its true ε, and the residual in which canaries are sought.

They release one vector or several, with normal noise, Laplace noise, or noise of finite precision.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, special

from canaryproof.kernels.arrays import Array, Singles
from canaryproof.kernels.certified import gaussian_mechanism


@dataclass(frozen=True)
class AtlasClaim:
    """The statement of noise and ε with which a model is released."""

    noise_multiplier: float  # Standard deviation σ of the noise on each coordinate, in units of the clip norm
    delta: float  # δ in (0, 1)
    dim: int  # Dimension d of the release

    @cached_property
    def epsilon(self) -> float:
        """Claimed ε: that of the Gaussian mechanism with the claimed noise, rounded up."""
        return gaussian_truth(self, 1.0).high


@dataclass(frozen=True)
class Truth:
    """ε of a mechanism at the claim's δ, for one client added or removed."""

    # low, high: proven lower and upper ends of ε, given the reason; both infinite if no ε serves.
    low: float
    high: float
    reason: str  # Its derivation in a few words


@dataclass(frozen=True)
class ReleaseResidual:
    """Noise and data of a release, without its canaries, up to a rotation of each part."""

    # dims: dimensions of the parts, such as layers, shape (parts,).
    dims: tuple[int, ...]

    # Inner products of the T released vectors' residuals on each part, shape (runs, parts, T, T), in units of the clip
    # norm squared.
    grams: Array

    @property
    def dim(self) -> int:
        """Dimension d of the release."""
        return sum(self.dims)

    @property
    def gram(self) -> Array:
        """Inner products of the residuals as a whole, shape (runs, T, T)."""
        return np.asarray(self.grams.sum(axis=1))

    def part(self, index: int) -> "ReleaseResidual":
        """Return the residual for canaries that are confined to one part."""
        return ReleaseResidual((self.dims[index],), self.grams[:, [index]])


@dataclass(frozen=True)
class Mechanism:
    """A mechanism with one parameter that leads from harmless to broken."""

    name: str  # Name, short and without spaces
    title: str  # Its fault
    parameter: str  # Meaning of the parameter
    values: tuple[float, ...]  # Values of the parameter, from harmless to broken
    truth: Callable[[float, AtlasClaim], Truth]  # ε of the mechanism, by parameter and claim

    # Draw residuals: parameter, claim, number of runs and source of randomness; None where there are ``scores``.
    draw: Callable[[float, AtlasClaim, int, np.random.Generator], ReleaseResidual] | None
    # Weight of a canary of each round in each released vector, shape (rounds, T), by parameter; a canary takes part in
    # one round.
    weights: Callable[[float], Array] = lambda _value: np.ones((1, 1))
    # Standard deviation of CANIFE's scores, whose means are 0 and 1, by parameter and claim; None where a single round
    # is not what is broken.
    canife: Callable[[float, AtlasClaim], float] | None = None
    # Draw scores of equally many observed and unobserved canaries, where they are no cosines of uniform directions. All
    # have the shape (runs, count). Arguments: parameter, claim, count, number of runs and source of randomness.
    scores: Callable[[float, AtlasClaim, int, int, np.random.Generator], tuple[Array, Array]] | None = None
    # Proven bound of the total variation between the laws of an audit's scores, with the fault and as claimed. It is
    # the most by which the probability of an alarm may rise. At 0, no function of the scores can notice the fault. It
    # is 1 where nothing is proven.
    distance: Callable[[float, AtlasClaim], float] = lambda _value, _claim: 1.0
    # Stated deviation of a round's noise, as a share of the claim's; with sampling it may be below 1.
    stated: Callable[[float], float] = lambda _value: 1.0

    def residual(self, value: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
        """Draw residuals; raise ``ValueError`` where canaries are no uniform directions."""
        if self.draw is None:
            raise ValueError(f"{self.name}: its canaries are no uniform directions")
        return self.draw(value, claim, runs, rng)


def gaussian_truth(claim: AtlasClaim, factor: float, reason: str = "Gaussian noise") -> Truth:
    """Return ε of the Gaussian mechanism with the claimed noise multiplier times a factor, certified."""
    if factor <= 0.0:
        return without_noise(reason)
    enclosures = [gaussian_mechanism.epsilon(claim.delta, z) for z in _around(claim.noise_multiplier * factor)]
    return Truth(min(enclosure.lo for enclosure in enclosures), max(enclosure.hi for enclosure in enclosures), reason)


def without_noise(reason: str) -> Truth:
    """Return the truth of a mechanism that reveals a client's presence with certainty: no ε serves at any δ < 1."""
    return Truth(math.inf, math.inf, reason)


def _around(value: float) -> tuple[float, float]:
    # The factor covers the rounding of a few operations.
    return value * (1.0 - 1e-14), value * (1.0 + 1e-14)


def single(dims: tuple[int, ...], squares: Array) -> ReleaseResidual:
    """Return the residuals of single releases from their squared norms on each part, shape (runs, parts)."""
    return ReleaseResidual(dims, squares[:, :, np.newaxis, np.newaxis])


# Mechanisms that release one vector, the clients' sum with noise, with one fault each.
#
# Neighbours differ by one client, whose vector has at most the clip norm 1. Let the noise be normal with covariance Σ.
# A client's vector x shifts the release by x, and ε is that of the Gaussian mechanism with σ = 1/√(xᵀΣ⁻¹x). The worst
# client's vector lies where there is the least noise. In a direction without noise, the release less the others' sum
# is zero exactly where that client is absent, so that no ε serves at any δ < 1.


def _noise(
    share: float, factors: tuple[float, float], claim: AtlasClaim, runs: int, rng: np.random.Generator
) -> ReleaseResidual:
    """Draw noise of two factors times the claimed deviation: on a share of the coordinates, and on the others."""
    first = round(share * claim.dim)
    parts = [(dim, factor) for dim, factor in zip((first, claim.dim - first), factors, strict=True) if dim > 0]
    squares = [(factor * claim.noise_multiplier) ** 2 * rng.chisquare(dim, runs) for dim, factor in parts]
    return single(tuple(dim for dim, _ in parts), np.stack(squares, axis=1))


def _with_data(norm: float, factor: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
    """Draw noise with a sum of data of some norm, in whatever direction."""
    sigma = factor * claim.noise_multiplier
    return single((claim.dim,), sigma**2 * rng.noncentral_chisquare(claim.dim, (norm / sigma) ** 2, (runs, 1)))


def honest(_value: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
    """Draw residuals of the Gaussian mechanism with the claimed noise and no data."""
    return _with_data(0.0, 1.0, claim, runs, rng)


def zero_variation(_value: float, _claim: AtlasClaim) -> float:
    """Return the total variation between the laws of scores where they are equal."""
    return 0.0


def _data_distance(norm: float, claim: AtlasClaim) -> float:
    """Bound the total variation between the laws of scores with and without data of some norm (blind_spots.md, 3)."""
    return min(1.0, norm**2 / (2.0 * claim.noise_multiplier**2 * math.sqrt(math.pi * claim.dim)))


def _less_noise(value: float, claim: AtlasClaim) -> Truth:
    return gaussian_truth(claim, value, "normal noise of the deviation that there is")


def _draw_dilution(value: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
    norm = math.sqrt(value * claim.dim) * claim.noise_multiplier
    return _with_data(norm, 0.5, claim, runs, rng)


def _on_a_share(factor: float, value: float, claim: AtlasClaim) -> Truth:
    if value == 0.0:
        return gaussian_truth(claim, 1.0)
    return gaussian_truth(claim, factor, "a client with all its weight on those coordinates")


def low_rank(value: float, claim: AtlasClaim) -> Truth:
    """Return the truth for noise in a subspace that is the same in every run, so that an attacker may know it.

    If the subspace were drawn again each time and kept secret, the noise would be rotation-invariant, and have an ε.
    """
    return gaussian_truth(claim, 1.0) if value == 1.0 else without_noise("a client across the noise's subspace")


def _draw_low_rank(value: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
    rank = max(1, round(value * claim.dim))
    # Any subspace, so that there are no parts.
    return single((claim.dim,), claim.noise_multiplier**2 / value * rng.chisquare(rank, (runs, 1)))


def _longer(value: float, claim: AtlasClaim) -> Truth:
    return gaussian_truth(claim, 1.0 / value, "the client whose vector is that long")


def _memorisation(value: float, claim: AtlasClaim) -> Truth:
    return gaussian_truth(claim, 1.0 / (1.0 + value), "the client with that example: its vector and the trace add up")


def _outright(value: float, claim: AtlasClaim) -> Truth:
    """Return the truth where a client's data are released with probability p, with the Gaussian mechanism's vector.

    That event distinguishes the neighbours with certainty, and without it they are the Gaussian mechanism's: δ(ε) = p +
    (1 − p)·δ_Gauss(ε). So ε at δ is the Gaussian's at (δ − p)/(1 − p), and none if p ≥ δ.
    """
    if value >= claim.delta:
        return without_noise("data are released with a probability of at least δ")
    # The rounding here moves ε by less than the rounding that is allowed for in σ.
    left = (claim.delta - value) / (1.0 - value)
    return gaussian_truth(
        AtlasClaim(claim.noise_multiplier, left, claim.dim), 1.0, "δ less the probability of a release"
    )


def _known_divisor(value: float, claim: AtlasClaim) -> Truth:
    """Return the truth where the divisor is known, and so the sum and the noisy number of clients.

    A client adds 1 to that number, whose noise has the deviation τ: it moves both by √(1/σ² + 1/τ²) deviations.
    """
    if value == 0.0:
        return without_noise("the number of clients has no noise")
    factor = 1.0 / math.sqrt(1.0 + (claim.noise_multiplier / value) ** 2)
    return gaussian_truth(claim, factor, "the sum and the number tell of a client together")


def _claimed_truth(_value: float, claim: AtlasClaim) -> Truth:
    return gaussian_truth(claim, 1.0, "clients are treated as claimed")


def _mean_deviation(_value: float, claim: AtlasClaim) -> float:
    return claim.noise_multiplier


_SINGLE_RELEASE = (
    Mechanism(
        "less-noise",
        "less noise than claimed, on all coordinates",
        "deviation of the noise, as a share of the claimed",
        (1.0, 0.9, 0.75, 0.5, 0.25),
        _less_noise,
        lambda value, claim, runs, rng: _with_data(0.0, value, claim, runs, rng),
        canife=lambda value, claim: value * claim.noise_multiplier,
    ),
    Mechanism(
        "dilution",
        "half the claimed noise, beside data vectors that point the same way",
        "‖Σx‖²/(σ²d) of the data, with the claimed σ",
        (0.0, 0.25, 1.0, 4.0, 16.0),
        lambda _value, claim: gaussian_truth(claim, 0.5, "normal noise of half the claimed deviation"),
        _draw_dilution,
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
        lambda value, claim, runs, rng: _with_data(value, 1.0, claim, runs, rng),
        canife=_mean_deviation,
        distance=_data_distance,
    ),
    Mechanism(
        "memorised",
        "a model that memorises one rare example, and no random direction",
        "norm of the trace that it leaves, in clip norms",
        (0.0, 1.0, 3.0, 10.0),
        _memorisation,
        lambda value, claim, runs, rng: _with_data(1.0 + value, 1.0, claim, runs, rng),
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
        distance=zero_variation,
    ),
    Mechanism(
        "normalised-after-noise",
        "the noised sum is divided by the number of clients, and the divisor can be known",
        "deviation of the noise on that number",
        (math.inf, 10.0, 3.0, 1.0, 0.0),
        _known_divisor,
        # A cosine does not depend on a vector's length.
        honest,
        canife=_mean_deviation,
        distance=zero_variation,
    ),
    Mechanism(
        "other-canaries",
        "the auditor's mistake: canaries longer or shorter than a client's vector, or taking part more or less often",
        "their norm, or number of rounds, as a multiple of a client's",
        (1.0, 0.1, 0.5, 2.0),
        _claimed_truth,
        honest,
        weights=lambda value: np.full((1, 1), value),
    ),
)


# Mechanisms of several rounds, in which each client and each canary takes part once.
#
# Where all rounds are released, the adversary has T vectors whose noise is normal with covariance C ⊗ I. A client of
# round t shifts the t-th by its vector, and ε is that of the Gaussian mechanism with σ = 1/√((C⁻¹)ₜₜ), the largest over
# t. Where only the final iterate is released, the last round's client is the worst, as nothing contracts its vector.


_ROUNDS = 10


def _wishart(covariance: Array, dim: int, runs: int, rng: np.random.Generator) -> Array:
    """Draw Gram matrices of normal vectors in ℝᵈ, by Bartlett's decomposition, shape (runs, T, T)."""
    size, free = len(covariance), min(len(covariance), dim)
    factor = np.tril(rng.standard_normal((runs, size, free)), -1)
    diagonal = np.arange(free)
    factor[:, diagonal, diagonal] = np.sqrt(rng.chisquare(dim - diagonal, (runs, free)))
    rows = linalg.cholesky(covariance, lower=True) @ factor
    return np.asarray(rows @ rows.swapaxes(1, 2))


def _reuse(value: float, claim: AtlasClaim) -> Truth:
    if value == 1.0:
        return gaussian_truth(claim, 1.0)
    return without_noise("the difference of two rounds has no noise")


def _draw_reuse(value: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
    square = claim.noise_multiplier**2 * rng.chisquare(claim.dim, (runs, 1, 1, 1))
    return ReleaseResidual((claim.dim,), np.broadcast_to(square, (runs, 1, int(value), int(value))))


def _covariance(value: float) -> Array:
    return np.asarray(linalg.toeplitz(value ** np.arange(_ROUNDS)))


def _correlation(value: float, claim: AtlasClaim) -> Truth:
    """Return the truth by (C⁻¹)ₜₜ = (1 + φ²)/(1 − φ²) of a stationary autoregression, in all rounds but both ends."""
    factor = float(np.sqrt((1.0 - value**2) / (1.0 + value**2)))
    return gaussian_truth(claim, factor, "the noise that other rounds do not tell")


def _draw_correlation(value: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
    grams = _wishart(claim.noise_multiplier**2 * _covariance(value), claim.dim, runs, rng)
    return ReleaseResidual((claim.dim,), grams[:, np.newaxis])


def _draw_low_rank_rounds(value: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
    rank = max(1, round(value * claim.dim))
    grams = _wishart(claim.noise_multiplier**2 / value * np.eye(_ROUNDS), rank, runs, rng)
    return ReleaseResidual((claim.dim,), grams[:, np.newaxis])


def _total_squared_weight(value: float) -> float:
    """Return Σ_t value^(2t) over the rounds."""
    return float((value ** (2 * np.arange(_ROUNDS))).sum())


def _contraction(value: float, claim: AtlasClaim) -> Truth:
    return gaussian_truth(
        claim, float(np.sqrt(_total_squared_weight(value))), "the last round's client, under the noise of all"
    )


def _draw_contraction(value: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
    square = claim.noise_multiplier**2 * _total_squared_weight(value) * rng.chisquare(claim.dim, (runs, 1, 1, 1))
    return ReleaseResidual((claim.dim,), square)


# Noise of each of T rounds, as a share of that of a single round, with which Poisson sampling at rate 1/T has ε = 3 at
# δ = 1e-5. It is computed by privacy loss distributions, and rounded up.
_SAMPLED = {1: 1.0, 3: 0.939, 10: 0.703, 30: 0.561}


def sampled_share(value: float) -> float:
    """Return a round's share of the noise for any number of rounds, interpolated in the table."""
    return float(np.interp(math.log(value), [math.log(rounds) for rounds in _SAMPLED], list(_SAMPLED.values())))


def _fixed_batches(value: float, claim: AtlasClaim) -> Truth:
    return gaussian_truth(claim, sampled_share(value), "the client of a round that is known, without amplification")


def _draw_fixed_batches(value: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
    sigma = sampled_share(value) * claim.noise_multiplier
    return ReleaseResidual((claim.dim,), _wishart(sigma**2 * np.eye(int(value)), claim.dim, runs, rng)[:, np.newaxis])


_SEVERAL_RELEASES = (
    Mechanism(
        "reused-noise",
        "the same noise in every round",
        "number of rounds",
        (1.0, 2.0, 10.0),
        _reuse,
        _draw_reuse,
        weights=lambda value: np.eye(int(value)),
        canife=lambda value, claim: claim.noise_multiplier if value == 1.0 else 0.0,
    ),
    Mechanism(
        "correlated-noise",
        f"noise of {_ROUNDS} rounds correlated, as an autoregression, where independent noise is claimed",
        "correlation of two rounds in sequence",
        (0.0, 0.5, 0.9, 0.99),
        _correlation,
        _draw_correlation,
        weights=lambda _value: np.eye(_ROUNDS),
        canife=lambda _value, claim: claim.noise_multiplier,
    ),
    Mechanism(
        "low-rank-rounds",
        f"noise of the claimed mean variance, all of it in one subspace, the same in all of {_ROUNDS} rounds",
        "the subspace's share of the dimensions",
        (1.0, 0.5, 0.1, 0.01, 0.001),
        low_rank,
        _draw_low_rank_rounds,
        weights=lambda _value: np.eye(_ROUNDS),
        canife=lambda _value, claim: claim.noise_multiplier,
    ),
    Mechanism(
        "fixed-batches",
        "fixed batches, each client in one of them, where the accountant assumes Poisson sampling",
        "number of rounds in an epoch",
        (1.0, 3.0, 10.0, 30.0),
        _fixed_batches,
        _draw_fixed_batches,
        weights=lambda value: np.eye(int(value)),
        stated=sampled_share,
    ),
    Mechanism(
        "final-iterate",
        f"nothing: the final iterate of {_ROUNDS} rounds of a linear model, which each step contracts",
        "contraction of a step",
        (0.0, 0.5, 0.9, 1.0),
        _contraction,
        _draw_contraction,
        weights=lambda value: np.asarray(value ** np.arange(_ROUNDS, dtype=np.float64))[::-1, np.newaxis],
    ),
)


# Laplace noise, with canaries on the ℓ₁ sphere, as the authors' answers in the reviews of Andrew et al. suggest.
#
# Clients' vectors have ℓ₁ norm at most 1, and each coordinate of their sum gets Laplace noise of scale b. The worst
# client has one coordinate (blind_spots.md, 4), and δ(ε) = 1 − exp((ε − 1/b)/2) up to ε = 1/b. A uniform direction of
# the ℓ₁ sphere in m coordinates has the Euclidean norm √(2/m), and noise in its direction has the deviation b√2. So a
# canary raises its score by 1/(b√m) deviations, which is next to nothing in all d coordinates.
#
# The claim is the scale at which ε is that of the claimed Gaussian noise. A score is a canary's inner product with the
# release over the canary's norm, and unobserved canaries are the null.


# With more coordinates, the noise in a canary's direction is normal to leading order.
_MOST = 100
# Share of the claimed noise where the canaries' spread is the parameter.
_HALF = 0.5


def claimed_scale(claim: AtlasClaim) -> float:
    """Return the scale b of Laplace noise whose ε at δ is the claimed one."""
    return 1.0 / (claim.epsilon - 2.0 * math.log1p(-claim.delta))


def _laplace_truth(share: float, claim: AtlasClaim) -> Truth:
    """Return 1/b + 2 log(1 − δ), a few roundings to either side."""
    epsilon = 1.0 / (share * claimed_scale(claim)) + 2.0 * math.log1p(-claim.delta)
    return Truth(
        max(0.0, epsilon * (1.0 - 1e-14)), max(0.0, epsilon * (1.0 + 1e-14)), "a client with a single coordinate"
    )


def _along(spread: int, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw norms of canaries of a few coordinates, and noise of scale 1 along them."""
    sizes = rng.standard_exponential((count, spread))
    squares = sizes * sizes
    total = squares.sum(axis=1)
    # A Laplace variable is normal with twice an exponential variance, so that a sum of many needs one normal variable.
    squares *= rng.standard_exponential((count, spread))
    noise = rng.standard_normal(count) * np.sqrt(2.0 * squares.sum(axis=1) / total)
    return np.sqrt(total) / sizes.sum(axis=1), noise


def laplace_scores(
    spread: int, scale: float, dim: int, count: int, runs: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw scores of equally many observed and unobserved canaries, shapes (runs, count), to leading order in 1/d.

    A canary is a uniform direction of the ℓ₁ sphere in ``spread`` coordinates, chosen at random; noise has the scale b.
    """
    # Deviation of the other canaries, whose mean square norm is 2/(m + 1), in a canary's direction.
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


def _everywhere(
    value: float, claim: AtlasClaim, count: int, runs: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    return laplace_scores(claim.dim, value * claimed_scale(claim), claim.dim, count, runs, rng)


def _somewhere(value: float, claim: AtlasClaim, count: int, runs: int, rng: np.random.Generator) -> tuple[Array, Array]:
    return laplace_scores(min(int(value), claim.dim), _HALF * claimed_scale(claim), claim.dim, count, runs, rng)


_LAPLACE = (
    Mechanism(
        "laplace",
        "less Laplace noise than claimed, with canaries anywhere on the ℓ₁ sphere",
        "scale of the noise, as a share of the claimed",
        (1.0, 0.5, 0.1, 0.01),
        _laplace_truth,
        None,
        scores=_everywhere,
    ),
    Mechanism(
        "laplace-spread",
        "half the claimed Laplace noise, with canaries on the ℓ₁ sphere of some coordinates",
        "number of coordinates of a canary",
        (1.0, 3.0, 10.0, 100.0, 10_000.0),
        lambda _value, claim: _laplace_truth(_HALF, claim),
        None,
        scores=_somewhere,
    ),
)


# Noise of finite precision, which the reviews of Andrew et al. name as a fault that no such audit can see.
#
# Noise that takes finitely many values, added exactly to the release, leaves no ε at any δ < 1. There are finitely many
# differences of two of its values, and some vector of the unit ball is none of them. With a client who has that vector,
# and without, the possible releases are disjoint sets. This holds for every generator of 2^b states, and for
# coordinates made of b-bit uniforms. An attack takes 2^b trials of a generator. It is cheap where single coordinates
# are coarse (Mironov 2012), even if the sum is rounded to float32 (``are_impossible_alone``). Rounding the release of a
# mechanism with an ε is harmless, as an attacker could round it, too.


def _sum(vector: ArrayLike, sigma: float, quantile: Array) -> Singles:
    """Add noise to a vector in single precision: the noise, its product with σ, and the sum are rounded."""
    noise = np.float32(sigma) * quantile.astype(np.float32)
    return np.asarray(np.asarray(vector, dtype=np.float32) + noise)


def coarse_release(vector: ArrayLike, bits: int, sigma: float, rng: np.random.Generator, runs: int) -> Singles:
    """Release a vector in single precision, with noise made of b-bit uniforms, b ≤ 24; shape (runs, d)."""
    size = 2**bits
    index = rng.integers(0, size, (runs, np.size(vector)))
    return _sum(vector, sigma, np.asarray(special.ndtri((index + 0.5) / size)))


def are_possible(releases: Singles, vector: ArrayLike, bits: int, sigma: float) -> NDArray[np.bool_]:
    """Tell for each coordinate of releases whether some uniform leads there from a vector; a few are tried."""
    size = 2**bits
    start = np.asarray(vector, dtype=np.float64)
    nearest = np.floor(special.ndtr((releases - start) / sigma) * size)
    # The quantile, the product and the sum have relative errors up to 2^-24; the density turns these into uniforms.
    reach = math.ceil(2.0 ** (bits - 24) * (1.0 + float(np.abs(start).max()) / sigma)) + 1
    result = np.zeros(releases.shape, dtype=np.bool_)
    for step in range(-reach, reach + 1):
        index = np.clip(nearest + step, 0, size - 1)
        result |= _sum(start, sigma, np.asarray(special.ndtri((index + 0.5) / size))) == releases
    return result


def are_impossible_alone(releases: Singles, others: ArrayLike, bits: int, sigma: float) -> NDArray[np.bool_]:
    """Attack releases, one a row: tell where the other clients' sum alone cannot give the release. It never errs."""
    return np.asarray(~are_possible(releases, others, bits, sigma).all(axis=-1))


# Number of a tail's terms that are added one by one.
_TAIL = 2**14


@cache
def _square_moments(bits: int) -> tuple[float, float]:
    """Return mean and variance of a coordinate's square, for deviation 1."""
    size = 2**bits
    ends = min(size // 2, _TAIL)
    square = special.ndtri((np.arange(ends) + 0.5) / size) ** 2
    mean, fourth = 2.0 * square.sum() / size, 2.0 * (square**2).sum() / size
    if ends < size // 2:
        # Between the tails the sum is an integral to 1e-12: ∫x²φ and ∫x⁴φ from −z to z.
        z = -float(special.ndtri(ends / size))
        inside, density = 1.0 - 2.0 * ends / size, math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        mean += inside - 2.0 * z * density
        fourth += 3.0 * inside - 2.0 * (z**3 + 3.0 * z) * density
    return float(mean), float(fourth - mean**2)


def _draw_coarse(value: float, claim: AtlasClaim, runs: int, rng: np.random.Generator) -> ReleaseResidual:
    """Draw squared norms with the right mean and variance from a gamma law, exact for noise of full precision."""
    if math.isinf(value):
        return honest(value, claim, runs, rng)
    mean, variance = _square_moments(int(value))
    squares = rng.gamma(claim.dim * mean**2 / variance, variance / mean, (runs, 1))
    return single((claim.dim,), claim.noise_multiplier**2 * squares)


def _finite(value: float, claim: AtlasClaim) -> Truth:
    if math.isinf(value):
        return gaussian_truth(claim, 1.0, "noise with a density, at most rounded afterwards")
    return without_noise("finitely many values, and other ones with the client")


_FINITE_NOISE = (
    Mechanism(
        "few-states",
        "noise of a generator with few states",
        "bits of its state",
        (math.inf, 64.0, 32.0, 16.0, 0.0),
        _finite,
        # The generator's table of noise vectors is itself a draw, and so is each of its vectors.
        honest,
        canife=lambda value, claim: claim.noise_multiplier if value > 0.0 else 0.0,
        distance=zero_variation,
    ),
    Mechanism(
        "coarse-noise",
        "noise of the granularity of single precision, or coarser",
        "bits of the uniform behind a coordinate of the noise",
        (math.inf, 24.0, 16.0, 8.0, 4.0, 2.0),
        _finite,
        _draw_coarse,
        canife=lambda _value, claim: claim.noise_multiplier,
    ),
)


# All mechanisms by name.


MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism for mechanism in (*_SINGLE_RELEASE, *_SEVERAL_RELEASES, *_FINITE_NOISE, *_LAPLACE)
}
