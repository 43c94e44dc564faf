import sympy

from canaryproof.proofs_check.release_moments import central_moment, moments, raw_moment
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, S


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
