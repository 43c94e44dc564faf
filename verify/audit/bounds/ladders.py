"""Tests of declared ranks and wrong guesses together, with one critical value for observed and unobserved scores.

Ranks and guesses often reject together, so that Bonferroni's shares of α waste most of it. A ladder is a falling
sequence of levels, its rungs. The count beyond a declared rank, or the number of wrong guesses, reaches a rung if it
rejects at its share of the rung's level. The statistic is the last rung that any of them reaches. A walk over the
labels of the sorted scores gives the probability that a rung is reached (``proofs_check/lower_bounds.md``, section 3b).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Array, Bools, Ints
from canaryproof.verify.audit.bounds.block_tests import BLOCK, NESTED, SHARP, BlockTest, last_before
from canaryproof.verify.audit.bounds.guesses import (
    ABSOLUTE,
    RELATIVE,
    Law,
    binomial_law,
    convolve,
    count_wrong,
    declared_guesses,
    few_wrong,
    pooled_order,
    rates_of_labels,
    shown_numbers,
)
from canaryproof.verify.audit.bounds.lower_bound import ScoreSample, cached_table
from canaryproof.verify.audit.bounds.precedence import (
    EPSILONS,
    counts_beyond,
    declared_ranks,
    least_counts,
    precedence,
    rank_tail,
)

# Numbers of observed and unobserved labels, probabilities of an unobserved one on the high and on the low side, and the
# law of the high side's size.
Labels = tuple[int, int, float, float, Law]
# Laws of the number of unobserved labels within a step that is on the high side wholly, partly, or not at all. Then the
# least and the largest number of unobserved labels up to its end.
Step = tuple[Law, Law, Law, int, int]

# Largest product of both numbers of scores for which the walk takes little time.
_MOST = 1e9
# The levels of the rungs.
LEVELS = np.exp(-0.05 * np.arange(600.0))
# States less likely than this are dropped and count as reaching the rung, which is conservative.
_NEGLIGIBLE = 1e-20
# The number of wrong high guesses is rounded up to these distances from its mean, in standard deviations.
_ROUNDED = np.array([-6.0, -5.0, -4.0, -3.5, *np.arange(-3.0, 3.1, 0.5), 4.0])


def largest_deltas(scores: ScoreSample) -> list[float]:
    """Return the largest δ that each ladder serves, the first one all smaller values; none if scores are too many.

    At these δ, a mechanism shows at most one score of a kind on average. With more, there are many walks.
    """
    if scores.null is not None or scores.count * scores.null_count > _MOST:
        return []
    digits = max(math.ceil(math.log10(max(scores.count, scores.null_count))), 1)
    return [10.0 ** -(digits + 1), 10.0**-digits]


@dataclass(frozen=True)
class Ladder:
    """A ladder's parameters: it serves a block of ε up to ``declared``, and its levels hold for δ up to ``limit``."""

    count: int
    null_count: int
    limit: float
    declared: float


class Rungs(NamedTuple):
    """Counts that reach the rungs, in the order of the rungs."""

    counts: list[Ints]  # The least counts beyond each declared rank
    guesses: tuple[int, int]  # Numbers of high and low guesses
    rounded: Ints  # Numbers that the number of wrong high guesses is rounded up to
    most: Ints  # The most wrong guesses


@cached_table
def rungs(ladder: Ladder) -> Rungs:
    """Return the counts that reach each rung of a ladder."""
    count, null_count, limit, declared = ladder.count, ladder.null_count, ladder.limit, ladder.declared
    kinds = (null_count, count), (count, null_count)
    tails = [rank_tail(rank, *kind, declared, limit) for kind in kinds for rank in declared_ranks(kind[0]).tolist()]
    guesses = declared_guesses(count, null_count, limit, declared)
    least, bounds = few_wrong(count, null_count, guesses, declared, limit)
    mean, deviation = _moments(ladder, guesses[0])
    return Rungs(
        [least_counts(tail, NESTED / len(tails) * LEVELS) for tail in tails],
        guesses,
        np.unique(np.append(np.clip(np.rint(mean + deviation * _ROUNDED), 0, guesses[0]), guesses[0]).astype(np.int64)),
        least + np.searchsorted(bounds, SHARP * LEVELS, side="right") - 1,
    )


def chance(ladder: Ladder, rung: int, epsilon: float, delta: float, allowed: float = math.nan) -> float:
    """Return the largest probability that (ε, δ)-privacy allows for reaching a rung.

    The result may be a lower bound of that probability that is above ``allowed``, or an upper bound that is not.
    """
    total, rest = 0.0, 1.0
    for shown, probability in shown_numbers(ladder.count, ladder.null_count, delta):
        given = _conditional_probability(ladder, rung, epsilon, shown)
        total, rest = total + probability * given, rest - probability
        # The probability of reaching a rung rises with the number of shown canaries.
        if total + rest * given > allowed:
            return total + rest * given
        if total + rest <= allowed:
            return total + rest
    return total


