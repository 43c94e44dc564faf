import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from canaryproof.kernels.certified._ball import at_precision, exact
from canaryproof.kernels.certified._series import hypergeometric

QUARTERS = st.integers(1, 400).map(lambda n: n / 4)


@given(QUARTERS, QUARTERS, st.floats(1e-3, 0.99), st.integers(42, 90))
def test_encloses_from_few_terms(b, c, z, prec):
    """At 42 bits and a little more it stops early, so that the remainder is much of the ball."""
    coarse, fine = (at_precision(p, lambda: hypergeometric(*(exact("x", x) for x in (b, c, z)))) for p in (prec, 400))
    with mp.workdps(60):
        expected = mp.hyp2f1(1, mpf(b), mpf(c), mpf(z))
    for ball in (coarse, fine):
        assert float(ball.lower()) * (1 - 1e-15) <= expected <= float(ball.upper()) * (1 + 1e-15)
    assert at_precision(400, lambda: coarse.lower() <= fine.lower() and fine.upper() <= coarse.upper())
    assert fine.rel_accuracy_bits() > 340


@pytest.mark.parametrize("z", [5e-324, 0.5, 1 - 2**-10])
def test_logarithm(z):
    """₂F₁(1, 1; 2; z) = −log(1 − z)/z."""
    z = exact("z", z)
    found, expected = (
        at_precision(1300, f)
        for f in (
            lambda: hypergeometric(flint.fmpq(1), flint.fmpq(2), z),
            lambda: -(-flint.arb(z)).log1p() / z,
        )
    )
    assert found.overlaps(expected)
    assert found.rel_accuracy_bits() > 1200
