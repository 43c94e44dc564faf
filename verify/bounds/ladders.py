"""Ladders: declared ranks and wrong guesses of observed and unobserved scores, by one critical value for all of them.

Ranks and guesses often reject together: most of what Bonferroni's shares of α allow is then not used. So levels are put
on a ladder. A rung is reached by the count beyond any declared rank, or by the number of wrong guesses, whichever
reaches it at its share of the rung's level. The probability that a rung is reached at all is that of a walk of labels
(``proofs_check/lower_bounds.md``).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Array, Bools, Ints
from canaryproof.verify.bounds.block_tests import BLOCK, NESTED, SHARP, BlockTest, last_before
from canaryproof.verify.bounds.guesses import (
    ABSOLUTE,
    RELATIVE,
    Law,
    binomial_law,
    convolved,
    count_wrong,
    declared_guesses,
    few_wrong,
    numbers_shown,
    pooled_order,
    rates_of_labels,
)
from canaryproof.verify.bounds.lower_bound import ScoreSample
from canaryproof.verify.bounds.precedence import (
    EPSILONS,
    counts_beyond,
    declared_ranks,
    least_counts,
    precedence,
    rank_tail,
)

# Observed and unobserved ones, the probabilities of an unobserved one on the high and low side, and that side's size.
Labels = tuple[int, int, float, float, Law]
# The laws of unobserved labels on the way, all of them on the high side, or some, or none, and how many may be so far.
Step = tuple[Law, Law, Law, int, int]

# Observed scores times unobserved ones, up to which the walk takes little time.
_MOST = 1e9
# The levels of the rungs.
_LEVELS = np.exp(-0.05 * np.arange(600.0))
# Of what the number of labels so far is, what is less likely than this is left out: as if it reached the rung.
_NEGLIGIBLE = 1e-20
# The number of wrong ones among the high guesses is rounded up to these, from its mean on in standard deviations.
_ROUNDED = np.array([-6.0, -5.0, -4.0, -3.5, *np.arange(-3.0, 3.1, 0.5), 4.0])


def largest_deltas(scores: ScoreSample) -> list[float]:
    """Return the largest δ that each ladder serves, the first one all smaller values; none if scores are too many.

    On average one score of a kind is shown at most: with more, the walks are many.
    """
    if scores.null is not None or scores.count * scores.null_count > _MOST:
        return []
    digits = max(math.ceil(math.log10(max(scores.count, scores.null_count))), 1)
    return [10.0 ** -(digits + 1), 10.0**-digits]


@dataclass(frozen=True)
class Ladder:
    """What reaches each rung, for a block of ε up to ``declared``, whose levels hold for δ up to ``limit``."""

    count: int
    null_count: int
    limit: float
    declared: float


class Rungs(NamedTuple):
    """What is counted, and what reaches each rung."""

    counts: list[Ints]  # The least counts beyond each declared rank
    guesses: tuple[int, int]  # Numbers of high and low guesses
    rounded: Ints  # What the number of wrong ones among the high guesses is rounded up to
    most: Ints  # The most wrong guesses


@lru_cache(maxsize=2048)
def rungs(ladder: Ladder) -> Rungs:
    """Return what reaches each rung."""
    count, null_count, limit, declared = ladder.count, ladder.null_count, ladder.limit, ladder.declared
    kinds = (null_count, count), (count, null_count)
    tails = [rank_tail(rank, *kind, declared, limit) for kind in kinds for rank in declared_ranks(kind[0]).tolist()]
    guesses = declared_guesses(count, null_count, limit, declared)
    least, bounds = few_wrong(count, null_count, guesses, declared, limit)
    mean, deviation = _moments(ladder, guesses[0])
    return Rungs(
        [least_counts(tail, NESTED / len(tails) * _LEVELS) for tail in tails],
        guesses,
        np.unique(np.append(np.clip(np.rint(mean + deviation * _ROUNDED), 0, guesses[0]), guesses[0]).astype(np.int64)),
        least + np.searchsorted(bounds, SHARP * _LEVELS, side="right") - 1,
    )


def chance(ladder: Ladder, rung: int, epsilon: float, delta: float, allowed: float = math.nan) -> float:
    """Return the largest probability that (ε, δ)-privacy allows for reaching a rung.

    It may be that probability's lower bound if that is above ``allowed`` already, or an upper bound that is not.
    """
    total, rest = 0.0, 1.0
    for shown, probability in numbers_shown(ladder.count, ladder.null_count, delta):
        given = _given_shown(ladder, rung, epsilon, shown)
        total, rest = total + probability * given, rest - probability
        # The more are shown, the likelier a rung is reached.
        if total + rest * given > allowed:
            return total + rest * given
        if total + rest <= allowed:
            return total + rest
    return total


@lru_cache(maxsize=8192)
def _known(_ladder: Ladder, _delta: float, _alpha: float, sure: int) -> tuple[Ints, Ints]:
    """Remember for a block's ε the last rungs known not to reject, and the first that do; at first what is sure."""
    return np.full(BLOCK, -1, dtype=np.int64), np.full(BLOCK, sure, dtype=np.int64)


