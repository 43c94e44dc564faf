import sympy

from canaryproof.proofs_check.lines import Kind
from canaryproof.proofs_check.section_3_2 import DIM, EPSILON, FIRST, SECOND, SIGMA, Gaussian, implication, scaling


def test_a_changed_weight_is_found():
    assert implication(FIRST, SECOND, sympy.exp(-EPSILON)).kind is Kind.FALSE


def test_a_changed_factor_is_found():
    deviation = 1 / sympy.sqrt(DIM)
    cosines = Gaussian(0, deviation), Gaussian(deviation / SIGMA, deviation)
    assert scaling((Gaussian(0, SIGMA), Gaussian(1, SIGMA)), 1 / SIGMA, cosines).kind is Kind.FALSE
