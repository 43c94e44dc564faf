"""The attack: scores of canaries in rounds with the model frozen (Sections 3.2 and 3.4).

A trial's aggregate is the sum of a cohort's clipped updates, the canaries' that take part, and Gaussian noise of
deviation σC in each coordinate. A canary's score ⟨u_c, aggregate⟩ depends on all of them only by inner products, so
that nothing of the model's dimension is needed: the noise's part is N(0, σ²C²‖u_c‖²) exactly.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Array


@dataclass(frozen=True)
class Response:
    """Inner products of canaries' clipped updates with the clients' and with each other."""

    products: Array  # ⟨u_c, uᵢ⟩, shape (canaries, clients)
    gram: Array  # ⟨u_c, u_c'⟩, shape (canaries, canaries)


@dataclass(frozen=True)
class TrialRound:
    """A round of training."""

    cohort: int  # clients in a trial, drawn without replacement; canaries not counted
    noise_multiplier: float  # σ: the noise has deviation σC in each coordinate
    clip_norm: float = 1.0
    poisson: bool = False  # each client takes part by a coin of its own, and ``cohort`` is the expected number


@dataclass(frozen=True)
class TrialScores:
    """Scores of an attack, and whether the canary took part; shape (trials, canaries)."""

    values: Array
    inserted: NDArray[np.bool_]

    def of(self, canary: int = 0) -> tuple[Array, Array]:
        """Return one canary's scores with it and without it."""
        values, inserted = self.values[:, canary], self.inserted[:, canary]
        return values[inserted], values[~inserted]


def coins(trials: int, canaries: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Insert each canary into each trial with probability one half (Section 3.4)."""
    return rng.random((trials, canaries)) < 0.5


def halves(trials: int, canaries: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Insert each canary into exactly half of the trials (Section 4.1), rounded down, at random."""
    return rng.permuted(np.arange(trials)[:, None] % 2 == np.ones(canaries), axis=0)


def attack(
    response: Response, inserted: NDArray[np.bool_], mechanism: TrialRound, rng: np.random.Generator
) -> TrialScores:
    """Draw the scores of trials, with exactly the law of those that Algorithm 1 computes from whole aggregates."""
    cohorts, noise = rng.spawn(2)
    if mechanism.poisson:
        clients = _poisson_sums(response.products, mechanism.cohort, len(inserted), cohorts)
    else:
        chosen = _cohorts(response.products.shape[1], mechanism.cohort, len(inserted), cohorts)
        clients = response.products[:, chosen].sum(axis=2).T
    return scored(clients, response.gram, inserted, mechanism.noise_multiplier * mechanism.clip_norm, noise)


def scored(
    clients: Array, gram: Array, inserted: NDArray[np.bool_], deviation: float, rng: np.random.Generator
) -> TrialScores:
    """Draw the scores of trials for given sums of ⟨u_c, uᵢ⟩ over a trial's clients, shape (trials, canaries)."""
    # Projections of white noise on the canaries have the Gram matrix as covariance.
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return TrialScores(clients + inserted @ gram + deviation * rng.normal(size=inserted.shape) @ root.T, inserted)


def accuracy(observed: Array, unobserved: Array) -> float:
    """Return the largest share of scores that a threshold gets right, the paper's calibrated attack accuracy."""
    thresholds = np.append(np.concatenate([observed, unobserved]), math.inf)
    hits = len(observed) - np.searchsorted(np.sort(observed), thresholds)
    right = hits + np.searchsorted(np.sort(unobserved), thresholds)
    return float(right.max() / (len(observed) + len(unobserved)))


def _poisson_sums(products: Array, cohort: int, trials: int, rng: np.random.Generator) -> Array:
    """Add ⟨u_c, uᵢ⟩ over each trial's clients, of whom a Poisson sample takes part; shape (trials, canaries)."""
    clients = products.shape[1]
    numbers = rng.binomial(clients, cohort / clients, trials)
    # In a random order, the first clients are a sample of so many.
    chosen = _cohorts(clients, int(numbers.max(initial=0)), trials, rng)
    taking_part = np.arange(chosen.shape[1]) < numbers[:, None]
    return np.asarray((products[:, chosen] * taking_part).sum(axis=2).T)


def _cohorts(clients: int, cohort: int, trials: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw each trial's clients without replacement, shape (trials, cohort)."""
    if not 0 <= cohort <= clients:
        raise ValueError(f"cohort must be from 0 to the number of mock clients, {clients}, not {cohort}")
    chosen = rng.integers(np.arange(cohort), clients, size=(trials, cohort))
    _shuffle(np.arange(clients), chosen)
    return chosen


@njit(cache=True)
def _shuffle(order: Any, chosen: Any) -> None:
    """Turn the positions that numbers are swapped with into the numbers there: Fisher and Yates's shuffle.

    The shuffle ends after a row's length. The next row goes on from the order that the last one left.
    """
    for row in chosen:
        for i in range(len(row)):
            other = row[i]
            row[i] = order[other]
            order[other] = order[i]
            order[i] = row[i]


@dataclass(frozen=True)
class ScoreLaw:
    """Law of a canary's scores.

    Given the cohort, both kinds of scores are exactly Gaussian with deviation ``noise``, and ``shift`` apart. Over
    random cohorts the clients' part adds its variance; it is Gaussian only nearly.
    """

    shift: float  # ‖u_c‖², by which the canary moves its score
    noise: float  # σC‖u_c‖
    mean: float  # of the clients' part over cohorts; 0 for a canary that is orthogonal to all
    clients: float  # deviation of the clients' part

    @property
    def deviation(self) -> float:
        """Deviation of the scores of either kind over cohorts and noise."""
        return math.hypot(self.noise, self.clients)

    def epsilon(self, delta: float) -> float:
        """ε that unlimited scores would show: of Gaussians of this deviation at this distance."""
        if not self.shift:
            # A canary without an update never shows.
            return 0.0
        return float(gaussian_mechanism.epsilon(delta, self.deviation / self.shift)) if self.deviation else math.inf


def score_law(response: Response, mechanism: TrialRound, canary: int = 0) -> ScoreLaw:
    """Compute the law of a canary's scores where no other canary is inserted."""
    products, squared = response.products[canary], float(response.gram[canary, canary])
    count, cohort = len(products), mechanism.cohort
    if cohort >= count:
        spread = 0.0
    else:
        # The sum of a Poisson sample also varies by how many there are in it; else of a sample without replacement.
        each = math.sqrt(np.mean(products**2)) if mechanism.poisson else products.std(ddof=1)
        spread = each * math.sqrt(cohort * (1.0 - cohort / count))
    noise = mechanism.noise_multiplier * mechanism.clip_norm * math.sqrt(squared)
    return ScoreLaw(squared, noise, cohort * float(products.mean()), float(spread))
