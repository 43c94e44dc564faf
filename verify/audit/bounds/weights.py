"""Weighted guesses on canaries that fair coins chose: their p-value under (ε, δ)-privacy, and declared weights.

Weights are whole numbers. They fall from either end of the order of the scores, so that nested numbers of guesses say
all: a guess weighs as much as there are numbers that it is within. The proof is in ``proofs_check/lower_bounds.md``.
"""

import math
from functools import lru_cache

import numpy as np
from scipy import fft, optimize, special

from canaryproof.kernels.arrays import Array, Ints
from canaryproof.verify.audit.bounds.guesses import ABSOLUTE

# Numbers of high guesses, and as many low ones, that weigh at least 1, 2, …
Sizes = tuple[int, ...]
# The lower and the upper end of a block of ε.
Block = tuple[float, float]

# The largest weight, and the shares of the largest log likelihood ratio that have it.
_STEPS, _CAPS = 12, (1.0, 0.6, 0.3)
# The largest ratio is that of the score with so many above it in the mean.
_HIGHEST = 2.5
# Points of the integral over the order in which guesses are revealed.
_POINTS = 48
# Wrong weights of smaller total probability are left out, and that probability is added to the p-value. The second
# number bounds the rounding error for each guess, and the third that of δ's cost, relatively.
_LEFT_OUT, _ROUNDING, _RELATIVE = 1e-13, 5e-15, 1e-9
# Absolute error of a bound.
_CLOSE = 1e-9


def _numbers(sizes: Sizes) -> Ints:
    """Return how many guesses have each weight from 1 on."""
    return np.asarray(-2 * np.diff(np.append(sizes, 0)))


@lru_cache(maxsize=10_000)
def share_of_delta(sizes: Sizes, epsilon: float) -> float:
    """Bound the integral by which the term in δ of ``p_value`` falls below mδ(1 − s), s = e^ε/(1 + e^ε).

    The probability of a sum, with all that differ from it by a multiple of N, is at most the mean over N equidistant x
    of a product of characteristic functions' moduli. Each is at most exp(−y(1 − y)(1 − cos wx)). The outer integrand
    falls, and its values at left ends are taken.
    """
    numbers = _numbers(sizes)
    weights = np.flatnonzero(numbers) + 1.0
    counts = numbers[numbers > 0].astype(np.float64)
    rest = float(special.expit(-epsilon))
    variance = float((weights**2 * counts).sum()) * rest * (1.0 - rest)
    # With fewer points the mean would be larger, and as valid.
    half = int(4.0 * math.sqrt(variance) + 2.0 * weights[-1]) + 8
    x = math.pi * np.arange(half + 1) / half
    share = np.full(half + 1, 1.0 / half)
    share[[0, -1]] *= 0.5
    distances = 1.0 - np.cos(np.outer(weights, x))
    unrevealed = (np.arange(_POINTS + 1) / _POINTS) ** 2
    largest = 0.0
    for j, weight in enumerate(weights.tolist()):
        y = unrevealed[:-1, np.newaxis] ** np.sqrt(weights / weight) * rest
        others = counts.copy()
        others[j] -= 1.0
        # ``einsum`` starts no threads, whose number would change the last digits.
        exponents = np.einsum("pw,wx->px", y * (1.0 - y) * others, distances)
        one_sum = np.einsum("px,x->p", np.exp(-exponents), share)
        largest = max(largest, float((np.diff(unrevealed) * np.minimum(1.0, weight * one_sum)).sum()))
    return largest


