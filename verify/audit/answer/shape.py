"""The shape of scores: whether they are normal, as ε̂ takes them to be, and which other law fits them better.

A trace may be of any size: canaries take part unequally often, with several norms, or at several learning rates. A
score's law is then a mixture, in an honest run too. So its shape says whether ε̂ means something, and is no misuse.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import special

from canaryproof.kernels.arrays import Array
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.markup.digits import number

# Level of the test that scores are normal.
LEVEL = 0.01
# The formulas of p-values have no basis for fewer scores.
FEWEST = 8
# A hypothesis with a larger p-value is taken to fit; this chooses words, never a verdict.
FITS = 1e-3
# Level of the tests that look for a reason.
_REASON = 1e-6
# From this share of one value on, no Gaussian fits.
_MANY_TIES = 0.1
# Number of scores that a formula of several steps takes at once, to save memory.
_PIECE = 2**18


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class GoodnessOfFit:
    """A goodness-of-fit test."""

    statistic: float  # infinite where a tail probability underflows
    p_value: float  # 0 below the smallest that its formula serves


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class ShapeTest:
    """A test that scores have the shape that the paper's ε̂ assumes: normal, of any mean and variance.

    Attributes
    ----------
    p_value
        The smallest p-value of its tests, times their number; 1 for too few scores.
    reason
        What is wrong, as a sentence; empty where the shape fits.
    """

    p_value: float
    reason: str


def shape(observed: Array, unobserved: Array | None = None, scale: float | None = None) -> ShapeTest:
    """Test that scores are normal.

    Parameters
    ----------
    observed
        Scores of canaries that took part, shape (k,).
    unobserved
        Scores of canaries that did not, shape (k₀,); None for the null N(0, scale²).
    scale
        Deviation of the null, where it is known and not estimated.

    Returns
    -------
    The test. It is Anderson and Darling's of each kind of scores, and Geary's of both together. Geary's ratio of mean
    and standard deviation sees heavy tails, as of Laplace's law, in a hundred scores of each kind.
    """
    groups = [("observed", observed)] if unobserved is None else [("observed", observed), ("unobserved", unobserved)]
    tests = [normality(scores) for _, scores in groups]
    p_values = [test.p_value for test in tests if test is not None]
    p_value = min(1.0, (len(p_values) + 1) * min(*p_values, _geary([scores for _, scores in groups]), 1.0))
    reason = next(_reasons(groups, scale), "")
    if not reason and p_value < LEVEL:
        reason = f"The scores are not normal (p = {p_value:.1g})."
    return ShapeTest(p_value, reason)


def has_many_ties(scores: Array) -> bool:
    """Tell whether one value has so large a share of the scores that no Gaussian fits."""
    return bool(np.unique(scores, return_counts=True)[1].max() > max(1.0, _MANY_TIES * len(scores)))


def _reasons(groups: list[tuple[str, Array]], scale: float | None) -> Iterator[str]:
    """Yield explanations of a shape that is not normal."""
    for name, scores in groups:
        if has_many_ties(scores):
            copies = np.unique(scores, return_counts=True)[1]
            tied = f"{copies[copies > 1].sum():,} of {len(scores):,} {name} scores are tied"
            yield f"{tied}: rounded, clipped, or of few possible values."
        if len(scores) < FEWEST:
            yield f"{len(scores)} {name} scores are too few to show their shape."
    observed = np.sort(groups[0][1])
    unobserved = groups[1][1] if len(groups) > 1 else None
    for name, scores in groups:
        if len(scores) < FEWEST:
            continue
        p_value, where = valley(np.sort(scores))
        if p_value < _REASON:
            share = None if name == "unobserved" or unobserved is None else missing_below(observed, unobserved, where)
            yield f"The {name} scores form two clusters." if share is None else partial_trace_text(share)
    if scale is None or unobserved is not None:
        return
    z = observed / scale
    ratio = float(z.std())
    if float(special.chdtrc(len(z) - 1, len(z) * ratio**2)) < _REASON:
        yield (
            f"The observed scores' deviation is {number(ratio, 2)} times the null's. Canaries took part unequally, or "
            "the dimension is wrong; the bound is wrong, too, then."
        )


# Tests of the normal law.


def normality(scores: Array) -> GoodnessOfFit | None:
    """Return Anderson and Darling's test that scores are normal; None for fewer than 8, or if all are equal."""
    if len(scores) < FEWEST or scores.min() == scores.max():
        return None
    # The tail probability of a far outlier may underflow to 0, and the statistic is then infinite.
    with np.errstate(all="ignore"):
        statistic = _anderson_darling(scores)
    return GoodnessOfFit(statistic, _anderson_darling_p_value(statistic, len(scores)))


