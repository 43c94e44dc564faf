import math
import re
from decimal import Decimal

import numpy as np
import pytest

from canaryproof.kernels.refusals import shorten
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.answer import instruments, plan, review, rounds_plan
from canaryproof.verify.audit.rules import NumberRange
from canaryproof.verify.papers.check.results import Effort

RULES = {
    f"{module.__name__.rpartition('.')[2]}.{name}": rule
    for module in (rules, plan, rounds_plan, review, instruments)
    for name, rule in vars(module).items()
    if isinstance(rule, NumberRange)
    and len(re.findall(r"(?:from|between) [\d.e+,]+ (?:to|and) [\d.e+,]+", rule.words)) == 1
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_the_range_that_it_keeps(name):
    rule = RULES[name]
    low, high = (float(end.replace(",", "")) for end in re.findall(r"\d[\d.e+,]*", rule.words)[:2])
    assert rule.low == pytest.approx(low, abs=1e-8)
    assert rule.high == pytest.approx(high, rel=1e-8)


def test_rules_have_ranges():
    assert {"rules.CLAIM", "rules.NOISE_MULTIPLIER", "rules.DIM", "rules.CONFIDENCE", "plan._ROUNDS"} <= RULES.keys()


@pytest.mark.parametrize(
    ("rule", "inside", "outside"),
    [
        (rules.DELTA, (2.3e-308, 0.5, 1.0 - 1e-16), (0.0, 2.2e-308, 1.0, -0.1, math.nan)),
        (rules.DELTA_OR_ZERO, (0.0, 0.5, 1.0 - 1e-16), (-1e-300, 1.0, 1.5, math.nan)),
        (rules.CONFIDENCE, (1e-9, 0.5, 1.0 - 1e-9), (0.0, 9e-10, 1.0 - 9e-10, 1.0)),
        # True would be 1.
        (rules.CLAIM, (0.001, 1, 1e4), (0.00099, 10001.0)),
        (rules.DIM, (2, 3.0, 10**12), (1, 2.5, 10**12 + 1, math.inf)),
        (rules.NOISE_MULTIPLIER, (0.01, 1e6), (0.0099, 1.01e6)),
        (NumberRange("lie strictly between 0 and 1", 0.0, 1.0, open=True), (1e-300, 0.5), (0.0, 1.0)),
    ],
)
def test_a_rule_keeps_or_excludes_its_ends(rule, inside, outside):
    for value in inside:
        assert rule.number("name", value) == value
    for value in (*outside, True, "1", None):
        with pytest.raises(ValueError, match=r"^name: must "):
            rule.number("name", value)


@pytest.mark.parametrize(
    ("take", "value", "message"),
    [
        (rules.whole(2, 9), 10, "must be a whole number from 2 to 9, not 10"),
        (rules.number(0.5, 9.0), 10.0, "must be a number from 0.5 to 9, not 10.0"),
        (rules.number(0.5, 9.0, infinite=True), "x", "must be a number from 0.5 to 9 or inf, not 'x'"),
        (rules.one_of("a", "b"), "c", "must be one of a, b, not 'c'"),
        (rules.line, 1, "must be a line of at most 1000 characters, not 1"),
        # What is shown is in one line, and short.
        (rules.line, np.array([[1], [2]]), "must be a line of at most 1000 characters, not array([[1], [2]])"),
        (rules.line, ["x" * 100], f"must be a line of at most 1000 characters, not ['{'x' * 58}..."),
        (lambda value: rules.DIM.number("dim", value), 1, "dim: must be a whole number from 2 to 1e12, not 1"),
        *(
            (lambda value, rule=rule: rule.number("x", value), value, f"x: must {rule.words}, not {str(value)[:60]}...")
            for rule in (rules.DIM, rules.CLAIM)
            for value in (10**400, -(10**400))
        ),
        (lambda value: rules.choice("method", value, ("a", "b")), "c", "method: must be one of a, b, not 'c'"),
        (lambda value: rules.bounds(value, ("a", "b")), "a", "bounds: must be a list of names, not the string 'a'"),
        (lambda value: rules.bounds(value, ("a", "b")), 1, "bounds: must be a list of names, not 1"),
        (
            lambda value: rules.bounds(value, iter("ab"), "methods"),
            iter("ac"),
            "methods: there is no bound 'c'; there are a, b",
        ),
    ],
)
def test_a_refusal_says_the_rule_and_the_value(take, value, message):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as error:
        take(value)
    assert str(error.value) == message


def test_names_of_choices_are_returned_as_they_are_given():
    assert rules.bounds(iter("ba"), iter("abc")) == ("b", "a")
    assert rules.bounds((), ("a",)) == ()
    assert rules.choice("level", "quick", Effort) == "quick"
    chosen = rules.choice("level", Effort.FULL, Effort)
    assert (chosen, type(chosen)) == ("full", str)


def test_a_text_is_shortened_where_it_is_longer_than_a_line():
    assert shorten("x" * 60) == "x" * 60
    assert shorten("x" * 61) == "x" * 60 + "..."
    assert shorten("abcde", 3) == "abc..."


def test_a_number_has_the_type_of_its_rule():
    for rule, kind in ((rules.DIM, int), (rules.CLAIM, float)):
        for value in (7, 7.0, np.int64(7), np.float32(7.0), Decimal(7)):
            found = rule.number("name", value)
            assert (found, type(found)) == (7, kind)
    assert type(rules.number(0.0, 9.0)(7)) is float


@pytest.mark.parametrize(
    ("take", "inside", "outside"),
    [
        (rules.whole(2, 9), (2, 9), (1, 10, 2.0, True, "2")),
        (rules.number(0.0, 1.5), (0, 0.0, 1.5), (-1e-300, math.nextafter(1.5, 2.0), math.inf, math.nan, True, "1")),
        (rules.number(0.0, 1.5, infinite=True), (1.5, math.inf), (1.6, -math.inf, math.nan)),
        (rules.line, ("", "x" * 1000), ("x" * 1001, "two\nlines", 1)),
        (rules.one_of("a", "b"), ("a", "b"), ("c", "", "ab", None)),
    ],
)
def test_a_field_takes_both_ends_of_its_range(take, inside, outside):
    for value in inside:
        assert take(value) == value
    for value in outside:
        with pytest.raises(ValueError, match=r"^must be "):
            take(value)
