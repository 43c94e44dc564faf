"""How the twins take exact arguments and reach a promised number of digits."""

from collections.abc import Callable
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


def root(f: Callable[[mpf], mpf], low: mpf, high: mpf, digits: int) -> mpf:
    """Root of ``f`` between ``low`` ≥ 0 and ``high``, proven by a change of sign across its last digit.

    The change of sign is looked for at a higher precision than the root was found at.
    """
    dps = digits + 20
    for _ in range(10):
        with mp.workdps(dps):
            # findroot's tolerance is absolute; the ratio to `high` makes it relative.
            x = high * mp.findroot(
                lambda ratio: f(ratio * high),
                (low / high, mpf(1)),
                solver="illinois",
                tol=mpf(10) ** (15 - dps),
                maxsteps=500,
                verify=False,
            )
        dps += dps // 2
        with mp.workdps(dps):
            step = x * mpf(10) ** (-digits - 2)
            if f(x - step) * f(x + step) < 0:
                return x
    raise mp.NoConvergence(f"no change of sign about {mp.nstr(x)}")


def positive_root(f: Callable[[mpf], mpf], digits: int) -> mpf:
    """Root of ``f``, positive near 0 and negative near infinity."""
    with mp.workdps(digits):
        high = mpf(1)
        while f(high) > 0:
            high *= 2
        while f(high / 2) <= 0:
            high /= 2
    return root(f, high / 2, high, digits)
