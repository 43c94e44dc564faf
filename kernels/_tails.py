"""The two probabilities that make up the hockey-stick divergence of two Gaussians, over a common factor: Mills ratios.

For P₁ = N(m, s²) and P₂ = N(0, 1) and in P₁'s standard units u, the privacy loss is Z = αu² + msu + m²/2 − log s with
α = (s² − 1)/2. At a root u of Z = ε, p₁ = e^ε·p₂ and q = dZ/du. Every tail of δ = P₁(Z > ε) − e^ε·P₂(Z > ε) is there
φ(u) times ∫ e^(−uv − v²/2)·(1 − e^(−w(v))) dv with w(v) = v(q + αv) ≥ 0. Where the two halves of that integral differ
by a thousandth or more, they are Mills ratios, which as pairs of floats can be subtracted. Elsewhere a Gauss–Legendre
rule sums the positive integrand, and nothing cancels.

All numbers but those of that rule are pairs: h stands before l, as in ``_double_double``.
"""

import math

import numpy as np

from canaryproof.kernels import _double_double as dd
from canaryproof.kernels._compiled import njit

_SQRT_TWO_PI = (2.5066282746310007, -1.8328579980459167e-16)
# Chebyshev coefficients of (x + 5/4)·M(x) in t = (x − 4)/(x + 4), which maps [0, ∞) to [−1, 1). The second list has the
# rounding errors of the first seven as floats. The next coefficient is 3.3e-23. The tests compute them again from
# 60-digit values.
CHEBYSHEV = np.array(
    [
        1.2725115262071467,
        -0.3046224932023002,
        0.020743800751366576,
        0.018900314056009556,
        -0.009647902886839274,
        0.0024131767948044865,
        -0.00029537624309189863,
        -1.1787649890512378e-05,
        9.541330920150613e-06,
        -5.770599592496592e-07,
        -2.614068425663512e-07,
        3.252354223857277e-08,
        8.391779373866574e-09,
        -1.3316974227565597e-09,
        -3.3760223072356855e-10,
        4.8730203335752976e-11,
        1.6141739645272252e-11,
        -1.440864432732929e-12,
        -8.309523757523984e-13,
        1.1264569276406513e-14,
        4.188887433776862e-14,
        3.2205895880141987e-15,
        -1.861657278268525e-15,
        -3.7648352578267714e-16,
        5.743245886102456e-17,
        2.842710295128663e-17,
        5.521910634962067e-19,
        -1.58633290074368e-18,
        -2.72206016418744e-19,
        5.363408117907292e-20,
        2.5755409341818846e-20,
        1.0403386820459698e-21,
        -1.4696650953504986e-21,
        -3.3981841933182346e-22,
    ]
)
CHEBYSHEV_LOW = np.array(
    [
        -4.0227685981038293e-17,
        -1.826071993645225e-18,
        9.409853908082701e-19,
        2.67746389006407e-19,
        1.0503748550086895e-19,
        9.033921203597525e-20,
        1.863336510503336e-21,
    ]
)


@njit(cache=True, error_model="numpy")
def mills_ratio(xh: float, xl: float) -> tuple[float, float]:
    """Return P(X > x) / φ(x) of a standard normal X for x > −37 (below, it overflows), relative error below 1e-19."""
    yh, yl = (xh, xl) if xh >= 0.0 else (-xh, -xl)
    th, tl = dd.divide(*dd.add(yh, yl, -4.0, 0.0), *dd.add(yh, yl, 4.0, 0.0))
    t = 2.0 * th
    b1, b2 = 0.0, 0.0
    for n in range(CHEBYSHEV.size - 1, CHEBYSHEV_LOW.size - 1, -1):
        b1, b2 = CHEBYSHEV[n] + (t * b1 - b2), b1
    first, second = (b1, 0.0), (b2, 0.0)
    # The rounding of the others is at most 1e-21; that of these would show.
    for n in range(CHEBYSHEV_LOW.size - 1, 0, -1):
        product = dd.multiply(2.0 * th, 2.0 * tl, *first)
        first, second = dd.add(*dd.subtract(*product, *second), CHEBYSHEV[n], CHEBYSHEV_LOW[n]), first
    product = dd.subtract(*dd.multiply(th, tl, *first), *second)
    product = dd.add(*product, CHEBYSHEV[0], CHEBYSHEV_LOW[0])
    value = dd.divide(*product, *dd.add(yh, yl, 1.25, 0.0))
    if xh >= 0.0:
        return value
    whole = dd.multiply(*_SQRT_TWO_PI, *dd.exp(*dd.multiply(0.5 * xh, 0.5 * xl, xh, xl)))
    return dd.subtract(*whole, *value)