def _limits(ladder: Ladder, rung: int) -> Ints:
    """Return positions in rising order, with the least number of unobserved scores before each.

    No declared rank reaches the rung exactly where all these numbers are attained.
    """
    total, limits = ladder.count + ladder.null_count, dict[int, int]()
    high, low = declared_ranks(ladder.null_count), declared_ranks(ladder.count)
    for i, (rank, counts) in enumerate(zip(np.concatenate([high, low]), rungs(ladder).counts, strict=True)):
        position, least = int(rank + counts[rung]) - 1, int(rank)
        if i >= len(high):
            # A count of unobserved scores below an observed one limits the labels from the other end.
            position, least = total - position, least + ladder.null_count - position
        if 0 <= position <= total:
            limits[position] = max(least, limits.get(position, 0))
    return np.array(sorted(limits.items()), dtype=np.int64).reshape(-1, 2)


def _conditional_probability(ladder: Ladder, rung: int, epsilon: float, shown: tuple[int, ...]) -> float:
    seen, unseen = ladder.count - shown[0], ladder.null_count - shown[1]
    total = seen + unseen
    # Only observed labels come before the walk, and only unobserved ones after it.
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
    return max(
        1.0 - _probability_below(labels, limits, first, last, rounded, int(most[rung])) / float(law[seen - lowest]), 0.0
    )


def _moments(ladder: Ladder, position: int) -> tuple[float, float]:
    """Return the mean and standard deviation of the number of unobserved labels among the first."""
    side, (high, low) = rates_of_labels(ladder.count, ladder.null_count, ladder.declared)
    smallest, weights = binomial_law(ladder.count + ladder.null_count, side)
    on_high = np.minimum(smallest + np.arange(len(weights)), position)
    means = high * on_high + (1.0 - low) * (position - on_high)
    variances = high * (1.0 - high) * on_high + low * (1.0 - low) * (position - on_high)
    mean = float((weights * means).sum())
    return mean, math.sqrt((weights * (variances + (means - mean) ** 2)).sum())


# The walk goes over the labels from the highest score on, each of which is observed with the same probability.
#
# Its state is the law of the number of unobserved labels so far, in two parts. One is for a position on the high side,
# for all sizes of that side together, the other for one on the low side. All terms are positive.


@njit(cache=True, nogil=True, error_model="numpy")
def _probability_below(labels: Labels, limits: Ints, first: int, last: int, rounded: Ints, most: int) -> float:
    """Return the probability that the number of observed labels is right, and that no count reaches the rung."""
    seen, unseen, _, _, (smallest, weights) = labels
    # Each walk would be compiled again for the type that numba has for a literal 0 in a tuple.
    zero = int(np.int64(0))
    begun = _walk(_steps(labels, limits, zero, first), ((zero, np.ones(1)), (zero, weights[: int(smallest == 0)])))
    ended = (zero, weights[:0]), (zero, weights[:0])
    steps = _steps(labels, limits, first, last)
    # Each part has one rounded number of unobserved labels before ``first``.
    before = -1
    for number in rounded:
        part = _walk(steps, (_within(begun[0], before + 1, number), _within(begun[1], before + 1, number)))
        # Wrong guesses are unobserved labels before ``first`` and observed ones from ``last`` on.
        least = most + 1 - number - seen + last
        ended = _add(ended[0], _within(part[0], least, unseen)), _add(ended[1], _within(part[1], least, unseen))
        before = number
    lowest, law = _walk(_steps(labels, limits, last, seen + unseen), ended)[1]
    return law[unseen - lowest] if 0 <= unseen - lowest < len(law) else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _steps(labels: Labels, limits: Ints, start: int, stop: int) -> list[Step]:
    """Return the steps between two positions, from each position with a limit to the next."""
    seen, unseen, high, low, (smallest, weights) = labels
    largest = smallest + len(weights) - 1
    steps = []
    for i in range(len(limits) + 1):
        position, least = (limits[i, 0], limits[i, 1]) if i < len(limits) else (stop, 0)
        # A limit that holds in every order of the labels drops no state.
        if position > stop or position <= start or (position < stop and least <= position - seen):
            continue
        stays, between = binomial_law(position - start, high), (int(np.int64(0)), weights[:0])
        # With these sizes of the high side, the low side begins within the step.
        begin, end = max(start + 1, smallest), min(position, largest)
        if begin <= end:
            between = _low_side_law(weights[begin - smallest : end - smallest + 1], high, low)
            between = convolve(binomial_law(begin - start, high), convolve(binomial_law(position - end, low), between))
        # More labels of a kind than there are cannot lead to the right number.
        steps.append((stays, between, binomial_law(position - start, low), max(least, position - seen), unseen))
        start = position
    return steps


@njit(cache=True, nogil=True, error_model="numpy")
def _walk(steps: list[Step], state: tuple[Law, Law]) -> tuple[Law, Law]:
    """Walk some steps, and drop states that are outside of a step's limits."""
    upper, lower = state
    for stays, between, below, least, most in steps:
        moved = convolve(below, lower)
        if len(between[1]) > 0:
            moved = _add(moved, convolve(between, upper))
        upper, lower = _within(convolve(stays, upper), least, most), _within(moved, least, most)
    return upper, lower


