"""Balls of pairs of floats, compiled: enclosures for arrays, much faster than flint's.

A ball (h, l, e) holds every number within e of h + l. Centres are computed by ``_double_double``; e adds up what the
arguments' radii do and what the operation rounds, by the bounds below, and is rounded up. What is not finite decides
nothing. Where these balls are too wide, the caller falls back to flint's.

For a root, the fast kernel proposes a float. Proven signs of δ(ε) − δ at the floats on either side of it prove that the
exact root lies between them.
"""

import math

import numpy as np

from canaryproof.kernels import _double_double as dd
from canaryproof.kernels._compiled import njit
from canaryproof.kernels._tails import mills_ratio
from canaryproof.kernels.arrays import Array

Ball = tuple[float, float, float]
# Distance and ratio − 1 of two Gaussians.
Pair = tuple[Ball, Ball]

# Relative errors of ``_double_double`` (for sums: of the larger operand) and of ``mills_ratio``, proven by
# ``proofs_check.rounding``.
ADD, MULTIPLY, DIVIDE, SQUARE_ROOT = 8e-32, 1.2e-31, 7e-31, 2.4e-31
EXPONENTIAL, LOGARITHM, MILLS = 1e-20, 5e-30, 1e-19
# More than the rounding of some sums and products of radii; more than what underflows.
_UP, _TINY = 1.0 + 2.0**-40, 1e-300
# 1/√(2π) as a pair, off by less than a relative 1e-32.
_INVERSE_SQRT_TWO_PI = (0.3989422804014327, -2.49232720227773e-17, 1e-32)
# Arguments that are not between these might underflow in a quotient.
_LEAST, _MOST = 1e-90, 1e90
# Beyond this exponent, what a factor exp(−t) multiplies is a part of the radius.
_FAR = 80.0


@njit(cache=True, error_model="numpy")
def _add(a: Ball, b: Ball) -> Ball:
    h, low = dd.add(a[0], a[1], b[0], b[1])
    return h, low, (a[2] + b[2] + ADD * (abs(a[0]) + abs(b[0]))) * _UP


@njit(cache=True, error_model="numpy")
def _subtract(a: Ball, b: Ball) -> Ball:
    return _add(a, (-b[0], -b[1], b[2]))


@njit(cache=True, error_model="numpy")
def _multiply(a: Ball, b: Ball) -> Ball:
    h, low = dd.multiply(a[0], a[1], b[0], b[1])
    return h, low, (abs(a[0]) * b[2] + abs(b[0]) * a[2] + a[2] * b[2] + MULTIPLY * abs(h) + _TINY) * _UP


@njit(cache=True, error_model="numpy")
def _scale(a: Ball, power_of_two: float) -> Ball:
    return a[0] * power_of_two, a[1] * power_of_two, abs(a[2] * power_of_two)


@njit(cache=True, error_model="numpy")
def _divide(a: Ball, b: Ball) -> Ball:
    h, low = dd.divide(a[0], a[1], b[0], b[1])
    least = abs(b[0]) / _UP - b[2]
    if not least > 0.0:
        return h, low, math.inf
    return h, low, ((a[2] + abs(h) * b[2] * _UP) / least + DIVIDE * abs(h) + _TINY) * _UP


@njit(cache=True, error_model="numpy")
def _square_root(a: Ball) -> Ball:
    """Square root of a ball of positive numbers."""
    h, low = dd.square_root(a[0], a[1])
    return h, low, (a[2] / h + SQUARE_ROOT * h + _TINY) * _UP


@njit(cache=True, error_model="numpy")
def _log1p(a: Ball) -> Ball:
    h, low = dd.log1p(a[0], a[1])
    least = (1.0 + a[0]) / _UP - a[2]
    if not least > 0.0:
        return h, low, math.inf
    return h, low, (a[2] / least + LOGARITHM * abs(h) + _TINY) * _UP


@njit(cache=True, error_model="numpy")
def _exp(a: Ball) -> Ball:
    """Exponential where the radius is below 0.1 and no result is subnormal."""
    if not (a[2] < 0.1 and abs(a[0]) < 600.0):
        return 1.0, 0.0, math.inf
    h, low = dd.exp(a[0], a[1])
    return h, low, h * (EXPONENTIAL + 1.06 * a[2]) * _UP


