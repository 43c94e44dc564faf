"""Law of the cosine between a uniform direction in R^d and any fixed one, the null hypothesis of the canary audit.

Density f_d(x) = Γ(d/2) / (Γ((d − 1)/2) √π) · (1 − x²)^((d − 3)/2) on (−1, 1): Andrew et al. (arXiv 2302.03098),
Theorem 3.1.

Domain: all real 2 ≤ d ≤ 1e12, every cosine, every probability. Budget: 64 ulps of the exact result at the given
floats, 8 in practice (d ≥ 100, for quantiles also probabilities from 1e-12 to 1 − 1e-12). Where a logarithm is below
0.1, an absolute 1e-15 is added. Worst by search: 3 ulps in practice, 3 anywhere. The budgets in practice are *proven*
(``proofs_check/rounding/budgets.csv``), those anywhere *searched*, at 20,000 draws and as many steps a function; that
quantiles never are NaN is searched too. The enclosures of ``certified.null_cosine`` are proven. Results below the
smallest normal float have fewer digits. The conditioning of the argument is not part of the budget: in the tail, one
ulp of x moves the density by d·x²/(1 − x²) ulps, about 1,400 ulps at 1e-300.

For example:

>>> import canaryproof as cp
>>> print(f"{cp.null_cosine.sf(0.01, 1e6):.4g}")
7.601e-24
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels import _double_double as dd
from canaryproof.kernels._compiled import evaluate, njit
from canaryproof.kernels.arguments import checked_reals
from canaryproof.kernels.arrays import Array

Pair = tuple[float, float]

LARGEST_DIM = 1e12
_INVERSE_SQRT_PI = (0.5641895835477563, 7.66772980658294e-18)
# Coefficients of an expansion of log Γ(w + 3/4) − log Γ(w + 1/4) − log(w)/2 in even powers of 1/w: 2·B_{n+1}(1/4) /
# (n(n + 1)) for n = 2, 4, …
DENSITY_SERIES = (1 / 64, -5 / 2048, 61 / 49152, -1385 / 1048576, 50521 / 20971520)
# Largest step that is accepted as the last one to a quantile, in units of the result. Its error follows from this.
_LAST_STEP = 1e-9


@njit(cache=True, error_model="numpy")
def _density_scale(dim: float) -> Pair:
    """Return f_d(0) = Γ(x + 1/2) / (Γ(x) √π) for x = (d − 1)/2."""
    # A difference of two log-gammas would lose 12 digits at d = 1e12. The expansion in w = x − 1/4 has only even
    # powers; from 20 on, five of them reach 2e-18.
    x, n = 0.5 * (dim - 1.0), 0.0
    numerator, denominator = (1.0, 0.0), (1.0, 0.0)
    while x + n < 20.25:
        numerator = dd.multiply(*numerator, *dd.two_sum(x, n))
        denominator = dd.multiply(*denominator, *dd.two_sum(x, n + 0.5))
        n += 1.0
    w = dd.two_sum(x, n - 0.25)
    v = 1.0 / (w[0] * w[0])
    s = DENSITY_SERIES
    c = v * (s[0] + v * (s[1] + v * (s[2] + v * (s[3] + v * s[4]))))
    # c < 1e-4: one float keeps twenty digits of its exponential.
    root = dd.multiply(*dd.square_root(*w), *dd.two_sum(1.0, math.expm1(c)))
    return dd.multiply(*root, *dd.multiply(*dd.divide(*numerator, *denominator), *_INVERSE_SQRT_PI))


@njit(cache=True, error_model="numpy")
def _one_minus_square(x: float) -> Pair:
    """Return 1 − x² as a pair with full relative accuracy up to |x| = 1."""
    return dd.multiply(*dd.two_sum(1.0, -x), *dd.two_sum(1.0, x))


@njit(cache=True, error_model="numpy")
def _power_exponent(power: float, x: float) -> Pair:
    """Return power·log(1 − x²) as a pair."""
    return dd.multiply(*dd.log(*_one_minus_square(x)), power, 0.0)


@njit(cache=True, error_model="numpy")
def _scaled_exp(scale: Pair, exponent: Pair) -> Pair:
    """Return scale·exp(exponent), which underflows to zero."""
    if exponent[0] < -1e4:
        return 0.0, 0.0
    h, low, n = dd.exp_parts(*exponent)
    h, low = dd.multiply(h, low, *scale)
    return math.ldexp(h, n), math.ldexp(low, n)


@njit(cache=True, error_model="numpy")
def _central(x: float, dim: float) -> Pair:
    """Probability of (0, x) for 0 ≤ x, x·√d of order 1: all terms of the series are positive."""
    # f_d(0)·x·(1 − x²)^((d − 1)/2)·₂F₁(1, d/2; 3/2; x²), by Euler's transformation of the integrated density.
    square = dd.two_product(x, x)
    total, term, n = (1.0, 0.0), (1.0, 0.0), 0.0
    while term[0] > 1e-20 * total[0]:
        term = dd.multiply(*term, *dd.multiply(*dd.two_sum(dim, n), *square))
        term = dd.divide(*term, n + 3.0, 0.0)
        total = dd.add(*total, *term)
        n += 2.0
    scale = dd.multiply(*_density_scale(dim), *dd.multiply(*total, x, 0.0))
    return _scaled_exp(scale, _power_exponent(0.5 * (dim - 1.0), x))


@njit(cache=True, error_model="numpy")
def _density(x: float, dim: float) -> float:
    """f_d(x) for |x| < 1."""
    return _scaled_exp(_density_scale(dim), _power_exponent(0.5 * (dim - 3.0), x))[0]


@njit(cache=True, error_model="numpy")
def _tail_fraction(x: float, dim: float) -> float:
    """Return (d − 1) / ₂F₁(1, 1/2; (d + 1)/2; −r) for r = (1 − x²)/x², by Gauss's continued fraction."""
    # d − 1 + r·1·(d − 1)/(d + 1 + r·2·d/(d + 3 + …)) is a Stieltjes fraction: taken from the far end, it damps errors.
    # The remainder after 2n terms falls as exp(−2·z·√n), z = x·√d, and as ((1 − x)/(1 + x))**n where d is small.
    ratio, _ = dd.divide(*_one_minus_square(x), *dd.two_product(x, x))
    base = dim - 2.0
    k = 24.0 + math.floor(min(800.0 / max(dim * x * x, 1e-300), 80.0 / x))
    # The tail of the fraction is close to the fixed point of its own last step.
    n = 2.0 * k + base
    value = (n + 1.0) * (0.5 + math.sqrt(0.25 + ratio * (k * (k + base)) / ((n - 1.0) * (n + 1.0))))
    while k > 0.0:
        value = (2.0 * k - 1.0 + base) + ratio * (k * (k + base)) / value
        k -= 1.0
    return value


