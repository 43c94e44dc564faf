"""Proven enclosures: exact arguments, the precision ladder, outward rounding and certified bisection.

A ball of flint's ``arb`` (Johansson 2017, "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic")
contains the exact result of every operation at whatever precision it was computed. Containment here therefore rests
on flint alone; the precision decides only how tight an enclosure is.
"""

import math
import operator
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

import flint
import numpy as np
from flint import arb, fmpq
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.public import set_module

T = TypeVar("T")
Number: TypeAlias = float | int | Fraction

# Bits. 2,200 of them separate any two floats from each other and from 1. The last steps of the ladder are for
# Fractions, and for results that are floats or zero exactly, which no precision can separate from their neighbours.
PRECISIONS = (128, 256, 512, 1024, 2048, 4096, 8192)
# An enclosure of 2 ulps with this many correct bits straddles a float that is the result or all but the result.
_SURELY_A_FLOAT = 120
_ATTEMPTS = 200

_lock = threading.RLock()


class Disturbed(Exception):  # noqa: N818
    """Somebody else changed the precision in the middle of a computation that would now never end."""


def at_precision(prec: int, compute: Callable[[], T]) -> T:
    """Return ``compute()`` with flint's precision at ``prec`` bits, whatever it was and will be for others.

    The precision is global to the process. The lock keeps our own threads apart; code of others that changes the
    precision meanwhile is noticed afterwards, and the computation made again. (Another thread that changes it and puts
    it back escapes notice; it can widen a ball, but no ball loses its value.)

    Raises
    ------
    RuntimeError
        If the precision was changed from elsewhere at each of 200 attempts.
    """
    with _lock:
        for _ in range(_ATTEMPTS):
            before = flint.ctx.prec
            flint.ctx.prec = prec
            result: T | None = None
            try:
                result = compute()
            except Disturbed:
                undisturbed = False
            else:
                undisturbed = flint.ctx.prec == prec
            finally:
                # A precision that somebody else chose meanwhile stays.
                if flint.ctx.prec == prec:
                    flint.ctx.prec = before
            if undisturbed:
                return cast("T", result)
    raise RuntimeError("another thread keeps changing flint.ctx.prec")


def exact(name: str, value: Number) -> fmpq:
    """Turn an argument into the rational number that it is.

    Raises
    ------
    ValueError
        If it is NaN or infinite, naming the argument.
    """
    if isinstance(value, Fraction):
        return fmpq(value.numerator, value.denominator)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite")
        return fmpq(*value.as_integer_ratio())
    return fmpq(operator.index(value))


def within(name: str, value: Number, least: float, greatest: float) -> fmpq:
    """Turn an argument into a rational number and check its range.

    Raises
    ------
    ValueError
        If it is NaN or outside [least, greatest], naming the argument.
    """
    number = exact(name, value)
    if not exact(name, least) <= number <= exact(name, greatest):
        raise ValueError(f"{name} must lie between {least:g} and {greatest:g}")
    return number


