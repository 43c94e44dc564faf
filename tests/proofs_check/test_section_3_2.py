import json
import math
from fractions import Fraction
from functools import partial

import pytest
import sympy
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from scipy.stats import norm

from canaryproof.proofs_check import section_3_2
from canaryproof.proofs_check.displayed_lines import Kind, displayed, kind_of
from canaryproof.proofs_check.section_3_2 import (
    COEFFICIENTS,
    DIM,
    EPSILON,
    FIRST,
    LOG_DELTA,
    SECOND,
    SIGMA,
    Gaussian,
    balle_wang,
    balls,
    difference,
    implication,
    probabilities,
    scaling,
)
from canaryproof.verify.papers.check.results import Context, Effort

CONTEXT = Context(Effort.QUICK, 0)

NOT_EXACT = {
    "final.section-3.2.log-delta.2": Kind.HYPOTHESIS,
    "final.section-3.2.line-search": Kind.HYPOTHESIS,
    "final.section-3.2.invalid-bound": Kind.HYPOTHESIS,
}
LOSS = section_3_2.loss(FIRST, SECOND)


@pytest.mark.parametrize("line", section_3_2.LINES, ids=lambda line: line.id)
def test_every_line_is_judged_as_found(line):
    judgement = line.judge(CONTEXT)
    assert kind_of(judgement) is NOT_EXACT.get(line.id, Kind.EXACT)
    assert judgement.finding
    json.dumps(dict(judgement.evidence))


def test_every_printed_line_has_a_line():
    lines = section_3_2.LINES
    assert len({line.id for line in lines}) == len(lines)
    rows = sorted(filter(None, map(displayed, lines)))
    assert rows == sorted((name, row + 1) for name, count in section_3_2.DISPLAYS.items() for row in range(count))


@pytest.mark.parametrize("row", range(4))
def test_a_changed_log_ratio_is_found(row):
    changed = section_3_2.LOG_RATIO[row].subs(SECOND.deviation, 2 * SECOND.deviation)
    assert kind_of(section_3_2.identity(changed, LOSS)) is Kind.FALSE


@pytest.mark.parametrize("row", range(3))
def test_a_coefficient_with_the_wrong_sign_is_found(row):
    assert kind_of(section_3_2.identity(-COEFFICIENTS[row], COEFFICIENTS[row])) is Kind.FALSE


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
    assert kind_of(judge()) is Kind.FALSE


def test_the_hypotheses_named_are_enough():
    # With e^(2ε) in place of e^ε the difference does become negative.
    assert kind_of(section_3_2.invalid_bound(2)) is Kind.EXACT


def test_two_signs_do_not_decide_for_equal_deviations():
    assert kind_of(section_3_2.cases(equal_deviations=True)) is Kind.HYPOTHESIS


def test_a_changed_weight_is_found():
    assert kind_of(implication(FIRST, SECOND, sympy.exp(-EPSILON))) is Kind.FALSE


def test_a_changed_factor_is_found():
    deviation = 1 / sympy.sqrt(DIM)
    cosines = Gaussian(0, deviation), Gaussian(deviation / SIGMA, deviation)
    assert kind_of(scaling((Gaussian(0, SIGMA), Gaussian(1, SIGMA)), 1 / SIGMA, cosines)) is Kind.FALSE


RATIONALS = st.fractions(Fraction(1, 4), 4, max_denominator=20)


def half_lines_and_intervals():
    return st.tuples(st.floats(-20, 20), st.floats(0.01, 20) | st.just(math.inf))


def test_a_changed_recipe_is_found():
    assert kind_of(balle_wang(2)) is Kind.FALSE


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("first", "epsilon"),
    [(Gaussian(1, 1), 1), (Gaussian(1, 2), 1), (Gaussian(-2, Fraction(1, 2)), 1), (Gaussian(-1, 1), Fraction(1, 2))],
)
def test_recipe_agrees_with_quadrature(first, epsilon):
    second = Gaussian(0, 1)
    above1, above2, _ = balls(lambda: probabilities(epsilon, first, second))

    def excess(x):
        return max(mp.npdf(x, *map(float, first)) - mp.exp(float(epsilon)) * mp.npdf(x), 0)

    # The integrand has corners, of which short pieces leave little.
    integral = mp.quad(excess, [mp.mpf(i) / 4 for i in range(-60, 61)])
    assert float(above1) - math.exp(epsilon) * float(above2) == pytest.approx(float(integral), abs=2e-4)


@given(RATIONALS, RATIONALS, st.fractions(0, 3, max_denominator=20), half_lines_and_intervals())
def test_no_event_asks_for_more(distance, deviation, epsilon, event):
    first, second = Gaussian(distance, deviation), Gaussian(Fraction(0), Fraction(1))
    above1, above2, _ = balls(lambda: probabilities(epsilon, first, second))
    most = float(above1) - math.exp(epsilon) * float(above2)
    low, width = event
    inside = [norm.cdf(low + width, *map(float, law)) - norm.cdf(low, *map(float, law)) for law in (first, second)]
    assert inside[0] - math.exp(epsilon) * inside[1] <= most + 1e-12
    assert most >= -1e-12


@given(RATIONALS, RATIONALS.filter(lambda s: s != 1), st.fractions(Fraction(1, 10), 3, max_denominator=20))
def test_slope_is_that_of_a_difference_quotient(distance, deviation, epsilon):
    first, second, step = Gaussian(distance, deviation), Gaussian(Fraction(0), Fraction(1)), Fraction(1, 10**20)

    def slopes():
        before, after = (difference(epsilon + way * step, first, second) for way in (-1, 1))
        _, above2, case = probabilities(epsilon, first, second)
        weight = arb(fmpq(epsilon.numerator, epsilon.denominator)).exp()
        return float((after - before) / (2 * step.numerator) * step.denominator), -float(weight * above2), case

    quotient, slope, case = balls(slopes)
    if case == "never":
        assert slope == 0
    else:
        assert quotient == pytest.approx(slope, rel=1e-6, abs=1e-9)