Pair = tuple[float, float]

_INVERSE_SQRT_TWO_PI = (0.3989422804014327, -2.49232720227773e-17)
# Where the halves are closer than this, the difference of two pairs would have lost the digits of one float.
_CLOSE = 0.999
# First half of the Gauss–Legendre rule of 32 nodes on (0, 1). Over the reach of the weight (exponent up to 46) it errs
# by less than 1e-17. numpy's weights are off by 6e-14, and the tests compute these again.
_HALF_NODES = np.array(
    [
        0.0013680690752592183,
        0.007194244227365833,
        0.017618872206246784,
        0.03254696203113015,
        0.05183942211697394,
        0.07531619313371501,
        0.1027581020160288,
        0.13390894062985517,
        0.1684778665348924,
        0.20614212137961885,
        0.2465500455338853,
        0.2893243619346823,
        0.33406569885893617,
        0.38035631887393145,
        0.42776401920860174,
        0.4758461671561308,
    ]
)
_HALF_WEIGHTS = np.array(
    [
        0.003509305004735048,
        0.008137197365452835,
        0.01269603265463103,
        0.017136931456510716,
        0.02141794901111334,
        0.025499029631188087,
        0.029342046739267772,
        0.032911111388180925,
        0.03617289705442425,
        0.039096947893535156,
        0.041655962113473374,
        0.043826046502201906,
        0.045586939347881945,
        0.04692219954040228,
        0.04781936003963743,
        0.0482700442573639,
    ]
)
NODES = np.concatenate([_HALF_NODES, 1.0 - _HALF_NODES[::-1]])
WEIGHTS = np.concatenate([_HALF_WEIGHTS, _HALF_WEIGHTS[::-1]])


@njit(cache=True, error_model="numpy")
def _integrals(x: float, q: float, alpha: float, end: float) -> tuple[Pair, Pair]:
    """Integrals over 0 < v < end of e^(−xv − v²/2)·(1 − e^(−w)) and of e^(−xv − v²/2 − w), w = v(q + αv)."""
    root = math.sqrt(x * x + 92.0)
    reach = 92.0 / (x + root) if x > 0.0 else root - x
    end = min(end, reach)
    excess, rest = (0.0, 0.0), (0.0, 0.0)
    for i in range(NODES.size):
        v = end * NODES[i]
        w = v * (q + alpha * v)
        weight = WEIGHTS[i] * math.exp(-v * (x + 0.5 * v))
        gain = -math.expm1(-w)
        # In pairs: the roundings of 31 sums would show.
        excess = dd.add(*excess, weight * gain, 0.0)
        rest = dd.add(*rest, weight * (1.0 - gain), 0.0)
    return (end * excess[0], 0.0), (end * rest[0], 0.0)


@njit(cache=True, error_model="numpy")
def _half_line(x: Pair, q: Pair, alpha: float, s: Pair) -> tuple[Pair, Pair]:
    """Both integrals over 0 < v < ∞, for α ≥ 0."""
    first = mills_ratio(*x)
    second = dd.divide(*mills_ratio(*dd.divide(*dd.add(*x, *q), *s)), *s)
    if second[0] <= _CLOSE * first[0]:
        return dd.subtract(*first, *second), second
    return _integrals(x[0], q[0], alpha, math.inf)


@njit(cache=True, error_model="numpy")
def _power_series(y: Pair, length: Pair) -> Pair:
    """Integral of e^(−yv − v²/2) over 0 < v < length, where length ≤ 1 and the exponent is at most 1."""
    # The integrand is Σ cₙ(v/length)ⁿ with (n + 1)cₙ₊₁ = −(y·length·cₙ + length²·cₙ₋₁), |y·length| ≤ 3/2.
    slope, square = dd.multiply(*y, -length[0], -length[1]), dd.multiply(*length, -length[0], -length[1])
    before, last, total = (0.0, 0.0), (1.0, 0.0), (1.0, 0.0)
    for n in range(1, 40):
        h, low = dd.add(*dd.multiply(*slope, *last), *dd.multiply(*square, *before))
        before, last = last, dd.divide(h, low, n, 0.0)
        total = dd.add(*total, *dd.divide(*last, n + 1.0, 0.0))
    return dd.multiply(*length, *total)