@lru_cache(maxsize=8192)
def _limits(ladder: Ladder, rung: int) -> Ints:
    """Return places and how many unobserved scores are at least before them where no rank reaches a rung, in order."""
    total, limits = ladder.count + ladder.null_count, dict[int, int]()
    high, low = declared_ranks(ladder.null_count), declared_ranks(ladder.count)
    for i, (rank, counts) in enumerate(zip(np.concatenate([high, low]), rungs(ladder).counts, strict=True)):
        position, least = int(rank + counts[rung]) - 1, int(rank)
        if i >= len(high):
            # As many observed ones are among the last.
            position, least = total - position, least + ladder.null_count - position
        if 0 <= position <= total:
            limits[position] = max(least, limits.get(position, 0))
    return np.array(sorted(limits.items()), dtype=np.int64).reshape(-1, 2)


# Whatever δ is, the same numbers are shown: values of δ share the walks.
@lru_cache(maxsize=65536)
def _given_shown(ladder: Ladder, rung: int, epsilon: float, shown: tuple[int, ...]) -> float:
    seen, unseen = ladder.count - shown[0], ladder.null_count - shown[1]
    total = seen + unseen
    # Before the labels are observed ones alone, behind them unobserved ones alone.
    limits = _limits(ladder, rung) - np.array([shown[0], 0])
    positions, least = limits.T
    outside = (positions <= 0) | (positions >= total)
    if seen == 0 or unseen == 0 or np.any((least > np.maximum(positions - seen, 0)) & outside):
        return 1.0
    _, (top, bottom), rounded, most = rungs(ladder)
    first = min(max(top - shown[0], 0), total)
    last = min(max(ladder.count + ladder.null_count - bottom - shown[0], first), total)
    side, (high, low) = rates_of_labels(seen, unseen, epsilon)
    labels = seen, unseen, high, 1.0 - low, binomial_law(total, side)
    lowest, law = binomial_law(total, seen / total)
    return max(1.0 - _unreached(labels, limits, first, last, rounded, int(most[rung])) / float(law[seen - lowest]), 0.0)


def _moments(ladder: Ladder, position: int) -> tuple[float, float]:
    """Return the mean and standard deviation of the number of unobserved labels among the first."""
    side, (high, low) = rates_of_labels(ladder.count, ladder.null_count, ladder.declared)
    smallest, weights = binomial_law(ladder.count + ladder.null_count, side)
    on_high = np.minimum(smallest + np.arange(len(weights)), position)
    means = high * on_high + (1.0 - low) * (position - on_high)
    variances = high * (1.0 - high) * on_high + low * (1.0 - low) * (position - on_high)
    mean = float(weights @ means)
    return mean, math.sqrt(weights @ (variances + (means - mean) ** 2))


