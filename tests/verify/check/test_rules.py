import math
import re

import pytest

from canaryproof.verify.audit import instruments, plan, review, rounds_plan
from canaryproof.verify.check import rules
from canaryproof.verify.check.rules import Rule

RULES = {
    f"{module.__name__.rpartition('.')[2]}.{name}": rule
    for module in (rules, plan, rounds_plan, review, instruments)
    for name, rule in vars(module).items()
    if isinstance(rule, Rule) and len(re.findall(r"(?:from|between) [\d.e+,]+ (?:to|and) [\d.e+,]+", rule.words)) == 1
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
        (Rule("lie strictly between 0 and 1", 0.0, 1.0, open=True), (1e-300, 0.5), (0.0, 1.0)),
    ],
)
def test_a_rule_keeps_or_excludes_its_ends(rule, inside, outside):
    for value in inside:
        assert rule.number("name", value) == value
    for value in (*outside, True, "1", None):
        with pytest.raises(ValueError, match=r"^name: must "):
            rule.number("name", value)


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
