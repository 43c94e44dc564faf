"""The least fault that an audit notices: the power of the tests that decide, at every share of the claimed noise.

The claim is exceeded if the default lower bound is above it. That bound rejects one ε after another until one is left.
The claim's block of ε and the ones before it must all be rejected. Each is rejected by any of several events.

With unobserved scores, every event is one of the order of the labels: U(p), the number of unobserved scores among the p
highest of all, is small. With an exact null it is one of the numbers of scores above thresholds. Both are functions of
empirical distributions, whose limit is a Gaussian process. Its covariance is computed, the means are corrected to
second order, and marginal laws by their skewness. Fixed points of a Sobol sequence then give the joint probability.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, special

from canaryproof.kernels.arrays import Array, Ints
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.blindspots.mechanisms import AtlasClaim, Mechanism
from canaryproof.verify.audit.blindspots.ranges import SMALLEST_DIM, BlindSpots, ranges
from canaryproof.verify.audit.bounds import one_run
from canaryproof.verify.audit.bounds.block_tests import BLOCK, NESTED, SHARP, designs
from canaryproof.verify.audit.bounds.fixed_sequence import least_rejecting, sum_design
from canaryproof.verify.audit.bounds.guesses import ABSOLUTE, RELATIVE, declared_guesses, most_wrong
from canaryproof.verify.audit.bounds.ladders import LEVELS, Ladder, ladder_table, largest_deltas, rungs
from canaryproof.verify.audit.bounds.lower_bound import Inclusion, prepare
from canaryproof.verify.audit.bounds.participations import Crowd
from canaryproof.verify.audit.bounds.precedence import EPSILONS, critical_count, declared_ranks, worst_tail
from canaryproof.verify.audit.bounds.thresholds import band, band_ranks, skipped_ranks
from canaryproof.verify.audit.bounds.weights import Block, law_of_wrong, p_value
from canaryproof.verify.audit.estimators.noise_multiplier import power as power_by_sum
from canaryproof.verify.audit.levels import PART_LEVEL, POWER

if TYPE_CHECKING:
    from canaryproof.verify.audit.accounting.accountant import Claim

# Blocks of ε before the claim's that are looked at; the ones before them are rejected almost always where these are.
_BLOCKS = 4
# Points of the Sobol sequence, a power of two, and an addition to the diagonal of correlations.
_POINTS, _JITTER = 2048, 1e-8
# Points that BLAS multiplies at once: on one thread, up to 128 numbers of each.
_PIECE = 16
# The computed probability is lowered by a constant and a share of 1/√n for n scores. Both cover the largest errors that
# simulation shows (``tests/verify/audit/answer/test_notice.py``).
_SLACK, _SMALL_SAMPLE = 0.004, 0.07
# Numbers with a smaller mean have their exact laws, tabulated from the least value on.
_SMALL_NUMBER, _TABLE = 4.0, 16
# Gauss and Legendre's nodes and weights in the unit interval, for the mean over an order statistic's quantiles.
_NODES, _WEIGHTS = (0.5 * part for part in np.polynomial.legendre.leggauss(6))
_NODES += 0.5
# Points of the scores' distribution functions, and the range of N(0, 1) that they cover.
_GRID, _REACH = 1500, 12.0
# Largest trace, in the null's deviations; groups so far apart are separated wholly.
_LARGEST_TRACE = 60.0
# Relative accuracy of a noticed share, and ratio between considered numbers of canaries.
_CLOSE, _RATIO = 1e-3, 1.05
# Largest number of observed canaries that is considered.
MOST_SCORES = 10**6


@dataclass(frozen=True)
class _Guesses:
    """Numbers of high and low guesses, and how many may be wrong in all for the test to reject."""

    pairs: one_run.Guesses
    most: int
    rounded: Ints | None = None  # Numbers that the wrong high guesses are rounded up to


@dataclass(frozen=True)
class _Rejection:
    """A rejection of one ε from the order of the scores: one of its events suffices.

    A rank's event is that at most ``most`` of the scores up to ``positions`` are unobserved.
    """

    positions: Ints
    most: Ints
    guesses: tuple[_Guesses, ...]


@dataclass(frozen=True)
class _Sum:
    """A test of summed weights: thresholds of the null N(0, 1), and the least sum that rejects."""

    thresholds: Array
    least: int


def _blocks(claim: float) -> Iterator[tuple[float, float]]:
    """Yield the largest ε of the claim's block and of some before it, with the ε that must be rejected in it."""
    index = min(int(np.searchsorted(EPSILONS, claim, side="right")), len(EPSILONS) - 1)
    for block in range(index // BLOCK, max(index // BLOCK - _BLOCKS, -1), -1):
        last = min((block + 1) * BLOCK, len(EPSILONS)) - 1
        yield float(EPSILONS[last]), float(EPSILONS[min(last, index)])


# Audits of equal size share rejections.
@lru_cache(maxsize=1024)
def _rejections(
    count: int, null_count: int, claim: float, delta: float, alpha: float, inclusion: Inclusion, curve: "Claim | None"
) -> tuple[_Rejection, ...]:
    """Return the rejections which together put the bound above the claim, or refute its curve."""
    if curve is not None:
        return (_by_curve(count + null_count, curve, alpha),)
    if inclusion is Inclusion.COIN:
        return _one_run(count + null_count, claim, delta, alpha)
    served = largest_deltas(prepare(np.zeros(count), np.zeros(null_count)))
    beyond = delta > max(served, default=-1.0)
    least = _least_beyond(count, null_count, claim, delta, NESTED * alpha) if beyond else []
    blocks: list[list[_Rejection]] = []
    for declared, tested in _blocks(claim):
        result: list[_Rejection] = []
        for limit in served[: 1 + sum(delta > limit for limit in served)]:
            ladder = Ladder(count, null_count, limit, declared)
            result.append(_of_ladder(ladder, tested, min(delta, limit), alpha))
        if beyond:
            for design, at in designs(max(count, null_count), delta):
                top, bottom = declared_guesses(count, null_count, design, declared)
                most = most_wrong(count, null_count, (top, bottom), tested, at, SHARP * alpha)
                result.append(_rejection(count, null_count, least, _Guesses(((top, bottom),), most)))
        blocks.append(result)
    # Ranks that reject the claim reject the ε of a block before it; that block's own ranks add little.
    return tuple(
        replace(part, positions=claimed.positions, most=claimed.most)
        for block in blocks
        for claimed, part in zip(blocks[0], block, strict=True)
    )


def _least_beyond(count: int, null_count: int, claim: float, delta: float, alpha: float) -> list[Ints]:
    """Return the least counts beyond declared ranks that reject the claim, each at the same share of α."""
    index = min(int(np.searchsorted(EPSILONS, claim, side="right")), len(EPSILONS) - 1)
    kinds = (null_count, count), (count, null_count)
    level = alpha / sum(len(declared_ranks(declared)) for declared, _ in kinds)
    return [
        np.array([critical_count(rank, *kind, delta, level, index) for rank in declared_ranks(kind[0]).tolist()])
        for kind in kinds
    ]


def _of_ladder(ladder: Ladder, tested: float, delta: float, alpha: float) -> _Rejection:
    sure = int(np.sum(alpha < LEVELS * (1.0 + RELATIVE) + ABSOLUTE))
    table, low, high = ladder_table(ladder, delta, alpha, sure), -1, sure
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if table.can_reject(tested, np.array([middle]))[0] else (middle, high)
    counts, (top, bottom), rounded, most = rungs(ladder)
    if high == len(LEVELS):
        return _Rejection(np.empty(0, np.int64), np.empty(0, np.int64), ())
    split = len(declared_ranks(ladder.null_count))
    least = np.array([reached[high] for reached in counts])
    guesses = _Guesses(((top, bottom),), int(most[high]), rounded)
    return _rejection(ladder.count, ladder.null_count, [least[:split], least[split:]], guesses)


def _rejection(count: int, null_count: int, counts: list[Ints], guesses: _Guesses) -> _Rejection:
    """Write the least counts beyond declared ranks as limits of the number of unobserved scores."""
    high, low = declared_ranks(null_count), declared_ranks(count)
    # Beyond a rank are enough scores of the other kind, if few of its own kind are that far from the same end.
    above, below = high + counts[0] - 1, low + counts[1] - 1
    positions = np.concatenate([above, count + null_count - below])
    most = np.concatenate([high - 1, low - 1 + null_count - below])
    possible = np.concatenate([counts[0] <= count, counts[1] <= null_count])
    return _Rejection(positions[possible], most[possible], (guesses,))


def _by_curve(total: int, claim: "Claim", alpha: float) -> _Rejection:
    """Return the rejection of a claim's own curve by guesses on canaries that fair coins chose."""
    curve = one_run.curve_of(claim.tradeoff)
    number = one_run.number_for_curve(total, curve)
    guesses = _Guesses(((number // 2, number // 2),), one_run.most_wrong_of_curve(total, number, curve, alpha))
    return _Rejection(np.empty(0, np.int64), np.empty(0, np.int64), (guesses,))


def _one_run(total: int, claim: float, delta: float, alpha: float) -> tuple[_Rejection, ...]:
    """Return the rejections by guesses on canaries that fair coins chose, in the claim's block and some before it."""
    last = int(np.searchsorted(one_run.ends(total), claim, side="right"))
    result = []
    for design, at in designs(total, delta):
        for block in one_run.blocks(total)[max(last - _BLOCKS, 0) : last + 1]:
            # Only the claim's block ends beyond the claim.
            epsilon = min(block[1], claim)
            guesses = [
                _Guesses(pairs, _most_wrong(total, pairs, epsilon, block, at, share * alpha))
                for pairs, share in one_run.declared_tests(total, design, block)
            ]
            if share := one_run.run_share(total, block[1]):
                # All of the first guesses of an end must be right.
                first = _least_run(total, epsilon, at, share * alpha)
                guesses += [_Guesses(((first, 0),), 0), _Guesses(((0, first),), 0)] if first < total else []
            result.append(_Rejection(np.empty(0, np.int64), np.empty(0, np.int64), tuple(guesses)))
    return tuple(result)


def _most_wrong(total: int, pairs: one_run.Guesses, epsilon: float, block: Block, delta: float, alpha: float) -> int:
    """Return the most wrong guesses, or the largest weight of them, that reject an ε of a block; −1 if none do."""
    if len(pairs) == 1:
        # The more are right, the more is rejected.
        number = sum(pairs[0])
        chance = partial(one_run.p_value, total, number, epsilon=epsilon, delta=delta)
        return number - bisect_left(range(number + 1), True, lo=1, key=lambda right: chance(right) <= alpha)
    sizes = tuple(top for top, _ in pairs)
    first, law = law_of_wrong(sizes, epsilon)
    # No weight is below 0, so that the p-value there is δ's cost alone.
    allowed = alpha - p_value(total, sizes, -1, epsilon, block, delta)
    return first + int(np.searchsorted(law, allowed, side="right")) - 1 if allowed >= law[0] else -1


def _least_run(total: int, epsilon: float, delta: float, alpha: float) -> int:
    """Return the least number of guesses on m canaries that reject ε where all are right; m if none does."""
    chance = partial(one_run.p_value, total, epsilon=epsilon, delta=delta)
    return bisect_left(range(total), True, lo=1, key=lambda run: chance(run, run) <= alpha)


@lru_cache(maxsize=16)
def _normal_points(dimensions: int) -> Array:
    # It takes as long to load as the audit.
    from scipy.stats import qmc

    points = qmc.Sobol(dimensions, seed=0).random(_POINTS)
    return np.asarray(special.ndtri(np.clip(points, 1e-12, 1.0 - 1e-12)))


def _draw_numbers(mean: Array, covariance: Array, skewness: Array) -> tuple[Array, Array]:
    """Return whole numbers of these moments at the fixed points, shape (points, numbers), and their normal scores."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-24))
    # A root by Cholesky is continuous in the covariance, unlike one by eigenvectors; numbers may nearly be equal.
    factor = np.linalg.cholesky(covariance / np.outer(deviation, deviation) + _JITTER * np.eye(len(mean)))
    # In pieces that BLAS multiplies on one thread: it would start others for a moment's work, and their number would
    # change the last digits. ``einsum`` takes five times as long.
    z = (_normal_points(len(mean)).reshape(-1, _PIECE, len(mean)) @ factor.T).reshape(_POINTS, len(mean))
    # A gamma variable's quantile by Wilson and Hilferty has the right skewness.
    skewness = np.where(np.abs(skewness) < 1e-4, 1e-4, np.clip(skewness, -3.0, 3.0))
    scale = 2.0 * deviation / skewness
    root = z * (skewness / 6.0)
    root += 1.0 - skewness**2 / 36.0
    np.maximum(root, 0.0, out=root)
    # In place and as products: numpy's own third power takes most of the time of a list of faults.
    drawn = root * root
    drawn *= root
    drawn *= scale
    drawn += mean - scale
    return np.rint(drawn, out=drawn), z


def _distributions(traces: Array, rounds: float) -> tuple[Array, Array, Array, Array, Array]:
    """Return a grid of scores, and for both kinds the probability below each and the log of that above."""
    grid = np.linspace(-_REACH, _REACH + float(traces.max()), _GRID)
    unseen = rounds * special.log_ndtr(grid)
    # An observed score's law is the mean over the traces.
    seen = np.logaddexp.reduce(special.log_ndtr(grid - traces[:, np.newaxis]), axis=0) - math.log(len(traces))
    seen = np.minimum(seen + (rounds - 1) * special.log_ndtr(grid), 0.0)
    return grid, np.exp(unseen), _log_above(unseen), np.exp(seen), _log_above(seen)


def rounds_per_score(unobserved: Array) -> float:
    """Estimate of how many normal variables unobserved scores are the largest, by their mean in deviations.

    Parameters
    ----------
    unobserved
        Scores of canaries that did not take part, not all equal, shape (k₀,), k₀ ≥ 2.

    Returns
    -------
    The number, from 1 to 10⁶; 1 unless the mean is above 0 at level 1e-7.
    """
    ratio = float(unobserved.mean()) / float(unobserved.std())
    if ratio < float(-special.ndtri(PART_LEVEL)) / math.sqrt(len(unobserved)):
        return 1.0

    def excess(log_rounds: float) -> float:
        grid, below, _, _, _ = _distributions(np.zeros(1), math.exp(log_rounds))
        middle, chances = 0.5 * (grid[1:] + grid[:-1]), np.diff(below)
        mean = float((middle * chances).sum())
        return mean / math.sqrt(float(((middle - mean) ** 2 * chances).sum())) - ratio

    most = math.log(1e6)
    return math.exp(float(optimize.brentq(excess, 0.0, most))) if excess(most) > 0.0 else 1e6


def _log_above(log_below: Array) -> Array:
    return np.asarray(np.log(-np.expm1(np.minimum(log_below, -1e-300))))


def _unobserved_among_highest(traces: Array, rounds: float, count: int, null_count: int, positions: Ints) -> Array:
    """Return U(p) for rising positions p at the fixed points, shape (points, positions)."""
    grid, null_below, log_null_above, below, log_above = _distributions(traces, rounds)
    null_above, above = np.exp(log_null_above), np.exp(log_above)
    step = grid[1] - grid[0]
    null_rate, rate = null_count * np.gradient(null_below, step), count * np.gradient(below, step)
    pooled = np.maximum(null_rate + rate, 1e-200)
    share = null_rate / pooled

    def slope(values: Array) -> Array:
        """Differentiate by the mean number of scores above."""
        return -np.gradient(values, step) / pooled

    # A position has a random threshold. Its variance and that of U at a threshold shift the mean of U at the position.
    null_variance = null_count * null_below * null_above
    variance = null_variance + count * below * above
    shift = 0.5 * (share * slope(variance) + slope(share) * variance - slope(null_variance))
    threshold = np.interp(-positions, -(null_count * null_above + count * above), grid)
    at = [np.interp(threshold, grid, values) for values in (null_below, null_above, below, above, share, shift)]
    null_below, null_above, below, above, share, shift = at
    order = np.arange(len(positions))
    first, last = np.minimum.outer(order, order), np.maximum.outer(order, order)
    covariance = np.outer(1.0 - share, 1.0 - share) * null_count * null_above[first] * null_below[last]
    covariance += np.outer(share, share) * count * above[first] * below[last]
    third = (1.0 - share) ** 3 * null_count * null_above * null_below * (null_below - null_above)
    third -= share**3 * count * above * below * (below - above)
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-24))
    drawn, z = _draw_numbers(null_count * null_above + shift, covariance, third / deviation**3)
    # The smallest of numbers have their exact laws.
    least = np.maximum(positions - count, 0)
    small = np.flatnonzero(null_count * null_above - least < _SMALL_NUMBER)
    if len(small):
        probabilities = _exact_laws(log_null_above, log_above, count, null_count, positions[small])
        for i, at_most in zip(small, probabilities, strict=True):
            drawn[:, i] = least[i] + np.searchsorted(at_most, special.ndtr(z[:, i]))
    # Normal scores tie small numbers too loosely; in truth none falls from one position to the next.
    return np.asarray(np.maximum.accumulate(drawn, axis=1))


@lru_cache(maxsize=256)
def _null_quantiles(position: int, count: int, null_count: int) -> tuple[Ints, Array]:
    """Return the ranks of unobserved scores that are among the highest, and logs of their tail's quantiles."""
    least = max(position - count, 0)
    ranks = np.arange(least + 1, least + 1 + _TABLE)
    inside = np.minimum(ranks, null_count)[:, np.newaxis]
    return ranks, np.asarray(np.log(np.maximum(special.betaincinv(inside, null_count - inside + 1.0, _NODES), 1e-300)))


def _exact_laws(log_null_above: Array, log_above: Array, count: int, null_count: int, positions: Ints) -> Array:
    """Return P(U(p) ≤ u) from the least u on, shape (positions, values).

    U(p) is at least u exactly where fewer than p + 1 − u observed scores are above the u-th highest unobserved one.
    """
    parts = [_null_quantiles(int(position), count, null_count) for position in positions]
    ranks, quantiles = np.array([part[0] for part in parts]), np.array([part[1] for part in parts])
    tails = np.exp(np.interp(quantiles, log_null_above[::-1], log_above[::-1]))
    needed = positions[:, np.newaxis] + 1 - ranks
    inside = np.clip(needed, 1, count)[..., np.newaxis]
    fewer = special.betaincc(inside, count - inside + 1.0, tails) @ _WEIGHTS
    fewer = np.where(needed > count, 1.0, fewer)
    return np.asarray(1.0 - np.where((needed < 1) | (ranks > null_count), 0.0, fewer))


def _power_by_order(
    traces: Array, rounds: float, count: int, null_count: int, rejections: tuple[_Rejection, ...]
) -> float:
    total = count + null_count
    ends = [(top, total - bottom) for part in rejections for guesses in part.guesses for top, bottom in guesses.pairs]
    asked = np.unique(np.concatenate([*(part.positions for part in rejections), np.array(ends).ravel()]))
    inner = asked[(asked > 0) & (asked < total)].astype(np.int64)
    drawn = np.zeros((_POINTS, len(inner) + 2))
    drawn[:, 1:-1] = _unobserved_among_highest(traces, rounds, count, null_count, inner)
    drawn[:, -1] = null_count
    known = np.concatenate([[0], inner, [total]])

    def unobserved_numbers(positions: Ints | int) -> Array:
        return drawn[:, np.searchsorted(known, positions)]

    rejected = np.ones(_POINTS, dtype=np.bool_)
    for part in rejections:
        by_any = [unobserved_numbers(part.positions) <= part.most]
        for guesses in part.guesses:
            wrong = np.zeros(_POINTS)
            for top, bottom in guesses.pairs:
                high = np.clip(unobserved_numbers(top), 0, top)
                if guesses.rounded is not None:
                    high = guesses.rounded[np.searchsorted(guesses.rounded, high)].astype(np.float64)
                wrong += high + bottom - null_count + unobserved_numbers(total - bottom)
            by_any.append((wrong <= guesses.most)[:, np.newaxis])
        rejected &= np.hstack(by_any).any(axis=1)
    return float(rejected.mean())


@dataclass(frozen=True)
class _ExactTests:
    """Tests with an exact null: for each block the sums, and thresholds of the bands' ranks, one band after another.

    All sums reject, or some rank of every band.
    """

    sums: tuple[tuple[_Sum, ...], ...]
    ranks: Ints
    thresholds: Array
    bands: Ints  # The position of each band's first rank


@lru_cache(maxsize=64)
def _exact_tests(count: int, claim: float, delta: float, alpha: float) -> _ExactTests:
    blocks = []
    for declared, tested in _blocks(claim):
        sums = []
        for design, at in designs(count, delta):
            log_tails = np.sort(sum_design(count, design, declared))[::-1]
            least = least_rejecting(worst_tail(tested, log_tails, at), count, SHARP * alpha * (1.0 - RELATIVE))
            sums.append(_Sum(-special.ndtri_exp(log_tails), least))
        blocks.append(tuple(sums))
    ranks, thresholds = [], []
    for skipped, at in skipped_ranks(count, delta):
        ranks.append(band_ranks(count, skipped))
        levels = band(count, NESTED * alpha, skipped)[ranks[-1]]
        # A band is above the claim if the score of some rank has a null tail as small as the larger of two numbers.
        tails = np.maximum((levels - at) * math.exp(-claim), 1.0 - at - (1.0 - levels) * math.exp(min(claim, 700.0)))
        thresholds.append(-special.ndtri(np.clip(tails, 0.0, 1.0)))
    bands = np.cumsum([0, *map(len, ranks[:-1])])
    return _ExactTests(tuple(blocks), np.concatenate(ranks), np.concatenate(thresholds), bands)


def _power_by_thresholds(trace: float, count: int, tests: _ExactTests) -> float:
    sums = [test for block in tests.sums for test in block]
    thresholds = np.concatenate([*(test.thresholds for test in sums), tests.thresholds])
    starts = np.cumsum([0, *(len(test.thresholds) for test in sums)])

    def totals(values: Array) -> Array:
        """Add what belongs to the thresholds of a sum; the others stand for themselves."""
        summed = np.add.reduceat(values[: starts[-1]], starts[:-1], axis=0)
        return np.concatenate([summed, values[starts[-1] :]])

    tails = special.ndtr(trace - thresholds)
    # A score above two thresholds is above the higher one.
    covariance = count * (np.minimum.outer(tails, tails) - np.outer(tails, tails))
    deviation = np.sqrt(np.maximum(count * tails * (1.0 - tails), 1e-24))
    # Sums of many weights are close to normal.
    skewness = np.concatenate([np.zeros(len(sums)), ((1.0 - 2.0 * tails) / deviation)[starts[-1] :]])
    drawn = _draw_numbers(totals(count * tails), totals(totals(covariance).T).T, skewness)[0]
    by_sums = (drawn[:, : len(sums)] >= np.array([test.least for test in sums])).all(axis=1)
    by_bands = np.logical_or.reduceat(drawn[:, len(sums) :] >= tests.ranks, tests.bands, axis=1).all(axis=1)
    return float((by_sums | by_bands).mean())


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class BoundTest:
    """The test of a claimed ε by the default lower bound, which rejects where the bound is above the claim.

    Observed scores are normal with deviation 1, and their mean is the trace that a canary leaves; unobserved ones are
    N(0, 1).

    Attributes
    ----------
    claim
        Claimed ε.
    delta
        δ in [0, 1).
    level
        Level of the bound, in (0, 1).
    count
        Number of observed scores.
    null_count
        Number of unobserved scores; None for an exact null.
    rounds
        Number T of cosines of which a score is the largest. One of an observed canary's has a trace (Algorithm 3).
    inclusion
        ``FIXED`` for the bound ``fixed-sequence``, ``COIN`` for ``one-run``.
    curve
        Claimed mechanism, if its own trade-off curve is tested in place of ε, which coins allow.
    """

    claim: float
    delta: float
    level: float
    count: int
    null_count: int | None
    rounds: float = 1
    inclusion: Inclusion = Inclusion.FIXED
    curve: "Claim | None" = None

    def power(self, traces: Array) -> float:
        """Return the probability that the bound is above the claim, or that the claim's curve is refuted.

        It is computed and not proven, and lowered by 0.004 + 0.07/√n for n scores in all. That is more than it exceeded
        the share of simulated bounds in the tests.

        Parameters
        ----------
        traces
            Means of a score with a canary's trace, shape (n,). A canary has each of them with probability 1/n.

        Returns
        -------
        The probability.

        Raises
        ------
        ValueError
            If an exact null comes with several traces or rounds, or with coins.
        """
        traces = np.minimum(np.asarray(traces, dtype=np.float64), _LARGEST_TRACE)
        if self.null_count is None and (len(traces) > 1 or self.rounds > 1 or self.inclusion is Inclusion.COIN):
            raise ValueError("null_count: must be given for several traces or rounds, and for coins")
        return _power(self, tuple(traces.tolist()))

    def noticed_share(self, noise_multiplier: float) -> float | None:
        """Return the largest share of the claimed noise at which the bound is above the claim with probability 90%.

        Parameters
        ----------
        noise_multiplier
            Claimed deviation σ of the noise in what is scored, in canary norms. A share of it leaves the trace
            1/(share·σ).

        Returns
        -------
        The share, at most 1, rounded down by about 0.1%; None if even scores without noise do not reach that.

        Raises
        ------
        ValueError
            As for ``power``.
        """

        def excess(trace: float) -> float:
            reached = self.power(np.array([trace]))
            # The probit is nearly linear in the trace.
            return float(special.ndtri(np.clip(reached, 1e-6, 1.0 - 1e-6)) - special.ndtri(POWER))

        low = high = 1.0 / noise_multiplier
        while excess(high) < 0.0:
            if high >= _LARGEST_TRACE:
                return None
            low, high = high, min(4.0 * high, _LARGEST_TRACE)
        if low == high:
            return 1.0
        trace = float(optimize.brentq(excess, low, high, rtol=_CLOSE))
        while excess(trace) < 0.0:
            trace *= 1.0 + _CLOSE
        return 1.0 / (trace * noise_multiplier)

    def _about_sufficient(self, trace: float) -> float:
        """Return about how many observed scores suffice, by the number above the threshold that shows the most."""
        _, _, log_null_above, _, log_above = _distributions(np.array([min(trace, _LARGEST_TRACE)]), self.rounds)
        null_tails, tails, factor = np.exp(log_null_above), np.exp(log_above), math.exp(min(self.claim, 300.0))
        excess = tails - self.delta - factor * null_tails
        variance = tails * (1.0 - tails) + (self.null_count is not None) * factor**2 * null_tails * (1.0 - null_tails)
        deviations = float(special.ndtri(POWER) - special.ndtri(self.level))
        shows = excess > 0.0
        return float(np.min(variance[shows] / excess[shows] ** 2, initial=math.inf)) * deviations**2

    def sufficient_count(self, trace: float) -> int | None:
        """Return a number of canaries that makes the bound exceed the claim with probability 90%.

        Parameters
        ----------
        trace
            Mean of an observed score.

        Returns
        -------
        The number of observed scores, doubled until it suffices and rounded up to two digits; None if none of those
        tried up to 1,000,000 does. More are not always better: where δ explains some of the scores, they may notice
        less.
        """

        def is_sufficient(count: int) -> bool:
            test = replace(self, count=count, null_count=None if self.null_count is None else count)
            return test.power(np.array([trace])) >= POWER

        counts = [self.count]
        while counts[-1] < MOST_SCORES:
            counts.append(min(2 * counts[-1], MOST_SCORES))
        # Few are tried, from about the least on, as each has tables of its own. Larger ones suffice where one does, but
        # for coins at a δ that may show many canaries: a million can be too many.
        first = many = min(bisect_left(counts, self._about_sufficient(trace)), len(counts) - 1)
        few, step = -1, 1
        while not is_sufficient(counts[many]):
            if many == len(counts) - 1:
                return None
            few, many, step = many, min(many + step, len(counts) - 1), 2 * step
        if many == first:
            while many > 0 and is_sufficient(counts[many - 1]):
                many -= 1
            few = many - 1
        count = counts[bisect_left(range(many), True, lo=few + 1, key=lambda i: is_sufficient(counts[i]))]
        unit = int(10 ** max(len(str(count)) - 2, 0))
        return -(-count // unit) * unit


# Audits of equal size ask for the same ones.
@lru_cache(maxsize=16384)
def _power(test: BoundTest, traces: tuple[float, ...]) -> float:
    claim, delta, level, count, null_count = test.claim, test.delta, test.level, test.count, test.null_count
    slack = _SLACK + _SMALL_SAMPLE / math.sqrt(count + (null_count or 0))
    if null_count is None:
        power = _power_by_thresholds(traces[0], count, _exact_tests(count, claim, delta, level))
    elif test.curve is None and claim > math.log((count + null_count) / (1.0 - level)):
        # Where all scores are separated, an upper limit of a rate is at least (1 − α)/n.
        power = 0.0
    else:
        rejections = _rejections(count, null_count, claim, delta, level, test.inclusion, test.curve)
        power = _power_by_order(np.array(traces), test.rounds, count, null_count, rejections)
    return max(power - slack, 0.0)


def least_count(suffices: Callable[[int], bool], most: int) -> int | None:
    """Return the least number from 2 on that suffices, to 5%; None if the largest does not.

    Parameters
    ----------
    suffices
        Tells whether a number suffices; larger ones then do, too.
    most
        Largest number that is tried.

    Returns
    -------
    The number, or None.
    """
    # Searches share the numbers that they try, whose critical values take the time.
    grid = np.unique(np.rint(np.append(2.0 * _RATIO ** np.arange(math.log(most / 2.0, _RATIO)), most))).astype(np.int64)
    few, many = -1, len(grid) - 1
    if not suffices(int(grid[many])):
        return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if suffices(int(grid[middle])) else (middle, many)
    return int(grid[many])


def least_part(variance: float) -> float:
    """Return the part of ‖S‖²'s mean, 0 or more, that it reaches with probability 90%.

    S is the sum of the canaries of a round, or of all rounds together. An audit notices by the length that it has, not
    by its mean.

    Parameters
    ----------
    variance
        Relative variance of ‖S‖². That of k independent canaries is 2(1 − 1/k)/d, and a random k adds its own.

    Returns
    -------
    The part.
    """
    return max(0.0, 1.0 - float(special.ndtri(POWER)) * math.sqrt(variance))


# Faults of the atlas that an audit notices.


# Number of residuals that a probability averages over, and of their quantiles where each takes long.
_RESIDUALS, _QUANTILES = 40, 5


def residuals(mechanism: Mechanism, value: float, claim: AtlasClaim) -> tuple[Array, float]:
    """Return squared lengths of some releases without canaries, and the weight of a canary's vector.

    Equal residuals each time make a probability a function of the fault alone.

    Parameters
    ----------
    mechanism, value
        A fault of the atlas in single releases, and the value of its parameter.
    claim
        The claimed noise, with δ and the dimension.

    Returns
    -------
    The squared lengths, shape (40,), and the weight.
    """
    squares = mechanism.residual(value, claim, _RESIDUALS, np.random.default_rng(0)).gram[:, 0, 0]
    return squares, float(mechanism.weights(value)[0, 0])


@dataclass(frozen=True)
class Deciding:
    """The tests that decide on a claim, in one audit.

    Attributes
    ----------
    claim
        The claimed noise, with δ and the dimension.
    bound
        The default bound as a test of the claimed ε. Its level is that of each test.
    by_bound
        Whether the default bound decides, of one release.
    lengths
        ‖S‖ of each round whose noise is measured; None if the claimed noise is not tested.
    alone
        Whether each canary is scored without the others, which are noise to it elsewhere.
    crowd
        Canaries whose own numbers of rounds decide, and the noise multiplier that they are held against; else None.
    hides
        Variance of others' data, as a share of the claimed noise's.
    """

    claim: AtlasClaim
    bound: BoundTest
    by_bound: bool
    lengths: tuple[float, ...] | None
    alone: bool
    crowd: tuple[Crowd, float] | None = None
    hides: float = 0.0

    @property
    def has_blind_spots(self) -> bool:
        """Whether the atlas has faults of this dimension, and a test of known power decides."""
        return self.claim.dim >= SMALLEST_DIM and bool(self.by_bound or self.lengths or self.crowd)

    def power(self, mechanism: Mechanism, value: float) -> float:
        """Return the probability that a fault is noticed: the largest of those of the tests, which is at most theirs.

        Parameters
        ----------
        mechanism, value
            A fault of the atlas in single releases, and the value of its parameter.

        Returns
        -------
        The probability.
        """
        squares, weight = residuals(mechanism, value, self.claim)
        squares = squares + self.hides * self.claim.noise_multiplier**2 * self.claim.dim
        best = 0.0
        if self.lengths is not None:
            with np.errstate(divide="ignore"):
                traces = weight * np.sqrt(self.claim.dim / squares)
            sigma = self.claim.noise_multiplier
            best = float(power_by_sum(traces, sigma, self.lengths, self.claim.dim, self.bound.level).mean())
        if (self.by_bound or self.crowd is not None) and best < POWER:
            shared = self.bound.count if self.crowd is None else self.crowd[0].shared
            others = 0.0 if self.alone else shared * weight**2
            with np.errstate(divide="ignore"):
                traces = weight * np.sqrt(self.claim.dim / (squares + others))
            quantiles = np.quantile(np.minimum(traces, _LARGEST_TRACE), (np.arange(_QUANTILES) + 0.5) / _QUANTILES)
            # All canaries of a release share its residual.
            best = max(best, float(np.mean([self._by_bound(trace) for trace in np.unique(quantiles)])))
        return best

    def _by_bound(self, trace: float) -> float:
        if self.crowd is not None:
            return self.crowd[0].power(trace, self.crowd[1], self.bound.level)
        return self.bound.power(np.array([trace]))


@lru_cache(maxsize=16)
def blind_spots(deciding: Deciding, *, given: bool) -> BlindSpots | None:
    """List the faults of the atlas that an audit notices, and the others, by the tests that decide on its claim.

    Parameters
    ----------
    deciding
        Those tests.
    given
        Whether the noise was claimed, and is not that of ε = 3.

    Returns
    -------
    The lists; None below 1,000 dimensions, or if no test of known power decides.
    """
    if not deciding.has_blind_spots:
        return None
    noticed, unnoticed = ranges(deciding.claim, deciding.power, above=deciding.bound.claim)
    return BlindSpots(deciding.claim.noise_multiplier, deciding.bound.claim, given, noticed, unnoticed)