def strictly_within_unit(name: str, value: Number) -> fmpq:
    """Turn an argument into a rational number and check that it lies strictly between 0 and 1.

    Raises
    ------
    ValueError
        If it does not, naming the argument.
    """
    number = exact(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1")
    return number


def guess(kernel: Callable[..., Any], *arguments: Number, **options: str) -> float:
    """Return a fast kernel's result at the nearest floats; NaN where these lie outside its domain."""
    try:
        return float(kernel(*map(float, arguments), **options))
    except (ValueError, OverflowError):
        return math.nan


def round_down(mantissa: int, exponent: int) -> float:
    """Return the largest float, −inf included, that is at most mantissa·2^exponent."""
    if mantissa == 0:
        return 0.0
    length = mantissa.bit_length() + exponent
    if length > 1024:
        return math.nextafter(math.inf, 0.0) if mantissa > 0 else -math.inf
    last = max(length - 53, -1074)
    shift = exponent - last
    # Python's shift to the right rounds down, also for negative numbers.
    leading = mantissa << shift if shift >= 0 else mantissa >> -shift
    if leading.bit_length() + last > 1024:
        return -math.inf
    return math.ldexp(float(leading), last)


def round_up(mantissa: int, exponent: int) -> float:
    """Return the smallest float, inf included, that is at least mantissa·2^exponent."""
    return 0.0 - round_down(-mantissa, exponent)


def float_index(x: float) -> int:
    """Return the place of a float among all floats in order: neighbours differ by 1, and 0.0 has 0."""
    bits: int = struct.unpack("<q", struct.pack("<d", abs(x)))[0]
    return bits if x >= 0.0 else -bits


def _float_at(index: int) -> float:
    """Return the float of an index ≥ 0."""
    x: float = struct.unpack("<d", struct.pack("<q", index))[0]
    return x


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Enclosure:
    """Floats proven to lie on either side of an exact value: lo ≤ value ≤ hi.

    Attributes
    ----------
    lo, hi
        The ends, rounded outwards.
    ball
        A ball of flint's that contains the value, at the precision it was computed with (for a value found by
        bisection: the hull of the ends).
    """

    lo: float
    hi: float
    ball: arb = field(compare=False)

    @property
    def width_in_ulps(self) -> int:
        """Count the steps from float to float that lead from lo to hi: 0 if equal, 1 if neighbours."""
        return float_index(self.hi) - float_index(self.lo)

    @property
    def is_tight(self) -> bool:
        """Whether the enclosure is at most 2 ulps wide, as all are but where a function states otherwise."""
        return self.width_in_ulps <= 2

    def __contains__(self, x: object) -> bool:
        """Whether a float, int or Fraction lies between the ends."""
        return isinstance(x, float | int | Fraction) and self.lo <= x <= self.hi


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Enclosures:
    """Arrays of floats proven to lie on either side of exact values: lo ≤ value ≤ hi.

    Attributes
    ----------
    lo, hi
        The ends, of the arguments' broadcast shape.
    """

    lo: NDArray[np.float64]
    hi: NDArray[np.float64]


def has_arrays(*arguments: object) -> bool:
    """Whether any of a function's arguments is an array or a list."""
    return any(isinstance(argument, np.ndarray | list | tuple) for argument in arguments)


def enclose_arrays(
    fast: Callable[..., NDArray[np.float64]] | None,
    fill: Callable[..., None],
    slow: Callable[..., Enclosure],
    *arguments: ArrayLike,
) -> Enclosures:
    """Enclose values for arrays of arguments: by balls of pairs of floats, and by flint's where these don't decide.

    Parameters
    ----------
    fast
        The fast kernel, whose results are handed to ``fill`` before the arguments; None if it takes no guess.
    fill
        Fills the last two of its arguments with floats on either side, NaN where it does not know.
    slow
        Encloses the value for a single set of arguments.
    """
    arrays = np.broadcast_arrays(*(np.asarray(argument, dtype=np.float64) for argument in arguments))
    flat = [np.array(array).reshape(-1) for array in arrays]
    low, high = np.full(flat[0].shape, np.nan), np.full(flat[0].shape, np.nan)
    try:
        guesses = [] if fast is None else [fast(*flat)]
        fill(*guesses, *flat, low, high)
    except ValueError:
        # Outside the fast kernel's domain. What lies outside the enclosures' domain too, these say themselves.
        low[:] = np.nan
    for i in np.flatnonzero(np.isnan(low) | np.isnan(high)):
        enclosure = slow(*(float(array[i]) for array in flat))
        low[i], high[i] = enclosure.lo, enclosure.hi
    return Enclosures(low.reshape(arrays[0].shape), high.reshape(arrays[0].shape))


def _rounded_outwards(ball: arb) -> Enclosure:
    if not ball.is_finite():
        for infinity, end in ((arb.pos_inf(), math.inf), (arb.neg_inf(), -math.inf)):
            if ball == infinity:
                return Enclosure(end, end, ball)
        return Enclosure(-math.inf, math.inf, ball)
    low, high = (tuple(map(int, end.man_exp())) for end in (ball.lower(), ball.upper()))
    return Enclosure(round_down(*low), round_up(*high), ball)


def enclose(value: Callable[[], arb], least: float = -math.inf, greatest: float = math.inf) -> Enclosure:
    """Enclose ``value()``, which the caller knows to lie in [least, greatest], by neighbouring or equal floats.

    The precision rises until the ends are neighbours (equal where the value is a float and its ball exact). They stay
    2 ulps apart where the value is a float, or within 2^−120 of one, without being an exact ball. A value that large
    terms make up by cancelling all 8192 bits stays wider.
    """
    enclosure = Enclosure(-math.inf, math.inf, arb.nan())
    for prec in PRECISIONS:
        rounded = at_precision(prec, lambda: _rounded_outwards(value()))
        enclosure = Enclosure(max(rounded.lo, least), min(rounded.hi, greatest), rounded.ball)
        if enclosure.width_in_ulps <= 1:
            break
        if enclosure.is_tight and enclosure.ball.rel_accuracy_bits() >= _SURELY_A_FLOAT:
            break
    return enclosure


def sign(value: Callable[[], arb]) -> tuple[int, arb]:
    """Return the proven sign of ``value()`` and its ball; 0 if exactly zero or still unknown at the highest precision.

    An exact zero comes with a ball that is exactly zero.
    """
    ball = arb.nan()
    for prec in PRECISIONS:
        ball = at_precision(prec, value)
        # Comparisons of balls hold only where they are proven.
        if ball > 0:
            return 1, ball
        if ball < 0:
            return -1, ball
        if ball.is_zero():
            break
    return 0, ball


def hull(low: float, high: float) -> Enclosure:
    """Return the enclosure with these ends."""
    if math.isinf(high):
        return Enclosure(low, high, arb.pos_inf() if low == high else arb.nan())
    return Enclosure(low, high, at_precision(PRECISIONS[0], lambda: arb(low).union(arb(high))))


def _crossing(above: arb, below: arb) -> float:
    """Where the chord from a positive to a negative value crosses zero, as a share of its length: a guess."""
    share = float(above.mid() / (above.mid() - below.mid()))
    return share if 0.0 <= share <= 1.0 else 0.5


def bracket(excess: Callable[[fmpq], arb], start: float, greatest: float = math.inf) -> Enclosure:
    """Enclose the place where a function that does not increase passes from positive to not positive.

    Parameters
    ----------
    excess
        Ball of the function at an exact argument, at the precision in force.
    start
        Where to look first. Nothing but time depends on it.
    greatest
        The caller knows that the function is positive at, or just above, 0 and is not at ``greatest``.

    Returns
    -------
    Floats lo < hi with excess(lo) > 0 ≥ excess(hi), both proven by balls (or the caller's knowledge at 0 and
    ``greatest``). They are neighbours; 2 ulps apart where the function's sign at the float between them cannot be told
    at the highest precision, which means that the float is the place itself or agrees with it to thousands of digits.
    """

    def evaluate(index: int) -> tuple[int, arb]:
        x = fmpq(*_float_at(index).as_integer_ratio())
        return sign(lambda: excess(x))

    low, high = 0, float_index(greatest)
    above: arb | None = None
    below: arb | None = None
    point = float_index(start) if 0.0 < start < greatest else float_index(min(1.0, 0.5 * greatest))
    stride, steps = 1, 0
    while high - low > 1:
        point = min(max(point, low + 1), high - 1)
        way, ball = evaluate(point)
        if way > 0:
            low, above = point, ball
        elif way < 0 or ball.is_zero():
            high, below = point, ball
        else:
            return hull(*(_float_at(_proven_end(evaluate, point, *side)) for side in ((-1, low), (1, high))))
        if above is None or below is None:
            point = low + stride if below is None else high - stride
            stride *= 16
        else:
            steps += 1
            crossing = partial(_crossing, above, below)
            share = 0.5 if steps > 4 and steps % 2 else at_precision(PRECISIONS[0], crossing)
            # In integers: the indices have more bits than a float.
            point = low + (int(share * 2.0**62) * (high - low) >> 62)
    return hull(_float_at(low), _float_at(high))


def _proven_end(evaluate: Callable[[int], tuple[int, arb]], point: int, way: int, end: int) -> int:
    """Return the first index in direction ``way`` from a point of unknown sign where the sign is as at ``end``."""
    step = way
    while (end - point - step) * way > 0:
        if evaluate(point + step)[0] == -way:
            return point + step
        step *= 2
    return end
