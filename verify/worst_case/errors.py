"""How far a float is from an exact value of which an enclosure is known."""

import math

from flint import arb

from canaryproof.kernels.certified import Enclosure, at_precision

# Below this size a result with an absolute budget is measured against that instead of its own ulp.
SMALL = 0.1
ABSOLUTE_BUDGET = 1e-15


def error_bound(value: float, enclosure: Enclosure) -> float:
    """Return a proven upper bound on a float's distance from an enclosed value.

    Parameters
    ----------
    value
        The float.
    enclosure
        Enclosure of the exact value.

    Returns
    -------
    The bound, rounded upwards; 0 where both are the same infinity, inf where the float is NaN or only one is infinite.
    """
    if enclosure.lo == enclosure.hi and value == enclosure.lo:
        return 0.0
    if not math.isfinite(value) or not enclosure.ball.is_finite():
        return math.inf
    distance = at_precision(128, lambda: abs(arb(value) - enclosure.ball).upper())
    return math.nextafter(float(distance), math.inf)


def in_ulps(error: float, enclosure: Enclosure, least: float = 0.0) -> float:
    """Express an error in ulps of the enclosed value (of the smaller end, where the ends differ in that).

    Parameters
    ----------
    error
        As ``error_bound`` gives it.
    enclosure
        Of the exact value.
    least
        Smaller values are taken to be of this size.

    Returns
    -------
    The error in ulps.
    """
    return error / math.ulp(max(min(abs(enclosure.lo), abs(enclosure.hi)), least))


def share_of_budget(error: float, enclosure: Enclosure, ulps: float, *, absolute: bool) -> float:
    """Return an error's share of the budget allowed to it.

    Parameters
    ----------
    error
        As ``error_bound`` gives it.
    enclosure
        Of the exact value.
    ulps
        Budget in ulps of the exact value.
    absolute
        Whether 1e-15 is allowed instead where the exact value is below 0.1 in size.

    Returns
    -------
    At most 1 where the budget is kept.
    """
    if error == 0.0 or math.isinf(error):
        return error
    share = in_ulps(error, enclosure) / ulps
    if absolute and max(abs(enclosure.lo), abs(enclosure.hi)) < SMALL:
        share = min(share, error / ABSOLUTE_BUDGET)
    return share
