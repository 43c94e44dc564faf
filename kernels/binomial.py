"""Confidence limits of a binomial proportion: Clopper–Pearson (exact) and Jeffreys.

Both are quantiles of Beta distributions. scipy's are off by 1e-9 at some large b and lost altogether at others; here
they are where Newton's method starts. The distribution function is x^a (1 − x)^b / B(a, b) over the continued fraction
of DiDonato and Morris (ACM TOMS 18, 1992, equation 9). The logarithm of the former is made of pairs of floats.

Domain: whole 0 ≤ s ≤ n, 1 ≤ n ≤ 1e9, confidence from 1e-100 to 1. Budget for n ≤ 1e6, as far as the enclosures of
``certified.binomial`` reach: 64 ulps of the exact limit, 8 in practice (n ≥ 10, confidence from 0.9 to 1 − 1e-12).
Worst found by search: 4 ulps in practice, 11 anywhere. The budgets are *searched*, at 20,000 draws and as many steps a
function. Above 1e6 the same formulas serve, and are compared with the multiprecision twin only.

The budgets in practice are not proven, and the fraction is the obstacle. Each element's rounding error is damped by a
factor for each element before it. For Beta(a, a + 1) at its mean the largest factor is 0.75, 0.975 and 0.9975, at a =
50, 5e3 and 5e5. Its running products add up to 1.4, 7.5 and 36 there, but the limit moves by 13%, 1.3% and 0.13% of
the tail's relative error only. For a = 1 and b = 1e6 it moves by 172%. The largest of both, multiplied, are above the
budget. So a proof has to bound their product over three parameters, where the cosine's fraction has one. Beyond the
element b the signs alternate, too.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from canaryproof.kernels import _double_double as dd
from canaryproof.kernels._compiled import evaluate, njit
from canaryproof.kernels.arguments import checked_reals
from canaryproof.kernels.arrays import Array

Pair = tuple[float, float]

_HALF_LOG_TWO_PI = (0.9189385332046728, -3.8782941580672414e-17)
# Coefficients of Stirling's series in odd powers of 1/z from the third on; the last one is a divisor.
STIRLING, LAST_DIVISOR = (-1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360), 156.0
_MOST_TRIALS = 1e9
_LEAST_CONFIDENCE = 1e-100

Method = Literal["clopper-pearson", "jeffreys"]

# Each method adds these to (successes, failures) for the lower limit, and the other way round for the upper.
_SHIFTS = {"clopper-pearson": (0.0, 1.0), "jeffreys": (0.5, 0.5)}


def _check_arguments(
    successes: ArrayLike, trials: ArrayLike, confidence: ArrayLike, method: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    s, n, c = map(checked_reals, ("successes", "trials", "confidence"), (successes, trials, confidence))
    if not np.all((n >= 1) & (n == np.floor(n)) & (n <= _MOST_TRIALS)):
        raise ValueError(f"trials must be a whole number from 1 to {_MOST_TRIALS:g}")
    if not np.all((s >= 0) & (s <= n) & (s == np.floor(s))):
        raise ValueError("successes must be a whole number from 0 to trials")
    if not np.all((c >= _LEAST_CONFIDENCE) & (c < 1.0)):
        raise ValueError(f"confidence must lie between {_LEAST_CONFIDENCE:g} and 1, 1 excluded")
    if method not in _SHIFTS:
        raise ValueError("method must be 'clopper-pearson' or 'jeffreys'")
    return s, n, c


@njit(cache=True, error_model="numpy")
def _log_gamma(z: float) -> Pair:
    """Log Γ(z) for whole and half-whole z > 0, absolute error below 1e-19 of the larger of z and 1."""
    product = 1.0, 0.0
    while z < 20.0:
        product = dd.multiply(*product, z, 0.0)
        z += 1.0
    v = 1.0 / (z * z)
    # Stirling's series: from 20 on, what is left out is below 1e-20, and one float serves all terms but the first.
    s = STIRLING
    rest = v / z * (s[0] + v * (s[1] + v * (s[2] + v * (s[3] + v * (s[4] + v / LAST_DIVISOR)))))
    total = dd.add(*dd.multiply(*dd.log(z, 0.0), z - 0.5, 0.0), -z, 0.0)
    total = dd.add(*total, *dd.add(*dd.divide(1.0, 0.0, 12.0 * z, 0.0), rest, 0.0))
    return dd.subtract(*dd.add(*total, *_HALF_LOG_TWO_PI), *dd.log(*product))


@njit(cache=True, error_model="numpy")
def _log_power(x: float, a: float, b: float) -> Pair:
    """Log of x^a (1 − x)^b / B(a, b)."""
    left = dd.multiply(*dd.log(x, 0.0), a, 0.0)
    right = dd.multiply(*dd.log1p(-x, 0.0), b, 0.0)
    beta = dd.subtract(*dd.add(*_log_gamma(a), *_log_gamma(b)), *_log_gamma(a + b))
    return dd.subtract(*dd.add(*left, *right), *beta)


@njit(cache=True, error_model="numpy")
def _element(n: float, x: float, y: float, distance: float, a: float, b: float) -> tuple[float, float]:
    """αₙ₊₁ and βₙ₊₁ of the fraction."""
    if n == 0.0:
        return 1.0, a * (distance + 1.0) / (a + 1.0)
    c = a + 2.0 * n - 1.0
    alpha = ((a + n - 1.0) / c) * ((a + b + n - 1.0) / c) * n * (b - n) * x * x
    return alpha, n + n * (b - n) * x / c + (a + n) * (distance + 1.0 + n * (1.0 + y)) / (c + 2.0)


@njit(cache=True, error_model="numpy")
def _fraction(x: float, y: float, distance: float, a: float, b: float) -> float:
    """β₁ + α₂/(β₂ + …), y = 1 − x, where ``distance`` = a − (a + b)·x is above −1."""
    # Forward for the number of elements that matter, then from the far end, which damps rounding errors to two ulps.
    above = _element(0.0, x, y, distance, a, b)[1]
    below, n = 0.0, 0.0
    while True:
        n += 1.0
        alpha, beta = _element(n, x, y, distance, a, b)
        above, below = beta + alpha / above, 1.0 / (beta + alpha * below)
        if abs(above * below - 1.0) <= 1e-17:
            break
    value = beta
    while n > 0.0:
        alpha, _ = _element(n, x, y, distance, a, b)
        n -= 1.0
        value = _element(n, x, y, distance, a, b)[1] + alpha / value
    return value


@njit(cache=True, error_model="numpy")
def _series(x: float, a: float, b: float) -> Pair:
    """I_x(a, b)·B(a, b)/(x^a (1 − x)^b): positive terms."""
    total, term, n = (1.0, 0.0), (1.0, 0.0), 0.0
    while term[0] > 1e-20 * total[0]:
        term = dd.divide(*dd.multiply(*term, *dd.two_product(a + b + n, x)), a + 1.0 + n, 0.0)
        total = dd.add(*total, *term)
        n += 1.0
    return dd.divide(*total, a, 0.0)


@njit(cache=True, error_model="numpy")
def _newton_step(x: float, a: float, b: float, below: float, above: float) -> float:
    """Return what Newton's method adds to x for the quantile of Beta(a, b) with these probabilities on its sides."""
    h, low, n = dd.exp_parts(*_log_power(x, a, b))
    power = math.ldexp(h, n)
    y = 1.0 - x
    # The digits of a + b are those of a product when it nearly cancels.
    product = dd.two_product(a + b, x)
    distance = (a - product[0]) - product[1]
    if power == 0.0:
        return -x if distance < 0.0 else y
    slope = power / (x * y)
    # All elements of the fraction are positive up to n = b, the more the better, and from distance −1/2 on.
    flipped = distance < (-0.5 if a < b else 0.5)
    if flipped:
        x, y, distance, a, b, below, above = y, x, -distance, b, a, above, below
    if b < 1.0 and distance < 8.0 and y < 0.5:
        # They would alternate; but the probability on the other side is a short series of positive terms.
        other = dd.multiply(*_series(y, b, a), math.ldexp(h, n), math.ldexp(low, n))
        tail = dd.subtract(1.0, 0.0, *other)[0]
    else:
        tail = power / _fraction(x, y, distance, a, b)
    # The smaller of the two probabilities locates the quantile; the other may have rounded to 1.
    excess = tail - below if below <= above else tail - (1.0 - above)
    return excess / slope if flipped else -excess / slope


