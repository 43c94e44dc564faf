import math
from fractions import Fraction

import pytest
from flint import arb

from canaryproof.kernels.certified import Enclosure, gaussian_mechanism
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.check.results import Context, Design, Effort, Outcome, Result, Subject, Verdict
from canaryproof.verify.papers.check.verdicts import (
    MEANINGS,
    Printed,
    Within,
    agreement,
    both,
    close,
    conclude,
    fixed,
    from_p_values,
    holds,
    is_fixed,
    number,
    prints,
    proven,
    rounding,
    rule,
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
        # A text's own readings may have their digits cut off, and no other's.
        ("0.081", {"own": 0.07, "other": Fraction(167, 2048)}, Verdict.REFUTED, "own"),
        # A number of zeros alone has no digit whose place they hold.
        ("0", {"": 4.0}, Verdict.REFUTED, ""),
        ("0.500", {"": 0.503}, Verdict.REFUTED, ""),
        ("6.24", {"ball": arb("6.24", "1e-9"), "other": 1.0}, Verdict.CONFIRMED, "ball"),
    ],
)
def test_a_printed_number(printed, readings, verdict, reading):
    judged = number(printed, readings)
    assert (judged.verdict, judged.reading) == (verdict, reading)
    assert judged.rule.startswith(f"{verdict}: ")
    assert set(judged.evidence["rule"]) == {"printed", "reading", "value", "why"}


def says(judged):
    """Return the line of a claim whose number was judged."""
    return rule(Result("", "", Subject.DOCUMENT, "", "", judged.verdict, "", judged.evidence))


@pytest.mark.parametrize(
    ("judged", "line"),
    [
        (number("2", {"a": 2.0}), "confirmed: rounds to the printed digits; printed 2, computed 2 (a)"),
        (
            number("2", {"a": 7.0, "b": Fraction(9, 4)}),
            "qualified: rounds to the printed digits, under a reading that the text does not state; printed 2, "
            "computed 2.25 (b)",
        ),
        (
            number("0.3", {"a": (0.375, 0.5), "b": Enclosure(0.3125, 0.375, arb("0.34375", "0.03125"))}, stated=("b",)),
            "qualified: cut and not rounded; printed 0.3, computed [0.3125, 0.375] (b, cut and not rounded)",
        ),
        (
            number("9", {"a": arb("2.5", "0.5"), "b": 7.0, "c": 3.0}),
            # flint widens a radius by a last bit of it.
            "refuted: none of 3 readings rounds to the printed digits; printed 9, computed "
            f"[{float(arb('2.5', '0.5').lower())!r}, {float(arb('2.5', '0.5').upper())!r}] (a)",
        ),
        (
            number("8", {"a": 9.0, "b": 8.75}, within=Within.ABOUT),
            'qualified: within 10%, as "about", "close" and "slightly" allow, under a reading that the text does not '
            "state; printed 8, computed 8.75 (b)",
        ),
        (
            number("8", {"a": 9.0}, within=Within.ABOUT),
            "qualified: to a factor of two; printed 8, computed 9 (a, to a factor of two)",
        ),
        (
            number("8", {"a": 17.0}, within=Within.MAGNITUDE),
            "refuted: none of 1 readings within a factor of two, as an order of magnitude allows; printed 8, computed "
            "17 (a)",
        ),
    ],
)
def test_a_claims_line_says_what_is_printed_and_what_was_computed(judged, line):
    assert says(judged) == line


def test_the_line_of_another_statement_is_its_verdicts_meaning():
    for verdict, meaning in MEANINGS.items():
        assert rule(Result("", "", Subject.DOCUMENT, "", "", verdict, "", {"rule": "else"})) == f"{verdict}: {meaning}"
    assert MEANINGS.keys() == set(Verdict)
    # A verdict's name stands in its own meaning, or what makes it.
    assert "a data set decides" in MEANINGS[Verdict.NEEDS_DATA]
    assert "cannot decide" in MEANINGS[Verdict.INCONCLUSIVE]
    assert "a reading that the text does not state" in MEANINGS[Verdict.QUALIFIED]
    assert MEANINGS[Verdict.REFUTED].startswith("false as printed")


def test_agreement_is_told_down_to_how_processors_round():
    assert agreement(3e-5) == "3e-05"
    assert agreement(2e-14) == "2e-14"
    assert agreement(9e-15) == agreement(0.0) == "1e-14"


def test_a_judge_of_printed_numbers_alone_is_fixed():
    context = Context(Effort.QUICK, 0)
    judge = fixed(lambda *arguments: conclude(Verdict.QUALIFIED, f"found {arguments}", numbers=arguments), 1, "2")
    assert judge(context) == Outcome(Verdict.QUALIFIED, "found (1, '2')", {"numbers": (1, "2")}, None)
    printed = Printed("0.25", lambda text: conclude(holds(True), text))
    assert printed(context) == Outcome(Verdict.CONFIRMED, "0.25", {}, None)
    assert [is_fixed(one) for one in (judge, printed, printed.judge)] == [True, True, False]
    design = Design("a null", 0.1, "an effect", POWER, 5)
    assert conclude(Verdict.REFUTED, "f", design, x=1) == Outcome(Verdict.REFUTED, "f", {"x": 1}, design)


