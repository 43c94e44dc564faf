"""Confidence limits of a binomial proportion as proven enclosures: Clopper–Pearson (exact) and Jeffreys.

A limit is the root of I_x(a, b) = p, the distribution function of a Beta law, for rational a, b and p. I_x(a, b) is
x^a (1 − x)^b / (a·B(a, b)) · ₂F₁(a + b, 1; a + 1; x) (DLMF 8.17.8), a series of positive terms whose remainder a
geometric series bounds. Where the series of I_{1−x}(b, a) is shorter, it is 1 minus that. The root is found by
certified bisection.

Proven are the remainder and all arithmetic, by flint; the identities are cited.

Domain: whole 0 ≤ s ≤ n, 1 ≤ n ≤ 1e6 (time grows as √n), 0 < confidence < 1, floats, ints or Fractions, taken as the
exact numbers that they are. (0.95 is not 19/20: the fast kernel computes 1 − confidence in floats, which is exact
from 1/2 on.) All enclosures are tight, at most 2 ulps.
"""

from typing import Literal

from flint import arb, fmpq

from canaryproof.kernels import binomial as fast
from canaryproof.kernels.certified._ball import Enclosure, Number, bracket, exact, guess, strictly_within_unit, within
from canaryproof.kernels.certified._series import hypergeometric

Method = Literal["clopper-pearson", "jeffreys"]

_LARGEST_TRIALS = 1e6
_HALF = fmpq(1, 2)
# Each method adds these to the successes and the failures for the lower limit, and to failures and successes for the
# upper one.
_SHIFTS = {"clopper-pearson": (fmpq(0), fmpq(1)), "jeffreys": (_HALF, _HALF)}


def _series(x: fmpq, a: fmpq, b: fmpq) -> arb:
    """I_x(a, b) for 0 < x < 1, as a series in x."""
    log_beta = arb(a).lgamma() + arb(b).lgamma() - arb(a + b).lgamma()
    log_power = a * arb(x).log() + b * arb(1 - x).log()
    return (log_power - log_beta).exp() / a * hypergeometric(a + b, a + 1, x)


def _is_far_above_the_mean(x: fmpq, a: fmpq, b: fmpq) -> bool:
    """Whether x is so far above the mean of Beta(a, b) that the series' terms would long rise before they fall."""
    distance = x * (a + b) - a
    return distance > 0 and distance * distance > 100 * (a + b)


def _beta_cdf(x: fmpq, a: fmpq, b: fmpq) -> arb:
    """I_x(a, b) for 0 < x < 1."""
    y = 1 - x
    # Either way is right for every x; this is the shorter one.
    direct = not _is_far_above_the_mean(x, a, b) if x <= y else _is_far_above_the_mean(y, b, a)
    return _series(x, a, b) if direct else 1 - _series(y, b, a)


def _check_arguments(successes: Number, trials: Number, confidence: Number, method: str) -> tuple[fmpq, fmpq, fmpq]:
    """Return the successes, the failures and 1 − confidence."""
    n = within("trials", trials, 1.0, _LARGEST_TRIALS)
    s = exact("successes", successes)
    if n.q != 1:
        raise ValueError("trials must be a whole number")
    if s.q != 1 or not 0 <= s <= n:
        raise ValueError("successes must be a whole number from 0 to trials")
    if method not in _SHIFTS:
        raise ValueError("method must be 'clopper-pearson' or 'jeffreys'")
    return s, n - s, 1 - strictly_within_unit("confidence", confidence)


def _lower(s: fmpq, f: fmpq, miss: fmpq, method: Method, start: float) -> Enclosure:
    if s == 0:
        return Enclosure(0.0, 0.0, arb(0))
    first, second = _SHIFTS[method]
    return bracket(lambda x: miss - _beta_cdf(x, s + first, f + second), start, 1.0)


def _upper(s: fmpq, f: fmpq, miss: fmpq, method: Method, start: float) -> Enclosure:
    if f == 0:
        return Enclosure(1.0, 1.0, arb(1))
    first, second = _SHIFTS[method]
    return bracket(lambda x: _beta_cdf(1 - x, f + first, s + second) - miss, start, 1.0)


def lower(
    successes: Number, trials: Number, confidence: Number = 0.95, method: Method = "clopper-pearson"
) -> Enclosure:
    """Enclose the one-sided lower confidence limit of a proportion.

    Parameters
    ----------
    successes, trials
        Whole numbers 0 ≤ s ≤ n, 1 ≤ n ≤ 1e6.
    confidence
        Confidence level in (0, 1).
    method
        ``clopper-pearson``: never covers less than the level; ``jeffreys``: the quantile of the Jeffreys posterior,
        which covers the level on average only.

    Returns
    -------
    Floats between which the limit is proven to lie; exactly 0 where s = 0.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside its domain.

    Notes
    -----
    Clopper and Pearson (1934); Brown, Cai and DasGupta (2001), section 4.1. The fast kernel says where the search
    starts.
    """
    s, f, miss = _check_arguments(successes, trials, confidence, method)
    return _lower(s, f, miss, method, guess(fast.lower, successes, trials, confidence, method=method))


def upper(
    successes: Number, trials: Number, confidence: Number = 0.95, method: Method = "clopper-pearson"
) -> Enclosure:
    """Enclose the one-sided upper confidence limit, exactly 1 where s = n; arguments and errors as for ``lower``."""
    s, f, miss = _check_arguments(successes, trials, confidence, method)
    return _upper(s, f, miss, method, guess(fast.upper, successes, trials, confidence, method=method))


def interval(
    successes: Number, trials: Number, confidence: Number = 0.95, method: Method = "clopper-pearson"
) -> tuple[Enclosure, Enclosure]:
    """Enclose the two-sided confidence limits, with equal tails; arguments and errors as for ``lower``."""
    s, f, miss = _check_arguments(successes, trials, confidence, method)
    one_sided = (1 + float(confidence)) / 2
    return (
        _lower(s, f, miss / 2, method, guess(fast.lower, successes, trials, one_sided, method=method)),
        _upper(s, f, miss / 2, method, guess(fast.upper, successes, trials, one_sided, method=method)),
    )
