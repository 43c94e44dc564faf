"""Few observed and unobserved scores: declared ranks and wrong guesses, by one critical value for all of them.

Counts of few scores are coarse, and ranks and guesses often reject together: most of what Bonferroni's shares of α
allow is then not used. So levels are put on a ladder. A rung is reached by the count beyond any declared rank, or by
the number of wrong guesses, whichever reaches it at its share of the rung's level. The probability that a rung is
reached at all is that of a walk of labels, exactly (``proofs_check/lower_bounds.md``).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels._compiled import njit
from canaryproof.verify.bounds.block_tests import BLOCK, NESTED, SHARP, BlockTest, last_before
from canaryproof.verify.bounds.guesses import (
    ABSOLUTE,
    RELATIVE,
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

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Observed scores times unobserved ones, up to which the walk takes little time.
_MOST = 100_000
# The levels of the rungs.
_LEVELS = np.exp(-0.05 * np.arange(600.0))


def are_few(scores: ScoreSample) -> bool:
    """Tell whether there are unobserved scores, and few of both kinds."""
    return scores.null is None and scores.count * scores.null_count <= _MOST


@dataclass(frozen=True)
class Ladder:
    """What reaches each rung, for a block of ε up to ``declared``, whose levels hold for δ up to ``limit``."""

    count: int
    null_count: int
    limit: float
    declared: float

    @property
    def guesses(self) -> tuple[int, int]:
        """Numbers of high and low guesses."""
        return declared_guesses(self.count, self.null_count, self.limit, self.declared)


@lru_cache(maxsize=2048)
def rungs(ladder: Ladder) -> tuple[list[Ints], Ints]:
    """Return the least counts that reach the rungs, by declared rank, and the most wrong guesses that do."""
    kinds = (ladder.null_count, ladder.count), (ladder.count, ladder.null_count)
    tails = [
        rank_tail(rank, *kind, ladder.declared, ladder.limit)
        for kind in kinds
        for rank in declared_ranks(kind[0]).tolist()
    ]
    least, bounds = few_wrong(ladder.count, ladder.null_count, ladder.guesses, ladder.declared, ladder.limit)
    counts = [least_counts(tail, NESTED / len(tails) * _LEVELS) for tail in tails]
    return counts, least + np.searchsorted(bounds, SHARP * _LEVELS, side="right") - 1


def chance(ladder: Ladder, rung: int, epsilon: float, delta: float, allowed: float = math.nan) -> float:
    """Return the largest probability that (ε, δ)-privacy allows for reaching a rung.

    It may be that probability's lower bound if that is above ``allowed`` already, or an upper bound that is not.
    """
    counts, most = rungs(ladder)
    total = ladder.count + ladder.null_count
    # So many unobserved scores at least are among the first n where no rank reaches the rung.
    least = np.zeros(total + 1, dtype=np.int64)
    ranks = np.concatenate([declared_ranks(ladder.null_count), declared_ranks(ladder.count)])
    for i, (rank, count) in enumerate(zip(ranks, counts, strict=True)):
        number = int(rank + count[rung]) - 1
        if number > total:
            continue
        if i < len(declared_ranks(ladder.null_count)):
            least[number] = max(least[number], rank)
        else:
            # As many observed ones are among the last.
            least[total - number] = max(least[total - number], rank + ladder.null_count - number)
    found, rest = 0.0, 1.0
    for shown, probability in numbers_shown(ladder.count, ladder.null_count, delta):
        found += probability * _given_shown(ladder, least, int(most[rung]), epsilon, shown)
        rest -= probability
        if found > allowed:
            return found
        if found + rest <= allowed:
            return found + rest
    return found


@lru_cache(maxsize=65536)
def _known(_ladder: Ladder, _epsilon: float, _delta: float, _alpha: float, enough: int) -> list[int]:
    """Remember the last rung that is known not to reject, and the first that does; at first what is sure."""
    return [-1, enough]


def _given_shown(ladder: Ladder, least: Ints, most: int, epsilon: float, shown: tuple[int, ...]) -> float:
    seen, unseen = ladder.count - shown[0], ladder.null_count - shown[1]
    total = seen + unseen
    beyond = ladder.null_count - np.arange(shown[1] + 1)[::-1]
    if seen == 0 or unseen == 0 or least[: shown[0] + 1].any() or np.any(least[shown[0] + total :] > beyond):
        return 1.0
    top, bottom = ladder.guesses
    first = min(max(top - shown[0], 0), total)
    last = min(max(ladder.count + ladder.null_count - bottom - shown[0], first), total)
    high, wrong = rates_of_labels(seen, unseen, epsilon)
    switch = stats.binom.pmf(np.arange(total + 1), total, high)
    walked = _unreached(
        seen, switch, wrong[0], 1.0 - wrong[1], least[shown[0] : shown[0] + total + 1], first, last, most + 1
    )
    return 1.0 - walked / float(stats.binom.pmf(seen, total, seen / total))


@njit(cache=True, nogil=True, error_model="numpy")
def _unreached(
    seen: int, switch: Array, high: float, low: float, least: Ints, first: int, last: int, wrong: int
) -> float:
    """Return the probability of so many observed labels, no rank's reaching the rung, and so many wrong guesses.

    Labels are unobserved with probability ``high`` on the high side, ``low`` on the low one; ``switch`` has the
    probabilities of the high side's size. The first guesses are before ``first``, the others from ``last`` on.
    """
    total = len(switch) - 1
    unseen = total - seen
    # By the number of unobserved labels so far: still on the high side, whatever its size; and on the low side.
    one, two = np.zeros(unseen + 1), np.zeros(unseen + 1)
    one[0], two[0] = 1.0, switch[0]
    _walk(one, two, 0, 0, first, seen, switch, high, low, least)
    if last == first:
        for place in range(unseen + 1):
            if 2 * place + seen - last < wrong:
                one[place] = two[place] = 0.0
    else:
        ends = np.zeros(unseen + 1), np.zeros(unseen + 1)
        for begun in range(unseen + 1):
            if one[begun] == 0.0 and two[begun] == 0.0:
                continue
            a, b = np.zeros(unseen + 1), np.zeros(unseen + 1)
            a[begun], b[begun] = one[begun], two[begun]
            _walk(a, b, begun, first, last, seen, switch, high, low, least)
            # Wrong guesses: unobserved labels before ``first``, observed ones from ``last`` on.
            for place in range(max(wrong - begun - seen + last, begun), unseen + 1):
                ends[0][place] += a[place]
                ends[1][place] += b[place]
        one, two = ends
    _walk(one, two, unseen, last, total, seen, switch, high, low, least)
    return float(two[unseen])


@njit(cache=True, nogil=True, error_model="numpy")
def _walk(
    one: Array,
    two: Array,
    most: int,
    start: int,
    stop: int,
    seen: int,
    switch: Array,
    high: float,
    low: float,
    least: Ints,
) -> None:
    """Go on with the labels, in place; up to ``most`` unobserved ones have come before."""
    unseen = len(one) - 1
    for number in range(start + 1, stop + 1):
        most = min(most + 1, unseen, number)
        fewest = max(number - seen, 0)
        for place in range(most, fewest - 1, -1):
            before_one = one[place - 1] if place > 0 else 0.0
            before_two = two[place - 1] if place > 0 else 0.0
            if place < least[number]:
                one[place] = two[place] = 0.0
            else:
                one[place] = one[place] * (1.0 - high) + before_one * high
                two[place] = two[place] * (1.0 - low) + before_two * low + switch[number] * one[place]
        if fewest > 0:
            one[fewest - 1] = two[fewest - 1] = 0.0


def few_scores(scores: ScoreSample, limit: float, delta: float, alpha: float) -> Array:
    """Return the largest ε up to which every one is rejected, for δ up to ``limit``."""
    assert scores.unobserved is not None
    # Of the rungs at which Bonferroni's inequality is enough, the first.
    enough = int(np.sum(alpha < _LEVELS * (1.0 + RELATIVE) + ABSOLUTE))
    if enough == len(_LEVELS):
        return np.zeros(len(scores.observed))
    beyond = np.concatenate(counts_beyond(scores), axis=1)
    before = pooled_order(scores.observed, scores.unobserved)[1]

    def ladder(declared: float) -> Ladder:
        return Ladder(scores.count, scores.null_count, limit, declared)

    def evidence(audits: Ints, declared: float) -> Ints:
        counts, most = rungs(ladder(declared))
        wrong = count_wrong(before[audits], scores.null_count, ladder(declared).guesses)
        reached = [np.searchsorted(-most, -wrong, side="right")]
        reached += [np.searchsorted(c, n, side="right") for c, n in zip(counts, beyond[audits].T, strict=True)]
        return np.asarray(np.max(reached, axis=0) - 1)

    def rejects(declared: float, tested: float, found: Ints) -> Bools:
        known = _known(ladder(declared), tested, delta, alpha, enough)
        allowed = (alpha - ABSOLUTE) / (1.0 + RELATIVE)
        for rung in np.unique(found):
            if known[0] < rung < known[1]:
                known[int(chance(ladder(declared), int(rung), tested, delta, allowed) <= allowed)] = int(rung)
        return np.asarray(found >= known[1])

    # Whole blocks that some rank rejects at that rung need no more tests.
    values = precedence(scores, limit, NESTED * float(_LEVELS[enough]))
    blocks = (np.searchsorted(EPSILONS, values) + 1) // BLOCK
    return last_before([BlockTest(evidence, rejects)], EPSILONS[np.maximum(blocks * BLOCK - 1, 0)])
