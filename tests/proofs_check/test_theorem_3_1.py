import json
from fractions import Fraction

import mpmath
import pytest
import sympy
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st
from sympy import Rational, cos, pi, sin

from canaryproof.kernels.certified import null_cosine
from canaryproof.proofs_check import theorem_3_1
from canaryproof.proofs_check.displayed_lines import Kind, displayed, kind_of
from canaryproof.proofs_check.sphere_moments import D
from canaryproof.proofs_check.theorem_3_1 import TAU, THETA, area, boundary, even_moment, exact_density, same
from canaryproof.verify.papers.check.results import Context, Effort


@pytest.mark.deep(every=2)
@pytest.mark.parametrize(
    ("kind", "judge"),
    [
        (Kind.WRONG_TERM, lambda: theorem_3_1._judge_area(lambda d: 2 * pi ** (d / 2) / sympy.gamma((d + 1) / 2))),
        (Kind.WRONG_TERM, lambda: theorem_3_1._judge_boundary(lambda d: area(d - 1) * sin(THETA) ** (d - 1))),
        (Kind.WRONG_TERM, lambda: theorem_3_1._judge_circle(pi * sin(THETA))),
        (Kind.FALSE, lambda: theorem_3_1._judge_shell(1 - cos(THETA))),
        (Kind.FALSE, lambda: theorem_3_1._judge_volume_element(lambda d: area(d) * sin(THETA) ** (d - 2))),
        (Kind.FALSE, lambda: theorem_3_1._judge_volume_element(lambda d: boundary(d) * sin(THETA) ** 2)),
        (Kind.FALSE, lambda: theorem_3_1._judge_rate(1 / cos(THETA))),
        (Kind.FALSE, lambda: theorem_3_1._judge_revolution(pi * sin(THETA) ** 2)),
        (Kind.FALSE, lambda: theorem_3_1._judge_radius(sympy.Integer(1))),
        (Kind.FALSE, lambda: theorem_3_1._judge_cap_measure(Rational(3, 2))),
    ],
)
def test_seeded_fault_in_a_measure_is_found(kind, judge):
    assert kind_of(judge()) is kind


def test_undecided_equality_is_an_error():
    x = sympy.Symbol("x", positive=True)
    assert same(x**2 + 2 * x + 1, (1 + x) ** 2, x, 1)
    assert not same(x**2 + 1, (1 + x) ** 2, x, 1)
    with pytest.raises(ArithmeticError):
        same(x, x * (1 + Rational(1, 10**40)), x, 1)


@pytest.mark.parametrize(
    "judge",
    [
        lambda: theorem_3_1._judge_normalisation(lambda d: exact_density(d + 2)),
        lambda: theorem_3_1._judge_beta(lambda d: exact_density(d + 1)),
        lambda: theorem_3_1._judge_beta_square(lambda d: 2 * exact_density(d)),
        lambda: theorem_3_1.judge_even_moments(lambda p: even_moment(p) * (D + p) / D),
        lambda: theorem_3_1.judge_odd_moments(lambda d: exact_density(d) * (2 + TAU)),
        lambda: theorem_3_1._judge_kernel(0, lambda x, d: null_cosine.pdf(x, d + 1)),
        lambda: theorem_3_1._judge_kernel(1, null_cosine.sf),
    ],
)
def test_seeded_fault_in_the_law_is_found(judge):
    assert kind_of(judge()) is Kind.FALSE


@given(st.integers(2, 300), st.fractions(Fraction(-99, 100), Fraction(99, 100), max_denominator=1000))
def test_density_agrees_with_mpmath_and_kernel(dim, x):
    value = exact_density(sympy.Integer(dim)).subs(TAU, Rational(x.numerator, x.denominator))
    with mpmath.workdps(40):
        number = mpmath.mpf(x.numerator) / x.denominator
        a = mpmath.mpf(dim - 1) / 2
        expected = (1 - number**2) ** (a - 1) / mpmath.beta(a, 0.5)
        assert mpmath.almosteq(mpmath.mpmathify(sympy.N(value, 40)), expected, rel_eps=mpmath.mpf(10) ** -30)
        enclosure = null_cosine.pdf(x, dim)
        assert enclosure.lo <= expected <= enclosure.hi


@pytest.mark.parametrize("dim", [2, 3, 4, 7, 20])
def test_cdf_closed_form_agrees_with_quadrature(dim):
    x = Fraction(2, 5)
    value = theorem_3_1._closed_form(fmpq(2, 5), dim)[1]
    density = sympy.lambdify(TAU, exact_density(sympy.Integer(dim)), "mpmath")
    above_zero = mpmath.quad(density, [0, mpmath.mpf(x.numerator) / x.denominator])
    assert float(arb(value)) == pytest.approx(float(0.5 + above_zero), abs=1e-13)


@pytest.mark.parametrize("dim", [2, 3, 8])
@pytest.mark.parametrize("pairs", [1, 2, 6])
def test_even_moment_agrees_with_quadrature(dim, pairs):
    # In terms of the angle, as the cosine's density is unbounded at d = 2.
    angle = [
        mpmath.quad(lambda t, p=p: mpmath.cos(t) ** p * mpmath.sin(t) ** (dim - 2), [0, mpmath.pi])
        for p in (0, 2 * pairs)
    ]
    assert float(angle[1] / angle[0]) == pytest.approx(float(even_moment(pairs).subs(D, dim)), rel=1e-12)


CONTEXT = Context(Effort.QUICK, 0)

HYPOTHESES = {
    "final.theorem-3.1.density",
    "final.theorem-3.1.angle-density.1",
    "v1.theorem-3.1.unstable",
}


@pytest.mark.parametrize("line", theorem_3_1.LINES, ids=lambda line: line.id)
def test_line_fares_as_expected(line):
    judgement = line.judge(CONTEXT)
    assert kind_of(judgement) is (Kind.HYPOTHESIS if line.id in HYPOTHESES else Kind.EXACT)
    assert judgement.finding.endswith(".")
    json.dumps(dict(judgement.evidence))


def test_each_printed_row_has_a_line():
    rows = list(filter(None, map(displayed, theorem_3_1.LINES)))
    assert sorted(rows) == sorted(
        (name, row) for name, count in theorem_3_1.DISPLAYS.items() for row in range(1, count + 1)
    )
    assert len({line.id for line in theorem_3_1.LINES}) == len(theorem_3_1.LINES)


def changed(rows, row, factor):
    return (*rows[: row - 1], lambda d: factor * rows[row - 1](d), *rows[row:])


@pytest.mark.parametrize("x", [Fraction(1, 10), Fraction(3, 5)])
def test_cancellation_agrees_with_quadrature(x):
    # The sums of the terms and of their sizes are the integrals of (1 − t²)^m and (1 + t²)^m, m = (d − 3)/2.
    sizes, total = (mpmath.quad(lambda t, s=s: (1 + s * t**2) ** 49, [0, float(x)]) for s in (1, -1))
    assert theorem_3_1._cancellation(x, 101) == pytest.approx(float(sizes / total), rel=1e-12)
