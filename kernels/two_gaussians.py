"""Privacy curve of a pair of Gaussians: Andrew et al. (arXiv 2302.03098), Section 3.2.

For P₁ = N(μ₁, σ₁²) and P₂ = N(μ₂, σ₂²) the hockey-stick divergence is δ(ε) = P₁(Z > ε) − e^ε·P₂(Z > ε) with the
privacy loss Z = log p₁/p₂, a parabola. The paper takes the parabola's roots by the school formula and subtracts two
probabilities; both steps cancel. Here:

* After a shift, a scaling and a reflection, P₂ = N(0, 1) and P₁ = N(m, s²) with m ≥ 0; s − 1 is formed before it is
  rounded. In P₁'s own standard units u, Z = αu² + mu·s + m²/2 − log s with α = (s² − 1)/2.
* The root u nearer to P₁'s centre is taken without cancellation; q = dZ/du there. At any root p₁ = e^ε·p₂, so every
  tail of δ is φ(u) times ∫ e^(−uv − v²/2)·(1 − e^(−w(v))) dv with w(v) = v(q + αv) ≥ 0. Where the two halves of that
  integral differ by a factor of 2 they are Mills ratios and are subtracted; otherwise a Gauss–Legendre rule sums the
  positive integrand, and nothing cancels.
* ε(δ) is found as a function of u, on which log δ depends almost quadratically, by Newton's method.

Domain: standardised distance m ≤ 1e14, deviation ratio s from 1e-10 to 1e10, 0 ≤ ε ≤ 1e28, δ < 1 and not subnormal.
Error of ``log_delta`` at most 1e-13 of the larger of the result and 1, of ``epsilon`` at most 1e-13 of the result or
1e-14 absolutely, for s from 1e-3 to 1e3 (however close to 1), ε ≤ 1e5 and 1e-300 ≤ δ ≤ 1/2. Two conditions are the
problem's own: the result is exact for the floats given, but where the means nearly coincide its sensitivity to them is
that of μ₁ − μ₂; and above δ = 1/2, where ε may approach 0 through large terms, only the absolute error is small.
"""

import math
from typing import Literal

import numpy as np
from numba import njit, vectorize
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels import _double_double as dd
from canaryproof.kernels._evaluate import evaluate
from canaryproof.kernels._mills import mills_ratio

Direction = Literal["forward", "reverse", "both"]

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Bounds of the domain.
LARGEST_RATIO = 1e10
LARGEST_DISTANCE = 1e14
LARGEST_EPSILON = 1e28
SMALLEST_DELTA = 2.0**-1022
# Stands for infinity where infinity times zero must not arise.
_FAR = 1e200
# 32 nodes: over the reach of the weight (exponent up to 46) a Legendre rule of this order errs by less than 1e-17.
_NODES, _WEIGHTS = (0.5 * array for array in np.polynomial.legendre.leggauss(32))
_NODES = _NODES + 0.5


@njit(cache=True)
def _upper(x: float) -> float:
    return 0.5 * math.erfc(x * math.sqrt(0.5))


@njit(cache=True)
def _integrals(x: float, q: float, alpha: float, end: float) -> tuple[float, float]:
    """Integrals over 0 < v < end of e^(−xv − v²/2)·(1 − e^(−w)) and of e^(−xv − v²/2 − w), w = v(q + αv)."""
    root = math.sqrt(x * x + 92.0)
    reach = 92.0 / (x + root) if x > 0.0 else root - x
    end = min(end, reach)
    excess, rest = 0.0, 0.0
    for i in range(_NODES.size):
        v = end * _NODES[i]
        w = v * (q + alpha * v)
        weight = _WEIGHTS[i] * math.exp(-v * (x + 0.5 * v))
        gain = -math.expm1(-w)
        excess += weight * gain
        rest += weight * (1.0 - gain)
    return end * excess, end * rest