# The walk of labels from the highest on, as if each were observed with the same probability.
#
# Its state is the law of the number of unobserved labels so far, in two parts: where the label is still on the high
# side, whatever that side's size, and where it is on the low side. All terms are positive.


@njit(cache=True, nogil=True, error_model="numpy")
def _unreached(labels: Labels, limits: Ints, first: int, last: int, rounded: Ints, most: int) -> float:
    """Return the probability that as many labels are observed as are, and neither ranks nor guesses reach the rung."""
    seen, unseen, _, _, (smallest, weights) = labels
    begun = _walked(_steps(labels, limits, 0, first), ((0, np.ones(1)), (0, weights[: int(smallest == 0)])))
    ended = (0, weights[:0]), (0, weights[:0])
    steps = _steps(labels, limits, first, last)
    # By the number of unobserved labels among the first ones, rounded up.
    before = -1
    for number in rounded:
        part = _walked(steps, (_within(begun[0], before + 1, number), _within(begun[1], before + 1, number)))
        # Wrong guesses: unobserved labels before ``first``, observed ones from ``last`` on.
        least = most + 1 - number - seen + last
        ended = _added(ended[0], _within(part[0], least, unseen)), _added(ended[1], _within(part[1], least, unseen))
        before = number
    lowest, law = _walked(_steps(labels, limits, last, seen + unseen), ended)[1]
    return law[unseen - lowest] if 0 <= unseen - lowest < len(law) else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _steps(labels: Labels, limits: Ints, start: int, stop: int) -> list[Step]:
    """Return the steps between two places, from one that asks for unobserved labels before it to the next."""
    seen, unseen, high, low, (smallest, weights) = labels
    largest = smallest + len(weights) - 1
    steps = []
    for i in range(len(limits) + 1):
        position, least = (limits[i, 0], limits[i, 1]) if i < len(limits) else (stop, 0)
        # Where as many are so far whatever the order, there is nothing to leave out.
        if position > stop or position <= start or (position < stop and least <= position - seen):
            continue
        stays, between = binomial_law(position - start, high), (0, weights[:0])
        # The sizes at which the low side begins on the way.
        begin, end = max(start + 1, smallest), min(position, largest)
        if begin <= end:
            between = _begun(weights[begin - smallest : end - smallest + 1], high, low)
            between = convolved(
                binomial_law(begin - start, high), convolved(binomial_law(position - end, low), between)
            )
        # With more labels of a kind than there are it cannot end well.
        steps.append((stays, between, binomial_law(position - start, low), max(least, position - seen), unseen))
        start = position
    return steps


@njit(cache=True, nogil=True, error_model="numpy")
def _walked(steps: list[Step], state: tuple[Law, Law]) -> tuple[Law, Law]:
    """Go on with the labels, but where fewer unobserved ones are so far than a place asks for."""
    upper, lower = state
    for stays, between, below, least, most in steps:
        moved = convolved(below, lower)
        if len(between[1]) > 0:
            moved = _added(moved, convolved(between, upper))
        upper, lower = _within(convolved(stays, upper), least, most), _within(moved, least, most)
    return upper, lower


@njit(cache=True, nogil=True, error_model="numpy")
def _begun(weights: Array, high: float, low: float) -> Law:
    """Return the law of unobserved labels on the low side, which begins before each label with these weights."""
    upper, lower, then_upper, then_lower = np.zeros((4, len(weights) + 2))
    upper[1], lower[1] = 1.0, weights[0]
    # Of the numbers that are likely, the first and the last, one more than which is their place: beside them are zeros.
    first = last = 1
    for weight in weights[1:]:
        last += 1
        for j in range(first, last + 1):
            then_upper[j] = upper[j] * (1.0 - high) + upper[j - 1] * high
            then_lower[j] = lower[j] * (1.0 - low) + lower[j - 1] * low + weight * then_upper[j]
        upper, lower, then_upper, then_lower = then_upper, then_lower, upper, lower
        while upper[first] + lower[first] < _NEGLIGIBLE:
            first += 1
        while upper[last] + lower[last] < _NEGLIGIBLE:
            last -= 1
        upper[first - 1] = lower[first - 1] = upper[last + 1] = lower[last + 1] = 0.0
    return first - 1, lower[first : last + 1]


