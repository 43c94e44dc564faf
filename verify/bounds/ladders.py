"""Ladders: declared ranks and wrong guesses of observed and unobserved scores, by one critical value for all of them.

Ranks and guesses often reject together: most of what Bonferroni's shares of α allow is then not used. So levels are put
on a ladder. A rung is reached by the count beyond any declared rank, or by the number of wrong guesses, whichever
reaches it at its share of the rung's level. The probability that a rung is reached at all is that of a walk of labels
(``proofs_check/lower_bounds.md``).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from canaryproof.kernels._compiled import njit
from canaryproof.verify.bounds.block_tests import BLOCK, NESTED, SHARP, BlockTest, last_before
from canaryproof.verify.bounds.guesses import (
    ABSOLUTE,
    RELATIVE,
    Law,
    binomial_law,
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
Complexes = NDArray[np.complex128]

# Observed scores times unobserved ones, up to which the walk takes little time.
_MOST = 1e9
# The levels of the rungs.
_LEVELS = np.exp(-0.05 * np.arange(600.0))
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
    mean, deviation = _Labels(count, null_count, declared).moments(guesses[0])
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
    total = ladder.count + ladder.null_count
    # Where no rank reaches the rung, at least so many unobserved scores are among the first n, by n.
    limits: dict[int, int] = {}
    high, low = declared_ranks(ladder.null_count), declared_ranks(ladder.count)
    for i, (rank, counts) in enumerate(zip(np.concatenate([high, low]), rungs(ladder).counts, strict=True)):
        first, least = int(rank + counts[rung]) - 1, int(rank)
        if i >= len(high):
            # As many observed ones are among the last.
            first, least = total - first, least + ladder.null_count - first
        if 0 <= first <= total:
            limits[first] = max(least, limits.get(first, 0))
    found, rest = 0.0, 1.0
    for shown, probability in numbers_shown(ladder.count, ladder.null_count, delta):
        given = _given_shown(ladder, limits, rung, epsilon, shown)
        found, rest = found + probability * given, rest - probability
        # The more are shown, the likelier a rung is reached.
        if found + rest * given > allowed:
            return found + rest * given
        if found + rest <= allowed:
            return found + rest
    return found


@lru_cache(maxsize=8192)
def _known(_ladder: Ladder, _delta: float, _alpha: float, sure: int) -> tuple[Ints, Ints]:
    """Remember for a block's ε the last rungs known not to reject, and the first that do; at first what is sure."""
    return np.full(BLOCK, -1, dtype=np.int64), np.full(BLOCK, sure, dtype=np.int64)


def _given_shown(ladder: Ladder, limits: Mapping[int, int], rung: int, epsilon: float, shown: tuple[int, ...]) -> float:
    seen, unseen = ladder.count - shown[0], ladder.null_count - shown[1]
    total = seen + unseen
    # Before the labels are observed ones alone, behind them unobserved ones alone.
    least = {place - shown[0]: limit for place, limit in limits.items()}
    outside = [limit > max(place + unseen - total, 0) for place, limit in least.items() if not 0 < place < total]
    if seen == 0 or unseen == 0 or any(outside):
        return 1.0
    labels = _Labels(seen, unseen, epsilon)
    _, (top, bottom), rounded, most = rungs(ladder)
    first = min(max(top - shown[0], 0), total)
    last = min(max(ladder.count + ladder.null_count - bottom - shown[0], first), total)
    begun = labels.walked(labels.start, 0, first, least)[0]
    # Until the last guesses, a row for each number of unobserved labels among the first ones, rounded up.
    rows = (
        np.searchsorted(rounded, np.minimum(labels.numbers(first), top))
        == np.arange(len(rounded))[:, np.newaxis, np.newaxis]
    )
    ended = labels.walked(np.where(rows, begun, 0.0), first, last, least)
    # Wrong guesses: unobserved labels before ``first``, observed ones from ``last`` on.
    wrong = rounded[:, np.newaxis, np.newaxis] + labels.numbers(last) + seen - last
    ended = np.where(wrong > most[rung], ended, 0.0).sum(axis=0, keepdims=True)
    unreached = float(labels.walked(ended, last, total, least)[0, 1, unseen % labels.period])
    lowest, law = binomial_law(total, seen / total)
    return max(1.0 - unreached / float(law[seen - lowest]), 0.0)