@njit(cache=True, error_model="numpy")
def _is_central(x: float, dim: float) -> bool:
    """Whether the power series serves, and not the continued fraction."""
    return x * x * (dim + 2.0) < 2.0


@njit(cache=True, error_model="numpy")
def _upper_tail(x: float, dim: float) -> float:
    """P(cosine > x) for 0 ≤ x ≤ 1."""
    if x == 1.0:
        return 0.0
    if _is_central(x, dim):
        h, low = _central(x, dim)
        return (0.5 - h) - low
    scale = dd.divide(*_density_scale(dim), *dd.two_product(_tail_fraction(x, dim), x))
    return _scaled_exp(scale, _power_exponent(0.5 * (dim - 1.0), x))[0]


@njit(cache=True, error_model="numpy")
def _log_upper_tail(x: float, dim: float) -> float:
    if x == 1.0:
        return -math.inf
    h, low = _power_exponent(0.5 * (dim - 1.0), x)
    if h > -600.0:
        return math.log(_upper_tail(x, dim))
    return h + (low + math.log(_density_scale(dim)[0] / (_tail_fraction(x, dim) * x)))


@njit(cache=True, error_model="numpy")
def _upper_quantile(p: float, dim: float) -> float:
    """Return x ≥ 0 with P(cosine > x) = p, for 0 ≤ p ≤ 1/2; NaN where no last step is small enough."""
    if p == 0.0:
        return 1.0
    scale, _ = _density_scale(dim)
    if p > 0.17:
        # The central probability, 1/2 − p, is nearly linear in x.
        target = 0.5 - p
        x = min(target / scale, 0.99)
        for _ in range(50):
            h, low = _central(x, dim)
            step = ((target - h) - low) / _density(x, dim)
            x += step
            if abs(step) <= _LAST_STEP * x:
                return x
        return math.nan
    # In u = log(1 − x²) the log tail is nearly linear, with slope a; log(2p)/a lies on the far side of the root.
    a = 0.5 * (dim - 1.0)
    log_scale = math.log(scale) - math.log(p)
    u = math.log(2.0 * p) / a
    for _ in range(50):
        x = math.sqrt(-math.expm1(u))
        fraction = _tail_fraction(x, dim)
        step = -2.0 * (a * u + log_scale - math.log(fraction * x)) / fraction
        # A step past zero would leave the domain: go half the way.
        u = u + step if u + step < 0.0 else 0.5 * u
        if abs(step) <= _LAST_STEP * abs(u):
            break
    else:
        return math.nan
    x = math.sqrt(-math.expm1(u))
    if u < -1.0:
        return x
    # Terms larger than log p may have cancelled in the step. The tail itself has all digits.
    step = (_upper_tail(x, dim) - p) / _density(x, dim)
    return x + step if abs(step) <= _LAST_STEP * x else math.nan


