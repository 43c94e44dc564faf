"""Privacy curve of a pair of Gaussians: Andrew et al. (arXiv 2302.03098), Section 3.2.

For P₁ = N(μ₁, σ₁²) and P₂ = N(μ₂, σ₂²) the hockey-stick divergence is δ(ε) = P₁(Z > ε) − e^ε·P₂(Z > ε) with the
privacy loss Z = log p₁/p₂, a parabola. The paper solves the quadratic by its textbook formula and subtracts two
probabilities; both steps lose digits to cancellation. Here:

* After a shift, a scaling and a reflection, P₂ = N(0, 1) and P₁ = N(m, s²) with m ≥ 0; s − 1 is formed before it is
  rounded. In P₁'s own standard units u, Z = αu² + mu·s + m²/2 − log s with α = (s² − 1)/2.
* The root u nearer to P₁'s centre is taken without cancellation, and the two probabilities as ``_tails`` says.
* ε(δ) is found as a function of u, on which log δ depends almost quadratically, by Newton's method: in plain floats
  first.
* Apart from those first steps, this is in pairs of floats, so that the condition of the intermediate steps does not
  show in the result.

Domain: standardised distance m = 0 or from 1e-290 to 1e14, deviation ratio s from 1e-10 to 1e10, 0 ≤ ε ≤ 1e28, δ < 1
and not subnormal. Budget: 64 ulps of the exact result at the given floats, 8 in practice (δ ≥ 1e-12, 0.1 ≤ ε ≤ 50, s
from 1/2 to 2). Where ε or log δ is below 0.1, an absolute 1e-15 is added. Worst by search: 2 ulps in practice, 10
anywhere. The budgets in practice are *proven* (``proofs_check/rounding/budgets.csv``), those anywhere *searched*, at
20,000 draws and as many steps a function. ``epsilon`` is NaN where its iteration does not end, which no search has met.
The enclosures of ``certified.two_gaussians`` are proven.

For example:

>>> import canaryproof as cp
>>> print(f"{cp.two_gaussians.epsilon(1e-6, 0.0, 1.0, 0.65, 1.0):.4f}")
3.0117
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels import _double_double as dd
from canaryproof.kernels._compiled import evaluate, njit
from canaryproof.kernels._tails import Pair, mills_ratio, outside, scaled_density, tails
from canaryproof.kernels.arguments import checked_reals
from canaryproof.kernels.arrays import Array

Direction = Literal["forward", "reverse", "both"]

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Bounds of the domain.
LARGEST_RATIO = 1e10
LARGEST_DISTANCE = 1e14
SMALLEST_DISTANCE = 1e-290
LARGEST_EPSILON = 1e28
SMALLEST_DELTA = 2.0**-1022
# Stands for infinity where infinity times zero must not arise.
_FAR = 1e200
# Closer to its largest value than this, in units of 1 + |u|, the loss is known by the distance to its maximum.
_NEAR_LARGEST = 1e-7
# Largest step that is accepted as the last one to a root, in units of its scale. The result's error follows from this.
_LAST_STEP = 1e-11
# Where two probabilities differ by less than this share of one, plain floats are no start.
_ROUGH = 1e-5
_ROOT_HALF, _ROOT_HALF_PI = math.sqrt(0.5), math.sqrt(0.5 * math.pi)


@njit(cache=True, error_model="numpy")
def log_delta_at_root(u: Pair, q: Pair, alpha: Pair, m: Pair, s: Pair) -> float:
    """Log δ for the near root u of Z = ε, where dZ/du = q."""
    if u[0] >= 1.0:
        h, low = dd.multiply(*u, -0.5 * u[0], -0.5 * u[1])
        if alpha[0] == 0.0 and u[0] > 1e9 and q[0] < 1e-17 * u[0]:
            # The integral is q/u² to all digits, and might underflow.
            return h + (low - _HALF_LOG_TWO_PI + math.log(q[0]) - 2.0 * math.log(u[0]))
        excess = tails(u, q, alpha, m, s)[0][0]
        return h + (low - _HALF_LOG_TWO_PI + math.log(excess)) if excess > 0.0 else -math.inf
    delta, complement = probabilities_at_root(u, q, alpha, m, s)
    if complement < 0.5:
        return math.log1p(-complement)
    return math.log(delta) if delta > 0.0 else -math.inf


@njit(cache=True, error_model="numpy")
def probabilities_at_root(u: Pair, q: Pair, alpha: Pair, m: Pair, s: Pair) -> tuple[float, float]:
    """Return δ and 1 − δ for the near root u < 39 of Z = ε, where dZ/du = q."""
    if u[0] <= -39.0:
        # φ(u) underflows.
        return 1.0, 0.0
    if u[0] <= -30.0:
        # P₁(Z > ε) is 1 to all digits, and e^ε·P₂(Z > ε) is one tail.
        rest = dd.divide(*mills_ratio(*dd.add(*m, *dd.multiply(*s, *u))), *s)
    else:
        excess, rest = tails(u, q, alpha, m, s)
        h, _, n = scaled_density(u, excess)
        delta = math.ldexp(h, n)
        if delta <= 0.5:
            return delta, 1.0 - delta
    h, _, n = scaled_density(u, dd.add(*outside(u, q, alpha, m, s), *rest))
    complement = math.ldexp(h, n)
    return 1.0 - complement, complement


@njit(cache=True, error_model="numpy")
def _standardise(mu1: float, sigma1: float, mu2: float, sigma2: float) -> tuple[Pair, Pair]:
    """Return m = |μ₁ − μ₂|/σ₂ and g = σ₁/σ₂ − 1."""
    # Scaling by a power of two is exact, and keeps products of pairs from overflowing.
    unit, exponent = math.frexp(sigma2)
    dh, dl = dd.two_sum(mu1, -mu2)
    sign = -1.0 if dh < 0.0 else 1.0
    distance = dd.divide(math.ldexp(sign * dh, -exponent), math.ldexp(sign * dl, -exponent), unit, 0.0)
    return distance, dd.divide(*dd.two_sum(math.ldexp(sigma1, -exponent), -unit), unit, 0.0)


@njit(cache=True, error_model="numpy")
def _loss_parabola(m: Pair, g: Pair) -> tuple[Pair, Pair, Pair, Pair, Pair]:
    """Return α, ms, m²/2, log s and s = 1 + g."""
    s = dd.add(1.0, 0.0, *g)
    alpha = dd.multiply(*g, *dd.add(1.0, 0.0, 0.5 * g[0], 0.5 * g[1]))
    return alpha, dd.multiply(*m, *s), dd.multiply(*m, 0.5 * m[0], 0.5 * m[1]), dd.log1p(*g), s


@njit(cache=True, error_model="numpy")
def _near_root(epsilon: float, alpha: Pair, slope: Pair, half_square: Pair, log_s: Pair) -> tuple[Pair, Pair]:
    """Return the near root u of Z = ε and dZ/du there, which is 0 if there is none."""
    # All in pairs: u multiplies into u²/2, and q² cancels where ε nears its maximum for s < 1.
    total = dd.add(epsilon, 0.0, *log_s)
    product = dd.multiply(4.0 * alpha[0], 4.0 * alpha[1], *total)
    q = dd.square_root(*dd.add(2.0 * half_square[0], 2.0 * half_square[1], *product))
    h, low = dd.subtract(*total, *half_square)
    return dd.divide(2.0 * h, 2.0 * low, *dd.add(*slope, *q)), q


@njit(cache=True, error_model="numpy")
def _root(epsilon: float, m: Pair, g: Pair) -> tuple[Pair, Pair, Pair, Pair, Pair, Pair]:
    """Return the near root u of Z = ε, dZ/du there, which is 0 if there is none, α, ms, log s and s."""
    alpha, slope, half_square, log_s, s = _loss_parabola(m, g)
    if g[0] == 0.0:
        # No squares: they would underflow for minute m.
        u, q = dd.subtract(*dd.divide(epsilon, 0.0, *m), 0.5 * m[0], 0.5 * m[1]), m
    else:
        u, q = _near_root(epsilon, alpha, slope, half_square, log_s)
    return u, q, alpha, slope, log_s, s


@njit(cache=True, error_model="numpy")
def _log_delta(epsilon: float, m: Pair, g: Pair) -> float:
    u, q, alpha, _, _, s = _root(epsilon, m, g)
    return log_delta_at_root(u, q, alpha, m, s) if q[0] > 0.0 else -math.inf


@njit(cache=True, error_model="numpy")
def relative_excess(u: Pair, value: Pair, target: float) -> float:
    """Log of φ(u)·value over ``target``."""
    h, low, n = scaled_density(u, value)
    mantissa, exponent = math.frexp(target)
    if abs(math.ldexp(h, n - exponent) - mantissa) > 0.01 * mantissa:
        return math.log(h / mantissa) + (n - exponent) * math.log(2.0)
    scale = math.ldexp(1.0, n - exponent)
    difference = dd.add(scale * h, scale * low, -mantissa, 0.0)
    return math.log1p(difference[0] / mantissa)


@njit(cache=True, error_model="numpy")
def _is_delta_above(delta: float, u: Pair, q: Pair, alpha: Pair, m: Pair, s: Pair) -> bool:
    """Whether δ at the near root u of Z = ε, where dZ/du = q, is above ``delta``."""
    # Beyond these roots δ is above all floats below 1, or below all that are normal.
    if not (q[0] > 0.0 and u[0] < 39.0):
        return False
    if u[0] <= -30.0:
        return True
    # Where they are next to each other, logarithms in one float would not tell which is larger.
    excess, rest = tails(u, q, alpha, m, s)
    if delta <= 0.5:
        return relative_excess(u, excess, delta) > 0.0
    return relative_excess(u, dd.add(*outside(u, q, alpha, m, s), *rest), 1.0 - delta) < 0.0


@njit(cache=True, error_model="numpy")
def _rough_mills_ratio(x: float) -> float:
    """P(X > x) / φ(x) to seven digits."""
    if x > 25.0:
        square = 1.0 / (x * x)
        return (1.0 - square * (1.0 - 3.0 * square)) / x
    return _ROOT_HALF_PI * math.exp(0.5 * x * x) * math.erfc(x * _ROOT_HALF)


@njit(cache=True, error_model="numpy")
def _rough_root(log_delta: float, u: float, alpha: float, m: float, s: float) -> float:
    """Go down from u to the near root for α ≥ 0, in plain floats; NaN if it is not found."""
    shift = m * s / alpha if alpha > 0.0 else math.inf
    for _ in range(10):
        q = 2.0 * alpha * u + m * s
        first, rest = _rough_mills_ratio(u), _rough_mills_ratio((u + q) / s) / s
        excess = first - rest
        if not excess > _ROUGH * first:
            break
        damping = shift * (u + 0.5 * shift)
        if damping < 30.0:
            # As in ``tails``.
            far = math.exp(-damping) * _rough_mills_ratio((u + shift + q) / s) / s
            excess += math.exp(-damping) * _rough_mills_ratio(u + shift) - far
            rest += far
        step = (math.log(excess) - 0.5 * u * u - _HALF_LOG_TWO_PI - log_delta) * excess / (rest * q)
        u += step
        if abs(step) <= 1e-9 * (1.0 + abs(u)):
            return u
    return math.nan


@njit(cache=True, error_model="numpy")
def solve_epsilon(delta: float, m: Pair, g: Pair) -> float:
    """Return the least ε ≥ 0 at which δ of N(m, s²) from N(0, 1), s = 1 + g, is at most ``delta``."""
    log_delta = math.log(delta) if delta < 0.5 else math.log1p(delta - 1.0)
    root, q, alpha, slope, log_s, s = _root(0.0, m, g)
    if not _is_delta_above(delta, root, q, alpha, m, s):
        return 0.0
    # For s < 1 the loss is largest at the distance ``left`` above u, and the root lies before it.
    left = -0.5 * q[0] / alpha[0] if alpha[0] < 0.0 else _FAR
    # δ ≤ 2·P(X > u) ≤ exp(−u²/2) bounds the root from above. From there Newton descends on a concave function.
    # δ, a float below 1, bounds it from below: P(X ≤ −9) is under 2e-19.
    low = max(root[0], -9.0)
    left -= low - root[0]
    high = max(math.sqrt(-2.0 * log_delta), low)
    move = high - low
    if move >= left:
        high, move = _FAR, 0.5 * left
    elif alpha[0] >= 0.0 and delta <= 0.5:
        # In plain floats a step takes a tenth of the time, and one of those below is left.
        begun = _rough_root(log_delta, high, alpha[0], m[0], s[0])
        if low < begun < high:
            move = begun - low
    # A pair, because for large s all of Z ≤ ε may lie between neighbouring floats.
    u = dd.two_sum(low, move)
    left -= move
    correction = 0.0
    for _ in range(100):
        if left > _NEAR_LARGEST * (1.0 + abs(u[0])):
            q = dd.add(*dd.multiply(2.0 * alpha[0], 2.0 * alpha[1], *u), *slope)
        else:
            q = -2.0 * alpha[0] * left, 0.0
        excess, rest = tails(u, q, alpha, m, s)
        scale = min(1.0 + abs(u[0]), left)
        if delta <= 0.5:
            correction = relative_excess(u, excess, delta) * (excess[0] / rest[0])
        else:
            # 1 − δ has the digits.
            total = dd.add(*outside(u, q, alpha, m, s), *rest)
            correction = -relative_excess(u, total, 1.0 - delta) * (total[0] / rest[0])
            scale = min(scale, total[0])
        step = correction / q[0]
        if abs(step) <= _LAST_STEP * scale:
            break
        if step > 0.0:
            low = u[0]
        else:
            high = u[0]
        # A Newton step in log(left) cannot pass the maximum, and far from there it is a plain step in u.
        ratio = min(max(step / left, -3.0), 3.0)
        move = -left * math.expm1(-ratio)
        # Not strictly: where the bracket's ends are neighbours the low part of u still moves.
        if low <= u[0] + move <= high:
            left *= math.exp(-ratio)
        else:
            move = min((0.5 * (low + high) - u[0]) - u[1], 0.5 * left)
            left -= move
        u = dd.add(*u, move, 0.0)
    else:
        # No number without a last step that was accepted: its error is what is proven.
        return math.nan
    # The loss at u, log s less than (x² − u²)/2 for P₂'s coordinate x = m + su, and what the last step adds.
    difference = dd.add(*m, *dd.multiply(*g, *u))
    loss = dd.multiply(*difference, *dd.add(*u, 0.5 * difference[0], 0.5 * difference[1]))
    loss = dd.subtract(*loss, *log_s)
    return max(dd.add(*loss, correction, 0.0)[0], 0.0)


@njit(cache=True, error_model="numpy")
def _log_deltas(epsilon: Array, mu1: Array, sigma1: Array, mu2: Array, sigma2: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _log_delta(epsilon[i], *_standardise(mu1[i], sigma1[i], mu2[i], sigma2[i]))


@njit(cache=True, error_model="numpy")
def _epsilons(delta: Array, mu1: Array, sigma1: Array, mu2: Array, sigma2: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = solve_epsilon(delta[i], *_standardise(mu1[i], sigma1[i], mu2[i], sigma2[i]))


@njit(cache=True, error_model="numpy")
def _larger_epsilon_at(delta: float, mu1: float, sigma1: float, mu2: float, sigma2: float) -> float:
    # The wider Gaussian's divergence is nearly always the larger, so that the other only needs to be looked at.
    if sigma1 < sigma2:
        mu1, sigma1, mu2, sigma2 = mu2, sigma2, mu1, sigma1
    first = solve_epsilon(delta, *_standardise(mu1, sigma1, mu2, sigma2))
    if sigma1 == sigma2:
        return first
    other = _standardise(mu2, sigma2, mu1, sigma1)
    u, q, alpha, _, _, s = _root(first, *other)
    if not _is_delta_above(delta, u, q, alpha, other[0], s):
        return first
    return max(first, solve_epsilon(delta, *other))


@njit(cache=True, error_model="numpy")
def _larger_epsilons(delta: Array, mu1: Array, sigma1: Array, mu2: Array, sigma2: Array, result: Array) -> None:
    for i in range(result.size):
        result[i] = _larger_epsilon_at(delta[i], mu1[i], sigma1[i], mu2[i], sigma2[i])


def check_arguments(
    mu1: ArrayLike, sigma1: ArrayLike, mu2: ArrayLike, sigma2: ArrayLike, direction: str
) -> tuple[NDArray[np.float64], ...]:
    """Return means and deviations as arrays; a ValueError if they lie outside the domain."""
    arrays = tuple(map(checked_reals, ("mu1", "sigma1", "mu2", "sigma2"), (mu1, sigma1, mu2, sigma2)))
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
        # Below, m is no normal float, and might be taken for 0.
        if not np.all((m1 == m2) | (distance >= SMALLEST_DISTANCE * np.maximum(s1, s2))):
            raise ValueError(f"|mu1 − mu2| must be 0 or at least {SMALLEST_DISTANCE:g} standard deviations")
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
    m1, s1, m2, s2 = check_arguments(mu1, sigma1, mu2, sigma2, direction)
    eps = checked_reals("epsilon", epsilon)
    if not np.all((eps >= 0.0) & (eps <= LARGEST_EPSILON)):
        raise ValueError(f"epsilon must lie between 0 and {LARGEST_EPSILON:g}")
    if direction == "forward":
        return evaluate(_log_deltas, eps, m1, s1, m2, s2)
    if direction == "reverse":
        return evaluate(_log_deltas, eps, m2, s2, m1, s1)
    return np.maximum(evaluate(_log_deltas, eps, m1, s1, m2, s2), evaluate(_log_deltas, eps, m2, s2, m1, s1))


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
    m1, s1, m2, s2 = check_arguments(mu1, sigma1, mu2, sigma2, direction)
    d = checked_reals("delta", delta)
    if not np.all((d >= SMALLEST_DELTA) & (d < 1.0)):
        raise ValueError(f"delta must lie between {SMALLEST_DELTA:g} and 1, 1 excluded")
    if direction == "forward":
        return evaluate(_epsilons, d, m1, s1, m2, s2)
    if direction == "reverse":
        return evaluate(_epsilons, d, m2, s2, m1, s1)
    return evaluate(_larger_epsilons, d, m1, s1, m2, s2)
