import math
from fractions import Fraction

import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from scipy.stats import norm

from canaryproof.proofs_check.lines import Kind
from canaryproof.proofs_check.section_3_2 import Gaussian, balle_wang, balls, difference, probabilities

RATIONALS = st.fractions(Fraction(1, 4), 4, max_denominator=20)


def half_lines_and_intervals():
    return st.tuples(st.floats(-20, 20), st.floats(0.01, 20) | st.just(math.inf))


def test_a_changed_statement_is_found():
    assert balle_wang(2).kind is Kind.FALSE


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
