import math
import threading
import time
from fractions import Fraction

import flint
import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.kernels.certified import _ball as ball
from canaryproof.kernels.certified import null_cosine

SMALLEST = 5e-324
LARGEST = math.nextafter(math.inf, 0.0)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def rational(mantissa, exponent):
    return Fraction(mantissa) * Fraction(2) ** exponent


@given(st.integers(-(2**200), 2**200), st.integers(-1300, 900))
def test_rounding_is_outward_and_no_further_than_the_next_float(mantissa, exponent):
    low, high = ball.round_down(mantissa, exponent), ball.round_up(mantissa, exponent)
    value = rational(mantissa, exponent)
    assert low <= value <= high
    assert math.nextafter(low, math.inf) > value or low == high
    assert math.nextafter(high, -math.inf) < value or low == high


@given(FLOATS)
def test_floats_are_rounded_to_themselves(x):
    numerator, denominator = x.as_integer_ratio()
    exponent = 1 - denominator.bit_length()
    assert ball.round_down(numerator, exponent) == x == ball.round_up(numerator, exponent)


@pytest.mark.parametrize("x", [1.0, -1.0, 0.0, SMALLEST, -SMALLEST, 2.0**-1022, 3e-310, 1e300, -(2.0**-1022)])
@pytest.mark.parametrize("far", [1100, 3000])
def test_just_beside_a_float(x, far):
    numerator, denominator = x.as_integer_ratio()
    mantissa = numerator * 2**far // denominator
    above, below = math.nextafter(x, math.inf), math.nextafter(x, -math.inf)
    assert (ball.round_down(mantissa + 1, -far), ball.round_up(mantissa + 1, -far)) == (x, above)
    assert (ball.round_down(mantissa - 1, -far), ball.round_up(mantissa - 1, -far)) == (below, x)


def test_beside_zero_at_exponents_beyond_any_shift():
    assert (ball.round_down(1, -(10**30)), ball.round_up(1, -(10**30))) == (0.0, SMALLEST)
    assert (ball.round_down(-1, -(10**30)), ball.round_up(-1, -(10**30))) == (-SMALLEST, 0.0)


def test_beyond_the_largest_float():
    assert (ball.round_down(1, 1024), ball.round_up(1, 1024)) == (LARGEST, math.inf)
    assert (ball.round_down(-1, 10**30), ball.round_up(-1, 10**30)) == (-math.inf, -LARGEST)
    # Above the largest float, below 2^1024.
    assert (ball.round_down(2**54 - 1, 970), ball.round_up(2**54 - 1, 970)) == (LARGEST, math.inf)


def test_zero_has_no_sign():
    assert math.copysign(1.0, ball.round_up(-1, -(10**30))) == 1.0
    assert math.copysign(1.0, ball.round_up(0, 0)) == 1.0


def test_a_third():
    third = ball.enclose(lambda: arb(1) / 3)
    assert third.lo < Fraction(1, 3) < third.hi
    assert third.width_in_ulps == 1
    assert Fraction(1, 3) in third
    assert "a third" not in third
    minus = ball.enclose(lambda: arb(-1) / 3)
    assert (minus.lo, minus.hi) == (-third.hi, -third.lo)


@given(FLOATS)
def test_an_exact_ball_of_a_float_has_equal_ends(x):
    assert ball.enclose(lambda: arb(x)) == ball.Enclosure(x, x, arb(x))


def test_an_inexact_ball_about_a_float_is_two_ulps_wide():
    enclosure = ball.enclose(lambda: arb(2).sqrt() * arb(2).sqrt())
    assert (enclosure.lo, enclosure.hi) == (math.nextafter(2.0, 0.0), math.nextafter(2.0, 3.0))
    assert enclosure.is_tight


def test_a_zero_that_no_precision_proves_is_said_to_be_loose():
    enclosure = ball.enclose(lambda: (arb(2).sqrt() * arb(2).sqrt() - 2) * 2**8000)
    assert 0 in enclosure
    assert not enclosure.is_tight


def test_what_the_caller_knows_bounds_the_ends():
    def value():
        return arb(2).sqrt() * arb(2).sqrt() / 2

    enclosure = ball.enclose(value, greatest=1.0)
    assert (enclosure.lo, enclosure.hi) == (math.nextafter(1.0, 0.0), 1.0)
    enclosure = ball.enclose(value, least=1.0)
    assert (enclosure.lo, enclosure.hi) == (1.0, math.nextafter(1.0, 2.0))


@pytest.mark.parametrize(("value", "ends"), [(arb.pos_inf(), (math.inf, math.inf)), (arb.nan(), (-math.inf, math.inf))])
def test_balls_that_are_not_finite(value, ends):
    enclosure = ball.enclose(lambda: value)
    assert (enclosure.lo, enclosure.hi) == ends


@given(FLOATS, FLOATS)
def test_index_orders_floats(x, y):
    assert (ball.float_index(x) < ball.float_index(y)) == (x < y)
    assert ball.float_index(math.nextafter(x, math.inf)) - ball.float_index(x) == 1


