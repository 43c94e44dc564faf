"""Values of lower bounds from a few scores, by sums, roots and integrals that share nothing with the methods.

Coverage alone does not show a bound that is too small: a level that is halved twice, or a rank too many.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.bounds import one_run
from canaryproof.verify.audit.bounds.block_tests import designs
from canaryproof.verify.audit.bounds.catalogue import MEASURED as METHODS
from canaryproof.verify.audit.bounds.lower_bound import ScoreSample, cosine_null, prepare
from canaryproof.verify.audit.bounds.thresholds import band
from canaryproof.verify.papers.check.results import Context, Outcome, Verdict

# Rounding, relative and absolute.
_CLOSE = 1e-6
# Precedence tests round an order statistic of the null up, within a cell of this width of its logit. They test values
# of ε that are so far apart, relatively and absolutely. So their bounds may be smaller, by what is computed here.
_CELL, _GRID_STEP = 0.1, 0.004
_DIM = 50
_COUNT, _NULL_COUNT = 23, 31


Range = tuple[float, float]


def _exactly(value: float) -> Range:
    return value, value


@dataclass(frozen=True)
class _Case:
    """The scores of an audit, and what is asked."""

    observed: Array
    unobserved: Array | None
    delta: float
    alpha: float

    @property
    def sample(self) -> ScoreSample:
        null = cosine_null(_DIM) if self.unobserved is None else None
        inclusion = "fixed" if self.unobserved is None else "coin"
        return prepare(self.observed, self.unobserved, null, inclusion=inclusion)

    @property
    def each(self) -> float:
        """Share of α of each rate of error."""
        return self.alpha if self.unobserved is None else 0.5 * self.alpha


def _cases(context: Context) -> Iterator[_Case]:
    rng = np.random.default_rng(context.key("bounds/values"))
    for shift, delta, alpha in ((0.8, 0.0, 0.05), (1.5, 1e-3, 0.2), (3.0, 1e-5, 0.01), (6.0, 0.01, 0.05)):
        root = math.sqrt(_DIM)
        seen = np.clip((shift + rng.standard_normal(_COUNT)) / root, -0.99, 0.99)
        unseen = rng.standard_normal(_NULL_COUNT) / root
        yield _Case(seen, None, delta, alpha)
        yield _Case(seen, unseen, delta, alpha)
        # Equal scores, within a kind and between both.
        yield _Case(np.round(seen, 1), np.round(unseen, 1), delta, alpha)


def values(context: Context) -> Outcome:
    """Judge the values of bounds by a second way to compute them."""
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(_cases(context)):
        for name, expected in _EXPECTED.items():
            if not METHODS[name].can_use(case.sample):
                continue
            value = float(METHODS[name].values(case.sample, case.delta, case.alpha)[0][0])
            low, high = expected(case)
            wrong = not low * (1.0 - _CLOSE) - _CLOSE <= value <= high * (1.0 + _CLOSE) + _CLOSE
            rows.append({"method": name, "case": number, "value": value, "expected": [low, high], "wrong": wrong})
    levels = {alpha: 1.0 - _staying_above(band(_COUNT, alpha)) for alpha in (0.01, 0.05, 0.2)}
    off = [alpha for alpha, level in levels.items() if not 0.998 * alpha <= level <= alpha]
    wrong_methods = sorted({row["method"] for row in rows if row["wrong"]})
    holds = not off and not wrong_methods
    positive = sum(row["value"] > 0.0 for row in rows)
    finding = (
        f"{len(rows)} values of {len(_EXPECTED)} methods agree, {positive} of them positive, and {len(levels)} levels"
    )
    if not holds:
        finding = f"other values of {', '.join(wrong_methods) or 'no method'}; {len(off)} levels of the band are wrong"
    evidence = {"rows": rows, "levels": {str(alpha): level for alpha, level in levels.items()}}
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence)


# Rates of error, by the binomial law's distribution function.


def _upper(events: int, trials: int, alpha: float) -> float:
    """Upper limit of a rate at confidence 1 − α."""
    if events >= trials:
        return 1.0
    return float(optimize.brentq(lambda p: stats.binom.cdf(events, trials, p) - alpha, 0.0, 1.0, xtol=1e-15))


def _equation_1(miss: float, alarm: float, delta: float) -> float:
    pairs = ((1.0 - delta - miss, alarm), (1.0 - delta - alarm, miss))
    return max([0.0, *(math.log(rest / rate) if rate > 0.0 else math.inf for rest, rate in pairs if rest > 0.0)])


def _tail(cosine: float) -> float:
    """Probability that a uniform direction's coordinate in R^d is so large."""
    beyond = 0.5 * float(special.betainc(0.5 * (_DIM - 1.0), 0.5, 1.0 - cosine**2))
    return beyond if cosine > 0.0 else 1.0 - beyond


