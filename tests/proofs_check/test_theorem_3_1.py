import json
from fractions import Fraction

import mpmath
import pytest
import sympy
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Rational, cos, pi, sin

from canaryproof.kernels.certified import null_cosine
from canaryproof.proofs_check import theorem_3_1 as theorem
from canaryproof.proofs_check.lines import Kind
from canaryproof.proofs_check.sphere_moments import D

HYPOTHESES = {
    "final.theorem-3.1.density",
    "final.theorem-3.1.angle-density.1",
    "v1.theorem-3.1.proportional",
    "v1.theorem-3.1.unstable",
    "review.theorem-3.1.cap-integral",
}


@pytest.mark.parametrize("line", theorem.LINES, ids=lambda line: line.id)
def test_line_fares_as_expected(line):
    judgement = line.judge()
    assert judgement.kind is (Kind.HYPOTHESIS if line.id in HYPOTHESES else Kind.EXACT)
    assert judgement.finding.endswith(".")
    json.dumps(dict(judgement.evidence))


def test_each_printed_row_has_a_line():
    rows = [(line.display, line.row) for line in theorem.LINES if line.display]
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
        (Kind.WRONG_TERM, lambda: theorem._judge_area(lambda d: 2 * pi ** (d / 2) / sympy.gamma((d + 1) / 2))),
        (
            Kind.WRONG_TERM,
            lambda: theorem._judge_boundary(lambda d: theorem.area(d - 1) * sin(theorem.THETA) ** (d - 1)),
        ),
        (Kind.WRONG_TERM, lambda: theorem._judge_circle(pi * sin(theorem.THETA))),
        (Kind.FALSE, lambda: theorem._judge_hypergeometric((Rational(1, 2), (2 - D) / 2, Rational(3, 2)))),
        (Kind.FALSE, lambda: theorem._judge_proportional((1 - theorem.TAU**2) ** ((D - 2) / 2))),
        (Kind.FALSE, lambda: theorem._judge_shell(1 - cos(theorem.THETA))),
        (Kind.FALSE, lambda: theorem._judge_volume_element(lambda d: theorem.area(d) * sin(theorem.THETA) ** (d - 2))),
        (Kind.FALSE, lambda: theorem._judge_cap_integral(lambda d: theorem.area(d - 1) * sin(theorem.THETA) ** d)),
        (Kind.FALSE, lambda: theorem._judge_rate(1 / cos(theorem.THETA))),
        (Kind.FALSE, lambda: theorem._judge_revolution(pi * sin(theorem.THETA) ** 2)),
        (Kind.FALSE, lambda: theorem._judge_radius(sympy.Integer(1))),
        (Kind.FALSE, lambda: theorem._judge_cap_measure(Rational(3, 2))),
        (Kind.FALSE, lambda: theorem._judge_normalisation(lambda d: theorem.exact_density(d + 2))),
        (Kind.FALSE, lambda: theorem._judge_beta(lambda d: theorem.exact_density(d + 1))),
        (Kind.FALSE, lambda: theorem._judge_beta_square(lambda d: 2 * theorem.exact_density(d))),
        (Kind.FALSE, lambda: theorem._judge_kernel(0, lambda x, d: null_cosine.pdf(x, d + 1))),
        (Kind.FALSE, lambda: theorem._judge_kernel(1, null_cosine.sf)),
    ],
)
def test_seeded_fault_is_found(kind, judge):
    assert judge().kind is kind


@pytest.mark.parametrize("x", [Fraction(1, 10), Fraction(3, 5)])
def test_cancellation_agrees_with_quadrature(x):
    # The sums of the terms and of their sizes are the integrals of (1 − t²)^m and (1 + t²)^m, m = (d − 3)/2.
    sizes, total = (mpmath.quad(lambda t, s=s: (1 + s * t**2) ** 49, [0, float(x)]) for s in (1, -1))
    assert theorem._cancellation(x, 101) == pytest.approx(float(sizes / total), rel=1e-12)


def test_undecided_equality_is_an_error():
    x = sympy.Symbol("x", positive=True)
    assert theorem.same(x**2 + 2 * x + 1, (1 + x) ** 2, x, 1)
    assert not theorem.same(x**2 + 1, (1 + x) ** 2, x, 1)
    with pytest.raises(ArithmeticError):
        theorem.same(x, x * (1 + Rational(1, 10**40)), x, 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 300), st.fractions(Fraction(-99, 100), Fraction(99, 100), max_denominator=1000))
def test_density_agrees_with_mpmath_and_kernel(dim, x):
    value = theorem.exact_density(sympy.Integer(dim)).subs(theorem.TAU, Rational(x.numerator, x.denominator))
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
    value = theorem._closed_form(fmpq(2, 5), dim)[1]
    density = sympy.lambdify(theorem.TAU, theorem.exact_density(sympy.Integer(dim)), "mpmath")
    above_zero = mpmath.quad(density, [0, mpmath.mpf(x.numerator) / x.denominator])
    assert float(arb(value)) == pytest.approx(float(0.5 + above_zero), abs=1e-13)
