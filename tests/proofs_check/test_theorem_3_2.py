import json

import pytest
import sympy
from sympy import Rational, exp, gamma, pi, sqrt

from canaryproof.proofs_check import theorem_3_2
from canaryproof.proofs_check.displayed_lines import Kind, displayed, kind_of
from canaryproof.proofs_check.normal_distance import T
from canaryproof.proofs_check.sphere_moments import D
from canaryproof.verify.papers.check.results import Context, Effort

CONTEXT = Context(Effort.QUICK, 0)

NOT_EXACT = {
    "final.theorem-3.2.distribution-function": Kind.HYPOTHESIS,
    "final.theorem-3.2.null-hypothesis": Kind.HYPOTHESIS,
    "review.theorem-3.2.answer-scheffe": Kind.HYPOTHESIS,
}
GAMMAS = gamma(D / 2) / gamma((D - 1) / 2)


@pytest.mark.parametrize("line", theorem_3_2.LINES, ids=lambda line: line.id)
def test_verdicts(line):
    judgement = line.judge(CONTEXT)
    assert kind_of(judgement) is NOT_EXACT.get(line.id, Kind.EXACT)
    assert judgement.finding
    json.dumps(dict(judgement.evidence), allow_nan=False)


def test_every_printed_line_has_a_line():
    rows = list(filter(None, map(displayed, theorem_3_2.LINES)))
    assert sorted(rows) == sorted(
        (name, row + 1) for name, count in theorem_3_2.DISPLAYS.items() for row in range(count)
    )
    assert len({line.id for line in theorem_3_2.LINES}) == len(theorem_3_2.LINES)


@pytest.mark.deep(beyond=3)
@pytest.mark.parametrize(
    ("printed", "kind"),
    [
        (GAMMAS / sqrt(pi * D) * (1 - T**2 / D) ** ((D - 3) / 2), Kind.EXACT),
        (GAMMAS / sqrt(pi * D) * (1 - T**2 / D) ** ((D - 2) / 2), Kind.LEADING_ORDER),
        (GAMMAS / sqrt(pi * (D - 1)) * (1 - T**2 / D) ** ((D - 3) / 2), Kind.LEADING_ORDER),
        (GAMMAS / sqrt(pi) * (1 - T**2 / D) ** ((D - 3) / 2), Kind.FALSE),
        (GAMMAS / sqrt(pi * D) * (1 - T**2 / D) ** (D - 3), Kind.FALSE),
    ],
)
def test_altered_densities(printed, kind):
    assert kind_of(theorem_3_2.judge_density(printed)) is kind


def test_altered_limits_fail():
    first, second, third = GAMMAS / sqrt(pi * D), (1 - T**2 / D) ** (D / 2), (1 - T**2 / D) ** Rational(-3, 2)
    assert kind_of(theorem_3_2.judge_limit_of_product((first, second, third))) is Kind.EXACT
    assert kind_of(theorem_3_2.judge_limit_of_product((first, second, 1 / third))) is Kind.FALSE
    values = [1 / sqrt(2 * pi), exp(-(T**2) / 2), sympy.Integer(1)]
    assert kind_of(theorem_3_2.judge_limits(values)) is Kind.EXACT
    for place, wrong in enumerate((1 / sqrt(pi), exp(-(T**2)), exp(T))):
        altered = [wrong if i == place else value for i, value in enumerate(values)]
        assert kind_of(theorem_3_2.judge_limits(altered)) is Kind.FALSE
    assert kind_of(theorem_3_2.judge_gamma_ratio(sqrt(D))) is Kind.FALSE
    assert kind_of(theorem_3_2.judge_gamma_ratio(sqrt(D / 2 - 3))) is Kind.EXACT
    assert kind_of(theorem_3_2.judge_convergence(2)) is Kind.FALSE