def _anderson_darling(scores: Array) -> float:
    """Return Anderson and Darling's statistic of normality with fitted mean and variance.

    It is bit-equal to ``normal_ad`` of statsmodels, which needs ten times the memory.
    """
    count = len(scores)
    z = np.sort(scores)
    z -= scores.mean()
    z /= scores.std(ddof=1)
    special.ndtr(z, out=z)
    terms = np.empty(count)
    for first in range(0, count, _PIECE):
        last = min(first + _PIECE, count)
        weights = (2 * np.arange(first + 1, last + 1) - 1.0) / count
        terms[first:last] = weights * (np.log(z[first:last]) + np.log1p(-z[count - last : count - first][::-1]))
    return float(-count - terms.sum())


def _anderson_darling_p_value(statistic: float, count: int) -> float:
    """Return Stephens' approximation (D'Agostino and Stephens, Goodness-of-Fit Techniques, 1986, Table 4.9)."""
    a = statistic * (1 + 0.75 / count + 2.25 / count**2)
    if a < 0.2:
        return 1.0 - math.exp(-13.436 + 101.14 * a - 223.73 * a**2)
    if a < 0.34:
        return 1.0 - math.exp(-8.318 + 42.796 * a - 59.938 * a**2)
    if a < 0.6:
        return math.exp(0.9177 - 4.279 * a - 1.38 * a**2)
    # Beyond 13 the parabola rises again.
    return math.exp(1.2937 - 5.709 * a + 0.0186 * a**2) if a <= 13.0 else 0.0


def _geary(groups: list[Array]) -> float:
    """Return the two-sided p-value of Geary's ratio of mean and standard deviation, over all groups.

    Its first two moments under normality are exact (Geary, Biometrika 28, 1936), and the ratio is taken for normal.
    """
    total = mean = variance = 0.0
    for scores in groups:
        n = len(scores)
        centred = scores - scores.mean()
        deviation = math.sqrt(float((centred**2).mean()))
        if n < FEWEST or not deviation:
            return 1.0
        total += float(np.abs(centred).sum()) / deviation
        # The ratio does not depend on the deviation (Basu), so that moments of the ratio are ratios of moments.
        # Logarithms of Gamma functions lose more digits than the difference of moments has left in a million scores.
        ratio = math.sqrt((n - 1.0) / math.pi) / float(special.poch(0.5 * (n - 1.0), 0.5))
        square = 2.0 / (math.pi * n) * (0.5 * math.pi + math.sqrt(n * (n - 2.0)) + math.asin(1.0 / (n - 1.0)))
        mean += n * ratio
        variance += n**2 * (square - ratio**2)
    return float(2.0 * special.ndtr(-abs(total - mean) / math.sqrt(variance)))


# Other laws of scores.


# Square of the distance, times the number of values, at which the p-value is a fortieth.
_FAR = 2.2


