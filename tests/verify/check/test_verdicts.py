from fractions import Fraction

import pytest
from flint import arb

from canaryproof.kernels.certified import gaussian_mechanism
from canaryproof.verify.check.results import Verdict
from canaryproof.verify.check.verdicts import both, holds, prints, proven, rounding


def test_a_condition_another_reading_and_neither():
    assert holds(True) is holds(True, True) is Verdict.CONFIRMED
    assert holds(False, ["a reading"]) is Verdict.QUALIFIED
    assert holds(False) is holds([], []) is Verdict.REFUTED


def test_two_settings():
    assert both(Verdict.CONFIRMED, Verdict.REFUTED) is Verdict.QUALIFIED
    assert both(Verdict.REFUTED, Verdict.REFUTED) is Verdict.REFUTED
    assert both(Verdict.CONFIRMED, Verdict.INCONCLUSIVE) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0.0644", Fraction(6435, 100_000), Fraction(6445, 100_000)),
        ("100k", Fraction(99_500), Fraction(100_500)),
        ("8.20e-7", Fraction(8195, 10**10), Fraction(8205, 10**10)),
        ("50", Fraction(99, 2), Fraction(101, 2)),
        ("0.0496", Fraction(496, 10_000) - Fraction(1, 20_000), Fraction(496, 10_000) + Fraction(1, 20_000)),
        ("300", Fraction(599, 2), Fraction(601, 2)),
    ],
)
def test_a_printed_number_is_an_interval(text, low, high):
    assert rounding(text) == (low, high)


def test_a_number_prints_within_half_a_unit():
    assert prints(3.8918, "3.89")
    assert not prints(3.8816, "3.89")
    assert prints(5.6, "6")
    assert not prints(float("inf"), "6")
    assert prints(Fraction(341_499), "341k")


def test_an_interval_an_enclosure_and_a_ball_print_as_a_whole():
    assert prints((6.2351, 6.2449), "6.24")
    assert not prints((6.2351, 6.2451), "6.24")
    assert prints(gaussian_mechanism.noise_multiplier(1.0, 1e-6), "4.22")
    assert prints(arb("1.5", "0.01"), "1.5")
    assert not prints(arb("1.5", "0.1"), "1.5")


def test_a_ball_is_proven_to_print():
    agreed, middle = proven(lambda: arb(2).sqrt(), "1.414")
    assert agreed
    assert middle == 2**0.5
    assert not proven(lambda: arb(2).sqrt(), "1.415")[0]
