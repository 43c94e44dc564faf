"""The sharpest valid bound: (ε, δ)-privacy is tested for one ε after another, each at its own place, until one passes.

If the mechanism is (ε, δ)-private, the observed scores' tail is nowhere above that of the law P*, the smaller of
e^ε·u + δ and 1 − e^−ε·(1 − u − δ) where the null's tail is u. A statistic that rises with every score is then at most
what it is for independent draws from P*, in law: its test is exact whatever the mechanism. A tested ε has thresholds of
its own, where a Gaussian mechanism that would just be found out shows most; they depend on ε and the number of scores
only. As the tests come in a fixed order and the first that does not reject ends them, each may have all of α (Maurer,
Hothorn and Lehmacher 1995; proof in ``proofs_check/lower_bounds.md``).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import fft, special, stats

from canaryproof.kernels import binomial
from canaryproof.verify.bounds.lower_bound import Method, if_independent
from canaryproof.verify.bounds.scores import ExactNull, Scores

Array = NDArray[np.float64]

# As many thresholds at once, this far apart in deviations of a normal null; beyond so many scores there is one, as
# their joint law would take seconds.
_THRESHOLDS, _APART = 8, 0.2
_MOST_FOR_SEVERAL = 20_000
# Tested values of ε: this far apart, absolutely and, where that is more, relatively. They are made in blocks.
_STEP, _RATIO, _LARGEST_EPSILON = 0.01, 1.015, 1e4
_BLOCK = 32
# Means of the Gaussian mechanisms that places are chosen for.
_SHIFTS = np.geomspace(5e-3, 150.0, 300)[:, np.newaxis]
# Cells of the law of an order statistic, each taken at its worse end; the last has this share of α.
_CELLS, _LAST = 250, 1e-4
# Rounding may put a probability this far off, relatively and absolutely.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-11


@dataclass(frozen=True)
class Tests:
    """Some of the tests, in their order.

    Attributes
    ----------
    epsilons
        ε that each test rejects, rising, shape (tests,).
    places
        Thresholds, shape (tests, thresholds); beside unobserved scores their ranks among those, from the top.
    critical
        Smallest value of the statistic that rejects, shape (tests,).
    """

    epsilons: Array
    places: Array
    critical: NDArray[np.int64]


def epsilon_sequence() -> Array:
    """Return the values of ε that are tested."""
    low = np.arange(0.0, _STEP / (_RATIO - 1.0), _STEP)
    steps = math.ceil(math.log(_LARGEST_EPSILON / low[-1]) / math.log(_RATIO))
    return np.concatenate([low, low[-1] * _RATIO ** np.arange(1.0, steps + 1.0)])


def worst_tail(epsilon: Array, log_tail: Array, delta: float) -> Array:
    """Return the largest tail of the observed scores that (ε, δ)-privacy allows, rounded up.

    Parameters
    ----------
    epsilon
        ε ≥ 0.
    log_tail
        Log of the null's tail, the same shape.
    delta
        δ in [0, 1).
    """
    high = np.exp(np.minimum(epsilon + log_tail, 0.0)) + delta
    low = 1.0 - np.exp(-epsilon) * np.maximum(-np.expm1(log_tail) - delta, 0.0)
    return np.clip(np.minimum(high, low) * (1.0 + 1e-14), 0.0, 1.0)


def _best_places(count: int, delta: float, alpha: float, places: Array, spread: Array) -> tuple[Array, Array]:
    """Find for Gaussian mechanisms how large an ε is just found out, and where.

    Thresholds are tried at ``places``, shape (mechanisms, places); ``spread`` is what the null's own error costs there.
    """
    m = _SHIFTS
    hit = special.ndtr(m - places)
    low = special.betaincinv(count * hit, count - count * hit + 1.0, alpha)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        loss = np.log(hit / low), np.log((1.0 - low) / special.ndtr(places - m))
        first = np.log(np.maximum(hit - delta, 0.0)) - special.log_ndtr(-places) - np.hypot(loss[0], spread)
        second = np.log(np.maximum(special.ndtr(places) - delta, 0.0)) - special.log_ndtr(places - m)
        value = np.fmax(first, second - np.hypot(loss[1], spread))
    best = np.argmax(value, axis=1)
    rows = np.arange(len(m))
    found = np.maximum.accumulate(value[rows, best])
    good = found > 0.0
    return found[good], places[rows, best][good]


@lru_cache(maxsize=32)
def _exact_design(count: int, delta: float, alpha: float) -> tuple[Array, Array]:
    return _best_places(count, delta, alpha, _SHIFTS + np.linspace(-3.5, 4.5, 120), np.zeros(1))


@lru_cache(maxsize=32)
def _sampled_design(count: int, null_count: int, delta: float, alpha: float) -> tuple[Array, Array]:
    ranks = np.unique(np.rint(np.geomspace(1.0, null_count, 80)))
    tails = ranks / (null_count + 1.0)
    spread = np.log(special.betaincinv(ranks, null_count - ranks + 1.0, 1.0 - alpha) / tails)
    places = np.broadcast_to(-special.ndtri(tails), (len(_SHIFTS), len(tails)))
    found, z = _best_places(count, delta, alpha, places, spread)
    return found, np.rint(special.ndtr(-z) * (null_count + 1.0))


@lru_cache(maxsize=2048)
def _tests(count: int, null: ExactNull | int, delta: float, alpha: float, block: int) -> Tests:
    """Make a block of tests against an exact null, or against as many unobserved scores."""
    epsilons = epsilon_sequence()[block * _BLOCK : (block + 1) * _BLOCK]
    if isinstance(null, int):
        found, ranks = _sampled_design(count, null, delta, alpha)
        chosen = np.rint(np.interp(epsilons, found, ranks)) if len(found) else np.ones(len(epsilons))
        return Tests(epsilons, chosen[:, np.newaxis], _sampled_critical(epsilons, chosen, count, null, delta, alpha))
    found, centres = _exact_design(count, delta, alpha)
    z = np.interp(epsilons, found, centres) if len(found) else np.zeros(len(epsilons))
    if count <= _MOST_FOR_SEVERAL:
        cuts = z[:, np.newaxis] + _APART * (np.arange(_THRESHOLDS) - 1.0)
    else:
        cuts = z[:, np.newaxis]
    places = np.sort(null.place(special.log_ndtr(-cuts)), axis=1)
    tails = worst_tail(epsilons[:, np.newaxis], null.log_tail(places), delta)
    allowed = alpha * (1.0 - _RELATIVE)
    different, which = np.unique(tails, axis=0, return_inverse=True)
    critical = np.array([_critical(row, count, allowed) for row in different], dtype=np.int64)
    return Tests(epsilons, places, critical[which.reshape(-1)])


def _critical(tails: Array, count: int, alpha: float) -> int:
    """Return the least s with P(Σ ≥ s) ≤ α, Σ being the number of thresholds that independent scores reach in all."""
    if len(tails) == 1:
        return int(stats.binom.isf(alpha, count, tails[0])) + 1
    law = -np.diff(np.concatenate([[1.0], tails, [0.0]]))
    size = count * len(tails) + 1
    length = fft.next_fast_len(size, real=True)
    sums = fft.irfft(_power(fft.rfft(law, length), count), length)[:size]
    rejecting = np.cumsum(sums[::-1])[::-1] <= alpha - _ABSOLUTE
    return int(np.argmax(rejecting)) if rejecting[-1] else size


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Raise to a whole power by squaring, some ten times as fast as numpy's."""
    result = np.ones_like(base)
    while exponent:
        if exponent % 2:
            result *= base
        base, exponent = base * base, exponent // 2
    return result


