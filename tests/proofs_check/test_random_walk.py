import sympy

from canaryproof.proofs_check import random_walk
from canaryproof.proofs_check.lines import Kind
from canaryproof.proofs_check.random_walk import squared_length
from canaryproof.proofs_check.sphere_moments import D, K, expectation


def test_lines(quick_run):
    kinds = [quick_run.results[line.id].evidence["kind"] for line in random_walk.LINES]
    assert kinds == [Kind.EXACT, Kind.EXACT]


def test_two_steps():
    # ‖c₁ + c₂‖² = 2 + 2⟨c₁, c₂⟩.
    fourth = 16 * expectation(("a", "b"), ("a", "b")) * 1
    second = squared_length(2).subs(K, 2)
    assert sympy.cancel(second - (4 + fourth / 4)) == 0
    assert squared_length(1) == K
    assert sympy.cancel(squared_length(2) - (K**2 + 2 * K * (K - 1) / D)) == 0