@njit(cache=True, error_model="numpy")
def _log_pdf(x: float, dim: float) -> float:
    if abs(x) > 1.0:
        return -math.inf
    if dim == 3.0:
        return -math.log(2.0)
    if abs(x) == 1.0:
        return math.inf if dim < 3.0 else -math.inf
    # Pairs, because the two nearly cancel where the log density crosses zero.
    return dd.add(*_power_exponent(0.5 * (dim - 3.0), x), *dd.log(*_density_scale(dim)))[0]


@njit(cache=True, error_model="numpy")
def _pdf_at(x: float, dim: float) -> float:
    if abs(x) > 1.0:
        return 0.0
    if dim == 3.0:
        return 0.5
    if abs(x) == 1.0:
        return math.inf if dim < 3.0 else 0.0
    return _density(x, dim)


@njit(cache=True, error_model="numpy")
def _pdfs(x: Array, dim: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _pdf_at(x[i], dim[i])


@njit(cache=True, error_model="numpy")
def _logpdfs(x: Array, dim: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _log_pdf(x[i], dim[i])


@njit(cache=True, error_model="numpy")
def _sf_at(x: float, dim: float) -> float:
    if x >= 0.0:
        return _upper_tail(min(x, 1.0), dim)
    if _is_central(x, dim):
        h, low = _central(-x, dim)
        return (0.5 + h) + low
    return 1.0 - _upper_tail(min(-x, 1.0), dim)


@njit(cache=True, error_model="numpy")
def _sfs(x: Array, dim: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _sf_at(x[i], dim[i])


@njit(cache=True, error_model="numpy")
def _logsf_at(x: float, dim: float) -> float:
    if x >= 0.0:
        return _log_upper_tail(min(x, 1.0), dim)
    return math.log1p(-_upper_tail(min(-x, 1.0), dim))


@njit(cache=True, error_model="numpy")
def _logsfs(x: Array, dim: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _logsf_at(x[i], dim[i])


@njit(cache=True, error_model="numpy")
def _isf_at(q: float, dim: float) -> float:
    if q <= 0.5:
        return _upper_quantile(q, dim)
    return -_upper_quantile(1.0 - q, dim)


@njit(cache=True, error_model="numpy")
def _isfs(q: Array, dim: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _isf_at(q[i], dim[i])


def _check_arguments(dim: ArrayLike, name: str, argument: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    dims = checked_reals("dim", dim)
    if not np.all((dims >= 2.0) & (dims <= LARGEST_DIM)):
        raise ValueError(f"dim must lie between 2 and {LARGEST_DIM:g}")
    array = checked_reals(name, argument)
    if np.any(np.isnan(array)):
        raise ValueError(f"{name} must not be NaN")
    return dims, array


def _check_probability(dim: ArrayLike, q: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    dims, probabilities = _check_arguments(dim, "q", q)
    if not np.all((probabilities >= 0.0) & (probabilities <= 1.0)):
        raise ValueError("q must lie between 0 and 1")
    return dims, probabilities


def pdf(x: ArrayLike, dim: ArrayLike) -> NDArray[np.float64]:
    """Density of the cosine.

    Parameters
    ----------
    x
        Cosine, any shape (broadcast with ``dim``); the density is 0 outside [−1, 1], and at −1 and 1 its limit.
    dim
        Dimension d of the space, 2 ≤ d ≤ 1e12.

    Returns
    -------
    Density per unit of cosine, broadcast shape.

    Raises
    ------
    ValueError
        If a dimension lies outside the domain, or a cosine is NaN.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Theorem 3.1. Error: see the module.
    """
    dims, cosines = _check_arguments(dim, "x", x)
    return evaluate(_pdfs, cosines, dims)


def logpdf(x: ArrayLike, dim: ArrayLike) -> NDArray[np.float64]:
    """Natural log of ``pdf``, without underflow; arguments and errors as there."""
    dims, cosines = _check_arguments(dim, "x", x)
    return evaluate(_logpdfs, cosines, dims)


def cdf(x: ArrayLike, dim: ArrayLike) -> NDArray[np.float64]:
    """Probability that the cosine is at most x.

    Parameters
    ----------
    x
        Cosine, any shape (broadcast with ``dim``).
    dim
        Dimension d of the space, 2 ≤ d ≤ 1e12.

    Returns
    -------
    Probability, broadcast shape, with full relative accuracy also in the lower tail.

    Raises
    ------
    ValueError
        If a dimension lies outside the domain, or a cosine is NaN.

    Notes
    -----
    The integral of the density of Andrew et al. (arXiv 2302.03098), Theorem 3.1; a power series within 1.4 standard
    deviations of 0, Gauss's continued fraction beyond.
    """
    dims, cosines = _check_arguments(dim, "x", x)
    return evaluate(_sfs, -cosines, dims)


def logcdf(x: ArrayLike, dim: ArrayLike) -> NDArray[np.float64]:
    """Natural log of ``cdf``, without underflow; arguments and errors as there."""
    dims, cosines = _check_arguments(dim, "x", x)
    return evaluate(_logsfs, -cosines, dims)


def sf(x: ArrayLike, dim: ArrayLike) -> NDArray[np.float64]:
    """Probability that the cosine exceeds x, with full relative accuracy; arguments and errors as for ``cdf``."""
    dims, cosines = _check_arguments(dim, "x", x)
    return evaluate(_sfs, cosines, dims)


def logsf(x: ArrayLike, dim: ArrayLike) -> NDArray[np.float64]:
    """Natural log of ``sf``, without underflow; arguments and errors as for ``cdf``."""
    dims, cosines = _check_arguments(dim, "x", x)
    return evaluate(_logsfs, cosines, dims)


def ppf(q: ArrayLike, dim: ArrayLike) -> NDArray[np.float64]:
    """Cosine below which the probability is q, the inverse of ``cdf``.

    Parameters
    ----------
    q
        Probability in [0, 1], any shape (broadcast with ``dim``).
    dim
        Dimension d of the space, 2 ≤ d ≤ 1e12.

    Returns
    -------
    Cosine in [−1, 1], broadcast shape.

    Raises
    ------
    ValueError
        If a dimension lies outside the domain, or a probability outside [0, 1].
    """
    dims, probabilities = _check_probability(dim, q)
    return -evaluate(_isfs, probabilities, dims) + 0.0


def isf(q: ArrayLike, dim: ArrayLike) -> NDArray[np.float64]:
    """Cosine above which the probability is q, the inverse of ``sf``; arguments and errors as for ``ppf``."""
    dims, probabilities = _check_probability(dim, q)
    return evaluate(_isfs, probabilities, dims)
