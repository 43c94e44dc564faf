"""The values of ε that are tested, the largest tail that each allows, and precedence tests.

A precedence test counts scores of one kind beyond a score of the other kind with a declared rank. These are observed
scores above the r-th highest unobserved one, or unobserved ones below the r-th lowest observed one. The count is
stochastically largest where the observed tail is the largest that privacy allows for the unobserved one. It is then
binomial, and its rate is that tail at the r-th uniform order statistic (``proofs_check/lower_bounds.md``). A test that
rejects an ε rejects every smaller one.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special

from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Array, Bools, Ints
from canaryproof.verify.audit.bounds.lower_bound import ScoreSample, cached_table

# Absolute step between tested values of ε, and the ratio between them where that is the larger step.
_STEP, _RATIO, _LAST = 0.002, 1.004, 1e4


def _epsilons() -> Array:
    low = np.arange(0.0, _STEP / (_RATIO - 1.0), _STEP)
    steps = math.ceil(math.log(_LAST / low[-1]) / math.log(_RATIO))
    return np.concatenate([low, low[-1] * _RATIO ** np.arange(1.0, steps + 1.0)])


EPSILONS = _epsilons()


def worst_tail(epsilon: Array | float, log_tail: Array, delta: float) -> Array:
    """Return the largest tail of the observed scores that (ε, δ)-privacy allows for the null's, rounded up."""
    high = np.exp(np.minimum(epsilon + log_tail, 0.0)) + delta
    low = 1.0 - np.exp(-epsilon) * np.maximum(-np.expm1(log_tail) - delta, 0.0)
    return np.clip(np.minimum(high, low) * (1.0 + 1e-14), 0.0, 1.0)


# Ends of the cells of an order statistic's law, by the logit of the probability below. They do not depend on the level,
# so that a smaller level never rejects more. Cells are narrow where that probability is above 1e-5.
_LOGITS = np.concatenate([np.arange(-7.0, 12.0, 0.1), np.arange(12.0, 40.0, 0.5)])
# Relative rounding error of a probability.
_RELATIVE = 1e-6
# Counts that are less likely than the likeliest by this factor are left out.
_NEGLIGIBLE = 1e-17
# Every level is larger than this.
_UNLIKELY = 1e-16


