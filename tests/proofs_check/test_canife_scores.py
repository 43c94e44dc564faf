import sympy

from canaryproof.proofs_check.canife_a import NOISE, score_with, score_without, weighted
from canaryproof.proofs_check.lines import Kind


def test_a_changed_statement_is_found():
    assert score_without(NOISE).kind is Kind.FALSE
    assert score_with(sympy.Integer(2)).kind is Kind.FALSE


def test_the_hypothesis_named_is_enough():
    assert weighted(noise_scales=True).kind is Kind.EXACT
