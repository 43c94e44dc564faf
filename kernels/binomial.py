"""Confidence limits of a binomial proportion: Clopper–Pearson (exact) and Jeffreys.

Both are quantiles of Beta distributions, which scipy.special provides; this module adds the conventions at the ends
and the choice between one and two sides. Relative error of a limit at most 1e-12, and of its distance from 1 as well,
but for two spacings of the floats below 1.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

# Beyond, scipy's incomplete beta functions lose digits.
_MOST_TRIALS = 1e9
_LEAST_CONFIDENCE = 1e-100

Method = Literal["clopper-pearson", "jeffreys"]

# What each method adds to (successes, failures) for the lower limit, and the other way round for the upper.
_SHIFTS = {"clopper-pearson": (0.0, 1.0), "jeffreys": (0.5, 0.5)}


def _checked(
    successes: ArrayLike, trials: ArrayLike, confidence: ArrayLike, method: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    s, n, c = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (successes, trials, confidence)))
    if not np.all((n >= 1) & (n == np.floor(n)) & (n <= _MOST_TRIALS)):
        raise ValueError(f"trials must be a whole number from 1 to {_MOST_TRIALS:g}")
    if not np.all((s >= 0) & (s <= n) & (s == np.floor(s))):
        raise ValueError("successes must be a whole number from 0 to trials")
    if not np.all((c >= _LEAST_CONFIDENCE) & (c < 1.0)):
        raise ValueError(f"confidence must lie between {_LEAST_CONFIDENCE:g} and 1, 1 excluded")
    if method not in _SHIFTS:
        raise ValueError("method must be 'clopper-pearson' or 'jeffreys'")
    return s, n, c


def _beta_quantile(
    a: NDArray[np.float64], b: NDArray[np.float64], below: NDArray[np.float64], above: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Quantile of Beta(a, b) with the probabilities ``below`` and ``above`` on its sides."""
    # Of the two, the smaller one says where the quantile is; the other may have rounded to 1.
    lower = below <= above

    def step(x: NDArray[np.float64]) -> NDArray[np.float64]:
        excess = np.where(lower, special.betainc(a, b, x) - below, above - special.betaincc(a, b, x))
        log_density = special.xlogy(a - 1.0, x) + special.xlog1py(b - 1.0, -x) - special.betaln(a, b)
        with np.errstate(all="ignore"):
            return np.asarray(-excess * np.exp(-log_density))

    # scipy's inverse is off by 1e-9 at some large b: a Newton step on the distribution function mends that.
    x = np.where(lower, special.betaincinv(a, b, below), special.betainccinv(a, b, above))
    move = step(x)
    near = np.abs(move) <= 1e-6 * np.minimum(x, 1.0 - x)
    if not np.all(near):
        # At some it is lost altogether: bisect, in the logit, which reaches both ends.
        low, high = np.full(x.shape, -745.0), np.full(x.shape, 37.0)
        for _ in range(64):
            middle = 0.5 * (low + high)
            right = step(special.expit(middle)) > 0.0
            low, high = np.where(right, middle, low), np.where(right, high, middle)
        x = np.where(near, x, special.expit(0.5 * (low + high)))
        move = np.where(near, move, step(x))
        move = np.where(np.abs(move) <= 1e-6 * np.minimum(x, 1.0 - x), move, 0.0)
    # Below four ulps the step is the rounding error of the distribution function.
    return np.asarray(np.where(np.abs(move) > 1e-15 * x, x + move, x))


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
    s, n, c = _checked(successes, trials, confidence, method)
    return _lower(s, n, 1.0 - c, c, method)


def upper(
    successes: ArrayLike, trials: ArrayLike, confidence: ArrayLike = 0.95, method: Method = "clopper-pearson"
) -> NDArray[np.float64]:
    """One-sided upper confidence limit of a proportion, 1 where s = n; arguments and errors as for ``lower``."""
    s, n, c = _checked(successes, trials, confidence, method)
    return _upper(s, n, 1.0 - c, c, method)


def interval(
    successes: ArrayLike, trials: ArrayLike, confidence: ArrayLike = 0.95, method: Method = "clopper-pearson"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two-sided confidence limits of a proportion, with equal tails; arguments and errors as for ``lower``."""
    s, n, c = _checked(successes, trials, confidence, method)
    miss, keep = 0.5 * (1.0 - c), 0.5 * (1.0 + c)
    return _lower(s, n, miss, keep, method), _upper(s, n, miss, keep, method)