@njit(cache=True, error_model="numpy")
def _mills(x: Ball) -> Ball:
    """Mills ratio M, for whose logarithm −0.8 − |x⁻| ≤ (log M)′ = x − 1/M ≤ 0."""
    if not (x[0] > -36.0 and x[2] < 1e-3):
        return 1.0, 0.0, math.inf
    h, low = mills_ratio(x[0], x[1])
    return h, low, h * (MILLS + 1.01 * (0.81 + max(-x[0], 0.0)) * x[2]) * _UP


@njit(cache=True, error_model="numpy")
def _standardise(mu1: float, sigma1: float, mu2: float, sigma2: float) -> Pair:
    """Balls of |μ₁ − μ₂|/σ₂ and σ₁/σ₂ − 1."""
    unit, exponent = math.frexp(sigma2)
    h, low = dd.two_sum(mu1, -mu2)
    sign = -1.0 if h < 0.0 else 1.0
    # An exact zero stays one.
    distance = (0.0, 0.0, 0.0)
    if h != 0.0:
        distance = _divide((math.ldexp(sign * h, -exponent), math.ldexp(sign * low, -exponent), 0.0), (unit, 0.0, 0.0))
    h, low = dd.two_sum(math.ldexp(sigma1, -exponent), -unit)
    gap = (0.0, 0.0, 0.0)
    if h != 0.0:
        gap = _divide((h, low, 0.0), (unit, 0.0, 0.0))
    return distance, gap


@njit(cache=True, error_model="numpy")
def _excess(epsilon: float, m: Ball, g: Ball) -> tuple[Ball, Ball, int]:
    """Balls of u and of δ(ε)/φ(u), u the near root of N(m, (1 + g)²) from N(0, 1); −1 where δ = 0, 0 if unknown."""
    nothing = (0.0, 0.0, math.inf)
    eps, unit = (epsilon, 0.0, 0.0), (1.0, 0.0, 0.0)
    if not ((epsilon == 0.0 or _LEAST < epsilon < _MOST) and (m[0] == 0.0 or _LEAST < m[0] < _MOST)):
        return nothing, nothing, 0
    if g[0] == 0.0 and g[2] == 0.0:
        if m[0] == 0.0 and m[2] == 0.0:
            return nothing, nothing, -1
        u = _subtract(_divide(eps, m), _scale(m, 0.5))
        return u, _subtract(_mills(u), _mills(_add(u, m))), 1
    s = _add(unit, g)
    alpha = _multiply(g, _add(unit, _scale(g, 0.5)))
    slope = _multiply(m, s)
    square = _multiply(m, m)
    total = _add(eps, _log1p(g))
    discriminant = _add(square, _scale(_multiply(alpha, total), 4.0))
    if alpha[0] < 0.0 and discriminant[0] < -discriminant[2]:
        return nothing, nothing, -1
    if not discriminant[0] > 2.0 * discriminant[2]:
        return nothing, nothing, 0
    q = _square_root(discriminant)
    u = _divide(_scale(_subtract(total, _scale(square, 0.5)), 2.0), _add(slope, q))
    x = _add(m, _multiply(s, u))
    first, second = _mills(u), _divide(_mills(x), s)
    near = _subtract(first, second)
    # The far root's tail: with v its distance from 0, a factor exp(−(v² − u²)/2) and the same two Mills ratios.
    if alpha[0] > 0.0:
        length = _divide(slope, alpha)
        v = _add(u, length)
        y = _subtract(_multiply(s, v), m)
        exponent = _scale(_divide(_multiply(length, q), alpha), 0.5)
    else:
        length = _divide((-q[0], -q[1], q[2]), alpha)
        v = _add(u, length)
        y = _add(x, _multiply(s, length))
        exponent = _multiply(length, _add(u, _scale(length, 0.5)))
    if exponent[0] > _FAR + exponent[2]:
        # v > u and y > x, and M falls.
        far = (0.0, 0.0, math.exp(-_FAR) * 1.01 * (first[0] + second[0]))
    else:
        factor = _exp((-exponent[0], -exponent[1], exponent[2]))
        far = _multiply(factor, _subtract(_mills(v), _divide(_mills(y), s)))
    return u, (_add(near, far) if alpha[0] > 0.0 else _subtract(near, far)), 1


