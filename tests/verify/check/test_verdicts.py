from fractions import Fraction

import pytest
from flint import arb

from canaryproof.kernels.certified import gaussian_mechanism
from canaryproof.verify.check.levels import POWER
from canaryproof.verify.check.results import Verdict
from canaryproof.verify.check.verdicts import (
    Within,
    both,
    close,
    from_p_values,
    holds,
    number,
    prints,
    proven,
    rounding,
    shares_hold,
)


def test_a_condition_another_reading_and_neither():
    assert holds(True) is holds(True, True) is Verdict.CONFIRMED
    assert holds(False, ["a reading"]) is Verdict.QUALIFIED
    assert holds(False) is holds([], []) is Verdict.REFUTED


@pytest.mark.parametrize(
    ("printed", "readings", "verdict", "reading"),
    [
        ("3.89", {"δ = 0": 3.8918}, Verdict.CONFIRMED, "δ = 0"),
        ("3.89", {"δ = 1/n": 3.8816, "δ = 0": 3.8918}, Verdict.QUALIFIED, "δ = 0"),
        ("3.89", {"δ = 1/n": 3.9020}, Verdict.REFUTED, "δ = 1/n"),
        ("2", {"": Fraction(1000, 593)}, Verdict.CONFIRMED, ""),
        ("500", {"15 epochs": Fraction(50745, 101)}, Verdict.QUALIFIED, "15 epochs, as a round number"),
        ("0.081", {"167/2048": Fraction(167, 2048)}, Verdict.QUALIFIED, "167/2048, cut and not rounded"),
        ("0.080", {"167/2048": Fraction(167, 2048)}, Verdict.REFUTED, "167/2048"),
        ("6.24", {"ball": arb("6.24", "1e-9"), "other": 1.0}, Verdict.CONFIRMED, "ball"),
    ],
)
def test_a_printed_number(printed, readings, verdict, reading):
    judged = number(printed, readings)
    assert (judged.verdict, judged.reading) == (verdict, reading)
    assert judged.rule.startswith(f"{verdict}: ")
    assert set(judged.evidence["rule"]) == {"printed", "reading", "value", "why"}


def test_what_the_text_does_not_state_confirms_nothing():
    assert number("11", {"a": 11.0}, stated=()).verdict is Verdict.QUALIFIED
    assert number("11", {"a": 12.0}, stated=()).verdict is Verdict.REFUTED
    assert number("11", {"a": 12.0, "b": 11.0}, stated=("a", "b")).verdict is Verdict.CONFIRMED


def test_about_is_a_tenth_and_an_order_of_magnitude_a_factor_of_two():
    assert number("6", {"": 6.59}, within=Within.ABOUT).verdict is Verdict.CONFIRMED
    assert number("6", {"": 6.61}, within=Within.ABOUT).verdict is Verdict.QUALIFIED
    assert number("6", {"": 12.5}, within=Within.ABOUT).verdict is Verdict.REFUTED
    assert number("6", {"": 11.9}, within=Within.MAGNITUDE).verdict is Verdict.CONFIRMED
    assert number("6", {"": 12.5}, within=Within.MAGNITUDE).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("ratios", "about", "magnitude"),
    [
        ([1.09, 0.91], Verdict.CONFIRMED, Verdict.CONFIRMED),
        ([1.0, 0.53], Verdict.QUALIFIED, Verdict.CONFIRMED),
        ([1.0, 2.1], Verdict.REFUTED, Verdict.REFUTED),
        ([0.49], Verdict.REFUTED, Verdict.REFUTED),
        ([0.0], Verdict.REFUTED, Verdict.REFUTED),
    ],
)
def test_close(ratios, about, magnitude):
    assert (close(ratios), close(ratios, Within.MAGNITUDE)) == (about, magnitude)


def test_p_values_of_tests_that_share_a_level():
    assert from_p_values([0.05, 0.01], [0.5], 0.1) is Verdict.CONFIRMED
    assert from_p_values([0.051, 0.01], [0.5], 0.1) is Verdict.INCONCLUSIVE
    assert from_p_values([0.5], [0.05], 0.1) is Verdict.REFUTED
    # The half that may refute is split between the tests that may.
    assert from_p_values([0.5], [0.02, 0.5, 0.5], 0.1) is Verdict.INCONCLUSIVE
    assert from_p_values([0.5], [0.016, 0.5, 0.5], 0.1) is Verdict.REFUTED


def test_tests_of_shares_share_a_level():
    def judged(smallest):
        return shares_hold({"one": smallest, "two": 0.5, "three": 0.9, "four": 1.0}, 1234, "a null", "3%", 0.1)

    assert judged(0.025).verdict is Verdict.CONFIRMED
    assert judged(0.0249).verdict is Verdict.REFUTED
    outcome = judged(0.024)
    assert outcome.finding == "smallest of 4 p-values 0.024 (one; 1,234 runs)"
    assert (outcome.design.level, outcome.design.runs, outcome.design.power) == (0.1, 1234, POWER)
    assert outcome.design.alternative == "a share of runs is off by 3%"
    assert outcome.evidence == {
        "runs": 1234,
        "level": 0.1,
        "p_values": {"one": 0.024, "two": 0.5, "three": 0.9, "four": 1.0},
    }


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