def declared_ranks(total: int) -> Ints:
    """Return the ranks 1, 2, 4, …, up to half of all."""
    return np.asarray(2 ** np.arange(max(total // 2, 1).bit_length()), dtype=np.int64)


@cached_table
def order_statistic(rank: int, total: int) -> tuple[Array, Array, float]:
    """Bound the law of the ``rank``-th smallest of uniform variables from above, by a discrete one.

    Return its values, their probabilities, and the remaining probability, which lies above all values.
    """
    above = special.expit(-_LOGITS)
    nodes = special.betainccinv(rank, total - rank + 1, above)
    return nodes, -np.diff(above, prepend=1.0), float(above[-1])


@njit(cache=True, nogil=True, error_model="numpy")
def count_tail(rates: Array, weights: Array, rest: float, trials: int) -> Array:
    """Return P(B ≥ c), c = 0, …, ``trials`` + 1, for a binomial B with a random rate.

    With probability ``rest``, B is ``trials``.
    """
    tail = np.zeros(trials + 2)
    part = np.empty(trials + 1)
    count = np.arange(trials)
    up, down = (trials - count) / (count + 1.0), (count + 1.0) / (trials - count)
    for rate, weight in zip(rates, weights):  # noqa: B905 (numba has no strict)
        # Ratios from the likeliest count on, divided by their sum, keep the digits that logarithms of factorials lose.
        likeliest = min(int((trials + 1) * rate), trials)
        odds, against = rate / (1.0 - rate), (1.0 - rate) / rate
        part[likeliest] = total = now = 1.0
        first = last = likeliest
        while first > 0 and now > _NEGLIGIBLE:
            first -= 1
            now *= against * down[first]
            part[first] = now
            total += now
        now = 1.0
        while last < trials and now > _NEGLIGIBLE:
            now *= odds * up[last]
            last += 1
            part[last] = now
            total += now
        share = weight / total
        for i in range(first, last + 1):
            tail[i] += share * part[i]
    tail[trials] += rest
    for c in range(trials - 1, -1, -1):
        tail[c] += tail[c + 1]
    return tail


def rank_tail(rank: int, declared: int, counted: int, epsilon: float, delta: float) -> tuple[int, Array]:
    """Bound P(N ≥ c) for the count N beyond a declared rank, from the first c where it is not 1 on."""
    nodes, weights, rest = order_statistic(rank, declared)
    tail = count_tail(worst_tail(epsilon, np.log(nodes), delta), weights, rest, counted)
    # The tail is kept from the last value that is 1 but for rounding to the first that is below every level.
    first, last = np.searchsorted(-tail, [-1.0 + _RELATIVE, -_UNLIKELY])
    first = max(int(first) - 1, 0)
    return first, tail[first : last + 1].copy()


def least_counts(tail: tuple[int, Array], levels: Array | float) -> Ints:
    """Return the least c with P(N ≥ c) at most these levels, which are below 1."""
    return np.asarray(tail[0] + np.searchsorted(-tail[1], -np.asarray(levels)))


# Audits of equal size share critical counts, which saves a quick run 20 seconds.
@lru_cache(maxsize=65536)
def critical_count(rank: int, declared: int, counted: int, delta: float, level: float, index: int) -> int:
    """Return the least count beyond a declared rank that rejects the value of ε with this index."""
    tail = rank_tail(rank, declared, counted, float(EPSILONS[index]), delta)
    return int(least_counts(tail, level * (1.0 - _RELATIVE)))


def counts_beyond(scores: ScoreSample) -> tuple[Ints, Ints]:
    """Count observed scores above the declared unobserved ones, and unobserved ones below the declared observed ones.

    Shape (audits, ranks); equal scores do not count.
    """
    assert scores.unobserved is not None
    high = scores.unobserved[:, scores.null_count - declared_ranks(scores.null_count)]
    low = scores.observed[:, declared_ranks(scores.count) - 1]
    above = [scores.count - np.searchsorted(row, at, "right") for row, at in zip(scores.observed, high, strict=True)]
    below = [np.searchsorted(row, at, "left") for row, at in zip(scores.unobserved, low, strict=True)]
    return np.array(above, dtype=np.int64), np.array(below, dtype=np.int64)


def precedence(scores: ScoreSample, delta: float, alpha: float) -> Array:
    """Return for each audit the largest tested ε that one of the tests rejects, each at the same share of α."""
    counts = np.hstack(counts_beyond(scores))
    kinds = (scores.null_count, scores.count), (scores.count, scores.null_count)
    tests = [(rank, *kind) for kind in kinds for rank in declared_ranks(kind[0]).tolist()]
    level = alpha / len(tests)
    # A test that does not reject an ε rejects no larger one.
    left = np.ones(counts.shape, dtype=np.bool_)

    def are_rejected(audits: Ints, index: int) -> Bools:
        by = left[audits]
        for i in np.flatnonzero(by.any(axis=0)):
            by[:, i] &= counts[audits, i] >= critical_count(*tests[i], delta, level, index)
        any_rejects = by.any(axis=1)
        left[audits[any_rejects]] = by[any_rejects]
        return np.asarray(any_rejects)

    return EPSILONS[np.maximum(last_rejected_index(len(counts), are_rejected), 0)]


def last_rejected_index(audits: int, rejected: Callable[[Ints, int], Bools]) -> Ints:
    """Return for each audit the index of the largest ε that a nested test rejects, −1 where it rejects none."""
    low, high = np.full(audits, -1), np.full(audits, len(EPSILONS))
    while np.any(high - low > 1):
        middle = (low + high) // 2
        for index in np.unique(middle[high - low > 1]):
            at = np.flatnonzero((middle == index) & (high - low > 1))
            passed = rejected(at, int(index))
            low[at[passed]], high[at[~passed]] = index, index
    return low