def _sampled_critical(
    epsilons: Array, ranks: Array, count: int, null_count: int, delta: float, alpha: float
) -> NDArray[np.int64]:
    """Return the least s with P(S ≥ s) ≤ α: S is binomial, its rate set by an order statistic of the null."""
    edges = np.geomspace(1.0, _LAST * alpha, _CELLS + 1)
    weights = edges[:-1] - edges[1:]
    chosen, place = np.unique(ranks, return_inverse=True)
    quantiles = binomial.upper(chosen[:, np.newaxis] - 1.0, null_count, 1.0 - edges[1:])
    rates = worst_tail(epsilons[:, np.newaxis], np.log(quantiles)[place], delta)
    allowed = alpha * (1.0 - _RELATIVE) - _LAST * alpha
    low, high = np.zeros(len(epsilons)), np.full(len(epsilons), count + 1.0)
    # P(S ≥ low) > α ≥ P(S ≥ high).
    while np.any(high - low > 1.0):
        middle = np.floor(0.5 * (low + high))
        s = np.maximum(middle, 1.0)[:, np.newaxis]
        rejects = special.betainc(s, count - s + 1.0, rates) @ weights <= allowed
        rejects |= middle > count
        low, high = np.where(rejects, low, middle), np.where(rejects, middle, high)
    return high.astype(np.int64)


@njit(cache=True, nogil=True)
def _reached(observed: Array, thresholds: Array, strictly: bool) -> NDArray[np.int64]:
    """Count the thresholds, of a shape (audits, tests, thresholds), that an audit's scores reach in all."""
    audits, tests, places = thresholds.shape
    count = observed.shape[1]
    result = np.zeros((audits, tests), dtype=np.int64)
    for a in range(audits):
        for t in range(tests):
            for p in range(places):
                low, high = 0, count
                x = thresholds[a, t, p]
                while low < high:
                    middle = (low + high) // 2
                    below = observed[a, middle] <= x if strictly else observed[a, middle] < x
                    if below:
                        low = middle + 1
                    else:
                        high = middle
                result[a, t] += count - low
    return result


def fixed_sequence(scores: Scores, delta: float, alpha: float) -> tuple[Array, Array]:
    """Return the largest ε up to which every test rejects.

    Parameters
    ----------
    scores
        The scores.
    delta, alpha
        δ and α.

    Returns
    -------
    Bounds and thresholds, of which the lowest of the last test is given.
    """
    audits = len(scores.observed)
    values, thresholds = np.zeros(audits), np.full(audits, math.nan)
    left = np.arange(audits)
    for block in range(math.ceil(len(epsilon_sequence()) / _BLOCK)):
        if not len(left):
            break
        if scores.null is not None:
            tests = _tests(scores.count, scores.null, delta, alpha, block)
            places = np.broadcast_to(tests.places, (len(left), *tests.places.shape))
        else:
            assert scores.unobserved is not None
            tests = _tests(scores.count, scores.null_count, delta, alpha, block)
            places = scores.unobserved[left][:, scores.null_count - tests.places.astype(np.int64)]
        reached = _reached(scores.observed[left], places, scores.null is None)
        rejected = np.cumprod(reached >= tests.critical, axis=1).sum(axis=1)
        last = np.maximum(rejected - 1, 0)
        better = (rejected > 0) & (tests.epsilons[last] > 0.0)
        values[left[better]] = tests.epsilons[last[better]]
        thresholds[left[better]] = places[np.flatnonzero(better), last[better], 0]
        left = left[rejected == len(tests.epsilons)]
    return values, thresholds


METHODS = (
    Method(
        "fixed-sequence",
        "exact tests of one ε after another, each at thresholds declared for it (canaryproof)",
        fixed_sequence,
        ("independent scores",),
        if_independent,
    ),
)
