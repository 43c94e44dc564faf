"""Sums and products of pairs of floats, for the few places where one float's rounding would show in the result.

A pair (h, l) stands for h + l with |l| at most half an ulp of h. Error-free transformations: Dekker, Numerische
Mathematik 18 (1971), and Knuth, TAOCP 2, section 4.2.2. They hold because numba neither reorders nor contracts float
operations without ``fastmath``, which none of the functions here has.
"""

import math
from fractions import Fraction

import numpy as np

from canaryproof.kernels._compiled import njit

_SPLITTER = 134217729.0  # 2**27 + 1
_LN2_HIGH, _LN2_LOW = 0.6931471805599453, 2.3190468138462996e-17
_SQRT_HALF = math.sqrt(0.5)
# 1/1, 1/3, 1/5, … as pairs.
_ODD_HIGH = np.array([1.0 / n for n in range(1, 41, 2)])
_ODD_LOW = np.array([float(Fraction(1, n) - Fraction(1.0 / n)) for n in range(1, 41, 2)])


@njit(cache=True, error_model="numpy")
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b exactly, as a pair."""
    h = a + b
    t = h - a
    return h, (a - (h - t)) + (b - t)


@njit(cache=True, error_model="numpy")
def two_product(a: float, b: float) -> tuple[float, float]:
    """Return a × b exactly, as a pair, while no intermediate overflows (|a|, |b| < 1e300)."""
    h = a * b
    t = _SPLITTER * a
    a_high = t - (t - a)
    t = _SPLITTER * b
    b_high = t - (t - b)
    a_low = a - a_high
    b_low = b - b_high
    return h, ((a_high * b_high - h) + a_high * b_low + a_low * b_high) + a_low * b_low


@njit(cache=True, error_model="numpy")
def add(ah: float, al: float, bh: float, bl: float) -> tuple[float, float]:
    """Sum of two pairs, relative error below 4e-32 of the larger operand even where they cancel."""
    sh, sl = two_sum(ah, bh)
    th, tl = two_sum(al, bl)
    sh, sl = two_sum(sh, sl + th)
    return two_sum(sh, sl + tl)


@njit(cache=True, error_model="numpy")
def multiply(ah: float, al: float, bh: float, bl: float) -> tuple[float, float]:
    """Product of two pairs."""
    h, low = two_product(ah, bh)
    return two_sum(h, low + (ah * bl + al * bh))


@njit(cache=True, error_model="numpy")
def divide(ah: float, al: float, bh: float, bl: float) -> tuple[float, float]:
    """Quotient of two pairs."""
    q = ah / bh
    ph, pl = multiply(q, 0.0, bh, bl)
    rh, rl = add(ah, al, -ph, -pl)
    return two_sum(q, (rh + rl) / bh)


@njit(cache=True, error_model="numpy")
def subtract(ah: float, al: float, bh: float, bl: float) -> tuple[float, float]:
    """Difference of two pairs, as ``add``."""
    return add(ah, al, -bh, -bl)


@njit(cache=True, error_model="numpy")
def square_root(ah: float, al: float) -> tuple[float, float]:
    """Square root of a pair that is not negative."""
    if ah <= 0.0:
        return 0.0, 0.0
    r = math.sqrt(ah)
    ph, pl = two_product(r, r)
    rh, rl = add(ah, al, -ph, -pl)
    return two_sum(r, (rh + rl) / (2.0 * r))


@njit(cache=True, error_model="numpy")
def _two_atanh(fh: float, fl: float) -> tuple[float, float]:
    """Return 2 atanh(f) for |f| < 0.172, relative error below 1e-30."""
    sh, sl = multiply(fh, fl, fh, fl)
    # f² < 0.03: twenty terms reach 1e-32, and ten do where f² < 1e-3; the later half of them needs no pairs.
    half = _ODD_HIGH.size // 4 if sh < 1e-3 else _ODD_HIGH.size // 2
    tail = 0.0
    for n in range(2 * half - 1, half - 1, -1):
        tail = tail * sh + _ODD_HIGH[n]
    ph, pl = tail, 0.0
    for n in range(half - 1, -1, -1):
        ph, pl = multiply(ph, pl, sh, sl)
        ph, pl = add(ph, pl, _ODD_HIGH[n], _ODD_LOW[n])
    return multiply(ph, pl, 2.0 * fh, 2.0 * fl)


@njit(cache=True, error_model="numpy")
def log(ah: float, al: float) -> tuple[float, float]:
    """Natural logarithm of a positive pair."""
    mantissa, exponent = math.frexp(ah)
    if mantissa < _SQRT_HALF:
        mantissa *= 2.0
        exponent -= 1
    low = math.ldexp(al, -exponent)
    fh, fl = divide(*add(mantissa, low, -1.0, 0.0), *add(mantissa, low, 1.0, 0.0))
    fh, fl = _two_atanh(fh, fl)
    eh, el = multiply(_LN2_HIGH, _LN2_LOW, float(exponent), 0.0)
    return add(eh, el, fh, fl)


@njit(cache=True, error_model="numpy")
def log1p(ah: float, al: float) -> tuple[float, float]:
    """Natural logarithm of 1 + a for a pair a > -1, with full relative accuracy for small a."""
    if abs(ah) < 0.25:
        return _two_atanh(*divide(ah, al, *add(2.0, 0.0, ah, al)))
    return log(*add(1.0, 0.0, ah, al))


@njit(cache=True, error_model="numpy")
def exp_parts(ah: float, al: float) -> tuple[float, float, int]:
    """Return h, l, n with exp(a) = (h + l)·2ⁿ and h near 1, relative error below 1e-20, for |a| < 1e9."""
    n = math.floor(ah / _LN2_HIGH + 0.5)
    # The rest is divided by 32, and the exponential of that, less 1, squared five times.
    rh, rl = subtract(ah, al, *multiply(_LN2_HIGH, _LN2_LOW, n, 0.0))
    rh, rl = rh / 32.0, rl / 32.0
    # |r| < 0.011: eight terms reach 1e-22, of which those from the third on need no pairs.
    tail = 0.0
    for k in range(8, 2, -1):
        tail = (tail * rh + 1.0) / k
    tail *= 0.5 * rh * rh * rh
    sh, sl = multiply(rh, rl, 0.5 * rh, 0.5 * rl)
    eh, el = add(rh, rl, *add(sh, sl, tail, 0.0))
    for _ in range(5):
        eh, el = add(2.0 * eh, 2.0 * el, *multiply(eh, el, eh, el))
    eh, el = add(1.0, 0.0, eh, el)
    return eh, el, int(n)


@njit(cache=True, error_model="numpy")
def exp(ah: float, al: float) -> tuple[float, float]:
    """Exponential of a pair, |a| < 690, relative error below 1e-20."""
    h, low, n = exp_parts(ah, al)
    return math.ldexp(h, n), math.ldexp(low, n)