@pytest.mark.parametrize(
    ("printed", "within", "lowest", "highest", "looser"),
    [
        # Half a unit either side; cut off, or to the place of the first zero, in a reading not stated.
        ("0.3", Within.DIGITS, Fraction(25, 100), Fraction(35, 100), (Fraction(25, 100), Fraction(4, 10))),
        ("1200", Within.DIGITS, Fraction(2399, 2), Fraction(2401, 2), (Fraction(1150), Fraction(1250))),
        ("3k", Within.DIGITS, Fraction(2500), Fraction(3500), (Fraction(2500), Fraction(4000))),
        ("8", Within.ABOUT, Fraction(72, 10), Fraction(88, 10), (Fraction(4), Fraction(16))),
        ("8", Within.MAGNITUDE, Fraction(4), Fraction(16), (Fraction(4), Fraction(16))),
    ],
)
def test_a_range_has_its_ends_and_no_more(printed, within, lowest, highest, looser):
    some = Fraction(1, 10**9)

    def verdict(value):
        return number(printed, {"": value}, within=within).verdict

    assert verdict(lowest) is verdict(highest) is Verdict.CONFIRMED
    for outside, outer, beyond in ((lowest - some, looser[0], -some), (highest + some, looser[1], some)):
        wider = not lowest <= outer <= highest
        assert verdict(outside) is (Verdict.QUALIFIED if wider else Verdict.REFUTED)
        assert verdict(outer) is (Verdict.QUALIFIED if wider else Verdict.CONFIRMED)
        assert verdict(outer + beyond) is Verdict.REFUTED


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
        ([0.5, 2.0], Verdict.QUALIFIED, Verdict.CONFIRMED),
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
    # By default they share a check's level.
    assert from_p_values([0.5 * LEVEL], [0.5]) is Verdict.CONFIRMED
    assert from_p_values([0.6 * LEVEL], [0.5 * LEVEL]) is Verdict.REFUTED
    assert from_p_values([0.6 * LEVEL], [0.6 * LEVEL]) is Verdict.INCONCLUSIVE


def test_tests_of_shares_share_a_level():
    def judged(smallest):
        return shares_hold({"one": smallest, "two": 0.5, "three": 0.9, "four": 1.0}, 1234, "a null", "3%", 0.1)

    assert judged(0.025).verdict is Verdict.CONFIRMED
    assert judged(0.0249).verdict is Verdict.REFUTED
    outcome = judged(0.024)
    assert outcome.finding == "smallest of 4 p-values 0.024 (one; 1,234 runs)"
    assert outcome.design == Design("a null", 0.1, "a share of runs is off by 3%", POWER, 1234)
    assert shares_hold({"one": 1.0}, 5, "a null", "3%").design.level == LEVEL
    assert outcome.evidence == {
        "runs": 1234,
        "level": 0.1,
        "p_values": {"one": 0.024, "two": 0.5, "three": 0.9, "four": 1.0},
    }


def test_two_settings():
    assert both(Verdict.CONFIRMED, Verdict.REFUTED) is Verdict.QUALIFIED
    assert both(Verdict.REFUTED, Verdict.REFUTED) is Verdict.REFUTED
    assert both(Verdict.REFUTED, Verdict.CONFIRMED) is Verdict.QUALIFIED
    for other in (Verdict.CONFIRMED, Verdict.REFUTED):
        assert both(other, Verdict.INCONCLUSIVE) is both(Verdict.INCONCLUSIVE, other) is Verdict.INCONCLUSIVE


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
    for low, high in ((6.2349, 6.24), (6.24, 6.2451)):
        assert not prints(Enclosure(low, high, arb(low).union(arb(high))), "6.24")
        assert not prints(arb(low).union(arb(high)), "6.24")
    for end, outside in ((2.5, math.nextafter(2.5, 2.0)), (3.5, math.nextafter(3.5, 4.0))):
        for kind in (float, arb, Fraction, lambda x: (min(x, 3.0), max(x, 3.0)), lambda x: Enclosure(x, x, arb(x))):
            assert prints(kind(end), "3")
            assert not prints(kind(outside), "3")
    assert prints(arb("1.5", "0.01"), "1.5")
    assert not prints(arb("1.5", "0.1"), "1.5")


def test_a_ball_is_proven_to_print():
    agreed, middle = proven(lambda: arb(2).sqrt(), "1.414")
    assert agreed
    assert middle == 2**0.5
    assert not proven(lambda: arb(2).sqrt(), "1.415")[0]