@njit(cache=True, error_model="numpy")
def _delta(epsilon: float, m: Ball, g: Ball) -> tuple[Ball, int, int]:
    """Ball b and n with δ(ε) = b·2ⁿ, and what is known as in ``_excess``."""
    u, excess, known = _excess(epsilon, m, g)
    if known != 1:
        return excess, 0, known
    half = _scale(_multiply(u, u), -0.5)
    if not (half[2] < 0.1 and half[0] > -1e6):
        return (0.0, 0.0, math.inf), 0, 0
    h, low, n = dd.exp_parts(half[0], half[1])
    density = _multiply((h, low, h * (EXPONENTIAL + 1.06 * half[2]) * _UP), _INVERSE_SQRT_TWO_PI)
    return _multiply(density, excess), n, 1


@njit(cache=True, error_model="numpy")
def _sign(epsilon: float, delta: float, m: Ball, g: Ball) -> int:
    """Return the proven sign of δ(ε) − δ; 0 if it is not known."""
    ball, n, known = _delta(epsilon, m, g)
    if known != 1:
        return known
    mantissa, exponent = math.frexp(delta)
    if abs(n - exponent) > 500:
        return 0
    difference = _subtract(_scale(ball, math.ldexp(1.0, n - exponent)), (mantissa, 0.0, 0.0))
    if difference[0] > difference[2]:
        return 1
    if difference[0] < -difference[2]:
        return -1
    return 0


@njit(cache=True, error_model="numpy")
def _ends(ball: Ball) -> tuple[float, float]:
    """Return floats on either side of a ball, at most 2 ulps apart; NaN if these don't hold it."""
    radius = ball[2] * _UP + 2.0**-52 * abs(ball[1])
    low, rest = dd.two_sum(ball[0], ball[1] - radius)
    if rest < 0.0:
        low = np.nextafter(low, -np.inf)
    high, rest = dd.two_sum(ball[0], ball[1] + radius)
    if rest > 0.0:
        high = np.nextafter(high, np.inf)
    # Wider ones are made tight by flint's balls.
    if high <= np.nextafter(np.nextafter(low, np.inf), np.inf):
        return low, high
    return math.nan, math.nan


@njit(cache=True, error_model="numpy")
def _delta_ends(epsilon: float, m: Ball, g: Ball) -> tuple[float, float]:
    """Floats on either side of δ(ε); NaN if they would be subnormal."""
    ball, n, known = _delta(epsilon, m, g)
    if known == -1:
        return 0.0, 0.0
    if known == 0 or not -900 < n < 100:
        return math.nan, math.nan
    low, high = _ends(ball)
    return math.ldexp(low, n), math.ldexp(high, n)


@njit(cache=True, error_model="numpy")
def _log_delta_ends(epsilon: float, m: Ball, g: Ball) -> tuple[float, float]:
    """Floats on either side of log δ(ε), where δ < 1/2."""
    ball, n, known = _delta(epsilon, m, g)
    if known == -1:
        return -math.inf, -math.inf
    least = ball[0] / _UP - ball[2]
    if known == 0 or not least > 0.0 or math.ldexp(ball[0], n) > 0.5:
        return math.nan, math.nan
    h, low = dd.log(ball[0], ball[1])
    log = (h, low, (ball[2] / least + LOGARITHM * (abs(h) + 1.0) + _TINY) * _UP)
    power = _multiply((0.6931471805599453, 2.3190468138462996e-17, 1e-33), (float(n), 0.0, 0.0))
    return _ends(_add(log, power))


