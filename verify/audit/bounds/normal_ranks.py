"""The rank test of normal scores, by which observed scores are higher than unobserved ones by more than μ.

Among all pairs of laws whose half-lines obey μ-GDP, the pair N(μ, 1) and N(0, 1) has stochastically the largest sum of
the observed scores' normal scores (``proofs_check/lower_bounds.md``). The law of the sum for that pair is simulated.

What is drawn are deviations from the means of both kinds. Given these, the sum rises with the difference of the means,
which is N(μ, s²). So a draw says from which difference on it reaches the observed sum, and has a probability for every
μ. These probabilities scatter much less than zeros and ones would.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from canaryproof.kernels.arrays import Array, Ints
from canaryproof.verify.audit.bounds.lower_bound import ScoreSample, cached_table

Integers = NDArray[np.int32]

# The most draws, the most scores that they have together unless the draws are few, and how many those are.
_DRAWS, _SCORES, _FEWEST = 20_000, 4_000_000, 1000
# For more scores than this in an audit there are no draws.
_MOST_SCORES = 10_000
# The draws give too large a level with at most one chance in so many. The second of two bets is this number over the
# root of the number of draws, and is for probabilities that differ much between draws.
_ODDS, _SECOND_BET = 100.0, 15.0
# The most scores of a kind that are looked at, by declared ranks. Half as many lower a bound by about 1%.
_RANKS = 100
# Differences of the means are looked at in steps of s/256. A draw has every 128th of them.
_FINE, _COARSE = 256, 128
# Scores are twice the multiples of this number: even ones are observed, and odd ones are not, so that none are equal.
_UNIT = 2.0**-24
# Normal scores are multiples of this number, so that their sums are exact, and the same on every machine.
_WEIGHT = 2.0**-16
# Beyond so many s, nothing is left of a normal law. Twice that many columns cover both sides.
_FAR = 9
_UNKNOWN = np.iinfo(np.int32).min
# Scores of draws at a time, which fit into a processor's cache.
_PIECE = 50_000
# Names the draws among all that this package makes.
_PURPOSE = 89


class _Draws(NamedTuple):
    """Deviations of declared ranks from the means, shape (draws, ranks), and sums that were already needed."""

    observed: Integers
    unobserved: Integers
    # The first difference of the means that a draw has, shape (draws,), and the step between any two, in units.
    firsts: Ints
    step: int
    # Sums by the number of a draw's difference.
    sums: dict[int, Integers]


def draw_count(count: int, null_count: int) -> int:
    """Return the number of draws for so many scores of both kinds, 0 if these are too many."""
    total = count + null_count
    return 0 if total > _MOST_SCORES else min(_DRAWS, max(_FEWEST, _SCORES // total))


def least_level(count: int, null_count: int) -> float:
    """Return the largest level at which no sum rejects any μ, 1 if there are no draws."""
    draws = draw_count(count, null_count)
    return math.log(_ODDS) / draws if draws else 1.0


def declared_ranks(count: int) -> Ints:
    """Return ranks of the highest score on, in about equal steps of their normal scores: all of up to 100."""
    if count <= _RANKS:
        return np.arange(1, count + 1)
    end = float(special.ndtri(0.5 / count))
    ranks = np.rint(count * special.ndtr(np.linspace(end, -end, _RANKS)))
    return np.unique(np.clip(ranks, 1, count).astype(np.int64))


@cached_table
def _weights(count: int, null_count: int) -> Ints:
    """Return what an observed score adds, by its place and the number of declared unobserved ones at or above it.

    It is the normal score of its rank among all, as far as declared ranks show it, times the number of observed scores
    that it stands for.
    """
    own, others = declared_ranks(count), np.append(0, declared_ranks(null_count))
    ranks = own[:, np.newaxis] + others
    normal_scores = -np.rint(special.ndtri(ranks / (count + null_count + 1.0)) / _WEIGHT).astype(np.int64)
    return np.asarray(np.diff(own, prepend=0)[:, np.newaxis] * normal_scores)


def deviation(count: int, null_count: int) -> float:
    """Return the standard deviation s of a difference of means."""
    return math.sqrt(1.0 / count + 1.0 / null_count)


@cached_table
def _draws(count: int, null_count: int) -> _Draws:
    """Draw deviations; observed ones are rounded up and others down, so that a sum only rises."""
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(_PURPOSE, count, null_count)))
    draws = draw_count(count, null_count)
    step = max(1, round(deviation(count, null_count) / (_FINE * _UNIT)))
    firsts = rng.integers(_COARSE, size=draws)
    observed = _deviations(rng, draws, count) + (2 * step * firsts).astype(np.int32)[:, np.newaxis]
    return _Draws(observed, _deviations(rng, draws, null_count) - np.int32(3), firsts, step, {})


def _deviations(rng: np.random.Generator, draws: int, count: int) -> Integers:
    """Draw normal variables without their mean in units, rounded up, and take declared ranks, the lowest first."""
    declared = count - declared_ranks(count)[::-1]
    deviations = np.empty((draws, len(declared)), dtype=np.int32)
    rows = max(1, _PIECE // count)
    for first in range(0, draws, rows):
        z = rng.standard_normal((min(rows, draws - first), count))
        z -= z.mean(axis=1, keepdims=True)
        z *= 1.0 / _UNIT
        units = np.ceil(z, out=z).astype(np.int32)
        units.sort(axis=1)
        deviations[first : first + rows] = units if len(declared) == count else units[:, declared]
    deviations *= 2
    return deviations


def _sums(observed: Integers, unobserved: Integers, weights: Ints) -> Ints:
    """Return the sum of each row's weights; scores are in units, of which odd ones are unobserved."""
    own, others = observed.shape[1], unobserved.shape[1]
    # The number of declared unobserved scores above the q-th lowest observed one at place p of all is others + q − p.
    lowest = np.arange(own)
    index = (own - 1 - lowest) * (others + 1) + others + lowest
    flat, sums = weights.ravel(), np.empty(len(observed), dtype=np.int64)
    rows = max(1, _PIECE // (own + others))
    for first in range(0, len(observed), rows):
        scores = np.hstack([observed[first : first + rows], unobserved[first : first + rows]])
        scores.sort(axis=1)
        seen_at = np.flatnonzero((scores & 1) == 0).reshape(-1, own)
        seen_at -= ((own + others) * np.arange(len(scores)))[:, np.newaxis]
        sums[first : first + rows] = flat[index - seen_at].sum(axis=1)
    return sums


def sums_of(scores: ScoreSample) -> Ints:
    """Return each audit's sum of the observed scores' normal scores, as far as declared ranks show them."""
    assert scores.unobserved is not None
    weights = _weights(scores.count, scores.null_count)
    observed = scores.observed[:, scores.count - declared_ranks(scores.count)]
    # In rising order, as they are searched.
    unobserved = scores.unobserved[:, scores.null_count - declared_ranks(scores.null_count)[::-1]]
    below = [np.searchsorted(others, row, "left") for others, row in zip(unobserved, observed, strict=True)]
    return np.asarray(weights[np.arange(len(weights)), unobserved.shape[1] - np.array(below)].sum(axis=1))


def largest_rejected_mu(scores: ScoreSample, level: float) -> Array:
    """Return for each audit the largest μ that is rejected, −∞ if none is."""
    sizes = scores.count, scores.null_count
    if level <= least_level(*sizes):
        return np.full(len(scores.observed), -math.inf)
    return np.array([_rejected_mu(*sizes, total, level) for total in sums_of(scores).tolist()])


# Audits of the same sizes share draws, and those with all scores apart share the sum.
@lru_cache(maxsize=100_000)
def _rejected_mu(count: int, null_count: int, total: int, level: float) -> float:
    """Return the largest μ that this sum rejects, −∞ if none."""
    weights = _weights(count, null_count)
    if total <= int(weights[:, -1].sum()):
        return -math.inf
    draws = _draws(count, null_count)
    least = _least_reaching(draws, weights, total)
    first = int(least.min())
    counts = np.bincount(least - first)
    tails = _tails(draws.step * _UNIT / deviation(count, null_count))
    numbers = np.arange(len(counts)) + (first + len(tails) // 2)
    bets = [1.0, min(1.0, _SECOND_BET / math.sqrt(len(least)))]
    log_gains = np.log1p(np.outer(bets, level - tails))

    def is_rejected(mean: int) -> bool:
        gained = log_gains[:, np.clip(numbers - mean, 0, len(tails) - 1)] @ counts
        return float(np.logaddexp(*gained)) >= math.log(len(bets) * _ODDS)

    low, high = first - len(tails), first + len(counts) + len(tails)
    if not is_rejected(low):
        return -math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_rejected(middle) else (low, middle)
    return low * draws.step * _UNIT


@lru_cache(maxsize=1000)
def _tails(ratio: float) -> Array:
    """Return the probability that a difference is at least so many steps above its mean, rounded up to whole ones.

    It is normal, with a deviation of 1/``ratio`` steps, and the probability is that among every 128th number of steps,
    as a draw has them. The numbers lie about 0.
    """
    far = _FAR * _FINE
    chances = np.diff(special.ndtr(np.arange(-far - 1, far) * ratio)).reshape(-1, _COARSE)
    tails = np.cumsum(chances[::-1], axis=0)[::-1]
    return np.concatenate([[1.0], (tails / tails[0]).ravel(), [0.0]])


def _least_reaching(draws: _Draws, weights: Ints, total: int) -> Ints:
    """Return for each draw its least difference of the means, in steps, with a sum that is at least this one."""
    apart = 2 * draws.step * _COARSE
    if total == int(weights[:, 0].sum()):
        # All observed scores are above all others.
        gaps = draws.unobserved[:, -1].astype(np.int64) - draws.observed[:, 0]
        return np.asarray(_COARSE * (gaps // apart + 1) + draws.firsts)

    def sums(rows: Ints, number: int) -> Integers:
        known = draws.sums.setdefault(number, np.full(len(draws.firsts), _UNKNOWN, dtype=np.int32))
        new = rows[known[rows] == _UNKNOWN]
        known[new] = _sums(draws.observed[new] + np.int32(apart * number), draws.unobserved[new], weights)
        return np.asarray(known[rows])

    # From where about half of the draws reach it, those that do are followed down, and the others up.
    start = _guess(draws, weights, total)
    least = np.empty(len(draws.firsts), dtype=np.int64)
    rows = np.arange(len(least))
    has_reached = sums(rows, start) >= total
    for reached, way in ((True, -1), (False, 1)):
        left, number = rows[has_reached == reached], start
        while len(left):
            number += way
            stays = (sums(left, number) >= total) == reached
            least[left[~stays]] = number + int(reached)
            left = left[stays]
    return np.asarray(_COARSE * least + draws.firsts)


def _guess(draws: _Draws, weights: Ints, total: int) -> int:
    """Return which difference, of those that a draw has, gives average scores about this sum."""
    observed, unobserved = (
        2 * np.rint(scores[:100].mean(axis=0, keepdims=True) / 2.0).astype(np.int32)
        for scores in (draws.observed, draws.unobserved)
    )
    apart = 2 * draws.step * _COARSE
    low = -(2 * int(max(np.ptp(observed), np.ptp(unobserved))) // apart + 1)
    high = -low
    while high - low > 1:
        middle = (low + high) // 2
        is_below = _sums(observed + np.int32(apart * middle), unobserved + np.int32(1), weights)[0] < total
        low, high = (middle, high) if is_below else (low, middle)
    return high
