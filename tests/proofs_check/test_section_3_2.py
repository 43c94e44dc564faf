import json
from functools import partial

import pytest
import sympy

from canaryproof.proofs_check import section_3_2
from canaryproof.proofs_check.lines import Kind
from canaryproof.proofs_check.section_3_2 import COEFFICIENTS, EPSILON, FIRST, LOG_DELTA, SECOND

NOT_EXACT = {
    "final.section-3.2.cases": Kind.HYPOTHESIS,
    "final.section-3.2.log-delta.2": Kind.HYPOTHESIS,
    "final.section-3.2.line-search": Kind.HYPOTHESIS,
    "final.section-3.2.invalid-bound": Kind.FALSE,
}
LOSS = section_3_2.loss(FIRST, SECOND)


@pytest.mark.parametrize("line", section_3_2.LINES, ids=lambda line: line.id)
def test_every_line_is_judged_as_found(line):
    judgement = line.judge()
    assert judgement.kind is NOT_EXACT.get(line.id, Kind.EXACT)
    assert judgement.finding
    json.dumps(dict(judgement.evidence))


def test_every_printed_line_has_a_line():
    lines = section_3_2.LINES
    assert len({line.id for line in lines}) == len(lines)
    rows = sorted((line.display, line.row) for line in lines if line.display)
    assert rows == sorted((name, row + 1) for name, count in section_3_2.DISPLAYS.items() for row in range(count))


@pytest.mark.parametrize("row", range(4))
def test_a_changed_log_ratio_is_found(row):
    changed = section_3_2.LOG_RATIO[row].subs(SECOND.deviation, 2 * SECOND.deviation)
    assert section_3_2.identity(changed, LOSS).kind is Kind.FALSE


@pytest.mark.parametrize("row", range(3))
def test_a_coefficient_with_the_wrong_sign_is_found(row):
    assert section_3_2.identity(-COEFFICIENTS[row], COEFFICIENTS[row]).kind is Kind.FALSE


@pytest.mark.parametrize(
    "judge",
    [
        partial(section_3_2.log_bound, sympy.S.One),
        partial(section_3_2.two_tails, frozenset({"below"})),
        partial(section_3_2.two_tails, frozenset({"between"})),
        partial(section_3_2.log_domain, LOG_DELTA.subs(EPSILON, 2 * EPSILON)),
    ],
)
def test_a_changed_statement_is_found(judge):
    assert judge().kind is Kind.FALSE


def test_the_hypotheses_named_are_enough():
    assert section_3_2.cases(by_sign_of_b=True).kind is Kind.EXACT
    # With e^(2ε) in place of e^ε the difference does become negative.
    assert section_3_2.invalid_bound(2).kind is Kind.EXACT