@njit(cache=True, nogil=True, error_model="numpy")
def _added(first: Law, second: Law) -> Law:
    """Add two parts of a law."""
    if len(first[1]) == 0 or len(second[1]) == 0:
        return second if len(first[1]) == 0 else first
    lowest = min(first[0], second[0])
    law = np.zeros(max(first[0] + len(first[1]), second[0] + len(second[1])) - lowest)
    law[first[0] - lowest : first[0] - lowest + len(first[1])] += first[1]
    law[second[0] - lowest : second[0] - lowest + len(second[1])] += second[1]
    return lowest, law


@njit(cache=True, nogil=True, error_model="numpy")
def _within(part: Law, least: int, most: int) -> Law:
    """Leave out of a part of a law what is outside of limits, or negligible at its ends."""
    lowest, law = part
    first, last = max(least - lowest, 0), min(most - lowest, len(law) - 1)
    while first <= last and law[first] < _NEGLIGIBLE:
        first += 1
    while first <= last and law[last] < _NEGLIGIBLE:
        last -= 1
    return lowest + first, law[first : max(last + 1, first)]


def ladder_bound(scores: ScoreSample, limit: float, delta: float, alpha: float, enough: Array | float) -> Array:
    """Return the largest ε up to which every one is rejected, for δ up to ``limit``, by that limit's ladder.

    Where it is seen at once to be ``enough``, no larger ones are looked for.
    """
    assert scores.unobserved is not None
    # Of the rungs at which Bonferroni's inequality is enough, the first.
    sure = int(np.sum(alpha < _LEVELS * (1.0 + RELATIVE) + ABSOLUTE))
    if sure == len(_LEVELS):
        return np.zeros(len(scores.observed))
    beyond = np.concatenate(counts_beyond(scores), axis=1)
    before = pooled_order(scores.observed, scores.unobserved)[1]
    allowed = (alpha - ABSOLUTE) / (1.0 + RELATIVE)

    def ladder(declared: float) -> Ladder:
        return Ladder(scores.count, scores.null_count, limit, declared)

    def evidence(audits: Ints, declared: float) -> Ints:
        counts, guesses, rounded, most = rungs(ladder(declared))
        wrong = count_wrong(before[audits], scores.null_count, guesses, rounded)
        reached = [np.searchsorted(-most, -wrong, side="right")]
        reached += [np.searchsorted(c, n, side="right") for c, n in zip(counts, beyond[audits].T, strict=True)]
        return np.asarray(np.max(reached, axis=0) - 1)

    def rejects(declared: float, tested: float, reached: Ints) -> Bools:
        low, high = _known(ladder(declared), delta, alpha, sure)
        at = int(np.searchsorted(EPSILONS, tested)) % BLOCK
        rungs_found = np.unique(reached)
        while len(unknown := rungs_found[(rungs_found > low[at]) & (rungs_found < high[at])]):
            rung = int(unknown[len(unknown) // 2])
            # A rung that rejects an ε rejects the smaller ones, too.
            if chance(ladder(declared), rung, tested, delta, allowed) <= allowed:
                high[: at + 1] = np.minimum(high[: at + 1], rung)
            else:
                low[at:] = np.maximum(low[at:], rung)
        return np.asarray(reached >= high[at])

    # Whole blocks that some rank rejects at that rung need no more tests.
    values = precedence(scores, limit, NESTED * float(_LEVELS[sure]))
    blocks = (np.searchsorted(EPSILONS, values) + 1) // BLOCK
    values = EPSILONS[np.maximum(blocks * BLOCK - 1, 0)]
    left = np.flatnonzero(values < enough)
    values[left] = last_before([BlockTest(lambda at, declared: evidence(left[at], declared), rejects)], values[left])
    return values