def _at(case: _Case, tails: Sequence[float]) -> float:
    """Return the best bound over thresholds where the null's tail is as given."""
    largest = 0.0
    for tail in tails:
        each = case.each / len(tails)
        if case.unobserved is None:
            # Where exactly a threshold lies is of no account.
            threshold = float(cosine_null(_DIM).quantile(np.log([tail]))[0])
            alarm, hits = _tail(threshold), int(np.sum(case.observed >= threshold))
        else:
            rank = min(max(round(tail * _NULL_COUNT), 1), _NULL_COUNT)
            threshold = float(np.sort(case.unobserved)[-rank])
            alarm, hits = _upper(rank - 1, _NULL_COUNT, each), int(np.sum(case.observed > threshold))
        largest = max(largest, _equation_1(_upper(_COUNT - hits, _COUNT, each), alarm, case.delta))
    return largest


def _fixed_threshold(case: _Case) -> Range:
    return _exactly(_at(case, [1.0 / math.sqrt(_COUNT + 1.0)]))


def _bonferroni(case: _Case) -> Range:
    tails = [0.5**j for j in range(1, 21)]
    if case.unobserved is not None:
        tails = [tail for tail in tails if tail * _NULL_COUNT >= 1.0]
    return _exactly(_at(case, tails))


def _staying_above(levels: Array) -> float:
    """Return P(U₍ⱼ₎ ≥ Lⱼ for all j) of uniform variables, by integrating one after the other."""
    density = np.polynomial.Polynomial([1.0])
    count = len(levels) - 1
    for rank in range(1, count + 1):
        density = rank * density.integ(lbnd=levels[rank])
    return float(density(1.0))


def _band(case: _Case) -> Range:
    if case.unobserved is not None:
        return _precedence(case)
    levels, largest = band(_COUNT, case.alpha), 0.0
    for threshold in case.observed:
        hits = int(np.sum(case.observed >= threshold))
        largest = max(largest, _equation_1(1.0 - levels[hits], _tail(float(threshold)), case.delta))
    return _exactly(largest)


# Counts beyond a score of a declared rank: the binomial law, its rate a function of a uniform order statistic.


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(60)


def _count_p_value(
    rank: int, total: int, count: int, beyond: int, tail: Callable[[Array], Array], cell: float
) -> float:
    """Return the probability of so many scores beyond the other kind's of a rank, its place moved up by a cell."""
    # A frozen law would cost more than what is asked of it.
    law = rank, total - rank + 1
    edges = stats.beta.ppf(np.array([1e-14, 1e-9, 1e-4, 0.03, 0.2, 0.5, 0.8, 0.97, 1.0 - 1e-4, 1.0 - 1e-9]), *law)
    half = 0.5 * np.diff(edges)[:, np.newaxis]
    u = edges[:-1, np.newaxis] + half * (1.0 + _NODES)
    rate = tail(special.expit(special.logit(u) + cell))
    reached = stats.binom.sf(beyond - 1, count, rate)
    return float(np.sum(half * _WEIGHTS * stats.beta.pdf(u, *law) * reached))


