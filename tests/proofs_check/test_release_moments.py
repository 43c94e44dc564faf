import sympy

from canaryproof.proofs_check import release_moments
from canaryproof.proofs_check.displayed_lines import Kind
from canaryproof.proofs_check.release_moments import central_moment, moments, raw_moment, squared_length
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, S, expectation


def test_one_canary():
    # k = 1: ⟨c, ρ⟩ = 1 + σ⟨c, Z⟩ ~ N(1, σ²) for every d, and there is no spread.
    at = {K: 1, S: 0}
    assert central_moment("B", 2).subs(at) == SIGMA**2
    assert sympy.cancel(central_moment("B", 4).subs(at) - 3 * SIGMA**4) == 0
    assert sympy.expand(raw_moment("T", 1).subs(at) - (1 + SIGMA**2)) == 0
    assert raw_moment("W", 1).subs(at) == 0
    assert central_moment("W", 2).subs(at) == 0


def test_no_noise_and_one_canary_with_data():
    # ‖c + sX‖² = 1 + s² + 2s⟨c, X⟩.
    centre, spread = (part.subs({K: 1, SIGMA: 0}) for part in moments("A", data=True))
    assert sympy.cancel(D * centre - (1 + S**2)) == 0
    assert sympy.cancel(D**2 * spread - 4 * S**2 / D) == 0


def test_without_data_is_data_of_length_zero():
    for name in "ABTW":
        with_data = moments(name, data=True)
        assert all(sympy.cancel(a.subs(S, 0) - b) == 0 for a, b in zip(with_data, moments(name), strict=True))


def test_lines(quick_run):
    kinds = [quick_run.results[line.id].evidence["kind"] for line in release_moments.LINES]
    assert kinds == [Kind.EXACT, Kind.EXACT]


def test_two_steps():
    # ‖c₁ + c₂‖² = 2 + 2⟨c₁, c₂⟩.
    fourth = 16 * expectation(("a", "b"), ("a", "b")) * 1
    second = squared_length(2).subs(K, 2)
    assert sympy.cancel(second - (4 + fourth / 4)) == 0
    assert squared_length(1) == K
    assert sympy.cancel(squared_length(2) - (K**2 + 2 * K * (K - 1) / D)) == 0
