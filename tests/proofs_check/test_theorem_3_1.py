import json
from fractions import Fraction

import mpmath
import pytest
from sympy import Rational, sin

from canaryproof.proofs_check import theorem_3_1 as theorem
from canaryproof.proofs_check.lines import Kind, displayed, kind_of
from canaryproof.proofs_check.sphere_moments import D
from canaryproof.verify.check.results import Context, Level

CONTEXT = Context(Level.QUICK, 0)

HYPOTHESES = {
    "final.theorem-3.1.density",
    "final.theorem-3.1.angle-density.1",
    "v1.theorem-3.1.proportional",
    "v1.theorem-3.1.unstable",
    "review.theorem-3.1.cap-integral",
}


@pytest.mark.parametrize("line", theorem.LINES, ids=lambda line: line.id)
def test_line_fares_as_expected(line):
    judgement = line.judge(CONTEXT)
    assert kind_of(judgement) is (Kind.HYPOTHESIS if line.id in HYPOTHESES else Kind.EXACT)
    assert judgement.finding.endswith(".")
    json.dumps(dict(judgement.evidence))


def test_each_printed_row_has_a_line():
    rows = list(filter(None, map(displayed, theorem.LINES)))
    assert sorted(rows) == sorted(
        (name, row) for name, count in theorem.DISPLAYS.items() for row in range(1, count + 1)
    )
    assert len({line.id for line in theorem.LINES}) == len(theorem.LINES)


def changed(rows, row, factor):
    return (*rows[: row - 1], lambda d: factor * rows[row - 1](d), *rows[row:])


@pytest.mark.parametrize(
    ("kind", "judge"),
    [
        (Kind.FALSE, lambda: theorem._theorem((lambda d: theorem._THEOREM[0](d + 1),))),
        (Kind.WRONG_TERM, lambda: theorem._angle(2, changed(theorem._ANGLE_ROWS, 2, 2))),
        (Kind.FALSE, lambda: theorem._angle(3, changed(theorem._ANGLE_ROWS, 3, sin(theorem.THETA)))),
        (Kind.WRONG_TERM, lambda: theorem._cosine(3, changed(theorem._COSINE_ROWS, 3, 1 - theorem.TAU**2))),
        (Kind.FALSE, lambda: theorem._cosine(4, changed(theorem._COSINE_ROWS, 4, Rational(1, 2)))),
        (Kind.FALSE, lambda: theorem._judge_hypergeometric((Rational(1, 2), (2 - D) / 2, Rational(3, 2)))),
        (Kind.FALSE, lambda: theorem._judge_proportional((1 - theorem.TAU**2) ** ((D - 2) / 2))),
    ],
)
def test_seeded_fault_is_found(kind, judge):
    assert kind_of(judge()) is kind


@pytest.mark.parametrize("x", [Fraction(1, 10), Fraction(3, 5)])
def test_cancellation_agrees_with_quadrature(x):
    # The sums of the terms and of their sizes are the integrals of (1 − t²)^m and (1 + t²)^m, m = (d − 3)/2.
    sizes, total = (mpmath.quad(lambda t, s=s: (1 + s * t**2) ** 49, [0, float(x)]) for s in (1, -1))
    assert theorem._cancellation(x, 101) == pytest.approx(float(sizes / total), rel=1e-12)