@njit(cache=True, error_model="numpy")
def _beta_quantile_at(a: float, b: float, below: float, above: float, start: float) -> float:
    least, most = 0.0, 1.0
    x = start if 0.0 < start < 1.0 else a / (a + b)
    for _ in range(1100):
        step = _newton_step(x, a, b, below, above)
        if abs(step) <= 1e-9 * min(x, 1.0 - x) / math.sqrt(a + b):
            return x + step
        if step > 0.0:
            least = x
        else:
            most = x
        if least < x + step < most:
            x += step
        else:
            # Halve the bracket in the exponent of whichever of x and 1 − x is small.
            middle = 0.5 * (least + most)
            if most < 0.5:
                middle = math.sqrt(max(least, 1e-320) * most)
            elif least > 0.5:
                middle = 1.0 - math.sqrt((1.0 - least) * max(1.0 - most, 1e-17))
            if not least < middle < most:
                return x
            x = middle
    return x


@njit(cache=True, error_model="numpy")
def _beta_quantiles(a: Array, b: Array, below: Array, above: Array, start: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _beta_quantile_at(a[i], b[i], below[i], above[i], start[i])


def _beta_quantile(
    a: NDArray[np.float64], b: NDArray[np.float64], below: NDArray[np.float64], above: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Quantile of Beta(a, b) with the probabilities ``below`` and ``above`` on its sides."""
    start = np.where(below <= above, special.betaincinv(a, b, below), special.betainccinv(a, b, above))
    return evaluate(_beta_quantiles, a, b, below, above, start)


def _lower(
    s: NDArray[np.float64], n: NDArray[np.float64], miss: NDArray[np.float64], keep: NDArray[np.float64], method: Method
) -> NDArray[np.float64]:
    first, second = _SHIFTS[method]
    # Where s = 0 the limit is 0 by convention (for Clopper–Pearson also by the limit of the formula).
    a = np.where(s == 0, 1.0, s + first)
    return np.where(s == 0, 0.0, _beta_quantile(a, n - s + second, miss, keep))[()]


def _upper(
    s: NDArray[np.float64], n: NDArray[np.float64], miss: NDArray[np.float64], keep: NDArray[np.float64], method: Method
) -> NDArray[np.float64]:
    first, second = _SHIFTS[method]
    b = np.where(s == n, 1.0, n - s + first)
    return np.where(s == n, 1.0, _beta_quantile(s + second, b, keep, miss))[()]


def lower(
    successes: ArrayLike, trials: ArrayLike, confidence: ArrayLike = 0.95, method: Method = "clopper-pearson"
) -> NDArray[np.float64]:
    """One-sided lower confidence limit of a proportion.

    Parameters
    ----------
    successes, trials
        Whole numbers 0 ≤ s ≤ n, 1 ≤ n ≤ 1e9; any shape, broadcast with ``confidence``.
    confidence
        Confidence level from 1e-100 to 1 (excluded).
    method
        ``clopper-pearson``: never covers less than the level; ``jeffreys``: the quantile of the Jeffreys posterior,
        which covers the level on average only.

    Returns
    -------
    Limit in [0, 1], broadcast shape; 0 where s = 0.

    Raises
    ------
    ValueError
        If an argument lies outside its domain.

    Notes
    -----
    Clopper and Pearson (1934); Brown, Cai and DasGupta (2001), section 4.1.
    """
    s, n, c = _check_arguments(successes, trials, confidence, method)
    return _lower(s, n, 1.0 - c, c, method)


def upper(
    successes: ArrayLike, trials: ArrayLike, confidence: ArrayLike = 0.95, method: Method = "clopper-pearson"
) -> NDArray[np.float64]:
    """One-sided upper confidence limit of a proportion, 1 where s = n; arguments and errors as for ``lower``."""
    s, n, c = _check_arguments(successes, trials, confidence, method)
    return _upper(s, n, 1.0 - c, c, method)


def interval(
    successes: ArrayLike, trials: ArrayLike, confidence: ArrayLike = 0.95, method: Method = "clopper-pearson"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two-sided confidence limits of a proportion, with equal tails; arguments and errors as for ``lower``."""
    s, n, c = _check_arguments(successes, trials, confidence, method)
    miss, keep = 0.5 * (1.0 - c), 0.5 * (1.0 + c)
    return _lower(s, n, miss, keep, method), _upper(s, n, miss, keep, method)
