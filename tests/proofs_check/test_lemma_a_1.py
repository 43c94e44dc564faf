import json

import mpmath
import pytest
import sympy
from sympy import Rational, sqrt

from canaryproof.proofs_check import lemma_a_1 as lemma
from canaryproof.proofs_check.displayed_lines import Kind, displayed, kind_of
from canaryproof.proofs_check.sphere_moments import D
from canaryproof.verify.papers.check.results import Context, Effort

CONTEXT = Context(Effort.QUICK, 0)

LEADING = {
    "v1.lemma-a.1.length-mean",
    "v1.lemma-a.1.length-variance",
    "v1.lemma-a.1.scaled-mean",
    "v1.lemma-a.1.scaled-variance",
}


@pytest.mark.parametrize("line", lemma.LINES, ids=lambda line: line.id)
def test_line_fares_as_expected(line):
    judgement = line.judge(CONTEXT)
    assert kind_of(judgement) is (Kind.LEADING_ORDER if line.id in LEADING else Kind.EXACT)
    assert judgement.finding.endswith(".")
    json.dumps(dict(judgement.evidence))


def test_each_printed_row_has_a_line():
    assert lemma.DISPLAYS == {}
    assert not any(map(displayed, lemma.LINES))


@pytest.mark.parametrize(
    ("kind", "judge"),
    [
        (Kind.FALSE, lambda: lemma._judge_variance(1 / (D + 1))),
        (Kind.FALSE, lambda: lemma._judge_mean(1)),
        (Kind.FALSE, lambda: lemma._judge_sum(D)),
        (Kind.FALSE, lambda: lemma._judge_share(2 / D)),
        (Kind.FALSE, lambda: lemma._judge_chi(lambda d: lemma._chi_density(d + 1))),
        (Kind.WRONG_TERM, lambda: lemma._length_mean(sqrt(2 * D))),
        (Kind.WRONG_TERM, lambda: lemma._length_variance(sympy.Integer(1))),
        (Kind.WRONG_TERM, lambda: lemma._scaled_mean(sympy.Integer(2))),
        (Kind.WRONG_TERM, lambda: lemma._scaled_variance(1 / D)),
        (Kind.FALSE, lambda: lemma._judge_unit_sphere(sympy.Integer(2))),
        (Kind.WRONG_TERM, lambda: lemma._judge_coordinate(2 / D)),
        (Kind.FALSE, lambda: lemma._judge_cosine(lambda p: lemma.even_moment(p) * 2)),
    ],
)
def test_seeded_fault_is_found(kind, judge):
    assert kind_of(judge()) is kind


def test_exact_moments_would_be_judged_exact():
    assert kind_of(lemma._judge_cosine(lemma._gaussian_moment)) is Kind.EXACT


def test_series_of_the_mean_length_agrees_with_mpmath():
    with mpmath.workdps(50):
        for dim in (100, 1000, 10**6):
            number = mpmath.mpf(dim)
            exact = mpmath.sqrt(2 / number) * mpmath.gammaprod([(number + 1) / 2], [number / 2])
            series = mpmath.mpmathify(sympy.N(lemma.mean_length_series().subs(lemma._INVERSE, Rational(1, dim)), 50))
            # The next term is −399/(8192 d⁵).
            assert (exact - series) * number**5 == pytest.approx(-399 / 8192, rel=4 / dim)