@njit(cache=True, error_model="numpy")
def _truncated_integral(y: Pair, length: Pair) -> Pair:
    """Integral of e^(−yv − v²/2) over 0 < v < length."""
    h, low = dd.multiply(*length, *dd.add(*y, 0.5 * length[0], 0.5 * length[1]))
    if length[0] <= 1.0 and abs(h) <= 1.0:
        return _power_series(y, length)
    if h < 0.0:
        # The other end has the larger integrand: begin there.
        end = dd.add(*y, *length)
        return dd.multiply(*dd.exp(-h, -low), *_from_larger_end((-end[0], -end[1]), length, -h, -low))
    return _from_larger_end(y, length, h, low)


@njit(cache=True, error_model="numpy")
def _from_larger_end(y: Pair, length: Pair, h: float, low: float) -> Pair:
    whole = mills_ratio(*y)
    if h > 100.0:
        return whole
    return dd.subtract(*whole, *dd.multiply(*dd.exp(-h, -low), *mills_ratio(*dd.add(*y, *length))))


@njit(cache=True, error_model="numpy")
def _interval(x: Pair, q: Pair, alpha: float, s: Pair, length: Pair) -> tuple[Pair, Pair]:
    """Both integrals over 0 < v < length = −q/α, for α < 0; w = 0 at both ends."""
    first = _truncated_integral(x, length)
    second = dd.divide(*_truncated_integral(dd.divide(*dd.add(*x, *q), *s), dd.multiply(*s, *length)), *s)
    if second[0] <= _CLOSE * first[0]:
        return dd.subtract(*first, *second), second
    return _integrals(x[0], q[0], alpha, length[0])


@njit(cache=True, error_model="numpy")
def tails(u: Pair, q: Pair, alpha: Pair, m: Pair, s: Pair) -> tuple[Pair, Pair]:
    """Return δ and e^ε·P₂(Z > ε), both divided by φ(u), for the near root u > −37 of ε ≥ 0, where dZ/du = q."""
    if alpha[0] == 0.0:
        return _half_line(u, q, 0.0, (1.0, 0.0))
    if alpha[0] < 0.0:
        return _interval(u, q, alpha[0], s, dd.divide(*q, -alpha[0], -alpha[1]))
    excess, rest = _half_line(u, q, alpha[0], s)
    # The far root lies at −(u + ms/α); its tail is the near one's with this factor and starting point.
    shift = dd.divide(*dd.multiply(*m, *s), *alpha)
    damping = dd.divide(*dd.multiply(0.5 * shift[0], 0.5 * shift[1], *q), *alpha)
    if damping[0] < 50.0:
        far_excess, far_rest = _half_line(dd.add(*u, *shift), q, alpha[0], s)
        factor = dd.exp(-damping[0], -damping[1])
        excess = dd.add(*excess, *dd.multiply(*factor, *far_excess))
        rest = dd.add(*rest, *dd.multiply(*factor, *far_rest))
    return excess, rest


@njit(cache=True, error_model="numpy")
def outside(u: Pair, q: Pair, alpha: Pair, m: Pair, s: Pair) -> Pair:
    """Return P₁(Z ≤ ε), divided by φ(u), for the near root u < 37."""
    beyond = (-u[0], -u[1])
    if alpha[0] == 0.0:
        return mills_ratio(*beyond)
    if alpha[0] > 0.0:
        # Between the roots.
        length = dd.add(*dd.divide(*dd.multiply(*m, *s), *alpha), 2.0 * u[0], 2.0 * u[1])
        return _truncated_integral(beyond, length)
    length = dd.divide(*q, -alpha[0], -alpha[1])
    h, low = dd.multiply(*length, *dd.add(*u, 0.5 * length[0], 0.5 * length[1]))
    near = mills_ratio(*beyond)
    if h > 100.0:
        return near
    return dd.add(*near, *dd.multiply(*dd.exp(-h, -low), *mills_ratio(*dd.add(*u, *length))))


@njit(cache=True, error_model="numpy")
def scaled_density(u: Pair, value: Pair) -> tuple[float, float, int]:
    """Return h, l, n with φ(u)·value = (h + l)·2ⁿ."""
    square = dd.multiply(*u, -0.5 * u[0], -0.5 * u[1])
    h, low, n = dd.exp_parts(*square)
    h, low = dd.multiply(*dd.multiply(h, low, *_INVERSE_SQRT_TWO_PI), *value)
    return h, low, n