def law_of_wrong(sizes: Sizes, epsilon: float) -> tuple[int, Array]:
    """Return the sum's least value that is not left out, and P(T ≤ t) from there on, less what is left out.

    T is the wrong guesses' weight where each guess is right with probability e^ε/(1 + e^ε), independently.
    """
    numbers = _numbers(sizes)
    weights = np.arange(1, len(sizes) + 1)
    wrong = float(special.expit(-epsilon))
    size = int((numbers * weights).sum()) + 1
    mean = wrong * (size - 1)
    # By Bernstein's inequality, the probability farther from the mean is below ``_LEFT_OUT``.
    log_odds = -math.log(0.5 * _LEFT_OUT)
    variance = wrong * (1.0 - wrong) * float((numbers * weights**2).sum())
    reach = log_odds * len(sizes) / 3.0 + math.sqrt((log_odds * len(sizes) / 3.0) ** 2 + 2.0 * log_odds * variance)
    length = fft.next_fast_len(min(size, 2 * math.ceil(reach) + 2), real=True)
    first = 0 if length >= size else min(max(math.floor(mean - 0.5 * length), 0), size - length)
    z = np.exp(-2j * np.pi * np.arange(length // 2 + 1) / length)
    spectrum, power = np.ones_like(z), np.ones_like(z)
    for number in numbers.tolist():
        power = power * z
        if number:
            spectrum *= (1.0 - wrong + wrong * power) ** number
    # A transform of this length wraps the sums around the window; the roll undoes the shift.
    return first, np.cumsum(np.roll(fft.irfft(spectrum, length), -first)[: size - first])


def p_value(total: int, sizes: Sizes, wrong: int, epsilon: float, block: Block, delta: float) -> float:
    """Bound the probability that guesses on m canaries of so small a weight are wrong, rounded up, for a block's ε.

    It is P(T ≤ t) + mδ(1 − s)κ, with T as in ``law_of_wrong`` and κ of ``share_of_delta``. The block's lower end in s,
    and its upper one in κ, serve all of it.
    """
    first, law = law_of_wrong(sizes, epsilon)
    below = float(law[min(wrong - first, len(law) - 1)]) if wrong >= first else 0.0
    cost = total * delta * float(special.expit(-block[0])) * share_of_delta(sizes, block[1]) if delta else 0.0
    return below + cost * (1.0 + _RELATIVE) + ABSOLUTE + _LEFT_OUT + _ROUNDING * 2 * sizes[0]


@lru_cache(maxsize=10_000)
def weighted_bound(total: int, sizes: Sizes, wrong: int, block: Block, delta: float, alpha: float) -> float:
    """Return the largest ε of the block that this weight of wrong guesses rejects, rounded down; 0 if none."""

    def excess(epsilon: float) -> float:
        return p_value(total, sizes, wrong, epsilon, block, delta) - alpha

    begin, end = block
    if excess(end) <= 0.0:
        return end
    if excess(begin) > 0.0:
        return 0.0
    root = float(optimize.brentq(excess, begin, end, xtol=_CLOSE))
    while root > begin and excess(root) > 0.0:
        root -= _CLOSE
    return max(root, begin)


def _most_wrong(total: int, sizes: Sizes, block: Block, delta: float, alpha: float) -> int:
    """Return the largest weight of wrong guesses that rejects a block's largest ε, −1 if none does."""
    # A weight below 0 has no probability, so that its p-value is δ's cost alone.
    first, law = law_of_wrong(sizes, block[1])
    allowed = alpha - p_value(total, sizes, -1, block[1], block, delta)
    return first + int(np.searchsorted(law, allowed, side="right")) - 1 if allowed >= law[0] else -1


@lru_cache(maxsize=10_000)
def declared_sizes(total: int, number: int, trace: float, delta: float, block: Block, alpha: float) -> Sizes:
    """Return the numbers of guesses at either end that weigh 1, 2, … and more; one number for equal weights.

    Equal weights of r guesses barely reject a Gaussian mechanism of this trace. Weights are its log likelihood ratios
    beyond ε, up to several shares of the largest one. If any reject it more clearly, those that do so most are taken.
    The choice looks at no score, so that it bears on power alone.
    """
    epsilon, mean = block[1], 0.5 * trace
    highest = trace * (mean - float(special.ndtri(min(0.5, 2.0 * _HIGHEST / total)))) - epsilon
    best = 0.0
    chosen: Sizes = (number // 2,)
    for cap in _CAPS if highest > 0.0 else ():
        cuts = (epsilon + cap * highest * (np.arange(_STEPS) + 0.5) / _STEPS) / trace
        wrong = total * special.ndtr(-cuts - mean)
        halves = np.rint(0.5 * (total * special.ndtr(mean - cuts) + wrong)).astype(np.int64)
        sizes: Sizes = tuple(np.minimum(halves[halves > 0], total // 2).tolist())
        most = _most_wrong(total, sizes, block, delta, alpha) if sizes else -1
        if most < 0:
            continue
        weights = 2.0 * np.arange(_STEPS) + 1.0
        # Half of a step is lost by rounding, and the mean is above the median.
        square, middle = float((weights * wrong).sum()), float(wrong.sum())
        clearness = (most + 0.5 + square / middle / 6.0 - middle) / math.sqrt(square)
        if clearness > best:
            best, chosen = clearness, sizes
    return chosen
