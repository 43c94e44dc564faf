"""How the twins take exact arguments and reach a promised number of digits."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from mpmath import mp, mpf

Number: TypeAlias = int | float | str | mpf


def exact(x: Number) -> mpf:
    """``x`` as it stands; a decimal fraction, which has no exact binary form, to 1000 digits."""
    with mp.workdps(1000):
        return mp.convert(x)


def settled(value: Callable[[], mpf], digits: int) -> mpf:
    """``value()`` at growing precision until two in a row agree to ``digits`` digits; a NaN agrees with nothing."""
    dps, previous = digits + 20, mp.nan
    for _ in range(20):
        with mp.workdps(dps):
            current = value()
            if current == previous or abs(current - previous) < abs(current) * mpf(10) ** (-digits - 2):
                break
        dps, previous = dps + dps // 2, current
    else:
        raise mp.NoConvergence("no two precisions agree")
    with mp.workdps(digits):
        return +current


# Digits of a root that is looked for between its limits at first; secants then double them.
_FIRST = 20


def root(f: Callable[[mpf], mpf], low: mpf, high: mpf, digits: int) -> mpf:
    """Root of ``f`` between ``low`` ≥ 0 and ``high``, proven by a change of sign across its last digit.

    The change of sign is looked for at a higher precision than the root was found at.
    """
    dps = digits + 20
    with suppress(mp.NoConvergence):
        near = _find(f, low, high, "illinois", _FIRST + 15, _FIRST)
        with mp.workdps(dps):
            beside = near * (1 + mpf(10) ** -_FIRST)
        # A step of half the digits is followed by one to all of them.
        x = _find(f, near, beside, "secant", dps, dps // 2)
        if low <= x <= high and _changes(f, x, dps + dps // 2, digits):
            return x
    # Where that fails, all digits are looked for between the limits.
    for _ in range(10):
        x = _find(f, low, high, "illinois", dps, dps - 15)
        dps += dps // 2
        if _changes(f, x, dps, digits):
            return x
    raise mp.NoConvergence(f"no change of sign about {mp.nstr(x)}")


def _find(f: Callable[[mpf], mpf], first: mpf, second: mpf, solver: str, dps: int, digits: int) -> mpf:
    """Look for a root of ``f`` from two points until a step is below its last digit."""
    with mp.workdps(dps):
        # findroot's tolerance is absolute; the ratio to a point makes it relative.
        return second * mp.findroot(
            lambda ratio: f(ratio * second),
            (first / second, mpf(1)),
            solver=solver,
            tol=mpf(10) ** -digits,
            maxsteps=500,
            verify=False,
        )


def _changes(f: Callable[[mpf], mpf], x: mpf, dps: int, digits: int) -> bool:
    """Whether ``f`` changes its sign across the last digit of ``x``."""
    with mp.workdps(dps):
        step = x * mpf(10) ** (-digits - 2)
        return bool(f(x - step) * f(x + step) < 0)


def positive_root(f: Callable[[mpf], mpf], digits: int) -> mpf:
    """Root of ``f``, positive near 0 and negative near infinity."""
    with mp.workdps(digits):
        high = mpf(1)
        while f(high) > 0:
            high *= 2
        while f(high / 2) <= 0:
            high /= 2
    return root(f, high / 2, high, digits)