@njit(cache=True, nogil=True, error_model="numpy")
def _low_side_law(weights: Array, high: float, low: float) -> Law:
    """Return the law of unobserved labels on the low side, which begins before each label with these weights."""
    upper, lower, then_upper, then_lower = np.zeros((4, len(weights) + 2))
    upper[1], lower[1] = 1.0, weights[0]
    # Numbers from first − 1 to last − 1 are likely. Index j has the number j − 1, and zeros surround the likely ones.
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
def _add(first: Law, second: Law) -> Law:
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
    """Drop the probabilities of a law that are outside of limits, or negligible at its ends."""
    lowest, law = part
    first, last = max(least - lowest, 0), min(most - lowest, len(law) - 1)
    while first <= last and law[first] < _NEGLIGIBLE:
        first += 1
    while first <= last and law[last] < _NEGLIGIBLE:
        last -= 1
    return lowest + first, law[first : max(last + 1, first)]


class LadderTable:
    """Decisions of one ladder at (δ, α): for each ε of its block, the rungs that are known to reject it or not to.

    A decision takes walks, so that rungs are decided only when a statistic asks for them. Answers do not depend on the
    order of the questions, as a rung that rejects an ε rejects the smaller ones, too.
    """

    def __init__(self, ladder: Ladder, delta: float, alpha: float, sure: int) -> None:
        """Begin with no decisions but those of rung ``sure``, which rejects each ε by Bonferroni's inequality."""
        self.ladder, self.delta, self.allowed = ladder, delta, (alpha - ABSOLUTE) / (1.0 + RELATIVE)
        self.last_not_rejecting = np.full(BLOCK, -1, dtype=np.int64)
        self.first_rejecting = np.full(BLOCK, sure, dtype=np.int64)

    def can_reject(self, tested: float, reached: Ints) -> Bools:
        """Tell which of the reached rungs reject an ε of the block."""
        low, high = self.last_not_rejecting, self.first_rejecting
        at = int(np.searchsorted(EPSILONS, tested)) % BLOCK
        distinct = np.unique(reached)
        while len(undecided := distinct[(distinct > low[at]) & (distinct < high[at])]):
            rung = int(undecided[len(undecided) // 2])
            if chance(self.ladder, rung, tested, self.delta, self.allowed) <= self.allowed:
                high[: at + 1] = np.minimum(high[: at + 1], rung)
            else:
                low[at:] = np.maximum(low[at:], rung)
        return np.asarray(reached >= high[at])


@lru_cache(maxsize=8192)
def ladder_table(ladder: Ladder, delta: float, alpha: float, sure: int) -> LadderTable:
    """Return the one table of its arguments: audits of equal size share decisions, without which suites take hours."""
    return LadderTable(ladder, delta, alpha, sure)


def ladder_bound(scores: ScoreSample, limit: float, delta: float, alpha: float, enough: Array | float) -> Array:
    """Return the largest ε such that each ε up to it is rejected, for δ up to ``limit``, by that limit's ladder.

    No larger ε is tested where it is ``enough`` at once.
    """
    assert scores.unobserved is not None
    # At the first of these rungs, and at later ones, Bonferroni's inequality suffices.
    sure = int(np.sum(alpha < LEVELS * (1.0 + RELATIVE) + ABSOLUTE))
    if sure == len(LEVELS):
        return np.zeros(len(scores.observed))
    beyond = np.concatenate(counts_beyond(scores), axis=1)
    before = pooled_order(scores.observed, scores.unobserved)[1]

    def ladder(declared: float) -> Ladder:
        return Ladder(scores.count, scores.null_count, limit, declared)

    def evidence(audits: Ints, declared: float) -> Ints:
        counts, guesses, rounded, most = rungs(ladder(declared))
        wrong = count_wrong(before[audits], scores.null_count, guesses, rounded)
        reached = [np.searchsorted(-most, -wrong, side="right")]
        reached += [np.searchsorted(c, n, side="right") for c, n in zip(counts, beyond[audits].T, strict=True)]
        return np.asarray(np.max(reached, axis=0) - 1)

    def are_rejected(declared: float, tested: float, reached: Ints) -> Bools:
        return ladder_table(ladder(declared), delta, alpha, sure).can_reject(tested, reached)

    # A block that some rank rejects at that rung as a whole needs no more tests.
    values = precedence(scores, limit, NESTED * float(LEVELS[sure]))
    blocks = (np.searchsorted(EPSILONS, values) + 1) // BLOCK
    values = EPSILONS[np.maximum(blocks * BLOCK - 1, 0)]
    left = np.flatnonzero(values < enough)
    values[left] = last_before(
        [BlockTest(lambda at, declared: evidence(left[at], declared), are_rejected)], values[left]
    )
    return values
