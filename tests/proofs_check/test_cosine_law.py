from fractions import Fraction

import mpmath
import pytest
import sympy
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Rational

from canaryproof.kernels.certified import null_cosine
from canaryproof.proofs_check import cosine_law
from canaryproof.proofs_check.cosine_law import TAU, even_moment, exact_density
from canaryproof.proofs_check.lines import Kind, kind_of
from canaryproof.proofs_check.sphere_moments import D


@pytest.mark.parametrize(
    "judge",
    [
        lambda: cosine_law._judge_normalisation(lambda d: exact_density(d + 2)),
        lambda: cosine_law._judge_beta(lambda d: exact_density(d + 1)),
        lambda: cosine_law._judge_beta_square(lambda d: 2 * exact_density(d)),
        lambda: cosine_law.judge_even_moments(lambda p: even_moment(p) * (D + p) / D),
        lambda: cosine_law.judge_odd_moments(lambda d: exact_density(d) * (2 + TAU)),
        lambda: cosine_law._judge_kernel(0, lambda x, d: null_cosine.pdf(x, d + 1)),
        lambda: cosine_law._judge_kernel(1, null_cosine.sf),
    ],
)
def test_seeded_fault_is_found(judge):
    assert kind_of(judge()) is Kind.FALSE


@settings(max_examples=40, deadline=None)
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
    value = cosine_law._closed_form(fmpq(2, 5), dim)[1]
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