@njit(cache=True)
def _half_line(x: float, q: float, alpha: float, s: float) -> tuple[float, float]:
    """Both integrals over 0 < v < ∞, for α ≥ 0."""
    first = mills_ratio(x)
    second = mills_ratio((x + q) / s) / s
    if second <= 0.5 * first:
        return first - second, second
    return _integrals(x, q, alpha, math.inf)


@njit(cache=True)
def _truncated(y: float, length: float) -> float:
    """Integral of e^(−yv − v²/2) over 0 < v < length."""
    exponent = length * (y + 0.5 * length)
    if exponent > 1.0:
        return mills_ratio(y) - math.exp(-exponent) * mills_ratio(y + length)
    total = 0.0
    for i in range(_NODES.size):
        v = length * _NODES[i]
        total += _WEIGHTS[i] * math.exp(-v * (y + 0.5 * v))
    return length * total


@njit(cache=True)
def _interval(x: float, q: float, alpha: float, s: float, length: float) -> tuple[float, float]:
    """Both integrals over 0 < v < length = −q/α, for α < 0; w = 0 at both ends."""
    if length > 1.0:
        first = _truncated(x, length)
        second = _truncated((x + q) / s, s * length) / s
        if second <= 0.5 * first:
            return first - second, second
    return _integrals(x, q, alpha, length)


@njit(cache=True)
def tails(u: float, q: float, alpha: float, m: float, s: float) -> tuple[float, float]:
    """Return δ and e^ε·P₂(Z > ε), both divided by φ(u), for the near root u, where dZ/du = q."""
    if alpha == 0.0:
        return _half_line(u, q, 0.0, 1.0)
    if alpha < 0.0:
        return _interval(u, q, alpha, s, -q / alpha)
    excess, rest = _half_line(u, q, alpha, s)
    # The far root lies at −(u + ms/α); its tail is the near one's with this factor and starting point.
    shift = m * s / alpha
    damping = 0.5 * shift * (q / alpha)
    if damping < 745.0:
        far_excess, far_rest = _half_line(u + shift, q, alpha, s)
        factor = math.exp(-damping)
        excess += factor * far_excess
        rest += factor * far_rest
    return excess, rest


@njit(cache=True)
def _first_outside(u: float, q: float, alpha: float, m: float, s: float) -> float:
    """P₁(Z ≤ ε), accurate where it is small."""
    if alpha == 0.0:
        return _upper(-u)
    if alpha < 0.0:
        return _upper(-u) + _upper(u - q / alpha)
    far = u + m * s / alpha
    if u < 0.0:
        return _upper(-u) - _upper(far)
    return 0.5 * (math.erf(u * math.sqrt(0.5)) + math.erf(far * math.sqrt(0.5)))


@njit(cache=True)
def log_delta_at_root(uh: float, ul: float, q: float, alpha: float, m: float, s: float) -> tuple[float, float, float]:
    """Return h, l, b with δ = b·exp(h + l), for the near root u = uh + ul (a pair) where dZ/du = q."""
    if uh > -30.0:
        excess, rest = tails(uh, q, alpha, m, s)
        h, low = dd.multiply(uh, ul, -0.5 * uh, -0.5 * ul)
        density = math.exp(h - _HALF_LOG_TWO_PI)
        if density * excess <= 0.5:
            return h, low - _HALF_LOG_TWO_PI, excess
        second = density * rest
    else:
        # P₁(Z > ε) is 1 to all digits; e^ε·P₂(Z > ε) has no cancelling partner.
        y = (uh + q) / s
        second = math.exp(-0.5 * uh * uh - _HALF_LOG_TWO_PI) * mills_ratio(max(y, -36.0)) / s
    return 0.0, math.log1p(-(_first_outside(uh, q, alpha, m, s) + second)), 1.0


