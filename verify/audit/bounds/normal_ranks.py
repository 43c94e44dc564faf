"""The rank test of normal scores, by which observed scores are higher than unobserved ones by more than μ.

Among all pairs of laws whose half-lines obey μ-GDP, the pair N(μ, 1) and N(0, 1) has stochastically the largest sum of
the observed scores' normal scores (``proofs_check/lower_bounds.md``). The law of the sum for that pair is simulated.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Array, Ints
from canaryproof.verify.audit.bounds.lower_bound import ScoreSample, cached_table

Floats = NDArray[np.float32]

# Draws of a table, and the chance that they give too small a critical value. Twice as many draws raise the mean bound
# from 200 scores by about 1%.
_DRAWS, _TOO_SMALL = 64_000, 0.01
# The most scores of a kind that are looked at, by declared ranks. Half as many lower it by about 1%.
_RANKS = 100
# Ends of the blocks of μ, in standard deviations of a difference of means. They lower a bound by half a block.
_STEP = 1.0 / 48.0
# Normal scores are rounded to multiples of this number, so that their sums are exact, and the same on every machine.
_UNIT = 2.0**-20
# Names the draws among all that this package makes.
_PURPOSE = 89


def declared_ranks(count: int) -> Ints:
    """Return ranks of the highest score on, in about equal steps of their normal scores: all of up to 100."""
    if count <= _RANKS:
        return np.arange(1, count + 1)
    end = float(special.ndtri(0.5 / count))
    ranks = np.rint(count * special.ndtr(np.linspace(end, -end, _RANKS)))
    return np.unique(np.clip(ranks, 1, count).astype(np.int64))


@cached_table
def _weights(count: int, null_count: int) -> Array:
    """Return what an observed score adds, by its place and the number of declared unobserved ones at or above it.

    It is the normal score of its rank among all, as far as declared ranks show it, times the number of observed scores
    that it stands for.
    """
    own, others = declared_ranks(count), np.append(0, declared_ranks(null_count))
    ranks = own[:, np.newaxis] + others
    normal_scores = -_UNIT * np.rint(special.ndtri(ranks / (count + null_count + 1.0)) / _UNIT)
    return np.asarray(np.diff(own, prepend=0)[:, np.newaxis] * normal_scores)


@cached_table
def _normal_draws(count: int, null_count: int) -> tuple[Floats, Floats]:
    """Draw the normal scores of declared ranks, the highest first, of both kinds, shape (draws, ranks).

    Observed ones are rounded up and others down, so that a sum only rises, and both take half of the memory.
    """
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(_PURPOSE, count, null_count)))
    up, down = np.float32(np.inf), np.float32(-np.inf)
    observed = np.nextafter(_highest_first(rng, count).astype(np.float32), up)
    return observed, np.nextafter(_highest_first(rng, null_count).astype(np.float32), down)


def _highest_first(rng: np.random.Generator, count: int) -> Array:
    """Draw normal scores of declared ranks of so many, from the gaps between uniform variables in order."""
    ranks = declared_ranks(count)
    gaps = np.diff(ranks, prepend=0, append=count + 1).astype(np.float64)
    sums = np.cumsum(rng.standard_gamma(gaps, (_DRAWS, len(gaps))), axis=1)
    return np.asarray(-special.ndtri(sums[:, :-1] / sums[:, -1:]))


@njit(cache=True, nogil=True, error_model="numpy")
def _sums_of_draws(observed: Floats, unobserved: Floats, mu: float, weights: Array) -> Array:
    """Return the sum of each row's weights, with observed scores higher by μ; unobserved ones come first of equals."""
    sums = np.zeros(len(observed))
    for row in range(len(observed)):
        above = 0
        for i in range(observed.shape[1]):
            score = observed[row, i] + mu
            while above < unobserved.shape[1] and unobserved[row, above] >= score:
                above += 1
            sums[row] += weights[i, above]
    return sums


def sums_of(scores: ScoreSample) -> Array:
    """Return each audit's sum of the observed scores' normal scores, as far as declared ranks show them."""
    assert scores.unobserved is not None
    weights = _weights(scores.count, scores.null_count)
    observed = scores.observed[:, scores.count - declared_ranks(scores.count)]
    # In rising order, as they are searched.
    unobserved = scores.unobserved[:, scores.null_count - declared_ranks(scores.null_count)[::-1]]
    below = [np.searchsorted(others, row, "left") for others, row in zip(unobserved, observed, strict=True)]
    return np.asarray(weights[np.arange(len(weights)), unobserved.shape[1] - np.array(below)].sum(axis=1))


@lru_cache(maxsize=1000)
def most_reaching(level: float) -> int:
    """Return the most draws that may reach a sum that rejects at this level, −1 if none does.

    It is Clopper and Pearson's: had the sum's true probability been more than the level, so few draws would have
    reached it with a probability of at most 1%. And it is at most so many that one more draw, of all scores, is among
    the largest with a probability of at most the level.
    """
    reached = special.bdtr(np.arange(_DRAWS), _DRAWS, level)
    return min(int(np.searchsorted(reached, _TOO_SMALL, "right")), math.floor(level * (_DRAWS + 1.0))) - 1


@lru_cache(maxsize=100_000)
def critical_sum(count: int, null_count: int, index: int, level: float) -> float:
    """Return the sum that must be exceeded to reject the block of μ with this index, infinite if none rejects."""
    most = most_reaching(level)
    if most < 0:
        return math.inf
    mu = index * block_length(count, null_count)
    sums = _sums_of_draws(*_normal_draws(count, null_count), mu, _weights(count, null_count))
    return float(np.partition(sums, _DRAWS - 1 - most)[_DRAWS - 1 - most])


def block_length(count: int, null_count: int) -> float:
    """Return the length of a block of μ."""
    return _STEP * math.sqrt(1.0 / count + 1.0 / null_count)


def largest_rejected_mu(scores: ScoreSample, level: float) -> Array:
    """Return for each audit the end of the last block of μ that is rejected, 0 if none is."""
    sizes = scores.count, scores.null_count
    last = [_last_block(sizes, total, level) for total in sums_of(scores).tolist()]
    return np.array(last) * block_length(*sizes)


def _last_block(sizes: tuple[int, int], total: float, level: float) -> int:
    """Return the index of the last block that this sum rejects, 0 if it rejects none.

    The same draws serve all μ, so that a critical sum rises with μ, and who rejects a block rejects those before.
    """
    if total <= critical_sum(*sizes, 1, level):
        return 0
    low, high = 1, 256
    while total > critical_sum(*sizes, high, level):
        low, high = high, 2 * high
    is_between = True
    while high - low > 1:
        middle = (low + high) // 2
        if is_between:
            # A critical sum is about linear in μ. Where it is not, the halves in between end the search.
            ends = critical_sum(*sizes, low, level), critical_sum(*sizes, high, level)
            middle = low + round((high - low) * (total - ends[0]) / (ends[1] - ends[0]))
            middle = min(max(middle, low + 1), high - 1)
        is_between = not is_between
        low, high = (middle, high) if total > critical_sum(*sizes, middle, level) else (low, middle)
    return low