def fit(distribution: Array, distance: float = 0.0) -> float:
    """Return the p-value of the test that values follow a distribution whose CDF is known up to an error.

    The function's values come in increasing order. scipy's own test needs five times the memory, and loads for long.
    Below a fortieth it is Smirnov's one-sided value twice, as scipy has it of more than 140 values; above, where it is
    only compared with less, it is Kolmogorov's limit with Stephens' correction for samples.
    """
    count = len(distribution)
    steps = np.arange(count + 1.0) / count
    largest = float(max((steps[1:] - distribution).max(), (distribution - steps[:-1]).max()))
    largest = max(0.0, largest - distance)
    if count * largest**2 >= _FAR:
        return float(min(1.0, 2.0 * special.smirnov(count, largest)))
    root = math.sqrt(count)
    return float(special.kolmogorov((root + 0.12 + 0.11 / root) * largest))


def some_missing(z: Array) -> Array:
    """Return the distribution function of a mixture of N(0, 1) and N(s, 1) with the sample's mean and variance."""
    share, shift = missing_share(z)
    return np.asarray((1.0 - share) * special.ndtr(z) + share * special.ndtr(z - shift))


def missing_share(z: Array) -> tuple[float, float]:
    """Return the share of canaries with a trace, and that trace, by the mean and variance of standardised scores."""
    mean, excess = float(z.mean()), max(float(z.var()) - 1.0, 0.0)
    if mean <= 0.0:
        return 1.0, mean
    shift = mean + excess / mean
    return mean / shift, shift


def two_clusters(z: Array) -> Array:
    """Return the distribution of a mixture of two normal laws of variance 1, with the sample's three moments."""
    excess = max(float(z.var()) - 1.0, 1e-12)
    skew = float(((z - z.mean()) ** 3).mean()) / excess
    apart = math.hypot(skew, 2.0 * math.sqrt(excess))
    share = 0.5 * (1.0 - skew / apart)
    low = float(z.mean()) - share * apart
    return np.asarray((1.0 - share) * special.ndtr(z - low) + share * special.ndtr(z - low - apart))


def partial_trace_text(share: float) -> str:
    """Say that some of the canaries are missing."""
    left = f"Only some {number(100.0 * share, 2)}% of the observed canaries left a trace"
    return f"{left}; the others score like unobserved ones."


# Widths of an interval in interquartile ranges, and number of its centres.
_WIDTHS = (0.2, 0.3, 0.45, 0.7, 1.0, 1.5)
_CENTRES = 48


def valley(scores: Array) -> tuple[float, float]:
    """Return the p-value of the test that scores in increasing order have one mode, and where a valley is.

    Null hypothesis: a law with one mode. Among three neighbouring intervals of one width, the middle one then has at
    least the probability of one of the others. Each triple has two binomial tests, both of which must reject, and the
    number of triples is corrected for (Bonferroni).
    """
    low, high, first, last = np.quantile(scores, (0.25, 0.75, 0.01, 0.99))
    widths, centres = np.array(_WIDTHS)[:, np.newaxis] * (high - low), np.linspace(first, last, _CENTRES)
    edges = [np.searchsorted(scores, centres + offset * widths) for offset in (-1.5, -0.5, 0.5, 1.5)]
    left, middle, right = (after - before for before, after in pairwise(edges))
    p_values = valley_p_values(left, middle, right)
    return float(p_values.min()), float(centres[np.unravel_index(int(p_values.argmin()), p_values.shape)[1]])


def valley_p_values(left: Array, middle: Array, right: Array) -> Array:
    """Return the p-values of counts in neighbouring intervals, each times the number of triples."""
    return np.asarray(middle.size * np.maximum(*(special.bdtr(middle, middle + side, 0.5) for side in (left, right))))


def missing_below(observed: Array, unobserved: Array, where: float) -> float | None:
    """Return the share of observed scores above a valley if those below are like unobserved ones, else None."""
    lower = observed[observed < where]
    missing = float(unobserved.std()) * 0.5 > abs(float(lower.mean() - unobserved.mean()))
    return 1.0 - len(lower) / len(observed) if missing and where > unobserved.mean() else None
