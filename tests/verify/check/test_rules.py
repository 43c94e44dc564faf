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
