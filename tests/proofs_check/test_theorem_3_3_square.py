import sympy

from canaryproof.proofs_check import theorem_3_3
from canaryproof.proofs_check.sphere_moments import SIGMA, D, K, sum_of_variances


def test_the_displays_of_the_variance_add_up():
    # The three sums that the proof bounds one by one are the printed variance.
    rows = {line.display for line in theorem_3_3.LINES if line.display}
    assert rows == set(theorem_3_3.DISPLAYS)
    triple = sum_of_variances(("i", "j"), ("i", "l"))
    by_hand = K * (2 * (K - 1) / D + (K - 1) * (K - 2) / D**2 + (K - 1) * 2 * (D - 1) / (D**2 * (D + 2)))
    assert sympy.cancel(triple - by_hand) == 0
    mixed = 2 * SIGMA**2 * sum_of_variances(("i", "j"), ("i", "Z"))
    assert sympy.cancel(mixed - 2 * SIGMA**2 * (K + K * (K - 1) / D)) == 0
