import pytest
from flint import arb
from mpmath import mp, mpf


def _as_ball(x):
    sign, mantissa, exponent, _ = x._mpf_
    return arb((-int(mantissa) if sign else int(mantissa), int(exponent)))


def _holds(enclosure, value, digits=55):
    """Whether an enclosure agrees with a number that is known to some digits."""
    if not mp.isfinite(value):
        return enclosure.lo == enclosure.hi == value
    with mp.workdps(400):
        error = abs(value) * mpf(10) ** -digits
        low, high = value - error, value + error
        ball = enclosure.ball.overlaps(_as_ball(low).union(_as_ball(high)))
        return ball and mpf(enclosure.lo) <= high and low <= mpf(enclosure.hi)


# A session's fixture, because hypothesis doesn't take shorter ones.
@pytest.fixture(scope="session")
def holds():
    return _holds
