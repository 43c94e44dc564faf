"""Numbers as they are printed: with as many digits as they earn, and bounds never on the wrong side."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


def number(value: float, digits: int = 3) -> str:
    """Print a number in some significant digits, or whole where it has more."""
    if math.isinf(value):
        return "∞" if value > 0.0 else "−∞"
    # Adding 0 turns −0 into 0.
    return f"{value + 0.0:.{digits}g}" if abs(value) < 10.0**digits - 0.5 else f"{value:,.0f}"


def round_down(value: float, digits: int = 3) -> str:
    """Print a lower bound, which is not negative, rounded down to some significant digits: rounded up it is none."""
    if not value or not math.isfinite(value):
        return number(value)
    unit = Decimal(1).scaleb(Decimal(value).adjusted() - digits + 1)
    return f"{Decimal(value).quantize(unit, rounding=ROUND_FLOOR):f}"


def round_up(value: float, digits: int = 2) -> str:
    """Print what a positive number is at most, rounded up but for the error of a float to some significant digits."""
    if not 0.0 < value < math.inf:
        return number(value)
    near = Decimal(f"{value:.15g}")
    unit = Decimal(1).scaleb(near.adjusted() - digits + 1)
    return number(float(near.quantize(unit, rounding=ROUND_CEILING)), digits)


def percent_up(value: float, digits: int = 2) -> str:
    """Print a positive share in percent, rounded up: what is within it is within the printed one."""
    if not 0.0 < value < math.inf:
        return f"{number(100.0 * value)}%"
    scaled = Decimal(100.0 * value)
    unit = Decimal(1).scaleb(scaled.adjusted() - digits + 1)
    return f"{float(scaled.quantize(unit, rounding=ROUND_CEILING)):,.10g}%"


def round_to_error(value: float, error: float) -> str:
    """Print a number with two digits of its standard error: with six in all if that is 0, and three if infinite."""
    if math.isinf(value) or not math.isfinite(error):
        return number(value)
    if not error > 1e-16 * abs(value):
        return f"{value + 0.0:.6g}"
    near = Decimal(value).quantize(Decimal(f"{error:.1e}"))
    if near.is_zero():
        # A negative number that rounds to −0.
        near = abs(near)
    if error >= 1e-5 and abs(near) < 1e6:
        return f"{near:f}"
    if near.is_zero():
        return "0"
    # A number may be rounded up to one beyond the largest float.
    shown = float(near) if math.isfinite(float(near)) else value
    return f"{shown:.{len(near.as_tuple().digits) - 1}e}"


def plus_minus(value: float, error: float) -> str:
    """Print a number with its standard error."""
    return f"{round_to_error(value, error)} ± {round_to_error(error, error)}"


def interval(ends: Sequence[float]) -> str:
    """Print an enclosure with all digits that its ends have."""
    low, high = ends
    return f"[{low!r}, {high!r}]"


def percent(confidence: float) -> str:
    """Print a confidence in percent."""
    return f"{100.0 * confidence:.10g}%"