@njit(cache=True)
def _standardise(mu1: float, sigma1: float, mu2: float, sigma2: float) -> tuple[float, float, float, float]:
    """Return m = |μ₁ − μ₂|/σ₂ and g = σ₁/σ₂ − 1 as pairs (mh, ml, gh, gl)."""
    # Scaling by a power of two is exact, and keeps products of pairs from overflowing.
    unit, exponent = math.frexp(sigma2)
    dh, dl = dd.two_sum(mu1, -mu2)
    sign = -1.0 if dh < 0.0 else 1.0
    mh, ml = dd.divide(math.ldexp(sign * dh, -exponent), math.ldexp(sign * dl, -exponent), unit, 0.0)
    gh, gl = dd.divide(*dd.two_sum(math.ldexp(sigma1, -exponent), -unit), unit, 0.0)
    return mh, ml, gh, gl


@njit(cache=True)
def _log_delta(epsilon: float, mh: float, ml: float, gh: float, gl: float) -> float:
    if mh == 0.0 and gh == 0.0:
        return -math.inf
    if gh == 0.0:
        # No squares: they would underflow for minute m.
        u = dd.add(*dd.divide(epsilon, 0.0, mh, ml), -0.5 * mh, -0.5 * ml)
        h, low, b = log_delta_at_root(u[0], u[1], mh, 0.0, mh, 1.0)
        return h + (low + math.log(b)) if b > 0.0 else -math.inf
    # All in pairs: u multiplies into u²/2, and q² cancels where ε nears its maximum for s < 1.
    sh, sl = dd.add(1.0, 0.0, gh, gl)
    log_s = dd.log1p(gh, gl)
    square = dd.multiply(mh, ml, mh, ml)
    slope = dd.multiply(mh, ml, sh, sl)
    alpha = dd.multiply(gh, gl, *dd.add(1.0, 0.0, 0.5 * gh, 0.5 * gl))
    total = dd.add(epsilon, 0.0, *log_s)
    discriminant = dd.add(*square, *dd.multiply(4.0 * alpha[0], 4.0 * alpha[1], *total))
    if discriminant[0] <= 0.0:
        return -math.inf
    q = dd.square_root(*discriminant)
    excess = dd.add(total[0], total[1], -0.5 * square[0], -0.5 * square[1])
    u = dd.divide(2.0 * excess[0], 2.0 * excess[1], *dd.add(*slope, *q))
    h, low, b = log_delta_at_root(u[0], u[1], q[0], alpha[0], mh, sh)
    return h + (low + math.log(b)) if b > 0.0 else -math.inf


@njit(cache=True)
def _loss(u: float, correction: float, mh: float, ml: float, gh: float, gl: float) -> float:
    """Privacy loss at u + du, where dZ/du · du = correction."""
    alpha = dd.multiply(gh, gl, *dd.add(1.0, 0.0, 0.5 * gh, 0.5 * gl))
    slope = dd.multiply(mh, ml, *dd.add(1.0, 0.0, gh, gl))
    z = dd.multiply(u, 0.0, *dd.add(*dd.multiply(alpha[0], alpha[1], u, 0.0), *slope))
    z = dd.add(*z, *dd.multiply(0.5 * mh, 0.5 * ml, mh, ml))
    log_s = dd.log1p(gh, gl)
    z = dd.add(*z, -log_s[0], -log_s[1])
    return dd.add(*z, correction, 0.0)[0]


