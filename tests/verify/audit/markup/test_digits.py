import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from canaryproof.verify.audit.markup.digits import (
    interval,
    number,
    percent,
    plus_minus,
    round_down,
    round_to_error,
    round_up,
)


def test_large_numbers_are_whole_and_have_no_exponent():
    shown = {
        (12_345.6, 3): "12,346",
        (1000.0, 3): "1,000",
        (999.6, 3): "1,000",
        (999.4, 3): "999",
        (-12_345.6, 3): "-12,346",
        (0.01234, 3): "0.0123",
        (-0.0, 3): "0",
        (123.4, 2): "123",
        (99.6, 2): "100",
        (0.0123, 2): "0.012",
        (math.inf, 3): "∞",
        (-math.inf, 3): "−∞",
        (math.nan, 3): "nan",
    }
    assert {pair: number(*pair) for pair in shown} == shown
    assert number(1.0) == "1"


def test_a_lower_bound_is_rounded_down_to_its_digits():
    shown = {
        (1.7699, 2): "1.7",
        (9.9999, 3): "9.99",
        (1.2399999, 3): "1.23",
        (2.0, 3): "2.00",
        (0.012349, 3): "0.0123",
        (1.239e-5, 3): "0.0000123",
        (1239.9, 3): "1230",
        (12345.6, 3): "12300",
        (0.0, 3): "0",
        (math.inf, 3): "∞",
    }
    assert {pair: round_down(*pair) for pair in shown} == shown
    assert round_down(2.3459) == "2.34"


def test_an_upper_bound_is_rounded_up_to_its_digits_but_for_the_error_of_a_float():
    shown = {
        (0.01241, 2): "0.013",
        (13 * 1e-6, 2): "1.3e-05",
        (3 * 0.1, 2): "0.3",
        (1.0, 2): "1",
        (0.7671, 3): "0.768",
        (9.991, 3): "10",
        (1e-300, 2): "1e-300",
        (0.0, 2): "0",
        (math.inf, 3): "∞",
    }
    assert {pair: round_up(*pair) for pair in shown} == shown


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (1.23456, 0.1, "1.23"),
        (1.23456, 0.0996, "1.23"),
        (1.23456, 0.0994, "1.235"),
        (986.81, 2.04, "986.8"),
        (986.81, 23.0, "987"),
        (12345.6, 171.0, "12350"),
        (-0.4, 100.0, "0"),
        # A number that rounds to −0.
        (-0.001, 0.1, "0.00"),
        (0.1, 0.1, "0.10"),
        # Plain from 1e-5 to a million, else with an exponent; a zero has none.
        (1.5, 1e-5, "1.500000"),
        (1.5, 9.9e-6, "1.5000000e+00"),
        (999999.0, 10.0, "999999"),
        (1000001.0, 10.0, "1.000001e+06"),
        (1234567.0, 1e7, "1e+06"),
        (1234567.0, 1e8, "0"),
        (1.2367e-4, 1.2e-6, "1.237e-04"),
        (0.0, 1e-9, "0"),
        # An exact number has six digits, and one without a known error three.
        (2.0 / 3.0, 0.0, "0.666667"),
        (1.5e-9, 1e-300, "1.5e-09"),
        (1.0, 1e-17, "1"),
        (2.0 / 3.0, math.inf, "0.667"),
        (3450.6, math.nan, "3,451"),
        (math.inf, 1.0, "∞"),
        (-math.inf, 0.0, "−∞"),
        (math.nan, 1.0, "nan"),
    ],
)
def test_a_number_has_two_digits_of_its_error(value, error, shown):
    assert round_to_error(value, error) == shown


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0.0, allow_infinity=False))
@example(1.75e308, 1e308)
@example(-1.797e308, 2e306)
def test_rounding_errs_less_than_the_second_digit(value, error):
    text = round_to_error(value, error)
    exact = Fraction(51, 10**7) * abs(Fraction(value)) if error <= 1e-16 * abs(value) else 0
    # In fractions, as what is rounded up may be no float.
    assert abs(Fraction(text) - Fraction(value)) <= max(Fraction(51, 1000) * Fraction(error), exact)
    assert len(text) < 25
    assert not text.startswith("-0") or float(text) < 0.0


def test_a_number_stands_with_its_error():
    shown = {
        (1.23456, 0.0345): "1.235 ± 0.035",
        (-0.0001, 0.0345): "0.000 ± 0.035",
        (1.23456e-9, 3.46e-11): "1.235e-09 ± 3.5e-11",
        (12345.6, 123.0): "12350 ± 120",
        (0.5, 0.0): "0.5 ± 0",
        (math.nan, 1.0): "nan ± 1.0",
    }
    assert {pair: plus_minus(*pair) for pair in shown} == shown


def test_a_confidence_and_the_ends_of_an_enclosure_have_all_their_digits():
    shown = {0.95: "95%", 0.975: "97.5%", 0.9995: "99.95%", 1.0 - 1e-9: "99.9999999%", 0.1 + 0.2: "30%"}
    assert {value: percent(value) for value in shown} == shown
    assert interval([0.1, 0.30000000000000004]) == "[0.1, 0.30000000000000004]"