@dataclass(frozen=True)
class _Labels:
    """The walk of labels from the highest on, as if each were observed with the same probability.

    A state has the shape (rows, 2, period): the probabilities of so many unobserved labels, modulo the period, still on
    the high side, whatever its size, and on the low side.
    """

    seen: int
    unseen: int
    epsilon: float

    @cached_property
    def period(self) -> int:
        # By Bernstein's inequality numbers are farther from their mean than half of it with less than 1e-14.
        total = self.seen + self.unseen
        wide = math.ceil(16.0 * math.sqrt(self.seen * self.unseen / total) + 60.0)
        return int(fft.next_fast_len(min(wide, total + 1), real=True))

    @cached_property
    def rates(self) -> tuple[float, float, float]:
        """The probabilities of the high side, and of an unobserved label there and on the low side."""
        side, (high, low) = rates_of_labels(self.seen, self.unseen, self.epsilon)
        return side, high, 1.0 - low

    @cached_property
    def sizes(self) -> Law:
        """The law of the high side's size."""
        return binomial_law(self.seen + self.unseen, self.rates[0])

    @property
    def start(self) -> Array:
        """The state before the first label."""
        state = np.zeros((1, 2, self.period))
        state[0, :, 0] = 1.0, (self.sizes[1][0] if self.sizes[0] == 0 else 0.0)
        return state

    def moments(self, place: int) -> tuple[float, float]:
        """Return the mean and standard deviation of the number of unobserved labels among the first."""
        (smallest, weights), (_, high, low) = self.sizes, self.rates
        on_high = np.minimum(smallest + np.arange(len(weights)), place)
        means = high * on_high + low * (place - on_high)
        variances = high * (1.0 - high) * on_high + low * (1.0 - low) * (place - on_high)
        mean = float(weights @ means)
        return mean, math.sqrt(weights @ (variances + (means - mean) ** 2))

    def numbers(self, place: int) -> Ints:
        """Return the numbers of unobserved labels among the first that a state stands for."""
        side, high, low = self.rates
        on_high = min(place, side * (self.seen + self.unseen))
        mean = round(high * on_high + low * (place - on_high))
        lowest = max(min(mean - self.period // 2, place + 1 - self.period), 0)
        return lowest + (np.arange(self.period) - lowest) % self.period

    def walked(self, state: Array, start: int, stop: int, least: Mapping[int, int]) -> Array:
        """Go on with the labels, but where fewer unobserved ones than ``least`` are among the first."""
        smallest, weights = self.sizes
        largest = smallest + len(weights) - 1
        high, low = 0, 1
        # Where as many are among so many labels whatever their order, there is nothing to leave out.
        binding = {
            place for place, limit in least.items() if start < place < stop and limit > max(place - self.seen, 0)
        }
        for place in sorted(binding | ({stop} if start < stop else set())):
            moved, spectrum = np.zeros_like(state), np.zeros(1, dtype=np.complex128)
            if start >= smallest:
                spectrum = np.fft.rfft(state[:, 1]) * self._law(low, place - start)
            if start < largest:
                one = np.fft.rfft(state[:, 0])
                moved[:, 0] = np.fft.irfft(one * self._law(high, place - start), self.period)
                # The sizes at which the low side begins on the way.
                begin, end = max(start + 1, smallest), min(place, largest)
                if begin <= end:
                    between = _mixed(
                        weights[begin - smallest : end - smallest + 1], self._law(high, 1), self._law(low, 1)
                    )
                    spectrum = spectrum + one * (self._law(high, begin - start) * self._law(low, place - end) * between)
            if place >= smallest:
                moved[:, 1] = np.fft.irfft(spectrum, self.period)
            state = np.maximum(moved, 0.0, out=moved)
            state[:, :, self.numbers(place) < least.get(place, 0)] = 0.0
            start = place
        return state

    @cached_property
    def logarithms(self) -> list[Complexes]:
        """Those of a label's transform on either side, of the rarer kind: powers near 1 would lose digits."""
        angles = 2.0 * np.pi * np.arange(self.period // 2 + 1) / self.period
        turn = -2.0 * np.sin(0.5 * angles) ** 2 - 1j * np.sin(angles)
        return [special.log1p(rate * turn if rate <= 0.5 else (1.0 - rate) * turn.conj()) for rate in self.rates[1:]]

    @cached_property
    def roots(self) -> Complexes:
        """Roots of one."""
        return np.asarray(np.exp(-2j * np.pi * np.arange(self.period) / self.period))

    def _law(self, side: int, labels: int) -> Complexes:
        """Return the transform of the number of unobserved ones among so many labels of a side."""
        law = np.exp(labels * self.logarithms[side])
        if self.rates[1 + side] > 0.5:
            law *= self.roots[np.arange(len(law)) * labels % self.period]
        return np.asarray(law)


@njit(cache=True, nogil=True, error_model="numpy")
def _mixed(weights: Array, one: Complexes, other: Complexes) -> Complexes:
    """Add up the weights times as many powers of one point, and of the other for those that follow."""
    result, factor = np.zeros_like(one), np.ones_like(one)
    for weight in weights:
        for j in range(len(one)):
            result[j] = result[j] * other[j] + weight * factor[j]
            factor[j] *= one[j]
    return result


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

    def rejects(declared: float, tested: float, found: Ints) -> Bools:
        low, high = _known(ladder(declared), delta, alpha, sure)
        at = int(np.searchsorted(EPSILONS, tested)) % BLOCK
        rungs_found = np.unique(found)
        while len(unknown := rungs_found[(rungs_found > low[at]) & (rungs_found < high[at])]):
            rung = int(unknown[len(unknown) // 2])
            # A rung that rejects an ε rejects the smaller ones, too.
            if chance(ladder(declared), rung, tested, delta, allowed) <= allowed:
                high[: at + 1] = np.minimum(high[: at + 1], rung)
            else:
                low[at:] = np.maximum(low[at:], rung)
        return np.asarray(found >= high[at])

    # Whole blocks that some rank rejects at that rung need no more tests.
    values = precedence(scores, limit, NESTED * float(_LEVELS[sure]))
    blocks = (np.searchsorted(EPSILONS, values) + 1) // BLOCK
    values = EPSILONS[np.maximum(blocks * BLOCK - 1, 0)]
    left = np.flatnonzero(values < enough)
    values[left] = last_before([BlockTest(lambda at, declared: evidence(left[at], declared), rejects)], values[left])
    return values