@given(st.floats(1e-300, 1e300), st.floats(0.0, 1e300))
def test_bracket_of_a_square_root(square, start):
    target = fmpq(*square.as_integer_ratio())
    root = ball.bracket(lambda x: arb(target - x * x), start)
    assert Fraction(root.lo) ** 2 < Fraction(square) <= Fraction(root.hi) ** 2
    assert root.width_in_ulps == 1


def test_bracket_about_a_float_that_is_the_root():
    root = ball.bracket(lambda x: arb(2).sqrt() * arb(2).sqrt() - arb(x), 1.9)
    assert (root.lo, root.hi) == (math.nextafter(2.0, 0.0), math.nextafter(2.0, 3.0))


def test_bracket_beyond_the_largest_float():
    assert ball.bracket(lambda _: arb(1), 1.0).lo == LARGEST
    assert ball.bracket(lambda _: arb(-1), 1.0).hi == SMALLEST
    assert ball.bracket(lambda _: arb(1), 0.3, 1.0).hi == 1.0


@pytest.mark.parametrize("left_behind", [2, 53, 1000])
def test_precision_left_behind_is_restored_and_does_not_matter(left_behind):
    expected = ball.enclose(lambda: arb(1) / 3)
    with flint.ctx.workprec(left_behind):
        found = ball.enclose(lambda: arb(1) / 3)
        assert flint.ctx.prec == left_behind
    assert found == expected
    assert found.ball.mid().man_exp() == expected.ball.mid().man_exp()


def test_precision_is_restored_after_an_error():
    before = flint.ctx.prec
    with pytest.raises(ZeroDivisionError):
        ball.at_precision(777, lambda: 1 // 0)
    assert flint.ctx.prec == before


def test_a_change_from_elsewhere_is_noticed():
    before = flint.ctx.prec
    calls = []

    def disturbed():
        calls.append(flint.ctx.prec)
        if len(calls) < 3:
            flint.ctx.prec = 77
        return len(calls)

    try:
        assert ball.at_precision(500, disturbed) == 3
        assert calls == [500] * 3
        assert flint.ctx.prec == 77
    finally:
        flint.ctx.prec = before


def test_a_change_at_each_attempt_is_an_error():
    before = flint.ctx.prec

    def disturbed():
        flint.ctx.prec += 1

    try:
        with pytest.raises(RuntimeError, match="keeps changing"):
            ball.at_precision(500, disturbed)
    finally:
        flint.ctx.prec = before


def test_threads_do_not_disturb_each_other():
    def value():
        return (arb(1) / 3).exp().log() - arb(1) / 3 + arb(2).sqrt()

    expected = ball.enclose(value)
    before = flint.ctx.prec
    results, stop = [], threading.Event()

    def meddle():
        precisions = [2, 60, 3000]
        while not stop.is_set():
            flint.ctx.prec = precisions[0]
            precisions.append(precisions.pop(0))
            time.sleep(0.0005)

    meddler = threading.Thread(target=meddle)
    workers = [threading.Thread(target=lambda: results.extend(ball.enclose(value) for _ in range(200))) for _ in "abcd"]
    try:
        meddler.start()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        stop.set()
        meddler.join()
        flint.ctx.prec = before
    assert len(results) == 800
    assert all(result == expected for result in results)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_arguments_that_are_not_finite(value):
    with pytest.raises(ValueError, match="spam"):
        ball.exact("spam", value)


def test_arguments_that_are_not_numbers():
    with pytest.raises(TypeError):
        ball.exact("spam", "0.5")


def test_exact_arguments():
    assert ball.exact("x", 0.1) == fmpq(*(0.1).as_integer_ratio())
    assert ball.exact("x", Fraction(1, 3)) == fmpq(1, 3)
    assert ball.exact("x", 10**30) == fmpq(10**30)


def test_ranges():
    assert ball.within("x", 2, 2.0, 3.0) == 2
    for value in (1, Fraction(31, 10)):
        with pytest.raises(ValueError, match="x must lie between 2 and 3"):
            ball.within("x", value, 2.0, 3.0)
    for value in (0, 1.0, -0.5):
        with pytest.raises(ValueError, match="q must lie strictly between 0 and 1"):
            ball.strictly_within_unit("q", value)


def test_guesses():
    assert ball.guess(lambda x, y: x + y, 1, Fraction(1, 2)) == 1.5
    assert math.isnan(ball.guess(lambda x: x, Fraction(10) ** 400))


def test_a_loop_whose_precision_somebody_changes_begins_again(monkeypatch):
    exact = null_cosine.sf(6e-6, 1e12)
    precisions = []

    def meddled(value):
        precisions.append(flint.ctx.prec)
        if len(precisions) == 1:
            # In the middle of the loop, as another thread would; and the loop is not done.
            flint.ctx.prec = 53
            return arb.pos_inf()
        return abs(value)

    monkeypatch.setattr(null_cosine, "abs", meddled, raising=False)
    before = flint.ctx.prec
    try:
        assert null_cosine.sf(6e-6, 1e12) == exact
    finally:
        flint.ctx.prec = before
    assert 53 not in precisions
    assert len(precisions) >= 2
