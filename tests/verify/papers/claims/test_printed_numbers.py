"""Every claim that prints a number: the number occurs in its statement, and another one changes the verdict."""

import re
from fractions import Fraction

import pytest

from canaryproof.verify.papers.check.results import Context, Effort, Verdict
from canaryproof.verify.papers.check.verdicts import Printed, rounding
from canaryproof.verify.papers.claims import CHECKS, simulated_tables

CONTEXT = Context(Effort.QUICK, 0)
CLAIMS = [check for check in (*CHECKS, *simulated_tables.CHECKS) if isinstance(check.judge, Printed)]
# The numbers that are confirmed in place of refuted ones which have no value as evidence.
RIGHT = {
    "final.section5.2.1.size": "383k",
    "submission.appendixD.data": "383k",
    "submission.appendixE.plots": "4",
    "canife.appendixB.shakespeare.classes": "80",
}
WORDS = {"two": 2, "three": 3, "five": 5, "ten": 10}
POWER = re.compile(r"([\d.]+) × 10([⁻⁰¹²³⁴-⁹]+)")
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def numbers(statement):
    """All numbers of a statement: digits, powers of ten, shares in per cent, and words."""
    text = POWER.sub(lambda match: f"{match[1]}e{match[2].translate(SUPERSCRIPTS)}", statement.replace(",", ""))
    for printed, unit in re.findall(r"(\d+(?:\.\d+)?(?:e-?\d+)?k?)(%?)", text):
        value = sum(rounding(printed)) / 2
        yield from (value, value / 100) if unit else (value,)
    yield from (Fraction(value) for word, value in WORDS.items() if re.search(rf"\b{word}\b", text.lower()))


def altered(printed):
    """Two thirds more, with as many digits."""
    digits, exponent = (printed[:-1], "k") if printed.endswith("k") else (printed, "")
    mantissa, e, power = digits.partition("e")
    places = len(mantissa.partition(".")[2])
    return f"{float(mantissa) * 5 / 3:.{places}f}{e}{power}{exponent}"


@pytest.mark.parametrize("check", CLAIMS, ids=lambda check: check.id)
def test_the_printed_number_occurs_in_the_statement(check):
    assert sum(rounding(check.judge.number)) / 2 in set(numbers(check.statement))


@pytest.mark.parametrize("check", CLAIMS, ids=lambda check: check.id)
def test_another_number_changes_the_verdict(check):
    rule = check.judge
    verdict = rule(CONTEXT).verdict
    other = rule.judge(altered(rule.number)).verdict
    if verdict is not Verdict.REFUTED:
        assert other is not verdict
        return
    right = RIGHT.get(check.id) or f"{rule(CONTEXT).evidence['rule']['value']:.3e}"
    assert rule.judge(right).verdict is Verdict.CONFIRMED