@njit(cache=True)
def solve_epsilon(delta: float, mh: float, ml: float, gh: float, gl: float) -> float:
    """Return the least ε ≥ 0 at which δ of N(m, s²) from N(0, 1), s = 1 + g, is at most ``delta``."""
    log_delta = math.log(delta) if delta < 0.5 else math.log1p(delta - 1.0)
    if _log_delta(0.0, mh, ml, gh, gl) <= log_delta:
        return 0.0
    s = 1.0 + gh
    alpha = gh * (1.0 + 0.5 * gh)
    slope = mh * s
    log_s = math.log1p(gh)
    q = math.sqrt(mh * mh + 4.0 * alpha * log_s)
    u = 2.0 * (log_s - 0.5 * mh * mh) / (slope + q)
    # For s < 1 the loss is largest at the distance ``left`` above u, and the root lies before it.
    left = -0.5 * q / alpha if alpha < 0.0 else _FAR
    # δ ≤ 2·P(X > u) ≤ exp(−u²/2) bounds the root from above; from there Newton descends on a concave function.
    # δ, a float below 1, bounds it from below: P(X ≤ −9) is under 2e-19.
    low = max(u, -9.0)
    left -= low - u
    u = low
    high = max(math.sqrt(-2.0 * log_delta), u)
    move = high - low
    if move >= left:
        high, move = u + left, 0.5 * left
    u += move
    left -= move
    step = 0.0
    for _ in range(100):
        q = 2.0 * alpha * u + slope if left > 1.0 + abs(u) else -2.0 * alpha * left
        excess, rest = tails(u, q, alpha, mh, s)
        if delta <= 0.5:
            step = (math.log(excess) - 0.5 * u * u - _HALF_LOG_TWO_PI - log_delta) * excess / (q * rest)
        else:
            # 1 − δ has the digits.
            second = math.exp(-0.5 * u * u - _HALF_LOG_TWO_PI) * rest
            outside = _first_outside(u, q, alpha, mh, s) + second
            step = math.log((1.0 - delta) / outside) * outside / (q * second)
        if abs(step) <= 1e-9 * (1.0 + abs(u)):
            break
        if step > 0.0:
            low = u
        else:
            high = u
        # A Newton step in log(left) cannot pass the maximum, and far from there it is a plain step in u.
        ratio = min(max(step / left, -3.0), 3.0)
        move = -left * math.expm1(-ratio)
        if low < u + move < high:
            left *= math.exp(-ratio)
        else:
            move = 0.5 * (low + high) - u
            left -= move
        u += move
    return max(_loss(u, q * step, mh, ml, gh, gl), 0.0)


@vectorize(cache=True)
def _log_delta_ufunc(epsilon: float, mu1: float, sigma1: float, mu2: float, sigma2: float) -> float:
    return _log_delta(epsilon, *_standardise(mu1, sigma1, mu2, sigma2))


@vectorize(cache=True)
def _epsilon_ufunc(delta: float, mu1: float, sigma1: float, mu2: float, sigma2: float) -> float:
    return solve_epsilon(delta, *_standardise(mu1, sigma1, mu2, sigma2))


@vectorize(cache=True)
def _larger_epsilon_ufunc(delta: float, mu1: float, sigma1: float, mu2: float, sigma2: float) -> float:
    # The wider Gaussian's divergence is nearly always the larger, so that the other only needs to be looked at.
    if sigma1 < sigma2:
        mu1, sigma1, mu2, sigma2 = mu2, sigma2, mu1, sigma1
    first = solve_epsilon(delta, *_standardise(mu1, sigma1, mu2, sigma2))
    other = _standardise(mu2, sigma2, mu1, sigma1)
    if _log_delta(first, *other) <= math.log(delta):
        return first
    return max(first, solve_epsilon(delta, *other))


def _checked(
    mu1: ArrayLike, sigma1: ArrayLike, mu2: ArrayLike, sigma2: ArrayLike, direction: str
) -> tuple[NDArray[np.float64], ...]:
    arrays = tuple(np.asarray(a, dtype=np.float64) for a in (mu1, sigma1, mu2, sigma2))
    m1, s1, m2, s2 = arrays
    if not (np.all(np.isfinite(m1)) and np.all(np.isfinite(m2))):
        raise ValueError("mu1 and mu2 must be finite")
    if not (np.all((s1 > 0) & np.isfinite(s1)) and np.all((s2 > 0) & np.isfinite(s2))):
        raise ValueError("sigma1 and sigma2 must be positive and finite")
    with np.errstate(over="ignore", under="ignore"):
        if not np.all((s1 <= LARGEST_RATIO * s2) & (s2 <= LARGEST_RATIO * s1)):
            raise ValueError(f"sigma1 / sigma2 must lie between {1 / LARGEST_RATIO:g} and {LARGEST_RATIO:g}")
        distance = np.abs(m1 - m2)
        if not np.all((distance <= LARGEST_DISTANCE * np.minimum(s1, s2)) & np.isfinite(distance)):
            raise ValueError(f"|mu1 − mu2| must be finite and at most {LARGEST_DISTANCE:g} standard deviations")
    if direction not in ("forward", "reverse", "both"):
        raise ValueError("direction must be 'forward', 'reverse' or 'both'")
    return arrays


