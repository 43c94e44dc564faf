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


def converged_value(value: Callable[[], mpf], digits: int) -> mpf:
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


# Digits of a root that is looked for between its limits at first; each secant then adds those of the last two places.
_FIRST = 10


def root(f: Callable[[mpf], mpf], low: mpf, high: mpf, digits: int) -> mpf:
    """Root of ``f`` between ``low`` ≥ 0 and ``high``, proven by a change of sign across its last digit.

    The change of sign is looked for at a higher precision than the root was found at.
    """
    dps = digits + 20
    with suppress(mp.NoConvergence, ZeroDivisionError):
        x = _secants(f, _between(f, low, high, _FIRST + 15, _FIRST), low, high, digits)
        if low <= x <= high and _has_sign_change(f, x, dps + dps // 4, digits):
            return x
    # Where that fails, all digits are looked for between the limits.
    for _ in range(10):
        x = _between(f, low, high, dps, dps - 15)
        dps += dps // 2
        if _has_sign_change(f, x, dps, digits):
            return x
    raise mp.NoConvergence(f"no change of sign about {mp.nstr(x)}")


def _between(f: Callable[[mpf], mpf], low: mpf, high: mpf, dps: int, digits: int) -> mpf:
    """Look for a root of ``f`` between two points until a step is below its last digit."""
    with mp.workdps(dps):
        # findroot's tolerance is absolute; the ratio to a point makes it relative.
        return high * mp.findroot(
            lambda ratio: f(ratio * high),
            (low / high, mpf(1)),
            solver="illinois",
            tol=mpf(10) ** -digits,
            maxsteps=500,
            verify=False,
        )


def _secants(f: Callable[[mpf], mpf], x: mpf, low: mpf, high: mpf, digits: int) -> mpf:
    """Improve a root of ``f`` that has its first digits, each time at no more precision than the step is worth.

    It ends beyond the limits, where a secant of a flat function may lead, and where ``f`` may take forever.
    """
    known, before = _FIRST, _FIRST
    with mp.workdps(2 * _FIRST + 15):
        step = x * mpf(10) ** -_FIRST
        # Beyond the limits a function need not be real.
        other = x + step if x + step <= high else x - step
        value = f(other)
    while known < digits + 5 and low <= x <= high:
        with mp.workdps(min(known + before, digits) + 20):
            here = f(x)
            x, other, value = x - here * (x - other) / (here - value), x, here
        known, before = known + before, known
    return x


def _has_sign_change(f: Callable[[mpf], mpf], x: mpf, dps: int, digits: int) -> bool:
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
