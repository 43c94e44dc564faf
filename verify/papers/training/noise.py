"""The noise Z(t) of Algorithms 2 and 3 of Andrew et al. (arXiv 2302.03098): independent, or correlated over rounds.

Correlated noise is Z = C⁻¹W, with the rows of W independent and C lower triangular (Denisov et al. 2022, arXiv
2202.08312). Prefix sums of the clipped updates X then have less noise. The release X + C⁻¹W = C⁻¹(CX + W) is C⁻¹ of a
Gaussian mechanism with independent noise, also where updates depend on earlier rounds. Each round's noise is
a pure function of seed and round: the rows of W that it needs are made again, so that no state has to be saved.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from canaryproof.kernels.arrays import Array
from canaryproof.kernels.refusals import checked_integer
from canaryproof.verify.audit.canaries.seeds import Purpose, Seed, generator


class Noise(Protocol):
    """Noise as a training loop and its accounting see it; a user's own noise needs no more."""

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of a coordinate of W per unit of the clip norm."""

    def sample(self, round: int, dim: int, clip_norm: float) -> NDArray[np.floating]:  # noqa: A002
        """Return the noise on a round's sum of updates, shape (dim,)."""

    def sensitivity(self, rounds: Sequence[int]) -> float:
        """Return how far one who takes part in these rounds can move CX, in clip norms."""


@dataclass(frozen=True)
class Independent:
    """Independent Gaussian noise in each round: the Gaussian mechanism."""

    noise_multiplier: float  # σ ≥ 0, the standard deviation of a coordinate per unit of the clip norm
    seed: Seed
    independent = True

    def __post_init__(self) -> None:
        _check_noise_multiplier(self.noise_multiplier)

    def sample(self, round: int, dim: int, clip_norm: float) -> Array:  # noqa: A002
        """Return the noise to add to a round's sum of clipped updates, shape (dim,)."""
        return self.noise_multiplier * clip_norm * _white(self.seed, round, dim)

    def sensitivity(self, rounds: Sequence[int]) -> float:
        """Return the norm of one's part in these rounds, in clip norms: √r for r rounds."""
        return math.sqrt(len(rounds))


class Factor(Protocol):
    """A factorisation for so many rounds, by the rows of C⁻¹."""

    @property
    def rounds(self) -> int:
        """Number of rounds."""

    def row(self, round: int) -> tuple[NDArray[np.int64], Array]:  # noqa: A002
        """Return where a row of C⁻¹ is not zero, no place twice and none after the round itself, and its values."""


@dataclass(frozen=True)
class SquareRoot:
    """C = A^(1/2) for the matrix A of prefix sums: C⁻¹ is Toeplitz with the coefficients of √(1 − x).

    Cut to a band, C⁻¹ costs that many rows of W a round, O(band·dim). C is then the inverse of the banded matrix
    (Kalinin et al. 2025, arXiv 2505.12128). Without, round t makes t + 1 rows anew, and a training O(rounds²·dim)
    normal numbers: some 3 minutes for 500 rounds of 10⁵ coordinates, four times that for twice the rounds.
    """

    rounds: int
    band: int | None = None  # number of diagonals of C⁻¹ that are kept; all if None

    def __post_init__(self) -> None:
        checked_integer("rounds", self.rounds, 1)
        if self.band is not None:
            checked_integer("band", self.band, 1)

    def row(self, round: int) -> tuple[NDArray[np.int64], Array]:  # noqa: A002
        """Return a row of C⁻¹, as in ``Factor``."""
        i = np.arange(min(round + 1, self.band or self.rounds), dtype=np.int64)
        # Coefficients (−1)^i·binom(1/2, i), each from the one before.
        ratios: Array = 1.0 - 1.5 / np.maximum(i, 1)
        ratios[0] = 1.0
        return round - i, np.cumprod(ratios, dtype=np.float64)


@dataclass(frozen=True)
class Tree:
    """Binary tree aggregation of DP-FTRL (Kairouz et al. 2021, arXiv 2103.00039): a prefix sum adds O(log t) nodes.

    Only those nodes of the full tree are kept that a prefix sum uses. One node ends with each round n = t + 1, counted
    from 1. It is the sum of the last 2^l rounds, where 2^l is the largest power of two that divides n. A round costs
    l + 1 rows of W, two on average.
    """

    rounds: int

    def __post_init__(self) -> None:
        checked_integer("rounds", self.rounds, 1)

    def row(self, round: int) -> tuple[NDArray[np.int64], Array]:  # noqa: A002
        """Return a row of C⁻¹, as in ``Factor``."""
        n = round + 1
        level = (n & -n).bit_length() - 1
        # The new node replaces the smaller ones that made up its sum but for this round.
        rows = [round, *(round - (1 << j) for j in range(level))]
        return np.array(rows, np.int64), np.array([1.0] + [-1.0] * level)


@dataclass(frozen=True)
class Correlated:
    """Noise Z = C⁻¹W, correlated over rounds; C⁻¹ must be lower triangular and invertible.

    Under a clip norm that changes, each round's noise scales with its own clip norm, which is the same mechanism on
    updates in units of the clip norm.
    """

    factor: Factor
    noise_multiplier: float  # of a coordinate of W, per unit of the clip norm
    seed: Seed

    def __post_init__(self) -> None:
        _check_noise_multiplier(self.noise_multiplier)
        for t in range(self.factor.rounds):
            rows, values = self.factor.row(t)
            if len(set(rows.tolist())) < len(rows) or not ((rows >= 0) & (rows <= t)).all():
                raise ValueError(f"factor: row {t} must have places from 0 to {t}, none twice")
            if not np.isfinite(values).all() or not values[rows == t].any():
                raise ValueError(f"factor: row {t} must be finite, and not zero at place {t}")

    def sample(self, round: int, dim: int, clip_norm: float) -> Array:  # noqa: A002
        """Return the noise of a round; arguments as for ``Independent``."""
        checked_integer("round", round, 0, self.factor.rounds - 1)
        total = np.zeros(dim)
        for row, value in zip(*(part.tolist() for part in self.factor.row(round)), strict=True):
            total += value * _white(self.seed, row, dim)
        return self.noise_multiplier * clip_norm * total

    def sensitivity(self, rounds: Sequence[int]) -> float:
        """Return how far one who takes part in these rounds can move CX, in clip norms.

        It is √Σ|⟨C_s, C_t⟩| over pairs of rounds, with C_t the columns. It is exact where no product is negative, as
        with the factors here, for equal updates are then the worst. Else it is an upper bound (Choquette-Choo et al.
        2022, arXiv 2211.06530).
        """
        return math.sqrt(self._products[np.ix_(rounds, rounds)].sum())

    @cached_property
    def _products(self) -> Array:
        """Absolute values of CᵀC."""
        inverse = np.zeros((self.factor.rounds, self.factor.rounds))
        for t, row in enumerate(inverse):
            columns, values = self.factor.row(t)
            row[columns] = values
        strategy = solve_triangular(inverse, np.eye(len(inverse)), lower=True)
        products: Array = np.abs(strategy.T @ strategy)
        return products


def _white(seed: Seed, row: int, dim: int) -> Array:
    return generator(seed, Purpose.NOISE, row).standard_normal(dim)


def _check_noise_multiplier(noise_multiplier: float) -> None:
    if not 0.0 <= noise_multiplier < math.inf:
        raise ValueError(f"noise_multiplier must be finite and not negative, not {noise_multiplier!r}")