def log_delta(
    epsilon: ArrayLike,
    mu1: ArrayLike,
    sigma1: ArrayLike,
    mu2: ArrayLike,
    sigma2: ArrayLike,
    direction: Direction = "both",
) -> NDArray[np.float64]:
    """Natural log of the hockey-stick divergence δ(ε) between two Gaussians.

    Parameters
    ----------
    epsilon
        Privacy loss in nats, 0 ≤ ε ≤ 1e28; any shape, broadcast with the others.
    mu1, sigma1
        Mean and standard deviation of the first Gaussian.
    mu2, sigma2
        Mean and standard deviation of the second.
    direction
        ``forward``: divergence of the first from the second; ``reverse``: the other way; ``both``: the larger.

    Returns
    -------
    log δ, broadcast shape; −inf where δ = 0.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Section 3.2. Error: see the module.
    """
    m1, s1, m2, s2 = _checked(mu1, sigma1, mu2, sigma2, direction)
    eps = np.asarray(epsilon, dtype=np.float64)
    if not np.all((eps >= 0.0) & (eps <= LARGEST_EPSILON)):
        raise ValueError(f"epsilon must lie between 0 and {LARGEST_EPSILON:g}")
    if direction == "forward":
        return evaluate(_log_delta_ufunc, eps, m1, s1, m2, s2)
    if direction == "reverse":
        return evaluate(_log_delta_ufunc, eps, m2, s2, m1, s1)
    return np.maximum(evaluate(_log_delta_ufunc, eps, m1, s1, m2, s2), evaluate(_log_delta_ufunc, eps, m2, s2, m1, s1))


def epsilon(
    delta: ArrayLike,
    mu1: ArrayLike,
    sigma1: ArrayLike,
    mu2: ArrayLike,
    sigma2: ArrayLike,
    direction: Direction = "both",
) -> NDArray[np.float64]:
    """Return the least ε ≥ 0 at which the hockey-stick divergence between two Gaussians is at most δ.

    Parameters
    ----------
    delta
        δ in (0, 1), not subnormal; any shape, broadcast with the others.
    mu1, sigma1
        Mean and standard deviation of the first Gaussian.
    mu2, sigma2
        Mean and standard deviation of the second.
    direction
        As for ``log_delta``.

    Returns
    -------
    ε in nats, broadcast shape; 0 for identical Gaussians.

    Raises
    ------
    ValueError
        If an argument is NaN or lies outside the domain that the module states.

    Notes
    -----
    Andrew et al. (arXiv 2302.03098), Section 3.2. Error: see the module.
    """
    m1, s1, m2, s2 = _checked(mu1, sigma1, mu2, sigma2, direction)
    d = np.asarray(delta, dtype=np.float64)
    if not np.all((d >= SMALLEST_DELTA) & (d < 1.0)):
        raise ValueError(f"delta must lie between {SMALLEST_DELTA:g} and 1, 1 excluded")
    if direction == "forward":
        return evaluate(_epsilon_ufunc, d, m1, s1, m2, s2)
    if direction == "reverse":
        return evaluate(_epsilon_ufunc, d, m2, s2, m1, s1)
    return evaluate(_larger_epsilon_ufunc, d, m1, s1, m2, s2)