def _ranks(total: int) -> list[int]:
    return [2**j for j in range(total) if 2**j <= max(total // 2, 1)]


def _precedence(case: _Case) -> Range:
    """Return the ε that one of the declared counts rejects just so."""
    assert case.unobserved is not None
    counts = []
    for ranked, other, sign in ((case.unobserved, case.observed, 1.0), (case.observed, case.unobserved, -1.0)):
        ordered = np.sort(sign * ranked)[::-1]
        sizes = len(ranked), len(other)
        counts += [(r, *sizes, int(np.sum(sign * other > ordered[r - 1]))) for r in _ranks(sizes[0])]
    level = case.alpha / len(counts)

    def excess(epsilon: float, cell: float) -> float:
        def tail(u: Array) -> Array:
            low = 1.0 - math.exp(-epsilon) * np.maximum(0.0, 1.0 - u - case.delta)
            return np.minimum(np.minimum(1.0, math.exp(epsilon) * u + case.delta), low)

        return min(_count_p_value(*count, tail, cell) for count in counts) - level

    low, high = (_root_of(partial(excess, cell=cell)) for cell in (_CELL, 0.0))
    return max(low - _GRID_STEP * max(low, 1.0), 0.0), high


def _root_of(rising: Callable[[float], float]) -> float:
    """Return where a rising function is 0, or 0 if it is positive there."""
    return 0.0 if rising(0.0) >= 0.0 else float(optimize.brentq(rising, 0.0, 60.0, xtol=1e-9))


# A Gaussian trade-off curve.


def _epsilon_of(mu: float, delta: float) -> float:
    if mu <= 0.0:
        return 0.0
    if delta == 0.0:
        return math.inf

    def excess(epsilon: float) -> float:
        return float(
            special.ndtr(mu / 2.0 - epsilon / mu) - np.exp(epsilon + special.log_ndtr(-mu / 2.0 - epsilon / mu))
        )

    return 0.0 if excess(0.0) <= delta else float(optimize.brentq(lambda e: excess(e) - delta, 0.0, 500.0, xtol=1e-12))


def _normal_scores(case: _Case) -> Range:
    mean = np.mean([stats.norm.isf(_tail(float(x))) for x in case.observed])
    return _exactly(_epsilon_of(float(mean - stats.norm.isf(case.alpha) / math.sqrt(_COUNT)), case.delta))


def _largest_score(case: _Case) -> Range:
    shares = [(j, j * case.alpha / _COUNT) for j in range(1, _COUNT + 1)]
    ordered, least = np.sort(case.observed)[::-1], math.inf
    # Each rank serves δ up to half of its share; the first that serves this one is the last that counts.
    for j, share in shares:
        least = min(least, math.log((share - min(case.delta, 0.5 * share)) / _tail(float(ordered[j - 1]))))
        if 0.5 * share >= case.delta:
            return _exactly(max(least, 0.0))
    return _exactly(0.0)


# The part of α for precedence tests of unobserved scores, at which 20,000 draws reject nothing, and draws for the rest.
_FOR_RANKS, _DRAWS = math.log(100.0) / 20_000, 2000


def _gaussian_dp(case: _Case) -> Range:
    low, high, tails = 0.0, 0.0, (0.5, 0.2, 0.05, 0.005)
    if case.unobserved is not None:
        low, high = _normal_ranks(case.observed, case.unobserved, case.alpha - _FOR_RANKS)
    for tail in tails:
        each = (case.alpha if case.unobserved is None else _FOR_RANKS) / len(tails)
        if case.unobserved is None:
            threshold = float(cosine_null(_DIM).quantile(np.log([tail]))[0])
            miss = _upper(int(np.sum(case.observed < threshold)), _COUNT, each)
            high = max(high, float(stats.norm.isf(_tail(threshold)) - stats.norm.ppf(miss)))
            low = high
            continue
        rank = min(max(round(tail * _NULL_COUNT), 1), _NULL_COUNT)
        hits = int(np.sum(case.observed > np.sort(case.unobserved)[-rank]))

        def excess(mu: float, cell: float, rank: int = rank, hits: int = hits, each: float = each) -> float:
            def moved(u: Array) -> Array:
                return np.asarray(special.ndtr(special.ndtri(u) + mu))

            return _count_p_value(rank, _NULL_COUNT, _COUNT, hits, moved, cell) - each

        if hits:
            low = max(low, _root_of(partial(excess, cell=_CELL)))
            high = max(high, _root_of(partial(excess, cell=0.0)))
    return _epsilon_of(low, case.delta), _epsilon_of(high, case.delta)


def _normal_ranks(observed: Array, unobserved: Array, level: float) -> Range:
    """Return where the shift lies whose normal scores, of sorted draws, sum to as much with a probability of the level.

    The draws are others than the method's, and fewer. Their deviation, five times, and what the method pays for its own
    draws, up to three tenths of the level, make the range; the step between its values is the last part.
    """
    count, total = len(observed), len(observed) + len(unobserved)
    normal_scores = stats.norm.isf(np.arange(1, total + 1) / (total + 1.0))
    z = np.random.default_rng(0).standard_normal((_DRAWS, total))

    def sums(scores: Array) -> Array:
        # The unobserved scores are the last of each row, and come first among equals.
        order = np.argsort(-scores[:, ::-1], axis=1, kind="stable")
        return np.asarray(((order >= len(unobserved)) * normal_scores).sum(axis=1))

    own = sums(np.concatenate([observed, unobserved])[np.newaxis])[0]
    shifts = np.linspace(0.0, 7.0, 29)
    moves = np.append(np.ones(count), np.zeros(len(unobserved)))
    rates = np.array([np.mean(sums(z + shift * moves) >= own - 1e-9) for shift in shifts])
    deviation = math.sqrt(level * (1.0 - level) / _DRAWS)
    low, high = np.interp([0.7 * level - 5.0 * deviation, level + 5.0 * deviation], rates, shifts)
    return max(0.0, float(low) - math.sqrt(1.0 / count + 1.0 / len(unobserved)) / 256.0), float(high)


# One run with fair coins.


def _one_run(case: _Case) -> Range:
    assert case.unobserved is not None
    total, least = _COUNT + _NULL_COUNT, math.inf
    for design, delta in designs(total, case.delta):
        for begin, end in one_run.blocks(total):
            reached = []
            for guesses, share in one_run.declared_tests(total, design, (begin, end)):
                rights = [_least_right(case.observed, case.unobserved, *pair) for pair in guesses]
                if len(guesses) == 1:
                    excess = partial(_excess, sum(guesses[0]), rights[0], delta, share * case.alpha)
                    reached.append(_root_of(excess))
                    continue
                # In units, each guess as often as it weighs.
                weights = tuple(sum(i < top for top, _ in guesses) for i in range(guesses[0][0])) * 2
                wrong = sum(map(sum, guesses)) - sum(rights)
                cost = total * delta / (1.0 + math.exp(begin)) * _most_of_one_sum(weights, end)
                excess = partial(_excess_of_weights, weights, wrong, share * case.alpha - cost)
                reached.append(min(_root_of(excess), end))
            if share := one_run.run_share(total, end):
                # All guesses of an end before the first wrong one.
                runs = np.sum(case.observed > case.unobserved.max()), np.sum(case.unobserved < case.observed.min())
                reached += [_root_of(partial(_excess, int(n), int(n), delta, share * case.alpha)) for n in runs if n]
            # Each ε up to the end of its block is rejected, or the sequence ends there.
            if max(reached) < end:
                least = min(least, max(begin, *reached))
                break
    return _exactly(least)


def _excess(number: int, right: int, delta: float, level: float, epsilon: float) -> float:
    """Return the probability of so many right guesses, less the level."""
    if not right:
        return 1.0 - level
    law = number, 1.0 / (1.0 + math.exp(-epsilon))
    beta = float(stats.binom.sf(right - 1, *law))
    # Probability of at least so many right guesses over that of just so many.
    ratio = math.exp(stats.binom.logsf(right - 1, *law) - stats.binom.logpmf(right, *law))
    cost = (_COUNT + _NULL_COUNT) * delta / right * ratio
    return beta + (1.0 - beta) * min(1.0, cost) - level


def _excess_of_weights(weights: Sequence[int], wrong: int, level: float, epsilon: float) -> float:
    """Return the probability that wrong guesses weigh so little, less the level."""
    law = np.ones(1)
    for weight in weights:
        rate = 1.0 / (1.0 + math.exp(epsilon))
        law = np.convolve(law, [1.0 - rate, *[0.0] * (weight - 1), rate])
    return float(law[: wrong + 1].sum()) - level


@lru_cache(maxsize=1000)
def _most_of_one_sum(weights: tuple[int, ...], epsilon: float) -> float:
    """Bound a guess's share of δ: how often the others' weight lies where the guess decides, whatever they are."""
    largest, points = 0.0, 48
    # Twice as many equidistant angles would give the same to many digits.
    angles = np.linspace(0.0, 2.0 * math.pi, 1024, endpoint=False)
    falls = {w: 1.0 - np.cos(w * angles) for w in set(weights)}
    for weight in falls:
        total = 0.0
        for i in range(points):
            exponents = np.zeros(len(angles))
            for w, fall in falls.items():
                rate = (i / points) ** (2.0 * math.sqrt(w / weight)) / (1.0 + math.exp(epsilon))
                exponents += (weights.count(w) - (w == weight)) * rate * (1.0 - rate) * fall
            total += ((i + 1) ** 2 - i**2) / points**2 * min(1.0, weight * float(np.exp(-exponents).mean()))
        largest = max(largest, total)
    return largest


def _least_right(observed: Array, unobserved: Array, top: int, bottom: int) -> int:
    """Count right guesses, "took part" of the highest scores and the opposite of the lowest; equals go wrong."""
    # In both orders the scores that would be wrong come first among equals.
    high = sorted([(-x, 1) for x in observed] + [(-x, 0) for x in unobserved])[:top]
    low = sorted([(x, 0) for x in observed] + [(x, 1) for x in unobserved])[:bottom]
    return sum(kind for _, kind in high) + sum(kind for _, kind in low)


# The range in which the value must lie, by method.
_EXPECTED: dict[str, Callable[[_Case], Range]] = {
    "fixed-threshold": _fixed_threshold,
    "bonferroni": _bonferroni,
    "band": _band,
    "largest-score": _largest_score,
    "normal-scores": _normal_scores,
    "gaussian-dp": _gaussian_dp,
    "one-run": _one_run,
}