@njit(cache=True, error_model="numpy")
def _epsilon_ends(guess: float, delta: float, pair: Pair, other: Pair, both: bool) -> tuple[float, float]:
    """Floats next to the guess that prove to lie on either side of ε; NaN if they don't."""
    if guess == 0.0:
        decided = _sign(0.0, delta, *pair) < 0 and not (both and _sign(0.0, delta, *other) >= 0)
        return (0.0, 0.0) if decided else (math.nan, math.nan)
    above, below = np.nextafter(guess, np.inf), np.nextafter(guess, -np.inf)
    decided = _sign(above, delta, *pair) < 0 and not (both and _sign(above, delta, *other) >= 0)
    # One direction that exceeds δ is enough.
    decided = decided and (_sign(below, delta, *pair) > 0 or (both and _sign(below, delta, *other) > 0))
    return (below, above) if decided else (math.nan, math.nan)


@njit(cache=True, error_model="numpy")
def epsilons(
    guess: Array,
    delta: Array,
    mu1: Array,
    sigma1: Array,
    mu2: Array,
    sigma2: Array,
    both: bool,
    low: Array,
    high: Array,
) -> None:
    """Fill in floats around each ε, at most 2 ulps apart, from the fast kernel's; NaN where nothing is decided."""
    for i in range(len(guess)):
        pair = _standardise(mu1[i], sigma1[i], mu2[i], sigma2[i])
        other = _standardise(mu2[i], sigma2[i], mu1[i], sigma1[i])
        low[i], high[i] = _epsilon_ends(guess[i], delta[i], pair, other, both and sigma1[i] != sigma2[i])


@njit(cache=True, error_model="numpy")
def _of_noise(sigma: float) -> Pair:
    """Balls of 1/σ and of 0, for the Gaussian mechanism."""
    return _divide((1.0, 0.0, 0.0), (sigma, 0.0, 0.0)), (0.0, 0.0, 0.0)


@njit(cache=True, error_model="numpy")
def _delta_ends_of(epsilon: float, m: Ball, g: Ball, log: bool) -> tuple[float, float]:
    if log:
        return _log_delta_ends(epsilon, m, g)
    return _delta_ends(epsilon, m, g)


@njit(cache=True, error_model="numpy")
def deltas(
    epsilon: Array, mu1: Array, sigma1: Array, mu2: Array, sigma2: Array, both: bool, log: bool, low: Array, high: Array
) -> None:
    """Fill in floats around each δ(ε), or its logarithm; NaN where nothing is decided."""
    for i in range(len(epsilon)):
        low[i], high[i] = _delta_ends_of(epsilon[i], *_standardise(mu1[i], sigma1[i], mu2[i], sigma2[i]), log)
        if both and sigma1[i] != sigma2[i]:
            other = _delta_ends_of(epsilon[i], *_standardise(mu2[i], sigma2[i], mu1[i], sigma1[i]), log)
            low[i] = max(low[i], other[0]) if low[i] == low[i] and other[0] == other[0] else math.nan
            high[i] = max(high[i], other[1]) if high[i] == high[i] and other[1] == other[1] else math.nan


@njit(cache=True, error_model="numpy")
def noise_multipliers(guess: Array, epsilon: Array, delta: Array, low: Array, high: Array) -> None:
    """Fill in floats around each noise multiplier, 2 ulps apart, as ``epsilons`` does."""
    for i in range(len(guess)):
        low[i] = high[i] = math.nan
        below, above = np.nextafter(guess[i], -np.inf), np.nextafter(guess[i], np.inf)
        if not _LEAST < below < _MOST:
            continue
        if _sign(epsilon[i], delta[i], *_of_noise(below)) > 0 and _sign(epsilon[i], delta[i], *_of_noise(above)) < 0:
            low[i], high[i] = below, above


@njit(cache=True, error_model="numpy")
def mechanism_epsilons(guess: Array, delta: Array, sigma: Array, low: Array, high: Array) -> None:
    """Fill in floats around each ε of the Gaussian mechanism, as ``epsilons`` does."""
    for i in range(len(guess)):
        pair = _of_noise(sigma[i])
        low[i], high[i] = _epsilon_ends(guess[i], delta[i], pair, pair, False)


@njit(cache=True, error_model="numpy")
def mechanism_deltas(epsilon: Array, sigma: Array, log: bool, low: Array, high: Array) -> None:
    """Fill in floats around each δ(ε) of the Gaussian mechanism, or its logarithm."""
    for i in range(len(epsilon)):
        low[i], high[i] = _delta_ends_of(epsilon[i], *_of_noise(sigma[i]), log)
